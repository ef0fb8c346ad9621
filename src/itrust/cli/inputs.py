"""What the command reads: a file, a folder, a pattern, or `-` for standard input."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from itrust._core import InputError, counted, did_you_mean, listed
from itrust.data import (
    column_names,
    in_backticks,
    is_text,
    list_files,
    partition_keys,
    read_table,
    read_untouched,
    spool,
)

STDIN = "-"
SPOOLED = "standard input"


@dataclass(frozen=True)
class Source:
    """Files with the same columns; `name` is what the user called them."""

    name: str
    files: tuple[Path, ...]

    @cached_property
    def columns(self) -> list[str]:
        """Names of all columns, from the first file."""
        return column_names(self.files[0])

    def table(self, names: list[str]) -> pa.Table:
        """All rows of some columns."""
        return read_table(self.files, list(dict.fromkeys(names)))

    def untouched(self) -> pa.Table:
        """All rows of all columns as they stand in the files."""
        return read_untouched(self.files, self.columns)

    @property
    def is_text(self) -> bool:
        """Whether the files are CSV or the like, which have no types."""
        return is_text(self.files[0])

    @cached_property
    def partition_keys(self) -> list[str]:
        """Keys that stand in names of folders only."""
        keys = partition_keys(os.path.expanduser(self.name), self.files)
        return [key for key in keys if key not in self.columns]

    @property
    def remarks(self) -> list[str]:
        """What a user may not expect of the files."""
        said = []
        if len(self.files) > 1:
            said.append(f"reading {counted(len(self.files), 'file')} of {self.name}")
        if self.partition_keys:
            keys = listed(self.partition_keys)
            said.append(f"partition keys in names of folders are not read as columns: {keys}")
        return said

    def require(self, option: str, name: str) -> str:
        """A column that is there, or a sentence with the closest one."""
        if name in self.columns:
            return name
        hint = did_you_mean(name, self.columns)
        if len(self.columns) == 1 and ";" in self.columns[0]:
            hint = "columns must be separated by commas (.csv) or tabs (.tsv), not semicolons"
        if name in self.partition_keys:
            hint = "it stands in names of folders only; write it into the files as a column"
        if option == "--task":
            hint += in_backticks(name, self.columns)
        raise InputError(f"{option}: {self.name} has no column {name!r}; {hint}")

    @property
    def checksum(self) -> str:
        """SHA-256 of the file; of several files, of their checksums in order."""
        sums = [_checksum(path) for path in self.files]
        return sums[0] if len(sums) == 1 else hashlib.sha256("\n".join(sums).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened(name: str) -> Iterator[Source]:
    """The files that a name means; standard input is kept in a temporary one meanwhile."""
    if name != STDIN:
        yield Source(name, tuple(list_files(name)))
        return
    if sys.stdin.isatty():
        raise InputError("standard input is a terminal; pipe a file into it, or name one")
    with tempfile.TemporaryDirectory(prefix="itrust-") as folder:
        yield Source(SPOOLED, (spool(sys.stdin.buffer, Path(folder), SPOOLED),))
