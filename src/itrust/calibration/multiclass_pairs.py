"""One class that is taken for another: contrasts of their residuals, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from itrust._core import FloatArray
from itrust.calibration.dictionary.entries import Shape
from itrust.calibration.multiclass_results import TakenFor
from itrust.calibration.multiclass_scores import ClassTable

JUDGED = 0.2  # contrasts with larger p-values keep these
MAX_JUDGED = 60
CLEAR = 1.645  # null standard deviations by which each class has to be off


def taken_for(
    table: ClassTable, classes: Sequence[Any], adjusted: FloatArray, own: FloatArray
) -> tuple[TakenFor, ...]:
    """What every contrast between two classes shows, the largest scores first.

    Parameters
    ----------
    table : ClassTable
        Scores of the data and of every draw.
    classes : sequence
        Names of the classes.
    adjusted, own : (E,) arrays
        P-values of all checks of the table, adjusted for all and as the only one.

    Returns
    -------
    tuple of TakenFor
        One for each contrast that can vary.
    """
    rows = table.pairs
    scores = table.scaled.log_tails[rows, 0] + table.log_weights[rows]
    order = np.argsort(-scores, kind="stable")
    sums = _Sums(table)
    found = []
    for number in order.tolist():
        at = rows.start + number
        judged = adjusted[at] <= JUDGED and len(found) < MAX_JUDGED
        first, second, g = table.law.pairs[number].tolist()
        z = float(table.scaled.standardised[at, 0])
        actual, predicted = (first, second) if z >= 0 else (second, first)
        entry = table.checks.contrasts.entries[g]
        pvalue, moved, both = float(adjusted[at]), float("nan"), False
        if judged:
            low, high, studentised = sums.of(actual, predicted, number)
            both = low >= CLEAR and high <= -CLEAR
            pvalue = max(pvalue, 2 * float(ndtr(-abs(studentised))))
            if entry.shape is not Shape.TREND:
                moved = sums.moved(actual, predicted, g)
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


class _Sums:
    """Sums of the observed residuals along the functions of the contrasts."""

    def __init__(self, table: ClassTable) -> None:
        self.table, self.rows = table, table.checks.rows
        self.kept: dict[int, FloatArray] = {}

    def along(self, g: int) -> FloatArray:
        """The function of a contrast, weights included, (n,)."""
        if g not in self.kept:
            contrasts, rows = self.table.checks.contrasts, self.rows
            matrix = contrasts.one(g).matrix(rows.points(0), np.float64)
            self.kept[g] = matrix[0] * rows.weights_or_ones / self.table.checks.unit
        return self.kept[g]

    def residuals(self, code: int) -> FloatArray:
        return np.asarray((self.rows.codes == code) - self.rows.p[:, code])

    def of(self, actual: int, predicted: int, number: int) -> tuple[float, float, float]:
        """Both classes in null standard deviations, and the contrast in observed ones."""
        g, level = int(self.table.law.pairs[number, 2]), float(self.table.law.level[number])
        ones = self.rows.weights_or_ones / self.table.checks.unit
        phi = self.along(g) - level * ones
        sides = []
        for code in (actual, predicted):
            p = self.rows.p[:, code]
            sd = float(np.sqrt(np.square(phi) @ (p * (1 - p))))
            sides.append(float(phi @ self.residuals(code)) / sd if sd > 0 else 0.0)
        parts = phi * (self.residuals(actual) - self.residuals(predicted))
        if self.rows.units is not None:
            parts = np.bincount(self.rows.units, weights=parts)
        spread = float(np.sqrt(np.square(parts).sum()))
        return sides[0], sides[1], float(parts.sum()) / spread if spread > 0 else 0.0

    def moved(self, actual: int, predicted: int, g: int) -> float:
        """Mean probability that should have gone to the actual class."""
        phi = self.along(g)
        lacks, extra = (float(phi @ self.residuals(code)) for code in (actual, predicted))
        total = float(phi.sum())
        return max(min(lacks, -extra), 0.0) / total if total > 0 else 0.0
