"""Curves and maps: the local bias over some covariates alone."""

import re

import numpy as np
import pytest

import itrust as it
from itrust._core import InputError
from itrust.bias import Redraws, curve_plan, map_plan, pictures, pictures_of, shares_known
from itrust.render import as_text


def town(n: int = 2_000) -> it.Sample:
    return it.simulate.survey(n, rng=0).sample


def test_a_curve_is_the_kernel_mean_along_its_covariate():
    sample = town(500)
    curve = it.bias_curve(sample, "age", by="region", width=10.0, points=7, draws=19, rng=0)
    age, region = sample.column("age").values, sample.column("region")
    for part in curve.parts:
        inside = region.values == region.levels.index(part.group.removeprefix("region = "))
        assert part.rows == inside.sum()
        for x, value in zip(part.grid, part.values, strict=True):
            k = np.maximum(np.exp(-((age - x) ** 2) / 200) - 0.05, 0) * inside
            assert value == pytest.approx(k @ sample.residuals / k.sum())


def test_groups_cross_and_missing_ones_are_kept():
    rng = np.random.default_rng(0)
    x = {
        "age": rng.integers(20, 80, 600),
        "sex": rng.choice(["f", "m"], 600),
        "lab": rng.choice([0.0, 1.0, np.nan], 600),
    }
    sample = it.Sample(rng.random(600) < 0.5, np.full(600, 0.5), x, missing="level")
    curve = it.bias_curve(sample, "age", by=["sex", "lab"], draws=19, rng=0)
    assert [part.group for part in curve.parts] == [
        f"sex = {s} and lab {told}" for s in "fm" for told in ("= 0", "= 1", "missing")
    ]
    assert sum(part.rows for part in curve.parts) == 600
    assert all(np.isfinite(part.values).any() for part in curve.parts)


def test_the_words_of_a_curve_tell_where_it_is_wrong():
    curve = it.bias_curve(town(4_000), "age", by="region", draws=199, rng=0)
    parts = (re.split(r"  +", line.strip()) for line in as_text(curve, 200).splitlines())
    told = {row[0]: row[-1] for row in parts}
    assert told["region = north"].strip() == "not shown to be miscalibrated by these rows"
    assert "too high by at least 0." in told["region = south"]
    assert "too low by at least 0." in told["region = south"]
    table = curve.to_arrow()
    assert table.num_rows == 3 * 60
    assert curve.to_dict()["covariate"] == "age"


def test_dates_have_curves():
    rng = np.random.default_rng(0)
    day = np.datetime64("2026-01-01") + rng.integers(0, 300, 400)
    sample = it.Sample(rng.random(400) < 0.5, np.full(400, 0.3), {"day": day})
    assert "2026-" in str(it.bias_curve(sample, "day", draws=99, rng=0))


def test_a_map_has_grids_and_levels():
    found = it.bias_map(town(), "age", "region", points=12, draws=49, rng=0)
    assert found.values.shape == found.pvalues.shape == (3, 12)
    assert found.axes[1].labels == ("north", "south", "west")
    assert found.axes[0].positions == pytest.approx(np.round(np.linspace(20, 84, 12)))
    both = it.bias_map(town(), "income", "age", points=9, draws=49, rng=0)
    assert np.isnan(both.values).any()  # nobody is rich and of every age
    assert both.to_arrow().num_rows == 81


def test_the_sample_keeps_its_place_in_convenience_methods():
    sample = town(600)
    b = it.local_bias(sample, draws=49, rng=3)
    direct = it.bias_curve(sample, "age", "region", alpha=0.05, draws=49, rng=3)
    assert np.array_equal(b.curve("age", "region").parts[0].values, direct.parts[0].values)
    assert b.groups("region").groups == it.bias_groups(sample, "region", draws=49, rng=3).groups
    assert (
        b.slices(max_slices=2).slices
        == it.bias_slices(sample, max_slices=2, draws=49, rng=3).slices
    )
    assert b.map("age", "income").values.shape == (40, 40)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: it.bias_curve(s, "region"), "has no curve; use bias_groups"),
        (lambda s: it.bias_curve(s, "agee"), "did you mean 'age'"),
        (lambda s: it.bias_curve(s, "age", by="income"), "too many for groups"),
        (lambda s: it.bias_curve(s, "age", by="age"), "cannot be both"),
        (lambda s: it.bias_map(s, "age", "age"), "two different covariates"),
        (lambda s: it.bias_curve(s, "age", width=-1.0), "width must be a positive"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call(town(100))


def test_a_group_nobody_is_in_is_unknown_and_not_right():
    rng = np.random.default_rng(0)
    x = {"age": rng.integers(20, 80, 300), "g": np.where(np.arange(300) < 3, "few", "many")}
    sample = it.Sample(rng.random(300) < 0.5, np.full(300, 0.5), x)
    told = str(it.bias_curve(sample, "age", "g", draws=19, rng=0))
    assert "g = few      3  unknown: nowhere 20 effective neighbours" in told
    assert "g = many   297  not shown to be miscalibrated by these rows" in told


def test_rows_without_the_covariate_are_told_of():
    rng = np.random.default_rng(0)
    lab = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    sample = it.Sample(rng.random(300) < 0.5, np.full(300, 0.5), {"lab": lab}, missing="level")
    missing = int(np.isnan(lab).sum())
    curve = it.bias_curve(sample, "lab", draws=19, rng=0)
    assert f"{missing} rows without lab have no place here" in str(curve)
    assert curve.parts[0].rows == 300 - missing


def test_the_prediction_has_curves_and_maps():
    sample = town(1_500)
    curve = it.bias_curve(sample, "prediction", draws=39, rng=0)
    assert curve.parts[0].group == "all rows"
    k = curve.bias.kernel.prob.width[0]
    at = curve.parts[0].grid[30]
    own = np.maximum(np.exp(-((sample.p - at) ** 2) / (2 * k**2)) - 0.05, 0)
    assert curve.parts[0].values[30] == pytest.approx(own @ sample.residuals / own.sum())
    both = it.bias_map(sample, "age", "prediction", points=6, draws=39, rng=0)
    assert both.values.shape == (6, 6)
    assert "prediction" in both.to_arrow().column_names
    assert "Bias over age and prediction" in str(both)


def test_whole_numbers_have_whole_grids():
    grid = it.bias_curve(town(600), "age", draws=19, rng=0).parts[0].grid
    assert (grid == np.round(grid)).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda s: it.bias_curve(s, 3),
        lambda s: it.bias_curve(s, "age", by=3),
        lambda s: it.bias_map(s, 1, 2),
        lambda s: it.bias_curve(s, "age", points=0),
        lambda s: it.bias_map(s, "age", "region", points=1.5),
        lambda s: it.bias_curve(s, "age", min_neighbours=0),
    ],
)
def test_wrong_types_get_a_sentence(call):
    with pytest.raises(InputError):
        call(town(100))


def test_pictures_that_share_passes_are_those_made_alone(monkeypatch):
    monkeypatch.setattr(pictures, "MAX_PLACES", 300)
    sample, settings = town(600), {"draws": 39, "rng": 3}
    alone = [
        it.bias_curve(sample, "age", points=20, **settings),
        it.bias_curve(sample, "age", by="region", points=20, **settings),
        it.bias_map(sample, "age", "prediction", points=15, **settings),
        it.bias_map(sample, "region", "age", points=15, **settings),
    ]
    redraws = Redraws.of(sample, alpha=0.05, draws=39, rng=3)
    plans = [
        curve_plan(redraws, "age", points=20),
        curve_plan(redraws, "age", "region", points=20),
        map_plan(redraws, "age", "prediction", points=15),
        map_plan(redraws, "region", "age", points=15),
    ]
    assert [len(some) for some in pictures._passes_over(plans)] == [2, 2]
    assert (
        plans[1].places.kernel is plans[3].places.kernel
    )  # widths of age within regions are chosen once
    for drawn, own in zip(pictures_of(plans), alone, strict=True):
        assert drawn.to_arrow().column_names == own.to_arrow().column_names
        for name in ("values", "size", "pvalues", "witness", "stderr"):
            mine, theirs = getattr(drawn.bias, name), getattr(own.bias, name)
            assert mine == pytest.approx(theirs, nan_ok=True)
        for name in ("band", "null_band"):
            mine, theirs = getattr(drawn.bias, name), getattr(own.bias, name)
            assert mine.lower == pytest.approx(theirs.lower, nan_ok=True)
            assert mine.upper == pytest.approx(theirs.upper, nan_ok=True)
        assert drawn.bias.notes == own.bias.notes


@pytest.mark.parametrize("by", [{}, {"cluster": np.arange(600) // 3}])
def test_where_rows_are_enough_is_known_without_labels(by):
    rng = np.random.default_rng(0)
    p, income = rng.uniform(size=600), rng.lognormal(sigma=1.5, size=600)
    sample = it.Sample(rng.random(600) < p, p, {"income": income}, **by)
    other = it.Sample(~sample.y.astype(bool), p, {"income": income}, **by)
    curve = it.bias_curve(sample, "income", points=40, draws=19, rng=0)
    for rows in (sample, other):
        redraws = Redraws.of(rows, alpha=0.05, draws=19, rng=0)
        plans = [curve_plan(redraws, "income", points=40)]
        assert shares_known(plans, 20) == [np.isfinite(curve.bias.values).mean()]
