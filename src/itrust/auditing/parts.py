"""The parts of an audit: overall calibration, what could have been missed, the diagnosis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from itrust._core import WithFacts, signed
from itrust.auditing.charts import Charts
from itrust.bias import GroupBias, GroupTable, LocalBias, PartBias, Slice, SliceTable, near_end
from itrust.calibration import (
    MIN_CLUSTERS,
    CalibrationResult,
    ClassResult,
    Detectable,
    ReliabilityCurve,
    ValidationStatistic,
)
from itrust.data import Predicate
from itrust.tasks import TaskResult

AnyPart = TypeVar("AnyPart", GroupBias, Slice)
FAMILY = (
    "intervals and p-values of means, groups and slices hold for all classes at once: each class "
    "has its share of alpha, and p-values are multiplied by the number of classes"
)

SCORES = ("brier", "log_loss", "ece", "mce", "smooth_ece")


@dataclass(frozen=True)
class MeanBias(WithFacts):
    """The mean prediction beside the rate of positive labels.

    Attributes
    ----------
    predicted : float
        Weighted mean prediction.
    observed : float
        Weighted rate of positive labels.
    lower, upper : float
        Interval of the difference, observed less predicted; excludes 0 if and only if `pvalue` is
        at most `alpha`.
    pvalue : float
        For "the mean prediction is right", with an error control of its own.
    alpha : float
        Error that the interval is allowed.
    """

    predicted: float
    observed: float
    lower: float
    upper: float
    pvalue: float
    alpha: float
    _derived = ("bias", "at_least")

    @classmethod
    def of(cls, found: TaskResult) -> MeanBias:
        """Take what was found about the prevalence.

        Parameters
        ----------
        found : TaskResult
            Of `tasks.prevalence()`.

        Returns
        -------
        MeanBias
            The same numbers.
        """
        ends = found.lower, found.upper
        return cls(found.plugin, found.from_labels, *ends, found.pvalue, found.alpha)

    @property
    def bias(self) -> float:
        """Observed less predicted; positive: the model is too low."""
        return self.observed - self.predicted

    @property
    def at_least(self) -> float:
        """The end of the interval next to 0, with its sign; 0 where the interval includes 0."""
        return near_end(self.lower, self.upper)

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.pvalue <= self.alpha


@dataclass(frozen=True, eq=False)
class Overall(WithFacts):
    """Overall calibration, whatever the covariates; the paper calls it reliance.

    Calibration given covariates implies it, so the two are one closed test: overall calibration
    is rejected only where calibration given the covariates is. Of several classes, mean, curve and
    calibration errors are those of the class with the largest probability.

    Attributes
    ----------
    mean : MeanBias
        The mean prediction beside the observed rate; of several classes, the mean confidence
        beside the accuracy.
    statistic : float
        Of the test of the prediction alone; of several classes, the largest standard score of all
        sums of p_A (y_B - p_B).
    pvalue : float
        The larger of its own p-value and that of the test given the covariates; NaN where there is
        none.
    unadjusted_pvalue : float
        Its own p-value.
    brier : float
        Brier score; of several classes the mean of half the sum over classes of (y - p)^2.
    log_loss : float
        Mean of minus the log of the probability that the label was given.
    ece, mce : float
        Expected and largest calibration error over ten bins.
    smooth_ece : float
        Calibration error without bins.
    curve : ReliabilityCurve
        Observed rate against prediction in ten bins of equal weight.
    test : CalibrationResult or None
        Of the prediction alone; None of several classes.
    """

    mean: MeanBias
    statistic: float
    pvalue: float
    unadjusted_pvalue: float
    brier: float
    log_loss: float
    ece: float
    mce: float
    smooth_ece: float
    curve: ReliabilityCurve
    test: CalibrationResult | None = None

    def refutes(self, alpha: float) -> bool:
        """Whether overall calibration is refuted: by the closed test, or by impossible labels.

        Parameters
        ----------
        alpha : float
            Error that is allowed.

        Returns
        -------
        bool
            False where there is no p-value and no impossible label.
        """
        return self.pvalue <= alpha or (self.test is not None and self.test.impossible > 0)

    def _facts(self) -> dict[str, Any]:
        told = self._by_name("mean", "statistic", "pvalue", "unadjusted_pvalue", *SCORES)
        return {**told, "curve": vars(self.curve)}


@dataclass(frozen=True, eq=False, repr=False)
class OutcomePart:
    """What an audit found about one outcome: of two labels the positive one, or one class of many.

    Of several classes, p-values of the mean, of groups and of slices are multiplied by their
    number, and intervals have that share of alpha, so they hold for all classes at once.

    Attributes
    ----------
    name : object
        The class, or the label that counts as 1.
    rows : int or None
        Rows that have it; None where they are withheld. Then `mean` has the prediction only,
        `ece` is NaN, and curve, groups and slices are empty.
    test : CalibrationResult or ClassResult
        Are its probabilities calibrated given the covariates? Of several classes its share of the
        test of all, adjusted for these.
    mean : MeanBias
        Mean prediction beside the rate.
    ece : float
        Calibration error over ten bins.
    curve : ReliabilityCurve
        Observed rate against prediction in ten bins of equal weight.
    slope : ValidationStatistic
        Of the prediction on the scale of logits: below 1 where probabilities are too extreme.
    diagnosis : Diagnosis
        Where, for whom and by how much: local bias, groups and slices.
    charts : Charts or None
        The numbers behind the charts of the page; None of several classes.
    """

    name: Any
    rows: int | None
    test: CalibrationResult | ClassResult
    mean: MeanBias
    ece: float
    curve: ReliabilityCurve
    slope: ValidationStatistic
    diagnosis: Diagnosis
    charts: Charts | None = None

    @property
    def slope_is_shown(self) -> bool:
        """Whether the slope of the prediction is shown not to be 1."""
        lower, upper = self.slope.lower, self.slope.upper
        return lower is not None and upper is not None and not lower <= 1 <= upper

    def __repr__(self) -> str:
        bias = "withheld" if self.rows is None else signed(self.mean.bias)
        return f"<OutcomePart: {self.name!r}, bias {bias}, p {self.test.pvalue:.3g}>"


# Why it cannot be said how small a bias would have been seen.
NO_VARIATION = "no label can vary"
FEW_CLUSTERS = (
    f"fewer than {MIN_CLUSTERS} clusters cannot tell how far rows of a cluster go together"
)
REPLICATES = "replicate weights alone do not tell which rows go together, clusters would"
ALIKE_LABELS = "all labels are alike, so they cannot tell how far rows of a cluster go together"


@dataclass(frozen=True)
class GroupPower(WithFacts):
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

    def _facts(self) -> dict[str, Any]:
        where = None if self.where is None else str(self.where)
        return {**vars(self), "where": where, "name": str(self.name)}


@dataclass(frozen=True, eq=False)
class Missed(WithFacts):
    """What the audit could have missed; the paper calls it confidence.

    Attributes
    ----------
    detectable : Detectable or None
        The smallest biases that would have been seen; None where they cannot be known.
    hoeffding_bound : float or None
        Hoeffding's distribution-free bound on the p-value of KLCE^2; None with weights or
        clusters.
    unknown : str or None
        Why the smallest biases cannot be known, where they cannot: no label can vary, clusters are
        fewer than ten, replicate weights are all that is known of the design, or labels are alike.
    groups : GroupPower or None
        Of several classes, what the intervals of groups would have shown; None where that is not
        known.
    """

    detectable: Detectable | None = None
    hoeffding_bound: float | None = None
    unknown: str | None = None
    groups: GroupPower | None = None

    @property
    def shift(self) -> float:
        """The smallest bias that would be likely to be seen wherever it was looked for."""
        if self.groups is not None:
            return self.groups.shift
        return math.inf if self.detectable is None else self.detectable.worst.shift


@dataclass(frozen=True, eq=False)
class Diagnosis(WithFacts):
    """Where, for whom and by how much the model is miscalibrated.

    Attributes
    ----------
    bias : LocalBias
        At every row, or at some of many.
    groups : GroupTable or None
        Every category, and every number with few values, by itself; None without any.
    slices : SliceTable
        Regions that stand out, without those that hold the same rows as a group.
    """

    bias: LocalBias
    groups: GroupTable | None
    slices: SliceTable

    @classmethod
    def of(
        cls,
        bias: LocalBias,
        groups: GroupTable | None,
        slices: SliceTable,
        test: CalibrationResult | ClassResult,
    ) -> Diagnosis:
        """Put the parts together, so that no rows are told twice.

        A slice that holds the same rows as a group asks the same question among more others, so
        the group answers it. Local bias is one closed test with that of calibration.

        Parameters
        ----------
        bias : LocalBias
            Of the rows that were judged.
        groups : GroupTable or None
            Of the same rows.
        slices : SliceTable
            Of the same rows.
        test : CalibrationResult or ClassResult
            Of the same rows.

        Returns
        -------
        Diagnosis
            With every group, and the slices that are none.
        """
        points = bias.sample.points
        held = {part.rows for part in slices}
        known = {
            group.where.rows(points).tobytes(): group.where
            for group in groups or ()
            if group.rows in held
        }
        same = {part.where: known.get(part.where.rows(points).tobytes()) for part in slices}
        told = tuple(part for part in slices if same[part.where] is None)
        order = tuple(dict.fromkeys(same.get(where) or where for where in slices.order))
        if not math.isnan(test.pvalue):
            bias = bias.implied_by(test.pvalue)
        return cls(bias, groups, replace(slices, slices=told, order=order))

    @property
    def shown_groups(self) -> tuple[GroupBias, ...]:
        """Groups whose interval excludes 0."""
        return () if self.groups is None else self.groups.shown

    @property
    def shown(self) -> tuple[PartBias, ...]:
        """Groups whose interval excludes 0 and confirmed slices, the largest shown bias first."""
        parts: list[PartBias] = [*self.shown_groups, *self.slices.confirmed]
        return tuple(sorted(parts, key=lambda part: -abs(part.at_least)))

    @property
    def told(self) -> tuple[PartBias, ...]:
        """Those that plainer ones do not explain, in the order of telling."""
        shown = {part.where: part for part in self.shown}
        return tuple(shown[where] for where in self.slices.order if where in shown)

    def _facts(self) -> dict[str, Any]:
        return {"local_bias": self.bias, "groups": self.groups, "slices": self.slices}


def multiplied(diagnosis: Diagnosis, classes: int, alpha: float) -> Diagnosis:
    """Adjust groups and slices for all classes; their intervals have a share of alpha already."""
    groups, slices = diagnosis.groups, diagnosis.slices
    if groups is not None:
        own = _times(groups.groups, classes, alpha)
        groups = replace(groups, groups=own, alpha=alpha)
    found: SliceTable = replace(slices, slices=_times(slices.slices, classes, alpha), alpha=alpha)
    return replace(diagnosis, groups=groups, slices=found)


def _times(parts: Sequence[AnyPart], classes: int, alpha: float) -> tuple[AnyPart, ...]:
    return tuple(
        replace(part, pvalue=adjusted(part.pvalue, classes, alpha, part.lower, part.upper))
        for part in parts
    )


def adjusted(pvalue: float, classes: int, alpha: float, lower: float, upper: float) -> float:
    """A p-value times the number of classes, on the side of alpha that its interval says."""
    told = min(classes * pvalue, 1.0)
    # Rounding of alpha / classes must not part the two; where there is no p-value it stays NaN.
    return min(told, alpha) if lower > 0 or upper < 0 else told
