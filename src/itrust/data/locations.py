"""Where rows are: the files that a path, a pattern or a folder means, and what they were at first.

Names of folders such as `year=2020` are columns, as Hive and Spark write them. A file is known by
its size and the time of its last change. Standard input is kept in a file.
"""

from __future__ import annotations

import glob
import gzip
import math
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import Code, InputError
from itrust.data.formats import (
    FORMATS,
    GZIP,
    HEAD_BYTES,
    ending_of,
    format_of,
    format_of_bytes,
    in_bytes,
    known_format,
    reading,
    refused,
    split_table,
    unreadable,
)

VARIABLE = "ITRUST_MAX_INPUT"
MAX_BYTES = 100 * 10**9
SPARE_BYTES, SPARE_SHARE = 10**9, 1 / 10  # of the disk, which others need, too: the lesser
BLOCK_BYTES = 2**20
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)
HIDDEN = (".", "_", "~$")
NOTHING = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"-?[0-9]{1,18}")
RESIZED = "{file} {verb} from {before} to {now} bytes since it was first looked at"
TOUCHED = "{file} was written or touched since it was first looked at (its time of change differs)"
VANISHED = "{file} has vanished since it was first looked at"
APPEARED = "{file} has appeared in {location} since the other files were first looked at"
CURE = Code(
    "scan it again when nobody writes to it, or copy it first",
    "run the command again when nobody writes to it, or copy it first",
)


@dataclass(frozen=True)
class Location:
    """A file, a folder or a pattern, and the table that is named behind it."""

    text: str
    table: str | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Location:
        """The location that a path names."""
        text = os.path.expanduser(os.fspath(path))
        location, table = split_table(text)
        return cls(text if table is None else str(location), table)

    @property
    def is_file(self) -> bool:
        """Whether it is one file, so that no other can appear there."""
        return os.path.isfile(self.text) and (
            format_of(Path(self.text)) is not None or not glob.has_magic(self.text)
        )

    @property
    def base(self) -> Path:
        """The folder below which names of folders may differ: that before the first wildcard."""
        if os.path.exists(self.text):
            return Path(self.text)
        parts = Path(self.text).parts
        fixed = next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        return Path(*parts[:fixed])

    def files(self) -> list[Path]:
        """The files, in order; refuses a folder or pattern that means files of several formats."""
        files = self.all_files()
        formats = sorted({known_format(file).title for file in files})
        if len(formats) > 1:  # one is often made from the other, and rows would count twice
            several = f"files of several formats, {' and '.join(formats)}"
            cure = f"name those of one, such as '*{ending_of(files[0])}'"
            raise refused(self.text, f"{{file}} holds {several}; {cure}")
        return [Path(f"{file}::{self.table}") if self.table is not None else file for file in files]

    def all_files(self) -> list[Path]:
        """The files, in order, whatever their formats."""
        if self.is_file:
            known_format(Path(self.text))
            return [Path(self.text)]
        if os.path.isdir(self.text):
            files = _within(Path(self.text))
            if not files:
                *first, last = (kind.title for kind in FORMATS)
                known = f"{', '.join(first)} or {last}"
                raise refused(self.text, f"the folder {{file}} holds no {known} file")
            return files
        if not glob.has_magic(self.text):
            raise InputError("there is no file {value}", argument="path", value=self.text)
        matches = sorted(Path(name) for name in glob.glob(self.text, recursive=True))
        if not matches:
            raise InputError("no file matches {value}", argument="path", value=self.text)
        return [file for match in matches for file in Location(str(match)).all_files()]


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


def named_locations(path: Any) -> list[Location]:
    """The locations that a path, a pattern, a folder or a list of these names."""
    if isinstance(path, list | tuple):
        if not path:
            raise InputError("the list of files is empty", argument="path")
        return [location for one in path for location in named_locations(one)]
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"scan takes paths, not a {type(path).__name__}; frames go to Sample", argument="path"
        )
    return [Location.of(path)]


@dataclass(frozen=True, eq=False)
class Partitions:
    """The keys in the names of the folders that files stand in."""

    values: Mapping[Path, Mapping[str, str | None]]
    types: Mapping[str, pa.DataType]
    common: tuple[str, ...]

    @classmethod
    def of(cls, files: Sequence[tuple[Location, Sequence[Path]]]) -> Partitions:
        """Read the names of the folders below those that were named.

        Of files that are named themselves, these are the folders below the one that they share.
        """
        named = [_folders(file) for location, (file, *_) in files if location.is_file]
        shared = len(os.path.commonprefix(named))  # noqa: RUF071  # of tuples
        keys: dict[Path, dict[str, str | None]] = {}
        for location, some in files:
            skipped = shared if location.is_file else len(_folders(location.base / "file"))
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

    def only(self, files: Iterable[Path]) -> Partitions:
        """The same for some files; keys have the types that they have in all files."""
        values = {path: self.values[path] for path in files if path in self.values}
        return replace(self, values=values)

    def value_of(self, key: str, path: Path) -> pa.Scalar:
        """The value of a key for all rows of a file; refuses a file whose folders lack it."""
        if key not in self.values.get(path, {}):
            sentence = (
                "{file} has no column {column}, and no folder called {example} as others have"
            )
            raise refused(str(path), sentence, column=key, example=f"'{key}=...'")
        return pa.scalar(self.values[path][key]).cast(self.types[key])

    def completed(
        self, rows: pa.RecordBatch, names: Sequence[str], path: Path, offset: int
    ) -> pa.RecordBatch:
        """Rows of a file with some columns, of which those that the file lacks are keys."""
        if not self.types:
            return rows
        columns = []
        for name in names:
            if name not in rows.schema.names:
                columns.append(pa.repeat(self.value_of(name, path), rows.num_rows))
                continue
            columns.append(rows[name])
            if name in self.values.get(path, {}):
                _refuse_contradiction(rows[name], self.values[path][name], name, path, offset)
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


def _refuse_contradiction(
    column: pa.Array, text: str | None, name: str, path: Path, offset: int
) -> None:
    """Raise unless all cells of a column hold what the folder says."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if text is None:
        same = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    else:
        try:
            meant = pa.scalar(text).cast(column.type)
        except pa.ArrowException:
            meant = pa.scalar(None, column.type)
        same = pc.fill_null(pc.equal(column, meant), fill_value=False)
    row = pc.index(same, value=False).as_py()
    if row >= 0:
        cell = "{file}: {row} has {value} in column {column}"
        raise refused(
            str(path),
            f"{cell}, but stands in the folder {{folder}}; mend one of the two",
            row=offset + row,
            value=column[row].as_py(),
            column=name,
            folder=repr(f"{name}={NOTHING if text is None else text}"),
        )


class FileState(NamedTuple):
    """What tells one state of a file from another: bytes, and when it was changed last."""

    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state of a file, and of what a database keeps beside it."""
        size = modified = 0
        for place in belonging_to(path):
            with place.open("rb") as file:  # fresh also on file systems that keep old answers
                state = os.fstat(file.fileno())
            size, modified = size + state.st_size, max(modified, state.st_mtime_ns)
        return cls(size, modified)


def belonging_to(path: Path) -> list[Path]:
    """The files that hold the rows: the file, and what a database has not put into it yet."""
    place, _ = split_table(path)
    beside = (Path(f"{place}{ending}") for ending in known_format(path).beside)
    return [place, *(other for other in beside if other.is_file() and other.stat().st_size)]


@dataclass(frozen=True)
class Snapshot:
    """Files, folders and patterns as they were at one time."""

    states: Mapping[Path, FileState]
    locations: tuple[Location, ...] = ()

    @classmethod
    def of(cls, files: Iterable[Path], locations: Iterable[Location] = ()) -> Snapshot:
        """Look at files without reading them."""
        states = {}
        for path in files:
            with reading(path):
                states[path] = FileState.of(path)
        return cls(states, tuple(location for location in locations if not location.is_file))

    def only(self, files: Iterable[Path]) -> Snapshot:
        """The same for some files, whatever else is in their folders."""
        return Snapshot({path: self.states[path] for path in files})

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
        """Raise unless all files are what they were, and no other one has appeared."""
        self.refuse_other_files()
        for path in self.states:
            self.refuse_change(path)

    def refuse_change(self, path: Path) -> None:
        """Raise unless a file is what it was."""
        before = self.states[path]
        try:
            with reading(path):
                now = FileState.of(path)
        except InputError:
            if split_table(path)[0].exists():
                raise
            raise _changed(path, VANISHED) from None
        if now != before:
            change = TOUCHED if now.size == before.size else RESIZED
            verb = "grew" if now.size > before.size else "shrank"
            raise _changed(path, change, verb=verb, before=before.size, now=now.size)

    def refuse_other_files(self) -> None:
        """Raise if a file has vanished from the folders and patterns, or appeared there."""
        known = {split_table(path)[0]: path for path in self.states}
        for location in self.locations:
            for file, path in known.items():
                if not file.exists():
                    raise _changed(path, VANISHED)
            new = [file for file in location.all_files() if file not in known]
            if new:
                raise _changed(new[0], APPEARED, location=location.text)


def _changed(path: Path, change: str, **details: object) -> InputError:
    return refused(str(path), f"{change}; {{cure}}", cure=CURE, **details)


def spool(stream: BinaryIO, folder: Path, stem: str) -> Path:
    """Keep a stream of any known form, gzipped or not, as a file with the right ending.

    Gzipped text stays gzipped, as it is read so: it takes no more of the disk than came.
    """
    spooled = folder / "spooled"
    _keep(_limited(stream, stem, "is larger than"), spooled, stem)
    with spooled.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.startswith(GZIP):
        _refuse_nothing(head, stem)
        return spooled.rename(folder / f"{stem}{format_of_bytes(head).endings[0]}")
    try:
        with gzip.open(spooled) as source:
            head = source.read(HEAD_BYTES)
        _refuse_nothing(head, stem)
        if head.startswith(GZIP):
            raise refused(stem, "{file} is gzipped twice; unpack it once")
        kind = format_of_bytes(head)
        with gzip.open(spooled) as source:
            blocks = _limited(source, stem, "unpacks to more than")
            if kind.may_be_gzipped:
                for _ in blocks:  # to its checksum, within the limit
                    pass
                return spooled.rename(folder / f"{stem}{kind.endings[0]}.gz")
            plain = folder / f"{stem}{kind.endings[0]}"
            _keep(blocks, plain, stem)
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(Path(stem), error) from None
    spooled.unlink()
    return plain


def max_input() -> int:
    """The most bytes that standard input may have, also unpacked; ITRUST_MAX_INPUT sets them."""
    given = os.environ.get(VARIABLE)
    if not given:
        return MAX_BYTES
    match = AMOUNT.fullmatch(given.strip())
    amount = float(match[1]) * UNITS[match[2].lower()] if match else math.inf
    if math.isinf(amount):  # also of very many digits
        raise InputError(
            f"{VARIABLE} must be a number of bytes such as 20GB, not {{value}}", value=given
        )
    return int(amount)


def _refuse_nothing(head: bytes, stem: str) -> None:
    if not head:
        raise refused(stem, "{file} is empty")


def _limited(stream: BinaryIO | gzip.GzipFile, stem: str, problem: str) -> Iterator[bytes]:
    """The blocks of a stream, as long as there are not too many bytes."""
    size, most = 0, max_input()
    while block := stream.read(BLOCK_BYTES):
        size += len(block)
        if size > most:
            cure = f"name the file instead, or set {VARIABLE} to a larger number of bytes"
            raise refused(stem, f"{{file}} {problem} {in_bytes(most)}; {cure}, such as 500GB")
        yield block


def _keep(blocks: Iterator[bytes], path: Path, stem: str) -> None:
    """Write blocks, as long as they leave something of the disk for others."""
    with path.open("wb") as file:
        for block in blocks:
            disk = shutil.disk_usage(path.parent)
            if disk.free - len(block) < min(SPARE_BYTES, SPARE_SHARE * disk.total):
                place = f"the disk that holds temporary files: {in_bytes(disk.free)} are left"
                cure = "name the file instead, or set TMPDIR to a folder with more room"
                raise refused(stem, f"{{file}} does not fit on {place}; {cure}")
            file.write(block)
