"""The parts of an audit: overall calibration, what could have been missed, the diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from itrust.bias import GroupBias, GroupTable, LocalBias, PartBias, SliceTable, near_end
from itrust.calibration import MIN_CLUSTERS, CalibrationResult, Detectable, ReliabilityCurve
from itrust.tasks import TaskResult

SCORES = ("brier", "log_loss", "ece", "mce", "smooth_ece")


@dataclass(frozen=True)
class MeanBias:
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

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            The attributes, and "bias" and "at_least".
        """
        return {**vars(self), "bias": self.bias, "at_least": self.at_least}


@dataclass(frozen=True, eq=False)
class Overall:
    """Overall calibration, whatever the covariates; the paper calls it reliance.

    Calibration given covariates implies it, so the two are one closed test: overall calibration
    is rejected only where calibration given the covariates is.

    Attributes
    ----------
    test : CalibrationResult
        Of the prediction alone.
    pvalue : float
        The larger of its p-value and that of the test given the covariates; NaN where there is
        none.
    mean : MeanBias
        The mean prediction beside the observed rate.
    brier : float
        Brier score.
    log_loss : float
        Mean of minus the log of the probability that the label was given.
    ece, mce : float
        Expected and largest calibration error over ten bins.
    smooth_ece : float
        Calibration error without bins.
    curve : ReliabilityCurve
        Observed rate against prediction in ten bins of equal weight.
    """

    test: CalibrationResult
    pvalue: float
    mean: MeanBias
    brier: float
    log_loss: float
    ece: float
    mce: float
    smooth_ece: float
    curve: ReliabilityCurve

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
        return self.pvalue <= alpha or self.test.impossible > 0

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            Both p-values, the scores and the reliability curve.
        """
        numbers = {name: getattr(self, name) for name in SCORES}
        return {
            "pvalue": self.pvalue,
            "unadjusted_pvalue": self.test.pvalue,
            **numbers,
            "curve": dict(vars(self.curve)),
        }


class Unknown(StrEnum):
    """Why it cannot be said how small a bias would have been seen."""

    NO_VARIATION = "no label can vary"
    FEW_CLUSTERS = (
        f"fewer than {MIN_CLUSTERS} clusters cannot tell how far rows of a cluster go together"
    )
    REPLICATES = "replicate weights alone do not tell which rows go together, clusters would"
    ALIKE_LABELS = "all labels are alike, so they cannot tell how far rows of a cluster go together"


@dataclass(frozen=True, eq=False)
class Missed:
    """What the audit could have missed; the paper calls it confidence.

    Attributes
    ----------
    detectable : Detectable or None
        The smallest biases that would have been seen; None where they cannot be known.
    hoeffding_bound : float or None
        Hoeffding's distribution-free bound on the p-value of KLCE^2; None with weights or
        clusters.
    unknown : Unknown or None
        Why the smallest biases cannot be known, where they cannot.
    """

    detectable: Detectable | None
    hoeffding_bound: float | None
    unknown: Unknown | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            "detectable", "hoeffding_bound" and "unknown".
        """
        found = None if self.detectable is None else self.detectable.to_dict()
        reason = None if self.unknown is None else self.unknown.value
        return {
            "detectable": found,
            "hoeffding_bound": self.hoeffding_bound,
            "unknown": reason,
        }


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Where, for whom and by how much the model is miscalibrated.

    Attributes
    ----------
    bias : LocalBias
        At every row, or at some of many.
    groups : GroupTable or None
        Every category, and every number with few values, by itself; None without any.
    slices : SliceTable
        Readable rules, found on one half of the rows and judged on the other; without those that
        hold the same rows as a group, which has numbers from all of these.
    """

    bias: LocalBias
    groups: GroupTable | None
    slices: SliceTable

    @classmethod
    def of(cls, bias: LocalBias, groups: GroupTable | None, slices: SliceTable) -> Diagnosis:
        """Put the parts together, so that no rows are told twice.

        A slice that holds the same rows as a group asks the same question of half as many labels,
        so the group answers it.

        Parameters
        ----------
        bias : LocalBias
            Of the rows that were judged.
        groups : GroupTable or None
            Of the same rows.
        slices : SliceTable
            Of the same rows.

        Returns
        -------
        Diagnosis
            With every group, and the slices that are none.
        """
        points = bias.whole.points
        held = {part.rows for part in slices}
        known = {group.where.rows(points).tobytes() for group in groups or () if group.rows in held}
        told = tuple(part for part in slices if part.where.rows(points).tobytes() not in known)
        return cls(bias, groups, replace(slices, slices=told))

    @property
    def shown_groups(self) -> tuple[GroupBias, ...]:
        """Groups whose interval excludes 0."""
        table = self.groups
        if table is None:
            return ()
        return tuple(group for group in table.groups if group.pvalue <= table.alpha)

    @property
    def shown(self) -> tuple[PartBias, ...]:
        """Groups whose interval excludes 0 and confirmed slices, the largest shown bias first."""
        parts: list[PartBias] = [*self.shown_groups, *self.slices.confirmed]
        return tuple(sorted(parts, key=lambda part: -abs(part.at_least)))

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            "local_bias", "groups" and "slices".
        """
        return {
            "local_bias": self.bias.to_dict(),
            "groups": None if self.groups is None else self.groups.to_dict(),
            "slices": self.slices.to_dict(),
        }


@dataclass(frozen=True)
class Provenance:
    """How an audit can be made again.

    `Audit.extended` adds it; page and files show it, so that a reader can check what was audited.

    Attributes
    ----------
    command : str
        The command line, or the lines of Python.
    file : str or None
        Name of the file that was audited.
    sha256 : str or None
        Checksum of the file; of several files, of what `sha256sum` prints for them.
    title : str or None
        Of the page.
    model : str or None
        What the model is called, with its version.
    date : str or None
        That is to stand on the page.
    """

    command: str
    file: str | None = None
    sha256: str | None = None
    title: str | None = None
    model: str | None = None
    date: str | None = None
