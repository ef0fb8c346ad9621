"""What several test files need: real data when it is there, a sample with every kind of column."""

import os
from pathlib import Path

import numpy as np
import pytest

import itrust as it


@pytest.fixture
def data_folder() -> Path:
    """The folder with the real files; a missing one is a visible skip, in CI a failure."""
    folder = os.environ.get("ITRUST_DATA")
    if folder:
        return Path(folder)
    message = "set ITRUST_DATA to the folder with the real data sets"
    if os.environ.get("ITRUST_REQUIRE_DATA") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def mixed_sample() -> it.Sample:
    """Forty rows with a number, a date-like count, a boolean and a category."""
    rng = np.random.default_rng(3)
    n = 40
    x = {
        "income": rng.normal(50, 10, n),
        "children": rng.integers(0, 3, n),
        "urban": rng.random(n) < 0.5,
        "race": rng.choice(["a", "b", "c"], n),
    }
    p = rng.uniform(0.05, 0.95, n)
    return it.Sample(rng.random(n) < p, p, x, weights=rng.exponential(size=n))
