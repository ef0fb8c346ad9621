"""Tipping points: curves that never fall, points that the test itself confirms, and refusals."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import InputError, Sample, nulls
from itrust.calibration import IntervalRun
from itrust.overturn import KINDS, Robustness
from itrust.overturn.tipping import Search


def columns(n, seed=0, odds=1.0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    p = 1 / (1 + np.exp(-a))
    y = (rng.random(n) < nulls.Selection(odds).bounds(p)[1]).astype(int)
    return {"y": y, "p": p, "a": a, "b": b}


def rows(n, seed=0, odds=1.0):
    found = columns(n, seed, odds)
    return Sample(found["y"], found["p"], {"a": found["a"], "b": found["b"]})


@pytest.fixture(scope="module")
def found():
    return it.robustness(rows(4_000, odds=1.5), draws=199, rng=0)


def test_every_kind_has_a_curve_that_never_falls(found):
    assert [tipping.kind for tipping in found.violations] == list(KINDS)
    for tipping in found.violations:
        assert tipping.sizes[0] == tipping.neutral == KINDS[tipping.kind].neutral
        assert tipping.pvalues[0] == found.pvalue == 0.005
        assert (np.diff(tipping.sizes) > 0).all()
        assert (np.diff(tipping.pvalues) >= 0).all()
        at = np.searchsorted(tipping.sizes, tipping.point)
        assert tipping.pvalues[at] <= 0.05
        assert tipping.beyond == (tipping.point == KINDS[tipping.kind].end)
        assert tipping.beyond or tipping.pvalues[at + 1] > 0.05


def test_the_test_itself_confirms_the_points(found):
    """One truth: `klce_test` with the same draws rejects at the point and not at the next size."""
    sample = rows(4_000, odds=1.5)
    for kind in ("selection", "tolerance"):
        tipping = found.violation(kind)
        at = int(np.searchsorted(tipping.sizes, tipping.point))
        for k in (at, at + 1):
            null = KINDS[kind].null(float(tipping.sizes[k]))
            again = it.klce_test(sample, null=null, draws=199, rng=found.seed)
            assert again.pvalue == tipping.pvalues[k]
        assert tipping.finding.name == "overall level"
        assert tipping.finding.direction == 1
        assert tipping.finding.is_bound


def test_errors_of_one_direction_stand_as_long_as_those_of_both():
    """Laws of the one kind are among those of the other, so what is shown of these holds there."""
    p = np.random.default_rng(1).uniform(0.05, 0.15, 60)
    found = it.robustness(Sample(np.zeros(60), p, {"a": p**2}), draws=199, rng=0)
    both = found.violation("label_error")
    for kind in ("false_positives", "false_negatives"):
        one = found.violation(kind)
        assert one.point >= both.point > 0
        assert one.pvalue_at(both.point) <= 0.05
        assert (np.diff(one.pvalues) >= 0).all()


def test_planted_odds_are_found_from_below(found):
    """The standard error of log odds is .035 at 4,000 rows; the limit lies about two below."""
    assert 1.5 * np.exp(-5 * 0.035) < found.violation("selection").point < 1.5 * np.exp(0.035)
    assert found.violation("false_negatives").beyond  # labels of 1 that are missing explain nothing


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(sorted(KINDS)))
def test_draws_at_larger_sizes_are_at_least_as_large(seed, kind):
    """The sums of every direction and sign rise with the size, draw by draw."""
    run = IntervalRun(rows(200, seed), None, 9, seed, "auto")
    sizes = [KINDS[kind].size(share) for share in (0.0, 0.1, 0.3, 1.0)]
    _, outcome = run.run([KINDS[kind].null(size) for size in sizes])
    _, drawn, *_ = outcome.works[0]
    both = [run.directions.both_signs(*sums) for sums in drawn]
    for (up, down), (more_up, more_down) in pairwise(both):
        assert (more_up >= up - 1e-9).all()
        assert (more_down >= down - 1e-9).all()


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1_000))
def test_pvalues_rise_with_the_size_on_the_same_uniform_numbers(seed):
    """Not a theorem, for directions are weighed anew at every size: the curve enforces it. Here it
    holds up to what a draw or two of 99 can do."""
    run = IntervalRun(rows(500, seed, odds=1.6), None, 99, seed, "auto")
    sizes = np.linspace(1, 2, 9)
    scores, _ = run.run([nulls.Selection(float(size)) for size in sizes])
    pvalues = np.array([one.pvalue for one in scores])
    assert (np.diff(pvalues) > -0.03).all()


@pytest.fixture(scope="module")
def strict():
    return it.robustness(rows(1_500, odds=2.0), alpha=0.01, draws=999, rng=0)


def test_few_draws_for_the_curve_do_not_move_the_point_of_a_small_alpha(strict):
    """Two of the curve's 199 draws above the data are a p-value of 0.015."""
    sample = rows(1_500, odds=2.0)
    for kind in ("label_error", "false_positives", "tolerance"):
        tipping = strict.violation(kind)
        assert tipping.point > 0.09
        at = int(np.searchsorted(tipping.sizes, tipping.point))
        assert (tipping.pvalues[: at + 1] <= 0.01).all()
        assert (tipping.pvalues[at + 1 :] > 0.01).all()
        assert (np.diff(tipping.pvalues) >= 0).all()
        assert tipping.pvalue_at(tipping.point / 2) <= 0.01
    again = it.klce_test(sample, null=KINDS[kind].null(tipping.point), draws=999, rng=0)
    assert again.pvalue == tipping.pvalues[at]


def test_a_curve_below_the_point_says_no_more_than_the_point():
    search = Search("selection", KINDS["selection"], 0.01, {0: 0.001, 900: 0.008, 901: 0.02}, None)
    point = search.size(900)
    search.curve.update({500: 0.03, 1_500: 0.3})
    found = search.found()
    assert found.point == point
    np.testing.assert_array_equal(found.pvalues, [0.001, 0.008, 0.008, 0.02, 0.3])


def test_nothing_to_overturn_where_calibration_stands():
    calm = it.robustness(rows(500, seed=3), draws=99, rng=0)
    assert calm.pvalue > 0.05
    for tipping in calm.violations:
        assert (tipping.point, tipping.beyond, tipping.finding) == (None, False, None)
        assert (tipping.sizes.size, tipping.pvalues.size) == (1, 1)
        assert tipping.pvalue_at(tipping.neutral) == calm.pvalue
        assert tipping.pvalue_at(tipping.neutral + 0.1) == 1.0
        assert "nothing to overturn" in str(tipping)
    assert "nothing to overturn" in str(calm)


def test_too_few_draws_can_reject_nothing():
    few = it.robustness(rows(500, odds=3.0), draws=9, rng=0)
    assert few.pvalue == 0.1
    assert all(tipping.point is None for tipping in few.violations)


def test_impossible_labels_outlast_selection_but_not_errors():
    p, y = np.r_[0.0, np.full(200, 0.5)], np.r_[1, np.tile([0, 1], 100)]
    found = it.robustness(Sample(y, p, {"a": np.linspace(0, 1, 201)}), draws=99, rng=0)
    assert found.impossible == found.prudence.impossible == 1
    assert found.prudence.pvalue == 0.01
    assert found.violation("selection").beyond
    assert found.violation("false_negatives").beyond
    assert found.violation("selection").finding.name == "impossible labels"
    for kind in ("label_error", "false_positives", "tolerance"):
        assert found.violation(kind).point <= 0.05  # then one such label in one row is no surprise


def test_rows_in_files_give_the_same(tmp_path):
    table = columns(2_500, odds=1.6)
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    scan = it.scan(tmp_path / "rows.parquet", label="y", prob="p", on=["a", "b"])
    memory, files = (it.robustness(s, draws=99, rng=4) for s in (rows(2_500, odds=1.6), scan))
    assert [t.point for t in files.violations] == [t.point for t in memory.violations]
    assert files.prudence.pvalue == memory.prudence.pvalue
    for mine, other in zip(memory.violations, files.violations, strict=True):
        np.testing.assert_array_equal(mine.pvalues, other.pvalues)


def test_pvalues_between_sizes_are_those_of_the_next_one(found):
    tipping = found.violation("selection")
    assert tipping.pvalue_at(tipping.point) <= 0.05
    between = float(tipping.sizes[-2:].mean())
    assert tipping.pvalue_at(between) == tipping.pvalues[-1]
    assert tipping.pvalue_at(9.9) == 1.0
    with pytest.raises(InputError, match=r"size must be at least 1, not 0\.5"):
        tipping.pvalue_at(0.5)


def test_a_result_shows_itself(found):
    assert isinstance(found, Robustness)
    facts = found.to_dict()
    assert facts["violations"][0]["kind"] == "selection"
    assert facts["violations"][0]["finding"]["sentence"] == "the predictions are too low overall"
    assert "elapsed" not in facts
    assert [row["kind"] for row in found.to_arrow().to_pylist()] == list(KINDS)
    assert (
        found.violation("tolerance").to_arrow().num_rows == found.violation("tolerance").sizes.size
    )
    text = str(found)
    assert (
        "calibration is still rejected if the odds of a label are off by a factor of up to 1"
        in (" ".join(text.split()))
    )
    assert "a bias of at least 0.0" in text
    assert "sums of labels alone show that probabilities are too low somewhere (p = 0.005)" in (
        " ".join(text.split())
    )
    assert str(found.prudence).endswith("too low somewhere: p = 0.005")
    assert "that no probability" not in text
    assert "carried by the predictions are too low overall" in " ".join(text.split())
    for result in (found, found.prudence, *found.violations):
        assert result._repr_html_()
        assert repr(result).startswith("<")
        assert str(result)
    with pytest.raises(InputError, match="no kind of violation 'select'"):
        found.violation("select")


def test_what_cannot_be_promised_is_refused(tmp_path):
    sample = rows(60)
    clustered = Sample(sample.y, sample.p, {"a": sample.p}, cluster=np.repeat(range(20), 3))
    with pytest.raises(InputError, match="needs independent rows"):
        it.robustness(clustered, draws=9)
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    classes = it.MulticlassSample(probabilities.argmax(axis=1), probabilities, {"a": sample.p})
    table = {f"p_{k}": probabilities[:, k] for k in range(3)}
    table |= {"y": probabilities.argmax(axis=1), "a": sample.p}
    pq.write_table(pa.table(table), tmp_path / "classes.parquet")
    scan = it.scan(tmp_path / "classes.parquet", label="y", prob="p_*", on=["a"])
    for several in (classes, scan):
        with pytest.raises(InputError, match="one class at a time, with alpha divided by"):
            it.robustness(several, draws=9)
    with pytest.raises(InputError, match="alpha is the error that is allowed"):
        it.robustness(sample, alpha=0.6)
