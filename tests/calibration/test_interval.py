"""The test of an interval null: by hand, against loops, against every law, and on any rows."""

import math
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import binom

import itrust as it
from itrust import Dictionary, InputError, Sample, nulls
from itrust.calibration import IntervalRun, direction_dictionary, normal_score
from itrust.engines import Factor, Tiles
from itrust.nulls import redrawn_labels


def rows(n, seed=0, odds=1.0):
    """Two numbers and a group; the odds of every label are those of p times a factor."""
    rng = np.random.default_rng(seed)
    x = {"a": rng.normal(size=n), "b": rng.normal(size=n), "g": rng.choice(["u", "v", "w"], n)}
    p = 1 / (1 + np.exp(-x["a"]))
    y = rng.random(n) < nulls.Selection(odds).bounds(p)[1]
    return Sample(y.astype(int), p, x)


def only_the_level(sample):
    return direction_dictionary(sample.points).only(families=["overall"])


def run_of(sample, draws, seed=0, checks=None, engine="auto"):
    return IntervalRun(sample, checks, draws, seed, engine)


def test_two_rows_by_hand():
    """Both labels 1 at p = .5. Neutral: two labels alike have probability .5. Odds 3 let the sum
    be 2 with U < .75 twice, or 0 with U >= .25 twice: 1 - 2 (.25)^2 together."""
    sample = Sample([1, 1], [0.5, 0.5])
    level = only_the_level(sample)
    for odds, expected in ((1.0, 0.5), (3.0, 0.875)):
        found = it.klce_test(sample, level, nulls.Selection(odds), draws=9_999, rng=0).pvalue
        assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / 10_000)
    upward = it.klce_test(sample, level, nulls.Prudent(), draws=9_999, rng=0).pvalue
    assert abs(upward - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 10_000)


def naive_scores(run, sample, null, draws, seed):
    """Every direction, sign, draw and row, one at a time."""
    directions = run.directions
    features = [
        direction_values(directions, k, sample.points) for k in range(len(directions.features))
    ]
    lo, hi = null.bounds(sample.p)
    weights = sample.weights_or_ones / run.survey.unit
    high = redrawn_labels(hi, range(sample.n), range(draws), seed)
    low = redrawn_labels(lo, range(sample.n), range(draws), seed)
    columns = [(sample.y, sample.y)] + [(high[:, b], low[:, b]) for b in range(draws)]
    found = []
    for h, low_labels in columns:
        best = -math.inf
        for phi, share in zip(features, directions.weights, strict=True):
            for sign in (1, -1):
                total = mean = variance = third = 0.0
                for i in range(sample.n):
                    f = sign * weights[i] * phi[i]
                    q = hi[i] if f > 0 else lo[i]
                    total += f * (h[i] if f > 0 else low_labels[i])
                    mean += f * q
                    variance += f**2 * q * (1 - q)
                    third += f**3 * q * (1 - q) * (1 - 2 * q)
                if variance > 1e-20:
                    z = (total - mean) / math.sqrt(variance)
                    score = float(normal_score(np.array(z), np.array(third / variance**1.5)))
                    best = max(best, -float(log_ndtr(-score)) + math.log(share))
        found.append(best)
    return found


def direction_values(directions, k, points):
    """Positive less negative part."""
    parts = directions.parts(points, np.float64)
    values = parts[k].copy()
    signed = np.flatnonzero(directions.is_signed)
    if k in signed:
        values -= parts[len(directions.features) + int(np.searchsorted(signed, k))]
    return values


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "null", [nulls.Selection(1.7), nulls.LabelError(0.1), nulls.Tolerance(0.0), nulls.Prudent()]
)
def test_scores_equal_the_naive_loops(null, weighted):
    sample = rows(24)
    if weighted:
        weights = np.random.default_rng(1).uniform(0.2, 3, 24)
        sample = Sample(sample.y, sample.p, {"a": sample.p**2, "b": weights}, weights=weights)
    run = run_of(sample, 4, seed=3)
    (scores,), _ = run.run([null])
    expected = naive_scores(run, sample, null, 4, 3)
    np.testing.assert_allclose(scores.combined, expected, rtol=1e-9, atol=1e-9)


def test_no_law_inside_rejects_more_often_than_it_may():
    """Three rows, every law on a grid, every outcome: P(p <= a) <= a for all a at once."""
    p = np.array([0.3, 0.5, 0.8])
    x = {"a": [0.0, 1.0, 2.0], "g": ["u", "v", "u"]}
    null, draws = nulls.Selection(2.0), 4_000
    lo, hi = null.bounds(p)
    pvalues = {
        y: it.klce_test(Sample(y, p, x), null=null, draws=draws, rng=1).pvalue
        for y in product((0, 1), repeat=3)
    }
    slack = 4 / math.sqrt(draws)
    worst = 0.0
    for shares in product((0.0, 0.5, 1.0), repeat=3):
        pi = lo + np.array(shares) * (hi - lo)
        for alpha in sorted(set(pvalues.values())):
            chance = sum(
                np.prod(np.where(y, pi, 1 - pi)) for y, found in pvalues.items() if found <= alpha
            )
            assert chance <= alpha + slack
            worst = max(worst, chance / alpha)
    assert worst > 0.5  # the bound is not an empty one
    outside = [y for y, found in pvalues.items() if found <= min(pvalues.values())]
    beyond = np.array([0.02, 0.02, 0.02])  # a law that the null does not allow
    most = sum(np.prod(np.where(y, 1 - beyond, beyond)) for y in outside)
    least = sum(np.prod(np.where(y, beyond, 1 - beyond)) for y in outside)
    assert max(most, least) > min(pvalues.values()) + slack


@pytest.mark.slow
def test_level_at_the_edge_and_power_beyond_it():
    """Labels at the upper end of odds 1.5 are rejected in at most 5 % of runs; odds 1 in most."""
    found = []
    for seed in range(80):
        sample = rows(300, seed, odds=1.5)
        run = run_of(sample, 99, seed=seed, engine=Factor(threads=1))
        scores, _ = run.run([nulls.Selection(1.5), nulls.Selection(1.0)])
        found.append([one.pvalue <= 0.05 for one in scores])
    edge, inside = np.sum(found, axis=0)
    assert binom.sf(edge - 1, 80, 0.05) > 0.001
    assert inside >= 40


def test_signs_of_the_overall_level_exclude_each_other_where_its_ends_are_far_apart():
    """Draws that reach the data with the upper or the lower sign alone: the more of the two."""
    sample = rows(2_000, seed=3, odds=1.8)
    run = run_of(sample, 199, seed=1)
    near, far = nulls.Selection(1.1), nulls.Selection(1.7)
    (apart, close), _ = run.run([far, near])
    lo, hi = far.bounds(sample.p)
    assert math.exp(-((hi - lo).sum() ** 2) / (2 * sample.n)) < 1e-9
    assert close.level is None
    assert close.by_law == [close.tails]
    assert apart.level == 0
    shift = np.log(apart.weights)[:, None]
    rest = (apart.tails + shift)[1:].max(axis=0)
    own = apart.level_tails + shift[0]
    counts = [(np.maximum(rest, sign)[1:] >= apart.combined[0] - 1e-9).sum() for sign in own]
    assert apart.pvalue == (1 + max(counts)) / 200
    both = (apart.tails + shift).max(axis=0)
    assert both[0] == apart.combined[0]
    assert (np.sort(both[1:]) >= np.sort(apart.combined[1:])).all()
    assert apart.critical(0.05) < np.sort(both[1:])[-10]
    # With the smallest score of either sign, the data say nothing on the inner side of the ends.
    assert own.min() == pytest.approx(math.log(2 * apart.weights[0]), abs=0.02)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(30)), st.floats(0.1, 10))
def test_scores_of_the_data_know_no_order_of_rows_and_no_unit_of_weights(order, unit):
    sample = rows(30, seed=4)
    weights = np.linspace(0.5, 2, 30)
    x = {"a": np.linspace(-1, 1, 30) ** 3}
    plain = Sample(sample.y, sample.p, x, weights=weights)
    order = np.array(order)
    other = Sample(
        sample.y[order], sample.p[order], {"a": x["a"][order]}, weights=unit * weights[order]
    )
    scores = [
        run_of(one, 1).run([nulls.Selection(1.3)], 0)[0][0].combined for one in (plain, other)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-7)


def test_no_result_depends_on_chunks_engine_or_place_of_the_rows(tmp_path):
    sample = rows(2_000, odds=1.3)
    frame = {"y": sample.y.astype(int), "p": sample.p}
    frame |= {
        c.name: c.values if not c.is_category else np.array(c.levels)[c.values.astype(int)]
        for c in sample.points.columns
    }
    pq.write_table(pa.table(frame), tmp_path / "rows.parquet")
    scan = it.scan(tmp_path / "rows.parquet", label="y", prob="p", on=["a", "b", "g"])
    null = nulls.Selection(1.2)
    engines = [(sample, Factor(chunk=1_024)), (sample, Factor(chunk=500, threads=2))]
    engines += [(sample, Tiles()), (scan, "auto")]
    results = [it.klce_test(s, null=null, draws=99, rng=5, engine=e) for s, e in engines]
    for result in results[1:]:
        assert result.pvalue == results[0].pvalue
        np.testing.assert_allclose(
            result.null_distribution, results[0].null_distribution, rtol=1e-9
        )
        assert result.findings[0].name == results[0].findings[0].name


def test_impossible_labels_refute_what_keeps_them_impossible():
    p, y = np.r_[0.0, 1.0, np.full(60, 0.5)], np.r_[1, 1, np.tile([0, 1], 30)]
    sample = Sample(y, p, {"a": np.linspace(0, 1, 62)})
    kept = it.klce_test(sample, null=nulls.Selection(5.0), draws=99, rng=0)
    assert (kept.pvalue, kept.impossible) == (0.01, 1)
    assert kept.findings[0].name == "impossible labels"
    prudent = it.klce_test(sample, null=nulls.Prudent(), draws=99, rng=0)
    assert (prudent.pvalue, prudent.impossible) == (0.01, 1)
    errors = it.klce_test(sample, null=nulls.LabelError(0.3), draws=99, rng=0)
    assert errors.impossible == 0
    assert errors.pvalue > 0.5
    assert not errors.warnings


def test_an_impossible_label_of_weight_0_counts_nothing():
    rng = np.random.default_rng(0)
    p, weights = np.r_[0.0, rng.uniform(0.2, 0.8, 80)], np.r_[0.0, np.ones(80)]
    y = np.r_[1, rng.random(80) < p[1:]]
    x = {"a": rng.normal(size=81)}
    for own, count in ((weights, 0), (np.ones(81), 1)):
        sample = Sample(y, p, x, weights=own)
        assert sample.impossible.size == count
        several = it.MulticlassSample(y.astype(int), np.c_[1 - p, p, 0 * p], x, weights=own)
        assert several.impossible.size == count
        for one, null in ((sample, None), (sample, nulls.Selection(2.0)), (several, None)):
            found = it.klce_test(one, null=null, draws=99, rng=0)
            assert found.impossible == count
            assert (found.pvalue == 0.01) == bool(count)


def test_prudence_sees_underestimation_alone():
    low, high = rows(1_000, seed=1, odds=1.5), rows(1_000, seed=1)
    over = Sample(high.y, nulls.Selection(1.5).bounds(high.p)[1], {"a": high.p})
    under = it.klce_test(low, null=nulls.Prudent(), draws=199, rng=0)
    assert under.pvalue == 0.005
    assert under.findings[0].direction == 1
    assert it.klce_test(over, null=nulls.Prudent(), draws=199, rng=0).pvalue > 0.5
    assert it.klce_test(over, draws=199, rng=0).pvalue == 0.005


def test_a_group_is_found_by_name():
    sample = rows(3_000, seed=2)
    inside = nulls.Selection(2.5).bounds(sample.p)
    in_group = sample.points.columns[2].values == sample.points.columns[2].levels.index("v")
    y = np.where(in_group, np.random.default_rng(0).random(3_000) < inside[1], sample.y)
    biased = Sample(y.astype(int), sample.p, {"g": np.where(in_group, "v", "u"), "p2": sample.p**2})
    found = it.klce_test(biased, null=nulls.Selection(1.5), draws=199, rng=0)
    first = found.evidence()[0]
    assert first.is_bound
    assert (first.name, first.direction) == ("g = v", 1)
    assert str(first) == "the predictions are too low where g = v"


def test_the_dictionary_of_a_user_gives_its_checks_of_one_feature_and_leaves_others_out():
    sample = rows(300)
    whole = it.default_dictionary(sample)
    found = it.klce_test(sample, whole, nulls.Selection(1.2), draws=19, rng=0)
    assert found.checks == sum(len(entry.features) == 1 for entry in whole.entries)
    assert any("kernels take no part with an interval null" in note for note in found.notes)
    alone = whole.only(families=["full"])
    with pytest.raises(InputError, match="needs at least one entry"):
        it.klce_test(sample, alone, nulls.Selection(1.2), draws=19)


def test_what_cannot_be_promised_is_refused():
    sample = rows(60)
    clustered = Sample(sample.y, sample.p, {"a": sample.p}, cluster=np.repeat(range(20), 3))
    with pytest.raises(InputError, match="needs independent rows, and these come in clusters"):
        it.klce_test(clustered, null=nulls.Selection(1.2), draws=9)
    with pytest.raises(InputError, match="not monotone in the labels"):
        it.klce_test(sample, it.kernels.LocalKernel(), nulls.Selection(1.2), draws=9)
    with pytest.raises(InputError, match="60 in all; it has 61"):
        it.klce_test(sample, null=nulls.Within(np.zeros(61), np.ones(61)), draws=9)
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    classes = it.MulticlassSample(probabilities.argmax(axis=1), probabilities, {"a": sample.p})
    with pytest.raises(InputError, match="not Selection"):
        it.klce_test(classes, null=nulls.Selection(1.2), draws=9)


def test_the_text_says_what_was_compared():
    found = it.klce_test(rows(400, odds=1.5), null=nulls.Selection(1.2), draws=99, rng=0)
    text = " ".join(str(found).split())
    assert "H0: P(y = 1 | x, p) within Selection(odds=1.2)" in text
    assert "sums of labels along directions alone" in text
    assert found.is_exact
    assert found.to_dict()["null"] == {"null": "Selection", "exact": True, "odds": 1.2}
    assert found.statistic_draws is None
    assert found._repr_html_()


def test_directions_are_never_too_many():
    rng = np.random.default_rng(0)
    x = {f"x{k}": rng.normal(size=500) for k in range(60)}
    sample = Sample(rng.integers(0, 2, 500), np.full(500, 0.5), x)
    dictionary = direction_dictionary(sample.points)
    assert isinstance(dictionary, Dictionary)
    assert len(dictionary.entries) == 240
    assert "too many covariates for" in dictionary.notes[0]
