"""Level and power in simulation, small versions of `make study NAME=level`."""

import warnings

import numpy as np
import pytest

import itrust as it
from itrust import nulls, simulate
from itrust.kernels import RBF, LocalKernel
from oracles import STRICT, holds_level, plausible

pytestmark = pytest.mark.slow

DRAWS = 99
DEFAULT = LocalKernel()
NARROW = LocalKernel(RBF(0.1), RBF(0.1))


def rejecting(design, kernel=DEFAULT, null=None, draws=DRAWS):
    """Whether run k, with seed k, is rejected at 0.05."""

    def rejects(run):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", it.AssumptionWarning)
            sample = design(rng=run).sample
            return it.klce_test(sample, kernel, null, draws=draws, rng=run).pvalue <= 0.05

    return rejects


def rejections(design, runs, *settings):
    return sum(map(rejecting(design, *settings), range(runs)))


@pytest.mark.parametrize(
    ("design", "kernel"),
    [
        pytest.param(lambda rng: simulate.tight_clusters(300, rng), NARROW, id="tight clusters"),
        pytest.param(lambda rng: simulate.rare_events(300, rng), DEFAULT, id="rare events"),
        pytest.param(lambda rng: simulate.weighted_rows(150, rng), DEFAULT, id="weights from x"),
        pytest.param(lambda rng: simulate.papers_level_design(30, rng), DEFAULT, id="thirty rows"),
    ],
)
def test_exact_null_holds_its_level(design, kernel):
    assert holds_level(rejecting(design, kernel))


def test_exact_null_holds_its_level_to_a_hair_in_the_papers_design():
    assert holds_level(rejecting(simulate.papers_level_design), others=STRICT)


def test_algorithm_one_exceeds_its_level_where_variance_and_density_meet():
    count = rejections(simulate.tight_clusters, 100, NARROW, nulls.ResidualBootstrap())
    assert not plausible(count, 100)
    assert 0.15 < count / 100 < 0.45


SHIFT = LocalKernel(RBF(0.3))


def test_exact_null_sees_a_uniform_shift_and_algorithm_one_does_not():
    assert rejections(simulate.uniform_shift, 50, SHIFT) > 46
    assert rejections(simulate.uniform_shift, 50, SHIFT, nulls.ResidualBootstrap()) <= 1


def test_published_nulls_behave_as_measured():
    """Paper's design, n = 50, wide kernel on f: permuting holds its level, centring breaks it."""
    wide = LocalKernel(RBF(0.99 / np.sqrt(2)), it.kernels.Constant())
    design, runs = simulate.papers_level_design, 120
    assert holds_level(rejecting(design, wide, nulls.Permutation()))
    assert rejections(design, runs, wide, nulls.Permutation(centred=True)) > 0.2 * runs
    assert rejections(design, runs, wide, nulls.ResidualBootstrap()) == 0


def test_repeated_units_break_exactness_and_clusters_mend_it():
    def named(rng):
        s = simulate.repeated_units(rng=rng).sample
        unit = np.repeat(np.arange(60), 5)
        clustered = it.Sample(s.y, s.p, s.columns[0].values, cluster=unit)
        return simulate.Simulated(clustered, s.p)

    assert rejections(simulate.repeated_units, 60) / 60 > 0.2
    assert holds_level(rejecting(named))


def test_weights_from_the_outcome_break_exactness():
    assert not plausible(rejections(simulate.outcome_weights, 80), 80)


def test_flipped_signs_hold_their_level():
    assert holds_level(rejecting(simulate.papers_level_design, DEFAULT, nulls.Rademacher()))


def test_spectral_null_holds_its_level_at_moderate_n():
    def design(rng):
        return simulate.papers_level_design(100, rng)

    assert holds_level(rejecting(design, DEFAULT, nulls.Spectral()))


def test_hoeffding_is_conservative_but_not_blind():
    assert rejections(simulate.papers_level_design, 100, DEFAULT, nulls.Hoeffding()) == 0

    def plainly_miscalibrated(rng):
        return simulate.uniform_shift(2000, 0.14, rng)

    everywhere = LocalKernel(it.kernels.Constant(), it.kernels.Constant())
    assert rejections(plainly_miscalibrated, 3, everywhere, nulls.Hoeffding()) == 0
    blunt = it.Sample(np.ones(500), np.full(500, 0.3))
    assert it.klce_test(blunt, everywhere, nulls.Hoeffding()).pvalue < 1e-6
