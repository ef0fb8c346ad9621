"""Several models of the same classes: the test of each, and paired differences of scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, Result, counted, did_you_mean
from itrust.auditing.comparison import Difference
from itrust.calibration import (
    MulticlassResult,
    class_losses,
    mean_loss,
    multiclass_test,
    scores,
    student_quantile,
    top_label,
)
from itrust.data import MulticlassSample
from itrust.tasks import Task, TaskResult, check_tasks, evaluate_tasks

SCORES = ("accuracy", "brier", "log_loss", "ece")


@dataclass(frozen=True, eq=False)
class ClassesReport:
    """What was found about one of several models of the same classes.

    Attributes
    ----------
    name : str
        As it was given to `compare`.
    accuracy : float
        Share of rows whose class has the largest probability.
    brier : float
        Mean of half the sum over classes of (y - p)^2.
    log_loss : float
        Mean of minus the log of the probability that the label was given; infinite if the model
        called a label impossible.
    ece : float
        Calibration error of the largest probability over ten bins.
    test : MulticlassResult
        Are all classes calibrated given the covariates?
    tasks : tuple of TaskResult
        What the model does to the user's numbers, in the order they were given.
    """

    name: str
    accuracy: float
    brier: float
    log_loss: float
    ece: float
    test: MulticlassResult
    tasks: tuple[TaskResult, ...] = ()

    def __repr__(self) -> str:
        return f"<ClassesReport: {self.name}, Brier {self.brier:.4f}, p {self.test.pvalue:.3g}>"

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            Scores, statistic and p-value of the test, and the tasks.
        """
        return {
            "name": self.name,
            **{name: getattr(self, name) for name in SCORES},
            "statistic": self.test.statistic,
            "pvalue": self.test.pvalue,
            "tasks": [task.to_dict() for task in self.tasks],
        }


@dataclass(frozen=True, eq=False, repr=False)
class ClassesComparison(Result):
    """Outcome of `compare` for more than two classes.

    Attributes
    ----------
    models : tuple of ClassesReport
        One for each model, in the order they were given.
    differences : tuple of Difference
        Every pair of models and every score; each interval holds on its own.
    alpha : float
        Of the intervals.
    n : int
        Number of rows.
    draws, seed : int
        Number of redraws; `compare(..., rng=c.seed)` makes the comparison again.
    """

    models: tuple[ClassesReport, ...]
    differences: tuple[Difference, ...]
    alpha: float
    n: int
    draws: int
    seed: int

    def __getitem__(self, name: str) -> ClassesReport:
        for model in self.models:
            if model.name == name:
                return model
        known = [model.name for model in self.models]
        raise InputError(f"there is no model {name!r}; {did_you_mean(name, known)}")

    def _facts(self) -> dict[str, Any]:
        return {
            "models": [model.to_dict() for model in self.models],
            "differences": [part.to_dict() for part in self.differences],
            **{name: getattr(self, name) for name in ("alpha", "n", "draws", "seed")},
        }

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in model.to_dict().items() if name != "tasks"}
            for model in self.models
        ]

    def __repr__(self) -> str:
        return f"<ClassesComparison: {', '.join(model.name for model in self.models)}>"


def compare_classes(
    models: Mapping[str, MulticlassSample],
    tasks: list[Task],
    on: tuple[str, ...] | None,
    *,
    alpha: float,
    draws: int,
    seed: int,
) -> ClassesComparison:
    """Compare models of more than two classes; settings have been checked."""
    names, samples = list(models), list(models.values())
    for name, sample in zip(names[1:], samples[1:], strict=True):
        _refuse_other_rows(names[0], samples[0], name, sample)
    reports = []
    for name, sample in models.items():
        rows: Any = sample
        if tasks:
            check_tasks(rows, tasks, is_all=True)
        judged = rows if on is None or on == sample.names else rows.only(*on)
        settings: dict[str, Any] = {"draws": draws, "rng": seed}
        top = top_label(sample)
        brier, log_loss = (mean_loss(sample, losses) for losses in class_losses(sample))
        reports.append(
            ClassesReport(
                name=name,
                accuracy=float(np.average(top.y, weights=top.weights_or_ones)),
                brier=brier,
                log_loss=log_loss,
                ece=scores.ece(top),
                test=multiclass_test(judged, **settings),
                tasks=tuple(evaluate_tasks(rows, tasks, alpha=alpha, **settings)) if tasks else (),
            )
        )
    differences = tuple(
        part
        for a, b in combinations(range(len(samples)), 2)
        for part in _differences((names[a], samples[a]), (names[b], samples[b]), alpha)
    )
    return ClassesComparison(tuple(reports), differences, float(alpha), samples[0].n, draws, seed)


def _differences(
    first: tuple[str, MulticlassSample], second: tuple[str, MulticlassSample], alpha: float
) -> Iterator[Difference]:
    """First minus second in every score; intervals by the design's variance of paired losses."""
    (one, a), (two, b) = first, second
    own = a
    w = own.weights_or_ones / own.weights_or_ones.sum()
    losses = zip(("Brier", "log loss"), class_losses(a), class_losses(b), strict=True)
    for what, of_a, of_b in losses:
        infinite = [int(np.isinf(loss[w > 0]).sum()) for loss in (of_a, of_b)]
        if any(infinite):
            told = ", ".join(
                f"{name} called {counted(count, 'label')} impossible"
                for name, count in zip((one, two), infinite, strict=True)
                if count
            )
            note = f"no difference, the log loss is infinite: {told}"
            yield Difference(what, one, two, math.nan, math.nan, math.nan, note)
            continue
        gap: FloatArray = of_a - of_b
        value = float(w @ gap)
        shares = w * (gap - value)
        if own.design.is_simple:
            variance, freedom = float(shares @ shares) * own.n / (own.n - 1), own.n - 1.0
        else:
            variance = float(own.design.linearised_variance(shares))
            freedom = float(own.design.freedom)
        half = float(student_quantile(alpha / 2, freedom)) * math.sqrt(max(variance, 0.0))
        yield Difference(what, one, two, value, value - half, value + half)


def _refuse_other_rows(first: str, a: MulticlassSample, name: str, b: MulticlassSample) -> None:
    """Paired differences need the same rows and classes."""
    if a.n != b.n:
        raise InputError(f"{first!r} has {a.n:,} rows and {name!r} {b.n:,}; compare takes the same")
    if tuple(a.classes) != tuple(b.classes):
        raise InputError(
            f"{first!r} and {name!r} have different classes, or the same in another order; name "
            f"them with classes=[...]"
        )
    if (a.codes != b.codes).any():
        row = int(np.argmax(a.codes != b.codes))
        raise InputError(f"{first!r} and {name!r} have different labels in row {row}")
    if a.names != b.names:
        raise InputError(f"{first!r} and {name!r} have different covariates")
    for own, other in zip(a.columns, b.columns, strict=True):
        same = own.values == other.values
        if own.levels != other.levels or not (same | (own.missing & other.missing)).all():
            raise InputError(f"{first!r} and {name!r} differ in the covariate {own.name!r}")
    for what in ("weights", "cluster", "strata", "replicate_weights"):
        left, right = getattr(a.design, what), getattr(b.design, what)
        if (left is None) != (right is None) or (
            left is not None and not np.array_equal(left, right)
        ):
            raise InputError(f"{first!r} and {name!r} have different {what.replace('_', ' ')}")
