"""Places as parts of a pass: multipliers that repeat, rows that are left out, draws in batches."""

import numpy as np
import pytest

import itrust as it
from itrust._core import tickets
from itrust.bias import places as module
from itrust.bias.places import PlaceSet, PlacesPart, average
from itrust.bias.smoothing import Members
from itrust.data import Compared, Everywhere
from itrust.engines import as_engine, run_together
from itrust.nulls import Bernoulli

STRETCH = 500


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    n = 4 * STRETCH
    p = rng.uniform(0.1, 0.9, n)
    return it.Sample(rng.random(n) < p, p, {"place": np.arange(n)})


def test_multipliers_that_repeat_have_the_variances_and_are_uncorrelated(sample, monkeypatch):
    monkeypatch.setattr(module, "NORMAL_ROWS", STRETCH)
    module._normals.cache_clear()
    first, last = (Compared("place", sign, 2.0 * STRETCH) for sign in ("<", ">="))
    regions = Members([Everywhere(), first, last])
    found = average(sample, regions, (Bernoulli(),), draws=2_000, seed=0)
    ratio = found.multiplied.var(axis=1) / found.moments.multiplied
    assert ratio == pytest.approx(np.ones(3), abs=0.12)
    assert found.multiplied.mean(axis=1) == pytest.approx(
        np.zeros(3), abs=4 * np.sqrt(found.moments.multiplied.max() / 2_000)
    )
    halves = np.corrcoef(found.multiplied[1:])[0, 1]
    assert abs(halves) < 4 / np.sqrt(2_000)
    module._normals.cache_clear()


def test_rows_at_hand_can_be_left_out(sample):
    drawn = tickets(0, sample.n)
    bar = float(np.sort(drawn)[600])
    engine = as_engine("auto")
    part = PlacesPart.of([PlaceSet(Members([Everywhere()]), True, bar)], sample.n, 20, 3)
    ((found,),) = run_together(engine, engine.survey(sample), [part], Bernoulli(), 20, 3)
    others = drawn > bar
    assert found.rows[0] == others.sum() == sample.n - 601
    assert found.values[0] == pytest.approx(sample.residuals[others].mean())
    redrawn = np.empty((sample.n, 20))
    Bernoulli().fill(redrawn, sample, range(20), 3)
    assert found.sums[0, 0, 1:] == pytest.approx(redrawn[others].sum(axis=0))
    assert found.spread[0, 1:] == pytest.approx((redrawn[others] ** 2).sum(axis=0))
    assert found.total == sample.n


def test_draws_come_in_any_batches(sample, monkeypatch):
    regions = Members([Everywhere(), Compared("place", "<", 700.0)])
    whole = average(sample, regions, (Bernoulli(),), draws=60, seed=1, spread=True)
    monkeypatch.setattr("itrust.engines.plan.MIN_COLUMNS", 25)
    monkeypatch.setattr("itrust.engines.plan.BATCH_BYTES", 1)
    parts = average(sample, regions, (Bernoulli(),), draws=60, seed=1, spread=True)
    for name in ("sums", "multiplied", "spread", "residual"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), abs=1e-9)
