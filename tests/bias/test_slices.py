"""Slices: regions on all rows, the true ones are told, and noise is not confirmed."""

from dataclasses import astuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust._core import InputError
from itrust.bias import Redraws, slices_of
from oracles import plausible
from people import people


def planted_in(rng, n: int, inside, bias: float, **settings) -> tuple[it.Sample, np.ndarray]:
    """Numbers, categories and missing values; a bias where `inside(x)`, and the truth."""
    x = people(rng, n)
    p = np.clip(0.4 + 0.08 * rng.normal(size=n), 0.1, 0.8)
    truth = p + bias * inside(x)
    return it.Sample(rng.random(n) < truth, p, x, missing="level", **settings), truth


PLANTED = {
    "age < 30 and charge = F": lambda x: (x["age"] < 30) & (x["charge"] == "F"),
    "race = b and low income": lambda x: (x["race"] == "b") & (x["income"] < 17_700),
    "lab missing": lambda x: np.isnan(x["lab"]),
}
CORNER = PLANTED["age < 30 and charge = F"]


def nowhere(x):
    return x["age"] < 0


@pytest.mark.parametrize("name", PLANTED)
def test_planted_slices_are_told_and_intervals_hold_the_truth(name):
    found = missed = 0
    for run in range(5):
        sample, truth = planted_in(np.random.default_rng(run), 6_000, PLANTED[name], 0.15)
        planted, seen, wrong = truth > sample.p, False, False
        for part in it.bias_slices(sample, draws=99, rng=run).confirmed:
            rows = part.where.rows(sample.points)
            seen |= (rows & planted).sum() > 0.5 * (rows | planted).sum() and part.bias > 0
            wrong |= not part.lower <= np.mean((truth - sample.p)[rows]) <= part.upper
        found, missed = found + seen, missed + wrong
    assert found >= 4
    assert missed <= 1


def test_a_right_model_has_a_confirmed_slice_as_often_as_allowed():
    """At .2, where few runs tell more; slices that level and slope explain are not told."""
    runs, wrong = 60, 0
    for run in range(runs):
        sample, _ = planted_in(np.random.default_rng([1, run]), 400, nowhere, 0.0)
        wrong += bool(it.bias_slices(sample, alpha=0.2, draws=19, rng=run).confirmed)
    assert wrong / runs <= 0.2 or plausible(wrong, runs, 0.2, doubt=0.02)
    assert wrong > 0


def test_rows_of_clusters_count_once():
    """Every row four times: beside clusters as often as allowed, without them nearly always."""
    runs, wrong, blind = 30, 0, 0
    for run in range(runs):
        once, _ = planted_in(np.random.default_rng([2, run]), 200, nowhere, 0.0)
        sample = once.take(np.repeat(np.arange(200), 4))
        kept = it.Sample(
            sample.y,
            sample.p,
            {c.name: c.values for c in sample.columns if c.name != "lab"},
            cluster=np.repeat(np.arange(200), 4),
        )
        wrong += bool(it.bias_slices(kept, alpha=0.2, draws=19, rng=run).confirmed)
        if run < 5:
            with pytest.warns(it.AssumptionWarning, match="go together"):
                blind += bool(it.bias_slices(sample, alpha=0.2, draws=19, rng=run).confirmed)
    assert wrong / runs <= 0.2 or plausible(wrong, runs, 0.2, doubt=0.02)
    assert blind >= 4


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_of_slices_are_sums_over_their_rows(weighted):
    rng = np.random.default_rng(0)
    w = rng.exponential(size=6_000) if weighted else np.ones(6_000)
    sample, _ = planted_in(rng, 6_000, CORNER, 0.25, weights=w if weighted else None)
    table = it.bias_slices(sample, draws=99, rng=0)
    assert table.confirmed
    for part in table:
        rows = part.where.rows(sample.points)
        assert part.rows == rows.sum()
        assert part.share == pytest.approx(w[rows].sum() / w.sum())
        assert part.predicted == pytest.approx(np.average(sample.p[rows], weights=w[rows]))
        assert part.observed == pytest.approx(np.average(sample.y[rows], weights=w[rows]))
        assert part.impact == pytest.approx(part.share * part.bias)
        assert abs(part.at_least) <= abs(part.estimate) <= abs(part.bias)


def test_the_words_of_a_large_slice():
    sample, _ = planted_in(np.random.default_rng(0), 6_000, CORNER, 0.25)
    table = it.bias_slices(sample, draws=99, rng=0)
    first = next(part for part in table.confirmed if "and charge = F" in part.rule)
    assert first.rule.startswith("age ")
    assert str(first) == f"{first.rule}: {first.bias:+.3f}, {first.rows:,} rows"
    assert "positive: the model underestimates" in str(table)
    assert table.to_arrow().num_rows == len(table)
    assert table.to_dict()["confirmed"] == len(table.confirmed)
    assert f"all {table.regions:,} regions at once" in " ".join(str(table).split())


@pytest.mark.parametrize("seed", [0, 4])
def test_no_seed_hides_what_was_planted(seed):
    sample, _ = planted_in(np.random.default_rng(seed), 6_000, CORNER, 0.15)
    told = [it.bias_slices(sample, draws=499, rng=draws).order for draws in range(5)]
    assert all(str(order[0]).startswith("age") for order in told)
    assert all(any("charge = F" in str(where) for where in order) for order in told)


def test_files_tell_what_memory_tells(tmp_path):
    sample, _ = planted_in(np.random.default_rng(0), 3_000, CORNER, 0.3)
    x = {c.name: c.values for c in sample.columns if c.name in ("age", "income")}
    x["charge"] = np.array(sample.column("charge").levels)[sample.column("charge").values]
    pq.write_table(pa.table({"y": sample.y, "p": sample.p, **x}), tmp_path / "a.parquet", 700)
    files = it.scan(tmp_path, label="y", prob="p", on=list(x))
    mine = it.bias_slices(it.Sample(sample.y, sample.p, x), draws=99, rng=0)
    theirs = it.bias_slices(files, draws=99, rng=0)
    assert mine.confirmed
    assert mine.order == theirs.order
    for one, other in zip(mine, theirs, strict=True):
        assert astuple(one)[1:] == pytest.approx(astuple(other)[1:])


def test_a_slope_is_told_by_the_prediction_and_a_corner_beside_it():
    rng, more = np.random.default_rng(0), 0
    for run in range(10):
        z, x = rng.normal(size=6_000), rng.normal(size=6_000)
        p, truth = (1 / (1 + np.exp(-scale * z)) for scale in (1.6, 1.0))
        first, *others = it.bias_slices(
            it.Sample(rng.random(6_000) < truth, p, {"x": x}), draws=39, rng=run
        )
        assert first.names == ("prediction",)
        more += bool(others)
    assert plausible(more, 10, 0.2, doubt=0.02)  # that chance adds something is allowed so often
    worse = truth + (x > 1.2) * 0.25 * (1 - truth)
    found = it.bias_slices(it.Sample(rng.random(6_000) < worse, p, {"x": x}), draws=99, rng=0)
    assert [where.names for where in found.order[:2]] == [{"prediction"}, {"x"}]


def test_a_group_that_says_the_same_is_told_first_and_stands_for_its_regions():
    rng = np.random.default_rng(0)
    n = 4_000
    x = {"a": rng.normal(size=n), "g": rng.choice(list("uv"), n, p=[0.8, 0.2])}
    p = rng.uniform(0.3, 0.6, n)
    sample = it.Sample(rng.random(n) < p + 0.2 * (x["g"] == "v"), p, x)
    redraws = Redraws.of(sample, alpha=0.05, draws=99, rng=0, engine="auto")
    groups = [own for own in it.bias_groups(sample, "g", draws=99, rng=0) if own.at_least]
    assert [str(where) for where in slices_of(redraws, groups=groups).order] == ["g = v"]


def test_missing_values_dates_and_rare_levels_have_regions():
    rng = np.random.default_rng(0)
    n = 3_000
    x = {
        "town": rng.choice([f"t{k}" for k in range(80)], n),
        "day": np.datetime64("2026-01-01") + rng.integers(0, 300, n),
        "lab": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
    }
    day, p = x["day"] >= np.datetime64("2026-07-01"), np.full(n, 0.4)
    sample = it.Sample(rng.random(n) < p + 0.2 * day, p, x, missing="level")
    rules = [part.rule for part in it.bias_slices(sample, draws=99, rng=0).confirmed]
    assert any(rule.startswith("day >= 2026-0") for rule in rules)


def test_a_sample_without_covariates_is_searched_along_its_prediction():
    p = np.random.default_rng(0).uniform(0.1, 0.9, 3_000)
    y = np.random.default_rng(1).random(3_000) < np.where((p > 0.4) & (p < 0.6), p + 0.2, p)
    confirmed = it.bias_slices(it.Sample(y, p), draws=99, rng=0).confirmed
    assert confirmed
    assert all(part.names == ("prediction",) for part in confirmed)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_slices": 1.5}, "max_slices must be a whole number"),
        ({"max_slices": 0}, "max_slices must be a whole number of at least 1"),
        ({"alpha": 2}, "alpha must lie between"),
        *(({"alpha": alpha}, f"not {alpha!r}") for alpha in ("x", None, 0.8, True)),
    ],
)
def test_wrong_settings_get_one_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        it.bias_slices(it.simulate.survey(60, rng=0).sample, **settings)


def test_a_bias_in_rows_of_weight_0_is_no_bias():
    sample, truth = planted_in(np.random.default_rng(0), 3_000, CORNER, 0.4)
    x = {c.name: c.values for c in sample.columns if c.name != "lab"}
    silent = it.Sample(sample.y, sample.p, x, weights=np.where(truth > sample.p, 0.0, 1.0))
    assert it.bias_slices(it.Sample(sample.y, sample.p, x), draws=99, rng=0).confirmed
    assert not it.bias_slices(silent, draws=99, rng=0).confirmed


@pytest.mark.parametrize(("p", "rate"), [(0.0, 0.6), (1.0, 0.4)])
def test_slices_of_impossible_labels_are_confirmed_in_either_direction(p, rate):
    """The fifth below x = .2 has them, where half of the rows are called impossible."""
    rng = np.random.default_rng(0)
    half, x = rng.random(2_000) < 0.5, rng.random(2_000)
    y = rng.random(2_000) < np.where(half, np.where(x < 0.2, rate, p), 0.5)
    found = it.bias_slices(it.Sample(y, np.where(half, p, 0.5), {"x": x}), draws=99, rng=0)
    assert any(part.names == ("x",) and abs(part.bias) > 0.2 for part in found.confirmed)
    assert found[0].where.rows(it.Population([0.5] * 3, {"x": [0.1, 0.3, 0.9]}).points).sum() == 1


def test_times_of_one_day_are_told_apart():
    rng = np.random.default_rng(0)
    when = np.datetime64("2026-01-01T08:00:00") + 60 * rng.integers(0, 600, 400)
    sample = it.Sample(rng.random(400) < 0.5, np.full(400, 0.5), {"t": when})
    names = [group.name for group in it.bias_groups(sample, "t", draws=19, rng=0)]
    assert len(set(names)) == 4


def test_a_covariate_that_is_nearly_always_missing_is_no_trouble():
    x = {"a": [1.0, *[np.nan] * 199], "b": np.arange(200.0)}
    half = np.arange(200) < 100
    sample = it.Sample(np.where(half, np.arange(200) % 2, 1), [0.5] * 200, x, missing="level")
    table = it.bias_slices(sample, draws=39, rng=0)
    assert table.confirmed
    assert all(np.isfinite([part.bias, part.lower, part.upper]).all() for part in table)
    assert not [part.rule for part in table if "nan" in part.rule]


def test_a_covariate_called_prediction_does_not_hide_the_prediction():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 3_000)
    y = rng.random(3_000) < np.where((p > 0.4) & (p < 0.6), p + 0.3, p)
    sample = it.Sample(y, p, {"prediction": rng.normal(size=3_000)})
    rules = [part.rule for part in it.bias_slices(sample, draws=99, rng=0).confirmed]
    assert any(rule.startswith("p (the model's) from 0.4") for rule in rules)


@pytest.mark.slow
def test_many_covariates_leave_enough_rows_to_search_in():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3_000, 120))
    y = rng.random(3_000) < 0.4 + 0.3 * (x[:, 77] > 0.5)
    found = it.bias_slices(it.Sample(y, np.full(3_000, 0.4), x), max_slices=2, draws=99, rng=0)
    assert any("x78 >=" in part.rule for part in found.confirmed)
