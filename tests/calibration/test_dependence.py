"""Rows whose labels go together are seen; those of a miscalibrated model are not taken for them."""

import numpy as np
import pytest
from scipy.stats import norm

import itrust as it
from hard.dependent_rows import DEPENDENT, INDEPENDENT, as_sample, candidacies, drawn
from itrust.calibration.assumptions import (
    Dependence,
    ResidualRows,
    UnitSums,
    assumption_notes,
    dependence,
    dependence_in_words,
    neighbour_correlation,
)


def looked_at(sample):
    return ResidualRows(sample)


def found(rows):
    return dependence(looked_at(as_sample(rows)))


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependence_is_seen_and_named_by_its_column(name):
    design, columns = DEPENDENT[name]
    seen = [found(design(np.random.default_rng(run))) for run in range(8)]
    assert sum(one is not None and one.names == columns for one in seen) >= 7


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_rows_are_not_suspected(name):
    design = INDEPENDENT[name]
    seen = [found(design(np.random.default_rng(run))) for run in range(6)]
    assert sum(one is not None for one in seen) <= 1


def schools(rng, count=60, pupils=30, correlation=0.3):
    """Labels of a school go together by a normal variable."""
    school, latent = np.repeat(np.arange(count), pupils), np.sin(np.pi * correlation / 2)
    shared, own = rng.normal(size=count)[school], rng.normal(size=count * pupils)
    p = rng.uniform(0.2, 0.8, school.size)
    y = norm.cdf(np.sqrt(latent) * shared + np.sqrt(1 - latent) * own) < p
    return {"y": y.astype(int), "p": p, "x": rng.normal(size=p.size), "school": school}


def shops(rng, count=60, n=2_400):
    """Every shop has a bias of its own, and rows are independent."""
    p, shop = rng.uniform(0.3, 0.7, n), rng.integers(count, size=n)
    y = drawn(rng, p + rng.normal(0, 0.15, count)[shop])
    return {"y": y, "p": p, "x": rng.normal(size=n), "shop": shop}


def test_units_of_many_rows_are_seen_and_groups_with_a_bias_are_not_taken_for_them():
    seen = [found(schools(np.random.default_rng(run))) for run in range(10)]
    assert sum(one is not None and one.names == ("school",) for one in seen) >= 9
    taken = [found(shops(np.random.default_rng(run))) for run in range(20)]
    assert sum(one is not None for one in taken) <= 1


def test_two_columns_name_a_unit_where_neither_does_alone():
    rng = np.random.default_rng(0)
    year, quarter = np.repeat(np.arange(25), 80), np.tile(np.repeat(np.arange(4), 20), 25)
    shared = drawn(rng, np.full(100, 0.5))[year * 4 + quarter]
    p = rng.uniform(0.35, 0.65, 2000)
    seen = found({"y": shared, "p": p, "year": year, "quarter": quarter})
    assert seen.names == ("year", "quarter")


def test_rows_in_arrays_are_seen_by_their_likeness():
    rows = candidacies(np.random.default_rng(0))
    sample = it.Sample(rows["y"], rows["p"], rows["poll"])
    assert dependence(looked_at(sample)) is not None


def test_products_of_a_unit_equal_the_double_loop():
    rng = np.random.default_rng(0)
    codes, residuals = rng.integers(5, size=40), rng.normal(size=40)
    sums = UnitSums(residuals, codes, np.ones(40))
    for unit, product in enumerate(sums.products):
        own = residuals[codes == unit]
        pairs = sum(a * b for i, a in enumerate(own) for j, b in enumerate(own) if i != j)
        assert product == pytest.approx(pairs / (own.size - 1))


def test_twins_have_correlation_one():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.uniform(0.3, 0.7, 200), 2)
    y = np.repeat(drawn(rng, p[::2]), 2)
    seen = found({"y": y, "p": p, "x": rng.normal(size=400), "pair": np.arange(400) // 2})
    assert seen.names == ("pair",)
    assert seen.correlation == pytest.approx(1, abs=0.1)


def test_pairs_of_neighbours_are_seen_and_their_shuffle_is_not():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, 600)
    y = np.where(np.arange(600) % 2, np.roll(drawn(rng, p), 1), drawn(rng, p))
    y[1::2] = y[::2]
    order = rng.permutation(600)
    assert neighbour_correlation(looked_at(it.Sample(y, p))) > 0.3
    assert neighbour_correlation(looked_at(it.Sample(y[order], p[order]))) is None


def test_many_rows_cost_no_more_than_some():
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(3_000), 10)
    p = rng.uniform(0.3, 0.7, unit.size)
    y = drawn(rng, rng.uniform(0, 1, 3_000)[unit])
    sample = it.Sample.from_frame({"y": y, "p": p, "unit": unit}, label="y", prob="p")
    assert sample.units[0].rows.size <= 20_000
    assert dependence(looked_at(sample)).names == ("unit",)


def test_a_named_cluster_ends_the_search():
    rows = candidacies(np.random.default_rng(0))
    named = it.Sample.from_frame(rows, label="y", prob="p", on="poll", cluster="candidate")
    assert assumption_notes(named) == ()


def test_the_same_labels_are_warned_about_once_and_the_column_is_named():
    sample = as_sample(candidacies(np.random.default_rng(0), 30, 20))
    with pytest.warns(it.AssumptionWarning) as told:
        notes = [assumption_notes(some) for some in (sample, sample, sample.only())]
    assert len(told) == 1
    assert "cluster='candidate'" in str(told[0].message)
    assert all("'candidate'" in note for (note,) in notes)


def test_two_columns_are_named_together():
    found = Dependence("column", 0.3, 10, 5, ("state", "year"))
    assert "name both with cluster=['state', 'year']" in dependence_in_words(found)
