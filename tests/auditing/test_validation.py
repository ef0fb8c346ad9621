"""What validators print in an audit: the same in files, apart from the verdict, disclosed."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust.calibration import DecisionPoint
from itrust.render.page import page


def sample_of(n=600, seed=0, **more):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    x = {"g": rng.choice(["a", "b"], n)}
    return it.Sample(rng.random(n) < p, p, x, **more)


def audited(sample, **more):
    return it.audit(sample, draws=79, rng=0, charts=False, **more)


@pytest.fixture(scope="module")
def calibrated():
    return audited(sample_of())


def test_an_audit_holds_what_scores_validation_gives(calibrated):
    own = it.scores.validation(sample_of(), draws=79, rng=0, confidence=0.95)
    assert calibrated.validation.to_dict() == own.to_dict()
    told = json.loads(json.dumps(calibrated.to_dict(), allow_nan=False))["validation"]
    assert {**own.to_dict(), "sentence": told["sentence"]} == told


def test_it_can_be_left_out():
    bare = audited(sample_of(), validation=False)
    assert bare.validation is None
    assert bare.to_dict()["validation"] is None
    assert "What validators print" not in page(bare)


def test_files_of_many_rows_give_the_same(monkeypatch, tmp_path):
    rows = sample_of(3_000)
    monkeypatch.setattr("itrust.data.survey.EXTRACT_ROWS", 1_000)
    table = {"y": rows.y, "p": rows.p, "g": np.array(["a", "b"])[rows.column("g").values]}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=700)
    scanned = it.scan(tmp_path / "rows.parquet", label="y", prob="p", on=["g"])
    one, other = audited(scanned), audited(rows)
    assert one.validation.gathered
    assert one.validation.n == 3_000
    assert one.validation.to_dict() == other.validation.to_dict()
    alone = it.scores.validation(rows, draws=79, rng=0)
    for mine, theirs in zip(one.validation, alone, strict=True):
        assert mine.value == pytest.approx(theirs.value, rel=1e-9)


def test_weights_and_clusters_reach_it():
    rng = np.random.default_rng(0)
    weighted = audited(sample_of(weights=rng.exponential(size=600) + 0.1)).validation
    assert weighted.weighted
    clustered = audited(sample_of(cluster=np.arange(600) // 6)).validation
    assert clustered.clustered
    assert clustered["hosmer_lemeshow"].pvalue is None
    assert clustered["slope"].lower is not None


# One truth


def test_the_page_says_that_a_model_passes_all_of_it_and_is_rejected_given_x():
    found = audited(it.simulate.opposite_groups(3_000, rng=2).sample)
    assert found.judgement.refuted
    assert not found.validation.rejected(0.05)
    told = found.to_dict()["validation"]["sentence"]
    assert "and yet the audit rejects calibration given the covariates" in told
    assert told in page(found)


def test_a_rejection_here_beside_a_verdict_that_does_not_reject_is_explained(calibrated):
    low = [
        replace(own, exact_pvalue=0.01) if own.name == "hosmer_lemeshow" else own
        for own in calibrated.validation
    ]
    found = replace(calibrated, validation=replace(calibrated.validation, statistics=tuple(low)))
    assert not found.judgement.refuted
    told = found.to_dict()["validation"]["sentence"]
    assert "the p-values of Hosmer-Lemeshow" in told
    assert "does not reject" in told
    assert "neither denies the other" in told
    assert "9 tests of other questions, of which a calibrated model fails about 0.45" in told
    assert "no part of the verdict" in told


def test_the_statistics_stand_on_the_page_without_a_click_and_without_a_box(calibrated):
    html = page(calibrated)
    section = html[html.index('<section id="validation"') :]
    section = section[: section.index("</section>")]
    before = section[: section.index('<table class="stack whole validation">')]
    assert "<details" not in before
    assert section.count('class="scroll whole"') == 3
    assert section.count("<details data-print open>") == 2  # grades, decision curve
    assert section.count(">Hosmer-Lemeshow<") == 1


def test_every_family_on_the_page_says_what_it_cannot_see(calibrated):
    html = page(calibrated)
    section = html[html.index('<section id="validation"') :]
    section = section[: section.index("</section>")]
    assert section.count("<strong>Cannot see.</strong>") == 9
    assert "unadjusted" in section
    for name in ("slope", "ICI", "Hosmer-Lemeshow", "Spiegelhalter", "AUC", "Decision curve"):
        assert name in section or name.lower() in section


def test_the_verdict_does_not_depend_on_it(calibrated):
    bare = audited(sample_of(), validation=False)
    one, other = (
        {name: part for name, part in found.to_dict().items() if name != "validation"}
        for found in (bare, calibrated)
    )
    assert one == other


# Disclosure control


def test_grades_are_withheld_with_the_bins_of_the_reliability_curve():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(8, 0.1), rng.uniform(0.4, 0.9, 42)])
    found = audited(it.Sample(rng.random(50) < p, p, {"g": rng.choice(["a", "b"], 50)}))
    told = found.disclosed(10)
    assert len(told.validation.grades) == told.overall.curve.rows.size
    assert len(told.validation.grades) < len(found.validation.grades)
    assert all(grade.rows >= 10 for grade in told.validation.grades)
    assert found.validation is found.validation


def test_the_decision_curve_shows_no_exact_rows_and_nothing_of_few(calibrated):
    whole, told = (found.validation.decision for found in (calibrated, calibrated.disclosed(20)))
    exact = {(own.rows, own.true_positives) for own in whole}
    for before, own in zip(whole, told, strict=True):
        assert isinstance(own, DecisionPoint)
        assert (own.rows == 0) == (before.rows < 20)
        assert own.rows == 0 or (own.rows, own.true_positives) not in exact
        assert abs(own.rows - before.rows) <= 4 or before.rows < 20
        assert abs(own.net_benefit - before.net_benefit) < 0.02 or before.rows < 100


def test_few_certain_predictions_are_not_counted():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.zeros(3), rng.uniform(0.1, 0.9, 200)])
    found = audited(it.Sample(rng.random(203) < p, p, {"g": rng.choice(["a", "b"], 203)}))
    assert found.validation.certain == 3
    told = found.disclosed(10)
    assert told.validation.certain is None
    assert "too few to be counted" in page(told)


def test_few_contrary_labels_are_not_counted():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.zeros(30), rng.uniform(0.1, 0.9, 200)])
    y = rng.random(230) < p
    y[:2] = True
    found = audited(it.Sample(y, p, {"g": rng.choice(["a", "b"], 230)}))
    assert (found.validation.certain, found.validation.contrary) == (30, 2)
    told = found.disclosed(10).to_dict()["validation"]
    assert abs(told["certain"] - 30) <= 4
    assert told["contrary"] is None
