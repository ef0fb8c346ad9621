"""The checks of a watch: how their parts are told."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust.data import parts_of
from itrust.watch.components import even_parts


def column(values):
    values = np.asarray(values)
    return it.Sample(np.arange(values.size) % 2, np.full(values.size, 0.5), {"x": values}).column(
        "x"
    )


def test_ends_of_parts_have_the_same_few_digits():
    values = np.random.default_rng(0).uniform(20, 80, 900)
    told = [part.text for part in even_parts(column(values), 4)]
    assert all(re.fullmatch(r"\d\d to \d\d", text) for text in told)
    tenths = [part.text for part in even_parts(column(values), 10)]
    assert all(re.fullmatch(r"\d\d\.\d to \d\d\.\d", text) for text in tenths)


@pytest.mark.parametrize("values", [np.arange(100.0), np.arange("2024-01-01", 100, dtype="M8[D]")])
def test_whole_numbers_and_dates_are_told_as_before(values):
    assert even_parts(column(values), 4) == parts_of(column(values), 4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=12, max_size=60), st.integers(2, 10))
def test_cuts_stay_exact(values, parts):
    own = column([*values, 0.5])
    ends = [(part.low, part.high) for part in even_parts(own, parts)]
    assert ends == [(part.low, part.high) for part in parts_of(own, parts)]
