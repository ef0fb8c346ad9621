"""Which rows of a frame count: missing-value codes, a condition, and rows that lack something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import BoolArray, InputError, IntArray, Setting, Subject, counted
from itrust.data.encoding import as_arrow, code_of, columns_of, decoded, is_frame, kind_of
from itrust.data.predicates import Predicate

MAX_NAMED = 6  # columns that a note names


def read_na_values(given: object) -> tuple[Any, ...]:
    """Codes that stand for missing values: numbers and texts."""
    if given is None:
        return ()
    values = given if isinstance(given, list | tuple | set | frozenset) else [given]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | int | float | np.number):
            problem = (
                "{argument} must be numbers or texts that stand for missing values, not {value}"
            )
            raise InputError(problem, argument="na_values", value=value)
    return tuple(values)


def refuse_few_inside(inside: int, n: int, where: Predicate, argument: str) -> None:
    """Raise if hardly any of n rows meets a condition."""
    if inside < 2:
        rows = f"{counted(inside, 'row')} of {n:,} {'satisfies' if inside == 1 else 'satisfy'}"
        problem = "{argument}: {rows} {value}; a sample needs at least 2"
        raise InputError(problem, argument=argument, value=where.formula, count=inside, rows=rows)


@dataclass(frozen=True, eq=False)
class SelectionCounts:
    """What became of some rows."""

    n: int = 0
    inside: int = 0
    kept: int = 0
    lacking: Mapping[str, int] = field(default_factory=dict)
    blanked: Mapping[str, int] = field(default_factory=dict)

    @property
    def left_out(self) -> int:
        """Rows that lack something."""
        return self.inside - self.kept

    @property
    def lack(self) -> str:
        """By column, how many rows lack a value, the most first.

        >>> SelectionCounts(lacking={"age": 2, "p": 260}).lack
        "260 lack 'p', 2 lack 'age'"
        """
        most = Counter({name: count for name, count in self.lacking.items() if count}).most_common()
        said = [f"{count:,} lack{'s' * (count == 1)} {name!r}" for name, count in most[:MAX_NAMED]]
        if len(most) > MAX_NAMED:
            said.append(f"others lack one of {len(most) - MAX_NAMED:,} more columns")
        return ", ".join(said)

    def refuse_few(self) -> None:
        """Raise if hardly any row is left of those that lack something."""
        if self.kept < 2 and self.left_out:
            raise InputError(
                f"{{setting}} would leave {counted(self.kept, 'row')} of {self.inside:,}: {{lack}}",
                argument="missing",
                value="drop",
                count=self.kept,
                setting=Setting("missing", "drop"),
                lack=self.lack,
            )

    def plus(self, other: SelectionCounts) -> SelectionCounts:
        """Add what became of other rows."""
        return SelectionCounts(
            self.n + other.n,
            self.inside + other.inside,
            self.kept + other.kept,
            Counter(self.lacking) + Counter(other.lacking),
            Counter(self.blanked) + Counter(other.blanked),
        )


def selection_notes(counts: SelectionCounts, where: Predicate | None = None) -> list[str]:
    """What was done with rows."""
    codes = ", ".join(f"{count:,} of {name!r}" for name, count in counts.blanked.items())
    notes = [f"missing-value codes: {codes}"] if codes else []
    if counts.inside < counts.n:
        notes.append(f"{counts.inside:,} of {counts.n:,} rows count: those where {where}")
    if counts.left_out:
        left_out = f"{counted(counts.left_out, 'row')} of {counts.inside:,}"
        notes.append(f"left out {left_out} with missing values: {counts.lack}")
    return notes


@dataclass(frozen=True, eq=False)
class Selected:
    """What comes in, of the rows that count; `rows` are their numbers, None for all."""

    columns: dict[str, Any]
    rows: IntArray | None = None
    counts: SelectionCounts = field(default_factory=SelectionCounts)

    @contextmanager
    def numbered(self) -> Iterator[None]:
        """Give an error about one of these rows its number in the frame."""
        try:
            yield
        except InputError as error:
            rows = self.rows
            if rows is None:
                raise
            raise error.renumbered(lambda row: int(rows[row])) from None


def taken(values: Any, rows: IntArray) -> Any:
    """Some rows of Arrow columns and matrices, by name."""
    if isinstance(values, dict):
        return {name: taken(value, rows) for name, value in values.items()}
    return values[rows] if isinstance(values, np.ndarray) else values.take(pa.array(rows))


def other_rows(columns: Mapping[str, object], rows: IntArray) -> dict[str, Any]:
    """The same rows of columns that nobody asked for; they may be anything, also nothing."""
    others = {}
    for name, column in columns.items():
        with suppress(InputError, pa.ArrowException, TypeError):
            others[name] = taken(as_arrow(column, Subject("x", name)), rows)
    return others


def blanked_cells(
    arrays: Mapping[str, pa.Array], codes: Sequence[Any]
) -> tuple[dict[str, pa.Array], dict[str, int]]:
    """Columns without missing-value codes, and how many cells of each had one."""
    blanked, counts = {}, {}
    for name, array in arrays.items():
        marked = is_code(array, codes)
        if marked is not None and marked.any():
            counts[name] = int(marked.sum())
            if pa.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            array = pc.if_else(pa.array(marked), pa.scalar(None, array.type), array)
        blanked[name] = array
    return blanked, counts


def without_codes(frame: pa.Table, codes: Sequence[Any]) -> pa.Table:
    """A table whose cells that hold a missing-value code are empty."""
    if not codes:
        return frame
    arrays = {name: frame[name].combine_chunks() for name in frame.column_names}
    return pa.table(blanked_cells(arrays, codes)[0])


def is_code(array: pa.Array, codes: Sequence[Any]) -> BoolArray | None:
    """Mark the cells that hold one of some codes, (n,); None where the type can hold none.

    >>> import pyarrow as pa
    >>> is_code(pa.array([1.5, -99.0, None]), ["-99", "NA"]).tolist()
    [False, True, False]
    """
    array = decoded(array)
    if kind_of(array.type) == "number":
        numbers = [code for code in map(code_of, codes) if not isinstance(code, str)]
        values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        return np.isin(values, numbers)
    if kind_of(array.type) == "text":
        texts = pa.array([str(code) for code in codes], array.type)
        trimmed = pc.utf8_trim_whitespace(array)
        return np.asarray(pc.is_in(trimmed, value_set=texts), dtype=bool)
    return None


def missing_in(values: Any) -> BoolArray:
    """Mark the rows of a column or matrix without a value, (n,); NaN is none."""
    if isinstance(values, np.ndarray):
        return np.asarray(np.isnan(values.astype(float)).any(axis=1))
    is_float = pa.types.is_floating(values.type)
    missing = pc.is_null(values, nan_is_null=True) if is_float else pc.is_null(values)
    return np.asarray(missing.to_numpy(zero_copy_only=False), dtype=bool)


def lacking_in(given: Mapping[str, Any]) -> dict[str, BoolArray]:
    """By column, the rows without a value."""
    return {
        name: missing_in(column)
        for argument, value in given.items()
        for name, column in (value if isinstance(value, dict) else {argument: value}).items()
    }


def as_arrays(given: Mapping[str, object]) -> dict[str, Any]:
    """What comes in beside covariates: an Arrow column, several by name, or a matrix."""
    return {name: _arrays(value, name) for name, value in given.items() if value is not None}


def _arrays(value: object, argument: str) -> Any:
    several = is_frame(value)
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[1] > 1:
        if np.issubdtype(value.dtype, np.number):
            return value
        several = True
    if several:
        named = columns_of(value, Subject(argument))
        return {name: as_arrow(column, Subject(argument, name)) for name, column in named.items()}
    return as_arrow(value, Subject(argument))
