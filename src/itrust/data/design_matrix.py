"""Rows as a plain matrix of numbers, for models of scikit-learn; labels are not involved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray
from itrust.data.column import Column
from itrust.data.rows import Points

MAX_LEVELS = 40


@dataclass(frozen=True, eq=False)
class _Encoded:
    """How one covariate becomes columns of a matrix."""

    name: str
    levels: tuple[Any, ...]  # one column each; empty for a number
    middle: float  # in place of a missing number
    with_missing: bool

    @classmethod
    def of(cls, column: Column) -> _Encoded:
        present = column.values[~column.missing]
        missing = bool(column.missing.any())
        if not column.is_category:
            return cls(column.name, (), float(np.median(present)) if present.size else 0.0, missing)
        codes, counts = np.unique(present, return_counts=True)
        frequent = codes[np.argsort(-counts, kind="stable")][:MAX_LEVELS]
        return cls(column.name, tuple(column.levels[code] for code in frequent), 0.0, missing)

    def columns(self, column: Column) -> list[FloatArray]:
        if self.levels:
            position = {level: code for code, level in enumerate(column.levels)}
            found = [
                np.asarray(column.values == position.get(level, -2), dtype=float)
                for level in self.levels
            ]
        else:
            found = [np.where(column.missing, self.middle, column.values)]
        return [*found, column.missing.astype(float)] if self.with_missing else found


@dataclass(frozen=True, eq=False)
class Table:
    """The prediction and the covariates: numbers as they are, one column a frequent level.

    A missing number is the median of the rows the table was made from, and marked in a column
    of its own.
    """

    encoded: tuple[_Encoded, ...]

    @classmethod
    def of(cls, points: Points) -> Table:
        """Choose columns from rows without labels."""
        return cls(tuple(_Encoded.of(column) for column in points.columns))

    def matrix(self, points: Points) -> FloatArray:
        """The columns for some rows, (n, k)."""
        by_name = {column.name: column for column in points.columns}
        found = [points.p]
        for encoded in self.encoded:
            found.extend(encoded.columns(by_name[encoded.name]))
        return np.column_stack(found)
