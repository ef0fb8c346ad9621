"""Functions of (p, x): what they are, and that levels and kinds of two sides meet."""

import numpy as np
import pytest

import itrust as it
from itrust.balance import balance_features, is_plain, pooled, shared_points
from itrust.terms import Absent, product_facts


def population(n=200, seed=0, **more):
    rng = np.random.default_rng(seed)
    x = {"age": rng.normal(size=n), "sex": rng.choice(["f", "m"], n), **more}
    return it.Population(rng.random(n), x)


def test_features_of_a_number_a_category_and_the_prediction():
    features = balance_features(population().points)
    powers = ("trend", "quadratic", "cubic")
    names = [f"{of}: {power}" for of in ("prediction", "age") for power in powers]
    names += ["sex = f", "sex = m"]
    assert [product_facts(own)["name"] for own in features.products[:8]] == names
    pairs = {tuple(term.column for term in own) for own in features.products[8:]}
    assert pairs == {(None, "age"), (None, "sex"), ("age", "sex")}


def test_trends_have_mean_0_and_variance_1_and_products_are_products():
    rows = population(2_000)
    features = balance_features(rows.points)
    matrix = features.matrix(rows.points)
    plain = [k for k, own in enumerate(features.products) if is_plain(own)]
    assert np.abs(matrix[plain[:2]].mean(axis=1)).max() < 0.05
    assert np.abs(matrix[plain[:2]].std(axis=1) - 1).max() < 0.3
    a, b = (features.products.index((term,)) for term in features.products[8])
    assert (matrix[8] == matrix[a] * matrix[b]).all()


def test_missing_numbers_are_a_feature_and_count_nothing_elsewhere():
    age = np.where(np.arange(200) < 20, np.nan, np.arange(200.0))
    rows = it.Population(np.full(200, 0.5), {"age": age}, missing="level")
    features = balance_features(rows.points)
    place = features.products.index((Absent("age"),))
    matrix = features.matrix(rows.points)
    assert (matrix[place] == np.isnan(age)).all()
    assert (matrix[0, :20] == 0).all()


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
