"""Columns of any form: frames, mappings, arrays and lists become columns by name."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from itrust._core import (
    BoolArray,
    InputError,
    Row,
    Setting,
    Subject,
    counted,
    first_line,
    listed,
)

# Of their classes: pandas, polars and DuckDB; Arrow; its readers and data sets; its scanners.
FRAME_TRAITS = ("columns", "column_names", "schema", "projected_schema")
# Where rows are made only when they are read, the package that makes them is loaded by then.
FOREIGN_ERRORS = (
    ("duckdb", "Error"),
    ("narwhals.exceptions", "NarwhalsError"),
    ("polars.exceptions", "PolarsError"),
    ("pyarrow", "ArrowException"),
)
X = Subject("x")


def is_frame(value: object) -> bool:
    """Whether something has named columns.

    >>> is_frame({"age": [41]}), is_frame(pa.table({"age": [41]})), is_frame([41])
    (True, True, False)
    """
    # Of the class: a lazy frame would have to think about its own columns.
    return isinstance(value, Mapping) or any(hasattr(type(value), name) for name in FRAME_TRAITS)


def at_hand(frame: object) -> object:
    """A frame with all its rows; what is lazy, a relation or a reader is read, once and whole.

    Narwhals knows lazy frames of polars and Dask and relations of DuckDB, and some more.
    """
    with _being_read():
        if isinstance(frame, pa.RecordBatchReader):
            return frame.read_all()
        if type(frame).__module__ == "pyarrow._dataset":
            return frame.to_table()  # type: ignore[attr-defined]
        lazy = _as_lazy(frame)
        if lazy is None:
            return frame
        if "duckdb" in type(frame).__module__:  # SELECT may give two columns one name
            refuse_duplicates(frame.columns)  # type: ignore[attr-defined]
        return lazy.collect().to_native()


@contextmanager
def _being_read() -> Iterator[None]:
    """Say in one sentence why a frame gives no rows: a query that fails, a closed connection."""
    kinds = tuple(
        getattr(sys.modules[module], name)
        for module, name in FOREIGN_ERRORS
        if module in sys.modules
    )
    try:
        yield
    except MemoryError:  # Arrow has one of its own, and the command a sentence for all
        raise
    except kinds as error:
        raise InputError(
            "the rows of the frame cannot be read: {reason}",
            argument="frame",
            details={"reason": first_line(error)},
        ) from error


def _as_lazy(frame: object) -> Any:
    """A lazy frame or a relation as narwhals has it; None for what is neither."""
    if nw.dependencies.is_pandas_dataframe(frame):  # names that agree are refused with a cure later
        return None
    native = nw.from_native(frame, pass_through=True)
    return native if isinstance(native, nw.LazyFrame) else None


def names_of_frame(frame: object) -> list[str]:
    """Names of a frame's columns; no row is read."""
    with _being_read():
        lazy = _as_lazy(frame)
        if lazy is not None:
            return list(lazy.collect_schema().names())
    schema = getattr(frame, "projected_schema", None) or getattr(frame, "schema", None)
    found = schema.names if isinstance(schema, pa.Schema) else getattr(frame, "columns", frame)
    return [str(name) for name in found]  # type: ignore[union-attr]


def in_narwhals(value: object) -> Any:
    """A frame or column as narwhals has it; anything else as it is."""
    return nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)


def same_length(what: Subject, length: int, n: int, others: str = "labels") -> None:
    """Refuse a column that is not as long as the labels, or the others it goes with."""
    if length != n:
        raise InputError(
            f"{{subject}} has {counted(length, 'row')}, but there are {n:,} {others}; align them",
            count=length,
            **what.fields,
        )


def refuse_missing_rows(missing: BoolArray, what: Subject) -> None:
    """Raise if rows have no value; says how many, which is the first, and what leaves them out."""
    if missing.any():
        count = int(missing.sum())
        have = "row has" if count == 1 else "rows have"
        raise InputError(
            f"{{count}} {have} no {{title}} (first: {{row}}); {{cure}} leaves them out",
            row=int(np.argmax(missing)),
            count=count,
            details={"cure": Setting("missing", "drop")},
            **what.fields,
        )


def frame_columns(frame: object) -> dict[str, object]:
    """Columns of a frame or mapping by name; names must differ."""
    if isinstance(frame, Mapping):
        return by_name([(str(name), values) for name, values in frame.items()])
    if not isinstance(frame, pa.Table | pa.RecordBatch):
        frame = at_hand(frame)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return by_name(list(zip(frame.column_names, frame.columns, strict=True)))
    if hasattr(frame, "compute") or hasattr(frame, "collect"):  # of a kind that is not known
        raise InputError("the frame is lazy; call .compute() or .collect() first", argument="frame")
    labels = [str(name) for name in getattr(frame, "columns", ())]
    refuse_duplicates(labels)  # before narwhals, whose message names no cure
    native = in_narwhals(frame)
    if not isinstance(native, nw.DataFrame):
        raise InputError(
            "expected a data frame or a mapping, not a {kind}",
            argument="frame",
            value=frame,
            details={"kind": type(frame).__name__},
        )
    return by_name(list(zip(labels, native.iter_columns(), strict=True)))


def by_name(columns: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Columns by name; names must differ."""
    refuse_duplicates([name for name, _ in columns])
    return dict(columns)


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise if a name stands more than once."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            "column names must differ; {twice} stands more than once",
            argument="x",
            details={"twice": listed(twice)},
        )


def columns_of(x: object, what: Subject = X) -> dict[str, object]:
    """Columns of any form by name; columns of arrays are named x1, x2, ..."""
    if x is None or (isinstance(x, list | tuple) and not x):
        return {}
    if isinstance(x, list | tuple) and isinstance(x[0], list | tuple | np.ndarray):
        return _numbered(rows_to_columns(what, x))
    if isinstance(x, list | tuple) and any(getattr(item, "ndim", 0) > 0 for item in x):
        raise InputError(
            "{argument} is a list of columns; name them in a mapping, such as {'age': ages}",
            argument=what.argument,
        )
    if isinstance(x, pa.Array | pa.ChunkedArray | list | tuple):
        return _numbered([x])
    if is_frame(x):
        return frame_columns(x)
    native = in_narwhals(x)
    if isinstance(native, nw.Series):
        return {str(native.name or "x1"): native}
    if isinstance(x, np.ndarray) and x.ndim == 2:
        return _numbered(list(x.T))
    if isinstance(x, np.ndarray) and x.ndim > 2:
        raise InputError(
            "{argument} must be a frame or an array (n, d), not of shape {value}",
            argument=what.argument,
            value=x.shape,
        )
    return _numbered([x])


def rows_to_columns(what: Subject, rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Columns of rows that are equally long."""
    width = len(rows[0])
    for number, row in enumerate(rows):
        length = len(row) if hasattr(row, "__len__") else 1
        if length != width:
            raise InputError(
                f"{{subject}}: {{row}} has {counted(length, 'value')}, {{first}} has {width}",
                row=number,
                count=length,
                details={"first": Row(0)},
                **what.fields,
            )
    return [list(column) for column in zip(*rows, strict=True)]


def _numbered(columns: Sequence[object]) -> dict[str, object]:
    return {f"x{k}": column for k, column in enumerate(columns, start=1)}
