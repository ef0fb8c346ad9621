"""Places as parts of a pass: normal multipliers, rows that are left out, draws in batches."""

import numpy as np
import pytest

import itrust as it
from itrust.bias import Members, average
from itrust.data import Compared, Everywhere
from itrust.nulls import Bernoulli

STRETCH = 500


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    n = 4 * STRETCH
    p = rng.uniform(0.1, 0.9, n)
    return it.Sample(rng.random(n) < p, p, {"place": np.arange(n)})


def test_multiplied_residuals_have_the_covariance_of_normal_multipliers(sample):
    """Overlapping places, against the closed form: sum over rows of a b (w e)^2."""
    half, most = Compared("place", "<", 2.0 * STRETCH), Compared("place", ">=", 1.0 * STRETCH)
    regions, draws = [Everywhere(), half, most, Compared("place", "<", -1.0)], 20_000
    found = average(sample, Members(regions), (Bernoulli(),), draws=draws, seed=0)
    inside = np.array([region.rows(sample.points) for region in regions], dtype=float)
    expected = (inside * sample.residuals**2) @ inside.T
    assert found.by_multipliers == pytest.approx(np.diagonal(expected))
    seen = found.multiplied @ found.multiplied.T / draws
    error = np.sqrt((expected**2 + np.outer(np.diagonal(expected), np.diagonal(expected))) / draws)
    assert (np.abs(seen - expected) <= 4 * error).all()
    assert (found.multiplied[3] == 0).all()  # where no row is, nothing varies


def test_more_places_than_rows_have_normal_sums_too():
    """A singular covariance: every place is one of forty rows, five times over."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.2, 0.8, 40)
    sample = it.Sample(rng.random(40) < p, p, {"place": np.arange(40)})
    regions = [Compared("place", "==", float(k % 40)) for k in range(200)]
    found = average(sample, Members(regions), (Bernoulli(),), draws=4_000, seed=0)
    same = np.corrcoef(found.multiplied[:80])[:40, 40:]
    assert np.diagonal(same) == pytest.approx(np.ones(40), abs=1e-3)
    others = same[~np.eye(40, dtype=bool)]
    assert np.abs(others).max() < 5 / np.sqrt(4_000)


def test_places_of_different_families_are_taken_as_uncorrelated(sample, monkeypatch):
    monkeypatch.setattr("itrust.bias.weights.MAX_FAMILY", 2)
    regions = Members([Everywhere()] * 3)
    found = average(sample, regions, (Bernoulli(),), draws=2_000, seed=0)
    seen = np.corrcoef(found.multiplied)
    assert seen[0, 1] > 0.999
    assert abs(seen[0, 2]) < 4 / np.sqrt(2_000)


def test_draws_come_in_any_batches(sample, monkeypatch):
    regions = Members([Everywhere(), Compared("place", "<", 700.0)])
    whole = average(sample, regions, (Bernoulli(),), draws=60, seed=1)
    monkeypatch.setattr("itrust.engines.plan.MIN_COLUMNS", 25)
    monkeypatch.setattr("itrust.engines.plan.BATCH_BYTES", 1)
    parts = average(sample, regions, (Bernoulli(),), draws=60, seed=1)
    for name in ("sums", "multiplied", "spread", "residual"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), abs=1e-9)
