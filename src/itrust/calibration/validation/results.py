"""What validators print about the predictions alone: a table of statistics, grades, thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from itrust._core import InputError, Result, WithFacts, in_pandas

if TYPE_CHECKING:
    import pandas as pd


class Reason(StrEnum):
    """Why there is no number, or no p-value."""

    CLUSTERED_GROUPS = "Hosmer-Lemeshow has no law for clustered rows"
    CLUSTERED_GRADES = "binomial and Jeffreys tests have no law for clustered rows"
    CLUSTERED_REDRAWS = "labels of clustered rows cannot be redrawn one by one"
    WEIGHTED_GRADES = "binomial and Jeffreys laws count rows, not weights"
    ONE_LABEL = "all labels are alike"
    ONE_PREDICTION = "all predictions are alike"
    SEPARATED = "the predictions separate the labels, so that no finite value fits"
    CONTRARY = "labels that the model called impossible came true, so that no finite value fits"
    CERTAIN = "every prediction is 0 or 1, and has no logit"
    NO_VARIANCE = "no label can vary"
    ONE_ROW = "a label has one row only, so that there is no interval"
    TOSSED = "every prediction is 0, 1 or 1/2, where it asks nothing"
    WITHHELD = "withheld: it would tell of few rows"


@dataclass(frozen=True)
class ValidationStatistic(WithFacts):
    """One statistic of the predictions.

    Attributes
    ----------
    name : str
        Such as "slope".
    value : float or None
        None where there is none; `reason` says why.
    lower, upper : float or None
        Ends of the confidence interval, where the statistic has one.
    pvalue : float or None
        For "the model is calibrated", by the law that textbooks and other packages take: normal,
        chi-square, or by the design. Unadjusted.
    exact_pvalue : float or None
        The same question answered by labels that are redrawn from the probabilities, which needs
        neither a law nor many rows; approximate where rows have weights, for they are redrawn as so
        many rows as they are worth. Unadjusted. None for rows of clusters.
    expected : float or None
        Mean over the redraws: what a calibrated model would show on these rows.
    freedom : int or None
        Degrees of freedom of the law.
    reason : Reason or None
        Why a number or a p-value is missing, where one is.
    """

    name: str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    pvalue: float | None = None
    exact_pvalue: float | None = None
    expected: float | None = None
    freedom: int | None = None
    reason: Reason | None = None

    @property
    def chance(self) -> float | None:
        """The p-value to rely on: by redraws, or by the law where there are none."""
        return self.pvalue if self.exact_pvalue is None else self.exact_pvalue


@dataclass(frozen=True)
class Grade(WithFacts):
    """Rows of one grade: a rating class, or an interval of the prediction.

    Attributes
    ----------
    name : str
        Of the grade; groups of the prediction are numbered from the lowest.
    rows, events : int
        Rows, and those of label 1.
    predicted, observed : float
        Mean prediction and rate of label 1, weighted.
    binomial, jeffreys : float or None
        One-sided p-values for "the prediction is not too low": small where there are more events
        than predicted. Binomial: P(X >= events). Jeffreys: the beta law with 1/2 added to events
        and to other rows, up to the mean prediction (ECB 2019).
    binomial_two_sided, jeffreys_two_sided : float or None
        Twice the smaller tail, 1 at most.
    adjusted, adjusted_two_sided : float or None
        The binomial p-values adjusted for all grades (step-down, by redraws of their events).
    reason : Reason or None
        Why p-values are missing, where they are.
    """

    name: str
    rows: int
    events: int
    predicted: float
    observed: float
    binomial: float | None = None
    jeffreys: float | None = None
    binomial_two_sided: float | None = None
    jeffreys_two_sided: float | None = None
    adjusted: float | None = None
    adjusted_two_sided: float | None = None
    reason: Reason | None = None


@dataclass(frozen=True)
class DecisionPoint(WithFacts):
    """What deciding by the prediction is worth at one threshold (Vickers and Elkin 2006).

    Attributes
    ----------
    threshold : float
        Rows whose prediction is at least this are acted on.
    true_positives, false_positives : float
        Shares of all rows, weighted, that are acted on and have label 1, or 0.
    rate : float
        Share of label 1 among all rows, weighted.
    rows : int
        Rows that are acted on.
    """

    threshold: float
    true_positives: float
    false_positives: float
    rate: float
    rows: int
    _derived = ("net_benefit", "treat_all", "treat_none")

    @property
    def odds(self) -> float:
        """How many true positives a false one costs: threshold / (1 - threshold)."""
        return self.threshold / (1 - self.threshold)

    @property
    def net_benefit(self) -> float:
        """True positives less false positives times the odds, by row."""
        return self.true_positives - self.odds * self.false_positives

    @property
    def treat_all(self) -> float:
        """The same if every row were acted on."""
        return self.rate - self.odds * (1 - self.rate)

    @property
    def treat_none(self) -> float:
        """What acting on nobody is worth."""
        return 0.0


Entry = TypeVar("Entry", Grade, DecisionPoint)


class ValidationTable(tuple[Entry, ...]):
    """Grades or thresholds one after the other, also as a table.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> found = it.scores.validation(town, draws=199, rng=0)
    >>> found.grades.to_arrow().column_names[:4], len(found.grades)
    (['name', 'rows', 'events', 'predicted'], 10)
    """

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """Give one row for each grade or threshold.

        Returns
        -------
        pyarrow.Table
            With a column for each attribute.
        """
        return pa.Table.from_pylist([entry.to_dict() for entry in self])

    def to_pandas(self) -> pd.DataFrame:
        """Give the rows of `to_arrow` as a data frame; needs pandas.

        Returns
        -------
        pandas.DataFrame
            One row for each grade or threshold.
        """
        return in_pandas(self.to_arrow())


@dataclass(frozen=True, eq=False)
class Validation(Result):
    """What validators print about the predictions alone; none of it looks at covariates.

    Attributes
    ----------
    n, events : int
        Rows that count, and those of label 1.
    confidence : float
        Coverage of the intervals, each by itself.
    draws, seed : int
        How often labels were redrawn, and what makes the same draws again.
    certain, contrary : int or None
        Rows whose prediction is exactly 0 or 1, and those of them with the other label; None where
        that would tell of few rows.
    knots : int
        Of the spline behind ICI; 0: a line in the logit.
    gathered : bool
        Whether rows were gathered in cells of nearly equal predictions, as more than 100,000 are.
    weighted, clustered : bool
        Whether rows count differently, and whether some were drawn together.
    statistics : tuple of ValidationStatistic
        In the order in which they are printed.
    grades : ValidationTable of Grade
        By the user's grades, or ten groups of the prediction; `grades.to_pandas()` is their table.
    decision : ValidationTable of DecisionPoint
        The decision curve, by rising thresholds; a table in the same way.
    folds : int
        Models behind out-of-fold predictions, with which exact p-values are approximate; 0: one
        model, which has not seen these labels.
    graded_by : str or None
        The column that the grades are of; None: they are intervals of the prediction.
    """

    n: int
    events: int
    confidence: float
    draws: int
    seed: int
    certain: int | None
    contrary: int | None
    knots: int
    gathered: bool
    weighted: bool
    clustered: bool
    statistics: tuple[ValidationStatistic, ...]
    grades: ValidationTable[Grade]
    decision: ValidationTable[DecisionPoint]
    folds: int = 0
    graded_by: str | None = None

    def __repr__(self) -> str:
        return f"<Validation: {len(self.statistics)} statistics, {self.n:,} rows>"

    def __getitem__(self, name: str) -> ValidationStatistic:
        by_name = {statistic.name: statistic for statistic in self.statistics}
        if name in by_name:
            return by_name[name]
        problem = "there is no statistic {value}; the names are {known}"
        raise InputError(problem, argument="name", value=name, known=", ".join(by_name))

    def __iter__(self) -> Iterator[ValidationStatistic]:
        return iter(self.statistics)

    def __len__(self) -> int:
        return len(self.statistics)

    @property
    def tested(self) -> tuple[ValidationStatistic, ...]:
        """Statistics that have a p-value, by redraws or by a law."""
        return tuple(one for one in self.statistics if one.chance is not None)

    def rejected(self, alpha: float) -> tuple[ValidationStatistic, ...]:
        """Give the statistics whose p-value is at most alpha; unadjusted.

        Parameters
        ----------
        alpha : float
            Error that each is allowed by itself.

        Returns
        -------
        tuple of ValidationStatistic
            By redraws where there are some, otherwise by their law.
        """
        return tuple(one for one in self.tested if one.chance is not None and one.chance <= alpha)

    def _rows(self) -> list[dict[str, Any]]:
        return [statistic.to_dict() for statistic in self.statistics]
