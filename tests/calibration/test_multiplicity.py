"""Adjusted p-values against a naive loop, and the family-wise error."""

import numpy as np
import pytest

from itrust.calibration import step_down, unadjusted_pvalues
from oracles import holds_level


def naive_step_down(scores):
    remaining = list(range(len(scores)))
    result, last = {}, 0.0
    while remaining:
        top = max(remaining, key=lambda k: scores[k, 0])
        maxima = scores[remaining].max(axis=0)
        last = max(last, np.mean(maxima >= scores[top, 0]))
        result[top] = last
        remaining.remove(top)
    return np.array([result[k] for k in range(len(scores))])


def test_step_down_equals_the_naive_loop():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, 200))
    scores[:3, 0] += 3
    np.testing.assert_allclose(step_down(scores), naive_step_down(scores))


def test_the_smallest_adjusted_pvalue_is_that_of_the_maximum():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(30, 100))
    maximum = scores.max(axis=0)
    assert step_down(scores).min() == pytest.approx(np.mean(maximum >= maximum[0]))
    assert (step_down(scores) >= unadjusted_pvalues(scores)).all()


def test_family_wise_error_is_held_for_true_hypotheses_beside_false_ones():
    rng = np.random.default_rng(2)

    def errs(_):
        scores = rng.normal(size=(8, 100)) + rng.normal(size=100)
        scores[:4, 0] += 6
        return (step_down(scores)[4:] <= 0.05).any()

    assert holds_level(errs, conservative=True)


def test_nothing_gives_nothing():
    assert step_down(np.empty((0, 5))).size == 0
