"""Read what users bring, in any form, into plain arrays; every refusal is one sentence.

These functions serve `Sample` alone. Rows in messages count from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from itrust.columns import Column, as_arrow, encode, levels_and_codes
from itrust.errors import InputError, listed
from itrust.typing import FloatArray, IntArray

Missing = Literal["error", "level", "drop"]

FRAME_TRAITS = ("columns", "column_names")  # pandas and polars; Arrow


def same_length(what: str, length: int, n: int) -> None:
    """Refuse a column that is not as long as the labels."""
    if length != n:
        raise InputError(f"{what} has {length:,} rows, but there are {n:,} labels; align them")


def read_labels(y: object, positive: object) -> tuple[FloatArray, tuple[Any, ...], tuple[str, ...]]:
    """Labels as 0 and 1, their two values in sorted order, and what is worth a note."""
    array = as_arrow(y, "label")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = pa.array(array.to_numpy(zero_copy_only=False), from_pandas=True)  # NaN is missing
    values, codes = levels_and_codes(array)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(f"label is missing in row {row}; keep labelled rows only")
    if len(values) > 2:
        row = int(np.argmax(codes == 2))
        raise InputError(
            f"label must have two values, not {listed(values)}; row {row} is the first with a "
            f"third, {values[2]!r} (to test one class against the rest pass `y == value`)"
        )
    if positive is None:
        if not set(values) <= {0, 1}:
            hint = f"positive={values[-1]!r}" if values else "positive="
            raise InputError(f"label has the values {listed(values)}; name the 1 with {hint}")
        positive = 1
    elif positive not in values and len(values) == 2:
        raise InputError(f"positive={positive!r} is not among the labels {listed(values)}")
    labels = np.array([float(value == positive) for value in values])[codes]
    if len(values) != 1:
        return labels, values, ()
    return labels, values, (f"one class only: every label is {values[0]!r}",)


def positive_column(p: object, values: tuple[Any, ...], positive: object) -> object:
    """The one column of probabilities; of a matrix (n, 2), the column of the positive label."""
    frame = nw.from_native(p, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        matrix, names = frame.to_numpy(), list(frame.columns)
    elif isinstance(frame, nw.Series) or isinstance(p, pa.Array | pa.ChunkedArray):
        return p
    else:
        matrix, names = np.asarray(p), []
    if matrix.ndim == 1 or matrix.shape[1:] == (1,):
        return matrix.reshape(-1)
    if matrix.ndim != 2 or matrix.shape[1] != 2:
        raise InputError(f"prob must be one column, not an array of shape {matrix.shape}")
    if positive is None:
        raise InputError(
            "prob has two columns; pass the positive label's (p[:, 1] from scikit-learn), "
            "or name the label with positive="
        )
    off = np.abs(matrix.sum(axis=1) - 1) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise InputError(f"prob: the two columns must sum to 1; row {row} has {matrix[row]}")
    if str(positive) in names:
        return matrix[:, names.index(str(positive))]
    if positive not in values or len(values) != 2:
        raise InputError(
            f"prob has two columns and it is not clear which one is {positive!r}: "
            f"the labels are {listed(values)}; pass that column alone"
        )
    return matrix[:, values.index(positive)]


def _numbers(values: object, what: str, n: int) -> FloatArray:
    """A column of n finite numbers."""
    column = encode(what, values)
    if column.kind not in ("number", "boolean"):
        raise InputError(f"{what} must be numbers; row 0 has {column.cell(0)!r}")
    same_length(what, len(column), n)
    if column.missing.any():
        row = int(np.argmax(column.missing))
        raise InputError(f"{what} is missing in row {row}; fill it or drop the row")
    return column.values


def read_probabilities(values: object, n: int) -> FloatArray:
    """Probabilities of the positive label, (n,)."""
    p = _numbers(values, "prob", n)
    outside = (p < 0) | (p > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(f"prob must lie in [0, 1]; row {row} has {p[row]:g} ({_cure(p)})")
    return p


def _cure(p: FloatArray) -> str:
    if p.min() >= 0 and 2 < p.max() <= 100:
        return "divide percentages by 100?"
    if p.min() < -1e-6 or p.max() > 1 + 1e-6:
        return "pass logits through scipy.special.expit first?"
    return "clip rounding errors with numpy.clip(p, 0, 1)?"


def read_weights(values: object, n: int) -> FloatArray:
    """Survey weights, (n,)."""
    weights = _numbers(values, "weights", n)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise InputError(f"weights must not be negative; row {row} has {weights[row]:g}")
    if np.count_nonzero(weights) < 2:
        raise InputError("weights are zero in all rows but at most one; two rows must count")
    return weights


def read_cluster(values: object, n: int) -> IntArray:
    """Number of each row's unit, (n,)."""
    _, codes = levels_and_codes(as_arrow(values, "cluster"))
    same_length("cluster", codes.size, n)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(f"cluster is missing in row {row}; give every row its unit")
    return codes


def frame_columns(frame: object) -> list[tuple[str, object]]:
    """Names and columns of a frame or mapping; names must be unique."""
    if isinstance(frame, Mapping):
        return [(str(name), values) for name, values in frame.items()]
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return unique_columns(list(zip(frame.column_names, frame.columns, strict=True)))
    if hasattr(frame, "collect") or hasattr(frame, "compute"):
        raise InputError("the frame is lazy; call .collect() or .compute() first")
    labels = [str(name) for name in getattr(frame, "columns", ())]
    _refuse_duplicates(labels)  # before narwhals, whose message names no cure
    native = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(native, nw.DataFrame):
        raise InputError(f"expected a data frame or a mapping, not {type(frame).__name__}")
    return list(zip(labels, native.iter_columns(), strict=True))


def unique_columns(columns: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """Pass columns on if their names differ."""
    _refuse_duplicates([name for name, _ in columns])
    return columns


def _refuse_duplicates(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise InputError(f"column names must differ; {listed(twice)} stands more than once")


def read_covariates(x: object, names: Sequence[str] | None) -> tuple[Column, ...]:
    """Covariates of any form, encoded; nothing is settled about missing values yet."""
    columns = _named_columns(x)
    if names is not None:
        names = [names] if isinstance(names, str) else [str(name) for name in names]
        if len(names) != len(columns):
            raise InputError(f"names gives {len(names)} names for {len(columns)} covariates")
        columns = [(name, values) for name, (_, values) in zip(names, columns, strict=True)]
    return tuple(encode(name, values) for name, values in unique_columns(columns))


def _named_columns(x: object) -> list[tuple[str, object]]:
    """Covariates of any form as (name, column) pairs; arrays are named x1, x2, ..."""
    if x is None:
        return []
    if isinstance(x, list) and x and all(_is_named_column(item) for item in x):
        return x
    if isinstance(x, list | tuple) and x and isinstance(x[0], list | tuple):
        return _numbered(_rows_to_columns(x))
    if isinstance(x, pa.Array | pa.ChunkedArray | list | tuple):
        return _numbered([x])
    native = nw.from_native(x, series_only=True, pass_through=True)
    if isinstance(native, nw.Series):
        return [(str(native.name or "x1"), native)]
    if isinstance(x, Mapping) or any(hasattr(type(x), name) for name in FRAME_TRAITS):
        return frame_columns(x)
    array = np.asarray(x)
    if array.ndim not in (1, 2):
        raise InputError(f"x must be a frame or an array (n, d), not of shape {array.shape}")
    return _numbered(list(array.reshape(len(array), -1).T))


def _is_named_column(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _rows_to_columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise InputError(f"x: row {number} has {len(row)} values, row 0 has {width}")
    return [list(column) for column in zip(*rows, strict=True)]


def _numbered(columns: Sequence[object]) -> list[tuple[str, object]]:
    return [(f"x{k}", column) for k, column in enumerate(columns, start=1)]


def settle_missing(parts: dict[str, Any], missing: Missing) -> dict[str, Any]:
    """Apply the user's choice for missing covariates and note what is worth knowing."""
    columns: tuple[Column, ...] = parts["columns"]
    counts = {c.name: int(c.missing.sum()) for c in columns if c.missing.any()}
    notes = list(parts["notes"])
    if counts and missing == "error":
        told = ", ".join(f"{name!r} in {count:,} rows" for name, count in counts.items())
        first = next(c for c in columns if c.name in counts)
        raise InputError(
            f"covariates are missing: {told} (first: {first.name!r}, row "
            f"{int(np.argmax(first.missing))}); pass missing='level' or missing='drop'"
        )
    if counts and missing == "drop":
        keep = ~np.any([c.missing for c in columns], axis=0)
        if np.count_nonzero(keep) < 2:
            raise InputError(f"missing='drop' would leave {np.count_nonzero(keep)} rows")
        notes.append(f"dropped {np.count_nonzero(~keep):,} rows with missing covariates")
        columns = tuple(c.take(keep) for c in columns)
        for name in ("y", "p", "weights", "cluster"):
            parts[name] = None if parts[name] is None else parts[name][keep]
    columns = tuple(c.with_missing_level() for c in columns)
    for column in columns:
        value = column.constant_value
        if value is not None:
            notes.append(f"covariate {column.name!r} has the one value {value!r} in every row")
    return parts | {"columns": columns, "notes": tuple(notes)}
