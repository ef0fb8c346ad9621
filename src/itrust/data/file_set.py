"""Files with the same columns, read as if they were one, each the same whenever it is read."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from itrust._core import InputError, IntArray, counted
from itrust.data.encoding import kind_of
from itrust.data.formats import AS_SEEN, FilePart, Room, TextForm, known_format, refuse_lack_of
from itrust.data.kinds import Kinds, all_labelled
from itrust.data.locations import named_locations
from itrust.data.partitions import Partitions
from itrust.data.readers import (
    column_names,
    column_types,
    line_of,
    plain_columns,
    reading,
    sound_batches,
)
from itrust.data.snapshots import Snapshot

PART_ROWS = 2**18
MAX_NOTES = 3  # about files
BYTES_OF_A_ROW = 60  # for a guess at the number of rows
MAX_SPARE_BYTES = 2**27  # of columns that may be left out


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
        numbers, offset = self.numbers, self.offset
        first = replace(self, rows=self.rows.slice(0, rows), dropped=0)
        if numbers is not None:
            first = replace(first, numbers=numbers[:rows])
            return first, replace(self, rows=self.rows.slice(rows), numbers=numbers[rows:])
        return first, replace(self, rows=self.rows.slice(rows), offset=offset + rows)

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
            raise error.within(self.path.name, number) from None


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
        found = [(location, location.files()) for location in named_locations(path)]
        files = tuple(file for _, some in found for file in some)
        locations = [location for location, _ in found]
        return cls(files, form, Partitions.of(found), Snapshot.of(files, locations))

    def only(self, *files: Path) -> FileSet:
        """The same with some of the files."""
        return replace(
            self,
            files=files,
            partitions=self.partitions.only(files),
            snapshot=self.snapshot.only(files),
        )

    @cached_property
    def names(self) -> list[str]:
        """All columns: those of the first file, then those in names of folders."""
        own = self._names_of(self.files[0])
        return [*own, *(key for key in self.partitions.common if key not in own)]

    def batches(
        self, part: FilePart, names: Sequence[str]
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows of some columns of a piece; refuses a file that has changed."""
        offset = part.offset
        with self.snapshot.unchanged(part.path):
            own = self._names_within(part.path, names)
            with closing(sound_batches(part, own, self.form)) as batches:
                for batch in batches:
                    self.snapshot.refuse_writing(part.path)  # nobody may read on to the end
                    if batch.num_rows:
                        yield self.partitions.completed(batch, names, part.path, offset)
                    offset += batch.num_rows

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        """Turn what cannot be read into one sentence; a file that has changed is told as such."""
        try:
            with reading(path):
                yield
        except InputError:
            self.snapshot.refuse_change(path)
            raise

    def _names_of(self, path: Path) -> list[str]:
        with self._reading(path):
            return column_names(path, self.form)

    def _names_within(self, path: Path, names: Sequence[str]) -> list[str]:
        """Those columns that are to be read from a file itself; at least one, to count its rows."""
        if not any(name in self.partitions for name in names):
            return list(names)
        present = self._names_of(path)
        own = [name for name in names if name not in self.partitions or name in present]
        return own or present[:1]

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
            with self._reading(whole.path):
                found = known_format(whole.path, self.form).parts(whole.path, rows)
            yield from found

    def head(self, names: Sequence[str]) -> pa.RecordBatch | None:
        """The first rows of some columns; None if there are none."""
        for path in self.files:
            own = self._names_within(path, names)
            with self._reading(path):
                head = known_format(path, self.form).head(path, own)
            if head is not None:
                return self.partitions.completed(plain_columns(head), names, path, 0)
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
        found = []
        for path in self.files:
            types = self._types(path, names)
            empty = pa.schema([(name, types[name]) for name in names]).empty_table()
            batch = pa.RecordBatch.from_arrays(
                [column.combine_chunks() for column in empty.columns], schema=empty.schema
            )
            found.append(pa.Table.from_batches([plain_columns(batch)]))
        with reading(self.files[0]):
            return pa.concat_tables(found, promote_options="permissive")

    def untouched(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """All rows as they are, in order and some at a time: text files as text."""
        for part in self.whole_files():
            own, kind = self._names_within(part.path, names), known_format(part.path, self.form)
            with self.snapshot.unchanged(part.path), reading(part.path):
                for rows in kind.untouched(part.path, own):
                    yield self._as_they_are(rows, part.path, names)

    def untouched_types(self, names: Sequence[str]) -> pa.Table:
        """No rows, with types that hold what `untouched` gives; of JSON lines, its first rows."""
        found = []
        for path in self.files:
            with reading(path):
                kind, own = known_format(path, self.form), self._names_within(path, names)
                empty = kind.untouched_schema(path, own).empty_table()
            found.append(self._as_they_are(empty, path, names))
        with reading(self.files[0]):
            return pa.concat_tables(found, promote_options="permissive")

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
        found = 0.0
        for path, seen in self.snapshot.fingerprints.items():
            with reading(path):
                told = known_format(path, self.form).about_rows(path)
            found += seen.size / BYTES_OF_A_ROW if told is None else told
        return found

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
            raise error.within(
                name or path.name,
                lambda number: number + shift,
                lambda number: line_of(path, number, self.form),
            ) from None

    def without_rows(self) -> InputError:
        """The error about files that have columns at most."""
        first = self.files[0].name
        if len(self.files) == 1:
            return InputError("{file} holds no rows", file=first)
        told = counted(len(self.files), "file")
        return InputError(f"the {told} hold no rows; the first is {{file}}", file=first)

    @property
    def notes(self) -> list[str]:
        """What a user may not expect of the way files are read; of many files, of the first."""
        said: list[str] = []
        for path in self.files:
            with reading(path):
                said += known_format(path, self.form).notes(path)
            if len(said) > MAX_NOTES:
                return [*said[:MAX_NOTES], "there may be more to say of the files that follow"]
        return said

    def kinds(self, said: Kinds, names: Sequence[str], covariates: Sequence[str]) -> Kinds:
        """What the user says of columns, and what the files themselves say of them.

        A column whose first rows have a value without a meaning is a number with a few special
        values, and stays one. A covariate that a file keeps as a dictionary is a category.
        """
        path = self.files[0]
        with reading(path):
            labels = known_format(path, self.form).value_labels(path)
        known = {*said.numbers, *said.value_labels}
        open_ones = [name for name in dict.fromkeys(names) if name in labels and name not in known]
        head = self.head(open_ones) if open_ones else None
        meant = {
            name: labels[name]
            for name in open_ones
            if head is not None
            and (name in said.categories or all_labelled(head[name], labels[name]))
        }
        known |= {*said.categories, *meant}
        open_ones = [name for name in dict.fromkeys(covariates) if name not in known]
        return replace(
            said,
            categories=(*said.categories, *self._dictionaries(open_ones)),
            value_labels={**said.value_labels, **meant},
        )

    def _dictionaries(self, names: Sequence[str]) -> list[str]:
        """Those columns that some file keeps as a dictionary."""
        files = [path for path in self.files if known_format(path).has_categories]
        types = [self._types(path, names) for path in files] if names else []
        return [name for name in names if any(pa.types.is_dictionary(own[name]) for own in types)]

    def _types(self, path: Path, names: Sequence[str]) -> dict[str, pa.DataType]:
        own = self._names_within(path, names)
        with self._reading(path):
            found = column_types(path, own, self.form)
        for name in names:
            if name not in own:
                found[name] = self.partitions.value_of(name, path).type
        return found

    def refuse_other_kinds(self, names: Sequence[str]) -> None:
        """Raise unless every file has the columns, each of one kind throughout."""
        if self.partitions.types:  # which may have been meant by a name that is not there
            own = [name for name in names if name not in self.partitions]
            refuse_lack_of(own, self.names, self.files[0])
        first: dict[str, tuple[str, Path]] = {}
        for path in self.files:
            for name, found in self._types(path, names).items():
                kind = kind_of(found)
                if kind == "null":  # nothing is known of it, as in a file without rows
                    continue
                known, where = first.setdefault(name, (kind, path))
                if kind != known:
                    raise InputError(
                        f"column {{column}} is {kind}, but {known} in {{other}}; give it one type "
                        "in all files",
                        file=path.name,
                        column=name,
                        details={"other": where.name},
                    )

    def row_of(self, row: int) -> tuple[Path, int]:
        """The file that a row of all files stands in, and its number there, both from 0.

        The rows are counted again: for the sake of an error, which is rare.
        """
        for path in self.files:
            counts = (batch.num_rows for batch in self.batches(FilePart(path), self.names[:1]))
            rows = sum(counts)
            if row < rows:
                return path, row
            row -= rows
        return self.files[-1], row
