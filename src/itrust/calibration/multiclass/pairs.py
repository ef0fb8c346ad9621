"""One class that is taken for another: contrasts of their residuals, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from itrust._core import FloatArray, IntArray
from itrust.calibration.dictionary.entries import Shape
from itrust.calibration.multiclass.checks import Contrasts
from itrust.calibration.multiclass.results import TakenFor
from itrust.calibration.multiclass.table import ClassTable
from itrust.data import Rows
from itrust.engines import Additive, RowwiseWork

JUDGED = 0.2  # contrasts with larger p-values keep these
MAX_JUDGED = 60
CLEAR = 2.58  # null standard deviations by which each class has to be off


def taken_for(
    table: ClassTable, classes: Sequence[Any], adjusted: FloatArray, own: FloatArray
) -> tuple[TakenFor, ...]:
    """What every contrast between two classes shows, the largest scores first."""
    first = table.pairs.start
    scores = table.scaled.log_tails[table.pairs, 0] + table.log_weights[table.pairs]
    sides = table.law.pairs[:, :2].copy()  # the class that is too low, and the one too high
    swapped = table.scaled.standardised[table.pairs, 0] < 0
    sides[swapped] = sides[swapped, ::-1]
    order = np.argsort(-scores, kind="stable").tolist()
    judged = [number for number in order[:MAX_JUDGED] if adjusted[first + number] <= JUDGED]
    sums = _observed_sums(table, judged, sides[judged]) if judged else None
    found: list[TakenFor] = []
    for at, number in enumerate(order):
        entry = table.checks.contrasts.entries[table.law.pairs[number, 2]]
        is_trend = entry.shape is Shape.TREND
        pvalue, moved, both = float(adjusted[first + number]), float("nan"), False
        if sums is not None and at < len(judged):  # those that are judged come first
            low, high = sums.standardised[at]
            both = bool(low >= CLEAR and high <= -CLEAR)
            pvalue = max(pvalue, 2 * float(ndtr(-abs(sums.studentised[at]))))
            moved = moved if is_trend else float(sums.moved[at])
        actual, predicted = (classes[k] for k in sides[number])
        found.append(
            TakenFor(
                actual=actual,
                predicted=predicted,
                name=entry.name,
                covariates=entry.covariates,
                where=entry.where,
                shape=entry.shape,
                direction=int(is_trend),
                moved=moved,
                both_sides=both,
                score=float(scores[number]),
                unadjusted_pvalue=float(own[first + number]),
                pvalue=pvalue,
            )
        )
    return tuple(found)


def pair_notes(contrasts: Contrasts, classes: Sequence[Any]) -> tuple[str, ...]:
    """Say so where only some pairs of classes are contrasted."""
    if not contrasts.left_out:
        return ()
    kept = len(contrasts.pairs)
    first, last = (
        " and ".join(str(classes[k]) for k in contrasts.pairs[at].tolist()) for at in (0, -1)
    )
    told = (
        f"{kept} of {kept + contrasts.left_out} pairs of classes are contrasted, those that the "
        "model gives probability together most (the largest mean products of their "
        f"probabilities), from {first} to {last}; whether classes of the other pairs are taken "
        "for each other is not tested"
    )
    return (told,)


@dataclass(frozen=True, eq=False)
class _PairSums(Additive):
    """Sums over rows along the functions of m contrasts, less what their levels take off.

    Of `phi e` and `phi^2 p (1 - p)` for both classes, (m, 2), of the contrast and its squares, by
    clusters where there are any; and of the function as it is, alone and times both residuals.
    """

    sides: FloatArray
    variances: FloatArray
    contrast: FloatArray
    squares: FloatArray
    mass: FloatArray
    plain: FloatArray

    @property
    def standardised(self) -> FloatArray:
        """Both classes in null standard deviations, (m, 2)."""
        return _ratio(self.sides, np.sqrt(self.variances))

    @property
    def studentised(self) -> FloatArray:
        """The contrasts in observed standard deviations, (m,)."""
        by_cluster = self.squares.shape[1] > 1
        total = np.square(self.squares).sum(axis=1) if by_cluster else self.squares[:, 0]
        return _ratio(self.contrast, np.sqrt(total))

    @property
    def moved(self) -> FloatArray:
        """Mean probability that should have gone to the actual class, (m,)."""
        lacks, extra = self.plain.T
        return _ratio(np.maximum(np.minimum(lacks, -extra), 0.0), self.mass)


def _ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _observed_sums(table: ClassTable, judged: Sequence[int], sides: IntArray) -> _PairSums:
    """Sums of the observed residuals for some contrasts, in one pass over the rows."""
    checks = table.checks
    functions, places = np.unique(table.law.pairs[judged, 2], return_inverse=True)
    whole = checks.survey.source.in_memory
    cluster = None if whole is None else whole.cluster
    clusters = None if cluster is None else int(cluster.max()) + 1
    contrasts, levels = checks.contrasts.some(functions.tolist()), table.law.level[judged]
    summing = _PairSumming(contrasts, sides, places, levels, clusters)
    work = RowwiseWork(summing, checks.unit, None)
    sums: _PairSums = checks.engine.run(checks.survey, [], None, [work]).works[0]
    return sums


@dataclass(frozen=True, eq=False)
class _PairSumming:
    """What some rows contribute to the sums of contrasts; workers are sent it."""

    contrasts: Contrasts
    sides: IntArray
    places: IntArray
    levels: FloatArray
    clusters: int | None

    def __call__(self, rows: Rows, w: FloatArray) -> _PairSums:
        plain = (self.contrasts.matrix(rows.points) * w)[self.places]  # (m, n)
        phi = plain - self.levels[:, None] * w
        e, p = rows.residuals[:, self.sides], rows.predictions[:, self.sides]  # (n, m, 2)
        parts = phi * (e[..., 0] - e[..., 1]).T
        squares = np.square(parts).sum(axis=1, keepdims=True)
        if rows.cluster is not None:
            cluster, count = rows.cluster, self.clusters or 0
            squares = np.array([np.bincount(cluster, own, count) for own in parts])
        return _PairSums(
            sides=np.einsum("mn,nms->ms", phi, e),
            variances=np.einsum("mn,nms->ms", np.square(phi), p * (1 - p)),
            contrast=parts.sum(axis=1),
            squares=squares,
            mass=plain.sum(axis=1),
            plain=np.einsum("mn,nms->ms", plain, e),
        )
