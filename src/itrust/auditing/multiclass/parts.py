"""The parts of an audit of several classes: overall calibration, one class, what was missed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from itrust._core import plain, signed
from itrust.auditing.parts import Diagnosis, MeanBias
from itrust.bias import GroupBias, Slice, SliceTable
from itrust.calibration import ClassResult, ReliabilityCurve
from itrust.data import Predicate

Part = TypeVar("Part", GroupBias, Slice)
FAMILY = (
    "intervals and p-values of means, groups and slices hold for all classes at once: each class "
    "has its share of alpha, and p-values are multiplied by the number of classes"
)


@dataclass(frozen=True, eq=False, repr=False)
class ClassPart:
    """What an audit found about one class against the rest.

    P-values of the mean, of groups and of slices are multiplied by the number of classes, and
    intervals have that share of alpha, so they hold for all classes at once.

    Attributes
    ----------
    name : object
        The class.
    rows : int or None
        Rows that are of the class; None where they are withheld. Then `mean` has the prediction
        only, `ece` is NaN, and curve, groups and slices are empty.
    test : ClassResult
        Its part of the test, adjusted for all classes.
    mean : MeanBias
        Mean prediction beside the rate of the class.
    ece : float
        Calibration error of the class's probability over ten bins.
    curve : ReliabilityCurve
        Observed rate against prediction in ten bins of equal weight.
    diagnosis : Diagnosis
        Local bias, with its share of alpha, groups, numbers cut in quarters among them, and slices.
    """

    name: Any
    rows: int | None
    test: ClassResult
    mean: MeanBias
    ece: float
    curve: ReliabilityCurve
    diagnosis: Diagnosis

    def __repr__(self) -> str:
        bias = "withheld" if self.rows is None else signed(self.mean.bias)
        return f"<ClassPart: {self.name!r}, bias {bias}, p {self.test.pvalue:.3g}>"

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            "name", "rows", "pvalue" of the class, and the parts.
        """
        found: dict[str, Any] = plain(
            {
                "name": str(self.name),
                "rows": self.rows,
                "statistic": self.test.statistic,
                "pvalue": self.test.pvalue,
                "unadjusted_pvalue": self.test.unadjusted_pvalue,
                "mean": self.mean.to_dict(),
                "ece": self.ece,
                "curve": dict(vars(self.curve)),
                "diagnosis": self.diagnosis.to_dict(),
            }
        )
        return found


@dataclass(frozen=True, eq=False)
class TopLabel:
    """The class with the largest probability: how often it is right, and how often it should be.

    Attributes
    ----------
    mean : MeanBias
        Mean confidence ("predicted") beside the accuracy ("observed"), with an error control of
        its own.
    ece : float
        Calibration error of the confidence over ten bins.
    curve : ReliabilityCurve
        Accuracy against confidence in ten bins of equal weight.
    """

    mean: MeanBias
    ece: float
    curve: ReliabilityCurve

    @property
    def accuracy(self) -> float:
        """Share of rows whose class has the largest probability."""
        return self.mean.observed

    @property
    def confidence(self) -> float:
        """Mean of the largest probability."""
        return self.mean.predicted

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            "accuracy", "confidence", the interval of their difference, "ece" and "curve".
        """
        return {
            "accuracy": self.accuracy,
            "confidence": self.confidence,
            **{name: getattr(self.mean, name) for name in ("bias", "lower", "upper", "pvalue")},
            "ece": self.ece,
            "curve": dict(vars(self.curve)),
        }


@dataclass(frozen=True, eq=False)
class ClassesOverall:
    """Overall calibration of all classes, whatever the covariates.

    Attributes
    ----------
    top : TopLabel
        The class with the largest probability.
    statistic : float
        Of canonical calibration: the largest standard score of all sums of p_A (y_B - p_B).
    pvalue : float
        Of canonical calibration: the larger of its own p-value and that of the test given the
        covariates, since this implies that; NaN where rows are not independent.
    unadjusted_pvalue : float
        Its own p-value.
    brier : float
        Mean of half the sum over classes of (y - p)^2.
    log_loss : float
        Mean of minus the log of the probability that the label was given.
    """

    top: TopLabel
    statistic: float
    pvalue: float
    unadjusted_pvalue: float
    brier: float
    log_loss: float

    def refutes(self, alpha: float) -> bool:
        """Whether overall calibration is refuted.

        Parameters
        ----------
        alpha : float
            Error that is allowed.

        Returns
        -------
        bool
            False where there is no p-value.
        """
        return self.pvalue <= alpha

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            "top", "canonical" and the scores.
        """
        canonical = ("statistic", "pvalue", "unadjusted_pvalue")
        return {
            "brier": self.brier,
            "log_loss": self.log_loss,
            "top": self.top.to_dict(),
            "canonical": {name: getattr(self, name) for name in canonical},
        }


@dataclass(frozen=True)
class ClassesMissed:
    """How small a bias of one class the intervals of groups would have shown.

    One computation for all classes: the variance of redrawn labels in each group and Bonferroni's
    bound for all groups of all classes, so it is careful. Power of the test itself is not computed.

    Attributes
    ----------
    shift : float
        The bias that would be shown with this power in every group with enough rows, of every
        class.
    name : object
        The class that needs the largest one.
    where : Predicate or None
        The group where it is needed; None where it is withheld.
    share : float
        Share of the rows that the group is.
    everywhere : float
        The bias that would be shown in all rows, of every class.
    groups : int
        Groups with enough rows, without "all rows".
    min_rows : int
        What enough is.
    power : float
        Chance to show it.
    """

    shift: float
    name: Any
    where: Predicate | None
    share: float
    everywhere: float
    groups: int
    min_rows: int
    power: float = 0.8

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            The attributes; class and group as text.
        """
        where = None if self.where is None else str(self.where)
        found: dict[str, Any] = plain({**vars(self), "where": where})
        return {**found, "name": str(self.name)}


def multiplied(diagnosis: Diagnosis, classes: int, alpha: float) -> Diagnosis:
    """Adjust groups and slices for all classes; their intervals have a share of alpha already."""
    groups, slices = diagnosis.groups, diagnosis.slices
    if groups is not None:
        own = _times(groups.groups, classes, alpha)
        groups = replace(groups, groups=own, alpha=alpha)
    found: SliceTable = replace(slices, slices=_times(slices.slices, classes, alpha), alpha=alpha)
    return replace(diagnosis, groups=groups, slices=found)


def _times(parts: Sequence[Part], classes: int, alpha: float) -> tuple[Part, ...]:
    return tuple(
        replace(part, pvalue=adjusted(part.pvalue, classes, alpha, part.lower, part.upper))
        for part in parts
    )


def adjusted(pvalue: float, classes: int, alpha: float, lower: float, upper: float) -> float:
    """A p-value times the number of classes, on the side of alpha that its interval says."""
    told = min(classes * pvalue, 1.0)
    if math.isnan(told):
        return told
    if lower > 0 or upper < 0:  # rounding of alpha / classes must not part the two
        return min(told, alpha)
    return told
