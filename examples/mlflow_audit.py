"""Log an audit to MLflow: numbers as metrics, settings as parameters, the page as an artifact.

    python examples/mlflow_audit.py

`pip install mlflow-skinny` suffices. The run goes to the store that MLFLOW_TRACKING_URI names.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import mlflow

import itrust as it
from itrust.auditing import Audit
from itrust.render import page as report

SCORES = ("brier", "log_loss", "ece", "smooth_ece")
SETTINGS = ("alpha", "tolerance", "draws", "seed")


def log_audit(audit: Audit, *, prefix: str = "itrust", min_cell: int = 10) -> None:
    """Add an audit to the active MLflow run."""
    facts = audit.disclosed(min_cell).to_dict()
    mlflow.log_metrics({f"{prefix}.{name}": value for name, value in metrics_of(audit).items()})
    mlflow.log_params({f"{prefix}.{name}": getattr(audit, name) for name in SETTINGS})
    tasks = {f"task_{number}": task.name for number, task in enumerate(audit.tasks)}
    tags = {"verdict": audit.verdict.value, "sentence": facts["sentence"], **tasks}
    mlflow.set_tags({f"{prefix}.{name}": text for name, text in tags.items()})
    mlflow.log_dict(facts, f"{prefix}/audit.json")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "audit.html"
        report.write(facts, page)
        mlflow.log_artifact(str(page), prefix)


def metrics_of(audit: Audit) -> dict[str, float]:
    """The numbers that can be followed from run to run."""
    found = {name: getattr(audit.overall, name) for name in SCORES}
    found |= {"n": audit.n, "klce2": audit.test.statistic, "pvalue": audit.test.pvalue}
    found["trustworthy"] = float(audit.verdict.trustworthy)
    for number, task in enumerate(audit.tasks):  # names of metrics take no parentheses
        found |= {f"task_{number}_bias": task.bias, f"task_{number}_pvalue": task.pvalue}
    return found


def main() -> None:
    """Audit the simulated survey and log it."""
    sample = it.simulate.survey(2_000, rng=0).sample
    audit = it.audit(sample, ["mean(age)"], rng=0)
    with mlflow.start_run(run_name="itrust demo") as run:
        log_audit(audit)
    print(f"run {run.info.run_id} in {mlflow.get_tracking_uri()}: {audit.verdict}")


if __name__ == "__main__":
    main()
