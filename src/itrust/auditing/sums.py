"""Sums over rows in the pass of an audit: scores, reliability, what validators print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray
from itrust.auditing.charts import histogram_edges
from itrust.auditing.parts import MeanBias, Overall
from itrust.calibration import CalibrationResult, Validation, scores, validation
from itrust.data import Extract, Rows, Sample
from itrust.engines import Additive, Outcome, Plan, Work, rowwise_work

BINS = 10


@dataclass(frozen=True, eq=False)
class SummingPart:
    """What is known by one sum over all rows, which the first batch of draws takes along."""

    contribution: Callable[[Rows, FloatArray], Any]  # of some rows, given their weights
    unit: float
    plans: tuple[Plan, ...] = ()  # no kernels are tested
    width: int = 0  # nothing is kept for draws

    def works(self, block: range) -> list[Work]:
        """One piece of work, with the first draws only."""
        return [] if block.start else [rowwise_work(self.contribution, self.unit)]

    def reduced(self, outcome: Outcome, block: range) -> Any:
        """Keep the sums."""
        return None if block.start else outcome.works[0]

    def finished(self, found: Sequence[Any]) -> Any:
        """Take the sums of the first batch."""
        return found[0]


@dataclass(frozen=True, eq=False)
class OverallSums(Additive):
    """Sums over rows."""

    mass: float
    squares: float
    surprise: float
    by_width: scores.Sums
    by_mass: scores.Sums
    cells: FloatArray
    counts: FloatArray


def overall_sums(extract: Extract) -> tuple[FloatArray, Callable[[Rows, FloatArray], OverallSums]]:
    """The bars of a histogram, and what some rows contribute; bins are cut by the rows at hand."""
    some, census = extract.some, extract.census
    by_width = scores.EqualWidth(BINS).inner_edges(some)
    by_mass = scores.EqualMass(BINS).inner_edges(some)
    bars = histogram_edges(census.lowest, census.highest)

    def contribution(chunk: Rows, w: FloatArray) -> OverallSums:
        y, p = chunk.y, chunk.p
        return OverallSums(
            mass=float(w.sum()),
            squares=float(w @ np.square(y - p)),
            surprise=scores.surprise(y, p, w),
            by_width=scores.bin_sums(y, p, w, by_width),
            by_mass=scores.bin_sums(y, p, w, by_mass),
            cells=scores.residuals_in_cells(y, p, w),
            counts=np.histogram(p, bars)[0],
        )

    return bars, contribution


def overall_of(
    sums: OverallSums, mean: MeanBias, alone: CalibrationResult, given: CalibrationResult
) -> Overall:
    """Make what holds for the prediction alone; calibration given covariates would imply it."""
    by_width = scores.curve_of_bins(sums.by_width)
    return Overall(
        mean=mean,
        statistic=alone.statistic,
        pvalue=float(np.maximum(alone.pvalue, given.pvalue)),
        unadjusted_pvalue=alone.pvalue,
        brier=sums.squares / sums.mass,
        log_loss=sums.surprise / sums.mass,
        ece=float(np.sum(by_width.share * np.abs(by_width.gap))),
        mce=float(np.abs(by_width.gap).max()),
        smooth_ece=scores.smooth_ece_of_cells(sums.cells / sums.mass),
        curve=scores.curve_of_bins(sums.by_mass),
        test=alone,
    )


def partition_of(some: Sample, settings: Any) -> validation.Partition:
    """Where what validators print cuts the predictions: by the rows at hand, or by grades."""
    return validation.Partition.of(some, settings.grades)


def tallied_of(some: Sample, settings: Any) -> validation.Tallied:
    """Sums by cells of the prediction, of rows at hand."""
    return validation.tallied(some, partition_of(some, settings))


def validation_of(tallied: validation.Tallied, settings: Any, folds: int) -> Validation | None:
    """Make what validators print, where it was asked for."""
    if not settings.validation:
        return None
    return validation.validated(tallied, 1 - settings.alpha, settings.draws, settings.seed, folds)
