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
    Subject,
    counted,
    did_you_mean,
)
from itrust.data.dropping import kept_rows, left_out_note, missing_in
from itrust.data.encoding import as_arrow, encode
from itrust.data.grammar import as_condition
from itrust.data.kinds import PLAIN, Kinds
from itrust.data.predicates import PREDICTION, Predicate, in_backticks
from itrust.data.rows import Points

NA_VALUES, WHERE = "na_values", "where"


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

    def of_batch(
        self, columns: Mapping[str, object], roles: Mapping[str, Subject], prob: str
    ) -> Selected:
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
        dropped = counts.inside - counts.kept
        return Selected(_taken(arrays, rows), rows, dropped=dropped, counts=counts)

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
    dropped: int = 0
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
