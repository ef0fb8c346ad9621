"""P-values without a law: labels redrawn from the probabilities, for every statistic at once.

If the model is calibrated, labels of independent rows behave as if they were drawn from the
predictions. So the share of redraws that look at least as bad as the data is a p-value that holds
at any number of rows. Of more than 2,048 different predictions, neighbouring rows are redrawn
together, at their mean prediction; with weights, as so many rows as they are worth. Steps of an
isotonic fit depend on every cell, so their redraws are of all cells, where these are not too many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.calibration.multiplicity import unadjusted_pvalues
from itrust.calibration.validation.classical import group_variance, hosmer_lemeshow_of, isotonic
from itrust.calibration.validation.smooth import quantile_of, smooth_curves
from itrust.calibration.validation.sums import PredictionCells
from itrust.calibration.validation.tally import Tallied

COARSE = 2_048
SMOOTH_CELLS = 256
LEAST_DRAWS = 10
AT_ONCE = 1_500_000  # numbers of one batch of draws
ALL_CELLS = 30_000_000  # redrawn labels: a second of work
SMOOTH = {"ici": None, "e50": 0.5, "e90": 0.9, "emax": 1.0}


@dataclass(frozen=True)
class Redrawn:
    """What redraws say of one statistic."""

    pvalue: float
    expected: float | None = None


@dataclass(frozen=True, eq=False)
class _Units:
    """What is redrawn, cell by cell: as many rows as they are worth."""

    cells: PredictionCells
    number: IntArray
    scale: FloatArray  # so that the variance is that of the weights

    @classmethod
    def of(cls, cells: PredictionCells) -> _Units:
        number = np.maximum(np.round(cells.sums.effective), 1)
        return cls(cells, number.astype(np.int64), np.sqrt(cells.sums.squares / number))

    def drawn(self, draws: int, random: np.random.Generator) -> FloatArray:
        """Weights of label 1 in every cell, (draws, cells)."""
        p, shape = self.cells.p, (draws, self.cells.p.size)
        if (self.number == 1).all():
            ones = (random.random(shape) < p).astype(float)
        else:
            ones = random.binomial(self.number, p, size=shape).astype(float)
        if not self.cells.are_weighted:
            return ones
        weights = self.cells.sums.weights
        return np.clip(weights * p + (ones - self.number * p) * self.scale, 0.0, weights)


def redrawn(tallied: Tallied, draws: int, random: np.random.Generator) -> dict[str, Redrawn]:
    """Redraw labels, and compute every statistic on the data and on each draw."""
    cells = _coarse(tallied)
    units = _Units.of(cells)
    compute = _Scores(cells, tallied)
    size = max(1, AT_ONCE // cells.p.size)
    parts = [compute.of(cells.sums.weights1[None])]
    parts += [
        compute.of(units.drawn(min(size, draws - at), random)) for at in range(0, draws, size)
    ]
    scores = np.concatenate(parts, axis=1)
    found = {
        name: _redrawn(own, name in DISTANCES) for name, own in zip(SCORES, scores, strict=True)
    }
    if cells.p.size < tallied.cells.p.size:
        found["miscalibration"] = _steps(tallied, found["miscalibration"], draws, random)
    return found


def _steps(tallied: Tallied, coarse: Redrawn, draws: int, random: np.random.Generator) -> Redrawn:
    """Miscalibration of all cells; of very many only its mean, which moves with their number."""
    cells, compute = tallied.cells, _Scores(tallied.cells, tallied)
    units, size = _Units.of(cells), max(1, AT_ONCE // cells.p.size)
    is_whole = cells.p.size * draws <= ALL_CELLS
    number = draws if is_whole else min(draws, max(size, LEAST_DRAWS))
    parts = [compute.miscalibration(cells.sums.weights1[None])]
    parts += [
        compute.miscalibration(units.drawn(min(size, number - at), random))
        for at in range(0, number, size)
    ]
    found = _redrawn(np.concatenate(parts), True)
    return found if is_whole else replace(coarse, expected=found.expected)


def _redrawn(scores: FloatArray, is_distance: bool) -> Redrawn:
    """One statistic by itself, so that ties are told on its own scale."""
    known = np.isfinite(scores)
    beyond = 2 * float(np.abs(scores[known]).max(initial=0.0)) + 1  # what cannot happen is worst
    pvalue = unadjusted_pvalues(np.where(known, scores, beyond)[None])[0]
    mean = float(scores[1:][known[1:]].mean()) if is_distance and known[1:].any() else None
    return Redrawn(float(pvalue), mean)


SCORES = ("intercept", "slope", *SMOOTH, "hosmer_lemeshow", "spiegelhalter", "miscalibration")
DISTANCES = (*SMOOTH, "miscalibration")  # that are never 0, so that their mean is told


def _coarse(tallied: Tallied) -> PredictionCells:
    """At most 2,048 cells or so, each within one group."""
    cells = tallied.cells
    group = np.searchsorted(tallied.partition.edges, cells.p)
    return cells.merged(_starts(cells, COARSE, group))


def _starts(cells: PredictionCells, number: int, group: IntArray | int = 0) -> IntArray:
    """Where about so many cells of the same weight begin; 0 and 1 stay by themselves."""
    if cells.p.size <= number:
        return np.arange(cells.p.size)
    share = np.cumsum(cells.sums.weights)
    part = np.minimum(share / share[-1] * number, number - 1).astype(np.int64)
    side = np.select([cells.p == 0, cells.p == 1], [0, 2], 1)
    return np.flatnonzero(np.diff((group * (number + 1) + part) * 3 + side, prepend=-1))


@dataclass(frozen=True, eq=False)
class _Scores:
    """Every statistic as a number that is large where the model looks bad."""

    cells: PredictionCells
    tallied: Tallied

    def of(self, ones: FloatArray) -> FloatArray:
        """Scores of several sets of labels, (statistics, b)."""
        cells, sums = self.cells, self.cells.sums
        residual = ones - sums.weights * cells.p
        logit = np.where(cells.is_certain, 0.0, cells.logit)
        varies = cells.variance
        total = float(varies.sum())
        centred = logit - (float(varies @ logit) / total if total > 0 else 0.0)
        centred[cells.is_certain] = 0.0
        edges = self.tallied.partition.edges
        group = np.searchsorted(edges, cells.p)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        by_group = np.add.reduceat(residual, starts, axis=1)
        found = {
            "intercept": np.abs(residual.sum(axis=1)),
            "slope": np.abs(residual @ centred),
            "hosmer_lemeshow": hosmer_lemeshow_of(
                by_group, group_variance(cells.merged(starts).sums)
            ),
            "spiegelhalter": np.abs(residual @ (1 - 2 * cells.p)),
            "miscalibration": self.miscalibration(ones),
            **self._smooth(ones),
        }
        return np.array([found[name] for name in SCORES])

    def _smooth(self, ones: FloatArray) -> dict[str, FloatArray]:
        """Distances of the smooth curve, which some hundred cells tell as well as more."""
        starts = _starts(self.cells, SMOOTH_CELLS)
        cells = self.cells.merged(starts)
        errors = smooth_curves(cells, np.add.reduceat(ones, starts, axis=1)).errors
        weights = cells.sums.weights
        found = {}
        for name, level in SMOOTH.items():
            if level is None:
                found[name] = errors @ weights / weights.sum()
            elif level == 1.0:
                found[name] = errors.max(axis=1)
            else:
                found[name] = np.array([quantile_of(own, cells, level) for own in errors])
        return found

    def miscalibration(self, ones: FloatArray) -> FloatArray:
        """Of the Brier score; what the labels alone add to it cancels."""
        weights, p = self.cells.sums.weights, self.cells.p
        rates = ones / weights
        nearest = isotonic(rates, weights)
        lost = np.square(rates - p) - np.square(rates - nearest)
        return np.asarray(lost @ weights / weights.sum())
