"""Regions: their words say which rows they hold, and cuts are round numbers."""

import numpy as np
import pytest

import itrust as it
from itrust.data import PREDICTION, Missing
from itrust.terms import WindowAxis, roundest


def mixed(n=700, seed=0, **changes):
    rng = np.random.default_rng(seed)
    x = {
        "a": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(1)),
        "day": np.datetime64("2026-01-01") + rng.integers(0, 300, n),
        "k": rng.integers(0, 4, n),
        "g": rng.choice(list("uvw"), n),
    }
    p = rng.uniform(0.2, 0.6, n)
    return it.Sample(rng.random(n) < p, p, x | changes, missing="level").points


@pytest.mark.parametrize("name", [None, "a", "day", "k", "g"])
def test_every_window_holds_the_rows_of_its_words(name):
    points, other = mixed(), mixed(300, 1)
    axis = WindowAxis.of(name, points, 16, 0.02, alone=True)
    crossed = axis.crossed(WindowAxis.of("g", points, 16, 0.02, alone=False))
    for own in (axis, crossed):
        assert (np.diff(own.depths) >= 0).all()
        for where, window in zip(own.conditions, own.windows, strict=True):
            for rows in (points, other):  # new ones, too
                assert (window[own.codes(rows)] == where.rows(rows)).all()
    assert set.union(*map(set, (own.names for own in axis.conditions))) == {name or PREDICTION}
    assert (Missing("a") in axis.conditions) == (name == "a")


def test_a_number_that_is_nearly_always_its_least_is_cut_above_it():
    x = np.zeros(700)
    x[:20] = np.linspace(1, 2, 20)
    axis = WindowAxis.of("v", mixed(v=x), 16, 0.02, alone=True)
    assert [str(where) for where in axis.conditions] == ["v < 1", "v >= 1"]


def test_levels_that_no_row_had_are_in_no_window():
    axis = WindowAxis.of("g", mixed(), 16, 0.02, alone=True)
    other = mixed(60, g=np.repeat(["u", "new", "v"], 20))
    inside = axis.windows[:, axis.codes(other)]
    assert inside.sum(axis=0).tolist() == [1] * 20 + [0] * 20 + [1] * 20


def test_a_column_without_a_proper_part_has_no_axis():
    assert WindowAxis.of("g", mixed(g=np.repeat("u", 700)), 16, 0.02, alone=True) is None
    assert WindowAxis.of("a", mixed(), 16, 0.9, alone=True) is None


@pytest.mark.parametrize(
    "values",
    [
        1_000_000 + np.arange(400),
        1_099_511_627_776 + 1_000 * np.arange(400),
        1 - 10.0 ** -np.linspace(1, 9, 400),
        5e-324 * np.arange(400),
        1e300 * np.linspace(-1, 1, 400),
    ],
)
def test_the_printed_rule_is_the_rule(values):
    points = it.Sample(np.arange(400) % 2, np.full(400, 0.5), {"v": values}).points
    axis = WindowAxis.of("v", points, 16, 0.02, alone=True)
    cells = axis.codes(points)
    for where, window in zip(axis.conditions, axis.windows, strict=True):
        words = str(where).removeprefix("v ")
        low = high = None
        if words.startswith("< "):
            high = float(words[2:])
        elif words.startswith(">= "):
            low = float(words[3:])
        else:
            low, high = (float(end) for end in words.removeprefix("from ").split(" to below "))
        inside = np.ones(400, dtype=bool)
        inside &= True if low is None else points.columns[0].values >= low
        inside &= True if high is None else points.columns[0].values < high
        assert (inside == where.rows(points)).all()
        assert (inside == window[cells]).all()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(2.3, 2.4, 2.4), (0.1204, 0.1387, 0.13), (-3.2, -2.9, -3.0), (17, 23, 20), (5.0, 5.0, 5.0)],
)
def test_cuts_are_round_numbers(low, high, expected):
    assert roundest(low, high) == expected
