"""Covariates, typed and frozen, and what is odd about them: copies of labels, predictions, rows.

`Points` say where rows lie: predictions and covariates, never labels. What cannot be tested is
refused; the rest becomes sentences for the data-quality notes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from itrust._core import (
    AnyArray,
    BoolArray,
    Code,
    FloatArray,
    InputError,
    Setting,
    counted,
    in_door_words,
    listed,
    shown,
)

if TYPE_CHECKING:
    from itrust.data.rows import Rows

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


MIN_ROWS, FEW_ROWS = 50, 20
NAMELESS = re.compile(r"\s*|unnamed.*", re.IGNORECASE)
INDEX = re.compile(
    r"\s*|unnamed.*|index|level_0|_?(row_?)?(id|index|nr|no|num|number)", re.IGNORECASE
)
NUMBER_OR_DATE = re.compile(
    r"[-+]?\d+([.,]\d+)?([eE][-+]?\d+)?|\d{4}-\d\d?-\d\d?.*|\d\d?[./]\d\d?[./]\d+"
)
WITHOUT_IT = Code("take it out of the covariates", "name the other covariates with --on")
ROUNDING = 0.0051  # of probabilities with two decimals
COINCIDENCE = np.log(1e-6)  # of labels, by p or by chance, that a column has the same values as
MISSING_CODES = (-7, -8, -9, -77, -88, -99, -777, -888, -999, -9999)
MAX_VALUES = 10  # of a number, up to which its values are groups as well
ROWS_A_VALUE = 3  # on average, at least
MAX_NOTED = 6  # columns that a note names


def refuse_copies(rows: Rows) -> None:
    """Raise if a covariate is one to one with the label, or tells one class from all others."""
    if rows.codes is None:
        return
    p = rows.predictions
    _refuse_copies(rows.codes, p if rows.several else np.hstack([1 - p, p]), rows.columns)
    for k, name in enumerate(rows.classes if len(rows.classes) > 2 else ()):
        of_two = np.column_stack([1 - p[:, k], p[:, k]])
        _refuse_copies(rows.codes == k, of_two, rows.columns, f"the label {shown(name)}")


def _refuse_copies(
    codes: AnyArray, p: FloatArray, columns: Sequence[Column], what: str = "the label"
) -> None:
    """With few rows, or labels that p or chance foretells, an honest covariate can be so, too."""
    codes = codes.astype(np.int64)
    with np.errstate(divide="ignore"):
        likelihood = float(np.log(p[np.arange(codes.size), codes]).sum())
    counts = np.bincount(codes)
    chance = sum(math.lgamma(count + 1) for count in counts) - math.lgamma(codes.size + 1)
    if codes.size < MIN_ROWS or max(likelihood, chance) > COINCIDENCE:
        return
    present = np.flatnonzero(counts)
    first = [int(np.argmax(codes == k)) for k in present]
    for column in columns:
        values = np.zeros(counts.size, dtype=column.values.dtype)
        values[present] = column.values[first]
        if np.unique(values[present]).size < present.size or (column.values != values[codes]).any():
            continue
        opposite = present.size == 2 and values[present[1]] < values[present[0]]
        copy = f"{'the opposite' if opposite else 'a copy'} of {what}"
        raise InputError(
            "{subject} is {copy}; {out}, for given the label no probability but 0 and 1 is "
            "calibrated",
            argument="x",
            column=column.name,
            copy=copy,
            out=WITHOUT_IT,
        )


def is_prediction(column: Column, p: FloatArray) -> Literal["p", "1 - p"] | None:
    """Say "p" or "1 - p" if a column is that in every row, up to rounding; else None."""
    if not _may_be_prediction(column, p):
        return None
    if bool((np.abs(column.values - p) <= ROUNDING).all()):  # never true of missing values
        return "p"
    return "1 - p" if bool((np.abs(column.values - (1 - p)) <= ROUNDING).all()) else None


def _may_be_prediction(column: Column, p: FloatArray) -> bool:
    return not column.is_category and p.size >= FEW_ROWS and bool(np.ptp(p) > 2 * ROUNDING)


def _is_score(column: Column, p: FloatArray) -> bool:
    """Whether a column is the logit of p or the rank of p, up to its sign.

    Other functions of p are left alone: a model may be a function of one of its covariates.
    """
    if not _may_be_prediction(column, p):
        return False
    inner = (p > 0) & (p < 1)
    logits = np.log(p[inner] / (1 - p[inner]))
    values = column.values[inner]
    is_logit = np.allclose(values, logits) or np.allclose(values, -logits)
    return (inner.sum() >= FEW_ROWS and is_logit) or _counts(column.values[np.argsort(p)])


def is_index(column: Column) -> bool:
    """Whether a column numbers the rows and is called so, or has no name and all values differ."""
    if column.kind != "number" or not INDEX.fullmatch(column.name) or len(column) < FEW_ROWS:
        return False
    nameless = NAMELESS.fullmatch(column.name) is not None
    return _counts(column.values) or (nameless and np.unique(column.values).size == len(column))


def _counts(values: AnyArray) -> bool:
    """Whether numbers go up, or down, by one from row to row."""
    steps = np.diff(values)
    return bool(abs(steps[0]) == 1 and (steps == steps[0]).all())


def is_few(kind: str, values: AnyArray) -> bool:
    """Whether a number has so few values that each may be a group: three to ten, not too rare."""
    if kind != "number":
        return False
    present = values[~np.isnan(values)]
    distinct = np.unique(present).size
    return 2 < distinct <= MAX_VALUES and present.size > ROWS_A_VALUE * distinct


def covariate_notes(points: Points) -> list[str]:
    """Say what is odd about covariates: one value, few values, copies of the prediction."""
    notes = [note for column in points.columns for note in _column_notes(column)]
    few = [c.name for c in points.columns if not c.declared and is_few(c.kind, c.values)]
    if few:
        some = few[:MAX_NOTED]
        more = f" and {len(few) - MAX_NOTED} more" if len(few) > MAX_NOTED else ""
        are = "is a number" if len(few) == 1 else "are numbers"
        cures = [in_door_words(Setting(name, some)) for name in ("categories", "numbers")]
        notes.append(
            f"{listed(some)}{more} {are} with few values: checked as numbers and value by value; "
            f"if the values are codes, say {cures[0]}, if quantities, {cures[1]}"
        )
    for column in points.columns:
        if is_prediction(column, points.p) or is_index(column):
            continue  # told by the test, as a warning
        if column.kind == "number" and len(column) >= FEW_ROWS and _counts(column.values):
            notes.append(f"{column.name!r} counts the rows: as a covariate it is their order")
        elif _is_score(column, points.p):
            notes.append(f"{column.name!r} orders the rows as p does, so it adds nothing to p")
    return notes


def _column_notes(column: Column) -> list[str]:
    """One value only, a code for missing values, too many levels, numbers as text."""
    name, values, notes = repr(column.name), column.values, []
    first = values[0]
    if (np.isnan(values) if first != first else values == first).all():
        value = column.levels[int(first)] if column.is_category else float(first)
        notes.append(f"{name} has the one value {shown(value)} in every row")
    below = np.unique(values[values < 0]) if column.kind == "number" else values[:0]
    rows = int((values == below[0]).sum()) if below.size == 1 else 0
    if rows > 1 and below[0] in MISSING_CODES:
        cure = in_door_words(Setting("na_values", int(below[0])))
        notes.append(
            f"{name} is {int(below[0])} in {counted(rows, 'row')} and at least 0 elsewhere; if "
            f"that stands for a missing value, say {cure}"
        )
    if column.is_category and len(column.levels) > 1:
        present = np.unique(values).size
        if len(column) > 20 and present > len(column) / 2:
            notes.append(f"{name} has {present:,} levels among {len(column):,} rows: few match")
        texts = [level.strip() for level in column.levels if isinstance(level, str)]
        numeric = sum(NUMBER_OR_DATE.fullmatch(text) is not None for text in texts)
        if numeric > 0.8 * len(column.levels):
            notes.append(f"{name} is text that holds numbers or dates, taken as a category")
    return notes
