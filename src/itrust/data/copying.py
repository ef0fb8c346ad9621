"""Rows of files written to another file with one more column, some at a time and in order.

All other columns stay as they are: text files as text, the others with their types and zones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from itrust._core import Advance, FloatArray, InputError
from itrust.data.file_set import FileSet
from itrust.data.formats import AS_SEEN, Delimited, TextForm, format_of, known_format
from itrust.data.formats.base import Format
from itrust.data.formula_cells import FormulaCells
from itrust.data.readers import reading
from itrust.data.selection import without_codes

CHUNK_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class FileCopy:
    """A copy of files with more columns, ready to be written."""

    source: FileSet
    read: tuple[str, ...]
    na_values: tuple[Any, ...]
    columns: tuple[str, ...]
    written: TextForm
    kept: pa.Table
    typed: pa.Table
    gets_types: bool
    cells: FormulaCells | None = None

    def write(self, path: Path, make: Callable[[pa.Table], FloatArray], advance: Advance) -> None:
        """Read, compute and write some rows, then the next; memory does not grow with the rows."""
        kind = known_format(path, self.written)
        schema = self._schema()
        try:
            with kind.writer(path, schema) as put:
                for first, whole, frame in self._chunks():
                    made = _numbered(make, frame, first)
                    rows = self._as_kept(whole, frame)
                    new = made.reshape(len(made), len(self.columns)).T
                    for name, values in zip(self.columns, new, strict=True):
                        rows = rows.append_column(name, pa.array(values))
                    if self.cells is not None:
                        rows = self.cells.rows(rows).rename_columns(schema.names)
                    put(rows)
                    advance(whole.num_rows)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{{argument}}: a {path.suffix} file cannot hold these columns ({{reason}}); take "
                f".parquet",
                argument="out",
                details={"reason": str(error)},
            ) from None

    def _schema(self) -> pa.Schema:
        """The columns of the copy, as they are written."""
        schema = self.kept.schema
        for name in self.columns:
            schema = schema.append(pa.field(name, pa.float64()))
        if self.cells is None:
            return schema
        names = self.cells.names(schema.names)
        kinds = self.cells.kinds(schema.types)
        return pa.schema(list(zip(names, kinds, strict=True)))

    def _chunks(self) -> Iterator[tuple[int, pa.Table, pa.Table]]:
        """The number of the first row, all columns as they stand, and those that are read."""
        first = 0
        whole = _in_chunks(self.source.untouched(self.kept.column_names))
        for frame in _in_chunks(self._frames()):
            rows = next(whole, None)
            if rows is None or rows.num_rows != frame.num_rows:
                raise _changed(self.source)
            yield first, rows, frame
            first += frame.num_rows
        if next(whole, None) is not None:
            raise _changed(self.source)
        if not first:
            raise self.source.without_rows()
        self.source.snapshot.refuse_changes()

    def _frames(self) -> Iterator[pa.Table]:
        for batch in self.source.rows(self.read):
            rows = _promoted(self.typed, pa.Table.from_batches([batch]))
            yield without_codes(rows, self.na_values)

    def _as_kept(self, whole: pa.Table, frame: pa.Table) -> pa.Table:
        if self.gets_types:
            for at, field in enumerate(self.kept.schema):
                if field.name in self.read:
                    whole = whole.set_column(at, field.name, frame[field.name])
                elif pa.types.is_int64(field.type):
                    whole = whole.set_column(at, field.name, whole[field.name].cast(pa.int64()))
        return _promoted(self.kept, whole)


def prepare_copy(
    source: FileSet,
    out: Path,
    column: str | Sequence[str],
    read: Sequence[str],
    advance: Advance,
    na_values: Sequence[Any] = (),
    safe_cells: bool = False,
) -> FileCopy:
    """Find out what the columns of a copy will hold."""
    names = (column,) if isinstance(column, str) else tuple(column)
    there = [name for name in names if name in source.names]
    if there:
        raise InputError(
            "{argument}: {file} has a column {value} already",
            argument="column",
            value=there[0],
            file=source.files[0].name,
        )
    source.refuse_other_kinds(read)
    has_cells = isinstance(format_of(out), Delimited)
    if safe_cells and not has_cells:
        raise InputError(
            "{argument} is for .csv and .tsv files, not for {value}: no other file has cells that "
            "are taken for formulas; leave it out",
            argument="safe_cells",
            value=out.name,
        )
    given, target = known_format(source.files[0], source.form), known_format(out)
    kept, typed = source.untouched_types(source.names), source.rows_types(read)
    gets_types = target.has_types and not given.has_types
    if gets_types:
        kept = _with_types(kept, typed, source, advance)
    elif unsettled := _unsettled(kept, given, target):
        kept = _settled(kept, unsettled, source, advance)
    written = _form_like(source, out)
    cells = FormulaCells(safe_cells) if has_cells else None
    return FileCopy(
        source, tuple(read), tuple(na_values), names, written, kept, typed, gets_types, cells
    )


def _numbered(make: Callable[[pa.Table], FloatArray], frame: pa.Table, first: int) -> FloatArray:
    """The new column; an error about one of its rows gets the row's number among all."""
    try:
        return make(frame)
    except InputError as error:
        raise error.renumbered(lambda row: row + first) from None


def _in_chunks(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, always as many at a time: results do not depend on how a file is cut."""
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        while rows + table.num_rows >= CHUNK_ROWS:
            missing = CHUNK_ROWS - rows
            yield _joined([*held, table.slice(0, missing)])
            table, held, rows = table.slice(missing), [], 0
        if table.num_rows:
            held.append(table)
            rows += table.num_rows
    if held:
        yield _joined(held)


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")


def _promoted(like: pa.Table, rows: pa.Table) -> pa.Table:
    """Rows with the types and dictionaries of a table that has none."""
    return _joined([like, rows]).unify_dictionaries()


def _unsettled(kept: pa.Table, source: Format, target: Format) -> list[str]:
    """Columns of which only the rows tell what they hold."""
    if not source.types_last:
        return list(kept.column_names)
    fields = [field for field in kept.schema if pa.types.is_dictionary(field.type)]
    return [field.name for field in fields] if target.one_dictionary else []


def _settled(kept: pa.Table, names: list[str], source: FileSet, advance: Advance) -> pa.Table:
    """The columns with types and dictionaries that hold the rows of all files."""
    found = kept.select(names)
    for rows in source.untouched(names):
        found = _promoted(found, rows).slice(0, 0)
        advance(rows.num_rows)
    for at, name in enumerate(kept.column_names):
        if name in names:
            kept = kept.set_column(at, found.schema.field(name), found[name])
    return kept


def _with_types(kept: pa.Table, typed: pa.Table, source: FileSet, advance: Advance) -> pa.Table:
    """Text for a file that has types: columns that are read, and whole numbers; the rest stays."""
    others = [name for name in kept.column_names if name not in typed.column_names]
    whole = set(others)
    for rows in source.untouched(others) if others else ():
        whole -= {name for name in whole if not _is_whole(rows[name])}
        advance(rows.num_rows)
        if not whole:
            break
    types = {**dict.fromkeys(whole, pa.int64()), **{f.name: f.type for f in typed.schema}}
    return pa.schema([(f.name, types.get(f.name, f.type)) for f in kept.schema]).empty_table()


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Whether text is whole numbers and nothing else: 001 is a name, not a number."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return bool(numbers.cast(pa.string()).equals(column))


def _form_like(source: FileSet, out: Path) -> TextForm:
    """The form of a text file that is to be like others; as usual where the ending differs."""
    first = source.files[0]
    kind = known_format(first, source.form)
    if not isinstance(kind, Delimited) or format_of(out) != format_of(first):
        return AS_SEEN
    with reading(first):
        return kind.form_of(first)


def _changed(source: FileSet) -> InputError:
    """The error about files whose columns have different numbers of rows."""
    source.snapshot.refuse_changes()
    return InputError("{file} cannot be read twice alike; is it whole?", file=source.files[0].name)
