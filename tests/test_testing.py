"""`assert_trustworthy` passes and fails as the gate does, and says why where a reader looks."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust.testing import assert_trustworthy

RNG = np.random.default_rng(0)
AGE, SEX = RNG.integers(20, 80, 300), RNG.choice(["f", "m"], 300)
TRUTH = 1 / (1 + np.exp(-(AGE - 50) / 15))
ROWS = {"y": (RNG.random(300) < TRUTH).astype(int), "p": TRUTH, "age": AGE, "sex": SEX}
OFF = {**ROWS, "p": np.full(300, 0.5)}
QUICK = dict(draws=79, rng=0)
COLUMNS = dict(label="y", prob="p", on=["age"])


def sample_of(rows, on=("age",)):
    return it.Sample.from_frame(rows, label="y", prob="p", on=on)


def failure(*arguments, **settings):
    with pytest.raises(AssertionError) as caught:
        assert_trustworthy(*arguments, **QUICK, **settings)
    return str(caught.value)


def test_a_calibrated_model_passes_and_the_audit_is_returned():
    audit = assert_trustworthy(sample_of(ROWS), tasks="mean(age)", **QUICK)
    assert not audit.verdict.closes_gate
    assert audit.seed == 0
    assert audit.tasks[0].name == "mean(age)"
    assert audit.withheld is None


def test_a_miscalibrated_model_fails_with_verdict_evidence_and_action():
    audit = it.audit(sample_of(OFF), charts=False, **QUICK)
    text = failure(sample_of(OFF))
    first, *rest = text.splitlines()
    assert first == "gate closed: the model is judged miscalibrated"
    shown = audit
    assert f"  verdict: {shown.sentence}" in rest
    assert f"  what to do: {shown.action}" in rest
    assert any(line.startswith("  evidence: too ") for line in rest)
    assert rest[-1] == f"  made with: alpha 0.05, tolerance 0.05, {audit.draws} draws, seed 0"


@pytest.mark.parametrize("form", [dict, pl.DataFrame, pl.LazyFrame])
def test_a_sample_a_frame_and_a_model_are_judged_alike(form):
    by_hand = failure(sample_of(OFF))
    assert failure(form(OFF), **COLUMNS) == by_hand
    assert assert_trustworthy(form(ROWS), **COLUMNS, **QUICK).n == 300


def test_a_classifier_is_judged_on_its_rows():
    X = np.column_stack([AGE, RNG.normal(size=300)])
    good = LogisticRegression(max_iter=1_000).fit(X[:150], ROWS["y"][:150])
    bad = LogisticRegression().fit(X[:150, 1:], ROWS["y"][:150])
    audit = assert_trustworthy(good, X[150:], ROWS["y"][150:], tolerance=0.2, **QUICK)
    assert audit.n == 150
    told = failure(bad, X[150:, 1:], ROWS["y"][150:], on={"age": AGE[150:]})
    assert "judged miscalibrated" in told


@pytest.mark.parametrize("rows", [ROWS, OFF], ids=["calibrated", "off"])
def test_it_fails_exactly_where_the_gate_closes(rows, monkeypatch):
    audit = it.audit(sample_of(rows), ["mean(age)"], charts=False, **QUICK)
    monkeypatch.setattr("itrust.testing.audit", lambda *_, **__: audit)
    for asked in ("model", "tasks", "any"):
        if it.auditing.gate(audit, asked).closed:
            assert rows is OFF
            assert " is biased: the probabilities understate it by " in failure(
                rows, **COLUMNS, asked=asked
            )
        else:
            assert assert_trustworthy(sample_of(rows), asked=asked, **QUICK) is audit


def test_a_task_that_is_biased_fails_where_the_model_is_not_asked_about():
    text = failure(OFF, **COLUMNS, tasks="mean(age)", asked="tasks")
    assert text.startswith("gate closed: 1 number is biased\n")


def test_require_is_the_worst_verdict_that_passes():
    few = sample_of({name: values[:40] for name, values in ROWS.items()})
    for require in it.Verdict:
        if require.severity >= it.Verdict.INCONCLUSIVE.severity:
            audit = assert_trustworthy(few, require=require.value, **QUICK)
            assert audit.verdict is it.Verdict.INCONCLUSIVE
        else:
            assert failure(few, require=require).startswith(
                f"the verdict is 'inconclusive', and '{require.value}' is required\n"
            )


def test_few_rows_are_not_told_to_readers_of_a_log():
    sex = np.where(np.arange(300) < 7, "Ada", "others")
    rows = {**ROWS, "sex": sex, "p": np.where(np.arange(300) < 7, 0.001, TRUTH)}
    rows["y"] = np.where(np.arange(300) < 7, 1, ROWS["y"])
    sample = sample_of(rows, on=["sex"])
    assert "Ada" in failure(sample)
    assert "Ada" not in failure(sample, min_cell=10)


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((ROWS,), {}, "does not say which column is what; pass label="),
        ((ROWS,), dict(label="y"), "does not say which column is what; pass label="),
        ((sample_of(ROWS),), dict(label="y"), "label goes with a frame"),
        ((sample_of(ROWS),), dict(require="fine"), "require must be one of 'miscalibrated'"),
        ((sample_of(ROWS),), dict(asked="all"), "asked must be one of 'model', 'tasks', 'any'"),
        ((sample_of(ROWS),), dict(min_cell=0), "min_cell"),
        ((ROWS,), dict(label="y", prob="q"), "no column 'q'"),
        (([0, 1],), {}, "it.Sample"),
    ],
)
def test_wrong_input_is_an_input_error_and_no_failed_assertion(arguments, settings, message):
    with pytest.raises(it.InputError, match=message) as caught:
        assert_trustworthy(*arguments, **{**QUICK, **settings})
    assert "\n" not in str(caught.value)


def test_pytest_shows_the_message_and_the_line_of_the_test_alone(tmp_path):
    (tmp_path / "test_model.py").write_text(
        "from itrust.testing import assert_trustworthy\n\n\n"
        "def test_the_model():\n"
        "    rows = {'y': [1] * 40 + [0] * 20, 'p': [0.1] * 60}\n"
        "    assert_trustworthy(rows, label='y', prob='p', draws=79)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_model.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert "E       AssertionError: gate closed: the model is judged miscalibrated" in done.stdout
    assert "E         what to do: " in done.stdout
    assert "testing.py" not in done.stdout


def test_pytest_is_not_needed():
    code = "import sys, itrust.testing; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
