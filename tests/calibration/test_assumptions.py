import numpy as np
import pytest

import itrust as it
from itrust import AssumptionWarning, Sample
from itrust.calibration.assumptions import (
    ResidualRows,
    assumption_notes,
    dependence,
    outcome_in_weights,
)

RUNS = range(40)


def dependence_of_twins(sample):
    return dependence(ResidualRows(sample))


def test_weights_built_from_the_outcome_are_noticed():
    found = [outcome_in_weights(it.simulate.outcome_weights(rng=run).sample) for run in RUNS]
    assert all(correlation is not None for correlation in found)


def test_weights_that_depend_on_covariates_are_not_suspected():
    found = [outcome_in_weights(it.simulate.weighted_rows(rng=run).sample) for run in RUNS]
    assert found == [None] * len(RUNS)


def test_repeated_units_are_noticed():
    found = [dependence_of_twins(it.simulate.repeated_units(100, rng=run).sample) for run in RUNS]
    assert sum(note is not None for note in found) >= 36


def test_independent_twins_are_not_suspected():
    independent = [it.simulate.repeated_units(100, share=0.0, rng=run).sample for run in RUNS]
    assert not any(dependence_of_twins(s) for s in independent)


def test_a_wrong_model_on_coarse_data_is_not_taken_for_repeated_units():
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(0.05, 0.45, 2000), 2)
    x = rng.integers(0, 20, 2000)
    assert dependence_of_twins(Sample(rng.random(2000) < p + 0.4, p, x)) is None


def test_weights_by_state_or_by_step_are_not_suspected_of_a_wrong_model():
    for run in range(10):
        rng = np.random.default_rng(run)
        state = rng.integers(50, size=2000)
        x = rng.normal(size=2000)
        p = rng.uniform(0.3, 0.7, 2000)
        y = rng.random(2000) < p + 0.25 * np.where(state % 2, 1, -1) * (x > 1)
        by_state = rng.exponential(size=50)[state] + (x > 1)
        names = [f"s{k}" for k in state]
        assert outcome_in_weights(Sample(y, p, {"state": names, "x": x}, weights=by_state)) is None


def test_a_model_wrong_by_category_is_not_taken_for_repeated_units():
    for run in range(10):
        rng = np.random.default_rng(run)
        p = np.round(rng.uniform(0.3, 0.7, 2000), 2)
        group = rng.integers(4, size=2000)
        y = rng.random(2000) < p + np.array([0.25, -0.25, 0.25, -0.25])[group]
        assert dependence_of_twins(Sample(y, p, {"g": ["abcd"[k] for k in group]})) is None


def test_a_constant_model_is_not_taken_for_repeated_units():
    assert dependence_of_twins(Sample([1] * 90 + [0] * 10, [0.5] * 100)) is None


def test_named_clusters_need_no_warning():
    s = it.simulate.repeated_units(100, rng=0).sample
    named = Sample(s.y, s.p, s.columns[0].values, cluster=np.repeat(np.arange(100), 5))
    assert assumption_notes(named) == ()


def test_the_test_warns_and_the_result_repeats_it():
    s = it.simulate.outcome_weights(rng=0).sample
    with pytest.warns(AssumptionWarning, match="weights go with the labels"):
        r = it.klce_test(s, draws=19, rng=0)
    assert "weights go with the labels" in " ".join(str(r).split())


def test_weights_without_a_trace_pass_in_silence(mixed_sample):
    assert assumption_notes(mixed_sample) == ()
    constant = Sample([0, 1, 1], [0.2, 0.5, 0.7], weights=[2, 2, 2])
    assert outcome_in_weights(constant) is None
