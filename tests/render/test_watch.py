"""A watch on every surface: the same values, no fingerprints of rows, any number of batches."""

import json
import math
import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust import render
from itrust._core import InputError
from itrust.auditing import Provenance, watch_checks
from itrust.render import as_html, as_text
from itrust.render.page import facts_of, pictures_of
from itrust.render.page import page as watch_page
from itrust.render.text.watch import ends_text, evidence_text
from itrust.tasks import TaskFinding
from itrust.watch import Waiting, Watch, WatchReport, number_finding, watch_report

PLANTED = "</script><script>window.pwned=1</script>"
ROWS, DRIFT, WEEKS = 200, 5, 10


def sample(seed: int, shift: float = 0.0, n: int = ROWS) -> it.Sample:
    rng = np.random.default_rng(seed)
    p, planted = rng.uniform(0.2, 0.7, n), rng.random(n) < 0.4
    y = rng.random(n) < np.clip(p + shift * planted, 0, 1)
    return it.Sample(
        y, p, {"age": rng.uniform(20, 80, n), "where": np.where(planted, PLANTED, "b")}
    )


@pytest.fixture(scope="module")
def started() -> Watch:
    return it.Watch.start(sample(0, n=1_000), ["mean(age)", "prevalence() ~ 0.2"])


@pytest.fixture(scope="module")
def watch(started) -> Watch:
    found = started
    for week in range(1, WEEKS + 1):
        found = found.update(sample(week, 0.28 * (week > DRIFT)), name=f"week {week}")
    return found


@pytest.fixture(scope="module")
def report(watch) -> WatchReport:
    made = Provenance("itrust watch update <a>", "week.csv", title="<b>Model")
    return watch_report(
        watch, min_cell=10, waiting=[Waiting("w", 7, "2024-01-01")], provenance=made
    )


def many(report: WatchReport, batches: int) -> WatchReport:
    """The same with as many batches, in two segments, and evidence that is not to be drawn."""
    logs = np.cumsum(np.random.default_rng(0).normal(0, 0.3, batches))
    first = report.history[0]
    history = tuple(
        replace(first, number=k + 1, segment=int(k >= batches // 2), log_evalue=float(own))
        for k, own in enumerate(logs)
    )
    history = (*history[:-1], replace(history[-1], raised=True))
    old = replace(report.segments[0], batches=batches // 2)
    new = replace(old, number=1, first=batches // 2 + 1, name="v2")
    return replace(report, history=history, segments=(old, new))


def test_all_surfaces_tell_the_alarm_and_where_it_is(report):
    assert report.alarm
    surfaces = [
        as_text(report),
        as_text(report, 40),
        as_html(report),
        watch_page(report),
        render.watch_markdown(report, "week.csv"),
        render.watch_junit_xml(report, "week.csv"),
        json.dumps(report.to_dict(), allow_nan=False),
    ]
    for told in surfaces:
        assert "since batch" in " ".join(told.split())
        assert "too low where where =" in " ".join(told.split())
    assert max(map(len, as_text(report, 40).splitlines())) <= 40


def test_nothing_planted_gets_into_a_page_or_a_summary(report):
    for told in (watch_page(report), as_html(report), render.watch_markdown(report, "x")):
        assert "<script>window" not in told
    assert "<b>Model" not in watch_page(report)


def test_no_surface_shows_a_fingerprint(watch, report):
    kept = [record.digest for record in watch.history]
    kept += [part.reference_digest for part in watch.segments]
    for told in (json.dumps(report.to_dict()), watch_page(report), as_html(report), str(report)):
        assert not [digest for digest in kept if digest in told]


def test_marked_numbers_of_the_page_are_those_of_the_report(report):
    facts, page = report.to_dict(), watch_page(report)
    last = facts["history"][-1]
    assert f'data-fact="history.{WEEKS - 1}.mean_label" value="{last["mean_label"]!r}"' in page
    assert f'data-fact="checks" value="{facts["checks"]}"' in page


@pytest.mark.parametrize("batches", [1, 2, 61, 1_000])
def test_pages_and_figures_of_any_number_of_batches(report, batches):
    shown = many(report, batches)
    (told,) = pictures_of(facts_of(shown))["evidence"].sets[0]["parts"]
    digits = [max(own.log_evalue / math.log(10), -2) for own in shown.history]
    assert [own["y"] for own in told["points"]] == pytest.approx(digits)
    assert told["breaks"] == [batches // 2 + 0.5]
    page = watch_page(shown)
    assert len(re.findall(r'data-fact="history.\d+.rows"', page)) == min(batches, 100)
    assert len(page) < 1_400_000
    display = shown.plot()
    assert len(display.axes_) == 2
    plt.close("all")


def test_before_the_first_batch(started):
    assert "nothing has been watched yet" in str(started)
    assert "There is no batch yet" in watch_page(started)
    assert "no rows yet" in str(started)
    assert started.plot().ax_.get_ylabel().startswith("evidence")
    plt.close("all")


@given(st.floats(-50, 2_000))
def test_evidence_is_told_by_a_number_of_the_same_size(log_evalue):
    told = evidence_text(log_evalue)
    if told == "below 0.01":
        assert log_evalue < math.log(0.01)
        return
    digits = math.log10(float(told.replace(",", ""))) if "e+" not in told else None
    if digits is None:
        front, exponent = told.split("e+")
        digits = math.log10(float(front)) + int(exponent)
    assert digits == pytest.approx(log_evalue / math.log(10), abs=0.03)


def test_infinite_evidence_is_told_and_drawn(started):
    rows = sample(99)
    p = rows.p.copy()
    p[np.flatnonzero(rows.y == 1)[0]] = 0.0
    x = {c.name: np.take(c.levels, c.values) if c.is_category else c.values for c in rows.columns}
    found = started.update(it.Sample(rows.y, p, x))
    told = as_text(found)
    assert found.alarm
    assert "1 label occurred that the model had given probability 0" in " ".join(told.split())
    assert json.loads(json.dumps(watch_report(found).to_dict()))["log_evalue"] == "infinite"
    assert "infinite" in watch_page(found)
    found.plot()
    plt.close("all")


def test_small_batches_tell_neither_means_nor_evidence(started):
    found = started.update(sample(1, n=5)).update(sample(2))
    shown = watch_report(found, min_cell=10)
    first, second = shown.history
    assert np.isnan([first.mean_label, first.mean_prediction, first.log_evalue]).all()
    assert second.log_evalue == pytest.approx(found.history[1].log_evalue, rel=1e-2)
    assert not any(math.isnan(own.lower) for own in shown.numbers)
    assert len(shown.levels) == len(found.levels())
    assert shown.withheld == 1
    assert "too few to be shown" in str(shown)
    assert "withheld: 1 of the batches" in watch_page(shown)
    assert shown.to_dict()["history"][0]["mean_label"] is None
    assert watch_report(found).withheld == 0


def test_levels_are_sums_of_residuals_by_hand(watch):
    parts = [sample(week, 0.28 * (week > DRIFT)) for week in range(1, WEEKS + 1)]
    residuals = np.concatenate([part.y - part.p for part in parts])
    spread = np.concatenate([part.p * (1 - part.p) for part in parts])
    levels = watch.levels()
    assert levels[0].excess == pytest.approx(residuals.sum(), rel=1e-4)
    assert levels[0].chance == pytest.approx(np.sqrt(spread.sum()), rel=1e-4)
    own = next(level for level in levels if PLANTED in str(level.where))
    held = np.concatenate([own.where.rows(part.points) for part in parts])
    assert own.excess == pytest.approx(residuals[held].sum(), rel=1e-4)


def is_closed(report, asked="any"):
    return any(check.outcome == "failed" for check in watch_checks(report, asked))


def test_the_gate_asks_for_alarms_and_numbers(report):
    assert is_closed(report)
    assert is_closed(report, "model")
    calm = replace(report, alarm=False)
    biased = [number_finding(own) is TaskFinding.BIASED for own in report.numbers]
    assert not is_closed(calm, "model")
    assert is_closed(calm) is any(biased)
    skipped = watch_checks(report, "tasks")[0]
    assert skipped.outcome == "skipped"
    with pytest.raises(InputError, match="asked"):
        watch_checks(report, "everything")
    suite = Xml.fromstring(render.watch_junit_xml(report, "x", asked="model"))
    assert suite.get("failures") == "1"


@pytest.mark.parametrize(
    ("ends", "tolerance", "found"),
    [
        ((0.01, 0.02), None, TaskFinding.BIASED),
        ((-0.01, 0.02), None, TaskFinding.UNDECIDED),
        ((-0.01, 0.02), 0.05, TaskFinding.SAFE),
        ((0.06, 0.09), 0.05, TaskFinding.BIASED),
        ((0.04, 0.09), 0.05, TaskFinding.UNDECIDED),
        ((-math.inf, math.inf), 0.05, TaskFinding.UNDECIDED),
        ((math.nan, math.nan), None, TaskFinding.WITHHELD),
    ],
)
def test_findings_of_numbers_follow_interval_and_tolerance(report, ends, tolerance, found):
    task = it.tasks.mean("age")
    task = task if tolerance is None else task.matters_at(tolerance)
    own = replace(report.numbers[0], task=task, lower=ends[0], upper=ends[1])
    assert number_finding(own) is found


@given(st.floats(-0.3, 0.3), st.floats(1e-3, 0.3), st.sampled_from([0.01, 0.05, 0.1]))
def test_ends_are_told_on_their_side_of_the_tolerance(lower, width, tolerance):
    ends = lower, lower + width
    for end, text in zip(ends, ends_text(*ends, tolerance), strict=True):
        told = abs(float(text))
        if abs(abs(end) - tolerance) > 1e-9:
            assert (told < tolerance) is (abs(end) < tolerance)
            assert (told > tolerance) is (abs(end) > tolerance)
        assert told == pytest.approx(abs(end), abs=0.06 * width)


def test_a_bound_that_is_not_reached_does_not_read_as_if_it_were(report):
    task = it.tasks.prevalence().matters_at(0.05)
    own = replace(report.numbers[0], task=task, lower=0.0481, upper=0.18)
    assert "not that it reaches 0.05" in str(own)
    assert "+0.048 to +0.180" in str(own)
    shown = replace(report, numbers=(own,))
    assert "+0.048 to +0.180" in watch_page(shown)
    assert "each number has an error of its own" in watch_page(shown)


def test_words_of_the_promise(started, report):
    assert "ever raises an alarm" in str(report)
    with_bias = replace(report, tolerance=0.03)
    assert "never has a local bias above 0.03" in " ".join(str(with_bias).split())
    length = it.Watch.start(sample(0, n=1_000), promise="run length")
    assert "20 batches or more on average" in " ".join(str(length).split())
    assert "no p-value" not in str(length)
    assert str(started).startswith("WATCH: started")


def test_parts_of_a_watch_show_themselves(watch):
    parts = [watch.since, watch.findings()[0], *watch.tasks, watch.history[-1], watch.segments[0]]
    parts += [*watch.levels()[:2], watch]
    for part in parts:
        assert str(part)
        assert as_html(part).startswith("<div")
    assert watch.plot().ax_.get_ylabel() == "evidence (log scale)"
    plt.close("all")


def test_a_page_is_not_made_of_another_dict():
    with pytest.raises(InputError, match="a Watch or its report"):
        watch_page({"schema": "itrust-audit/4"})


def test_advice_after_an_alarm_ends_with_the_alarm_once_the_evidence_has_fallen(report):
    raised = next(r.number for r in report.history if r.raised)
    first = report.since.batch
    assert raised < report.history[-1].number

    def advice(log_evalue):
        return replace(report, log_evalue=log_evalue).to_dict()["words"]["action"]

    to_the_alarm = f"batch {first} 'week {first}' to batch {raised} 'week {raised}' (which raised"
    assert f"to batch {WEEKS} 'week {WEEKS}', and" in advice(report.log_line)
    assert f"{to_the_alarm} the alarm; the evidence has fallen below 20 since then)" in advice(0.0)
    assert f"{to_the_alarm} the alarm)" in advice(math.nan)  # the last batch is withheld


def plain(seed: int, bias: float = 0.0, n: int = 60, impossible: int = 0) -> it.Sample:
    """Rows without covariates, some of them with a label of probability 0."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p + bias
    p[np.flatnonzero(y)[:impossible]] = 0.0
    return it.Sample(y, p)


def told(watch: Watch) -> str:
    return " ".join(str(watch).split())


def test_an_impossible_label_is_told_of_the_stretch_that_it_lies_in():
    watch = it.Watch.start(plain(0, n=200), promise="run length").update(plain(1, impossible=2))
    assert "2 labels occurred that the model had given probability 0" in told(watch)
    after = watch.update(plain(2)).update(plain(3))
    assert after.impossible == watch_report(after).impossible == 0
    sentence = "after 2 batches with 120 rows (since the alarm at batch 1) the evidence against"
    assert sentence in told(after)
    for seed in range(4, 12):
        after = after.update(plain(seed, 0.3))
        if after.alarm:
            break
    assert after.since.batch > 1
    assert words_of(after)["sentence"].endswith(words_of(after)["since"])
    ever = it.Watch.start(plain(0, n=200)).update(plain(1, impossible=1)).update(plain(2))
    assert (ever.impossible, ever.alarm) == (1, True)


def words_of(watch: Watch) -> dict:
    return watch_report(watch).to_dict()["words"]


def test_a_new_model_is_told_by_its_own_batches():
    old = it.Watch.start(plain(0, n=200)).update(plain(1)).update(plain(2))
    fresh = old.new_model(plain(3, n=200))
    assert told(fresh).startswith("WATCH: new model: no batch yet no batch of this model yet")
    assert "(earlier models had 2 batches with 120 rows); an alarm is raised" in told(fresh)
    one = fresh.update(plain(4, n=50))
    assert "after 1 batch with 50 rows (earlier models had 2 batches with 120 rows)" in told(one)
    assert (watch_report(one).batches, watch_report(one).rows) == (3, 170)


def test_a_level_that_is_called_everywhere_is_not_taken_for_all_rows():
    rng = np.random.default_rng(0)
    where = np.where(rng.random(200) < 0.5, "everywhere", "here")
    rows = it.Sample(rng.random(200) < 0.5, np.full(200, 0.5), {"place": where})
    watch = it.Watch.start(rows.take(np.arange(100))).update(rows.take(np.arange(100, 200)))
    facts = watch_report(watch).to_dict()["levels"]
    assert [own["family"] for own in facts] == ["overall", "levels", "levels"]
    shown = [own["title"] for own in facts_of(watch)["levels"]]
    assert shown.count("all rows") == 1
