"""Rows on their way through the package: without labels (`Points`) and with them (`Chunk`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from itrust._core import AnyArray, BoolArray, FloatArray, IntArray
from itrust.data.column import Column


@dataclass(frozen=True, eq=False)
class Points:
    """Where the rows lie: predictions and covariates, never labels.

    Kernels and width rules take `Points`, so that they cannot see what they must not see.
    """

    p: FloatArray
    columns: tuple[Column, ...]

    @property
    def prediction(self) -> Column:
        """The predictions as a column like any other."""
        return Column("p", "number", self.p)

    def __len__(self) -> int:
        return int(self.p.size)

    def take(self, rows: AnyArray | slice) -> Points:
        """Keep some rows."""
        return Points(self.p[rows], tuple(column.take(rows) for column in self.columns))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows on their way through an engine; `first` is the number of the first."""

    first: int
    y: FloatArray
    p: FloatArray
    points: Points
    weights: FloatArray | None = None
    cluster: IntArray | None = None
    other_labels: frozenset[Any] = frozenset()  # values that count as 0, where known
    dropped: int = 0  # rows left out before these

    @property
    def rows(self) -> range:
        """Numbers of the rows in the whole."""
        return range(self.first, self.first + self.y.size)


def called_impossible(y: FloatArray, p: FloatArray) -> BoolArray:
    """Mark the rows whose label the model gave probability 0."""
    marked: BoolArray = ((p == 0) & (y == 1)) | ((p == 1) & (y == 0))
    return marked
