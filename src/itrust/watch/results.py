"""What a watch holds for those who look at it: values only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from itrust._core import Result
from itrust.calibration import Shape
from itrust.data import Predicate
from itrust.tasks import OfTask, Task

MAX_LOG = 700.0  # beyond it a float overflows


def exp_of(log: float) -> float:
    """The exponential, without overflow: what is finite stays finite."""
    return math.inf if log == math.inf else math.exp(min(log, MAX_LOG))


# Of a model that stays calibrated: with probability 1 - alpha it never raises an alarm, or on
# average it takes 1 / alpha batches or more to an alarm.
Promise = Literal["ever", "run length"]


@dataclass(frozen=True)
class Onset(Result):
    """Since when the model has been miscalibrated, by the batches up to the alarm.

    Attributes
    ----------
    batch : int
        The first batch with the bias, as the data say best; batches count from 1. It is never later
        than the alarm.
    lower, upper : int
        All batches from the one to the other may be the first. The interval is approximate: it is
        for a bias that has the shape of the leading check and has kept its size since, and the
        factors that it compares are bounds of likelihood ratios.
    name : str or None
        Name of that batch.
    check : str
        Name of the leading check: the one that carried most of the evidence at the alarm.
    label : object
        The class whose probability it is about; None for two classes.
    """

    batch: int
    lower: int
    upper: int
    name: str | None
    check: str
    label: Any = None


@dataclass(frozen=True)
class WatchFinding(Result):
    """A check that carries the evidence by itself.

    Attributes
    ----------
    name : str
        Of the check, such as "age: trend" or "region = south".
    family : str
        Checks of a family share its weight.
    covariates : tuple of str
        Names of the covariates it reads; empty for the prediction alone.
    shape : Shape
        The kind of bias it looks for.
    where : Predicate
        The rows it is about; everywhere unless it is about a part of them.
    label : object
        The class whose probability it is about; None for two classes.
    direction : int
        +1 where labels lie above the predictions in the sense of the shape (the model
        underestimates), -1 where they lie below; as it was when `evalue` was reached.
    weight : float
        The share of the watch's stake that the check has.
    evalue : float
        Its largest evidence so far, by itself.
    pvalue : float or None
        Adjusted for all checks and all times: one over (weight times `evalue`), at most 1. None
        where the promise is a run length, which has no p-value.
    rows : int
        How many rows it has bet on: those of its group or part.
    excess : float
        The sum of the residuals, each times what the check makes of its row: of a group of rows
        that count alike, positive labels less those that the model predicted, since bets began.
    chance : float
        Standard deviation of that sum if the model is calibrated. It describes; the evidence of a
        watch is what is tested.
    """

    name: str
    family: str
    covariates: tuple[str, ...]
    shape: Shape
    where: Predicate
    label: Any
    direction: int
    weight: float
    evalue: float
    pvalue: float | None
    rows: int
    excess: float = math.nan
    chance: float = math.nan

    def _facts(self) -> Mapping[str, Any]:
        return {**vars(self), "where": self.where.formula}


@dataclass(frozen=True)
class NumberSoFar(OfTask):
    """A number that is reported, over all batches of a segment so far.

    Its target is the number that the true probabilities of these very rows give, which may move
    from batch to batch. The interval covers it at all times together with probability 1 - alpha,
    each number by itself.

    Attributes
    ----------
    task : Task
        The number.
    batches, rows : int
        How many have been counted.
    with_labels : float
        The number as labels give it; NaN where nothing counts yet.
    with_probabilities : float
        The number as probabilities give it.
    lower, upper : float
        Interval of the bias: of the number with true probabilities less the one with the
        probabilities of the model. Infinite where nothing can be said yet.
    alpha : float
        Error that the interval is allowed, over all times.
    smallest_cell : int
        Fewest rows that it would tell of: those that its conditions keep or leave out, positive
        ones of means, and those with and without the property of a share. 0 before there are any.
    """

    _derived = ("tolerance", "bias", "number_lower", "number_upper")

    task: Task
    batches: int
    rows: int
    with_labels: float
    with_probabilities: float
    lower: float
    upper: float
    alpha: float
    smallest_cell: int = 0

    @property
    def bias(self) -> float:
        """The number with labels less the one with probabilities."""
        return self.with_labels - self.with_probabilities

    @property
    def number_lower(self) -> float:
        """Lower end for the number itself."""
        return self.with_probabilities + self.lower

    @property
    def number_upper(self) -> float:
        """Upper end for the number itself."""
        return self.with_probabilities + self.upper


@dataclass(frozen=True)
class BatchRecord(Result):
    """One batch, as it was taken in.

    Attributes
    ----------
    number : int
        From 1, over all segments.
    name : str or None
        As it was given.
    rows : int
        How many.
    mean_label, mean_prediction : float
        Weighted; of several classes, of the share of rows whose label is the class with the
        largest probability, and of that probability.
    log_evalue : float
        Logarithm of the evidence after this batch; infinite once a label has occurred that the
        model had given probability 0.
    log_peak : float
        The largest one of its segment so far; with a run length, since the last alarm.
    segment : int
        Number of the segment, from 0.
    late : bool
        Whether these are rows of earlier batches whose outcomes came late.
    digest : str
        Fingerprint of the rows, whatever their order.
    start, end : str or None
        From when to when the rows are, where that was said.
    impossible : int
        Number of labels that the model had given probability 0.
    raised : bool
        Whether this batch raised an alarm.
    since : Onset or None
        If it did, since when, as it was known then; None where labels were impossible.
    """

    number: int
    name: str | None
    rows: int
    mean_label: float
    mean_prediction: float
    log_evalue: float
    log_peak: float
    segment: int
    late: bool
    digest: str
    start: str | None = None
    end: str | None = None
    impossible: int = 0
    raised: bool = False
    since: Onset | None = None

    @property
    def evalue(self) -> float:
        """The evidence after this batch."""
        return exp_of(self.log_evalue)


@dataclass(frozen=True)
class Segment(Result):
    """The time of one model.

    Attributes
    ----------
    number : int
        From 0.
    name : str or None
        Of the model.
    first : int
        Number of its first batch.
    batches : int
        How many batches it has seen.
    reference_rows : int
        Rows of its reference.
    reference_digest : str
        Fingerprint of the reference.
    """

    number: int
    name: str | None
    first: int
    batches: int
    reference_rows: int
    reference_digest: str


class OfBatches(Result):
    """Batches of one model after the other, the last one being the one in use."""

    promise: Promise
    history: tuple[BatchRecord, ...]
    segments: tuple[Segment, ...]

    @property
    def present(self) -> list[BatchRecord]:
        """The batches of the present model."""
        return list(self.history[self.segments[-1].first - 1 :])

    @property
    def running(self) -> list[BatchRecord]:
        """The batches since bets began: all of the model, or those since the alarm before this."""
        own = self.present
        raised = [k for k, record in enumerate(own[:-1]) if record.raised]
        return own[raised[-1] + 1 :] if raised and self.promise == "run length" else own

    @property
    def impossible(self) -> int:
        """Number of labels that the model had given probability 0, since bets began."""
        return sum(record.impossible for record in self.running)
