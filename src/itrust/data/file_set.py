"""Files with the same columns, read as if they were one, each the same whenever it is read.

Names of folders such as `year=2020` are columns, as Hive and Spark write them. A file is known by
its size and the time of its last change.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from itrust._core import Code, InputError, IntArray, counted
from itrust.data.encoding import Kinds, all_labelled, kind_of
from itrust.data.formats import (
    AS_SEEN,
    FORMATS,
    SHARE,
    FilePart,
    Format,
    TextForm,
    ending_of,
    format_of,
    known_format,
    reading,
    refuse_lack_of,
    refused,
    room_for,
    room_left,
    split_table,
)

PART_ROWS = 2**18
MAX_NOTES = 3  # about files
BYTES_OF_A_ROW = 60  # for a guess at the number of rows
MAX_SPARE_BYTES = 2**27  # of columns that may be left out
HIDDEN = (".", "_", "~$")
NOTHING = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"-?[0-9]{1,18}")
RESIZED = "{file} {verb} from {before} to {now} bytes since it was first looked at"
TOUCHED = "{file} was written or touched since it was first looked at (its time of change differs)"
VANISHED = "{file} has vanished since it was first looked at"
CURE = Code(
    "scan it again when nobody writes to it, or copy it first",
    "run the command again when nobody writes to it, or copy it first",
)


def is_file(text: str) -> bool:
    """Whether a path names one file; if not, it is a folder or a pattern."""
    known = format_of(Path(text)) is not None or not glob.has_magic(text)
    return os.path.isfile(text) and known


def _base(text: str) -> Path:
    """The folder below which names of folders may differ: that before the first wildcard."""
    if os.path.exists(text):
        return Path(text)
    parts = Path(text).parts
    fixed = next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Path(*parts[:fixed])


def _files(text: str) -> list[Path]:
    """The files that a path, a folder or a pattern means, in order, whatever their formats."""
    if is_file(text):
        known_format(Path(text))
        return [Path(text)]
    if os.path.isdir(text):
        files = _within(Path(text))
        if not files:
            *first, last = (kind.title for kind in FORMATS)
            known = f"{', '.join(first)} or {last}"
            raise refused(text, f"the folder {{file}} holds no {known} file")
        return files
    if not glob.has_magic(text):
        raise InputError("there is no file {value}", argument="path", value=text)
    matches = sorted(Path(name) for name in glob.glob(text, recursive=True))
    if not matches:
        raise InputError("no file matches {value}", argument="path", value=text)
    return [file for match in matches for file in _files(str(match))]


def _within(folder: Path) -> list[Path]:
    """The files of all known formats in a folder, at any depth, without hidden ones."""
    return sorted(
        file
        for file in folder.rglob("*")
        if (kind := format_of(file))
        and ending_of(file) not in kind.named_only
        and not any(part.startswith(HIDDEN) for part in file.relative_to(folder).parts)
        and file.is_file()
    )


def named_files(path: Any) -> list[tuple[str, list[Path]]]:
    """The files, by the path, pattern or folder that names them; refuses several formats in one."""
    if isinstance(path, list | tuple):
        if not path:
            raise InputError("the list of files is empty", argument="path")
        return [named for one in path for named in named_files(one)]
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"scan takes paths, not a {type(path).__name__}; frames go to Sample", argument="path"
        )
    place, table = split_table(os.path.expanduser(os.fspath(path)))
    text = os.path.expanduser(os.fspath(path)) if table is None else str(place)
    files = _files(text)
    formats = sorted({known_format(file).title for file in files})
    if len(formats) > 1:  # one is often made from the other, and rows would count twice
        several = f"files of several formats, {' and '.join(formats)}"
        cure = f"name those of one, such as '*{ending_of(files[0])}'"
        raise refused(text, f"{{file}} holds {several}; {cure}")
    return [(text, files if table is None else [Path(f"{file}::{table}") for file in files])]


@dataclass(frozen=True, eq=False)
class Partitions:
    """The keys in the names of the folders that files stand in."""

    values: Mapping[Path, Mapping[str, str | None]]
    types: Mapping[str, pa.DataType]
    common: tuple[str, ...]

    @classmethod
    def of(cls, files: Sequence[tuple[str, Sequence[Path]]]) -> Partitions:
        """Read the names of the folders below those that were named.

        Of files that are named themselves, these are the folders below the one that they share.
        """
        named = [_folders(file) for text, (file, *_) in files if is_file(text)]
        shared = len(os.path.commonprefix(named))  # noqa: RUF071  # of tuples
        keys: dict[Path, dict[str, str | None]] = {}
        for text, some in files:
            skipped = shared if is_file(text) else len(_folders(_base(text) / "file"))
            keys |= {file: _keys_in(_folders(file)[skipped:], file) for file in some}
        names = dict.fromkeys(key for pairs in keys.values() for key in pairs)
        texts = {key: [pairs[key] for pairs in keys.values() if key in pairs] for key in names}
        return cls(
            {file: pairs for file, pairs in keys.items() if pairs},
            {
                key: _type_of([text for text in all_of_it if text])
                for key, all_of_it in texts.items()
            },
            tuple(key for key, all_of_it in texts.items() if len(all_of_it) == len(keys)),
        )

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def value_of(self, key: str, path: Path) -> pa.Scalar:
        """The value of a key for all rows of a file; refuses a file whose folders lack it."""
        if key not in self.values.get(path, {}):
            sentence = (
                "{file} has no column {column}, and no folder called {example} as others have"
            )
            raise refused(str(path), sentence, column=key, example=f"'{key}=...'")
        return pa.scalar(self.values[path][key]).cast(self.types[key])

    def completed(self, rows: pa.RecordBatch, names: Sequence[str], path: Path) -> pa.RecordBatch:
        """Rows of a file with some columns, of which those that the file lacks are keys."""
        if not self.types:
            return rows
        columns = [
            rows[name]
            if name in rows.schema.names
            else pa.repeat(self.value_of(name, path), rows.num_rows)
            for name in names
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(names))


def _folders(file: Path) -> tuple[str, ...]:
    return Path(os.path.abspath(file)).parts[:-1]


def _keys_in(folders: Iterable[str], file: Path) -> dict[str, str | None]:
    """The keys in names of folders that a file stands in."""
    keys: dict[str, str | None] = {}
    for part in folders:
        name, sign, text = part.partition("=")
        if not sign or not name:
            continue
        key, value = _decoded(name), None if text in ("", NOTHING) else _decoded(text)
        if keys.get(key, value) != value:
            sentence = "{file} stands in folders that give {column} two values, {first} and {value}"
            raise refused(str(file), sentence, column=key, value=value, first=repr(keys[key]))
        keys[key] = value
    return keys


def _decoded(text: str) -> str:
    """Text with signs such as %2F as themselves; what is no such text stays."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def _type_of(texts: Sequence[str]) -> pa.DataType:
    """Whole numbers where all texts are such, as in a text file; else text."""
    if not texts:
        return pa.null()
    return pa.int64() if all(map(WHOLE.fullmatch, texts)) else pa.string()


def state_of(path: Path) -> tuple[int, int]:
    """Bytes of a file, and of what a database keeps beside it, and when they changed last."""
    size = modified = 0
    for place in belonging_to(path):
        with place.open("rb") as file:  # fresh also on file systems that keep old answers
            state = os.fstat(file.fileno())
        size, modified = size + state.st_size, max(modified, state.st_mtime_ns)
    return size, modified


def belonging_to(path: Path) -> list[Path]:
    """The files that hold the rows: the file, and what a database has not put into it yet."""
    place, _ = split_table(path)
    beside = (Path(f"{place}{ending}") for ending in known_format(path).beside)
    return [place, *(other for other in beside if other.is_file() and other.stat().st_size)]


def _changed(path: Path, change: str, **details: object) -> InputError:
    return refused(str(path), f"{change}; {{cure}}", cure=CURE, **details)


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
    files: FileSet
    numbers: IntArray | None = None

    def split(self, rows: int) -> tuple[Batch, Batch]:
        """The first rows, and the others."""
        numbers = np.arange(self.rows.num_rows) if self.numbers is None else self.numbers
        first = replace(self, rows=self.rows.slice(0, rows), numbers=numbers[:rows])
        return first, replace(self, rows=self.rows.slice(rows), numbers=numbers[rows:])

    @contextmanager
    def located(self) -> Iterator[None]:
        """Give an error about these rows the file and their numbers in it."""

        def number(row: int) -> int:
            return self.offset + (row if self.numbers is None else int(self.numbers[row]))

        try:
            yield
        except InputError as error:
            self.files.refuse_change(self.path)  # which may be all that is wrong with the rows
            raise error.renumbered(number, file=self.path.name) from None


@dataclass(frozen=True, eq=False)
class FileSet:
    """Files with the same columns; names of folders such as `year=2020` are columns, too.

    `states` are those of the files when they were named.
    """

    files: tuple[Path, ...]
    form: TextForm
    partitions: Partitions
    states: Mapping[Path, tuple[int, int]]

    @classmethod
    def of(cls, path: Any, form: TextForm = AS_SEEN) -> FileSet:
        """Look at the files that a path, a pattern, a folder or a list of these means."""
        if isinstance(path, FileSet):
            return replace(path, form=form)
        named = named_files(path)
        files = tuple(file for _, some in named for file in some)
        states = {}
        for file in files:
            with reading(file):
                states[file] = state_of(file)
        return cls(files, form, Partitions.of(named), states)

    def only(self, *files: Path) -> FileSet:
        """The same with some of the files; keys have the types that they have in all of them."""
        keys = {path: pairs for path, pairs in self.partitions.values.items() if path in files}
        states = {path: self.states[path] for path in files}
        partitions = replace(self.partitions, values=keys)
        return replace(self, files=files, partitions=partitions, states=states)

    @contextmanager
    def unchanged(self, path: Path) -> Iterator[None]:
        """Read a file that is what it was, before and after; what cannot be read is a sentence."""
        self.refuse_change(path)
        try:
            with reading(path):
                yield
        except InputError:  # a file that changed while it was read may look broken
            self.refuse_change(path)
            raise
        self.refuse_change(path)

    def refuse_changes(self) -> None:
        """Raise unless all files are what they were."""
        for path in self.states:
            self.refuse_change(path)

    def refuse_change(self, path: Path) -> None:
        """Raise unless a file is what it was."""
        before = self.states[path]
        try:
            with reading(path):
                now = state_of(path)
        except InputError:
            if split_table(path)[0].exists():
                raise
            raise _changed(path, VANISHED) from None
        if now != before:
            change = TOUCHED if now[0] == before[0] else RESIZED
            verb = "grew" if now > before else "shrank"
            raise _changed(path, change, verb=verb, before=before[0], now=now[0])

    @cached_property
    def names(self) -> list[str]:
        """All columns: those of the first file, then those in names of folders."""
        names = self._names_of(self.files[0])
        return [*names, *(key for key in self.partitions.common if key not in names)]

    def batches(
        self, part: FilePart, names: Sequence[str]
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows of some columns of a piece; refuses a file that has changed."""
        path = part.path
        batches: Any = self._kind(path).batches(part, self._names_within(path, names))
        with self.unchanged(path), closing(batches):
            for batch in batches:
                self.refuse_change(path)  # nobody may read on to the end
                if batch.num_rows:
                    yield self.partitions.completed(batch, names, path)

    def _kind(self, path: Path) -> Format:
        return known_format(path, self.form)

    def _names_of(self, path: Path) -> list[str]:
        with self.unchanged(path):
            return list(self._kind(path).schema(path).names)

    def _names_within(self, path: Path, names: Sequence[str]) -> list[str]:
        """Those columns that are to be read from a file itself; at least one, to count its rows."""
        if not any(name in self.partitions for name in names):
            return list(names)
        present = self._names_of(path)
        within = [name for name in names if name not in self.partitions or name in present]
        return within or present[:1]

    def parts(self, rows: int) -> Iterator[FilePart]:
        """The same in pieces of about so many rows that can be read alone."""
        for path in self.files:
            with self.unchanged(path):
                parts = self._kind(path).parts(path, rows)
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
        spent, room = 0, room_for(SHARE)
        for part in self.parts(PART_ROWS):
            for batch in self.batches(part, wanted):
                room = room_left(room, batch, part.path)
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
        for path in self.files:
            for batch in self.batches(FilePart(path), names):
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
        for path in self.files:
            with self.unchanged(path):
                for rows in self._kind(path).untouched(path, self._names_within(path, names)):
                    yield self._as_they_are(rows, path, names)

    def untouched_types(self, names: Sequence[str]) -> pa.Table:
        """No rows, with types that hold what `untouched` gives; of JSON lines, its first rows."""
        tables = []
        for path in self.files:
            within = self._names_within(path, names)
            with self.unchanged(path):
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
        for path, (size, _) in self.states.items():
            with self.unchanged(path):
                count = self._kind(path).about_rows(path)
            rows += size / BYTES_OF_A_ROW if count is None else count
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
            with self.unchanged(path):
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
        with self.unchanged(path):
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
        with self.unchanged(path):
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
