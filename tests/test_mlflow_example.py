"""The MLflow example against a real local store; no server, no telemetry."""

import json
import runpy
from pathlib import Path

import pytest

import itrust as it

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[1] / "examples" / "mlflow_audit.py"


@pytest.fixture
def store(tmp_path, monkeypatch):
    for name in ("MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


def test_metrics_parameters_and_the_page_are_in_the_store(store):
    mlflow = pytest.importorskip("mlflow", reason="comes with the test extra")
    example = runpy.run_path(str(EXAMPLE))
    sample = it.simulate.survey(300, rng=1).sample
    audit = it.audit(sample, ["mean(age)"], draws=79, rng=0)
    with mlflow.start_run() as run:
        example["log_audit"](audit)
    found = mlflow.get_run(run.info.run_id)
    assert found.data.metrics["itrust.pvalue"] == audit.test.pvalue
    assert found.data.metrics["itrust.task_0_bias"] == pytest.approx(audit.tasks[0].bias)
    assert found.data.params["itrust.seed"] == "0"
    assert found.data.tags["itrust.verdict"] == audit.verdict
    (kept,) = store.glob("*/*/artifacts/itrust/audit.html")
    assert audit.verdict in kept.read_text()
    numbers = json.loads((kept.parent / "audit.json").read_text())
    assert numbers["pvalue"] == audit.test.pvalue
