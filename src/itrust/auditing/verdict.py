"""The verdict on the model: evidence and what matters, in one of six words with what carries it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from itrust._core import two_digits
from itrust.auditing.parts import Diagnosis, MeanBias, Missed, OutcomePart, Unknown
from itrust.bias import (
    GroupBias,
    LocalBias,
    PartBias,
    Slice,
    beyond,
    measured_places,
    most_rows,
    near_end,
)
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
    TakenFor,
)
from itrust.data import PREDICTION, Missing, Predicate, level_of
from itrust.tasks import TaskResult

NEARLY_ALL = 0.95  # share of points whose band lies within the tolerance, to say that all is
MAX_COORDINATES = 4  # covariates that describe a point
RARE = 0.01  # classes below this rate do not say what a large tolerance is
MAX_FINDINGS = 3  # of the test, of one of several classes, among the evidence


@dataclass(frozen=True)
class Tone:
    """How good or bad news looks: one map of colours for terminal, page and notebook.

    A verdict has one of four: bad, fair, good, or open where nothing is shown.
    """

    name: str
    light: str
    dark: str
    terminal: str


BAD: Tone = Tone("bad", "#a02c1a", "#f29b8a", "bold red")
FAIR: Tone = Tone("fair", "#7d5200", "#e3ba68", "bold yellow")
GOOD: Tone = Tone("good", "#1b6540", "#83cda6", "bold green")
OPEN: Tone = Tone("open", "#4b5560", "#b3bcc5", "bold")
TONES = (BAD, FAIR, GOOD, OPEN)


class Verdict(StrEnum):
    """What an audit comes to; each verdict is a text that knows what follows from it.

    Attributes
    ----------
    severity : int
        Larger is worse, from 0 (calibrated within tolerance) to 5 (miscalibrated).
    tone : Tone
        Its colour in the terminal, on the page and in a notebook.
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
    tone: Tone
    closes_gate: bool
    conclusive: bool
    trustworthy: bool

    def __new__(
        cls,
        words: str,
        severity: int = 0,
        tone: Tone = OPEN,
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
    MISCALIBRATED = "miscalibrated", 5, BAD, True, True, False
    SIZE_NOT_ESTABLISHED = "miscalibrated, size not established", 4, BAD, True, True, False
    WITHIN_TOLERANCE = "miscalibrated, within tolerance", 3, FAIR, False, True, True
    INCONCLUSIVE = "inconclusive", 2, OPEN, False, False, False
    NO_EVIDENCE = "no evidence against", 1, GOOD, False, True, True
    CALIBRATED = "calibrated within tolerance", 0, GOOD, False, True, True


def tone_of(verdict: str) -> Tone:
    """Give the tone of a verdict by its words; words that are not known are neither good nor bad.

    >>> tone_of("inconclusive").name, tone_of("a verdict of a later version").name
    ('open', 'open')
    """
    try:
        return Verdict(verdict).tone
    except ValueError:
        return OPEN


@dataclass(frozen=True)
class ImpossibleLabels:
    """Labels that came true although the model gave them probability 0."""

    count: int


@dataclass(frozen=True)
class PointCoordinate:
    """One covariate of a point.

    It holds the value twice, for programs and for people, and the rows that share it.
    """

    name: str
    value: Any
    shown: str
    where: Predicate


@dataclass(frozen=True)
class PointBias:
    """The local bias at one point."""

    coordinates: tuple[PointCoordinate, ...]
    prediction: float
    lower: float
    upper: float
    neighbours: float
    bias: float | None = None

    @property
    def at_least(self) -> float:
        """The end of the band next to 0, with its sign."""
        return near_end(self.lower, self.upper)

    @classmethod
    def of(cls, bias: LocalBias, k: int, first: Sequence[str] = ()) -> PointBias:
        """Take the k-th point of a local bias, with the band from all rows.

        Covariates that are named `first` describe it before others.
        """
        named = {name: place for place, name in enumerate(first)}
        columns = sorted(bias.points.columns, key=lambda own: named.get(own.name, len(named)))
        coordinates = []
        for column in columns[:MAX_COORDINATES]:
            cell = column.cell(k)
            shown = column.shown(cell, 4) if isinstance(cell, float) else str(cell)
            text = "missing" if cell is None else shown
            where = Missing(column.name) if cell is None else level_of(column, column.values[k])
            coordinates.append(PointCoordinate(column.name, cell, text, where))
        return cls(
            tuple(coordinates),
            float(bias.points.p[k]),
            float(bias.band.lower[k]),
            float(bias.band.upper[k]),
            float(bias.size[k]),
        )


@dataclass(frozen=True)
class ClassEvidence:
    """What shows a bias of one of several classes.

    Attributes
    ----------
    name : object
        The class; None for all classes together.
    item : object
        A group or slice, the mean, a point, a finding of the test, or a pair of classes of which
        one is taken for the other.
    """

    name: Any
    item: PartBias | PointBias | MeanBias | Finding | TakenFor


Evidence: TypeAlias = (
    PartBias | PointBias | MeanBias | TaskResult | Finding | ImpossibleLabels | ClassEvidence
)
KINDS: dict[type, str] = {
    Slice: "slice",
    GroupBias: "group",
    MeanBias: "overall",
    PointBias: "point",
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
        Where calibration is refuted, what carries that, the strongest first: impossible labels,
        then groups and slices, the mean and points with a bias of at least the tolerance (or,
        without any of these, groups and slices with a smaller one), then findings of the test.
        Where it is not, whatever shows a bias by itself all the same: numbers, groups and slices,
        the mean, a point.
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
        check, slice or point holds by itself.
    is_contrary : bool
        Whether something shows a bias by itself although the test does not reject; also where
        disclosure control withholds it.
    would_be_seen : bool
        Whether a bias of the tolerance would have been seen wherever it was looked for.
    clusters : int or None
        Number of clusters; None if rows are independent.
    refused : Refusal or None
        Why there is no p-value, where clusters are too few for one.
    unknown : Unknown or None
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
    unknown: Unknown | None = None
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
    share = min(_share_within(part.diagnosis.bias, tolerance) for part in parts)
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
    gathered = _Gathered(parts, alpha, tolerance, refuted)
    shown, means = gathered.shown, gathered.means
    if refuted:
        large = [*([ImpossibleLabels(test.impossible)] if test.impossible else []), *gathered.large]
        verdict = Verdict.WITHIN_TOLERANCE if within else Verdict.SIZE_NOT_ESTABLISHED
        evidence = [*(large or shown), *gathered.findings] or [*shown, *means]
        if several and not evidence:
            evidence = list(_of_several(test, alpha))
        return Judgement(
            Verdict.MISCALIBRATED if large else verdict,
            tuple(evidence),
            refuted=True,
            is_attributed=bool(evidence),
            **common,
        )
    biased = [task for task in tasks if task.is_shown and not task.uncovered]
    contrary: list[Evidence] = [*biased, *shown, *means, *gathered.points]
    verdict = Verdict.INCONCLUSIVE
    if test.refused is None and missed.unknown is not Unknown.NO_VARIATION:
        if within:
            verdict = Verdict.CALIBRATED
        elif not contrary and seen:
            verdict = Verdict.NO_EVIDENCE
    if verdict is not Verdict.INCONCLUSIVE and gathered.large:
        verdict, contrary = Verdict.INCONCLUSIVE, contrary or gathered.large
    return Judgement(
        verdict,
        tuple(contrary),
        refuted=False,
        overlooked=_overlooked(missed, tolerance, test.n),
        is_contrary=bool(contrary),
        unknown=missed.unknown,
        **common,
    )


def _share_within(bias: LocalBias, tolerance: float) -> float:
    """At which share of the points the band is known and lies within the tolerance."""
    ends = np.maximum(np.abs(bias.band.lower), np.abs(bias.band.upper))
    return float(np.mean(bias.known & (np.nan_to_num(ends, nan=np.inf) <= tolerance)))


@dataclass(frozen=True, eq=False)
class _Gathered:
    """What shows a bias, of all outcomes, the largest first within each kind."""

    parts: Sequence[OutcomePart]
    alpha: float
    tolerance: float
    refuted: bool

    def _of(self, part: OutcomePart, item: Any) -> Evidence:
        return ClassEvidence(part.name, item) if len(self.parts) > 1 else item

    @cached_property
    def shown(self) -> list[Evidence]:
        """Groups and slices with a bias of any size."""
        pairs = [(part, own) for part in self.parts for own in part.diagnosis.shown]
        return [self._of(*pair) for pair in sorted(pairs, key=lambda own: -abs(own[1].at_least))]

    @cached_property
    def means(self) -> list[Evidence]:
        """Means with a bias of any size."""
        off = [part for part in self.parts if part.mean.is_shown]
        return [self._of(p, p.mean) for p in sorted(off, key=lambda p: -abs(p.mean.at_least))]

    @cached_property
    def large(self) -> list[Evidence]:
        """Biases of which at least the tolerance is shown: groups and slices, means, points."""
        found = [own for own in (*self.shown, *self.means) if self._is_large(own)]
        return [*found, *(self._of(part, at) for part in self.parts for at in self._beyond(part))]

    def _is_large(self, own: Any) -> bool:
        item: Any = own.item if isinstance(own, ClassEvidence) else own
        return bool(abs(item.at_least) >= self.tolerance)

    def _beyond(self, part: OutcomePart) -> Iterator[PointBias]:
        """Points with a bias of the tolerance, measured on rows that did not pick them."""
        bias, first = part.diagnosis.bias, self._first(part)
        measured = measured_places(bias, self.tolerance)
        for sign in (1, -1):
            off = beyond(bias, sign, self.tolerance)
            if sign in measured:
                point, numbers = measured[sign]
                yield replace(PointBias.of(bias, point, first), **numbers)
            elif off.any():
                yield PointBias.of(bias, most_rows(bias, off), first)

    @property
    def points(self) -> Iterator[Evidence]:
        """Points with a bias of any size."""
        for part in self.parts:
            bias = part.diagnosis.bias
            for sign in (1, -1):
                off = np.asarray(bias.flagged & (sign * bias.values > 0))
                if off.any():
                    point = PointBias.of(bias, most_rows(bias, off), self._first(part))
                    yield self._of(part, point)

    @property
    def findings(self) -> list[Evidence]:
        """Findings of the test; of several classes the first of each, by p-value."""
        most = MAX_FINDINGS if len(self.parts) > 1 else None
        pairs = [(p, own) for p in self.parts for own in p.test.evidence(self.alpha)[:most]]
        if len(self.parts) > 1:
            pairs.sort(key=lambda own: own[1].pvalue)
        return [self._of(*pair) for pair in pairs]

    def _first(self, part: OutcomePart) -> list[str]:
        """Covariates that describe a point before others: those of what was found."""
        told = telling(part.test, part.diagnosis, self.alpha, refuted=self.refuted)
        return [name for names in told for name in names]


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
