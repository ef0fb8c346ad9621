"""Covariates, typed and frozen, and where rows lie: predictions and covariates, never labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from itrust._core import AnyArray, BoolArray, FloatArray, listed

MISSING_LEVEL = "(missing)"
MICROSECONDS_PER_DAY = 86_400_000_000

Kind = Literal["number", "boolean", "date", "category"]


@dataclass(frozen=True, eq=False)
class Column:
    """One covariate, encoded and frozen: its array of values cannot be written to.

    Kernels, groups and predicates read the codes; people are shown `cell` and `extent`.
    """

    name: str
    kind: Kind
    values: AnyArray
    levels: tuple[Any, ...] = ()
    codes: tuple[Any, ...] = ()
    declared: bool = False

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.values.flags.writeable = False

    def __len__(self) -> int:
        return int(self.values.size)

    @property
    def is_category(self) -> bool:
        """Whether values are positions in `levels`, which have no order or distance."""
        return self.kind == "category"

    @property
    def missing(self) -> BoolArray:
        """Mark the rows without a value, shape (n,)."""
        mask: BoolArray = self.values < 0 if self.is_category else np.isnan(self.values)
        return mask

    def take(self, rows: AnyArray | slice) -> Column:
        """Keep some rows; name and levels stay."""
        return replace(self, values=self.values[rows])

    def with_missing_level(self) -> Column:
        """Give missing values of a category a level of their own; numbers keep their NaN."""
        if not self.is_category or not self.missing.any():
            return self
        name = MISSING_LEVEL
        while name in self.levels:
            name = f"({name})"
        codes = np.where(self.missing, len(self.levels), self.values)
        return replace(self, values=codes, levels=(*self.levels, name))

    def with_levels(self, levels: Sequence[Any], codes: Sequence[Any] = ()) -> Column:
        """Give a category other levels, among them all that occur here."""
        place = {level: k for k, level in enumerate(levels)}
        moved = np.array([*(place.get(level, -1) for level in self.levels), -1], dtype=np.int64)
        return replace(self, values=moved[self.values], levels=tuple(levels), codes=tuple(codes))

    def cell(self, row: int) -> object:
        """Give the value of one row as a person would write it."""
        if self.missing[row]:
            return None
        value = self.values[row]
        return self.levels[int(value)] if self.is_category else float(value)

    def extent(self) -> str:
        """Describe from where to where the values go."""
        if self.is_category:
            return listed(self.levels)
        present = self.values[~self.missing]
        if present.size == 0:
            return "all missing"
        missing = self.values.size - present.size
        ends = f"{self.shown(present.min())} to {self.shown(present.max())}"
        return f"{ends}, {missing:,} missing" if missing else ends

    def shown(self, value: float, digits: int = 6) -> str:
        """Write a value of this column as people would."""
        if self.kind == "date":
            if digits >= 9 and value != int(value):  # where days do not tell values apart
                return str(np.datetime64(round(value * 86_400), "s"))
            return str(np.datetime64(int(value), "D"))
        rounded = float(f"{value:.{digits}g}")
        plain = rounded == 0 or 1e-4 <= abs(rounded) < 1e15
        return np.format_float_positional(rounded, trim="-") if plain else f"{rounded:g}"


def share_codes(left: Sequence[Column], right: Sequence[Column]) -> tuple[AnyArray, AnyArray]:
    """Number the distinct rows of several columns alike on two sides: equal code, equal values.

    Categories are matched by level, so two samples with different levels compare rightly;
    missing equals missing. Codes ascend with the first column, then the second, and so on, and
    stay below twice the number of rows.
    """
    split = len(left[0])
    combined = np.zeros(split + len(right[0]), dtype=np.int64)
    size = 1
    for a, b in zip(left, right, strict=True):
        if a.is_category and b.is_category and a.levels != b.levels:
            b = b.with_levels(tuple(dict.fromkeys((*a.levels, *b.levels))))
        values = np.concatenate([a.values, b.values])
        if a.is_category:
            codes, levels = values + 1, int(values.max(initial=-1)) + 2
        else:
            distinct, codes = np.unique(values, return_inverse=True)
            levels = max(distinct.size, 1)
        if size * levels >= 2**62:
            distinct, combined = np.unique(combined, return_inverse=True)
            size = distinct.size
        combined = combined * levels + codes
        size *= levels
    if size > 2 * combined.size:
        _, combined = np.unique(combined, return_inverse=True)
    return combined[:split], combined[split:]


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
