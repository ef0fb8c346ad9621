"""Rows of files written to another file with more columns, some at a time and in order.

All other columns stay as they are: text files as text, the others with their types and zones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from pathlib import Path
from typing import Any

import pyarrow as pa

from itrust._core import Advance, FloatArray, InputError
from itrust.data.file_set import FileSet
from itrust.data.formats import (
    AS_SEEN,
    Delimited,
    TextForm,
    format_of,
    known_format,
    reading,
    refused,
)
from itrust.data.selection import without_codes

CHUNK_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class FileCopy:
    """A copy of files with more columns, ready to be written.

    `stored` and `typed` have no rows, and the types of the columns as they are written and read.
    """

    source: FileSet
    read: tuple[str, ...]
    na_values: tuple[Any, ...]
    columns: tuple[str, ...]
    written: TextForm
    stored: pa.Table
    typed: pa.Table
    gets_types: bool

    def write(self, path: Path, make: Callable[[pa.Table], FloatArray], advance: Advance) -> None:
        """Read, compute and write some rows, then the next; memory does not grow with the rows."""
        schema = self.stored.schema
        for name in self.columns:
            schema = schema.append(pa.field(name, pa.float64()))
        try:
            with known_format(path, self.written).writer(path, schema) as put:
                for first, whole, frame in self._chunks():
                    try:
                        made = make(frame)
                    except InputError as error:
                        raise error.renumbered(partial(add, first)) from None
                    rows = self._as_stored(whole, frame)
                    new = made.reshape(len(made), len(self.columns)).T
                    for name, values in zip(self.columns, new, strict=True):
                        rows = rows.append_column(name, pa.array(values))
                    put(rows)
                    advance(whole.num_rows)
        except pa.ArrowInvalid as error:
            problem = f"a {path.suffix} file cannot hold these columns ({{reason}})"
            sentence = f"{{argument}}: {problem}; take .parquet"
            raise InputError(sentence, argument="out", reason=str(error)) from None

    def _chunks(self) -> Iterator[tuple[int, pa.Table, pa.Table]]:
        """The number of the first row, all columns as they stand, and those that are read."""
        first = 0
        whole = _in_chunks(self.source.untouched(self.stored.column_names))
        batches = (pa.Table.from_batches([batch]) for batch in self.source.rows(self.read))
        frames = (without_codes(_promoted(self.typed, rows), self.na_values) for rows in batches)
        for frame in _in_chunks(frames):
            rows = next(whole, None)
            if rows is None or rows.num_rows != frame.num_rows:
                raise self._changed()
            yield first, rows, frame
            first += frame.num_rows
        if next(whole, None) is not None:
            raise self._changed()
        if not first:
            raise self.source.without_rows()
        self.source.refuse_changes()

    def _changed(self) -> InputError:
        """The error about files whose columns have different numbers of rows."""
        self.source.refuse_changes()
        return refused(self.source.files[0], "{file} cannot be read twice alike; is it whole?")

    def _as_stored(self, whole: pa.Table, frame: pa.Table) -> pa.Table:
        if self.gets_types:
            for at, field in enumerate(self.stored.schema):
                if field.name in self.read:
                    whole = whole.set_column(at, field.name, frame[field.name])
                elif pa.types.is_int64(field.type):
                    whole = whole.set_column(at, field.name, whole[field.name].cast(pa.int64()))
        return _promoted(self.stored, whole)


def prepare_copy(
    source: FileSet,
    out: Path,
    column: str | Sequence[str],
    read: Sequence[str],
    advance: Advance,
    na_values: Sequence[Any] = (),
) -> FileCopy:
    """Find out what the columns of a copy will hold."""
    names = (column,) if isinstance(column, str) else tuple(column)
    present = [name for name in names if name in source.names]
    if present:
        sentence = "{argument}: {file} has a column {value} already"
        raise refused(source.files[0], sentence, argument="column", value=present[0])
    source.refuse_other_kinds(read)
    first = source.files[0]
    given, target = known_format(first, source.form), known_format(out)
    stored, typed = source.untouched_types(source.names), source.rows_types(read)
    gets_types = target.has_types and not given.has_types
    if gets_types:
        stored = _with_types(stored, typed, source, advance)
    elif not given.types_last:  # only the rows tell what columns hold
        stored = _settled(stored, stored.column_names, source, advance)
    elif target.one_dictionary:
        fields = [field for field in stored.schema if pa.types.is_dictionary(field.type)]
        stored = _settled(stored, [field.name for field in fields], source, advance)
    form = AS_SEEN
    if isinstance(given, Delimited) and format_of(out) == format_of(first):
        with reading(first):
            form = given.form_of(first)
    return FileCopy(source, tuple(read), tuple(na_values), names, form, stored, typed, gets_types)


def _in_chunks(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, always as many at a time: results do not depend on how a file is cut."""
    pieces: list[pa.Table] = []
    rows = 0
    for table in tables:
        while rows + table.num_rows >= CHUNK_ROWS:
            missing = CHUNK_ROWS - rows
            yield _joined([*pieces, table.slice(0, missing)])
            table, pieces, rows = table.slice(missing), [], 0
        if table.num_rows:
            pieces.append(table)
            rows += table.num_rows
    if pieces:
        yield _joined(pieces)


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")


def _promoted(like: pa.Table, rows: pa.Table) -> pa.Table:
    """Rows with the types and dictionaries of a table that has none."""
    return _joined([like, rows]).unify_dictionaries()


def _settled(stored: pa.Table, names: list[str], source: FileSet, advance: Advance) -> pa.Table:
    """The columns with types and dictionaries that hold the rows of all files."""
    columns = stored.select(names)
    for rows in source.untouched(names) if names else ():
        columns = _promoted(columns, rows).slice(0, 0)
        advance(rows.num_rows)
    for name in names:
        at = stored.column_names.index(name)
        stored = stored.set_column(at, columns.schema.field(name), columns[name])
    return stored


def _with_types(stored: pa.Table, typed: pa.Table, source: FileSet, advance: Advance) -> pa.Table:
    """Text for a file that has types: columns that are read, and whole numbers; the rest stays."""
    others = [name for name in stored.column_names if name not in typed.column_names]
    whole = set(others)
    for rows in source.untouched(others) if others else ():
        whole -= {name for name in whole if not _is_whole(rows[name])}
        advance(rows.num_rows)
        if not whole:
            break
    types = {**dict.fromkeys(whole, pa.int64()), **{f.name: f.type for f in typed.schema}}
    return pa.schema([(f.name, types.get(f.name, f.type)) for f in stored.schema]).empty_table()


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Whether text is whole numbers and nothing else: 001 is a name, not a number."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return bool(numbers.cast(pa.string()).equals(column))
