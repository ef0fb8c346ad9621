"""Functions of covariates: what they are, what they are called, and that labels have no part."""

import numpy as np
import pytest

from itrust import Sample
from itrust.data import parts_of
from itrust.terms import (
    Absent,
    Curve,
    Described,
    Features,
    Inside,
    Is,
    Power,
    Reading,
    Slope,
    UnitScale,
    Wave,
    product_facts,
)


def mixed(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "age": rng.integers(18, 90, n),
        "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n)),
        "race": rng.choice(list("abc"), n, p=[0.6, 0.3, 0.1]),
        "urban": rng.random(n) < 0.5,
    }
    p = rng.uniform(0.05, 0.95, n)
    return Sample(rng.random(n) < p, p, x, missing="level")


def test_a_rank_scale_puts_ties_in_their_middle():
    scale = UnitScale.of_ranks(np.array([1.0, 1.0, 2.0, 5.0]))
    np.testing.assert_allclose(scale(np.array([1.0, 2.0, 5.0, 99.0])), [0.25, 0.625, 0.875, 0.875])


def test_terms_are_what_they_say():
    s = mixed()
    age = s.column("age")
    reading = Reading(age, UnitScale.of_ranks(age.values))
    u = reading.height
    np.testing.assert_allclose(Wave("age", 7).of(reading), np.sqrt(2) * np.cos(7 * np.pi * u))
    z = Curve("age", 1).of(reading)
    assert np.corrcoef(z, age.values)[0, 1] > 0.97
    np.testing.assert_allclose(Curve("age", 3).of(reading), z**3 - 3 * z)
    parts = [Inside("age", part.low, part.high).of(reading) for part in parts_of(age, 10)]
    np.testing.assert_array_equal(sum(parts), 1)
    assert all(25 <= part.sum() <= 60 for part in parts)
    race = Reading(s.column("race"), None)
    assert Is("race", "b").of(race).sum() == (s.column("race").values == 1).sum()
    assert Is("race", "unknown").of(race).sum() == 0


@pytest.mark.parametrize(
    ("product", "name", "shape"),
    [
        ((), "overall level", "level"),
        ((Curve("age", 1),), "age: trend", "trend"),
        ((Power("age", 3),), "age: cubic", "cubic"),
        ((Slope(),), "prediction: slope", "trend"),
        ((Absent("age"),), "age missing", "group"),
        ((Is("race", "b"), Is("urban", 0.0)), "race = b, urban = 0", "group"),
        ((Is("race", "b"), Curve("age", 1)), "age: trend where race = b", "trend"),
        ((Curve("age", 1), Curve("income", 1)), "age x income: trend", "product"),
    ],
)
def test_products_say_what_they_are(product, name, shape):
    facts = product_facts(product)
    assert (facts["name"], facts["shape"].value) == (name, shape)
    assert facts["covariates"] == tuple(
        column for column in ("race", "urban", "age", "income") if column in name
    )


def test_levels_know_their_rows():
    race = Described.of(mixed().column("race"), most=2)
    assert [level.name for level in race.levels] == ["race = a", "race = b"]
    assert race.distinct == 3
    assert str(product_facts(race.levels[:1])["where"]) == "race = a"
    assert Described.of(mixed().column("race"), 10, least=150).levels == race.levels[:1]


def test_products_are_those_of_their_terms_and_centred_within_their_group():
    s = mixed()
    products = [(Curve("age", 1),), (Is("race", "b"),), (Is("race", "b"), Curve("age", 1))]
    features = Features.ranked(products, s.points)
    line, group, both = features.matrix(s.points)
    np.testing.assert_array_equal(both, line * group)
    variances = s.p * (1 - s.p)
    centred = features.centred(s.points, variances)
    line, group, both = centred.matrix(s.points)
    np.testing.assert_allclose(
        [variances @ line, variances @ group, variances @ both], 0, atol=1e-9
    )
    np.testing.assert_array_equal(centred.take([2, 0]).matrix(s.points), [both, line])


def test_many_rows_are_read_as_few_are():
    s = mixed(40_000)
    features = Features.ranked([(Curve("age", 1), Wave("income", 2)), (Curve(None, 2),)], s.points)
    some = np.arange(20_000, 20_100)
    np.testing.assert_array_equal(
        features.matrix(s.points)[:, some], features.matrix(s.points.take(some))
    )
