"""The evaluator "itrust" in MLflow itself, against a store in a folder; no server, no telemetry."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import itrust as it

mlflow = pytest.importorskip("mlflow", reason="comes with the test extra")
resolve_evaluators_and_configs = mlflow.models.evaluation.base.resolve_evaluators_and_configs

# MLflow warns as it pleases: of stores, of integers in signatures, of its own deprecations.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(0)
N = 300
DATA = pd.DataFrame(
    {
        "age": RNG.integers(20, 80, N).astype(float),
        "income": RNG.normal(size=N),
        "sex": RNG.choice(["f", "m"], N),
        "w": RNG.uniform(0.5, 2, N),
        "house": np.repeat(np.arange(N // 2), 2),
    }
)
SLOPE = np.where(DATA["sex"] == "f", 2.0, -2.0)
DATA["owner"] = np.where(
    RNG.random(N) < 1 / (1 + np.exp(-SLOPE * (DATA["age"] - 50) / 15)), "y", "n"
)
FEATURES = ["age", "income"]
MODEL = make_pipeline(StandardScaler(), LogisticRegression())
MODEL.fit(DATA[FEATURES][:100], DATA["owner"][:100])
TEST = DATA[100:].reset_index(drop=True)
QUICK = {"draws": 79, "seed": 0}
CONFIG = {"on": ["age", "sex"], "pos_label": "y", **QUICK}


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    before = mlflow.get_tracking_uri()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK", "MLFLOW_ALLOW_FILE_STORE"):
            patch.setenv(name, "true")
        patch.chdir(folder)
        mlflow.set_tracking_uri((folder / "store").as_uri())
        yield folder / "store"
    mlflow.set_tracking_uri(before)


def evaluated(model=None, data=TEST, config=CONFIG, **more):
    """One call of MLflow in a run of its own."""
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            model,
            data,
            targets="owner",
            model_type="classifier",
            evaluators=["itrust"],
            evaluator_config={"itrust": config},
            **more,
        )
    return result, mlflow.get_run(run.info.run_id)


@pytest.fixture(scope="module")
def audit():
    """The same by hand, as it may be shown."""
    sample = it.Sample.from_estimator(
        MODEL, TEST[FEATURES], TEST["owner"], on=TEST[["age", "sex"]], pos_label="y"
    )
    return it.audit(sample, draws=79, rng=0)


KEPT = {"serialization_format": "cloudpickle", "pip_requirements": ["scikit-learn"]}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The address of the model, as MLflow keeps it."""
    folder = tmp_path_factory.mktemp("kept") / "model"
    mlflow.sklearn.save_model(MODEL, folder, **KEPT)
    return str(folder)


@pytest.fixture(scope="module")
def evaluation(model):
    return evaluated(model)


def test_an_evaluation_logs_what_the_audit_says(evaluation, audit):
    result, run = evaluation
    assert run.data.metrics == result.metrics
    assert result.metrics["itrust.pvalue"] == audit.test.pvalue
    assert result.metrics["itrust.brier"] == audit.overall.brier
    assert result.metrics["itrust.gate_open"] == 0
    assert run.data.params["itrust.seed"] == "0"
    assert run.data.tags["itrust.verdict"] == audit.verdict.value
    assert run.data.tags["itrust.sentence"] == audit.sentence
    page = Path(run.info.artifact_uri.removeprefix("file://")) / "itrust" / "audit.html"
    assert "miscalibrated" in page.read_text(encoding="utf-8")
    facts = json.loads((page.parent / "audit.json").read_text())
    assert facts["on"] == ["age", "sex"]
    assert facts == json.loads(json.dumps(audit.to_dict()))


def test_the_result_of_an_evaluation_can_be_saved_and_read_again(evaluation, tmp_path):
    result, run = evaluation
    assert set(result.artifacts) == {"itrust/audit.html", "itrust/audit.json"}
    facts = json.loads(result.artifacts["itrust/audit.json"].content)
    assert facts["verdict"] == run.data.tags["itrust.verdict"]
    result.save(tmp_path / "kept")
    again = mlflow.models.EvaluationResult.load(tmp_path / "kept")
    assert again.metrics == result.metrics
    assert again.artifacts["itrust/audit.html"].content.startswith("<!doctype html>")


def test_a_threshold_of_mlflow_closes_on_the_gate(evaluation):
    result, _ = evaluation
    threshold = {
        "itrust.gate_open": mlflow.models.MetricThreshold(threshold=1, greater_is_better=True)
    }
    with pytest.raises(mlflow.models.evaluation.validation.ModelValidationFailedException):
        mlflow.validate_evaluation_results(threshold, result)


def test_predictions_that_stand_in_the_data_are_judged_alike(audit):
    scored = TEST.assign(p=MODEL.predict_proba(TEST[FEATURES])[:, 1])
    result, run = evaluated(data=scored, predictions="p")
    assert result.metrics["itrust.pvalue"] == audit.test.pvalue
    assert run.data.tags["itrust.verdict"] == audit.verdict.value
    made = mlflow.data.from_pandas(scored, targets="owner", predictions="p")
    with mlflow.start_run():
        again = mlflow.models.evaluate(
            data=made, model_type="classifier", evaluators="itrust", evaluator_config=CONFIG
        )
    assert again.metrics == result.metrics


def test_weights_clusters_tasks_and_tolerances_are_columns_and_settings(model, store):
    config = {**CONFIG, "weights": "w", "cluster": "house", "tasks": ["mean(income)"]}
    config |= {"tolerance": 0.1, "alpha": 0.1, "gate": "tasks", "prefix": "test set"}
    result, run = evaluated(model, config=config)
    sample = it.Sample.from_estimator(
        MODEL,
        TEST[FEATURES],
        TEST["owner"],
        on=TEST[["age", "sex", "income"]],
        pos_label="y",
        weights=TEST["w"],
        cluster=TEST["house"],
    )
    settings = dict(alpha=0.1, tolerance=0.1, draws=79, rng=0)
    audit = it.audit(sample, ["mean(income)"], on=["age", "sex"], **settings)
    assert result.metrics["test set.pvalue"] == audit.test.pvalue
    assert result.metrics["test set.task_0_bias"] == audit.tasks[0].bias
    closed = it.auditing.gate(audit, "tasks").closed
    assert result.metrics["test set.gate_open"] == float(not closed)
    assert run.data.params["test set.tolerance"] == "0.1"
    assert run.data.tags["test set.task_0"] == "mean(income)"
    assert list(store.glob("**/artifacts/test set/audit.html"))


@pytest.mark.parametrize("positive", ["n", "y"])
def test_of_two_columns_that_of_the_positive_label_is_judged(positive):
    config = {**CONFIG, "pos_label": positive}
    result, _ = evaluated(lambda rows: MODEL.predict_proba(rows[FEATURES]), config=config)
    sample = it.Sample.from_estimator(
        MODEL, TEST[FEATURES], TEST["owner"], on=TEST[["age", "sex"]], pos_label=positive
    )
    assert result.metrics["itrust.brier"] == pytest.approx(it.scores.brier(sample))


def test_a_function_and_an_array_of_features_are_judged_too():
    X, y = TEST[FEATURES].to_numpy(), (TEST["owner"] == "y").to_numpy()
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            lambda rows: MODEL.predict_proba(pd.DataFrame(np.asarray(rows), columns=FEATURES))[
                :, 1
            ],
            X,
            targets=y,
            model_type="classifier",
            evaluators="itrust",
            evaluator_config={"on": ["feature_1"], **QUICK},
        )
    sample = it.Sample(y, MODEL.predict_proba(TEST[FEATURES])[:, 1], {"feature_1": X[:, 0]})
    assert result.metrics["itrust.pvalue"] == it.audit(sample, draws=79, rng=0).test.pvalue


@pytest.mark.parametrize("config", [None, {}, {"pos_label": "y", "log_explainer": False}])
def test_who_did_not_ask_for_an_audit_gets_none(config):
    """Without names, MLflow takes all evaluators that can, with settings for any among them."""
    found = resolve_evaluators_and_configs(None, config, "classifier")
    assert "classifier" in {own.name for own in found}
    assert "itrust" not in {own.name for own in found}
    asked = resolve_evaluators_and_configs(None, {"itrust": CONFIG}, "classifier")
    assert "itrust" in {own.name for own in asked}
    others = resolve_evaluators_and_configs(None, {"itrust": CONFIG}, "regressor")
    assert "itrust" not in {own.name for own in others}


def test_both_run_where_both_are_asked_for(model):
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            model,
            TEST[[*FEATURES, "owner"]],
            targets="owner",
            model_type="classifier",
            evaluators=["default", "itrust"],
            evaluator_config={
                "itrust": {"on": None, "pos_label": "y", **QUICK},
                "default": {"pos_label": "y", "log_model_explainability": False},
            },
        )
    assert {"accuracy_score", "itrust.pvalue"} <= set(result.metrics)


@pytest.mark.parametrize(
    ("data", "config", "more", "message"),
    [
        (TEST, {"tolerence": 0.1}, {}, "'tolerence' is no setting of itrust; .*'tolerance'"),
        (TEST, {"on": ["agee"]}, {}, "the data has no column 'agee'; did you mean 'age'"),
        (TEST, {"weights": "q"}, {}, "the data has no column 'q'"),
        (TEST.drop(columns="income"), {}, {}, "the model was fitted to 'income', which the data"),
        (TEST, {"pos_label": "yes"}, {}, "'yes' is none of the classes"),
        (TEST, {"alpha": 2}, {}, "alpha"),
        (TEST, {"min_cell": 0}, {}, "min_cell"),
        (TEST, {"prefix": "../up"}, {}, "prefix must be a text of letters"),
        (TEST, {"gate": "all"}, {}, "gate must be one of 'model', 'tasks', 'any'"),
        (TEST.assign(p=0.5), {}, {"predictions": None}, "name the column of probabilities"),
        (TEST.assign(p=TEST["owner"]), {}, {"predictions": "p"}, "labels, not probabilities"),
        (TEST.assign(p=1.5), {}, {"predictions": "p"}, r"must lie in \[0, 1\]"),
    ],
)
def test_wrong_input_gets_one_sentence(model, data, config, more, message):
    with pytest.raises(it.InputError, match=message) as caught:
        evaluated(None if more else model, data, {**CONFIG, **config}, **more)
    assert "\n" not in str(caught.value)


def test_a_model_that_predicts_labels_is_refused_with_the_way_out():
    with pytest.raises(it.InputError, match="labels, not probabilities; log a model with predict_"):
        evaluated(lambda rows: np.ones(len(rows), dtype=int))


def test_an_evaluation_without_covariates_to_judge_on_says_so_in_the_log(model, monkeypatch):
    told = []
    monkeypatch.setattr(
        "itrust.integrations.mlflow._logger.info", lambda *words: told.append(words)
    )
    with pytest.raises(mlflow.MlflowException, match="could not be evaluated"):
        evaluated(model, config={})
    assert "its evaluator_config must say what to judge on" in told[0][0]


def test_metrics_go_to_a_logged_model_too():
    info = mlflow.sklearn.log_model(MODEL, name="model", **KEPT)
    result, _ = evaluated(info.model_uri)
    kept = mlflow.get_logged_model(info.model_id).metrics
    assert {own.key: own.value for own in kept} == result.metrics


def test_few_rows_are_not_logged(store):
    from itrust.integrations.mlflow import log_audit

    data = {"name": ["Xanthippe"] * 7 + ["others"] * 193, "age": TEST["age"]}
    p = np.where(np.arange(200) < 7, 0.01, 0.5)
    y = np.where(np.arange(200) < 7, True, TEST["owner"] == "y")
    audit = it.audit(it.Sample(y, p, data), ['mean(age | name != "others")'], draws=79, rng=0)
    told = {}
    for least in (1, 10):
        with mlflow.start_run() as run:
            metrics = log_audit(audit, min_cell=least, prefix=f"least {least}")
        assert (f"least {least}.task_0_bias" in metrics) == (least == 1)
        texts = [path.read_text(encoding="utf-8") for path in store.glob(f"**/least {least}/*")]
        texts += mlflow.get_run(run.info.run_id).data.tags.values()
        assert len(texts) > 2
        told[least] = any("Xanthippe" in text for text in texts)
    assert told == {1: True, 10: False}


def test_the_package_does_not_need_mlflow():
    code = (
        "import itrust, sys; itrust.audit; itrust.integrations; assert 'mlflow' not in sys.modules"
    )
    code = code.replace("itrust.integrations", "import itrust.integrations")
    subprocess.run([sys.executable, "-c", code], check=True)
