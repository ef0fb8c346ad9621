"""The verdict over all classes: it follows the test of all, and names the class that carries it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from itrust._core import two_digits
from itrust.auditing.multiclass.parts import ClassesMissed, ClassPart
from itrust.auditing.verdict import (
    NEARLY_ALL,
    ClassEvidence,
    Evidence,
    ImpossibleLabels,
    Judgement,
    Overlooked,
    PointBias,
    Verdict,
)
from itrust.bias import beyond, most_rows
from itrust.calibration import MulticlassResult
from itrust.tasks import TaskResult

RARE = 0.01  # classes below this rate do not say what a large tolerance is
MAX_FINDINGS = 3  # of the test, of one class, among the evidence


def judge_classes(
    test: MulticlassResult,
    parts: Sequence[ClassPart],
    missed: ClassesMissed | None,
    tasks: Sequence[TaskResult],
    *,
    n: int,
    alpha: float,
    tolerance: float,
) -> Judgement:
    """Follow the table of `itrust.auditing.Verdict` for all classes together."""
    # A tolerance that suits a class of a few rows would be out of reach for all others.
    rates = [min(part.mean.predicted, 1 - part.mean.predicted) for part in parts]
    rates = [rate for rate in rates if rate >= RARE]
    share = min(_share_within(part, tolerance) for part in parts)
    within = share >= NEARLY_ALL
    seen = missed is not None and missed.shift <= tolerance
    common: dict[str, Any] = {
        "names": tuple(test.names),
        "pvalue": test.pvalue,
        "tolerance": tolerance,
        "share_within": share,
        "rate": min(rates, default=RARE),
        "would_be_seen": seen,
        "clusters": test.clusters,
        "refused": test.refused,
        "classes": tuple(part.name for part in parts),
    }
    large = list(_large(parts, tolerance))
    if test.refutes(alpha):
        told: list[Evidence] = [ImpossibleLabels(test.impossible)] if test.impossible else []
        told += large
        verdict = Verdict.WITHIN_TOLERANCE if within else Verdict.SIZE_NOT_ESTABLISHED
        verdict = Verdict.MISCALIBRATED if told else verdict
        evidence = (*(told or _shown(parts)), *_findings(test, alpha))
        evidence = evidence or tuple(_of_several(test, alpha))
        return Judgement(verdict, evidence, refuted=True, is_attributed=bool(evidence), **common)
    contrary: list[Evidence] = [t for t in tasks if t.is_shown and not t.uncovered]
    contrary += [*_shown(parts), *_points(parts)]
    verdict = Verdict.INCONCLUSIVE
    if common["refused"] is None and not large:
        if within:
            verdict = Verdict.CALIBRATED
        elif not contrary and seen:
            verdict = Verdict.NO_EVIDENCE
    return Judgement(
        verdict,
        tuple(contrary or large),
        refuted=False,
        overlooked=_overlooked(missed, tolerance, n),
        is_contrary=bool(contrary or large),
        **common,
    )


def _share_within(part: ClassPart, tolerance: float) -> float:
    """At which share of the points the band is known and lies within the tolerance."""
    bias = part.diagnosis.bias
    ends = np.maximum(np.abs(bias.band.lower), np.abs(bias.band.upper))
    return float(np.mean(bias.known & (np.nan_to_num(ends, nan=np.inf) <= tolerance)))


def _large(parts: Sequence[ClassPart], tolerance: float) -> Iterator[ClassEvidence]:
    """Biases of which at least `tolerance` is shown: groups and slices, means, points."""
    for own in _shown(parts):
        item: Any = own.item
        if abs(item.at_least) >= tolerance:
            yield own
    for part in parts:
        bias = part.diagnosis.bias
        for sign in (1, -1):
            shown = beyond(bias, sign, tolerance)
            if shown.any():
                yield ClassEvidence(part.name, PointBias.of(bias, most_rows(bias, shown)))


def _shown(parts: Sequence[ClassPart]) -> list[ClassEvidence]:
    """Groups, slices and means with a bias of any size, the largest shown first in each kind."""
    found = [ClassEvidence(own.name, part) for own in parts for part in own.diagnosis.shown]
    means = [ClassEvidence(own.name, own.mean) for own in parts if own.mean.is_shown]
    return [*sorted(found, key=_size), *sorted(means, key=_size)]


def _size(own: ClassEvidence) -> float:
    item: Any = own.item
    return -abs(float(item.at_least))


def _points(parts: Sequence[ClassPart]) -> Iterator[ClassEvidence]:
    """Points with a bias of any size."""
    for part in parts:
        bias = part.diagnosis.bias
        for sign in (1, -1):
            shown = np.asarray(bias.flagged & (sign * bias.values > 0))
            if shown.any():
                yield ClassEvidence(part.name, PointBias.of(bias, most_rows(bias, shown)))


def _findings(test: MulticlassResult, alpha: float) -> list[ClassEvidence]:
    """The first findings of every class, those with the smallest p-values first."""
    found = [
        ClassEvidence(own.name, finding)
        for own in test.classes
        for finding in own.evidence(alpha)[:MAX_FINDINGS]
    ]
    return sorted(found, key=lambda own: getattr(own.item, "pvalue", 1.0))


def _of_several(test: MulticlassResult, alpha: float) -> Iterator[ClassEvidence]:
    """What the test shows of pairs of classes, and of all together."""
    yield from (ClassEvidence(pair.actual, pair) for pair in test.taken_for(alpha)[:MAX_FINDINGS])
    found = test.together.evidence(alpha)[:MAX_FINDINGS]
    yield from (ClassEvidence(None, finding) for finding in found)


def _overlooked(missed: ClassesMissed | None, tolerance: float, n: int) -> Overlooked | None:
    if missed is None:
        return None
    needed = None
    if math.isfinite(missed.shift) and missed.shift > tolerance:
        needed = two_digits(n * (missed.shift / tolerance) ** 2)
    return Overlooked(
        shift=missed.shift,
        where=missed.where,
        share=missed.share,
        rows_needed=needed,
        of_class=missed.name,
    )
