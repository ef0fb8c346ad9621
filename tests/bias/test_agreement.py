"""What is marked excludes 0 in the interval beside it, and nothing else does."""

import numpy as np
import pytest
from scipy.stats import norm

import itrust as it
from itrust.bias import Averages, confidence_band, zero_scores


def any_sample(seed: int) -> tuple[it.Sample, float]:
    """Few or many rows, rare or common events, weights, clusters, impossible labels; a level."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.choice([12, 60, 200, 400]))
    p = np.clip(rng.beta(0.5, 2.0, n) * rng.choice([0.004, 0.06, 1.0]), 0, 1)
    if seed % 5 == 0:
        p[: n // 3] = 0.0
    x = {
        "a": rng.choice(list("uvw"), n, p=[0.7, 0.2, 0.1]),
        "b": rng.integers(0, 3, n),
        "z": rng.normal(size=n),
    }
    truth = np.clip(p + (seed % 4) * 0.1 * (x["b"] == 0), 0, 1)
    settings = {}
    if seed % 3 == 1:
        settings["weights"] = rng.exponential(size=n) ** 2
    if seed % 4 == 2:
        settings["cluster"] = rng.integers(0, max(n // 4, 3), n)
    sample = it.Sample(rng.random(n) < truth, p, x, **settings)
    return sample, float(rng.choice([0.05, 0.1, 0.3]))


def agree(lower, upper, pvalues, alpha) -> bool:
    lower, upper, pvalues = map(np.asarray, (lower, upper, pvalues))
    return bool((((lower > 0) | (upper < 0)) == (pvalues <= alpha)).all())


def parts_agree(table) -> bool:
    return agree(
        *np.array([(g.lower, g.upper, g.pvalue) for g in table]).reshape(-1, 3).T, table.alpha
    )


@pytest.mark.parametrize("seed", range(18))
def test_marks_and_intervals_agree(seed):
    sample, alpha = any_sample(seed)
    settings = {"alpha": alpha, "draws": 39, "rng": seed}
    for simultaneous in (True, False):
        groups = it.bias_groups(sample, "a", "b", simultaneous=simultaneous, **settings)
        assert parts_agree(groups)
        assert all(group.unadjusted_pvalue <= group.pvalue for group in groups)
    slices = it.bias_slices(sample, **settings)
    assert parts_agree(slices)
    assert {part.rule for part in slices.confirmed} == {
        part.rule for part in slices if part.at_least != 0
    }
    b = it.local_bias(sample, min_neighbours=5, **settings)
    assert agree(b.band.lower[b.known], b.band.upper[b.known], b.pvalues[b.known], alpha)
    assert ((b.band.lower <= b.values) & (b.values <= b.band.upper))[b.known].all()


def test_samples_of_the_property_have_marks_and_others():
    """The property would hold of nothing at all, too."""
    marks = []
    for seed in range(8):
        sample, alpha = any_sample(seed)
        table = it.bias_groups(sample, "a", "b", alpha=alpha, draws=39, rng=seed)
        marks += [group.pvalue <= alpha for group in table]
    assert 0 < sum(marks) < len(marks)


def coins(rng, runs: int, n: int) -> Averages:
    """Many groups of fair coins that are called .05 or .95: no bias on average."""
    p = np.where(rng.random((runs, n)) < 0.5, 0.05, 0.95)
    e = (rng.random(p.shape) < 0.5) - p
    mass = np.full(runs, float(n))
    squares = np.stack([(e**2).sum(1), -2 * e.sum(1), mass])
    powers = [mass, *(np.sum(p**k, axis=1) for k in (1, 2, 3))]
    carried = np.stack([mass, *np.zeros((3, runs))])
    total = e.sum(1)
    rows = np.full(runs, e.shape[1])
    return Averages(
        sums=total[None, :, None],
        multiplied=np.zeros((runs, 0)),
        spread=squares[:1].T,
        residual=total,
        rows=rows,
        mass=mass,
        predicted=powers[1],
        second=np.stack(powers[:3]),
        third=np.stack(powers),
        squares=squares,
        by_design=squares,
        by_multipliers=squares[0],
        carried=carried,
        freedom=None,
        total=float(rows.sum()),
    )


@pytest.mark.parametrize("n", [20, 50, 300])
def test_biases_that_cancel_hold_the_level_of_the_interval(n):
    """Half as much again, and thrice as much with 20 rows, when variance was that of labels."""
    found = coins(np.random.default_rng(n), 4_000, n)
    assert (np.abs(zero_scores(found)) > 2.4).mean() <= 1.4 * 2 * norm.sf(2.4)
    band = confidence_band(found, 2.4)
    assert ((band.lower > 0) | (band.upper < 0)).mean() <= 1.4 * 2 * norm.sf(2.4)
