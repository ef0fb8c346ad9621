"""Smallest detectable bias and sample size, judged by simulation."""

import json
import math

import numpy as np
import pytest

import itrust as it
from itrust import InputError, Sample, simulate
from itrust.calibration import detectable_by, prepared_test
from itrust.calibration.power import Sensitivity
from itrust.data import Between, Everywhere, Level, Missing, cut_of


def regions_of(points):
    """Everywhere, and the parts of every covariate."""
    return [Everywhere(), *(part for column in points.columns for part in cut_of(column))]


@pytest.fixture(scope="module")
def town():
    return simulate.survey(1_200, rng=0).sample


@pytest.fixture(scope="module")
def found(town):
    return it.detectable(town, draws=199, simulations=200, rng=0)


def power_by_redoing_everything(sample, rows, shift, runs=12, draws=59):
    """Share of samples with shifted truth that `klce_test` rejects."""
    truth = np.where(rows, np.clip(sample.p + shift, 0, 1), sample.p)
    x = {
        c.name: c.values if not c.is_category else np.array(c.levels)[c.values]
        for c in sample.columns
    }
    hits = 0
    for run in range(runs):
        y = np.random.default_rng(run).random(sample.n) < truth
        hits += it.klce_test(Sample(y, sample.p, x), draws=draws, rng=run).pvalue <= 0.05
    return hits / runs


@pytest.mark.parametrize("where", ["everywhere", "region = south"])
@pytest.mark.slow
def test_power_is_at_least_what_was_promised_and_not_much_more(town, found, where):
    region = next(r for r in regions_of(town.points) if str(r) == where)
    power = power_by_redoing_everything(town, region.rows(town.points), found.region(where).up)
    assert 0.55 < power <= 1.0
    half = power_by_redoing_everything(town, region.rows(town.points), found.region(where).up / 2)
    assert half < 0.75


def test_the_headline_is_checked_by_simulation(town):
    found = it.detectable(town.only("region"), draws=199, simulations=200, rng=0)
    assert found.simulations == 200
    assert found.simulated >= 0.75


def test_rare_events_keep_most_of_the_promised_power():
    rng = np.random.default_rng(0)
    x = {"x": rng.normal(size=400), "g": rng.choice(list("abcde"), 400)}
    rare = Sample(np.zeros(400), np.full(400, 0.03), x)
    setting = Sensitivity.of(rare, draws=199, rng=0)
    for region in setting.regions()[::4]:
        up, _ = setting.smallest_both(region)
        assert setting.simulated_power(region.where, up, 200) > 0.62, region.where


def test_all_regions_are_shown_and_the_worst_makes_the_headline(found):
    names = [str(region.where) for region in found.regions]
    assert names[0] == "everywhere"
    assert {"region = north", "region = south", "region = west"} < set(names)
    assert sum(name.startswith("age ") for name in names) == 10
    assert found.worst.shift == max(region.shift for region in (*found.regions, *found.pairs))
    assert found.everywhere.shift < found.region("region = south").shift < found.worst.shift
    shifts = [pair.shift for pair in found.worst_pairs]
    assert shifts == sorted(shifts, reverse=True)
    assert found.region(str(found.pairs[3].where)) is found.pairs[3]
    assert "worst" in str(found)
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["worst"]["where"] == str(found.worst.where)
    with pytest.raises(InputError, match=r"no region 'region = sooth'; did you mean"):
        found.region("region = sooth")


def test_labels_do_not_matter(town, found):
    x = {
        c.name: c.values if not c.is_category else np.array(c.levels)[c.values]
        for c in town.columns
    }
    other = it.detectable(Sample(1 - town.y, town.p, x), draws=199, simulations=0, rng=0)
    assert [r.shift for r in other.regions] == [r.shift for r in found.regions]


def test_rows_without_labels_tell_the_same(town):
    bare = town.only("region")
    levels = np.array(bare.column("region").levels)[bare.column("region").values.astype(int)]
    population = it.Population(bare.p, {"region": levels})
    settings = {"draws": 99, "rng": 0}
    labelled, planned = (it.sample_size(rows, 0.05, **settings) for rows in (bare, population))
    assert labelled.to_dict() == planned.to_dict()
    seen = it.detectable(population, simulations=0, **settings)
    assert seen.to_dict() == it.detectable(bare, simulations=0, **settings).to_dict()


def test_one_direction_has_a_closed_form():
    """Overall level alone, p = .5: shift = (1.96 + .84) times the sd of the mean."""
    n = 1_000
    s = Sample([0, 1] * (n // 2), np.full(n, 0.5))
    only = it.default_dictionary(s).only(families=["overall"])
    d = it.detectable(s, dictionary=only, draws=1999, simulations=0, rng=0)
    expected = (1.96 + 0.8416) * 0.5 / math.sqrt(n)
    assert d.everywhere.up == pytest.approx(expected, rel=0.06)
    size = it.sample_size(s, expected, dictionary=only, where="everywhere", draws=1999, rng=0)
    assert size.rows == pytest.approx(n, rel=0.12)


@pytest.mark.slow
def test_rows_needed_make_the_bias_detectable(town):
    wanted = 0.06
    size = it.sample_size(town, wanted, where="region = south", draws=199, rng=0)
    assert str(size.where) == "region = south"
    assert size.rows > town.n
    larger = simulate.survey(size.rows, rng=1).sample
    there = it.detectable(larger, draws=199, simulations=0, rng=0).region("region = south")
    assert there.shift == pytest.approx(wanted, rel=0.2)
    assert "labelled rows" in str(size)
    assert it.sample_size(town, wanted, draws=199, rng=0).rows > size.rows


def test_small_groups_are_shown_but_do_not_make_the_headline():
    rng = np.random.default_rng(0)
    n = 1_000
    group = np.where(np.arange(n) < 6, "tiny", rng.choice(["a", "b"], n))
    s = Sample(rng.random(n) < 0.5, rng.uniform(0.2, 0.8, n), {"group": group})
    d = it.detectable(s, draws=99, simulations=0, rng=0)
    assert d.region("group = tiny").shift > d.worst.shift
    assert "few rows" in str(d)


def test_no_room_is_no_direction():
    rng = np.random.default_rng(0)
    s = Sample(rng.random(800) < 0.02, np.full(800, 0.02), rng.normal(size=800))
    d = it.detectable(s, draws=99, simulations=0, rng=0)
    assert math.isnan(d.regions[1].down)
    assert d.everywhere.down < 0.02
    assert d.everywhere.down < d.everywhere.up < 0.1


def test_a_way_that_ends_at_zero_is_no_room_instead_of_over_one_half():
    rng = np.random.default_rng(0)
    s = Sample(rng.random(300) < 0.06, np.full(300, 0.06), rng.normal(size=300))
    d = it.detectable(s, draws=99, simulations=0, rng=0)
    assert all(math.isnan(region.down) for region in d.regions[1:])
    assert math.isfinite(d.worst.shift)
    assert d.to_dict()["worst"]["down"] == "no room"
    assert "NaN" not in json.dumps(d.to_dict())


def test_probabilities_at_both_ends_take_the_way_with_more_room():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(1000) < 0.5, 0.01, 0.99)
    d = it.detectable(
        Sample(rng.random(1000) < p, p, rng.normal(size=1000)), draws=99, simulations=0, rng=0
    )
    assert 0 < d.everywhere.shift < 0.2


def test_tenths_of_dates_and_long_numbers_have_names_of_their_own():
    days = np.datetime64("2023-01-01") + np.arange(40).astype("timedelta64[D]")
    ids = 1_700_000_000 + np.arange(40)
    s = Sample([0, 1] * 20, np.full(40, 0.5), {"when": days, "id": ids})
    names = [str(region) for region in regions_of(s.points)]
    assert len(set(names)) == len(names) == 21
    assert names[1] == "when 2023-01-01 to 2023-01-04"
    assert "id 1700000000 to 1700000003" in names
    inside = np.array([region.rows(s.points) for region in regions_of(s.points)[1:11]])
    np.testing.assert_array_equal(inside.sum(axis=0), 1)


def test_dictionaries_of_ones_own_are_taken(town):
    d = it.detectable(
        town, dictionary={"age": it.kernels.RBF(10.0).on("age")}, draws=99, simulations=0, rng=0
    )
    assert d.everywhere.shift > 0
    with pytest.raises(InputError, match="a Dictionary or a mapping"):
        it.detectable(town, dictionary=3)
    with pytest.raises(InputError, match=r"simulations must be a whole number .* 0, not -1"):
        it.detectable(town, simulations=-1)


def test_regions_mark_their_rows():
    s = Sample(
        [0, 1, 1, 0],
        [0.2, 0.4, 0.6, 0.8],
        {"a": [1.0, np.nan, 3.0, 4.0], "b": ["u", "v", "u", "u"]},
        missing="level",
    )
    assert Level("b", "v").rows(s.points).tolist() == [False, True, False, False]
    assert Missing("a").rows(s.points).tolist() == [False, True, False, False]
    assert Between("a", 2.0, 4.5, "").rows(s.points).tolist() == [False, False, True, True]
    assert "a missing" in [str(r) for r in regions_of(s.points)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(alpha=1.2), r"alpha must lie between 0 and 1, not 1.2"),
        (dict(power=0), r"power must lie between 0 and 1, not 0"),
        (dict(alpha=0.001, draws=99), r"alpha 0.001 needs more than 99 draws"),
    ],
)
def test_wrong_arguments_are_one_sentence(town, arguments, message):
    with pytest.raises(InputError, match=message):
        it.detectable(town, **arguments)


def test_wrong_sample_sizes_are_one_sentence(town):
    with pytest.raises(InputError, match=r"bias must lie between 0 and 1, not 2"):
        it.sample_size(town, 2)
    with pytest.raises(InputError, match=r"there is no region 'nowhere'"):
        it.sample_size(town, where="nowhere", draws=19)
    certain = Sample([0, 1, 1], [0.0, 1.0, 1.0])
    with pytest.raises(InputError, match="every probability is 0 or 1"):
        it.detectable(certain, draws=19)


def test_a_test_that_was_made_serves_again(town, monkeypatch):
    made = prepared_test(town, draws=199, rng=0)
    own = it.detectable(town, draws=199, simulations=0, rng=0)

    def refuse(*_, **__):
        raise AssertionError("drawn again")

    monkeypatch.setattr("itrust.engines.Engine.run", refuse)
    found = detectable_by(made)
    assert found.to_dict() == own.to_dict()


def test_a_test_with_one_kernel_is_refused(town):
    made = prepared_test(town, it.kernels.LocalKernel(), draws=19, rng=0)
    with pytest.raises(InputError, match=r"^test must be made over a dictionary, not one kernel$"):
        detectable_by(made)


def test_with_clusters_the_draws_are_those_of_independent_rows(town):
    x = {"age": town.column("age").values}
    torn = Sample(town.y, town.p, x, cluster=np.arange(town.n) // 3)
    test = prepared_test(torn, draws=99, rng=0)
    plain = it.detectable(Sample(town.y, town.p, x), draws=99, simulations=0, rng=0)
    stated = detectable_by(test, icc=0.0)
    assert [r.shift for r in stated.regions] == [r.shift for r in plain.regions]
    found = detectable_by(test)
    for region, own in zip(found.regions, plain.regions, strict=True):
        # Checks that see a region together are less alike with clusters.
        assert region.shift >= 0.98 * own.shift


def test_results_are_tables(town, found):
    rows = found.to_arrow()
    assert rows.num_rows == len(found.regions) + len(found.pairs)
    assert rows["where"][0].as_py() == "everywhere"
    size = it.sample_size(town, 0.1, draws=99, rng=0)
    assert size.to_dict()["rows"] == size.rows == max(size.to_arrow()["rows"].to_pylist()) // 1 + 1
    assert "labelled rows" in size._repr_html_()
    for shown in (str(found), found._repr_html_()):
        assert f"at least 12 rows, the 10 of {len(found.pairs)} where the least is seen" in shown
        assert str(found.worst_pairs[9].where) in shown
        assert str(found.worst_pairs[10].where) not in shown
    assert "too high by" in found._repr_html_()
