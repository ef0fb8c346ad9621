"""Files with the same columns, read as if they were one, each the same whenever it is read."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from itrust._core import InputError, IntArray, counted
from itrust.data.encoding import kind_of
from itrust.data.formats import (
    AS_SEEN,
    FilePart,
    Format,
    Room,
    TextForm,
    known_format,
    reading,
    refuse_lack_of,
    refused,
)
from itrust.data.kinds import Kinds, all_labelled
from itrust.data.locations import Partitions, Snapshot, named_locations

PART_ROWS = 2**18
MAX_NOTES = 3  # about files
BYTES_OF_A_ROW = 60  # for a guess at the number of rows
MAX_SPARE_BYTES = 2**27  # of columns that may be left out


def plain_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries as their values, dates as timestamps: the parts of a column go together."""
    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us"), safe=False)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a file as read; `numbers` says which rows of the batch they are, if not all."""

    path: Path
    offset: int
    rows: pa.RecordBatch
    snapshot: Snapshot
    numbers: IntArray | None = None
    dropped: int = 0

    def split(self, rows: int) -> tuple[Batch, Batch]:
        """The first rows, and the others."""
        numbers = np.arange(self.rows.num_rows) if self.numbers is None else self.numbers
        first = replace(self, rows=self.rows.slice(0, rows), numbers=numbers[:rows], dropped=0)
        return first, replace(self, rows=self.rows.slice(rows), numbers=numbers[rows:])

    @contextmanager
    def located(self, chosen: IntArray | None = None) -> Iterator[None]:
        """Give an error about these rows (or those chosen) the file and their numbers in it."""

        def number(row: int) -> int:
            row = row if chosen is None else int(chosen[row])
            return self.offset + (row if self.numbers is None else int(self.numbers[row]))

        try:
            yield
        except InputError as error:
            self.snapshot.refuse_change(self.path)  # which may be all that is wrong with the rows
            raise error.renumbered(number, file=self.path.name) from None


@dataclass(frozen=True, eq=False)
class FileSet:
    """Files with the same columns; names of folders such as `year=2020` are columns, too."""

    files: tuple[Path, ...]
    form: TextForm
    partitions: Partitions
    snapshot: Snapshot

    @classmethod
    def of(cls, path: Any, form: TextForm = AS_SEEN) -> FileSet:
        """Look at the files that a path, a pattern, a folder or a list of these means."""
        if isinstance(path, FileSet):
            return replace(path, form=form)
        named = [(location, location.files()) for location in named_locations(path)]
        files = tuple(file for _, some in named for file in some)
        snapshot = Snapshot.of(files, [location for location, _ in named])
        return cls(files, form, Partitions.of(named), snapshot)

    def only(self, *files: Path) -> FileSet:
        """The same with some of the files."""
        partitions, snapshot = self.partitions.only(files), self.snapshot.only(files)
        return replace(self, files=files, partitions=partitions, snapshot=snapshot)

    @cached_property
    def names(self) -> list[str]:
        """All columns: those of the first file, then those in names of folders."""
        names = self._names_of(self.files[0])
        return [*names, *(key for key in self.partitions.common if key not in names)]

    def batches(
        self, part: FilePart, names: Sequence[str]
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows of some columns of a piece; refuses a file that has changed."""
        path, offset = part.path, part.offset
        batches: Any = self._kind(path).batches(part, self._names_within(path, names))
        with self.snapshot.unchanged(path), closing(batches):
            for batch in batches:
                self.snapshot.refuse_change(path)  # nobody may read on to the end
                if batch.num_rows:
                    yield self.partitions.completed(batch, names, path, offset)
                offset += batch.num_rows

    def _kind(self, path: Path) -> Format:
        return known_format(path, self.form)

    def _names_of(self, path: Path) -> list[str]:
        with self.snapshot.unchanged(path):
            return list(self._kind(path).schema(path).names)

    def _names_within(self, path: Path, names: Sequence[str]) -> list[str]:
        """Those columns that are to be read from a file itself; at least one, to count its rows."""
        if not any(name in self.partitions for name in names):
            return list(names)
        present = self._names_of(path)
        within = [name for name in names if name not in self.partitions or name in present]
        return within or present[:1]

    @contextmanager
    def same_files(self) -> Iterator[None]:
        """Refuse folders that do not hold the same files, before and after reading."""
        self.snapshot.refuse_other_files()
        yield
        self.snapshot.refuse_other_files()

    def whole_files(self) -> Iterator[FilePart]:
        """The files one by one; refuses folders that do not hold the same files."""
        with self.same_files():
            yield from map(FilePart, self.files)

    def parts(self, rows: int) -> Iterator[FilePart]:
        """The same in pieces of about so many rows that can be read alone."""
        for whole in self.whole_files():
            with self.snapshot.unchanged(whole.path):
                parts = self._kind(whole.path).parts(whole.path, rows)
            yield from parts

    def head(self, names: Sequence[str]) -> pa.RecordBatch | None:
        """The first rows of some columns; None if there are none."""
        for path in self.files:
            with closing(self.batches(FilePart(path), names)) as batches:
                for batch in batches:
                    return plain_columns(batch.select(list(names)))
        return None

    def table(self, names: Sequence[str], spare: Sequence[str] = ()) -> pa.Table:
        """All rows of some columns, and of the spare ones unless these are too large."""
        wanted = [*names, *spare]
        self.refuse_other_kinds(wanted)
        tables: list[pa.Table] = []
        spent, room = 0, Room()
        for part in self.parts(PART_ROWS):
            for batch in self.batches(part, wanted):
                room.take(batch, part.path)
                spent += sum(batch[name].nbytes for name in wanted if name in spare)
                if spent > MAX_SPARE_BYTES:
                    wanted, spare, spent = list(names), (), 0
                    tables = [table.select(wanted) for table in tables]
                tables.append(pa.Table.from_batches([plain_columns(batch.select(wanted))]))
        if not tables:
            raise self.without_rows()
        return pa.concat_tables(tables, promote_options="permissive")

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of some columns in order, some at a time."""
        for part in self.whole_files():
            for batch in self.batches(part, names):
                yield plain_columns(batch.select(list(names)))

    def rows_types(self, names: Sequence[str]) -> pa.Table:
        """No rows, with types that hold what `rows` gives of all files."""
        tables = []
        for path in self.files:
            empty = pa.RecordBatch.from_pylist([], pa.schema(self._types(path, names).items()))
            tables.append(pa.Table.from_batches([plain_columns(empty)]))
        return self._one_type(tables)

    def untouched(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """All rows as they are, in order and some at a time: text files as text."""
        for path in (part.path for part in self.whole_files()):
            with self.snapshot.unchanged(path):
                for rows in self._kind(path).untouched(path, self._names_within(path, names)):
                    yield self._as_they_are(rows, path, names)

    def untouched_types(self, names: Sequence[str]) -> pa.Table:
        """No rows, with types that hold what `untouched` gives; of JSON lines, its first rows."""
        tables = []
        for path in self.files:
            within = self._names_within(path, names)
            with self.snapshot.unchanged(path):
                first = next(self._kind(path).untouched(path, within), None)
                schema = self._kind(path).schema(path, within) if first is None else first.schema
            nothing = pa.schema([(n, pa.null()) for n in within if n not in schema.names])
            empty = pa.unify_schemas([schema, nothing]).empty_table().select(within)
            tables.append(self._as_they_are(empty, path, names))
        return self._one_type(tables)

    def _one_type(self, tables: Iterable[pa.Table]) -> pa.Table:
        with reading(self.files[0]):
            return pa.concat_tables(tables, promote_options="permissive")

    def _as_they_are(self, rows: pa.Table, path: Path, names: Sequence[str]) -> pa.Table:
        """Rows of a file with the columns that stand in names of folders."""
        for name in names:
            if name in self.partitions and name not in rows.column_names:
                value = self.partitions.value_of(name, path)
                value = value if known_format(path).has_types else value.cast(pa.string())
                rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        return rows.select([name for name in names if name in rows.column_names])

    @property
    def about_rows(self) -> float:
        """About how many rows there are, told by the files without reading them."""
        rows = 0.0
        for path, state in self.snapshot.states.items():
            with self.snapshot.unchanged(path):
                count = self._kind(path).about_rows(path)
            rows += state.size / BYTES_OF_A_ROW if count is None else count
        return rows

    @contextmanager
    def located(self, name: str | None = None) -> Iterator[None]:
        """Give an error about a row of all files the file, the row and the line it stands in."""
        try:
            yield
        except InputError as error:
            if error.row is None or error.file is not None:
                raise
            path, row = self.row_of(error.row)
            shift = row - error.row
            raise error.renumbered(
                lambda number: number + shift,
                lambda number: self._kind(path).line_of(path, number),
                name or path.name,
            ) from None

    def row_of(self, row: int) -> tuple[Path, int]:
        """The file that a row of all files stands in, and its number there, both from 0."""
        for path in self.files:
            rows = sum(b.num_rows for b in self.batches(FilePart(path), self.names[:1]))
            if row < rows:
                return path, row
            row -= rows
        return self.files[-1], row

    def without_rows(self) -> InputError:
        """The error about files that have columns at most."""
        if len(self.files) == 1:
            return refused(self.files[0], "{file} holds no rows")
        count = counted(len(self.files), "file")
        return refused(self.files[0], f"the {count} hold no rows; the first is {{file}}")

    @property
    def notes(self) -> list[str]:
        """What a user may not expect of the way files are read; of many files, of the first."""
        notes: list[str] = []
        for path in self.files:
            with self.snapshot.unchanged(path):
                notes += self._kind(path).notes(path)
            if len(notes) > MAX_NOTES:
                return [*notes[:MAX_NOTES], "there may be more to say of the files that follow"]
        return notes

    def kinds(self, said: Kinds, names: Sequence[str], covariates: Sequence[str]) -> Kinds:
        """What the user says of columns, and what the files themselves say of them.

        A column whose first rows have a value without a meaning is a number with a few special
        values, and stays one. A covariate that a file keeps as a dictionary is a category.
        """
        path = self.files[0]
        with self.snapshot.unchanged(path):
            labels = self._kind(path).value_labels(path)
        known = {*said.numbers, *said.value_labels}
        unsaid = [name for name in dict.fromkeys(names) if name in labels and name not in known]
        head = self.head(unsaid) if unsaid else None
        meanings = {
            name: labels[name]
            for name in unsaid
            if head is not None
            and (name in said.categories or all_labelled(head[name], labels[name]))
        }
        known |= {*said.categories, *meanings}
        unsaid = [name for name in dict.fromkeys(covariates) if name not in known]
        files = [path for path in self.files if known_format(path).has_categories and unsaid]
        types = [self._types(path, unsaid) for path in files]
        stored = [name for name in unsaid if any(pa.types.is_dictionary(t[name]) for t in types)]
        return replace(
            said,
            categories=(*said.categories, *stored),
            value_labels={**said.value_labels, **meanings},
        )

    def _types(self, path: Path, names: Sequence[str]) -> dict[str, pa.DataType]:
        within = self._names_within(path, names)
        with self.snapshot.unchanged(path):
            schema = self._kind(path).schema(path, within)
        return {
            name: schema.field(name).type
            if name in within
            else self.partitions.value_of(name, path).type
            for name in names
        }

    def refuse_other_kinds(self, names: Sequence[str]) -> None:
        """Raise unless every file has the columns, each of one kind throughout."""
        if self.partitions.types:  # which may have been meant by a name that is not there
            within = [name for name in names if name not in self.partitions]
            refuse_lack_of(within, self.names, self.files[0])
        first: dict[str, tuple[str, Path]] = {}
        for path in self.files:
            for name, column_type in self._types(path, names).items():
                kind = kind_of(column_type)
                if kind == "null":  # nothing is known of it, as in a file without rows
                    continue
                known, where = first.setdefault(name, (kind, path))
                if kind != known:
                    contrast = f"{kind}, but {known} in {{other}}"
                    sentence = f"column {{column}} is {contrast}; give it one type in all files"
                    raise refused(path, sentence, column=name, other=where.name)
