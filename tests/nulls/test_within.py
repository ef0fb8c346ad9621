"""Interval nulls: their bounds in closed form, nested in the size, and coupled draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import itrust as it
from itrust import InputError, nulls
from itrust.calibration import prepared_test
from itrust.nulls import label_bits, labels_below, redrawn_labels

PROBABILITIES = arrays(float, 6, elements=st.floats(0, 1))
SIZES = [
    (nulls.Selection, 1.0, 50.0),
    (nulls.LabelError, 0.0, 1.0),
    (lambda r: nulls.LabelError(false_positives=r), 0.0, 1.0),
    (lambda r: nulls.LabelError(false_negatives=r), 0.0, 1.0),
    (nulls.Tolerance, 0.0, 1.0),
]


def test_bounds_by_hand():
    p = np.array([0.0, 0.2, 0.5, 1.0])
    found = {
        nulls.Selection(2.0): ([0, 0.2 / 1.8, 1 / 3, 1], [0, 0.4 / 1.2, 2 / 3, 1]),
        nulls.LabelError(0.1): ([0, 0.18, 0.45, 0.9], [0.1, 0.28, 0.55, 1]),
        nulls.LabelError(0.1, false_negatives=0.5): ([0, 0.1, 0.25, 0.5], [0.1, 0.28, 0.55, 1]),
        nulls.LabelError(false_negatives=0.5): ([0, 0.1, 0.25, 0.5], p),
        nulls.Tolerance(0.3): ([0, 0, 0.2, 0.7], [0.3, 0.5, 0.8, 1]),
        nulls.Prudent(): ([0, 0, 0, 0], p),
    }
    for null, (lo, hi) in found.items():
        np.testing.assert_allclose(null.bounds(p), (lo, hi), atol=1e-15, err_msg=repr(null))


@given(PROBABILITIES, st.sampled_from(SIZES), st.floats(0, 1), st.floats(0, 1))
def test_intervals_hold_the_prediction_and_grow_with_the_size(p, family, a, b):
    make, least, most = family
    small, large = sorted(least + share * (most - least) for share in (a, b))
    lo, hi = make(small).bounds(p)
    wider, higher = make(large).bounds(p)
    assert ((lo <= p) & (p <= hi)).all()
    assert ((wider >= 0) & (wider <= lo) & (hi <= higher) & (higher <= 1)).all()
    neutral = make(least).bounds(p)
    np.testing.assert_array_equal(neutral, (p, p))


def test_bounds_of_ones_own_are_taken_by_row():
    lo, hi = np.linspace(0, 0.4, 5), np.linspace(0.5, 0.9, 5)
    null = nulls.Within(lo, hi)
    p = np.full(5, 0.45)
    np.testing.assert_array_equal(null.bounds(p), (lo, hi))
    np.testing.assert_array_equal(null.bounds(p[:2], range(2, 4)), (lo[2:4], hi[2:4]))
    assert null.to_dict() == {"null": "Within", "exact": True, "lo": "array", "hi": "array"}
    halves = nulls.Within(lambda p: p / 2, hi)
    np.testing.assert_array_equal(halves.bounds(p), (p / 2, hi))
    assert repr(halves) == "<Within, lo: function, hi: array>"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nulls.Selection(0.5), "odds is an odds ratio of at least 1, not 0.5"),
        (lambda: nulls.Selection("2"), "odds is an odds ratio"),
        (lambda: nulls.Selection(np.inf), "odds is an odds ratio"),
        (lambda: nulls.Selection(np.nan), "odds is an odds ratio"),
        (lambda: nulls.Tolerance(True), "bias is a bias from 0 to 1, not True"),
        (lambda: nulls.LabelError(), "needs a rate, false_positives or false_negatives"),
        (lambda: nulls.LabelError(1.5), "rate is a probability of an error, from 0 to 1, not 1.5"),
        (lambda: nulls.LabelError(false_negatives=-1), "false_negatives is a probability"),
        (lambda: nulls.Within("a", 1), "lo must be numbers"),
        (lambda: nulls.Within([0.1], [0.2]).bounds([0.5, 0.5]), "one value for every row"),
        (lambda: nulls.Within([0.3], [0.2]).bounds([0.5]), "lo must not exceed hi; row 0 has 0.3"),
        (
            lambda: nulls.Within([0.3], [1.2]).bounds([0.5]),
            r"hi must lie in \[0, 1\]; row 0 has 1.2",
        ),
        (
            lambda: nulls.Within(lambda p: p[:1] * np.ones(3), lambda p: p).bounds([0.5, 0.6]),
            r"lo must give one number for every prediction it is given, 2 here; .* shape \(3,\)",
        ),
        (lambda: nulls.Within([np.nan], [1.0]).bounds([0.5]), r"lo must lie in \[0, 1\]"),
    ],
)
def test_what_is_no_interval_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_labels_of_larger_probabilities_include_the_others():
    """The coupling: lo <= pi <= hi gives 1{U < lo} <= 1{U < pi} <= 1{U < hi}, for the same U."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(40), [0.0, 1.0, 0.5]])
    lo, hi = nulls.Selection(1.01).bounds(p)  # so close that the first 8 bits often tie
    rows, draws = range(100, 143), range(3, 403)
    bits = label_bits(rows, draws, 5)
    low, middle, high = (labels_below(bits, level, rows, draws, 5) for level in (lo, p, hi))
    np.testing.assert_array_equal(middle, redrawn_labels(p, rows, draws, 5))
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert (low != high).any()


def test_other_tests_refuse_interval_nulls():
    sample = it.simulate.survey(60, rng=0).sample
    with pytest.raises(InputError, match="interval null, which klce_test alone takes"):
        prepared_test(sample, null=nulls.Prudent(), draws=9)
    with pytest.raises(InputError, match="quadratic form is not monotone in the labels"):
        it.klce_test(sample, it.kernels.LocalKernel(), null=nulls.Prudent(), draws=9)
