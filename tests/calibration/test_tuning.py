"""Widths tuned on one part, tested on the other."""

import numpy as np
import pytest

import itrust as it
from itrust import InputError, Sample, simulate
from itrust.kernels import RBF, Constant, Delta, LocalKernel
from oracles import plausible


def ratio_by_hand(sample, kernel):
    """KLCE^2 over its sd by full matrices."""
    gram = kernel.resolve(sample.points).gram(sample.points).block(slice(None), slice(None))
    np.fill_diagonal(gram, 0)
    e, v = sample.residuals, sample.p * (1 - sample.p)
    h = np.outer(e, e) * gram
    variance = 4 * sample.n * h.sum(axis=1).var() + 2 * np.sum(gram**2 * np.outer(v, v))
    return h.sum() / np.sqrt(variance)


def test_the_ratio_is_that_of_the_kernel_it_returns():
    s = simulate.local_alternative("bump in c", 400, rng=0).sample
    tuned = it.tune_widths(s)
    assert tuned.ratio == pytest.approx(ratio_by_hand(s, tuned.kernel), rel=1e-3)
    assert tuned.start == pytest.approx(ratio_by_hand(s, LocalKernel()), rel=1e-3)
    assert tuned.ratio > tuned.start


def test_covariates_that_say_nothing_are_left_out():
    s = simulate.local_alternative("one level", 800, rng=1, strength=1.5).sample
    kernel = str(it.tune_widths(s).kernel)
    assert "Delta().on('group')" in kernel
    assert kernel.count("Constant()") >= 2


@pytest.mark.slow
def test_the_level_is_exact_and_tuning_on_the_tested_rows_is_not():
    runs, honest, greedy = 80, 0, 0
    for run in range(runs):
        s = simulate.normal_covariates(100, 3, run).sample
        honest += it.tuned_test(s, draws=99, rng=run).pvalue <= 0.05
        kernel = it.tune_widths(s).kernel
        greedy += it.klce_test(s, kernel, draws=99, rng=run).pvalue <= 0.05
    assert plausible(honest, runs, doubt=0.02)
    assert not plausible(greedy, runs)
    assert greedy > 0.15 * runs


@pytest.mark.slow
def test_it_beats_the_default_kernel_on_a_narrow_bump():
    runs, tuned, default = 10, 0, 0
    for run in range(runs):
        s = simulate.local_alternative("bump in c", 1200, run).sample
        tuned += it.tuned_test(s, draws=99, rng=run).pvalue <= 0.05
        default += it.klce_test(s, LocalKernel(), draws=99, rng=run).pvalue <= 0.05
    assert tuned >= default


def test_missing_values_categories_and_no_covariates():
    rng = np.random.default_rng(0)
    x = {"a": np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)), "b": ["u", "v"] * 40}
    y, p = rng.random(80) < 0.5, rng.uniform(size=80)
    assert 0 < it.tuned_test(Sample(y, p, x, missing="level"), draws=19, rng=0).pvalue <= 1
    bare = it.tune_widths(Sample(y, p))
    assert isinstance(bare.kernel.x, Constant)
    assert isinstance(bare.kernel.prob, RBF | Constant | Delta)
    with pytest.raises(InputError, match=r"share must lie between 0 and 1, not 1.5"):
        it.tuned_test(Sample(y, p), share=1.5)
