"""Read what users bring, in any form, into plain arrays; every refusal is one sentence.

These functions serve the doors (`Sample` and its like). Rows in messages count from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from itrust._core import (
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    counted,
    did_you_mean,
    listed,
    shown,
)
from itrust.data.column import Column
from itrust.data.encoding import as_arrow, encode, encode_numbers, levels_and_codes

MissingRule = Literal["error", "level", "drop"]

FRAME_TRAITS = ("columns", "column_names")  # pandas and polars; Arrow


def checked_missing(missing: object) -> None:
    """Refuse a setting that does not exist."""
    if missing not in ("error", "level", "drop"):
        raise InputError(f"missing must be 'error', 'level' or 'drop', not {missing!r}")


def same_length(what: str, length: int, n: int, others: str = "labels") -> None:
    """Refuse a column that is not as long as the labels, or the others it goes with."""
    if length != n:
        raise InputError(
            f"{what} has {counted(length, 'row')}, but there are {n:,} {others}; align them"
        )


def same_index(inputs: Iterable[tuple[str, object]]) -> None:
    """Refuse pandas inputs whose indexes differ: rows are matched by position."""
    first_name, first = "", None
    for name, value in inputs:
        is_pandas = type(value).__module__.partition(".")[0] == "pandas"
        index: Any = getattr(value, "index", None) if is_pandas else None
        if first is None:
            first_name, first = name, index
        elif index is not None and len(index) == len(first) and not index.equals(first):
            row = int(np.argmax(np.asarray(index) != np.asarray(first)))
            raise InputError(
                f"{first_name} and {name} have different indexes (row {row}: {first[row]} and "
                f"{index[row]}), but rows go by position; align them, or .reset_index(drop=True)"
            )


def _native(value: object) -> Any:
    return nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)


def read_labels(y: object, positive: object) -> tuple[FloatArray, tuple[Any, ...]]:
    """Labels as 0 and 1, and their values in sorted order."""
    values, codes = levels_and_codes(as_arrow(y, "label"))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(f"label is missing in row {row}; keep labelled rows only")
    if len(values) > 2:
        raise InputError(_too_many_labels(values, codes))
    if positive is None:
        if not set(values) <= {0, 1}:
            said = _short(values)
            hint = (
                " or ".join(f"positive={v!r}" for v in said) if len(said) == 2 else "positive=..."
            )
            raise InputError(
                f"label has the values {listed(said)}; say which value counts as 1 with {hint}"
            )
        positive = 1
    elif positive not in values and len(values) == 2:
        close = [value for value in values if str(value).lower() == str(positive).lower()]
        hint = f"did you mean positive={close[0]!r}?" if close else "name one of these"
        known = listed(_short(values))
        raise InputError(f"positive={positive!r} is not among the labels {known}; {hint}")
    return np.array([float(value == positive) for value in values])[codes], values


def _short(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values for a message: whole numbers as such, although CSV files are read as decimals."""
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return tuple(int(value) for value in values) if whole else values


def _too_many_labels(values: tuple[Any, ...], codes: AnyArray) -> str:
    counts = np.bincount(codes)
    rarest = int(np.flatnonzero(counts == counts.min())[-1])
    said = _short(values)
    swapped = len(values) > 10 and all(isinstance(v, float) and 0 <= v <= 1 for v in values)
    cure = (
        "are label and prob swapped?" if swapped else "for one class against the rest: y == value"
    )
    return (
        f"label must have two values, not {listed(said)}; the rarest is {shown(said[rarest])} "
        f"({counted(int(counts[rarest]), 'row')}, first in row {int(np.argmax(codes == rarest))}) "
        f"({cure})"
    )


def positive_column(p: object, values: tuple[Any, ...], positive: object) -> object:
    """The one column of probabilities; of a matrix (n, 2), the column of the positive label."""
    matrix, names = _as_matrix(p)
    if matrix is None or matrix.ndim != 2 or matrix.shape[1] == 1:
        return p
    if matrix.shape[1] != 2:
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
    known = names or [str(value) for value in values]  # scikit-learn sorts the labels
    if str(positive) not in known or len(known) != 2:
        raise InputError(
            f"prob has the two columns {listed(known)}, and it is not clear which one is "
            f"{positive!r}; pass that column alone"
        )
    return matrix[:, known.index(str(positive))]


def _as_matrix(p: object) -> tuple[AnyArray | None, list[str]]:
    """A two-dimensional input as an array with its column names; None for one column."""
    native = _native(p)
    if isinstance(native, nw.DataFrame):
        return native.to_numpy(), [str(name) for name in native.columns]
    if isinstance(p, list | tuple):
        if not p or not isinstance(p[0], list | tuple | np.ndarray):
            return None, []
        return np.column_stack([np.asarray(column) for column in _rows_to_columns("prob", p)]), []
    return (
        (p, [])
        if isinstance(p, np.ndarray) and not isinstance(p, np.ma.MaskedArray)
        else (None, [])
    )


def _numbers(values: object, what: str, n: int) -> FloatArray:
    """A column of n finite numbers."""
    numbers = encode_numbers(values, what)
    same_length(what, numbers.size, n)
    return numbers


def read_probabilities(values: object, n: int) -> FloatArray:
    """Probabilities of the positive label, (n,)."""
    p = _numbers(values, "prob", n)
    outside = (p < 0) | (p > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(f"prob must lie in [0, 1]; row {row} has {float(p[row])!r} ({_cure(p)})")
    return p


def _cure(p: FloatArray) -> str:
    if p.min() >= 0 and 2 < p.max() <= 100:
        return "divide percentages by 100?"
    if p.min() >= -1e-6 and p.max() <= 1 + 1e-6:
        return "clip rounding errors with numpy.clip(p, 0, 1)?"
    return "pass logits through scipy.special.expit first?"


def read_weights(values: object, n: int) -> FloatArray:
    """Survey weights, (n,)."""
    weights = _numbers(values, "weights", n)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise InputError(f"weights must not be negative; row {row} has {weights[row]:g}")
    return weights


def refuse_empty_weights(weights: FloatArray) -> None:
    """Raise unless at least two rows count."""
    if np.count_nonzero(weights) < 2:
        raise InputError("weights are zero in all rows but at most one; two rows must count")


def read_cluster(values: object, n: int) -> IntArray:
    """Number of each row's unit, (n,)."""
    _, codes = levels_and_codes(as_arrow(values, "cluster"))
    same_length("cluster", codes.size, n)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(f"cluster is missing in row {row}; give every row its unit")
    return codes


def frame_columns(frame: object) -> dict[str, object]:
    """Columns of a frame or mapping by name; names must differ."""
    if isinstance(frame, Mapping):
        return _by_name([(str(name), values) for name, values in frame.items()])
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return _by_name(list(zip(frame.column_names, frame.columns, strict=True)))
    if hasattr(frame, "collect") or hasattr(frame, "compute"):
        raise InputError("the frame is lazy; call .collect() or .compute() first")
    labels = [str(name) for name in getattr(frame, "columns", ())]
    refuse_duplicates(labels)  # before narwhals, whose message names no cure
    native = _native(frame)
    if not isinstance(native, nw.DataFrame):
        raise InputError(f"expected a data frame or a mapping, not a {type(frame).__name__}")
    return _by_name(list(zip(labels, native.iter_columns(), strict=True)))


def _by_name(columns: Sequence[tuple[str, object]]) -> dict[str, object]:
    refuse_duplicates([name for name, _ in columns])
    return dict(columns)


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise if a name stands more than once."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"column names must differ; {listed(twice)} stands more than once")


def named_columns(
    frame: object, roles: Mapping[str, str | None], on: str | Sequence[str]
) -> tuple[dict[str, object], dict[str, str], list[str]]:
    """Columns of a frame, names of those with a role, and covariates; all of them are there."""
    columns = frame_columns(frame)
    chosen = [on] if isinstance(on, str) else [str(name) for name in on or ()]
    named = {role: str(name) for role, name in roles.items() if name is not None}
    for role, name in (*named.items(), *(("on", name) for name in chosen)):
        if name not in columns:
            hint = did_you_mean(name, list(columns))
            raise InputError(f"{role}: the frame has no column {name!r}; {hint}")
    refuse_duplicates(chosen)
    return columns, named, chosen


def read_parts(
    y: object,
    p: object,
    x: object,
    *,
    weights: object = None,
    cluster: object = None,
    names: Sequence[str] | None = None,
    positive: object = None,
    missing: MissingRule = "error",
    partial: bool = False,
) -> dict[str, Any]:
    """Everything a sample, or with `partial` a chunk of one, is made of."""
    checked_missing(missing)
    labels, found = read_labels(y, positive)
    n = labels.size
    prob = read_probabilities(positive_column(p, found, positive), n)
    covariates = read_covariates(x, names, partial=partial)
    for column in covariates:
        same_length(f"covariate {column.name!r}", len(column), n)
    parts = {
        "y": labels,
        "p": prob,
        "columns": covariates,
        "weights": None if weights is None else read_weights(weights, n),
        "cluster": None if cluster is None else read_cluster(cluster, n),
        "values": _both_values(found, 1 if positive is None else positive),
        "dropped": (),
    }
    return settle_missing(parts, missing)


def _both_values(found: tuple[Any, ...], positive: object) -> tuple[Any, Any]:
    """The label values that count as 0 and 1; None for a 0 that does not occur."""
    others = [value for value in found if value != positive]
    return (others[0] if others else None), positive


def read_covariates(
    x: object, names: Sequence[str] | None, *, partial: bool = False
) -> tuple[Column, ...]:
    """Covariates of any form, encoded; nothing is settled about missing values yet."""
    columns = _named_columns(x)
    if names is not None:
        names = [names] if isinstance(names, str) else [str(name) for name in names]
        if len(names) != len(columns):
            told = counted(len(names), "name"), counted(len(columns), "covariate")
            raise InputError(f"names gives {told[0]} for {told[1]}")
        columns = _by_name(list(zip(names, columns.values(), strict=True)))
    return tuple(encode(name, values, partial=partial) for name, values in columns.items())


def _named_columns(x: object) -> dict[str, object]:
    """Covariates of any form by name; columns of arrays are named x1, x2, ..."""
    if x is None or (isinstance(x, list | tuple) and not x):
        return {}
    if isinstance(x, list | tuple) and isinstance(x[0], list | tuple | np.ndarray):
        return _numbered(_rows_to_columns("x", x))
    if isinstance(x, list | tuple) and any(getattr(item, "ndim", 0) > 0 for item in x):
        raise InputError("x is a list of columns; name them in a mapping, such as {'age': ages}")
    if isinstance(x, pa.Array | pa.ChunkedArray | list | tuple):
        return _numbered([x])
    if isinstance(x, Mapping) or any(hasattr(type(x), name) for name in FRAME_TRAITS):
        return frame_columns(x)
    native = _native(x)
    if isinstance(native, nw.Series):
        return {str(native.name or "x1"): native}
    if isinstance(x, np.ndarray) and x.ndim == 2:
        return _numbered(list(x.T))
    if isinstance(x, np.ndarray) and x.ndim > 2:
        raise InputError(f"x must be a frame or an array (n, d), not of shape {x.shape}")
    return _numbered([x])


def _rows_to_columns(what: str, rows: Sequence[Sequence[object]]) -> list[list[object]]:
    width = len(rows[0])
    for number, row in enumerate(rows):
        length = len(row) if hasattr(row, "__len__") else 1
        if length != width:
            told = counted(length, "value")
            raise InputError(f"{what}: row {number} has {told}, row 0 has {width}")
    return [list(column) for column in zip(*rows, strict=True)]


def _numbered(columns: Sequence[object]) -> dict[str, object]:
    return {f"x{k}": column for k, column in enumerate(columns, start=1)}


def settle_missing(parts: dict[str, Any], missing: MissingRule) -> dict[str, Any]:
    """Apply the user's choice for missing covariates; note what was dropped."""
    columns: tuple[Column, ...] = parts["columns"]
    counts = {c.name: int(c.missing.sum()) for c in columns if c.missing.any()}
    if counts and missing == "error":
        told = ", ".join(f"{name!r} in {counted(count, 'row')}" for name, count in counts.items())
        first = next(c for c in columns if c.name in counts)
        where = f" of {first.name!r}" if len(counts) > 1 else ""
        raise InputError(
            f"covariates have missing values: {told} (first: row {int(np.argmax(first.missing))}"
            f"{where}); pass missing='level' or missing='drop'"
        )
    if counts and missing == "drop":
        keep = ~np.any([c.missing for c in columns], axis=0)
        kept = int(keep.sum())
        if kept < 2:
            raise InputError(f"missing='drop' would leave {counted(kept, 'row')}")
        parts["dropped"] = (f"dropped {counted(keep.size - kept, 'row')} with missing covariates",)
        columns = tuple(c.take(keep) for c in columns)
        for name in ("y", "p", "weights", "cluster"):
            parts[name] = None if parts[name] is None else parts[name][keep]
    return parts | {"columns": tuple(c.with_missing_level() for c in columns)}
