"""What a report of a watch withholds: nothing of it tells the labels of a few rows."""

import json
import math

import numpy as np
import pytest

import itrust as it
from itrust.tasks import TaskFinding
from itrust.watch import number_finding, watch_report
from watch_rows import make_rows

TASKS = [
    "prevalence(g == 'b')",
    "prevalence(g == 'a')",
    "prevalence()",
    "mean(age)",
    "share(g == 'b')",
    "mean(age | g == 'b')",
]


def sample(seed, n, few=None, y=None):
    """Rows of two groups; with `few` so many of the second one."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    g = np.where(rng.random(n) < 0.5, "a", "b")
    if few is not None:
        g = np.where(np.arange(n) < few, "b", "a")
    own = rng.random(n) < p if y is None else y
    return it.Sample(own, p, {"g": g, "age": rng.normal(40, 10, n)})


@pytest.fixture(scope="module")
def begun():
    return it.Watch.start(sample(0, 500), TASKS)


def told(report):
    return {
        str(own.task): number_finding(own) is not TaskFinding.WITHHELD for own in report.numbers
    }


def test_a_number_of_one_row_is_withheld_and_so_is_what_leaves_it(begun):
    watch = begun.update(sample(1, 60, few=1))
    found = told(watch_report(watch, min_cell=10))
    assert [name for name, own in found.items() if own] == ["prevalence()", "mean(age)"]
    assert all(told(watch_report(watch)).values())
    enough = begun.update(sample(2, 200, few=100))
    assert all(told(watch_report(enough, min_cell=10)).values())


def test_numbers_among_few_positives_are_withheld(begun):
    watch = begun.update(sample(1, 60, y=np.arange(60) < 4))
    found = told(watch_report(watch, min_cell=10))
    assert found["prevalence()"]
    assert not found["mean(age)"]


def test_levels_of_one_row_are_withheld_and_others_are_noisy(begun):
    watch = begun.update(sample(1, 60, few=1))
    shown, whole = watch_report(watch, min_cell=10).levels, watch_report(watch).levels
    assert {own.rows for own in whole} == {60, 59, 1}
    assert [str(own.where) for own in shown] == ["everywhere", "g = a"]
    for own, exact in zip(shown, whole, strict=False):
        assert 0 < abs(own.excess - exact.excess) <= 4
        assert abs(own.rows - exact.rows) <= 4


def test_the_same_batches_show_the_same_noise(begun):
    watch = begun.update(sample(1, 200))
    (one,), (other,) = (watch_report(watch, min_cell=least).history for least in (5, 20))
    exact = watch.history[0]
    assert one.mean_label == other.mean_label != exact.mean_label
    assert abs(one.mean_label - exact.mean_label) <= 0.01
    later = watch_report(watch.update(sample(2, 200)), min_cell=5)
    assert later.history[0] == one


def test_a_small_batch_tells_nothing_but_that_it_was(begun):
    watch = begun.update(sample(1, 5))
    shown = watch_report(watch, min_cell=10)
    assert math.isnan(shown.log_evalue)
    assert math.isnan(shown.log_peak)
    assert (shown.pvalue, shown.levels, shown.findings) == (None, (), ())
    assert not any(told(shown).values())
    facts = json.loads(json.dumps(shown.to_dict(), allow_nan=False))
    assert facts["log_evalue"] is None
    assert "withheld, since the last batch has fewer than 10 rows" in " ".join(str(shown).split())
    more = watch_report(watch.update(sample(2, 6)).update(sample(3, 80)), min_cell=10)
    assert more.levels  # eleven rows of small batches may be told together
    assert told(more)["prevalence()"]


def test_an_alarm_of_a_small_batch_is_told_without_its_evidence(begun):
    p = np.array([0.0, 0.5, 0.5, 0.5, 0.5])
    rows = it.Sample([1, 0, 1, 0, 1], p, {"g": ["a", "b", "a", "b", "a"], "age": [1.0, 2, 3, 4, 5]})
    shown = watch_report(begun.update(rows), min_cell=10)
    assert shown.alarm
    assert shown.impossible == 0
    assert math.isnan(next(r for r in shown.history if r.raised).log_evalue)
    assert "infinite" not in json.dumps(shown.to_dict())


def test_findings_and_their_names_need_enough_rows():
    rng = np.random.default_rng(0)
    g = np.where(np.arange(600) % 3 == 0, "b", "a")
    reference = it.Sample(rng.random(600) < 0.5, np.full(600, 0.5), {"g": g})
    watch = it.Watch.start(reference)
    y = np.r_[np.arange(200) % 2, np.ones(30)]
    p = np.r_[np.full(200, 0.5), np.full(30, 0.02)]
    watch = watch.update(it.Sample(y, p, {"g": ["a"] * 200 + ["b"] * 30}))
    assert watch.since.check == "g = b"
    assert {own.rows for own in watch.findings() if own.name == "g = b"} == {30}
    few, enough = watch_report(watch, min_cell=31), watch_report(watch, min_cell=30)
    assert "g = b" not in json.dumps(few.to_dict())
    assert "g = b" in json.dumps(enough.to_dict())
    assert few.alarm
    assert few.since.batch == 1


def test_before_the_first_batch_nothing_is_withheld(begun):
    for own in begun.tasks:
        assert (own.lower, own.upper, own.smallest_cell) == (-math.inf, math.inf, 0)
    shown = watch_report(begun, min_cell=10)
    assert shown.withheld == 0
    facts = shown.to_dict()["numbers"]
    assert {own["finding"] for own in facts} == {"undecided"}
    assert {own["lower"] for own in facts} == {None}


def test_counts_of_rows_are_kept_in_the_file(begun, tmp_path):
    watch = begun.update(sample(1, 60, few=1))
    again = it.Watch.load(watch.save(tmp_path / "w.json"))
    shown, same = (watch_report(own, min_cell=10).to_dict() for own in (watch, again))
    assert shown == same


def test_rows_of_weight_nothing_carry_no_number():
    reference = make_rows(1, 200, weights=np.ones(200))
    watch = it.Watch.start(reference, ["prevalence()"])
    watch = watch.update(make_rows(2, 60, weights=np.r_[np.ones(4), np.zeros(56)]))
    assert watch.tasks[0].smallest_cell == 4
