"""One class that is taken for another: contrasts of their residuals, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from itrust._core import AnyArray, BoolArray, FloatArray
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
    rows = table.pairs
    scores = table.scaled.log_tails[rows, 0] + table.log_weights[rows]
    order = np.argsort(-scores, kind="stable").tolist()
    judged = [number for number in order[:MAX_JUDGED] if adjusted[rows.start + number] <= JUDGED]
    signs = table.scaled.standardised[rows, 0] >= 0
    sums = _observed_sums(table, judged, signs) if judged else {}
    found: list[TakenFor] = []
    for number in order:
        at = rows.start + number
        actual, predicted, g = _sides(table, number, signs)
        entry = table.checks.contrasts.entries[g]
        pvalue, moved, both = float(adjusted[at]), float("nan"), False
        if number in sums:
            own_sums = sums[number]
            both = own_sums.low >= CLEAR and own_sums.high <= -CLEAR
            pvalue = max(pvalue, 2 * float(ndtr(-abs(own_sums.studentised))))
            if entry.shape is not Shape.TREND:
                moved = own_sums.moved
        found.append(
            TakenFor(
                actual=classes[actual],
                predicted=classes[predicted],
                name=entry.name,
                covariates=entry.covariates,
                where=entry.where,
                shape=entry.shape,
                direction=1 if entry.shape is Shape.TREND else 0,
                moved=moved,
                both_sides=both,
                score=float(scores[number]),
                unadjusted_pvalue=float(own[at]),
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
    """Sums over rows along the function of one contrast, less what its level takes off.

    Of `phi e` and `phi^2 p (1 - p)` for both classes, of the contrast and its squares, by clusters
    where there are any; and of the function as it is, alone and times both residuals.
    """

    sides: FloatArray
    variances: FloatArray
    contrast: float
    squares: FloatArray
    mass: float
    plain: FloatArray

    @property
    def low(self) -> float:
        """The actual class in null standard deviations."""
        return self._standard(0)

    @property
    def high(self) -> float:
        """The predicted class in null standard deviations."""
        return self._standard(1)

    def _standard(self, side: int) -> float:
        sd = float(np.sqrt(self.variances[side]))
        return float(self.sides[side]) / sd if sd > 0 else 0.0

    @property
    def studentised(self) -> float:
        """The contrast in observed standard deviations."""
        by_cluster = self.squares.size > 1
        total = np.square(self.squares).sum() if by_cluster else self.squares[0]
        return self.contrast / float(np.sqrt(total)) if total > 0 else 0.0

    @property
    def moved(self) -> float:
        """Mean probability that should have gone to the actual class."""
        lacks, extra = self.plain.tolist()
        return max(min(lacks, -extra), 0.0) / self.mass if self.mass > 0 else 0.0


def _sides(table: ClassTable, number: int, signs: BoolArray) -> tuple[int, int, int]:
    """The class that is too low, the one that is too high, and the function."""
    first, second, g = table.law.pairs[number].tolist()
    return (first, second, g) if signs[number] else (second, first, g)


def _observed_sums(
    table: ClassTable, judged: Sequence[int], signs: BoolArray
) -> dict[int, _PairSums]:
    """Sums of the observed residuals for some contrasts, in one pass over the rows."""
    checks = table.checks
    functions = sorted({int(table.law.pairs[number, 2]) for number in judged})
    contrasts, place = checks.contrasts.some(functions), {g: k for k, g in enumerate(functions)}
    whole = checks.survey.source.in_memory
    cluster = None if whole is None else whole.cluster
    asked = []
    for number in judged:
        actual, predicted, g = _sides(table, number, signs)
        asked.append(_Asked(actual, predicted, place[g], float(table.law.level[number])))
    pairs = _PairSumming(
        contrasts, tuple(asked), None if cluster is None else int(cluster.max()) + 1
    )
    work = RowwiseWork(pairs, checks.unit, None)
    found: _SumsOfPairs = checks.engine.run(checks.survey, [], None, [work]).works[0]
    return dict(zip(judged, found.pairs, strict=True))


@dataclass(frozen=True)
class _SumsOfPairs(Additive):
    pairs: tuple[_PairSums, ...]


@dataclass(frozen=True)
class _Asked:
    """A contrast: two classes, the place of its function, and what its level takes off."""

    actual: int
    predicted: int
    place: int
    level: float


@dataclass(frozen=True, eq=False)
class _PairSumming:
    """What some rows contribute to the sums of contrasts; workers are sent it."""

    contrasts: Contrasts
    asked: tuple[_Asked, ...]
    clusters: int | None

    def __call__(self, rows: Rows, w: FloatArray) -> _SumsOfPairs:
        along = self.contrasts.matrix(rows.points) * w
        return _SumsOfPairs(tuple(self._of_pair(one, rows, along, w) for one in self.asked))

    def _of_pair(self, asked: _Asked, rows: Rows, along: AnyArray, w: FloatArray) -> _PairSums:
        sides = [asked.actual, asked.predicted]
        plain, p = along[asked.place], rows.predictions[:, sides]
        phi = plain - asked.level * w
        residuals = np.stack([(rows.codes == k) - rows.predictions[:, k] for k in sides])
        parts = phi * (residuals[0] - residuals[1])
        squares = np.array([np.square(parts).sum()])
        if self.clusters is not None and rows.cluster is not None:
            squares = np.bincount(rows.cluster, parts, self.clusters).astype(float)
        return _PairSums(
            sides=residuals @ phi,
            variances=np.square(phi) @ (p * (1 - p)),
            contrast=float(parts.sum()),
            squares=squares,
            mass=float(plain.sum()),
            plain=residuals @ plain,
        )
