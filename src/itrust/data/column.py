"""One covariate, typed and frozen, and the codes by which rows of two samples are matched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from itrust._core import AnyArray, BoolArray, Setting, counted, in_door_words, listed, shown

NUMBER_OR_DATE = re.compile(
    r"[-+]?\d+([.,]\d+)?([eE][-+]?\d+)?|\d{4}-\d\d?-\d\d?.*|\d\d?[./]\d\d?[./]\d+"
)

MISSING_LEVEL = "(missing)"
MISSING_CODES = (-7, -8, -9, -77, -88, -99, -777, -888, -999, -9999)

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

    @property
    def constant_value(self) -> Any | None:
        """The single value of a column that has only one, else None."""
        first = self.values[0]
        same = np.isnan(self.values) if first != first else self.values == first
        if not same.all():
            return None
        return self.levels[int(first)] if self.is_category else float(first)

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
        text = [self.shown(end) for end in (present.min(), present.max())]
        missing = self.values.size - present.size
        return f"{text[0]} to {text[1]}{f', {missing:,} missing' if missing else ''}"

    def shown(self, value: float, digits: int = 6) -> str:
        """Write a value of this column as people would."""
        if self.kind == "date":
            if digits >= 9 and value != int(value):  # where days do not tell values apart
                return str(np.datetime64(round(value * 86_400), "s"))
            return str(np.datetime64(0, "D") + np.timedelta64(int(value), "D"))
        rounded = float(f"{value:.{digits}g}")
        plain = rounded == 0 or 1e-4 <= abs(rounded) < 1e15
        return np.format_float_positional(rounded, trim="-") if plain else f"{rounded:g}"

    def _missing_code(self) -> float | None:
        """The one value below 0 that may stand for a missing one, such as -99; None without one."""
        if self.kind != "number":
            return None
        below = np.unique(self.values[self.values < 0])
        is_code = below.size == 1 and below[0] in MISSING_CODES
        return float(below[0]) if is_code and (self.values == below[0]).sum() > 1 else None

    def notes(self) -> list[str]:
        """Say what is odd about the column: one value only, too many levels, numbers as text."""
        said = []
        if self.constant_value is not None:
            said.append(
                f"{self.name!r} has the one value {shown(self.constant_value)} in every row"
            )
        code = self._missing_code()
        if code is not None:
            rows = int((self.values == code).sum())
            cure = in_door_words(Setting("na_values", int(code)))
            said.append(
                f"{self.name!r} is {int(code)} in {counted(rows, 'row')} and at least 0 elsewhere; "
                f"if that stands for a missing value, say {cure}"
            )
        if self.is_category and len(self.levels) > 1:
            present = np.unique(self.values).size
            if len(self) > 20 and present > len(self) / 2:
                said.append(
                    f"{self.name!r} has {present:,} levels among {len(self):,} rows: few match"
                )
            numeric = sum(_looks_numeric(level) for level in self.levels)
            if numeric > 0.8 * len(self.levels):
                said.append(
                    f"{self.name!r} is text that holds numbers or dates, taken as a category"
                )
        return said


def _looks_numeric(level: object) -> bool:
    return isinstance(level, str) and bool(NUMBER_OR_DATE.fullmatch(level.strip()))


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
        codes, levels = _dense_codes(np.concatenate(_comparable(a, b)), a.is_category)
        if size * levels >= 2**62:
            distinct, combined = np.unique(combined, return_inverse=True)
            size = distinct.size
        combined = combined * levels + codes
        size *= levels
    if size > 2 * combined.size:
        _, combined = np.unique(combined, return_inverse=True)
    return combined[:split], combined[split:]


def _dense_codes(values: AnyArray, is_category: bool) -> tuple[AnyArray, int]:
    """Small non-negative numbers for values, and how many there may be."""
    if is_category:
        return values + 1, int(values.max(initial=-1)) + 2
    distinct, codes = np.unique(values, return_inverse=True)
    return codes, max(distinct.size, 1)


def _comparable(a: Column, b: Column) -> tuple[AnyArray, AnyArray]:
    if not (a.is_category and b.is_category) or a.levels == b.levels:
        return a.values, b.values
    position = {level: code for code, level in enumerate(a.levels)}
    new = (level for level in b.levels if level not in position)
    position |= {level: len(a.levels) + k for k, level in enumerate(new)}
    lookup = np.array([*(position[level] for level in b.levels), -1], dtype=np.int64)
    return a.values, lookup[b.values]
