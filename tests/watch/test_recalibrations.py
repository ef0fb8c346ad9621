"""Recalibrations bet with likelihood ratios: fair at p, whatever was learned before."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from itrust.watch.bets import MEMORIES, RIDGES, Recalibrations, ratios_of

SHARE = st.floats(0, 1)


@settings(max_examples=200, deadline=None)
@given(st.floats(-20, 20), st.floats(-1, 1), SHARE)
def test_a_likelihood_ratio_has_mean_1(move, phi, p):
    moves, function = np.array([[move]]), np.array([[phi]])
    ratios = [
        np.exp(ratios_of(moves, function, (np.array([y]), np.array([p]), None)))[0]
        for y in (0.0, 1.0)
    ]
    assert np.isclose((1 - p) * ratios[0] + p * ratios[1], 1, rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.floats(-3, 3), SHARE, SHARE, SHARE)
def test_a_cluster_is_one_bet_whatever_its_dependence(move, p, q, how):
    share, phi = np.full(2, 0.5), np.array([[1.0, -0.4]])
    both = max(0.0, p + q - 1) + how * (min(p, q) - max(0.0, p + q - 1))
    law = {(1, 1): both, (1, 0): p - both, (0, 1): q - both, (0, 0): 1 - p - q + both}
    mean = 0.0
    for labels, chance in law.items():
        rows = (np.array(labels, float), np.array([p, q]), share)
        mean += chance * float(np.exp(ratios_of(np.array([[move]]), phi, rows))[0])
    assert mean <= 1 + 1e-9


def test_moves_solve_the_ridge_equation_of_each_memory():
    rng = np.random.default_rng(0)
    phi, p = rng.uniform(-1, 1, (3, 80)), rng.uniform(0.1, 0.9, 80)
    rows = ((rng.random(80) < p).astype(float), p, None)
    known = Recalibrations.empty(3).plus(phi, rows)
    score, information = phi @ (rows[0] - p), (phi * p * (1 - p)) @ phi.T
    expected = [np.linalg.solve(information + r * np.eye(3), score) for r in RIDGES]
    np.testing.assert_allclose(known.moves(), expected * len(MEMORIES))


def test_memories_forget_at_their_own_pace_and_only_the_first_knows_the_reference():
    phi, rows = np.ones((1, 1)), (np.array([1.0]), np.array([0.5]), None)
    known = Recalibrations.empty(1).plus(phi, rows, slice(1))
    assert known.scores[:, 0].tolist() == [0.5, 0, 0, 0]
    known = Recalibrations.empty(1).plus(phi, rows).faded()
    np.testing.assert_allclose(known.scores[:, 0], [0.5, 0.5, 0.5 * 23 / 24, 0.5 * 5 / 6])
