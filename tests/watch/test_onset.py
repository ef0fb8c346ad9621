"""Since when: the best onset, and those that are not ruled out."""

import numpy as np

from itrust.watch.bets import LOG_CHANCES, Blocks, log_factors, log_onset, onset_of


def blocks_of(residuals, rows=200, variance=0.2):
    blocks = Blocks.empty(1)
    for k, mean in enumerate(residuals):
        u = rows * mean
        sums = np.array([[[u], [-u]], [[0.0]] * 2, [[rows * variance]] * 2])
        blocks = blocks.after(k + 1, sums)
    return blocks


def test_the_onset_of_a_clear_drift_is_the_batch_in_which_it_begins():
    found = onset_of(blocks_of([0.0] * 12 + [0.2] * 8), 0, 20, 0.05, "ever")
    assert found[0] == 13
    assert found[1] >= 12
    assert found[2] <= 14


def test_the_set_equals_a_loop_over_onsets():
    rng = np.random.default_rng(0)
    means = np.r_[rng.normal(0, 0.02, 10), rng.normal(0.06, 0.02, 10)]
    blocks, alpha = blocks_of(means), 0.1
    factors = [log_factors(one)[:, 0] for one in blocks.sums]
    best, mixture = [], []
    for k in range(20):
        ratio = sum(factors[k:])
        best.append(ratio.max())
        mixture.append(np.logaddexp.reduce((ratio + LOG_CHANCES).ravel()))
    weights = np.array([log_onset(k, "ever") for k in range(1, 21)])
    weights -= np.logaddexp.reduce(weights)
    total = np.logaddexp.reduce(weights + mixture)
    kept = [k + 1 for k in range(20) if best[k] >= np.log(alpha) + total]
    expected = (int(np.argmax(best)) + 1, kept[0], kept[-1])
    assert onset_of(blocks, 0, 20, alpha, "ever") == expected


def test_a_smaller_alpha_gives_a_wider_interval():
    blocks = blocks_of([0.0] * 8 + [0.06] * 8)
    narrow, wide = (onset_of(blocks, 0, 16, alpha, "ever") for alpha in (0.2, 0.001))
    assert wide[1] <= narrow[1] <= 9 <= narrow[2] <= wide[2]
