"""One covariate: any column of values becomes a typed, read-only `Column`.

Everything is routed through Arrow, so that a list, a NumPy array, a pandas, polars or
Arrow column are judged by the same few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust.errors import InputError
from itrust.typing import AnyArray, BoolArray, FloatArray

MAX_TEXT_LEVELS = 1_000
MICROSECONDS_PER_DAY = 86_400_000_000

Kind = Literal["number", "boolean", "date", "category"]


@dataclass(frozen=True, eq=False)
class Column:
    """One covariate, encoded and frozen.

    Parameters
    ----------
    name : str
        The name in messages and reports.
    kind : {"number", "boolean", "date", "category"}
        Dates are numbers of days since 1970-01-01; booleans are 0 and 1.
    values : (n,) array
        float64 with NaN where missing, or for a category the int64 position in `levels`
        with -1 where missing.
    levels : tuple
        The values of a category in sorted order; empty for the other kinds.
    """

    name: str
    kind: Kind
    values: AnyArray
    levels: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
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

    def take(self, rows: AnyArray) -> Column:
        """Keep some rows; name and levels stay."""
        return replace(self, values=self.values[rows])

    def with_missing_level(self) -> Column:
        """Give missing values of a category a level of their own; numbers keep their NaN."""
        if not self.is_category or not self.missing.any():
            return self
        name = "(missing)"
        while name in self.levels:
            name = f"({name})"
        codes = np.where(self.missing, len(self.levels), self.values)
        return replace(self, values=codes, levels=(*self.levels, name))

    @property
    def constant_value(self) -> Any | None:
        """The single value of a column that has only one, else None."""
        first = self.values[0]
        same = np.isnan(self.values) if first != first else self.values == first
        if not same.all():
            return None
        return self.levels[int(first)] if self.is_category else float(first)

    def cell(self, row: int) -> object:
        """The value of one row as a person would write it (None where missing)."""
        if self.missing[row]:
            return None
        value = self.values[row]
        return self.levels[int(value)] if self.is_category else float(value)


def as_arrow(values: object, what: str) -> pa.Array:
    """Turn any one-dimensional column into one Arrow array, or say why it cannot be."""
    native = nw.from_native(values, series_only=True, pass_through=True)
    try:
        if isinstance(native, nw.Series):
            values = native.to_arrow()
        if isinstance(values, pa.ChunkedArray):
            values = values.unify_dictionaries().combine_chunks()
        if isinstance(values, pa.Array):
            return values
        return pa.array(_one_dimensional(values, what), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(_why_not_a_column(values, what, error)) from None


def _one_dimensional(values: object, what: str) -> AnyArray | list[Any]:
    """Lists keep their Python objects (NumPy would turn [1, "a"] into text); the rest is NumPy."""
    if isinstance(values, list | tuple):
        return list(values)
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(
            f"{what} must be one column of values, not an array of shape {array.shape}"
        )
    return array


def _why_not_a_column(values: object, what: str, error: Exception) -> str:
    """Name the first row whose type differs from the first value's type."""
    cells = values.to_list() if isinstance(values, nw.Series) else list(values)  # type: ignore[call-overload]
    types = [(row, cell) for row, cell in enumerate(cells) if not _is_null(cell)]
    for row, cell in types:
        first_row, first = types[0]
        if type(cell) is not type(first):
            return (
                f"{what} mixes types: row {first_row} has {first!r} ({type(first).__name__}), "
                f"row {row} has {cell!r} ({type(cell).__name__}); convert it to one type"
            )
    return f"{what} has values that are no numbers, text, booleans or dates ({error})"


def _is_null(cell: object) -> bool:
    return cell is None or cell != cell  # NaN is the value unlike itself


def encode(name: str, values: object) -> Column:
    """Encode one covariate: numbers and dates as float64, text and categories as levels.

    >>> encode("race", ["b", "a", None, "b"]).values
    array([ 1,  0, -1,  1])
    """
    what = f"covariate {name!r}"
    array = as_arrow(values, what)
    kind = array.type
    if pa.types.is_null(kind):
        raise InputError(f"{what} holds no value in any row; leave it out")
    if pa.types.is_dictionary(kind):
        return _category(name, array.dictionary_decode(), what, declared=True)
    if _is_text(kind):
        return _category(name, array, what, declared=False)
    if pa.types.is_boolean(kind):
        return Column(name, "boolean", _floats(array.cast(pa.int8())))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Column(name, "date", _days(array.cast(pa.timestamp("us", _zone(kind)), safe=False)))
    if pa.types.is_duration(kind):
        return Column(name, "number", _days(array.cast(pa.duration("us"), safe=False)))
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(f"{what} is of type {kind}; give numbers, text, booleans or dates")
    column = Column(name, "number", _floats(array))
    refuse_infinite(column.values, what)
    return column


def refuse_infinite(values: FloatArray, what: str) -> None:
    """Raise on the first infinite value."""
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(f"{what} must be finite; row {row} has {values[row]} (remove or cap it)")


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _zone(kind: pa.DataType) -> str | None:
    return kind.tz if pa.types.is_timestamp(kind) else None


def _floats(array: pa.Array) -> FloatArray:
    """Copy to float64, missing as NaN."""
    numbers = array.cast(pa.float64(), safe=False)
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _days(array: pa.Array) -> FloatArray:
    return _floats(array.cast(pa.int64())) / MICROSECONDS_PER_DAY


def levels_and_codes(array: pa.Array) -> tuple[tuple[Any, ...], AnyArray]:
    """Sorted distinct values and each row's position among them (-1 where missing)."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    encoded = array.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    levels = encoded.dictionary.take(pa.array(order)).to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return tuple(levels), np.where(codes < 0, -1, rank[codes])


def _category(name: str, array: pa.Array, what: str, *, declared: bool) -> Column:
    levels, codes = levels_and_codes(array)
    if not declared and len(levels) > MAX_TEXT_LEVELS:
        row = int(np.argmax(codes >= 0))
        raise InputError(
            f"{what} is text with {len(levels):,} different values (row {row} has "
            f"{levels[codes[row]]!r}); leave it out, group it, convert it to numbers if it holds "
            f"numbers, or declare it a categorical column if you mean it"
        )
    return Column(name, "category", codes, levels)


def share_codes(left: Sequence[Column], right: Sequence[Column]) -> tuple[AnyArray, AnyArray]:
    """Number the distinct rows of several columns alike on two sides: equal code, equal values.

    Categories are matched by level, so two samples with different levels compare rightly;
    missing equals missing.
    """
    split = len(left[0])
    combined = np.zeros(split + len(right[0]), dtype=np.int64)
    for a, b in zip(left, right, strict=True):
        _, codes = np.unique(np.concatenate(_comparable(a, b)), return_inverse=True)
        _, combined = np.unique(combined * (codes.max() + 1) + codes, return_inverse=True)
    return combined[:split], combined[split:]


def _comparable(a: Column, b: Column) -> tuple[AnyArray, AnyArray]:
    if not (a.is_category and b.is_category) or a.levels == b.levels:
        return a.values, b.values
    position = {level: code for code, level in enumerate(a.levels)}
    new = (level for level in b.levels if level not in position)
    position |= {level: len(a.levels) + k for k, level in enumerate(new)}
    lookup = np.array([*(position[level] for level in b.levels), -1], dtype=np.int64)
    return a.values, lookup[b.values]
