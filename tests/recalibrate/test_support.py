"""Where the calibration rows lie, and what `Local` does elsewhere."""

import numpy as np
import pytest
from scipy.special import expit, logit

import itrust as it
from itrust.data import Column
from itrust.recalibrate import Local, compare, outside_note, unchanged_note
from itrust.recalibrate.support import Place, Range, Support, _squares, faded

EDGE = 1e-6
QUICK = {"widths": (0.4,), "ridges": (2.0, 8.0), "rounds": 1}


def as_given(z):
    return z


def support(p, x):
    points = it.Population(p, x, missing="level").points
    return Support.of(points, points, EDGE, as_given)


def shares(own, p, x):
    return faded(own.distance(it.Population(p, x, missing="level").points, EDGE))


def correlated(n, seed, rho=0.95):
    rng = np.random.default_rng(seed)
    first, other = rng.normal(size=(2, n))
    x = {"x1": first, "x2": rho * first + np.sqrt(1 - rho**2) * other}
    return expit(0.5 * rng.normal(size=n)), x


def inside_biased(n, seed):
    """Predictions are wrong with x where |x| < 1."""
    rng = np.random.default_rng(seed)
    x, p = rng.uniform(-1, 1, n), expit(rng.normal(size=n))
    return it.Sample(rng.random(n) < expit(logit(p) + 1.5 * x), p, {"x": x})


def test_a_correction_fades_within_a_third_of_the_range():
    own = Range.of(np.linspace(0.0, 3.0, 50))  # fades within 1
    values = np.array([0.0, 1.3, 3.0, 3.5, -0.5, 4.0, -1.0, 99.0, np.nan])
    told = own.distance(values)
    np.testing.assert_allclose(told, [0, 0, 0, 0.5, 0.5, 1, 1, 2, 2], atol=1e-12)


def test_one_wild_value_does_not_stretch_the_range():
    values = np.append(np.linspace(0.0, 1.0, 200), 1e9)
    assert Range.of(values).distance(np.array([2.0, 1e9])).tolist() == [2, 2]


def test_missing_values_are_known_only_if_there_were_some():
    gap = np.array([np.nan])
    assert Range.of(np.array([0.0, 1.0, np.nan])).distance(gap) == 0
    assert Range.of(np.array([0.0, 1.0])).distance(gap) == 2
    assert Range.of(np.full(4, np.nan)).distance(np.array([np.nan, 3.0])).tolist() == [0, 2]


def test_any_other_value_is_outside_where_all_were_equal():
    assert Range.of(np.full(9, 2.0)).distance(np.array([2.0, 2.1])).tolist() == [0, 2]


def test_new_levels_get_nothing():
    place = Place.of("g", Column("g", "category", np.array([0, 1, 1]), ("a", "b")))
    now = Column("g", "category", np.array([0, 1, 2]), ("b", "c", "a"))
    assert place.distance(now).tolist() == [0, 2, 0]


def test_distances_are_those_of_conditional_normal_laws():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    covariance, centred = root @ root.T + np.eye(4), rng.normal(size=(5, 4))
    whole, largest = _squares(centred, np.linalg.inv(covariance))
    for row, square, one in zip(centred, whole, largest, strict=True):
        assert square == pytest.approx(row @ np.linalg.solve(covariance, row))
        found = []
        for k in range(4):
            rest = [j for j in range(4) if j != k]
            slope = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, k])
            left = covariance[k, k] - slope @ covariance[rest, k]
            found.append((row[k] - slope @ row[rest]) ** 2 / left)
        assert one == pytest.approx(max(found))


@pytest.mark.parametrize("others", [0, 18])
def test_values_that_never_go_together_are_outside(others):
    """Within the range of each covariate, far from all rows; among many covariates as well."""

    def more(n, seed):
        return {
            f"o{k}": v for k, v in enumerate(np.random.default_rng(seed).normal(size=(others, n)))
        }

    p, x = correlated(500, 0)
    own = support(p, {**x, **more(500, 1)})
    q, new = correlated(1_000, 2)
    assert (shares(own, q, {**new, **more(1_000, 3)}) > 0.5).mean() > 0.97
    corner = np.random.default_rng(4).uniform(1, 1.5, 50)
    told = shares(own, np.full(50, 0.5), {"x1": corner, "x2": -corner, **more(50, 5)})
    assert told.mean() < 0.02


def test_a_crossing_of_levels_that_was_never_seen_is_outside():
    rng = np.random.default_rng(0)
    a = rng.choice(["a", "b"], 500)
    b = np.where(a == "a", rng.choice(["u", "v"], 500), "u")
    own = support(rng.random(500), {"a": a, "b": b})
    told = shares(own, [0.5] * 4, {"a": list("aabb"), "b": list("uvuv")})
    np.testing.assert_allclose(told, [1, 1, 1, 0])


def test_the_order_of_rows_and_units_do_not_matter():
    p, x = correlated(300, 0)
    order = np.random.default_rng(1).permutation(300)
    other = support(p[order], {"x1": 9 * x["x1"][order] - 5, "x2": x["x2"][order]})
    q, new = correlated(50, 2)
    moved = shares(other, q, {"x1": 9 * new["x1"] - 5, "x2": new["x2"]})
    np.testing.assert_allclose(moved, shares(support(p, x), q, new), atol=1e-9)


def test_fading_is_smooth_and_ends():
    np.testing.assert_allclose(faded(np.array([-3, 0, 0.5, 1, 7])), [1, 1, 0.5, 0, 0])


def test_right_predictions_far_away_are_left_as_they_are():
    fix = Local(**QUICK).fit(inside_biased(800, 0))
    assert fix.corrections_
    far, p = np.linspace(2, 4, 101), expit(np.linspace(-1, 1, 101))
    np.testing.assert_allclose(fix.predict(p, {"x": far}), p, atol=1e-12)
    np.testing.assert_allclose(fix.predict(p, {"x": -far}), p, atol=1e-12)
    assert fix.outside(p, {"x": far}).all()
    near = fix.predict(p, {"x": np.full(101, 0.9)})
    assert np.abs(near - p).mean() > 0.1
    assert not fix.outside(p, {"x": np.full(101, 0.9)}).any()
    x = np.linspace(-2, 2, 101)
    share = shares(fix.supports_[0], np.full(101, 0.5), {"x": x})
    partly = fix.at_edge(np.full(101, 0.5), {"x": x})
    np.testing.assert_array_equal(partly, (share > 0) & (share < 1))
    assert partly[np.abs(np.abs(x) - 1.3) < 0.2].all()
    assert not (partly & fix.outside(np.full(101, 0.5), {"x": x})).any()


def test_a_map_of_the_prediction_keeps_its_order_and_ends_outside():
    rng = np.random.default_rng(0)
    p, x = expit(rng.uniform(-1, 1, 800)), rng.uniform(-1, 1, 800)
    y = rng.random(800) < expit(2.5 * logit(p))
    fix = Local(**QUICK).fit(it.Sample(y, p, {"x": x}))
    assert fix.map_ is not None
    assert not fix.corrections_
    z = np.linspace(-9, 9, 2_001)
    told = fix.predict(expit(z), {"x": np.zeros(z.size)})
    assert (np.diff(told) >= 0).all()
    np.testing.assert_allclose(told[np.abs(z) > 6], expit(z[np.abs(z) > 6]))
    assert np.interp(0.8, z, told) > expit(1.3)
    np.testing.assert_allclose(fix.predict(expit(z), {"x": np.full(z.size, 2.5)}), expit(z))
    between = fix.predict(np.array([0.3]), {"x": [1.9]})  # outside, less than twice as far
    assert fix.outside(np.array([0.3]), {"x": [1.9]}).all()
    assert fix.predict(np.array([0.3]), {"x": [0.0]}) < between < 0.3
    note = outside_note(fix, 7, 5, 90)
    assert note.startswith("7 of 90 rows lie far from")
    assert "correction" not in note
    assert "the map of the prediction fades out" in note


def test_what_was_saved_knows_where_its_rows_were(tmp_path):
    fix = Local(**QUICK).fit(inside_biased(800, 0))
    fix.save(tmp_path / "fix.json")
    again = it.recalibrate.load(tmp_path / "fix.json")
    p, x = np.full(90, 0.4), {"x": np.linspace(-2, 2, 90)}
    np.testing.assert_array_equal(again.predict(p, x), fix.predict(p, x))
    np.testing.assert_array_equal(again.outside(p, x), fix.outside(p, x))


def test_chance_seldom_changes_a_right_model():
    """Five samples of a calibrated model that cross-validation alone would recalibrate."""
    changed = 0
    for seed in (12, 24, 30, 44, 105):
        rng = np.random.default_rng(seed)
        x, p = rng.normal(size=200), expit(rng.normal(size=200))
        fix = Local().fit(it.Sample(rng.random(200) < p, p, {"x": x}))
        assert fix.needed_ == 0.005
        changed += not fix.unchanged_
        if fix.unchanged_:
            np.testing.assert_array_equal(fix.predict(p, {"x": x + 9}), p)
            assert fix.outside(p, {"x": x + 9}).all()  # about the rows, not what is done to them
    assert changed <= 1


def test_a_right_model_is_said_to_be_unchanged():
    rng = np.random.default_rng(12)
    x, p = rng.normal(size=200), expit(rng.normal(size=200))
    right = it.Sample(rng.random(200) < p, p, {"x": x})
    table = compare([Local()], right, inside_biased(60, 0), draws=19, rng=0, slices=False)
    assert table["Local"].unchanged
    assert table["Local"].klce2 == table["none"].klce2
    assert "Local: nothing was changed: the exact test" in str(table)
    assert "with 200 rows at most 0.005 is needed" in table.notes[0]
    assert len(table.notes) == 1


def test_clusters_are_what_is_counted_where_there_are_any(tmp_path):
    rng = np.random.default_rng(12)
    x, p = rng.normal(size=200), expit(rng.normal(size=200))
    right = it.Sample(rng.random(200) < p, p, {"x": x}, cluster=np.repeat(np.arange(50), 4))
    fix = Local().fit(right)
    assert fix.unchanged_
    note = unchanged_note(fix)
    assert note.startswith("nothing was changed: the test of the probabilities")
    assert "with 50 clusters at most 0.002 is needed" in note
    fix.save(tmp_path / "fix.json")
    assert unchanged_note(it.recalibrate.load(tmp_path / "fix.json")) == note


def test_the_comparison_says_what_was_left():
    biased, far = inside_biased(800, 0), inside_biased(60, 1)
    far = it.Sample(far.y, far.p, {"x": far.column("x").values + 2})
    table = compare([Local(**QUICK)], biased, far, draws=19, rng=0, slices=False)
    assert table["Local"].outside == int(table["Local"].fitted.outside(far.p, far).sum()) > 30
    assert "of 60 rows lie far from the calibration rows" in str(table)
    edge = table["Local"].at_edge
    assert edge == int(table["Local"].fitted.at_edge(far.p, far).sum()) > 1
    assert table.notes[0].endswith(f"; {edge} lie at their edge and get a part of the correction")
    assert table["Local"].to_dict()["unchanged"] is False
