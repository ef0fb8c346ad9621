"""Estimates of a task on a population, as results: light enough for whoever only shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from itrust._core import Result, rounded
from itrust.balance import Gap, Resemblance
from itrust.tasks.expressions import Task

# Shares of the rows that a task counts beyond which it is refused: of levels that no labelled row
# has, about which nothing can be known, and of all rows that no labelled row is like.
MAX_NEW, MAX_UNLIKE = 0.01, 0.1


class Assumption(StrEnum):
    """What the interval of an estimate rests on."""

    CALIBRATED = "the probabilities are calibrated"
    SMOOTH = "the bias is smooth and the same in both samples"
    RANDOM = "labelled rows are a random sample"
    WEIGHTED = "labelled rows are a random sample, by their weights"
    SELECTED = "who is labelled depends on the covariates and p alone"
    KNOWN = "the probabilities of labelling are as given"


class BestReason(StrEnum):
    """Why an estimate is recommended, or none."""

    RANDOM = "labelled rows look like a random sample of the population"
    SELECTED = "labelled rows may not be a random sample of the population"
    DIFFERENT = "labelled rows are no random sample of the population"
    KNOWN = "the probabilities of labelling are known"
    UNSUPPORTED = "a part of the population is unlike every labelled row"
    UNBALANCED = "labelled rows cannot be weighted to be like the population"
    UNKNOWN = "labelled rows say too little about this population"


@dataclass(frozen=True)
class Estimate(Result):
    """One way to estimate a number.

    Attributes
    ----------
    value : float
        What the number is estimated to be.
    stderr : float
        Its standard error.
    lower, upper : float
        The interval.
    assumes : Assumption
        What the interval rests on.
    """

    value: float
    stderr: float
    lower: float
    upper: float
    assumes: Assumption

    def __repr__(self) -> str:
        return f"<Estimate: {_with_ends(self)}>"

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.upper - self.lower


@dataclass(frozen=True)
class TaskEstimate(Result):
    """A task on a population, estimated in five ways, one of which is recommended.

    Attributes
    ----------
    task : Task
        What is estimated, with its text.
    plugin : Estimate
        Probabilities in place of labels.
    recalibrated : Estimate or None
        Probabilities plus the local bias of the labelled rows; None where the population, or
        pairs of labelled rows and its rows, are too many.
    prediction_powered : Estimate
        Probabilities of the population, corrected by labelled rows.
    transported : Estimate or None
        Recalibrated probabilities, corrected by labelled rows that are weighted to be like the
        population; None where that cannot be.
    labelled : Estimate
        Labels of the labelled rows alone.
    best_way : str or None
        Name of the estimate that is recommended; None if none is.
    reason : BestReason
        Why.
    resemblance : Resemblance
        Whether the labelled rows are like the population.
    effective : float
        Effective sample size of the weights of `transported`; NaN without it.
    trimmed : int
        How many of these weights were cut.
    unbalanced : int
        How many features they leave different by more than a tenth of a standard deviation.
    gaps : tuple of Gap
        Parts of the population that no labelled row resembles, among rows that the task counts.
    support : {"refuse", "exclude"}
        What is done about these: no transported estimate, or none of their rows counts.
    lam : float
        How much weight the probabilities have in `prediction_powered`, between 0 and 1, chosen
        for a short interval.
    n : int
        Number of labelled rows.
    size : int
        Number of rows of the population.
    excluded : int or None
        How many of these do not count because no labelled row resembles them, with
        `support="exclude"`; None where they are too few to be shown.
    alpha : float
        Error that every interval is allowed.
    notes : tuple of str
        Data-quality notes.
    """

    task: Task
    plugin: Estimate
    recalibrated: Estimate | None
    prediction_powered: Estimate
    transported: Estimate | None
    labelled: Estimate
    best_way: str | None
    reason: BestReason
    resemblance: Resemblance
    effective: float
    trimmed: int
    unbalanced: int
    gaps: tuple[Gap, ...]
    support: str
    lam: float
    n: int
    size: int
    excluded: int | None
    alpha: float
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        if self.best is None:
            return f"<TaskEstimate: {self.task}, no estimate recommended>"
        way = str(self.best_way).replace("_", "-")
        scope = "" if self.excluded == 0 else ", of rows like labelled ones"
        return f"<TaskEstimate: {self.task}, {_with_ends(self.best)} {way}{scope}>"

    @property
    def ways(self) -> dict[str, Estimate]:
        """The estimates by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Estimate)}

    @property
    def best(self) -> Estimate | None:
        """The estimate that is recommended; None if none can be."""
        return None if self.best_way is None else self.ways[self.best_way]

    def _facts(self) -> Mapping[str, Any]:
        facts = {**super()._facts(), "task": str(self.task)}
        facts["best"], facts["population"] = facts.pop("best_way"), facts.pop("size")
        ways = "recalibrated", "transported"
        return {name: facts[name] for name in facts if name not in ways or facts[name] is not None}

    def _rows(self) -> list[Mapping[str, Any]]:
        return [
            {"way": name, **way.to_dict(), "best": name == self.best_way}
            for name, way in self.ways.items()
        ]


def _with_ends(way: Estimate) -> str:
    value, low, high = (
        rounded(number, way.lower, way.upper) for number in (way.value, way.lower, way.upper)
    )
    return f"{value} ({low} to {high})"
