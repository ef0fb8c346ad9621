"""The verdict on the model: evidence and what matters, in one of six words with what carries it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from itrust._core import two_digits
from itrust.auditing.parts import NO_VARIATION, Diagnosis, MeanBias, Missed, OutcomePart
from itrust.bias import GroupBias, LocalBias, PartBias, Slice
from itrust.calibration import (
    JOINT_FAMILIES,
    CalibrationResult,
    ClassResult,
    Clustering,
    Coverage,
    Finding,
    MulticlassResult,
    Refusal,
    RegionPower,
    Shape,
    TakenFor,
    ValidationStatistic,
)
from itrust.data import PREDICTION, Predicate
from itrust.tasks import TaskResult

NEARLY_ALL = 0.95  # share of points whose band lies within the tolerance, to say that all is
RARE = 0.01  # classes below this rate do not say what a large tolerance is
MAX_FINDINGS = 3  # of the test, of one of several classes, among the evidence


class Verdict(StrEnum):
    """What an audit comes to; each verdict is a text that knows what follows from it.

    Attributes
    ----------
    severity : int
        Larger is worse, from 0 (calibrated within tolerance) to 5 (miscalibrated).
    tone : {"bad", "fair", "good", "open"}
        How good or bad news it is, for its colours; open where nothing is shown.
    closes_gate : bool
        Whether `itrust audit --gate model` fails: only where the model is shown to be
        miscalibrated, and not by less than the tolerance.
    conclusive : bool
        Whether the rows were enough to tell.
    trustworthy : bool
        Whether nothing that matters speaks against the model.

    Examples
    --------
    >>> import itrust as it
    >>> it.Verdict("no evidence against").closes_gate
    False
    >>> it.Verdict.MISCALIBRATED.severity
    5
    """

    severity: int
    tone: str
    closes_gate: bool
    conclusive: bool
    trustworthy: bool

    def __new__(
        cls,
        words: str,
        severity: int = 0,
        tone: str = "open",
        closes_gate: bool = False,
        conclusive: bool = True,
        trustworthy: bool = False,
    ) -> Verdict:
        """Give a text its severity, tone and consequences; by default nothing follows from it."""
        member = str.__new__(cls, words)
        member._value_ = words
        member.severity, member.tone = severity, tone
        member.closes_gate, member.conclusive = closes_gate, conclusive
        member.trustworthy = trustworthy
        return member

    # words, severity, tone, closes_gate, conclusive, trustworthy
    MISCALIBRATED = "miscalibrated", 5, "bad", True, True, False
    SIZE_NOT_ESTABLISHED = "miscalibrated, size not established", 4, "bad", True, True, False
    WITHIN_TOLERANCE = "miscalibrated, within tolerance", 3, "fair", False, True, True
    INCONCLUSIVE = "inconclusive", 2, "open", False, False, False
    NO_EVIDENCE = "no evidence against", 1, "good", False, True, True
    CALIBRATED = "calibrated within tolerance", 0, "good", False, True, True


def tone_of(verdict: str) -> str:
    """Give the tone of a verdict by its words; words that are not known are neither good nor bad.

    >>> tone_of("inconclusive"), tone_of("a verdict of a later version")
    ('open', 'open')
    """
    try:
        return Verdict(verdict).tone
    except ValueError:
        return "open"


@dataclass(frozen=True)
class ImpossibleLabels:
    """Labels that came true although the model gave them probability 0."""

    count: int


@dataclass(frozen=True)
class ClassEvidence:
    """What shows a bias of one of several classes.

    Attributes
    ----------
    name : object
        The class; None for all classes together.
    item : object
        The mean, the slope, a group or slice, a finding of the test, or a pair of classes of which
        one is taken for the other.
    """

    name: Any
    item: PartBias | MeanBias | ValidationStatistic | Finding | TakenFor


Evidence: TypeAlias = (
    PartBias
    | MeanBias
    | ValidationStatistic
    | TaskResult
    | Finding
    | ImpossibleLabels
    | ClassEvidence
)
KINDS: dict[type, str] = {
    Slice: "slice",
    GroupBias: "group",
    MeanBias: "overall",
    ValidationStatistic: "slope",
    TaskResult: "task",
    Finding: "finding",
    ImpossibleLabels: "impossible labels",
    TakenFor: "taken for",
}


@dataclass(frozen=True)
class Overlooked:
    """The bias that these rows would be likely to miss."""

    shift: float
    where: Predicate | None
    share: float = 1.0
    coverage: Coverage | None = None
    seen: int = 0
    seen_pairs: int = 0
    clustering: Clustering | None = None
    rows_needed: int | None = None
    of_class: Any = None


@dataclass(frozen=True, eq=False)
class Judgement:
    """A verdict and the values behind it; `itrust.render` makes the sentence.

    Only facts are kept here, so a withheld region can be taken out before anything is said.

    Attributes
    ----------
    verdict : Verdict
        What the audit comes to.
    evidence : tuple
        Where calibration is refuted, what carries that, from plain to fine: impossible labels,
        the mean, the slope of the prediction, groups and slices of one covariate, slices of several
        that these do not explain, then findings of the test. Where it is not, whatever shows a
        bias by itself all the same: numbers, groups and slices, the mean.
    names : tuple of str
        Covariates that the probabilities were judged on.
    pvalue : float
        Of the test.
    refuted : bool
        Whether the test, or a label that the model called impossible, refutes calibration.
    tolerance : float
        The size of bias that matters.
    share_within : float
        Share of the points that were checked at which the confidence band of the local bias is
        known and lies within the tolerance.
    rate : float
        Mean prediction, or that of the other label if it is smaller.
    overlooked : Overlooked or None
        What would be likely to be missed, where calibration is not refuted; None if not known.
    is_attributed : bool
        Whether anything tells what carries the bias; False where calibration is refuted, but no
        check or slice holds by itself.
    is_contrary : bool
        Whether something shows a bias by itself although the test does not reject; also where
        disclosure control withholds it.
    would_be_seen : bool
        Whether a bias of the tolerance would have been seen wherever it was looked for.
    clusters : int or None
        Number of clusters; None if rows are independent.
    refused : Refusal or None
        Why there is no p-value, where clusters are too few for one.
    unknown : str or None
        Why it is not known what would be missed, where it is not.
    classes : tuple
        Names of the classes, where there are several; empty where there are two.
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    names: tuple[str, ...]
    pvalue: float
    refuted: bool
    tolerance: float
    share_within: float = 0.0
    rate: float = 0.5
    overlooked: Overlooked | None = None
    is_attributed: bool = True
    is_contrary: bool = False
    would_be_seen: bool = False
    clusters: int | None = None
    refused: Refusal | None = None
    unknown: str | None = None
    classes: tuple[Any, ...] = ()


def telling(
    test: CalibrationResult | ClassResult, diagnosis: Diagnosis, alpha: float, *, refuted: bool
) -> list[tuple[str, ...]]:
    """Covariates of what was found: of each finding, then of each group and slice."""
    named = [
        (*item.covariates, PREDICTION) if item.family == "with prediction" else item.covariates
        for item in (test.evidence(alpha) if refuted else ())
        if item.family not in JOINT_FAMILIES
    ]
    return [*named, *(part.names for part in diagnosis.shown)]


def judge(
    test: CalibrationResult | MulticlassResult,
    parts: Sequence[OutcomePart],
    missed: Missed,
    tasks: Sequence[TaskResult],
    *,
    alpha: float,
    tolerance: float,
) -> Judgement:
    """Follow the table: refuted or not, and whether a bias of `tolerance` is shown or excluded.

    The verdict follows the test of all outcomes together. Numbers are judged by themselves; one
    that is shown to be biased where the test does not reject keeps the verdict from saying that
    nothing speaks against the model.
    """
    several = len(parts) > 1
    rates = [min(part.mean.predicted, 1 - part.mean.predicted) for part in parts]
    if several:  # a tolerance that suits a class of a few rows is out of reach for all others
        rates = [rate for rate in rates if rate >= RARE] or [RARE]
    share = min(share_within(part.diagnosis.bias, tolerance) for part in parts)
    within, seen = share >= NEARLY_ALL, missed.shift <= tolerance
    common: dict[str, Any] = {
        "names": tuple(test.names),
        "pvalue": test.pvalue,
        "tolerance": tolerance,
        "clusters": test.clusters,
        "refused": test.refused,
        "share_within": share,
        "rate": min(rates),
        "would_be_seen": seen,
        "classes": tuple(part.name for part in parts) if several else (),
    }
    refuted = test.refutes(alpha)
    shown = _largest((part, own) for part in parts for own in part.diagnosis.shown)
    means = _largest((part, part.mean) for part in parts if part.mean.is_shown)
    large = [(p, own) for p, own in (*shown, *means) if abs(own.at_least) >= tolerance]

    def named(found: Iterable[tuple[OutcomePart, Any]]) -> list[Evidence]:
        return [ClassEvidence(part.name, own) if several else own for part, own in found]

    if refuted:
        impossible = [ImpossibleLabels(test.impossible)] if test.impossible else []
        verdict = Verdict.WITHIN_TOLERANCE if within else Verdict.SIZE_NOT_ESTABLISHED
        slopes = [(part, part.slope) for part in parts if part.slope_is_shown]
        told = [(part, own) for part in parts for own in part.diagnosis.told]
        told = _largest(told) if several else told
        findings = _findings(parts, alpha)
        evidence = [*impossible, *named([*means, *slopes, *(told or shown[:1]), *findings])]
        if several and not evidence:
            evidence = list(_of_several(test, alpha))
        return Judgement(
            Verdict.MISCALIBRATED if impossible or large else verdict,
            tuple(evidence),
            refuted=True,
            is_attributed=bool(evidence),
            **common,
        )
    biased = [task for task in tasks if task.is_shown and not task.uncovered]
    contrary = [*biased, *named([*shown, *means])]
    verdict = Verdict.INCONCLUSIVE
    if test.refused is None and missed.unknown != NO_VARIATION:
        if within:
            verdict = Verdict.CALIBRATED
        elif not contrary and seen:
            verdict = Verdict.NO_EVIDENCE
    if verdict is not Verdict.INCONCLUSIVE and large:
        verdict, contrary = Verdict.INCONCLUSIVE, contrary or named(large)
    return Judgement(
        verdict,
        tuple(contrary),
        refuted=False,
        overlooked=_overlooked(missed, tolerance, test.n),
        is_contrary=bool(contrary),
        unknown=missed.unknown,
        **common,
    )


def share_within(bias: LocalBias, tolerance: float) -> float:
    """At which share of the points the band is known and lies within the tolerance."""
    ends = np.maximum(np.abs(bias.band.lower), np.abs(bias.band.upper))
    return float(np.mean(bias.known & (np.nan_to_num(ends, nan=np.inf) <= tolerance)))


def _largest(found: Iterable[tuple[OutcomePart, Any]]) -> list[tuple[OutcomePart, Any]]:
    """Biases of all outcomes, those of which most is shown first."""
    return sorted(found, key=lambda own: -abs(own[1].at_least))


def _findings(parts: Sequence[OutcomePart], alpha: float) -> list[tuple[OutcomePart, Finding]]:
    """Findings of the test; of several classes the first of each, by p-value.

    What says no more than a mean or a slope that is shown is left out.
    """
    most = None if len(parts) == 1 else MAX_FINDINGS
    pairs = [
        (part, own)
        for part in parts
        for own in part.test.evidence(alpha)[:most]
        if not (own.shape is Shape.LEVEL and own.family == "overall" and part.mean.is_shown)
        and not (own.shape is Shape.TREND and own.family == "prediction" and part.slope_is_shown)
    ]
    return pairs if most is None else sorted(pairs, key=lambda own: own[1].pvalue)


def _of_several(test: Any, alpha: float) -> Iterator[ClassEvidence]:
    """What the test shows of pairs of classes, and of all together."""
    yield from (ClassEvidence(pair.actual, pair) for pair in test.taken_for(alpha)[:MAX_FINDINGS])
    together = test.together.evidence(alpha)[:MAX_FINDINGS]
    yield from (ClassEvidence(None, finding) for finding in together)


def _overlooked(missed: Missed, tolerance: float, n: int) -> Overlooked | None:
    detectable, groups, shift = missed.detectable, missed.groups, missed.shift
    if detectable is None and groups is None:
        return None
    needed = None
    if math.isfinite(shift) and shift > tolerance:
        needed = two_digits(n * (shift / tolerance) ** 2)
    if groups is not None:
        return Overlooked(
            shift, groups.where, groups.share, rows_needed=needed, of_class=groups.name
        )
    assert detectable is not None
    return Overlooked(
        shift=shift,
        where=detectable.worst.where,
        share=detectable.worst.share,
        coverage=detectable.coverage,
        seen=_number_seen(detectable.regions[1:], tolerance),
        seen_pairs=_number_seen(detectable.pairs, tolerance),
        clustering=detectable.clustering,
        rows_needed=needed,
    )


def _number_seen(regions: Sequence[RegionPower], tolerance: float) -> int:
    """Regions with enough rows where no bias of `tolerance` that has room goes unseen."""
    return sum(not (region.is_small or region.shift > tolerance) for region in regions)
