"""What is known about the rows before a label is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from itrust.data import Extract, FilePart, Pilot, Points, Source, covariate_notes

POINTS = 20_000  # rows that kernels, widths and checks are chosen from


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known about the rows before a label is looked at; made by an engine."""

    source: Source
    rows: Pilot
    pilot: Pilot
    parts: tuple[FilePart, ...] = ()

    @classmethod
    def of(cls, source: Source, size: int, min_rows: int = 0) -> Survey:
        """Choose random rows on this machine."""
        rows = source.pilot(max(size, min_rows, POINTS))
        return cls(source, rows, rows.first(size))

    @classmethod
    def of_extract(cls, extract: Extract, size: int) -> Survey:
        """Choose random rows among those at hand; no pass is made."""
        rows = extract.pilot(max(size, POINTS))
        return cls(extract.source, rows, rows.first(size), extract.parts)

    @property
    def n(self) -> int:
        """Number of rows in the whole."""
        return self.rows.n

    @cached_property
    def unit(self) -> float:
        """The size of the weights, by which they are divided."""
        return weight_unit(self.pilot)

    @property
    def points(self) -> Points:
        """Predictions and covariates of all rows, or of 20,000 random ones."""
        return self.rows.first(POINTS).points

    @property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes: those of the source, and about the columns of pilot rows."""
        if self.source.in_memory is not None:
            return self.source.notes
        return (*self.source.notes, *covariate_notes(self.points))


def weight_unit(pilot: Pilot) -> float:
    """Give the size of weights: the root of their mean square, in proportion to p(1 - p)."""
    p, variances = pilot.points.p, pilot.variances
    spread = float((p * (1 - p)).sum())
    return math.sqrt(variances.sum() / spread) if spread and variances.any() else 1.0
