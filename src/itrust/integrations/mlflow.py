"""MLflow: an audit as an evaluator of `mlflow.models.evaluate`, or logged to a run.

Installing `itrust` is enough for `evaluators=["itrust"]` to be known. The evaluator runs where its
configuration says what to judge on (`on`), and nowhere else: MLflow hands every model to every
evaluator that is installed, unless it is told which ones are meant.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import mlflow
import numpy as np
import pandas as pd
from mlflow.entities import Metric, Param
from mlflow.models.evaluation import EvaluationArtifact, EvaluationResult, ModelEvaluator

from itrust._core import InputError, checked_choice, checked_min_cell, listed, place_of
from itrust.auditing import Asked, Audit, audit, gate
from itrust.bias import names_of
from itrust.data import Sample, label_values, of_two_classes
from itrust.render import page as pages
from itrust.tasks import as_tasks

__all__ = ["ItrustEvaluator", "log_audit"]
__dir__ = __all__.copy  # what tab completion offers

SCORES = ("brier", "log_loss", "ece", "smooth_ece")
SETTINGS = ("alpha", "tolerance", "draws", "seed")
ROLES = ("weights", "cluster", "strata")
OF_AUDIT = ("alpha", "tolerance", "draws")
OF_LOG = ("min_cell", "gate")
CONFIG = ("on", "tasks", "pos_label", *ROLES, "missing", *OF_AUDIT, "seed", *OF_LOG, "prefix")
PREFIX = "itrust"
PLAIN_NAME = re.compile(r"\w[\w. -]*", re.ASCII)
MAX_TAG = 5_000  # characters that every store of MLflow takes
GIVE_PROBABILITIES = (
    "log a model with predict_proba, or one whose predict gives probabilities "
    '(mlflow.sklearn.log_model(..., pyfunc_predict_fn="predict_proba"))'
)
_logger = logging.getLogger("mlflow.itrust")  # told where MLflow tells the rest


def log_audit(
    audit: Audit,
    *,
    prefix: str = PREFIX,
    min_cell: int | None = None,
    gate: Asked = "any",
    run_id: str | None = None,
) -> dict[str, float]:
    """Add an audit to an MLflow run: numbers, settings, verdict, page and JSON.

    Scores, p-values and the biases of tasks are metrics (`itrust.pvalue`, `itrust.task_0_bias`),
    settings are parameters, the verdict with its sentence and the names of the tasks are tags, and
    the page and the JSON are artifacts, `itrust/audit.html` and `itrust/audit.json`. The metric
    `itrust.gate_open` is 1 or 0, as `itrust audit --gate` would decide.

    Parameters
    ----------
    audit : Audit
        Of `itrust.audit`; without charts the page has no curves and maps.
    prefix : str
        What every name begins with, and the folder of the artifacts; "itrust" by default. A second
        audit in one run needs another one.
    min_cell : int, optional
        Applies disclosure control first, as `Audit.disclosed` does: tasks that are withheld have no
        metric. Default: everything is logged as it is.
    gate : {"model", "tasks", "any"}
        What the gate asks about.
    run_id : str, optional
        Default: the active run, or a new one.

    Returns
    -------
    dict of str to float
        The metrics that were logged.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.integrations.mlflow import log_audit
    >>> sample = it.simulate.survey(300, rng=0).sample
    >>> def train():
    ...     with mlflow.start_run():
    ...         log_audit(it.audit(sample, ["mean(age)"], rng=0))
    """
    run = run_id or (mlflow.active_run() or mlflow.start_run()).info.run_id
    shown = audit.disclosed(min_cell)
    facts = shown.to_dict()
    metrics = {f"{prefix}.{name}": value for name, value in _metrics(shown, gate).items()}
    settings = {f"{prefix}.{name}": str(getattr(shown, name)) for name in SETTINGS}
    tags = {"verdict": shown.verdict.value, "sentence": shown.sentence, "action": shown.action}
    tags |= {f"task_{number}": task.name for number, task in enumerate(shown.tasks)}
    client = mlflow.MlflowClient()
    now = int(1_000 * time.time())
    client.log_batch(
        run,
        metrics=[Metric(name, value, now, 0) for name, value in metrics.items()],
        params=[Param(name, value) for name, value in settings.items()],
    )
    for name, text in tags.items():
        client.set_tag(run, f"{prefix}.{name}", text[:MAX_TAG])
    text = json.dumps(facts, indent=2, allow_nan=False) + "\n"
    client.log_text(run, text, f"{prefix}/audit.json")
    client.log_text(run, pages.page(facts), f"{prefix}/audit.html")
    return metrics


def _metrics(shown: Audit, asked: Asked) -> dict[str, float]:
    """The numbers that can be followed from run to run, without those that are withheld."""
    found: dict[str, float] = {name: getattr(shown.overall, name) for name in SCORES}
    found |= {"n": shown.n, "klce2": shown.test.statistic, "pvalue": shown.test.pvalue}
    found["trustworthy"] = shown.verdict.trustworthy
    found["gate_open"] = not gate(shown, asked).closed
    for number, task in enumerate(shown.tasks):  # names of metrics take no parentheses
        found |= {f"task_{number}_bias": task.bias, f"task_{number}_pvalue": task.pvalue}
    told = {name: float(value) for name, value in found.items() if value is not None}
    return {name: value for name, value in told.items() if math.isfinite(value)}


class AuditArtifact(EvaluationArtifact):  # type: ignore[misc]
    """The page or the JSON of an audit in the result of an evaluation; `content` is its text."""

    def _save(self, output_artifact_path: str) -> None:
        with open(output_artifact_path, "w", encoding="utf-8", newline="") as file:
            file.write(self.content)

    def _load_content_from_file(self, local_artifact_path: str) -> str:
        with open(local_artifact_path, encoding="utf-8", newline="") as file:
            self._content = file.read()
        return str(self._content)


class ItrustEvaluator(ModelEvaluator):  # type: ignore[misc]
    """The evaluator "itrust" of `mlflow.models.evaluate`; MLflow makes it, users name it.

    Its `evaluator_config` has the settings of `itrust.audit`: `on` (names of columns, or None for
    all features), which must be there, `tasks`, `pos_label`, `weights`, `cluster`, `strata` (names
    of columns), `missing`, `alpha`, `tolerance`, `draws`, `seed`; and those of `log_audit`:
    `min_cell`, `gate`, `prefix`.

    Probabilities come from the model (`predict_proba` of what MLflow has wrapped, or what its
    `predict` gives) or, without a model, from the column of predictions. Columns with a role, and
    covariates that the model does not read, may stand among the features: the model is given those
    that it was fitted to.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any, **_: Any) -> bool:
        """Say whether this is a classifier, and whether the configuration asks for an audit.

        Parameters
        ----------
        model_type : str
            MLflow's word for what the model does.
        evaluator_config : dict
            Of this evaluator, or of all of them.
        **_ : object
            What later versions of MLflow may add.

        Returns
        -------
        bool
            False also where `on` is missing, which a line in the log says.
        """
        asked = isinstance(evaluator_config, Mapping) and "on" in evaluator_config
        if asked and model_type != "classifier":
            _logger.info("itrust judges classifiers; model_type is %r", model_type)
        elif model_type == "classifier" and not asked:
            _logger.info(
                "itrust does not run: its evaluator_config must say what to judge on, as in "
                "{'itrust': {'on': ['age', 'sex']}}; {'on': None} takes all features"
            )
        return asked and model_type == "classifier"

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any],
        model: Any = None,
        predictions: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Audit the model on a data set, and log the audit to the run.

        Parameters
        ----------
        dataset : mlflow.data.evaluation_dataset.EvaluationDataset
            Features and labels, and the predictions where there is no model.
        run_id : str
            The run to log to.
        evaluator_config : dict
            The settings.
        model : mlflow.pyfunc.PyFuncModel, optional
            Default: the data set holds the predictions.
        predictions : str, optional
            Of a model that gives several columns, the one with the probabilities. Default: it gives
            one, or two.
        **_ : object
            What else MLflow hands on, such as metrics of the user.

        Returns
        -------
        mlflow.models.EvaluationResult
            The metrics, the page and the JSON.
        """
        config = _checked(evaluator_config)
        sample, names = _sample(dataset, model, predictions, config)
        settings = {name: config[name] for name in OF_AUDIT if name in config}
        tasks = config.get("tasks", ())
        found = audit(sample, tasks=tasks, on=names, rng=config.get("seed", 0), **settings)
        prefix = config.get("prefix", PREFIX)
        told = {name: config[name] for name in OF_LOG if name in config}
        metrics = log_audit(found, prefix=prefix, run_id=run_id, **told)
        folder = mlflow.get_run(run_id).info.artifact_uri
        files = (f"{prefix}/audit.html", f"{prefix}/audit.json")
        artifacts = {name: AuditArtifact(uri=f"{folder}/{name}") for name in files}
        return EvaluationResult(metrics=metrics, artifacts=artifacts, run_id=run_id)


def _checked(config: Mapping[str, Any]) -> dict[str, Any]:
    _require(config, CONFIG, "evaluator_config", "{argument}: {value} is no setting of itrust")
    checked_choice(config.get("gate", "any"), "gate", get_args(Asked))
    checked_min_cell(config.get("min_cell"))
    prefix = config.get("prefix", PREFIX)
    if not isinstance(prefix, str) or PLAIN_NAME.fullmatch(prefix) is None:
        raise InputError(
            "{argument} must be a text of letters, digits, spaces and . _ -, as names in MLflow "
            "are, not {value}",
            argument="prefix",
            value=prefix,
        )
    return dict(config)


def _require(names: Iterable[Any], known: Iterable[Any], argument: str, problem: str) -> None:
    """Refuse the first name that is not known, with the closest one."""
    texts = [str(name) for name in known]
    for name in names:
        place_of(str(name), texts, f"{problem}; {{guess}}", argument=argument)


def _sample(
    dataset: Any, model: Any, predictions: str | None, config: Mapping[str, Any]
) -> tuple[Sample, tuple[str, ...]]:
    """The rows, and the names of the covariates to judge on."""
    frame = _features(dataset)
    if dataset.labels_data is None:
        raise InputError("{argument}: name the column of labels", argument="targets")
    roles = {role: config[role] for role in ROLES if config.get(role) is not None}
    used = [name for value in roles.values() for name in names_of(value)]
    on = config["on"]
    names = names_of(on) if on is not None else tuple(c for c in frame.columns if c not in used)
    more = set[str]().union(*(task.names for task in as_tasks(config.get("tasks", ()))))
    chosen = [*names, *sorted(more - set(names))]
    problem = "{argument}: the data has no column {value}"
    _require([*chosen, *used], frame.columns, "evaluator_config", problem)
    rows: dict[str, Any] = {role: frame[list(names_of(name))] for role, name in roles.items()}
    rows["weights"] = rows["weights"].iloc[:, 0] if "weights" in rows else None
    rows["missing"] = config.get("missing", "error")
    labels = pd.Series(dataset.labels_data, index=frame.index, name=dataset.targets_name or "label")
    positive, x = config.get("pos_label"), frame[chosen]
    raw = None if model is None else _classifier(model)
    if raw is not None:
        X = _read_by(raw, dataset, frame)
        made = Sample.from_estimator(raw, X, labels, on=x, pos_label=positive, **rows)
    else:
        p = _probabilities(dataset, model, predictions, frame, _column_of(labels, positive))
        made = Sample(labels, p, x, positive=positive, **rows)
    return of_two_classes(made), names


def _features(dataset: Any) -> pd.DataFrame:
    """The features as a frame whose columns are texts."""
    data = dataset.features_data
    frame = data if isinstance(data, pd.DataFrame) else pd.DataFrame(np.asarray(data))
    return frame.set_axis([str(name) for name in dataset.feature_names], axis="columns")


def _classifier(model: Any) -> Any:
    """What MLflow has wrapped, if it gives probabilities; else None."""
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError, mlflow.MlflowException):  # of other flavours
        return None
    return raw if hasattr(raw, "predict_proba") else None


def _read_by(raw: Any, dataset: Any, frame: pd.DataFrame) -> Any:
    """The features that a classifier was fitted to, by name where it knows names."""
    names = getattr(raw, "feature_names_in_", None)
    if names is None:
        return dataset.features_data
    lacking = [str(name) for name in names if name not in frame.columns]
    if lacking:
        raise InputError(
            "the model was fitted to {lacking}, which the data lacks",
            argument="data",
            details={"lacking": listed(lacking)},
        )
    return frame[list(names)]


def _column_of(labels: pd.Series, positive: object) -> int:
    """Which of two columns is that of the positive label, as `predict_proba` orders them."""
    known = label_values(labels)
    return known.index(positive) if len(known) == 2 and positive in known else 1


def _probabilities(
    dataset: Any, model: Any, predictions: str | None, frame: pd.DataFrame, column: int
) -> Any:
    """The predictions, which have to be probabilities of the positive label.

    Of two columns, `column` is taken.
    """
    if model is None and dataset.predictions_data is None:
        raise InputError(
            "{argument}: without a model, name the column of probabilities", argument="predictions"
        )
    told = dataset.predictions_data if model is None else model.predict(frame)
    if isinstance(told, pd.DataFrame) and predictions is not None:
        problem = "{argument}: the model gives no column {value}"
        _require([predictions], told.columns, "predictions", problem)
        told = told[predictions]
    values = np.asarray(told)
    if values.ndim == 2 and values.shape[1] in (1, 2):
        values = values[:, column if values.shape[1] == 2 else 0]
    numeric = values.ndim == 1 and values.dtype.kind in "fiub"
    if not numeric or set(np.unique(values)) <= {0, 1}:
        cure = "name a column of probabilities" if model is None else GIVE_PROBABILITIES
        problem = "the predictions are labels, not probabilities; {cure}"
        raise InputError(problem, argument="predictions", details={"cure": cure})
    return values
