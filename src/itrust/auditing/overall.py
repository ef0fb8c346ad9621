"""Overall calibration as a part of a pass over the rows: scores, reliability and histogram."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from itrust._core import FloatArray
from itrust.auditing.charts import HistogramChart, histogram_edges
from itrust.auditing.parts import MeanBias, Overall
from itrust.auditing.summing import SummingPart
from itrust.calibration import CalibrationResult, scores
from itrust.data import Rows
from itrust.engines import Additive

BINS = 10


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
        test=alone,
        pvalue=float(np.maximum(alone.pvalue, given.pvalue)),
        mean=mean,
        brier=sums.squares / sums.mass,
        log_loss=sums.surprise / sums.mass,
        ece=float(np.sum(by_width.share * np.abs(by_width.gap))),
        mce=float(np.abs(by_width.gap).max()),
        smooth_ece=scores.smooth_ece_of_cells(sums.cells / sums.mass),
        curve=scores.curve_of_bins(sums.by_mass),
    )
