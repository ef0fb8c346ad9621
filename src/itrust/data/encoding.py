"""Any column of values becomes Arrow, and Arrow becomes a `Column`.

Everything is routed through Arrow, so that a list, a NumPy array, a pandas, polars or Arrow column
are judged by the same few lines.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import (
    AnyArray,
    Code,
    FloatArray,
    InputError,
    Row,
    Setting,
    Subject,
    listed,
    shown,
)
from itrust.data.column import Column
from itrust.data.frames import refuse_missing_rows
from itrust.data.kinds import PLAIN, Kinds, as_numbers, labelled, whole_numbers

MAX_TEXT_LEVELS = 1_000
MICROSECONDS_PER_DAY = 86_400_000_000


def as_arrow(values: object, what: Subject) -> pa.Array:
    """Turn any column of single values into one Arrow array, or say why it cannot be."""
    try:
        array = _arrow(values, what)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        OverflowError,
    ) as error:
        raise _why_not_a_column(values, what, error) from None
    if pa.types.is_nested(array.type):
        raise InputError(
            "{subject} must hold one value a row; {row} has {value}",
            row=0,
            value=array[0].as_py(),
            **what.fields,
        )
    return array


def _arrow(values: object, what: Subject) -> pa.Array:
    native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        if len(native.columns) != 1:
            raise InputError(
                "{subject} must be one column, not a frame with the columns {names}",
                details={"names": listed(native.columns)},
                **what.fields,
            )
        native = native[native.columns[0]]
    if isinstance(native, nw.Series):
        try:
            values = native.to_arrow()
        except (TypeError, ValueError):  # a column type Arrow does not know, such as sparse
            values = pa.array(native.to_numpy(), from_pandas=True)
    if isinstance(values, pa.ChunkedArray):
        values = values.unify_dictionaries().combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values))
    if hasattr(values, "__arrow_array__") or hasattr(values, "categories"):
        return pa.array(values, from_pandas=True)
    return pa.array(_one_dimensional(values, what), from_pandas=True)


def _one_dimensional(values: object, what: Subject) -> AnyArray | list[Any]:
    """Lists keep their Python objects (NumPy would turn [1, "a"] into text); the rest is NumPy."""
    if isinstance(values, list | tuple | range):
        return list(values)
    array = np.asarray(values)
    if array.ndim == 0:
        raise InputError(
            "{subject} must be a column of values, not a {kind}",
            value=values,
            details={"kind": type(values).__name__},
            hint="list(...) of something iterable, .toarray() of something sparse; for column "
            "names use Sample.from_frame",
            **what.fields,
        )
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise InputError(
            "{subject} must be one column of values, not an array of shape {value}",
            value=array.shape,
            **what.fields,
        )
    return array


def _why_not_a_column(values: object, what: Subject, error: Exception) -> InputError:
    """Name the first row whose type differs from the first value's type."""
    cells = list(values) if hasattr(values, "__iter__") else []
    present = [(row, cell) for row, cell in enumerate(cells) if not _is_null(cell)]
    for row, cell in present:
        first_row, first = present[0]
        if _family(cell) is not _family(first):
            return InputError(
                "{subject} mixes types: {first_row} has {first} ({first_type}), {row} has {value} "
                "({type}); convert it to one type",
                row=row,
                value=cell,
                details={
                    "first_row": Row(first_row),
                    "first": shown(first),
                    "first_type": type(first).__name__,
                    "type": type(cell).__name__,
                },
                **what.fields,
            )
    return InputError(
        "{subject} has values that are no numbers, text, booleans or dates ({reason})",
        details={"reason": str(error)},
        **what.fields,
    )


def _family(cell: object) -> type:
    """Integers and decimals mix; text, booleans and dates do not."""
    is_number = isinstance(cell, int | float | np.integer | np.floating) and not isinstance(
        cell, bool
    )
    return float if is_number else type(cell)


def _is_null(cell: object) -> bool:
    return cell is None or bool(np.isscalar(cell) and cell != cell)  # NaN is unlike itself


def encode(name: str, values: object, *, partial: bool = False, kinds: Kinds = PLAIN) -> Column:
    """Encode one covariate: numbers and dates as float64, text and categories as levels.

    A column without any value is refused unless it is only a part of one. What users say of a
    column (`kinds`) goes before what its values look like.

    >>> encode("race", ["b", "a", None, "b"]).values
    array([ 1,  0, -1,  1])
    """
    what = Subject("x", name)
    column = _as_said(name, as_arrow(values, what), what, kinds)
    if not partial and len(column) and column.missing.all():
        told = "{subject} holds no value in any row"
        raise InputError(told, hint="leave it out", details={"is_empty": True}, **what.fields)
    if not column.is_category:
        refuse_infinite(column.values, what)
    return column


def _as_said(name: str, array: pa.Array, what: Subject, kinds: Kinds) -> Column:
    labels = kinds.labels_of(name)
    if labels is not None:
        levels, codes = levels_and_codes(whole_numbers(array))
        return Column(name, "category", codes, labelled(levels, labels), levels)
    if name in kinds.categories:
        return Column(name, "category", *reversed(levels_and_codes(whole_numbers(array))))
    if name in kinds.numbers:
        column = _encoded(name, as_numbers(array, what), what)
        return replace(column, declared=column.kind == "number")
    return _encoded(name, array, what)


def encode_numbers(values: object, what: Subject, *, lacking: bool = False) -> FloatArray:
    """Encode a column that must hold finite numbers in every row; `lacking` lets NaN pass."""
    array = as_arrow(values, what)
    if not pa.types.is_null(array.type) and not _is_numeric(array.type):
        row = int(np.argmax(array.is_valid().to_numpy(zero_copy_only=False)))
        raise InputError(
            "{subject} must be numbers; {row} has {value}",
            row=row,
            value=array[row].as_py(),
            hint="(convert the column{})",
            settings=[Code(", for instance with float or pandas.to_numeric", " to numbers")],
            **what.fields,
        )
    column = _encoded(what.argument, array, what)
    if not lacking:
        refuse_missing_rows(column.missing, what)
    refuse_infinite(column.values, what)
    return column.values


def kind_of(kind: pa.DataType) -> str:
    """What an Arrow type holds, in a word."""
    if pa.types.is_null(kind):
        return "null"
    if pa.types.is_boolean(kind):
        return "boolean"
    if _is_numeric(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "date"
    return "text" if pa.types.is_dictionary(kind) or _is_text(kind) else str(kind)


def _is_numeric(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def _encoded(name: str, array: pa.Array, what: Subject) -> Column:
    kind = array.type
    if pa.types.is_dictionary(kind) or _is_text(kind):
        return _category(name, array, what)
    if pa.types.is_boolean(kind):
        return Column(name, "boolean", _floats(array.cast(pa.int8())))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Column(name, "date", _days(array.cast(pa.timestamp("us", _zone(kind)), safe=False)))
    if pa.types.is_duration(kind):
        return Column(name, "number", _days(array.cast(pa.duration("us"), safe=False)))
    if pa.types.is_null(kind):
        return Column(name, "number", np.full(len(array), np.nan))
    if not _is_numeric(kind):
        raise InputError(
            "{subject} is of type {type}; give numbers, text, booleans or dates",
            details={"type": str(kind)},
            **what.fields,
        )
    return Column(name, "number", _floats(array))


def refuse_infinite(values: FloatArray, what: Subject) -> None:
    """Raise on the first infinite value."""
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            "{subject} must be finite; {row} has {value}",
            row=row,
            value=float(values[row]),
            count=int(infinite.sum()),
            hint="remove or cap it",
            **what.fields,
        )


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
    """Distinct values, sorted or in their declared order, and each row's position (-1: missing)."""
    ordered = None
    if pa.types.is_dictionary(array.type):
        array = _comparable_levels(array)
        ordered = array.dictionary.to_pylist() if array.type.ordered else None
        array = array.dictionary_decode()
    array = _plain_moments(array)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if pa.types.is_floating(array.type):
        array = pa.array(array.to_numpy(zero_copy_only=False), from_pandas=True)  # NaN is missing
    encoded = array.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    if ordered is not None:
        position = {level: k for k, level in enumerate(ordered)}
        order = np.argsort([position[level] for level in encoded.dictionary.to_pylist()])
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    levels = encoded.dictionary.take(pa.array(order)).to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return tuple(levels), np.where(codes < 0, -1, rank[codes] if rank.size else -1)


def _plain_moments(array: pa.Array) -> pa.Array:
    """Moments in microseconds, where none is finer: Arrow gives others as objects of pandas."""
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        with suppress(pa.ArrowInvalid):  # digits would be lost
            return array.cast(pa.timestamp("us", array.type.tz))
    return array


def _comparable_levels(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Turn levels that Arrow cannot compare, such as intervals, into their text."""
    if pa.types.is_nested(array.type.value_type) or isinstance(
        array.type.value_type, pa.BaseExtensionType
    ):
        levels = pa.array([str(level) for level in array.dictionary.to_pandas()])
        return pa.DictionaryArray.from_arrays(array.indices, levels, ordered=array.type.ordered)
    return array


def _category(name: str, array: pa.Array, what: Subject) -> Column:
    levels, codes = levels_and_codes(array)
    if _is_text(array.type) and len(levels) > MAX_TEXT_LEVELS:
        row = int(np.argmax(codes >= 0))
        raise InputError(
            "{subject} is text with {levels} different values ({row} has {value}); leave it out, "
            "group it, or "
            "say what it is with {number} or {category}",
            row=row,
            value=levels[codes[row]],
            details={
                "levels": len(levels),
                "number": Setting("numbers", [name]),
                "category": Setting("categories", [name]),
            },
            **what.fields,
        )
    return Column(name, "category", codes, levels)
