"""The audit: every row of the verdict table, and numbers that are those of its parts."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

import itrust as it
from itrust import tasks
from itrust._core import InputError
from itrust.auditing import Audit, ImpossibleLabels, Verdict, parts
from itrust.auditing.measuring import AuditDraws, unsettled
from itrust.auditing.parts import Diagnosis
from itrust.auditing.verdict import judge
from itrust.bias import near_end
from itrust.calibration import Finding, Refusal
from itrust.render import as_text, sentence_of
from itrust.render.page import page


@pytest.fixture(scope="module")
def audit() -> Audit:
    sample = it.simulate.survey(3_000, rng=1).sample
    gap = 'mean(age | region == "south") - mean(age | region == "west")'
    return it.audit(sample, [gap, tasks.prevalence(region="south")], draws=199, rng=0, charts=False)


def verdict(audit: Audit, **changes):
    part = {name: changes.pop(name) for name in ("mean", "diagnosis") if name in changes}
    settings = {
        "test": audit.test,
        "missed": audit.missed,
        "tasks": audit.tasks,
        "alpha": 0.05,
        "tolerance": 0.05,
        **changes,
    }
    parts = [replace(audit.parts[0], test=settings["test"], **part)]
    return judge(parts=parts, **settings)


def silent(audit: Audit):
    """A diagnosis in which nothing is shown."""
    quiet = replace(audit.diagnosis, groups=None)
    return replace(quiet, slices=replace(quiet.slices, slices=()), bias=narrow(quiet.bias, 1.0))


def narrow(bias, factor):
    """A local bias whose band has another width, and which shows nothing."""
    ends = {side: factor * getattr(bias.band, side) for side in ("lower", "upper")}
    ends["lower"], ends["upper"] = np.minimum(ends["lower"], 0), np.maximum(ends["upper"], 0)
    ones = np.where(np.isnan(bias.pvalues), np.nan, 1.0)
    return replace(bias, band=replace(bias.band, **ends), pvalues=ones)


def test_a_miscalibrated_model_is_called_so_and_why(audit):
    assert audit.verdict is Verdict.MISCALIBRATED
    assert audit.verdict == "miscalibrated"
    assert audit.pvalue == audit.test.pvalue == audit.to_dict()["pvalue"]
    assert not audit.verdict.trustworthy
    assert audit.sentence.startswith("The model is miscalibrated ")
    assert audit.action.startswith("Recalibrate the model (itrust recalibrate")
    assert "given income, age and region" in audit.sentence
    assert any("region" in item.covariates for item in audit.evidence if isinstance(item, Finding))


def test_a_rejection_that_nothing_carries_alone_is_no_contradiction(audit):
    quiet = replace(audit.test, findings=tuple(replace(f, pvalue=0.3) for f in audit.test.findings))
    mean = replace(audit.overall.mean, lower=-0.1, upper=0.1, pvalue=1.0)
    parts = {"mean": mean, "diagnosis": silent(audit), "tasks": (), "tolerance": 0.9}
    found = verdict(audit, test=quiet, **parts)
    assert found.refuted
    assert not found.evidence
    words = (
        "the test rejects, but no single finding stands out: which covariate carries the bias "
        "cannot be told from these rows"
    )
    assert f" T{words[1:]}." in sentence_of(found)
    whole = replace(audit, test=quiet, judgement=found, alpha=0.05)
    assert words in " ".join(as_text(whole).split())
    assert whole.to_dict()["evidence"] == []
    assert whole.to_dict()["test"]["about_findings"] == words
    assert "what carries the bias cannot be told" in page(whole)
    assert "speaks against the probabilities" not in page(whole)


def test_a_smaller_bias_of_a_group_is_told_where_the_size_is_not_established(audit):
    (south,) = (group for group in audit.diagnosis.groups if group.name == "region = south")
    part = replace(south, predicted=0.4, observed=0.43, lower=0.01, upper=0.05, pvalue=0.01)
    quiet = silent(audit)
    groups = replace(audit.diagnosis.groups, groups=(part,))
    found = verdict(audit, diagnosis=replace(quiet, groups=groups), tasks=(), tolerance=0.1)
    assert found.verdict is Verdict.SIZE_NOT_ESTABLISHED
    told = sentence_of(found)
    assert 0.01 < part.estimate < 0.03
    assert f"too low by about {part.estimate:.3f} (at least 0.010) where region = south" in told
    assert "Whether by 0.1 or more is not established:" in told


def test_evidence_is_made_of_values_and_the_sentence_of_the_first(audit):
    told = audit.to_dict()
    parts = [
        *told["parts"][0]["diagnosis"]["groups"]["groups"],
        *told["parts"][0]["diagnosis"]["slices"]["slices"],
    ]
    estimates = {json.dumps(part["where"]): part["estimate"] for part in parts}
    for item in told["evidence"]:
        if item["kind"] in ("group", "slice"):
            assert item["estimate"] == estimates[json.dumps(item["where"])]
    kinds = [item["kind"] for item in told["evidence"]]
    assert set(kinds) <= {"slice", "group", "overall", "slope", "finding"}
    assert len(kinds) == len(audit.evidence)
    first = next(k for k, kind in enumerate(kinds) if kind not in ("overall", "slope"))
    texts = [item["text"] for item in told["evidence"]]
    assert f": {'; '.join(texts[: first + 1])}." in audit.sentence


def test_level_and_slope_are_told_before_the_group():
    """Predictions are too extreme, and too high in one group: the slope, then the group."""
    rng = np.random.default_rng(0)
    logits, group = rng.normal(0, 1.5, 2_000), rng.choice(["a", "b", "c"], 2_000)
    truth = 1 / (1 + np.exp(-0.6 * logits)) - 0.2 * (group == "a")
    sample = it.Sample(rng.random(2_000) < truth, 1 / (1 + np.exp(-logits)), {"group": group})
    found = it.audit(sample, draws=199, rng=0, charts=False, robustness=False)
    kinds = [item["kind"] for item in found.to_dict()["evidence"]]
    assert kinds[:2] == ["overall", "slope"]
    own = found.parts[0].slope
    assert own in found.evidence
    assert own.lower < 0.6 < own.upper < 1
    told = "; the probabilities are too extreme (slope ", " where group = a."
    assert found.sentence.index(told[0]) < found.sentence.index(told[1])


def test_there_are_more_draws_where_they_decide(audit):
    few = AuditDraws(0.05, 99, 0)
    assert few.raised(1_000) == AuditDraws(0.05, 999, 0)
    assert AuditDraws(0.05, 9_999, 0).raised(1_000) is None
    assert few.raised(10**8) is None  # too many rows
    quiet = (replace(audit.parts[0], diagnosis=silent(audit)),)
    for pvalue, draws, asks in [(0.06, 999, True), (0.2, 999, False), (0.06, 9_999, False)]:
        found = {"test": SimpleNamespace(pvalue=pvalue), "parts": quiet, "missed": audit.missed}
        assert unsettled(found, AuditDraws(0.05, draws, 0), 0.05) is asks
    (first, *_) = audit.diagnosis.shown
    found = {**found, "test": SimpleNamespace(pvalue=0.001), "parts": audit.parts}
    for tolerance, asks in [(abs(first.at_least), True), (audit.missed.shift, True), (0.9, False)]:
        assert unsettled(found, AuditDraws(0.05, 999, 0), tolerance) is asks


def test_no_point_is_marked_unless_the_test_rejects(audit):
    bias = audit.diagnosis.bias
    assert bias.flagged.any()
    for pvalue, marks in [(audit.alpha, int(bias.flagged.sum())), (0.06, 0)]:
        test = SimpleNamespace(pvalue=pvalue)
        found = Diagnosis.of(bias, None, audit.diagnosis.slices, test).bias
        assert found.flagged.sum() == marks
        lower, upper = found.band.lower[found.known], found.band.upper[found.known]
        assert ((lower > 0) | (upper < 0)).sum() == marks


def walked(found):
    """Every dict within, whatever holds it."""
    if isinstance(found, dict):
        yield found
        for value in found.values():
            yield from walked(value)
    elif isinstance(found, list | tuple):
        for value in found:
            yield from walked(value)


def test_whatever_an_audit_marks_excludes_0(audit):
    told = audit.to_dict()
    seen = 0
    parts = told["parts"][0]["diagnosis"]
    for table in (parts["groups"], parts["slices"]):
        for part in table.get("groups", table.get("slices")):
            assert (part["at_least"] != 0) == (part["pvalue"] <= table["alpha"])
            assert part["at_least"] == near_end(part["lower"], part["upper"])
            seen += 1
    for item in told["evidence"]:
        if item["kind"] in ("slice", "group", "overall"):
            assert item["at_least"] != 0
            assert f"(at least {abs(item['at_least']):.3f})" in item["text"]
            seen += 1
    assert seen == 10


def test_whatever_a_chart_marks_excludes_0():
    sample = it.simulate.survey(700, rng=1).sample
    told, seen = it.audit(sample, draws=39, rng=0, charts=True).to_dict(), []
    for chart in walked(told["parts"][0]["charts"]):
        if "flagged" in chart:
            for low, high, flag in zip(
                chart["lower"], chart["upper"], chart["flagged"], strict=True
            ):
                assert flag == (low is not None and (low > 0 or high < 0))
                seen.append(flag)
    assert 0 < sum(seen) < len(seen)


def test_every_row_of_the_table(audit):
    assert verdict(audit, tolerance=0.99).verdict is Verdict.WITHIN_TOLERANCE
    worst = np.nanmax(np.abs([audit.diagnosis.bias.band.lower, audit.diagnosis.bias.band.upper]))
    ends = np.maximum(abs(audit.diagnosis.bias.band.lower), abs(audit.diagnosis.bias.band.upper))
    shown = verdict(audit, tolerance=float(np.nanquantile(ends, 0.9)))
    assert shown.verdict is Verdict.SIZE_NOT_ESTABLISHED
    assert 0.85 < shown.share_within < 0.95
    right = it.simulate.survey(3_000, rng=1, trustworthy=True).sample
    test = it.klce_test(right, draws=199, rng=0)
    assert test.pvalue > 0.05
    calm = replace(audit.overall.mean, lower=-0.01, upper=0.01, pvalue=0.9)
    quiet = {"test": test, "tasks": (), "diagnosis": silent(audit), "mean": calm}
    assert verdict(audit, **quiet).verdict is Verdict.INCONCLUSIVE
    assert verdict(audit, **quiet, tolerance=0.2).verdict is Verdict.INCONCLUSIVE
    # All that would have been seen, but for pairs of groups.
    singles = replace(audit.missed, detectable=replace(audit.missed.detectable, pairs=()))
    seen = {**quiet, "missed": singles, "tolerance": 0.2}
    assert verdict(audit, **seen).verdict is Verdict.NO_EVIDENCE
    band = replace(silent(audit), bias=narrow(audit.diagnosis.bias, 0.04 / worst))
    within = verdict(audit, **{**quiet, "diagnosis": band})
    assert within.verdict is Verdict.CALIBRATED
    assert within.share_within >= 0.95
    assert sentence_of(within).startswith("The model is calibrated given income, age and region ")
    unknown = verdict(audit, **{**quiet, "missed": replace(audit.missed, detectable=None)})
    assert unknown.verdict is Verdict.INCONCLUSIVE
    assert "is not known" in sentence_of(unknown)
    refused = replace(test, clusters=4, refused=Refusal(4, 4.0, 7.0))
    few = verdict(audit, **{**seen, "test": refused})
    assert few.verdict is Verdict.INCONCLUSIVE
    assert "there are 4 clusters, and at least 7 are needed" in sentence_of(few)


def test_what_is_shown_by_itself_keeps_the_verdict_from_praise(audit):
    right = it.simulate.survey(3_000, rng=1, trustworthy=True).sample
    test = it.klce_test(right, draws=199, rng=0)
    calm = replace(audit.overall.mean, lower=-0.01, upper=0.01, pvalue=0.9)
    mean = replace(calm, observed=calm.predicted + 0.02, lower=0.004, pvalue=0.01)
    singles = replace(audit.missed, detectable=replace(audit.missed.detectable, pairs=()))
    quiet = {"test": test, "diagnosis": silent(audit), "missed": singles, "tolerance": 0.2}
    assert audit.tasks[0].is_shown
    for changes, words in [
        ({"tasks": audit.tasks, "mean": calm}, "mean age among positives where region"),
        ({"tasks": (), "mean": calm, "diagnosis": audit.diagnosis}, "too low by about"),
        (
            {"tasks": (), "mean": mean},
            "too low by about 0.0200 (at least 0.0040) on average over all rows",
        ),
    ]:
        found = verdict(audit, **{**quiet, **changes})
        assert found.verdict is Verdict.INCONCLUSIVE
        told = sentence_of(found)
        assert told.startswith("All checks together do not reject calibration given income")
        assert f"but a bias is shown by itself: {words}" in told
    outside = replace(audit.tasks[0], uncovered=("age",))  # the verdict is not about it
    assert verdict(audit, **quiet, tasks=[outside], mean=calm).verdict is Verdict.NO_EVIDENCE


def test_impossible_labels_alone_are_enough(audit):
    test = replace(audit.test, impossible=3)
    found = verdict(audit, test=test, tolerance=0.99)
    assert found.verdict is Verdict.MISCALIBRATED
    assert found.evidence[0] == ImpossibleLabels(3)
    assert "3 labels that the model called impossible came true" in sentence_of(found)


def test_a_number_says_nothing_about_the_size_of_the_models_bias(audit):
    matters = replace(audit.tasks[0], task=audit.tasks[0].task.matters_at(2.0))
    assert matters.finding is tasks.TaskFinding.BIASED
    found = verdict(audit, tolerance=0.99, tasks=[matters])
    assert found.verdict is Verdict.WITHIN_TOLERANCE


def test_overall_calibration_is_rejected_only_with_calibration_given_the_covariates(audit):
    overall = audit.overall
    assert overall.pvalue == max(overall.test.pvalue, audit.test.pvalue)
    rate = tasks.prevalence().evaluate(audit.sample, draws=audit.draws, rng=0)
    mean = overall.mean
    assert (mean.lower, mean.upper, mean.pvalue) == (rate.lower, rate.upper, rate.pvalue)
    told = audit.to_dict()
    assert told["overall"]["pvalue"] == overall.pvalue
    assert told["overall"]["unadjusted_pvalue"] == overall.test.pvalue


def test_what_no_label_can_contradict_is_not_called_calibrated():
    sure = np.repeat([0.0, 1.0], 30)
    found = it.audit(it.Sample(sure, sure), draws=79, rng=0, tolerance=0.9, charts=False)
    assert found.missed.unknown == parts.NO_VARIATION
    assert found.verdict is Verdict.INCONCLUSIVE


def test_parts_are_those_of_their_own_functions(audit):
    sample, drawing = audit.sample, {"draws": audit.draws, "rng": 0}
    test = it.klce_test(sample, **drawing)
    assert audit.test.pvalue == test.pvalue
    assert audit.overall.brier == pytest.approx(it.scores.brier(sample), rel=1e-12)
    slices = it.bias_slices(sample, **drawing).slices
    assert set(audit.diagnosis.slices) <= set(slices)
    assert [group.name for group in audit.diagnosis.groups] == [
        "region = north",
        "region = south",
        "region = west",
    ]
    alone = audit.tasks[1].task.evaluate(sample, **drawing)
    assert audit.tasks[1].unadjusted_pvalue == alone.unadjusted_pvalue
    assert audit.tasks[1].pvalue >= alone.pvalue


def test_json_has_what_is_promised(audit):
    text = json.dumps(audit.to_dict(), allow_nan=False)
    found = json.loads(text)
    assert found["schema"] == "itrust-audit/5"
    assert list(found)[:3] == ["schema", "version", "summary"]
    assert found["summary"]["text"] == audit.summary
    assert found["summary"]["bias"] == pytest.approx(np.mean(audit.sample.residuals))
    for name in ("n", "statistic", "pvalue", "verdict", "seed", "version", "sentence", "tasks"):
        assert name in found
    assert found["verdict"] == audit.verdict
    assert found["tasks"][0]["bias"] == pytest.approx(audit.tasks[0].bias)


def test_the_frame_has_one_row_a_finding(audit):
    rows = audit.to_arrow().to_pylist()
    parts = {row["part"] for row in rows}
    known = {"verdict", "overall", "test", "finding", "group", "slice", "task"}
    assert parts == known
    (gap, rate) = [row for row in rows if row["part"] == "task"]
    assert gap["value"] == pytest.approx(audit.tasks[0].bias)
    assert gap["text"] == "biased"
    assert rate["name"] == 'prevalence(region == "south")'


def test_print_begins_with_the_rows_and_the_verdict(audit):
    text = str(audit)
    assert text.startswith("3,000 rows; mean prediction ")
    assert "\n\nVERDICT  miscalibrated\n  The model is miscalibrated given" in text
    assert "mean age among positives where region = south, minus" in text
    assert "region = north" in text  # the table of groups
    assert "positive: the model underestimates" in text
    assert max(map(len, text.splitlines())) <= 140
    assert "the bias rises with age where region" in text  # the evidence


def test_tasks_outside_the_judged_covariates_are_told():
    sample = it.simulate.survey(800, rng=1).sample
    found = it.audit(sample, ["mean(age)"], on=["region"], draws=79, rng=0)
    assert found.test.names == ("region",)
    assert found.tasks[0].uncovered == ("age",)
    assert "depends on age, which the audit did not judge" in str(found)


def test_no_covariates_and_hard_predictions_are_no_trouble():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 400)
    bare = it.audit(it.Sample(rng.random(400) < p, p), draws=79, rng=0)
    assert bare.diagnosis.groups is None
    assert bare.verdict in (Verdict.INCONCLUSIVE, Verdict.NO_EVIDENCE)
    hard = it.audit(it.Sample(rng.random(300) < 0.5, (p[:300] > 0.5) * 1.0), draws=79, rng=0)
    assert hard.verdict is Verdict.MISCALIBRATED
    assert hard.missed.detectable is None
    assert hard.charts.curves == ()  # two values of the prediction are no axis
    few = it.audit(it.Sample(rng.random(400) < 0.4, np.round(p, 1)), draws=79, rng=0)
    assert few.charts.null is not None


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

    monkeypatch.setattr("itrust.auditing.measuring.planned_test", refuse)
    monkeypatch.setattr("itrust.auditing.measuring.prepared_test", refuse)
    with pytest.raises(InputError, match=message):
        it.audit(it.simulate.survey(100, rng=0).sample, **settings)


@pytest.mark.slow
def test_the_verdict_on_a_calibrated_model_is_seldom_against_it():
    wrong = 0
    for run in range(8):
        town = it.simulate.survey(400, rng=run, trustworthy=True).sample
        found = it.audit(town, draws=79, rng=run, charts=False).verdict
        wrong += found.severity >= Verdict.WITHIN_TOLERANCE.severity
    assert wrong <= 2  # .05 of 8 is .4; 3 or more has probability .0058


def test_a_dozen_rows_are_not_oversold():
    sample = it.simulate.survey(12, rng=0).sample
    found = it.audit(sample, draws=79, rng=0)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "could have gone unseen" in found.sentence
    assert "Label more rows" in found.action or "rows like these" in found.action


def test_two_rows_with_a_constant_column_are_an_audit_too():
    sample = it.Sample([0, 1], [0.2, 0.7], {"x": [1, 2], "c": ["a", "a"]})
    found = it.audit(sample, ["prevalence()"], draws=79, rng=0)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert len(found.diagnosis.slices) == 0
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("width", [32, 40, 88])
def test_print_fits_any_width(audit, width):
    lines = as_text(audit, width).splitlines()
    assert any(line.startswith("VERDICT  ") for line in lines)
    assert max(map(len, lines)) <= width


def wards(clusters, rows, rng=0):
    """A calibrated model; labels of a ward share a third of their noise."""
    rng = np.random.default_rng(rng)
    unit = np.repeat(np.arange(clusters), rows)
    p = rng.uniform(0.3, 0.7, unit.size)
    shared = rng.normal(size=clusters)[unit]
    scores = np.sqrt(0.1) * shared + np.sqrt(0.9) * rng.normal(size=unit.size)
    group = rng.choice(["a", "b"], unit.size)
    return it.Sample(scores < norm.ppf(p), p, {"group": group}, cluster=unit)


def test_with_clusters_the_rule_is_that_of_independent_rows():
    found = it.audit(wards(100, 10), draws=199, rng=0, tolerance=0.15, charts=False)
    assert found.verdict is Verdict.NO_EVIDENCE
    detectable = found.missed.detectable
    assert detectable.worst.shift <= 0.15
    assert detectable.effective_rows < 900
    assert (
        f"(approximate, by 100 clusters with an intra-cluster correlation of at most "
        f"{detectable.icc:.2g})." in found.sentence
    )
    told = found.to_dict()["missed"]
    assert told["detectable"]["icc"] == detectable.icc
    assert "approximate, by clusters: rows of a cluster go together" in told["sentence"]
    strict = it.audit(wards(100, 10), draws=199, rng=0, tolerance=0.02, charts=False)
    assert strict.verdict is Verdict.INCONCLUSIVE
    assert "could have gone unseen (approximate, by 100 clusters" in strict.sentence
    assert "rows in clusters like these" in strict.action


def test_where_clusters_cannot_tell_what_was_missed_it_says_why():
    few = it.audit(wards(8, 40), draws=199, rng=0, tolerance=0.4, charts=False)
    assert few.missed.detectable is None
    assert few.missed.unknown == parts.FEW_CLUSTERS
    if not few.judgement.refuted:
        assert few.verdict is Verdict.INCONCLUSIVE
    assert few.to_dict()["missed"]["unknown"].startswith("fewer than 10 clusters")
    assert few.to_dict()["missed"]["sentence"].endswith(parts.FEW_CLUSTERS)
    unit = np.arange(60) // 3
    none = it.audit(it.Sample(np.zeros(60), np.full(60, 0.01), cluster=unit), draws=199, rng=0)
    assert none.missed.unknown == parts.ALIKE_LABELS
    assert "is not known: all labels are alike" in none.to_dict()["missed"]["sentence"]
