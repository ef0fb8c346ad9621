"""The audit: every row of the verdict table, and numbers that are those of its parts."""

import json
from dataclasses import replace

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust._core import InputError
from itrust.auditing import (
    BELOW_MATERIAL,
    NO_EVIDENCE,
    NOT_ENOUGH,
    SIZE_UNCLEAR,
    UNTRUSTWORTHY,
    Audit,
)
from itrust.auditing.verdict import verdict_on


@pytest.fixture(scope="module")
def audit() -> Audit:
    sample = it.simulate.survey(3_000, rng=1).sample
    gap = 'mean(age | region == "south") - mean(age | region == "west")'
    return it.audit(sample, [gap, tasks.prevalence(region="south")], draws=199, rng=0)


def verdict(audit: Audit, **changes):
    parts = {
        "test": audit.competency,
        "bias": audit.diagnosis.bias,
        "slices": audit.diagnosis.slices,
        "detectable": audit.confidence.detectable,
        "tasks": audit.tasks,
        "alpha": 0.05,
        "tolerance": 0.05,
        **changes,
    }
    return verdict_on(**parts)


def test_a_wrong_model_is_untrustworthy_and_why(audit):
    assert audit.verdict.name == UNTRUSTWORTHY
    assert not audit.verdict.trustworthy
    assert "cannot be trusted" in audit.verdict.sentence
    assert "given income, age and region" in audit.verdict.sentence
    assert any("region" in told for told in audit.verdict.carried_by)


def test_every_row_of_the_table(audit):
    assert verdict(audit, tolerance=0.99).name == BELOW_MATERIAL
    worst = np.nanmax(np.abs([audit.diagnosis.bias.band.lower, audit.diagnosis.bias.band.upper]))
    shown = verdict(audit, tolerance=float(worst) - 0.02)
    assert shown.name == SIZE_UNCLEAR
    right = it.simulate.survey(3_000, rng=1, trustworthy=True).sample
    test = it.klce_test(right, draws=199, rng=0)
    assert test.pvalue > 0.05
    assert verdict(audit, test=test, tasks=(), tolerance=0.05).name == NOT_ENOUGH
    assert verdict(audit, test=test, tasks=(), tolerance=0.5).name == NO_EVIDENCE
    assert verdict(audit, test=test, tasks=(), tolerance=0.5, detectable=None).name == NOT_ENOUGH
    clustered = replace(test, clusters=30)  # rows count for less than was reckoned with
    assert verdict(audit, test=clustered, tasks=(), tolerance=0.5).name == NOT_ENOUGH
    off = verdict(audit, test=test, tolerance=0.5)
    assert off.name == NO_EVIDENCE
    assert "One number is off all the same: mean(age" in off.sentence
    gap = replace(audit.tasks[0], task=audit.tasks[0].task.matters_at(2.0))
    alone = verdict(audit, test=test, tasks=[gap], tolerance=0.5)
    assert alone.name == UNTRUSTWORTHY
    assert alone.sentence.startswith("These probabilities cannot be trusted for mean(age")


def test_impossible_labels_alone_are_enough(audit):
    test = replace(audit.competency, impossible=3)
    found = verdict(audit, test=test, tolerance=0.99)
    assert found.name == UNTRUSTWORTHY
    assert "3 labels that the model called impossible came true" in found.sentence


def test_a_task_can_carry_the_verdict(audit):
    gap = audit.tasks[0]
    matters = replace(gap, task=gap.task.matters_at(2.0))
    found = verdict(audit, tolerance=0.9, tasks=[matters])
    assert found.name == UNTRUSTWORTHY
    assert "mean(age" in found.sentence
    assert verdict(audit, tolerance=0.99, tasks=[gap]).name == BELOW_MATERIAL


def test_parts_are_those_of_their_own_functions(audit):
    sample = audit.sample
    assert audit.competency.pvalue == it.klce_test(sample, draws=199, rng=0).pvalue
    assert audit.reliance.brier == it.scores.brier(sample)
    assert audit.diagnosis.slices.slices == it.bias_slices(sample, draws=199, rng=0).slices
    assert [group.name for group in audit.diagnosis.groups] == [
        "region = north",
        "region = south",
        "region = west",
    ]
    alone = audit.tasks[1].task.evaluate(sample, draws=199, rng=0)
    assert audit.tasks[1].unadjusted_pvalue == alone.unadjusted_pvalue
    assert audit.tasks[1].pvalue >= alone.pvalue


def test_json_has_what_is_promised(audit):
    text = json.dumps(audit.to_dict(), allow_nan=False)
    found = json.loads(text)
    assert found["schema"] == "itrust-audit/1"
    for name in ("n", "statistic", "pvalue", "verdict", "seed", "version", "sentence", "tasks"):
        assert name in found
    assert found["verdict"] == audit.verdict.name
    assert found["tasks"][0]["bias"] == pytest.approx(audit.tasks[0].bias)


def test_the_frame_has_one_row_a_finding(audit):
    rows = audit.to_arrow().to_pylist()
    parts = {row["part"] for row in rows}
    known = {"verdict", "reliance", "competency", "finding", "group", "slice", "task"}
    assert parts == known
    (gap, rate) = [row for row in rows if row["part"] == "task"]
    assert gap["value"] == pytest.approx(audit.tasks[0].bias)
    assert gap["says"] == "biased"
    assert rate["name"] == 'prevalence(region == "south")'


def test_print_begins_with_the_verdict(audit):
    text = str(audit)
    assert text.startswith("VERDICT  untrustworthy\n")
    assert "mean(age | region" in text
    assert "positive: the model underestimates" in text
    assert max(map(len, text.splitlines())) <= 140
    assert "age: trend where region" in text  # what is wrong


def test_tasks_outside_the_judged_covariates_are_told():
    sample = it.simulate.survey(800, rng=1).sample
    found = it.audit(sample, ["mean(age)"], on=["region"], draws=79, rng=0)
    assert found.competency.names == ("region",)
    assert found.tasks[0].uncovered == ("age",)
    assert "depends on age, which the audit did not judge" in str(found)


def test_no_covariates_and_hard_predictions_are_no_trouble():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 400)
    bare = it.audit(it.Sample(rng.random(400) < p, p), draws=79, rng=0)
    assert bare.diagnosis.groups is None
    assert bare.verdict.name in (NOT_ENOUGH, NO_EVIDENCE)
    hard = it.audit(it.Sample(rng.random(300) < 0.5, (p[:300] > 0.5) * 1.0), draws=79, rng=0)
    assert hard.verdict.name == UNTRUSTWORTHY
    assert hard.confidence.detectable is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tasks": ["mean(agee)"]}, "there is no covariate 'agee'"),
        ({"tasks": ["mean(age"]}, "expected '\\)'"),
        ({"tasks": 3}, "tasks are a list such as"),
        ({"tasks": [3]}, "a task is made with"),
        ({"tolerance": 2}, "tolerance must lie between 0 and 1"),
        ({"alpha": 0.9}, "alpha is the error that is allowed"),
        ({"on": ["agee"]}, "there is no covariate 'agee'"),
        ({"draws": 10}, "cannot be reached with 10 draws"),
    ],
)
def test_everything_is_validated_before_anything_costly(settings, message, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("costly work began")

    monkeypatch.setattr("itrust.auditing.audits.klce_test", refuse)
    with pytest.raises(InputError, match=message):
        it.audit(it.simulate.survey(100, rng=0).sample, **settings)


def test_the_verdict_on_a_right_model_is_seldom_untrustworthy():
    wrong = 0
    for run in range(12):
        town = it.simulate.survey(400, rng=run, trustworthy=True).sample
        found = it.audit(town, draws=79, rng=run).verdict.name
        wrong += found in (UNTRUSTWORTHY, SIZE_UNCLEAR, BELOW_MATERIAL)
    assert wrong <= 3  # .05 of 12 is .6; 4 or more has probability .0022


def test_a_dozen_rows_are_not_oversold():
    sample = it.simulate.survey(12, rng=0).sample
    found = it.audit(sample, draws=79, rng=0)
    assert found.verdict.name == NOT_ENOUGH
    assert "no bias below 0.5 would be seen: too few rows" in str(found)


def test_two_rows_with_a_constant_column_are_an_audit_too():
    sample = it.Sample([0, 1], [0.2, 0.7], {"x": [1, 2], "c": ["a", "a"]})
    found = it.audit(sample, ["prevalence()"], draws=79, rng=0)
    assert found.verdict.name == NOT_ENOUGH
    assert len(found.diagnosis.slices) == 0
    json.dumps(found.to_dict(), allow_nan=False)
