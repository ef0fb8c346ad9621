"""What the command reads: a file, a folder, a pattern, or `-` for standard input."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
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
from itrust._core import InputError, counted, did_you_mean, listed
from itrust.cli.options import STANDARD
from itrust.data import GZIP, HEAD_BYTES, format_of_bytes, in_bytes, refused, unreadable

SPOOLED = "standard input"
LARGE_BYTES = 5 * 10**9  # whose checksum takes some seconds
VARIABLE = "ITRUST_MAX_INPUT"
MAX_BYTES = 100 * 10**9
SPARE_BYTES, SPARE_SHARE = 10**9, 1 / 10  # of the disk, which others need, too: the lesser
BLOCK_BYTES = 2**20
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)


@dataclass(frozen=True)
class InputFiles:
    """Files with the same columns; `name` is what the user called them."""

    name: str
    file_set: data.FileSet

    @property
    def files(self) -> tuple[Path, ...]:
        """The files, in order."""
        return self.file_set.files

    @property
    def form(self) -> data.TextForm:
        """How text is read."""
        return self.file_set.form

    @cached_property
    def columns(self) -> list[str]:
        """Names of all columns, from the first file and names of folders."""
        return self.file_set.names

    def table(self, names: list[str], spare: Sequence[str] = ()) -> pa.Table:
        """All rows of some columns, and of the spare ones unless these are too large."""
        return self.file_set.table(list(dict.fromkeys(names)), spare)

    def batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """All rows of some columns, some at a time."""
        return self.file_set.rows(list(dict.fromkeys(names)))

    def kinds(
        self, said: data.Kinds, names: Sequence[str], covariates: Sequence[str]
    ) -> data.Kinds:
        """What the user says of columns, and what the files say of them."""
        return self.file_set.kinds(said, names, covariates)

    def possible_units(self, names: list[str]) -> list[str]:
        """Those columns that may name units, by the first rows."""
        head = self.file_set.head(names) if names else None
        return [] if head is None else [name for name in names if data.may_be_units(head[name])]

    @contextmanager
    def located(self) -> Iterator[None]:
        """Give an error about a row of all files the file, the row and the line it stands in."""
        with self.file_set.located(SPOOLED if self.name == SPOOLED else None):
            yield

    @property
    def notes(self) -> list[str]:
        """What a user may not expect of the files."""
        said = []
        if len(self.files) > 1:
            said.append(f"reading {counted(len(self.files), 'file')} of {self.name}")
        if self.file_set.partitions.common:
            keys = listed(self.file_set.partitions.common)
            said.append(f"names of folders are columns, too: {keys}")
        return [*said, *self.file_set.notes]

    def require(self, option: str, name: str) -> str:
        """A column that is there, or an error with the closest one; `option` named it."""
        if name in self.columns:
            return name
        guess = did_you_mean(name, self.columns)
        if option == "task":
            guess += data.in_backticks(name, self.columns)
        raise InputError(
            "{argument}: {file} has no column {value}; {guess}",
            argument=option,
            value=name,
            file=self.name,
            details={"guess": guess},
        )

    @property
    def places(self) -> list[Path]:
        """The files themselves, without the tables that were named."""
        return [data.split_table(path)[0] for path in self.files]

    @property
    def tables(self) -> set[tuple[str, str | None]]:
        """Where the rows really stand: files, whatever they are called, and tables in them."""
        found = (data.split_table(path) for path in self.files)
        return {(os.path.realpath(path), table) for path, table in found}

    @property
    def about_checksum(self) -> list[str]:
        """What to say before the checksum is computed, where that takes a while."""
        size = sum(found.size for found in self.file_set.snapshot.states.values())
        return [f"computing the SHA-256 of {size / 1e9:.0f} GB"] if size >= LARGE_BYTES else []

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
            self.file_set.snapshot.refuse_changes()
            raise
        self.file_set.snapshot.refuse_changes()
        if len(sums) == 1:
            return sums[0]
        shared = os.path.commonpath([place.parent for place in places])
        names = [place.relative_to(shared).as_posix() for place in places]
        lines = (f"{found}  {name}\n" for found, name in zip(sums, names, strict=True))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_odd_file(name: str) -> None:
    """Raise on what is no file and no folder; whether there is one is asked later."""
    try:
        mode = os.stat(os.path.expanduser(name)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return  # a pattern, or a table behind a file
    except OSError as error:
        raise InputError(
            "{value} cannot be read: {reason}", value=name, details={"reason": error.strerror}
        ) from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(
            "{value} is neither a file nor a folder; pipe what it holds into standard input, -",
            value=name,
        )


def _refuse_outside(places: Sequence[Path], within: Path | None) -> None:
    for place in places if within is not None else ():
        if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(str(within))):
            raise InputError(
                "{file} lies outside the folder of the settings that name it; name it on the "
                "command line instead",
                file=str(place),
            )


@contextmanager
def opened(
    name: str, form: data.TextForm = data.AS_SEEN, within: Path | None = None
) -> Iterator[InputFiles]:
    """The files that a name means; standard input is kept in a temporary one meanwhile.

    Files that settings name lie in a folder; patterns and links may lead out of it.
    """
    if name != STANDARD:
        _refuse_odd_file(name)
        found = InputFiles(name, data.FileSet.of(name, form))
        _refuse_outside(found.places, within)
        yield found
        return
    with tempfile.TemporaryDirectory(prefix="itrust-") as folder:
        kept = spool(standard_input(), Path(folder), SPOOLED)
        yield InputFiles(SPOOLED, data.FileSet.of(kept, form))


def standard_input() -> BinaryIO:
    """Standard input; refused where nothing can come from it."""
    stream: TextIO | None = sys.stdin
    if stream is None:
        raise InputError("standard input is closed; pipe a file into it, or name one")
    if stream.isatty():
        raise InputError("standard input is a terminal; pipe a file into it, or name one")
    return stream.buffer


def spool(stream: BinaryIO, folder: Path, stem: str) -> Path:
    """Keep a stream of any known form, gzipped or not, as a file with the right ending.

    Gzipped text stays gzipped, as it is read so: it takes no more of the disk than came.
    """
    spooled = folder / "spooled"
    _keep(_limited(stream, stem, "is larger than"), spooled, stem)
    with spooled.open("rb") as file:
        is_packed = file.read(len(GZIP)) == GZIP
    open_it: Any = gzip.open if is_packed else open
    try:
        with open_it(spooled, "rb") as source:
            head = source.read(HEAD_BYTES)
        if not head:
            raise refused(stem, "{file} is empty")
        if head.startswith(GZIP):
            raise refused(stem, "{file} is gzipped twice; unpack it once")
        kind = format_of_bytes(head)
        plain = folder / f"{stem}{kind.endings[0]}"
        if not is_packed:
            return spooled.rename(plain)
        with gzip.open(spooled) as source:
            blocks = _limited(source, stem, "unpacks to more than")
            if kind.may_be_gzipped:
                for _ in blocks:  # to its checksum, within the limit
                    pass
                return spooled.rename(f"{plain}.gz")
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
