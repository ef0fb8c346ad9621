"""Which rows of a frame count: missing-value codes, a condition, and rows that lack something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import (
    BoolArray,
    InputError,
    IntArray,
    Setting,
    Subject,
    counted,
    did_you_mean,
)
from itrust.data.encoding import as_arrow, columns_of, encode, is_frame
from itrust.data.grammar import as_condition
from itrust.data.kinds import PLAIN, Kinds
from itrust.data.points import Points
from itrust.data.predicates import PREDICTION, Predicate, in_backticks

NA_VALUES, WHERE = "na_values", "where"
MAX_NAMED = 6  # columns that a note names


def read_na_values(given: object) -> tuple[Any, ...]:
    """Codes that stand for missing values: numbers and texts."""
    if given is None:
        return ()
    values = given if isinstance(given, list | tuple | set | frozenset) else [given]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | int | float | np.number):
            raise InputError(
                "{argument} must be numbers or texts that stand for missing values, not {value}",
                argument=NA_VALUES,
                value=value,
            )
    return tuple(values)


@dataclass(frozen=True, eq=False)
class RowSelection:
    """What is to be done with the rows of a frame before anything reads them."""

    na_values: tuple[Any, ...] = ()
    where: Predicate | None = None
    drop: bool = False
    kinds: Kinds = PLAIN

    @classmethod
    def of(
        cls, na_values: object, where: object, missing: str, kinds: Kinds = PLAIN
    ) -> RowSelection:
        """Read what a user asked for."""
        asked = None if where is None else as_condition(where)
        return cls(read_na_values(na_values), asked, missing == "drop", kinds)

    @property
    def is_all(self) -> bool:
        """Whether every row counts as it is."""
        return not (self.na_values or self.where is not None or self.drop)

    def named(self, known: Sequence[str], prob: str) -> list[str]:
        """The columns that the condition reads; refuses one that is not there."""
        found = []
        for name in sorted(self.where.names) if self.where is not None else ():
            if name not in known and name == PREDICTION and prob:
                name = prob
            if name not in known:
                raise InputError(
                    "{argument}: there is no column {value}; {guess}",
                    argument=WHERE,
                    value=name,
                    details={"guess": did_you_mean(name, known) + in_backticks(name, list(known))},
                )
            found.append(name)
        return found

    def of_batch(self, columns: Mapping[str, object], roles: Sequence[str], prob: str) -> Selected:
        """The rows that count of some rows of a file, which may be none."""
        arrays = {name: as_arrow(column, Subject("x", name)) for name, column in columns.items()}
        arrays, blanked = _blanked(arrays, self.na_values) if self.na_values else (arrays, {})
        n = len(next(iter(arrays.values())))
        keep = np.ones(n, dtype=bool)
        if self.where is not None:
            read = self.named(list(columns), prob)
            keep = self._inside({name: arrays[name] for name in read}, prob, check=False)
        inside = keep.copy()
        lacking: dict[str, int] = {}
        for name in roles if self.drop else ():
            lacks = missing_in(arrays[name])
            lacking[name] = int((lacks & inside).sum())
            keep &= ~lacks
        rows = np.flatnonzero(keep)
        counts = SelectionCounts(n, int(inside.sum()), int(rows.size), lacking, blanked)
        return Selected(_taken(arrays, rows), rows, counts=counts)

    def applied(
        self, columns: Mapping[str, object], roles: Mapping[str, Subject], prob: str
    ) -> Selected:
        """The rows that count."""
        if self.is_all:
            return Selected(dict(columns), None)
        read = self.named(list(columns), prob)
        subjects = {**{name: Subject("x", name) for name in read}, **roles}
        arrays = {name: as_arrow(columns[name], what) for name, what in subjects.items()}
        notes: list[str] = []
        if self.na_values:
            arrays, blanked = _blanked(arrays, self.na_values)
            notes += _codes_note(blanked)
        rows: IntArray | None = None
        if self.where is not None:
            inside = self._inside({name: arrays[name] for name in read}, prob)
            rows = np.flatnonzero(inside)
            if rows.size < 2:
                raise InputError(
                    "{argument}: {found} of {n} {verb} {value}; a sample needs at least 2",
                    argument=WHERE,
                    value=self.where.formula,
                    details={
                        "found": counted(int(rows.size), "row"),
                        "n": int(inside.size),
                        "verb": "satisfies" if rows.size == 1 else "satisfy",
                    },
                )
            notes += self._where_note(int(rows.size), int(inside.size))
            arrays = _taken(arrays, rows)
        if self.drop:
            kept = kept_rows({name: missing_in(arrays[name]) for name in roles})
            if kept is not None:
                notes.append(kept.note)
                arrays = _taken(arrays, kept.rows)
                rows = kept.rows if rows is None else rows[kept.rows]
        others = {name: column for name, column in columns.items() if name not in arrays}
        return Selected({**_other_rows(others, rows), **arrays}, rows, tuple(notes))

    def notes(self, counts: SelectionCounts) -> list[str]:
        """What was done with rows that came batch by batch."""
        said = _codes_note(counts.blanked)
        if self.where is not None:
            said += self._where_note(counts.inside, counts.n)
        lacking = {name: count for name, count in counts.lacking.items() if count}
        return [*said, *([left_out_note(counts.kept, counts.inside, lacking)] if lacking else [])]

    def _where_note(self, inside: int, n: int) -> list[str]:
        return [f"{inside:,} of {n:,} rows count: those where {self.where}"] if inside < n else []

    def _inside(
        self, arrays: Mapping[str, pa.Array], prob: str, *, check: bool = True
    ) -> BoolArray:
        assert self.where is not None
        columns = tuple(
            encode(name, array, partial=True, kinds=self.kinds) for name, array in arrays.items()
        )
        by_name = {column.name: column for column in columns}
        n = len(columns[0]) if columns else 0
        p = by_name[prob].values if prob in by_name else np.zeros(n)
        points = Points(np.asarray(p, dtype=float), columns)
        for leaf in self.where.leaves() if check else ():
            if not leaf.names <= {PREDICTION} - by_name.keys():
                leaf.check(points)
        return self.where.rows(points)


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

    def plus(self, other: SelectionCounts) -> SelectionCounts:
        """Add what became of other rows."""
        return SelectionCounts(
            self.n + other.n,
            self.inside + other.inside,
            self.kept + other.kept,
            _summed(self.lacking, other.lacking),
            _summed(self.blanked, other.blanked),
        )


def _summed(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    names = dict.fromkeys([*one, *other])
    return {name: one.get(name, 0) + other.get(name, 0) for name in names}


def _codes_note(blanked: Mapping[str, int]) -> list[str]:
    told = [f"{count:,} of {name!r}" for name, count in blanked.items()]
    return [f"missing-value codes: {', '.join(told)}"] if told else []


@dataclass(frozen=True, eq=False)
class Selected:
    """Rows of a frame that count."""

    columns: dict[str, Any]
    rows: IntArray | None
    notes: tuple[str, ...] = ()
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


def _taken(arrays: Mapping[str, pa.Array], rows: IntArray) -> dict[str, pa.Array]:
    index = pa.array(rows)
    return {name: array.take(index) for name, array in arrays.items()}


def _other_rows(columns: Mapping[str, object], rows: IntArray | None) -> dict[str, Any]:
    """The same rows of columns that nobody asked for; they may be anything, also nothing."""
    if rows is None:
        return dict(columns)
    found = {}
    for name, column in columns.items():
        try:
            found[name] = as_arrow(column, Subject("x", name)).take(pa.array(rows))
        except (InputError, pa.ArrowException, TypeError):
            continue
    return found


def _blanked(
    arrays: Mapping[str, pa.Array], codes: Sequence[Any]
) -> tuple[dict[str, pa.Array], dict[str, int]]:
    """Columns without missing-value codes, and how many cells of each had one."""
    counts = {}
    found = {}
    for name, array in arrays.items():
        marked = is_code(array, codes)
        if marked is not None and marked.any():
            counts[name] = int(marked.sum())
            if pa.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            array = pc.if_else(pa.array(marked), pa.scalar(None, array.type), array)
        found[name] = array
    return found, counts


def without_codes(frame: pa.Table, codes: Sequence[Any]) -> pa.Table:
    """A table whose cells that hold a missing-value code are empty."""
    if not codes:
        return frame
    arrays = {name: frame[name].combine_chunks() for name in frame.column_names}
    return pa.table(_blanked(arrays, codes)[0])


def is_code(array: pa.Array, codes: Sequence[Any]) -> BoolArray | None:
    """Mark the cells that hold one of some codes, (n,); None where the type can hold none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_code(pa.array([1.5, -99.0, None]), ["-99", "NA"]).tolist()
    [False, True, False]
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = [number for number in map(_number, codes) if number is not None]
        values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        return np.isin(values, numbers)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        texts = pa.array([str(code) for code in codes], kind)
        trimmed = pc.utf8_trim_whitespace(array)
        found = pc.is_in(trimmed, value_set=texts).to_numpy(zero_copy_only=False)
        return np.asarray(found, dtype=bool)
    return None


def _number(code: Any) -> float | None:
    try:
        return float(code)
    except ValueError:
        return None


@dataclass(frozen=True, eq=False)
class Kept:
    """The rows that lack nothing."""

    rows: IntArray
    lacking: Mapping[str, int]
    n: int

    @property
    def note(self) -> str:
        """How many rows were left out, and what they lack."""
        return left_out_note(self.rows.size, self.n, self.lacking)

    @contextmanager
    def numbered(self) -> Iterator[None]:
        """Give an error about one of these rows its number among all."""
        try:
            yield
        except InputError as error:
            raise error.renumbered(lambda row: int(self.rows[row])) from None


def left_out_note(kept: int, n: int, lacking: Mapping[str, int]) -> str:
    """How many of n rows were left out, and what they lack.

    >>> left_out_note(7, 9, {"age": 2})
    "left out 2 rows of 9 with missing values: 2 lack 'age'"
    """
    said = f"left out {counted(n - kept, 'row')} of {n:,} with missing values"
    return f"{said}: {lack_in_words(lacking)}"


def lack_in_words(lacking: Mapping[str, int]) -> str:
    """By column, how many rows lack a value, the most first.

    >>> lack_in_words({"age": 2, "p": 260})
    "260 lack 'p', 2 lack 'age'"
    """
    most = sorted(lacking.items(), key=lambda item: -item[1])
    told = [
        f"{count:,} lack{'s' if count == 1 else ''} {name!r}" for name, count in most[:MAX_NAMED]
    ]
    if len(most) > MAX_NAMED:
        told.append(f"others lack one of {len(most) - MAX_NAMED:,} more columns")
    return ", ".join(told)


def kept_rows(masks: Mapping[str, BoolArray]) -> Kept | None:
    """The rows that lack nothing; None where no row lacks anything."""
    lacking = {name: int(mask.sum()) for name, mask in masks.items() if mask.any()}
    if not lacking:
        return None
    keep = ~np.any(list(masks.values()), axis=0)
    rows = np.flatnonzero(keep)
    if rows.size < 2:
        raise InputError(
            f"{{setting}} would leave {counted(rows.size, 'row')} of {keep.size:,}: {{lack}}",
            argument="missing",
            value="drop",
            count=int(rows.size),
            details={"setting": Setting("missing", "drop"), "lack": lack_in_words(lacking)},
        )
    return Kept(rows, lacking, keep.size)


def missing_in(array: pa.Array) -> BoolArray:
    """Mark the rows of a column without a value, (n,); NaN is none."""
    is_float = pa.types.is_floating(array.type)
    found = pc.is_null(array, nan_is_null=True) if is_float else pc.is_null(array)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


class Lacking:
    """What comes in beside covariates, as Arrow columns: what lacks where, and some rows of it."""

    def __init__(self, columns: Mapping[str, object]) -> None:
        self.columns: dict[str, Any] = {
            name: _arrays(value, name) for name, value in columns.items() if value is not None
        }

    @property
    def masks(self) -> dict[str, BoolArray]:
        """By column, the rows without a value."""
        found: dict[str, BoolArray] = {}
        for name, value in self.columns.items():
            if isinstance(value, np.ndarray):
                found[name] = np.isnan(value.astype(float)).any(axis=1)
            elif isinstance(value, dict):
                found |= {column: missing_in(array) for column, array in value.items()}
            else:
                found[name] = missing_in(value)
        return found

    def take(self, rows: IntArray) -> dict[str, Any]:
        """Some rows of everything."""
        index = pa.array(rows)
        return {
            name: value[rows]
            if isinstance(value, np.ndarray)
            else {column: array.take(index) for column, array in value.items()}
            if isinstance(value, dict)
            else value.take(index)
            for name, value in self.columns.items()
        }


def _arrays(value: object, argument: str) -> Any:
    """One Arrow column, several by name, or a matrix of numbers as it is."""
    several = is_frame(value)
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[1] > 1:
        if np.issubdtype(value.dtype, np.number):
            return value
        several = True
    if several:
        named = columns_of(value, Subject(argument))
        return {name: as_arrow(column, Subject(argument, name)) for name, column in named.items()}
    return as_arrow(value, Subject(argument))
