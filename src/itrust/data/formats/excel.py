"""Sheets of a workbook, read with fastexcel in a process of its own."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from itrust._core import InputError, free_memory, listed
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    SeveralTables,
    impossible,
    optional_package,
    refuse_lack_of,
)
from itrust.data.formats.child_process import read_in_child
from itrust.data.formats.soundness import in_bytes, room_for

ZIP, BLOCK_BYTES = b"PK\x03\x04", 2**20
CURE = "is it whole, and no cell far away from the others?"
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,  # a compression that is not known here
    RuntimeError,  # a part that is encrypted
)
NOTHING = pa.array(pa.csv.ConvertOptions().null_values, pa.string())  # as in a text file


@dataclass(frozen=True)
class Sheet:
    """The rows of a sheet, whose first row holds the names of the columns.

    `others` are the other sheets, `nameless` the letters of columns with values but no name.
    """

    name: str
    rows: pa.Table
    others: tuple[str, ...]
    nameless: tuple[str, ...]


class Excel(SeveralTables):
    """A workbook: its first sheet that is not hidden, or the one that is named."""

    title, endings, noun = "Excel", (".xlsx", ".xlsm", ".xlsb", ".xls"), "sheet"
    magic = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From all rows: a column has the type that all of its cells can have."""
        schema = self._sheet(path).rows.schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Parts of the sheet, which is in memory as a whole."""
        self.schema(part.path, names)
        yield from self._sheet(part.path).rows.select(names).to_batches(BATCH_ROWS)

    def about_rows(self, path: Path) -> float | None:
        """Of the sheet in memory."""
        return float(self._sheet(path).rows.num_rows)

    def notes(self, path: Path) -> list[str]:
        """Which sheet was taken, and what of it was left out."""
        sheet, (file, named) = self._sheet(path), self.split(path)
        said = []
        if sheet.others and named is None:
            said.append(
                f"{file.name}: reading the sheet {sheet.name!r}; the others are "
                f"{listed(sheet.others)} (name one as {file.name}::{sheet.others[0]})"
            )
        if sheet.nameless:
            letters = ", ".join(sheet.nameless)
            said.append(f"{file.name}: columns without a name are left out: {letters}")
        return said

    def _sheet(self, path: Path) -> Sheet:
        file, name = self.split(path)
        state = file.stat()
        return _read_sheet(file, name, (state.st_mtime_ns, state.st_size))


# A workbook is read whole, and an audit asks for its columns several times.
@lru_cache(maxsize=1)
def _read_sheet(file: Path, name: str | None, _state: tuple[int, int]) -> Sheet:
    kind = Excel()
    optional_package("fastexcel", kind, "excel", file)
    kind.refuse_other_start(file)
    _refuse_damaged_parts(file)
    about, table = read_in_child("excel_sheet", file, CURE, file=str(file), name=name)
    if not about["sheets"]:
        raise InputError("{file} holds no sheet; is it whole?", file=file.name)
    if name is not None:
        kind.refuse_lack_of_table(name, about["sheets"], file)
    return _sheet_of(about, table, file)


def _refuse_damaged_parts(file: Path) -> None:
    """Raise unless the parts of a zipped workbook have their checksums and fit into memory."""
    with file.open("rb") as raw:
        if raw.read(len(ZIP)) != ZIP:
            return
    room = room_for()
    with impossible(file, *DAMAGE), zipfile.ZipFile(file) as parts:
        for part in parts.infolist():
            with parts.open(part) as unpacked:
                while block := unpacked.read(BLOCK_BYTES):
                    room -= len(block)
                    if room < 0:
                        raise InputError(
                            "{file} unpacks to more than the {free} of memory that are free; save "
                            "the sheet as .csv",
                            file=file.name,
                            details={"free": in_bytes(free_memory())},
                        )


def _sheet_of(about: dict[str, Any], table: pa.Table, file: Path) -> Sheet:
    name, titles = about["name"], about["titles"]
    others = tuple(other for other in about["sheets"] if other != name)
    if not any(titles):
        raise InputError(
            "the sheet {value} is empty{cure}",
            file=file.name,
            value=name,
            details={"cure": f"; name another, as {file.name}::{others[0]}" if others else ""},
        )
    letters = [_letters(place) for place in about["places"]]
    columns = [_tidy(column.combine_chunks()) for column in table.columns]
    nameless = [
        letter
        for letter, title, column in zip(letters, titles, columns, strict=True)
        if not title and column.null_count < len(column)
    ]
    named = [at for at, title in enumerate(titles) if title]
    if len(nameless) >= len(named):
        raise InputError(
            "the first row of the sheet {value} names {named} of {all} columns; if it is a title "
            "or a merged header, leave one row of names",
            file=file.name,
            value=name,
            details={"named": len(named), "all": len(named) + len(nameless)},
        )
    for at in named:
        if at in about["mixed"] and _holds_numbers(columns[at]):
            columns[at] = columns[at].cast(pa.float64())
    rows = pa.Table.from_arrays([columns[at] for at in named], [titles[at] for at in named])
    return Sheet(name, rows, others, tuple(nameless))


def _letters(index: int) -> str:
    """The name of a column in a sheet.

    >>> [_letters(index) for index in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    before, last = divmod(index, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)


def _tidy(column: pa.Array) -> pa.Array:
    """Words for a missing value as such; days where no cell has a time of day."""
    if pa.types.is_string(column.type):
        column = pc.if_else(pc.is_in(column, NOTHING), pa.scalar(None, pa.string()), column)
        return column if column.null_count < len(column) else pa.nulls(len(column))
    if pa.types.is_timestamp(column.type):
        times = column.cast(pa.timestamp("us"))
        days = times.cast(pa.date32(), safe=False)
        return days if days.cast(pa.timestamp("us")).equals(times) else times
    return column


def _holds_numbers(column: pa.Array) -> bool:
    """Whether a column of text could be one of numbers."""
    if not pa.types.is_string(column.type):
        return False
    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
