"""What the command reads: a file, a folder, a pattern, or `-` for standard input."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from itrust import data
from itrust._core import InputError, counted, listed
from itrust.cli.options import STANDARD

SPOOLED = "standard input"


@dataclass(frozen=True)
class InputFiles:
    """Files with the same columns; `name` is what the user called them."""

    name: str
    files: tuple[Path, ...]
    form: data.TextForm = data.AS_SEEN

    @cached_property
    def columns(self) -> list[str]:
        """Names of all columns, from the first file."""
        return data.column_names(self.files[0], self.form)

    def table(self, names: list[str], spare: Sequence[str] = ()) -> pa.Table:
        """All rows of some columns, and of the spare ones unless these are too large."""
        return data.read_table(self.files, list(dict.fromkeys(names)), spare, self.form)

    def kinds(self, said: data.Kinds, names: list[str]) -> data.Kinds:
        """What the user says of columns, and what the files say their codes mean."""
        return data.with_labels_of_file(self.files[0], said, names, self.form)

    def possible_units(self, names: list[str]) -> list[str]:
        """Those columns that may name units, by the first rows."""
        head = data.read_head(self.files[0], names, self.form) if names else None
        return [] if head is None else [name for name in names if data.may_be_units(head[name])]

    def untouched(self) -> pa.Table:
        """All rows of all columns as they stand in the files."""
        return data.read_untouched(self.files, self.columns, self.form)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Give an error about a row of all files the file, the row and the line it stands in."""
        try:
            yield
        except InputError as error:
            if error.row is None or error.file is not None:
                raise
            path, row = data.row_of(self.files, self.columns[:1], error.row, self.form)
            shift = row - error.row
            raise error.within(
                SPOOLED if self.name == SPOOLED else path.name,
                lambda number: number + shift,
                lambda number: data.line_of(path, number, self.form),
            ) from None

    def written_form(self, out: Path) -> data.TextForm:
        """The form of a text file that is to be like these; as usual where the ending differs."""
        kind = data.known_format(self.files[0], self.form)
        if not isinstance(kind, data.Delimited) or data.format_of(out) != data.format_of(
            self.files[0]
        ):
            return data.AS_SEEN
        return kind.form_of(self.files[0])

    @property
    def is_text(self) -> bool:
        """Whether the files are CSV or the like, which have no types."""
        return data.is_text(self.files[0])

    @cached_property
    def partition_keys(self) -> list[str]:
        """Keys that stand in names of folders only."""
        keys = data.partition_keys(os.path.expanduser(self.name), self.files)
        return [key for key in keys if key not in self.columns]

    @property
    def notes(self) -> list[str]:
        """What a user may not expect of the files."""
        said = []
        if len(self.files) > 1:
            said.append(f"reading {counted(len(self.files), 'file')} of {self.name}")
        if self.partition_keys:
            keys = listed(self.partition_keys)
            said.append(f"partition keys in names of folders are not read as columns: {keys}")
        return [*said, *data.file_notes(self.files, self.form)]

    def require(self, option: str, name: str) -> str:
        """A column that is there, or an error with the closest one; `option` named it."""
        if name in self.columns:
            return name
        guess = data.guess_column(name, self.columns)
        if name in self.partition_keys:
            guess = "it stands in names of folders only; write it into the files as a column"
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
    def checksum(self) -> str:
        """SHA-256 of the file; of several files, of their checksums in order."""
        sums = [_checksum(path) for path in self.places]
        return sums[0] if len(sums) == 1 else hashlib.sha256("\n".join(sums).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened(name: str, form: data.TextForm = data.AS_SEEN) -> Iterator[InputFiles]:
    """The files that a name means; standard input is kept in a temporary one meanwhile."""
    if name != STANDARD:
        yield InputFiles(name, tuple(data.list_files(name)), form)
        return
    if sys.stdin.isatty():
        raise InputError("standard input is a terminal; pipe a file into it, or name one")
    with tempfile.TemporaryDirectory(prefix="itrust-") as folder:
        yield InputFiles(SPOOLED, (data.spool(sys.stdin.buffer, Path(folder), SPOOLED),), form)
