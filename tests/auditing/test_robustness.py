"""What would overturn an audit: told where it can be, in line with the verdict, and disclosed."""

from dataclasses import replace

import numpy as np
import pytest

import itrust as it
from itrust import InputError
from itrust.auditing import Verdict, as_margins, check_json, gate
from itrust.auditing.overturning import DEPENDENT, MAX_ROWS, NOT_IN_SUMS, NOT_REJECTED
from itrust.render import gate_words, junit_xml
from itrust.render.text.overturning import overturning_sections, violation_sentence
from itrust.testing import assert_trustworthy

TASKS = ["prevalence()", "mean(age)", "prevalence() ~ 0.2"]
SETTINGS = {"draws": 99, "rng": 0, "charts": False, "validation": False, "progress": False}
KINDS = ("selection", "label_error", "false_positives", "false_negatives", "tolerance")


@pytest.fixture(scope="module")
def book():
    return it.simulate.credit_book(2_500, rng=2, selection=2.0).sample


@pytest.fixture(scope="module")
def found(book):
    return it.audit(book, TASKS, **SETTINGS)


@pytest.fixture(scope="module")
def calm():
    return it.audit(it.simulate.survey(600, rng=1, trustworthy=True).sample, TASKS, **SETTINGS)


def test_an_audit_tells_what_would_overturn_it(found):
    held = found.robustness
    assert held.untold is None
    assert tuple(own.kind for own in held.violations) == KINDS
    assert 1.3 < held.point("selection") < 2.0  # what clerks did
    assert [own.finding.value for own in held.numbers] == ["biased", "undecided", "safe to report"]
    assert held.numbers[0].flips.to_negative == 0
    lines = overturning_sections(found)[0].lines
    assert len(lines) == 1 + len(KINDS) + 1 + len(TASKS)
    assert lines[6] == "judged on all 1,657 rows with 99 draws"
    assert "What would overturn this" in str(found)


def test_the_section_is_that_of_robustness(book, found):
    alone = it.robustness(book, TASKS, draws=99, rng=0)
    for own, other in zip(found.robustness.violations, alone.violations, strict=True):
        np.testing.assert_array_equal(own.pvalues, other.pvalues)
        assert own.point == other.point
    points = [
        [tipping.point for tipping in number.tippings]
        for number in (*found.robustness.numbers, *alone.numbers)
    ]
    assert points[:3] == points[3:]


def test_the_section_changes_no_other_number(book, found):
    without = it.audit(book, TASKS, robustness=False, **SETTINGS)
    assert without.robustness is None
    assert "What would overturn this" not in str(without)
    one, other = found.to_dict(), without.to_dict()
    assert one.pop("robustness") is not None
    assert other.pop("robustness") is None
    assert one == other


def test_where_nothing_is_rejected_there_is_nothing_to_overturn(calm):
    assert not calm.judgement.refuted
    held = calm.robustness
    assert held.untold == NOT_REJECTED
    assert held.violations == ()
    assert held.draws == 0
    assert overturning_sections(calm)[0].lines[0] == NOT_REJECTED


def test_rows_of_clusters_say_why_nothing_is_told(book):
    clustered = it.Sample(
        book.y, book.p, {"age": book.column("age").values}, cluster=np.arange(book.n) // 4
    )
    audit = it.audit(clustered, ["prevalence()"], **SETTINGS)
    assert audit.judgement.refuted
    assert audit.robustness.untold == DEPENDENT
    assert audit.robustness.numbers[0].finding.value == "biased"
    assert audit.robustness.numbers[0].tipping("selection").point > 1.1
    assert "rows are not independent" in str(audit).replace("\n      ", " ")
    with pytest.raises(InputError, match="robust_to needs independent rows"):
        gate(audit, "any", {"odds": 1.1})
    numbers = gate(audit, "tasks", {"odds": 1.1})  # they have points of their own
    assert numbers.closed
    assert not gate(audit, "tasks", {"odds": 9.0}).closed


@pytest.fixture(scope="module")
def unsummed(found):
    """Evidence that sums of labels do not have: their part was not rejected."""
    held = replace(found.robustness, violations=(), prudence=None, untold=NOT_IN_SUMS)
    return replace(found, robustness=held)


def test_a_margin_that_cannot_be_judged_leaves_the_gate_closed(unsummed):
    told = gate(unsummed, "model", {"odds": 1.01})
    assert told.closed
    assert told.unjudged == NOT_IN_SUMS
    assert told.explained == ()
    assert [check.outcome for check in told.checks if check.key == "verdict"] == ["failed"]
    words = gate_words(told)
    assert words.startswith("gate closed")
    assert "survives odds off by a factor of 1.01 could not be judged: sums of labels" in words
    assert "could explain" not in words
    assert "also with" not in words
    assert gate(unsummed, "tasks", {"odds": 3.0}).unjudged is None


def test_kinds_are_looked_up_alike_and_refused_alike(found, unsummed):
    asked = (found.robustness.violation, found.robustness.point)
    for look_up in (*asked, found.robustness.numbers[0].tipping, unsummed.robustness.point):
        with pytest.raises(
            InputError, match=r"no kind of violation 'odds'; the kinds are .*select"
        ):
            look_up("odds")
    assert unsummed.robustness.point("selection") is None
    with pytest.raises(InputError, match="nothing is known of 'selection': sums of labels alone"):
        unsummed.robustness.violation("selection")
    with pytest.raises(InputError, match="nothing is known of 'selection': the number is withheld"):
        found.robustness.numbers[0].without_values(10).tipping("selection")


def test_point_curve_and_gate_agree_at_a_small_alpha(found):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1_500))
    p = 1 / (1 + np.exp(-a))
    sample = it.Sample(rng.random(1_500) < 2 * p / (1 + p), p, {"a": a, "b": b})
    strict = it.robustness(sample, alpha=0.01, draws=999, rng=0)
    held = replace(found.robustness, violations=strict.violations)
    audit = replace(found, alpha=0.01, robustness=held)
    for name, kind in (("label-error", "label_error"), ("tolerance", "tolerance")):
        tipping = audit.robustness.violation(kind)
        assert tipping.point > 0.05
        assert tipping.pvalue_at(tipping.point) <= 0.01
        assert gate(audit, "model", {name: tipping.point}).closed
        assert gate(audit, "model", {name: tipping.point / 2}).closed
        beyond = float(tipping.sizes[np.searchsorted(tipping.sizes, tipping.point) + 1])
        assert tipping.pvalue_at(beyond) > 0.01
        assert not gate(audit, "model", {name: beyond}).closed


@pytest.mark.slow
def test_many_rows_are_judged_by_random_ones_of_them():
    n = MAX_ROWS + 5_000
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.7, n)
    sample = it.Sample(rng.random(n) < p + 0.08, p, {"x": rng.normal(size=n)})
    audit = it.audit(sample, ["prevalence()"], **SETTINGS)
    assert audit.robustness.rows == MAX_ROWS
    lines = overturning_sections(audit)[0].lines
    assert lines[6] == "judged on 20,000 random rows of 25,000 with 99 draws"
    assert audit.robustness.numbers[0].flips is not None  # all rows are at hand
    assert audit.robustness.point("tolerance") == pytest.approx(0.07, abs=0.012)


def test_json_keeps_to_its_schema(found, calm):
    for audit in (found, calm, found.disclosed(50)):
        facts = audit.to_dict()
        check_json(facts)
        assert len(facts["robustness"]["numbers"]) == len(TASKS)
        assert all(own["sentence"] for own in facts["robustness"]["numbers"])


def test_disclosure_takes_findings_and_numbers_of_few_rows_out():
    rng = np.random.default_rng(5)
    n = 1_500
    group = np.where(np.arange(n) < 7, "rare", rng.choice(["a", "b"], n))
    p = rng.uniform(0.3, 0.6, n)
    y = rng.random(n) < np.where(group == "rare", 1.0, p + 0.12)
    sample = it.Sample(y, p, {"group": group})
    audit = it.audit(sample, ['prevalence(group == "rare")', "prevalence()"], **SETTINGS)
    shown = audit.disclosed(10)
    assert [own.finding.value for own in shown.robustness.numbers] == ["withheld", "biased"]
    assert shown.robustness.numbers[0].tippings == ()
    facts = shown.to_dict()["robustness"]
    assert facts["numbers"][0]["bias"] is None
    assert facts["numbers"][0]["flips"] is None
    assert "rare" not in str(facts["violations"]) + str(facts["prudence"])
    assert shown.robustness.point("selection") == audit.robustness.point("selection")


@pytest.mark.parametrize(
    ("verdict", "point", "says"),
    [
        (Verdict.MISCALIBRATED, 0.03, "what the verdict's evidence shows"),
        (Verdict.MISCALIBRATED, 0.08, "by the test alone"),
        (Verdict.SIZE_NOT_ESTABLISHED, 0.08, "in no place that can be named"),
        (Verdict.WITHIN_TOLERANCE, 0.08, "nearly all lie within 0.05"),
        (Verdict.WITHIN_TOLERANCE, 0.02, "by the test alone"),
        (Verdict.MISCALIBRATED, 0.0, "shows no size"),
    ],
)
def test_the_tolerance_does_not_contradict_the_verdict(found, verdict, point, says):
    tipping = replace(found.robustness.violation("tolerance"), point=point)
    audit = replace(found, judgement=replace(found.judgement, verdict=verdict))
    assert says in violation_sentence(tipping, audit)


def test_the_gate_closes_only_if_evidence_survives(found):
    point = found.robustness.point("selection")
    number = found.robustness.numbers[0].tipping("selection").point
    assert gate(found, "any").closed
    held = gate(found, "any", {"odds": min(point, number) - 0.01})
    assert held.closed
    assert held.spared == ()
    assert "also with odds off by a factor" in gate_words(held)
    assert {check.outcome for check in held.checks} >= {"failed"}
    spared = gate(found, "any", {"odds": max(point, number) + 0.01})
    assert not spared.closed
    assert spared.explained == (("odds", max(point, number) + 0.01),)
    assert spared.spared == ("prevalence()",)
    assert "could explain that" in gate_words(spared)
    outcomes = [(check.key, check.outcome, bool(check.explained)) for check in spared.checks]
    overturned = [(key, "skipped", True) for key in ("verdict", "overall", "test")]
    assert outcomes[:3] == overturned
    assert [own[1:] for own in outcomes[4:]] == [
        ("skipped", True),  # biased, but for the margin
        ("skipped", False),  # undecided
        ("passed", False),
    ]
    said = junit_xml(found, "rows", "any", {"odds": max(point, number) + 0.01})
    assert said.count("does not close the gate, as odds off by a factor of") == 4


def test_evidence_has_to_survive_every_margin(found):
    small = {"odds": 1.05, "label-error": 0.01}
    assert gate(found, "any", small).closed
    assert not gate(found, "any", small | {"tolerance": 0.4}).closed
    assert gate(found, "tasks", {"odds": 1.05}).closed
    assert not gate(found, "tasks", {"odds": 3.0}).closed
    assert "1 number is biased, which odds" in gate_words(gate(found, "tasks", {"odds": 3.0}))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"odd": 1.2}, "no margin 'odd'.*did you mean 'odds'"),
        ({"odds": 1.0}, "odds must be above 1"),
        ({"odds": "many"}, "odds must be above 1"),
        ({"label_error": 1.2}, "label-error must be above 0 and below 1"),
        ({}, "must name margins"),
        ("odds:1.2", "must name margins"),
    ],
)
def test_odd_margins_are_refused(asked, says):
    with pytest.raises(InputError, match=says):
        as_margins(asked)


def test_margins_need_what_was_left_out_and_sizes_that_were_looked_at(book, found):
    without = it.audit(book, robustness=False, **SETTINGS)
    with pytest.raises(InputError, match="left out"):
        gate(without, "any", {"odds": 1.2})
    with pytest.raises(InputError, match="odds is looked at up to 10, not 20"):
        gate(found, "any", {"odds": 20.0})


def test_an_assertion_takes_margins(book):
    with pytest.raises(AssertionError, match=r"also with odds off by a factor of 1\.05"):
        assert_trustworthy(book, robust_to={"odds": 1.05}, draws=79)
    assert assert_trustworthy(book, robust_to={"odds": 3.0}, draws=79).verdict.closes_gate
    with pytest.raises(InputError, match="leave one of them out"):
        assert_trustworthy(book, robust_to={"odds": 2.0}, require="no evidence against")
