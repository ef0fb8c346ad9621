"""What the command reads: a file, a folder, a pattern, or `-` for standard input."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pyarrow as pa

from itrust import data
from itrust._core import InputError, counted, free_memory, listed, place_of
from itrust.cli.options import STANDARD, Options
from itrust.cli.outputs import refuse_bad_places
from itrust.data import GZIP, HEAD_BYTES, format_of_bytes, refused, unreadable

SPOOLED = "standard input"
SHARE = 1 / 5  # of free memory; rows take several times the room of their file
UNPACKED = 5  # a gzipped text is so many times as large, or more


@dataclass(frozen=True)
class InputFiles:
    """Files with the same columns; `name` is what the user called them."""

    name: str
    file_set: data.FileSet

    @property
    def files(self) -> tuple[Path, ...]:
        """The files, in order."""
        return self.file_set.files

    @cached_property
    def columns(self) -> list[str]:
        """Names of all columns, from the first file and names of folders."""
        return self.file_set.names

    def table(self, names: Sequence[str], spare: Sequence[str] = ()) -> pa.Table:
        """All rows of some columns, and of the spare ones unless these are too large."""
        return self.file_set.table(list(dict.fromkeys(names)), spare)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Give an error about a row of all files the file, the row and the line it stands in."""
        with self.file_set.located(SPOOLED if self.name == SPOOLED else None):
            yield

    @property
    def notes(self) -> list[str]:
        """What a user may not expect of the files."""
        notes = []
        if len(self.files) > 1:
            notes.append(f"reading {counted(len(self.files), 'file')} of {self.name}")
        if self.file_set.partitions.common:
            keys = listed(self.file_set.partitions.common)
            notes.append(f"names of folders are columns, too: {keys}")
        return [*notes, *self.file_set.notes]

    def require(self, option: str, *names: str) -> None:
        """Raise unless columns are there, with the closest one; `option` named them."""
        problem = "{argument}: {file} has no column {value}; {guess}{more}"
        for name in names:
            more = data.in_backticks(name, self.columns) if option == "task" else ""
            place_of(name, self.columns, problem, argument=option, file=self.name, more=more)

    @property
    def places(self) -> list[Path]:
        """The files themselves, without the tables that were named."""
        return [data.split_table(path)[0] for path in self.files]

    @property
    def tables(self) -> set[tuple[str, str | None]]:
        """Where the rows really stand: files, whatever they are called, and tables in them."""
        split = map(data.split_table, self.files)
        return {(os.path.realpath(path), table) for path, table in split}

    def streams(self, asked: bool) -> bool:
        """Whether the files are to be read some rows at a time."""
        return asked or sum(map(_about_bytes, self.places)) > SHARE * free_memory()

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the file as it is read; of several, of the lines that `sha256sum` prints.

        The files are named as they are called below the folder that they share. A file that has
        changed since it was opened is refused.
        """
        places = [place for path in self.files for place in data.belonging_to(path)]
        try:
            sums = [_checksum(place) for place in places]
        except FileNotFoundError:
            self.file_set.refuse_changes()
            raise
        self.file_set.refuse_changes()
        if len(sums) == 1:
            return sums[0]
        shared = os.path.commonpath([place.parent for place in places])
        names = [place.relative_to(shared).as_posix() for place in places]
        lines = (f"{digest}  {name}\n" for digest, name in zip(sums, names, strict=True))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _about_bytes(file: Path) -> float:
    return file.stat().st_size * (UNPACKED if file.suffix == ".gz" else 1)


def _refuse_odd_file(name: str) -> None:
    """Raise on what is no file and no folder; whether there is one is asked later."""
    problem = "{value} is neither a file nor a folder; pipe what it holds into standard input, -"
    try:
        mode = os.stat(os.path.expanduser(name)).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return
    except (FileNotFoundError, NotADirectoryError):
        return  # a pattern, or a table behind a file
    except OSError as error:
        problem = f"{{value}} cannot be read: {error.strerror}"
    raise InputError(problem, value=name)


def text_form(options: Options) -> data.TextForm:
    """How text files are written, as far as options say."""
    return data.TextForm(options.sep, options.decimal, options.dates, na_values(options))


def na_values(options: Options) -> tuple[Any, ...]:
    """Codes of missing values, between commas."""
    parts = [part.strip() for text in options.na_values for part in text.split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))


@contextmanager
def opened(
    options: Options, argument: str = "file", form: data.TextForm | None = None
) -> Iterator[InputFiles]:
    """The files that an argument names, none of them an output; standard input is kept meanwhile.

    Files that settings name lie in a folder; patterns and links may lead out of it.
    """
    name, form = str(getattr(options, argument)), form or text_form(options)
    if name == STANDARD:
        with tempfile.TemporaryDirectory(prefix="itrust-") as folder:
            spooled = spool(standard_input(), Path(folder), SPOOLED)
            yield InputFiles(SPOOLED, data.FileSet.of(spooled, form))
        return
    _refuse_odd_file(name)
    source = InputFiles(name, data.FileSet.of(name, form))
    within = options.folder_of(argument)
    for place in source.places if within is not None else ():
        if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(str(within))):
            raise InputError(
                "{file} lies outside the folder of the settings that name it; name it on the "
                "command line instead",
                file=str(place),
            )
    refuse_bad_places(options, source.places)
    yield source


def standard_input() -> BinaryIO:
    """Standard input; refused where nothing can come from it."""
    stream: TextIO | None = sys.stdin
    if stream is None or stream.isatty():
        what = "closed" if stream is None else "a terminal"
        raise InputError(f"standard input is {what}; pipe a file into it, or name one")
    return stream.buffer


def spool(stream: BinaryIO, folder: Path, stem: str) -> Path:
    """Keep a stream of any known form, gzipped or not, as a file with the right ending.

    Gzipped text stays gzipped, as it is read so: it takes no more of the disk than came.
    """
    spooled = folder / "spooled"
    try:
        with spooled.open("wb") as file:
            shutil.copyfileobj(stream, file)
        with spooled.open("rb") as file:
            is_packed = file.read(len(GZIP)) == GZIP
        unpacked: Any = gzip.open if is_packed else open
        with unpacked(spooled, "rb") as source:
            head = source.read(HEAD_BYTES)
            if not head:
                raise refused(stem, "{file} is empty")
            if head.startswith(GZIP):
                raise refused(stem, "{file} is gzipped twice; unpack it once")
            kind = format_of_bytes(head)
            place = folder / f"{stem}{kind.endings[0]}"
            if not is_packed or kind.is_text:
                return spooled.rename(f"{place}.gz" if is_packed else place)
            source.seek(0)
            with place.open("wb") as file:
                shutil.copyfileobj(source, file)
            return place
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(Path(stem), error) from None
