"""How often what validators print rejects: calibrated models, and one that is off given X alone."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import itrust as it

ALPHA, RUNS, DRAWS = 0.05, 120, 39


def designs(name, rng):
    """Predictions that hurt laws of many rows."""
    if name == "rare":
        return expit(rng.normal(-6.0, 1.0, 800))  # about four events
    if name == "tiny":
        return rng.uniform(0.05, 0.95, 25)
    if name == "extreme":
        return rng.beta(0.15, 0.15, 120)
    return rng.uniform(0.02, 0.6, 300)


def of(y, p, seed, weights=None):
    return it.scores.validation(y, p, sample_weight=weights, draws=DRAWS, rng=seed)


def rejections(name, weighted=False):
    """How often each statistic rejects, by redraws and by its law, and some grade."""
    rng = np.random.default_rng([11, len(name), weighted])
    exact, law, runs = {}, {}, 0
    grades = np.zeros(2)
    for seed in range(RUNS):
        p = designs(name, rng)
        y = (rng.random(p.size) < p).astype(float)
        found = of(y, p, seed, rng.exponential(size=p.size) + 0.1 if weighted else None)
        runs += 1
        for own in found:
            if own.exact_pvalue is not None:
                exact.setdefault(own.name, []).append(own.exact_pvalue <= ALPHA)
            if own.pvalue is not None:
                law.setdefault(own.name, []).append(own.pvalue <= ALPHA)
        some = [(g.adjusted, g.adjusted_two_sided) for g in found.grades]
        grades += np.min(some, axis=0) <= ALPHA
    return exact, law, grades / runs


def is_too_often(rejected, runs):
    return stats.binomtest(int(rejected), runs, ALPHA, alternative="greater").pvalue < 1e-3


@pytest.mark.parametrize(
    ("name", "weighted"), [("rare", False), ("tiny", False), ("extreme", False), ("plain", True)]
)
def test_exact_p_values_hold_their_level(name, weighted):
    exact, law, grades = rejections(name, weighted)
    for statistic, found in exact.items():
        assert not is_too_often(sum(found), len(found)), (statistic, np.mean(found))
    for share in grades:
        assert not is_too_often(round(share * RUNS), RUNS), share
    if name == "rare":  # what the exact p-value is for
        assert np.mean(law["hosmer_lemeshow"]) > 0.08
    if name == "plain":  # and the laws hold where there are many rows of both labels
        for statistic in ("intercept", "slope", "hosmer_lemeshow", "spiegelhalter"):
            assert not is_too_often(sum(law[statistic]), RUNS), statistic


def test_a_model_that_is_off_given_x_alone_passes_everything_that_validators_print():
    runs, rejected = 100, {}
    given_x = []
    for seed in range(runs):
        sample = it.simulate.opposite_groups(600, rng=seed).sample
        found = of(sample.y, sample.p, seed)
        for own in found.tested:
            rejected[own.name] = rejected.get(own.name, 0) + (own.chance <= ALPHA)
        some = min(g.adjusted_two_sided for g in found.grades)
        rejected["grades"] = rejected.get("grades", 0) + (some <= ALPHA)
        if seed < 10:
            given_x.append(it.klce_test(sample, draws=79, rng=seed).pvalue <= ALPHA)
    assert len(rejected) == 10
    for name, number in rejected.items():
        assert not is_too_often(number, runs), (name, number)
    assert np.mean(given_x) == 1.0
