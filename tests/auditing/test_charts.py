"""Charts hold numbers that add up, and disclosure control leaves no bar or bin of few rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust.auditing import Audit, HistogramChart
from itrust.auditing.charts import charts_of
from itrust.auditing.verdict import telling

LEAST = 10


@pytest.fixture(scope="module")
def found() -> Audit:
    rng = np.random.default_rng(0)
    n = 900
    p = np.clip(rng.beta(1, 9, n), 0.001, 0.999)
    group = rng.choice(["a", "b", "c"], n, p=[0.6, 0.38, 0.02])
    sample = it.Sample(rng.random(n) < p, p, {"g": group.astype(object), "x": rng.normal(size=n)})
    return it.audit(sample, draws=79, rng=0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_every_row_is_in_one_bar_of_the_histogram(values):
    chart = HistogramChart.of(np.array(values))
    assert sum(chart.counts) == len(values)
    assert len(chart.edges) == len(chart.counts) + 1 <= 60
    assert list(chart.edges) == sorted(set(chart.edges))


def test_bars_stand_between_round_numbers():
    chart = HistogramChart.of(np.array([0.013, 0.02, 0.041, 0.0432]))
    assert chart.edges[0] == 0.012
    assert np.diff(chart.edges) == pytest.approx(0.002)


def test_a_page_has_no_bar_of_few_rows(found):
    whole, shown = found.charts.histogram, found.disclosed(LEAST).charts.histogram
    assert min(count for count in whole.counts if count) < LEAST
    assert len(shown.counts) == len(whole.counts)
    for before, after in zip(whole.counts, shown.counts, strict=True):
        assert after == 0 if before < LEAST else 0 <= abs(after - before) <= 4


def test_reliability_of_a_group_is_that_of_its_rows(found):
    lines = {line.group: line for line in found.charts.by_group}
    assert lines.keys() == {"g = a", "g = b"}  # of 18 rows no curve is drawn
    rows = np.flatnonzero(lines["g = a"].where.rows(found.sample.points))
    part = found.sample.take(rows)
    bins = it.scores.EqualMass(min(10, rows.size // 40))
    own = it.scores.reliability_curve(part, bins)
    assert lines["g = a"].curve.observed == pytest.approx(own.observed)
    assert lines["g = a"].rows == rows.size == own.rows.sum()
    told = found.to_dict()["parts"][0]["charts"]["reliability_by_group"][0]
    assert told["group"] == "g = a"
    assert told["curve"]["predicted"] == pytest.approx(own.predicted, rel=1e-4)


def test_a_group_whose_rows_all_have_weight_0_has_no_reliability():
    rng = np.random.default_rng(0)
    p, group = rng.uniform(0.1, 0.9, 300), np.repeat(["a", "b", "c"], 100)
    sample = it.Sample(rng.random(300) < p, p, {"group": group}, weights=1.0 * (group != "b"))
    lines = it.audit(sample, draws=79, rng=0).charts.by_group
    assert [line.group for line in lines] == ["group = a", "group = c"]


def test_groups_that_are_hidden_have_no_reliability(found):
    rows = {group.name: group.rows for group in found.diagnosis.groups}
    shown = found.disclosed(rows["g = a"])
    assert "g = a" in {group.name for group in shown.diagnosis.groups}
    assert shown.charts.by_group == () or not any(
        line.curve.rows.size for line in shown.charts.by_group
    )
    with_bins = found.disclosed(45).charts.by_group
    assert all((line.curve.rows >= 45 - 4).all() for line in with_bins)


def test_nothing_but_the_histogram_is_there_without_charts():
    sample = it.simulate.survey(300, rng=0).sample
    charts = it.audit(sample, draws=79, rng=0, charts=False).charts
    assert charts.by_group == ()
    assert sum(charts.histogram.counts) == 300


@pytest.fixture(scope="module")
def fifty():
    """Fifty numbers; the bias lies in the pair x31 and x44, and in neither alone."""
    rng = np.random.default_rng(3)
    n = 500
    x = {f"x{k:02d}": rng.normal(size=n) for k in range(50)}
    p = rng.uniform(0.2, 0.8, n)
    sign = np.where((x["x31"] > 0) == (x["x44"] > 0), 1, -1)
    return it.Sample(rng.random(n) < np.clip(p + 0.28 * sign, 0, 1), p, x)


def test_of_fifty_covariates_the_pair_that_was_found_is_drawn_first(fifty):
    test = it.klce_test(fifty, draws=79, rng=0)
    found = telling(test, SimpleNamespace(shown=()), 0.05, refuted=test.refutes(0.05))
    drawn = charts_of(fifty, test, alpha=0.05, draws=39, seed=0, telling=found)
    maps = [(chart.across.name, chart.up.name) for chart in drawn.maps]
    assert maps[:3] == [("x31", "x44"), ("x31", "prediction"), ("x44", "prediction")]
    assert len(maps) == 8
    assert [curve.name for curve in drawn.curves][:3] == ["x31", "x44", "x00"]


def test_every_pair_that_was_found_is_drawn_even_if_many_numbers_were(fifty):
    """More numbers than curves: the last pair is there all the same."""
    test = it.klce_test(fifty.only("x00"), draws=39, rng=0)
    pairs = [(f"x{k:02d}", f"x{k + 1:02d}") for k in range(20, 34, 2)]
    drawn = charts_of(fifty, test, alpha=0.05, draws=39, seed=0, telling=[*pairs, ("x01",)])
    assert [(chart.across.name, chart.up.name) for chart in drawn.maps[:7]] == pairs
    assert [curve.name for curve in drawn.curves] == [
        *(f"x{k}" for k in range(20, 25)),
        "prediction",
    ]


def test_without_findings_charts_follow_the_order_of_the_covariates(found):
    maps = [(chart.across.name, chart.up.name) for chart in found.charts.maps]
    assert maps == [("x", "g"), ("x", "prediction"), ("g", "prediction")]
