"""Watches and the rows that they see."""

import pytest

import itrust as it
from watch_rows import make_rows


@pytest.fixture
def drawn():
    """Makes samples: `drawn(seed, n, drift)`."""
    return make_rows


@pytest.fixture(scope="session")
def reference():
    return make_rows(1_000, 2_000)


@pytest.fixture(scope="session")
def begun(reference):
    """A watch before its first batch."""
    return it.Watch.start(reference, ["mean(age)", 'prevalence(sex == "m")'])
