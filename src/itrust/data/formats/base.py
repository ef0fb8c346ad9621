"""What a kind of file promises: columns, rows in batches, all rows as they stand, writing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from itrust._core import InputError, did_you_mean, listed

BATCH_ROWS = 65_536
HEAD_ROWS = 20_000


@dataclass(frozen=True)
class FilePart:
    """A piece of the rows: a file or some row groups of a Parquet file.

    `start` is the number of its first row that counts in the whole, `offset` in its file;
    `rows` is how many it holds, where the file says so.
    """

    path: Path
    row_groups: tuple[int, ...] | None = None
    offset: int = 0
    start: int = 0
    rows: int | None = None


class Format(ABC):
    """One kind of file.

    `endings` are those it is read by, the first of them the usual one; `has_types` says whether a
    file knows the types of its columns; `magic` are the bytes that such a file begins with.
    """

    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    has_types: ClassVar[bool] = True
    may_be_gzipped: ClassVar[bool] = False
    magic: ClassVar[tuple[bytes, ...]] = ()

    @abstractmethod
    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """Columns and their types; refuses a file without these names."""

    @abstractmethod
    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows of some columns, in order."""

    @abstractmethod
    def untouched(self, path: Path, names: list[str]) -> pa.Table:
        """All rows as they stand in the file."""

    @abstractmethod
    def write(self, table: pa.Table, path: Path) -> None:
        """Write all rows."""

    def head(self, path: Path, names: list[str]) -> pa.RecordBatch | None:
        """The first rows, some ten thousand; None if there are none."""
        return next(iter(self.batches(FilePart(path), names)), None)

    def value_labels(self, path: Path) -> dict[str, dict[Any, str]]:  # noqa: ARG002
        """What the codes of a column mean, by column, where the file says so."""
        return {}

    def parts(self, path: Path, _rows: int) -> list[FilePart]:
        """The file in pieces of about so many rows that can be read alone; by default, whole."""
        return [FilePart(path)]


def refuse_lack_of(names: Sequence[str], present: list[str], path: Path) -> None:
    """Raise unless every name is there once; of no names, unless all columns differ."""
    often = Counter(present)
    twice = [name for name in dict.fromkeys(names or present) if often[name] > 1]
    if twice:
        raise InputError(
            "names of columns must differ; {twice} stands more than once",
            file=path.name,
            details={"twice": listed(twice)},
        )
    for name in names:
        if name not in present:
            raise InputError(
                "there is no column {column}; {guess}",
                file=path.name,
                column=name,
                details={"guess": guess_column(name, present)},
            )


def guess_column(name: str, present: list[str]) -> str:
    """What was meant by the name of a column that is not there."""
    if len(present) == 1 and ";" in present[0]:
        return "columns must be separated by commas (.csv) or tabs (.tsv), not semicolons"
    return did_you_mean(name, present)
