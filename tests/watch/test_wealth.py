"""The evidence: a mixture over checks, stakes and onsets that is worth 1 at most on average."""

from itertools import product

import numpy as np
import pytest

import itrust as it
from itrust.watch.bets import (
    LOG_CHANCES,
    MAX_BLOCKS,
    RECENT,
    Blocks,
    PanelWealth,
    bet_sums,
    log_factors,
    log_onset,
    log_to_come,
)
from itrust.watch.components import settled_panel


@pytest.fixture(scope="module")
def panel():
    rng = np.random.default_rng(0)
    x = {"age": rng.normal(size=300), "sex": rng.choice(["f", "m"], 300)}
    return settled_panel(it.Sample(rng.random(300) < 0.5, rng.random(300), x).pilot(300))


def test_weights_of_onsets_sum_to_1():
    for batches in (0, 1, 7, 500):
        begun = sum(np.exp(log_onset(k, "ever")) for k in range(1, batches + 1))
        assert np.isclose(begun + np.exp(log_to_come(batches, "ever")), 1)
    assert log_onset(9, "run length") == 0
    assert log_to_come(9, "run length") == -np.inf


@pytest.mark.parametrize(("promise", "most"), [("ever", 1.0), ("run length", 3.0)])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_the_mean_over_all_labels_of_three_batches_keeps_the_promise(
    panel, promise, most, tolerance
):
    """Every sequence of labels with its probability: nothing is left to chance."""
    p = np.array([[0.03, 0.8], [0.5, 0.2], [0.6, 0.95]])
    truth = np.clip(p + np.array([[1, -1], [1, 1], [-1, -1]]) * tolerance, 0, 1)
    x = {"age": np.array([0.3, -2, 1.5, 0.1, 4, -0.2]), "sex": list("fmmfmf")}
    points = it.Population(p.ravel(), x).points
    matrix = panel.matrix(points)
    mean = 0.0
    for labels in product((0.0, 1.0), repeat=6):
        held = PanelWealth.begun(panel, promise, moved=tolerance == 0)
        y = np.array(labels).reshape(3, 2)
        for k in range(3):
            part = matrix[:, 2 * k : 2 * k + 2] * 1.0, (y[k], p[k], None)
            held = held.after([part], k + 1, promise, tolerance)
        chance = np.prod(np.where(y == 1, truth, 1 - truth))
        mean += chance * np.exp(held.total(3, promise))
    assert 0.5 * most < mean <= most * (1 + 1e-9)


def test_one_number_for_each_bet_stands_for_all_onsets(panel):
    rng = np.random.default_rng(2)
    held, batches = PanelWealth.begun(panel, "ever", moved=False), []
    for k in range(5):
        p = rng.uniform(0.1, 0.9, 30)
        rows = ((rng.random(30) < p).astype(float), p, None)
        matrix = rng.uniform(-1, 1, (len(panel.checks), 30))
        batches.append(log_factors(bet_sums(matrix, rows)))
        held = held.after([(matrix, rows)], k + 1, "ever")
    naive = np.zeros_like(held.log_bets)
    for onset in range(1, 6):
        naive += np.exp(log_onset(onset, "ever") + sum(batches[onset - 1 :]))
    np.testing.assert_allclose(np.exp(held.log_bets), naive, rtol=1e-10)
    to_come = np.exp(log_to_come(5, "ever"))
    by_check = ((naive + to_come) * np.exp(LOG_CHANCES)).sum(axis=(0, 2))
    np.testing.assert_allclose(np.exp(held.by_check(5, "ever")), by_check, rtol=1e-10)
    total = float(panel.weights @ by_check)
    assert np.isclose(np.exp(held.total(5, "ever")), total, rtol=1e-10)


def test_rows_in_parts_are_the_rows_at_once(panel):
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 0.9, 50)
    rows = ((rng.random(50) < p).astype(float), p, None)
    matrix = rng.uniform(-1, 1, (len(panel.checks), 50))
    begun = PanelWealth.begun(panel, "ever", moved=True)
    whole = begun.after([(matrix, rows)], 1, "ever")
    parts = [(matrix[:, s], (rows[0][s], p[s], None)) for s in (slice(0, 20), slice(20, 50))]
    split = begun.after(parts, 1, "ever")
    np.testing.assert_allclose(split.log_bets, whole.log_bets, atol=1e-12)
    np.testing.assert_allclose(split.known.information, whole.known.information, atol=1e-12)


def test_blocks_keep_all_sums_and_recent_batches_by_themselves():
    blocks, total = Blocks.empty(2), np.zeros((3, 2, 2))
    for batch in range(1, 1_001):
        sums = np.full((3, 2, 2), float(batch))
        blocks, total = blocks.after(batch, sums), total + sums
    assert len(blocks.first) == MAX_BLOCKS
    assert blocks.first[0] == 1
    assert blocks.first[-RECENT:] == tuple(range(1_001 - RECENT, 1_001))
    np.testing.assert_allclose(blocks.sums.sum(axis=0), total, rtol=1e-6)
    lengths = np.diff(blocks.first)
    assert lengths[:-RECENT].max() < 4 * lengths[:-RECENT].mean()


def test_the_side_is_that_of_the_largest_evidence_and_not_of_the_last_batch(panel):
    held = PanelWealth.begun(panel, "ever", moved=False)
    matrix, p = np.ones((len(panel.checks), 60)), np.full(60, 0.5)
    sides = []
    for k, rate in enumerate((0.8, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1)):
        y = (np.arange(60) < 60 * rate).astype(float)
        before = held.peaks
        held = held.after([(matrix, (y, p, None))], k + 1, "ever")
        sides.append((held.sides[0], held.peaks[0] > before[0]))
    assert (sides[0][0], sides[1][0]) == (1, 1)
    assert sides[2] == (1, False)  # the last batch points down, the peak does not rise
    assert sides[-1] == (-1, True)
