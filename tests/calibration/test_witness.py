"""The learned witness: valid combinations, power where dictionaries have no entry."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import itrust as it
from itrust import InputError, Sample, simulate
from itrust.calibration import Across, Forward
from itrust.terms import COLUMN_LEVELS, plain_features
from oracles import plausible

RIDGE = Ridge(alpha=1.0)


@pytest.mark.parametrize("folds", [Forward(3), Across(2)])
@pytest.mark.slow
def test_the_level_holds(folds):
    runs = 300
    count = sum(
        it.witness_test(
            simulate.normal_covariates(120, 4, run).sample, RIDGE, folds=folds, draws=99, rng=run
        ).pvalue
        <= 0.05
        for run in range(runs)
    )
    assert count <= 0.05 * runs or plausible(count, runs)


@pytest.mark.slow
def test_sums_over_folds_that_see_each_other_would_not_be_valid():
    """Why Across is combined by Bonferroni: both folds' witnesses err together."""
    from scipy.stats import norm

    runs, stouffer = 250, 0
    for run in range(runs):
        s = simulate.normal_covariates(120, 8, run).sample
        parts = it.witness_test(s, Ridge(1e-3), folds=Across(2), draws=199, rng=run).parts
        z = sum(norm.isf(part.pvalue) for part in parts) / np.sqrt(2)
        stouffer += z > norm.isf(0.05)
    assert not plausible(stouffer, runs)
    assert stouffer > 0.06 * runs


def test_a_rule_of_three_covariates_is_learned():
    s = simulate.local_alternative("interaction of a, c and d", 6000, rng=0).sample
    r = it.witness_test(s, draws=199, rng=0)
    assert r.pvalue < 0.01
    assert r.parts[-1].correlation > 0.02
    assert sum(part.tested_on for part in r.parts) == 4800


def test_folds_and_fisher_by_hand():
    assert [(list(a), b) for a, b in Forward(3).roles()] == [([0], 1), ([0, 1], 2)]
    assert [(list(a), b) for a, b in Across(2).roles()] == [([1], 0), ([0], 1)]
    p = np.array([0.1, 0.2])
    product = 0.02
    assert Forward(3).combined(p) == pytest.approx(product * (1 - np.log(product)))
    assert Across(2).combined(p) == pytest.approx(0.2)
    assert Across(2).combined(np.array([0.9, 0.8])) == 1.0


def test_same_seed_same_answer_and_it_serialises():
    s = simulate.survey(400, rng=0).sample
    a, b = (it.witness_test(s, draws=49, rng=3) for _ in range(2))
    assert a.pvalue == b.pvalue
    assert json.loads(json.dumps(a.to_dict()))["pvalue"] == a.pvalue
    assert "learned from" in str(a)


def test_categories_and_missing_values_become_columns():
    x = {"a": [1.0, np.nan, 3.0, 5.0], "b": ["u", "v", "u", "w"]}
    s = Sample([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], x, missing="level")
    matrix = plain_features(s.points, COLUMN_LEVELS).matrix(s.points).T
    np.testing.assert_allclose(matrix[:, 0], s.p)
    np.testing.assert_allclose(matrix[:, 1:3], [[1, 0], [3, 1], [3, 0], [5, 0]])
    np.testing.assert_allclose(matrix[:, 3:].sum(axis=1), 1)


def test_a_witness_that_is_not_finite_is_refused():
    class Broken(Ridge):
        def predict(self, x):
            return np.full(len(x), np.nan)

    with pytest.raises(InputError, match="Broken predicts values that are not finite"):
        it.witness_test(simulate.papers_level_design(50, rng=0).sample, Broken(), draws=19, rng=0)
    with pytest.raises(InputError, match="LogisticRegression is no regressor"):
        it.witness_test(
            simulate.papers_level_design(50, rng=0).sample, LogisticRegression(), draws=19, rng=0
        )
    with pytest.raises(InputError, match="must be a scikit-learn regressor such as"):
        it.witness_test(simulate.papers_level_design(50, rng=0).sample, Ridge, draws=19, rng=0)


def test_clusters_are_never_torn_between_folds():
    s = simulate.repeated_units(40, rng=0).sample
    unit = np.repeat(np.arange(40), 5)
    r = it.witness_test(Sample(s.y, s.p, s.columns[0].values, cluster=unit), RIDGE, draws=49, rng=0)
    assert all(part.tested_on % 5 == 0 for part in r.parts)
    assert not r.null.exact


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(folds=5), r"folds must be Forward\(5\) or Across\(5\), not 5"),
        (
            dict(regressor="ridge"),
            r"regressor must be a scikit-learn regressor such as Ridge\(\), not 'ridge'",
        ),
        (dict(folds=Forward(30)), r"30 folds need at least 60 rows; this sample has 50"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        it.witness_test(simulate.papers_level_design(50, rng=0).sample, **arguments)
    with pytest.raises(InputError, match="at least 2, not 1"):
        Forward(1)
