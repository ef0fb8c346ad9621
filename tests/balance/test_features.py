"""Functions of (p, x): what they are, and that levels and kinds of two sides meet."""

import numpy as np
import pytest

import itrust as it
from itrust.balance import FeatureKind, Features
from itrust.balance.features import pooled, shared_points


def population(n=200, seed=0, **more):
    rng = np.random.default_rng(seed)
    x = {"age": rng.normal(size=n), "sex": rng.choice(["f", "m"], n), **more}
    return it.Population(rng.random(n), x)


def test_features_of_a_number_a_category_and_the_prediction():
    features = Features.of(population().points)
    kinds = [(one.names[0], one.kind.value) for one in features.singles]
    powers = ("trend", "quadratic", "cubic")
    assert kinds == [
        *(("p", kind) for kind in powers),
        *(("age", kind) for kind in powers),
        *[("sex", "level")] * 2,
    ]
    pairs = {one.names for one in features.all if one.is_product}
    assert pairs == {("p", "age"), ("p", "sex"), ("age", "sex")}


def test_trends_have_mean_0_and_variance_1_and_products_are_products():
    rows = population(2_000)
    features = Features.of(rows.points)
    matrix = features.matrix(rows.points)
    trends = features.plain()
    assert np.abs(matrix[:, trends[:2]].mean(axis=0)).max() < 0.05
    assert np.abs(matrix[:, trends[:2]].std(axis=0) - 1).max() < 0.3
    a, b = features.products[0]
    assert (matrix[:, len(features.singles)] == matrix[:, a] * matrix[:, b]).all()


def test_missing_numbers_are_a_feature_and_count_nothing_elsewhere():
    age = np.where(np.arange(200) < 20, np.nan, np.arange(200.0))
    rows = it.Population(np.full(200, 0.5), {"age": age}, missing="level")
    features = Features.of(rows.points)
    (place,) = (k for k, one in enumerate(features.singles) if one.kind is FeatureKind.MISSING)
    matrix = features.matrix(rows.points)
    assert (matrix[:, place] == np.isnan(age)).all()
    assert (matrix[:20, 0] == 0).all()


def test_levels_of_both_sides_are_matched_by_name():
    left = it.Population([0.1, 0.2, 0.3], {"r": ["a", "b", "b"]}).points
    right = it.Population([0.1, 0.2], {"r": ["c", "b"]}).points
    ours, theirs = shared_points(left, right)
    column = pooled(ours, theirs).columns[0]
    assert [column.levels[k] for k in column.values] == ["a", "b", "b", "c", "b"]


def test_a_number_here_and_a_category_there_is_refused():
    left = it.Population([0.1, 0.2], {"r": ["a", "b"]}).points
    right = it.Population([0.1, 0.2], {"r": [1.5, 2.5]}).points
    with pytest.raises(it.InputError, match="'r' is a category in the labelled rows and a number"):
        shared_points(left, right)
