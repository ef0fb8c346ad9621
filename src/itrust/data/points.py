"""Where rows lie: predictions and covariates, never labels."""

from __future__ import annotations

from dataclasses import dataclass

from itrust._core import AnyArray, BoolArray, FloatArray
from itrust.data.column import Column


@dataclass(frozen=True, eq=False)
class Points:
    """Predictions and covariates of rows.

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

    def like(self, other: Points) -> Points:
        """Keep the covariates that other rows have, in their order."""
        names = tuple(column.name for column in other.columns)
        if names == tuple(column.name for column in self.columns):
            return self
        by_name = {column.name: column for column in self.columns}
        return Points(self.p, tuple(by_name[name] for name in names if name in by_name))


def called_impossible(
    y: AnyArray | int, p: FloatArray, weights: FloatArray | None = None
) -> BoolArray:
    """Mark the rows whose label the model gave probability 0; rows of weight 0 count nothing."""
    marked: BoolArray = ((p == 0) & (y == 1)) | ((p == 1) & (y == 0))
    return marked if weights is None else marked & (weights > 0)
