"""Sums over rows in the pass of an audit: scores, reliability, what validators print."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from itrust._core import FloatArray
from itrust.auditing.charts import HistogramChart, histogram_edges
from itrust.auditing.parts import MeanBias, Overall
from itrust.calibration import CalibrationResult, Validation, scores, validation
from itrust.data import Extract, Rows, Sample
from itrust.engines import Additive, Outcome, Plan, RowwiseWork

BINS = 10
Sums = TypeVar("Sums", bound=Additive)


@dataclass(frozen=True, eq=False)
class SummingPart(ABC, Generic[Sums]):
    """What is known by one sum over all rows, which the first batch of draws takes along."""

    extract: Extract
    unit: float

    @abstractmethod
    def summing(self) -> Callable[[Rows, FloatArray], Sums]:
        """What some rows contribute, given their weights."""

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Nothing is kept for draws."""
        return 0

    def works(self, block: range) -> list[RowwiseWork]:
        """One piece of work, with the first draws only."""
        return [] if block.start else [RowwiseWork(self.summing(), self.unit)]

    def reduced(self, outcome: Outcome, block: range) -> Sums | None:
        """Keep the sums."""
        return None if block.start else outcome.works[0]

    def finished(self, found: Sequence[Sums | None]) -> Sums:
        """Take the sums of the first batch."""
        assert found[0] is not None
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


@dataclass(frozen=True, eq=False)
class _Summing:
    """What some rows contribute."""

    by_width: FloatArray
    by_mass: FloatArray
    bars: FloatArray

    def __call__(self, chunk: Rows, w: FloatArray) -> OverallSums:
        y, p = chunk.y, chunk.p
        return OverallSums(
            mass=float(w.sum()),
            squares=float(w @ np.square(y - p)),
            surprise=scores.surprise(y, p, w),
            by_width=scores.bin_sums(y, p, w, self.by_width),
            by_mass=scores.bin_sums(y, p, w, self.by_mass),
            cells=scores.residuals_in_cells(y, p, w),
            counts=np.histogram(p, self.bars)[0],
        )


@dataclass(frozen=True, eq=False)
class OverallPart(SummingPart[OverallSums]):
    """Scores, reliability curve and histogram as a part of a pass."""

    @cached_property
    def bars(self) -> FloatArray:
        """Ends of the bars of the histogram."""
        return histogram_edges(self.extract.census.lowest, self.extract.census.highest)

    def summing(self) -> _Summing:
        """What some rows contribute."""
        some = self.extract.some
        edges = scores.EqualWidth(BINS).inner_edges(some), scores.EqualMass(BINS).inner_edges(some)
        return _Summing(*edges, self.bars)

    def histogram(self, sums: OverallSums) -> HistogramChart:
        """Show how many rows have which prediction."""
        return HistogramChart.of_counts(self.bars, sums.counts)


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


@dataclass(frozen=True, eq=False)
class ValidationPart(SummingPart[validation.TallySums]):
    """What validators print, as a part of a pass over rows that are not all at hand."""

    grades: str | None = None

    @cached_property
    def partition(self) -> validation.Partition:
        """Where predictions are cut: by the rows at hand, as those of the reliability curve."""
        return validation.Partition.of(self.extract.some, self.grades)

    def summing(self) -> validation.Partition:
        """What some rows contribute."""
        return self.partition

    def validated(
        self, sums: validation.TallySums, alpha: float, draws: int, seed: int
    ) -> Validation:
        """Make the statistics of the sums."""
        tallied = sums.tallied(self.partition)
        return validation.validated(tallied, 1 - alpha, draws, seed, self.extract.some.folds)


def validation_of(
    sample: Sample, alpha: float, draws: int, seed: int, grades: str | None = None
) -> Validation:
    """Make the statistics of rows at hand."""
    tallied = validation.tallied(sample, validation.Partition.of(sample, grades))
    return validation.validated(tallied, 1 - alpha, draws, seed, sample.folds)
