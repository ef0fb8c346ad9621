"""File formats: what each kind of file holds and how it is read and written.

A new format is one class here and one line in `FORMATS`; nothing else asks for an ending.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from itrust._core import InputError, did_you_mean, listed

BATCH_ROWS = 65_536
HEAD_ROWS = 20_000
CSV_BLOCK_BYTES = 2**23


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

    def parts(self, path: Path, _rows: int) -> list[FilePart]:
        """The file in pieces of about so many rows that can be read alone; by default, whole."""
        return [FilePart(path)]


@dataclass(frozen=True)
class Delimited(Format):
    """Text with a row a line; read with Arrow's streaming reader, also gzipped."""

    separator: str

    has_types = False
    may_be_gzipped = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """As the first block of the file looks."""
        with self._open(path, list(names)) as reader:
            return reader.schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """One batch a block."""
        yield from self._open(part.path, names)

    def untouched(self, path: Path, names: list[str]) -> pa.Table:
        """Every cell as text."""
        with self._open(path, names, types=dict.fromkeys(names, pa.string())) as reader:
            return reader.read_all()

    def write(self, table: pa.Table, path: Path) -> None:
        """Text as it was read; Arrow, which is faster, would put quotes around all of it."""
        if not all(pa.types.is_string(kind) for kind in table.schema.types[:-1]):
            pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter=self.separator))
            return
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=self.separator, lineterminator="\n")
            writer.writerow(table.column_names)
            for batch in table.to_batches(BATCH_ROWS):
                cells = (column.to_pylist() for column in batch.columns)
                writer.writerows(zip(*cells, strict=True))

    def _open(
        self, path: Path, names: list[str], types: dict[str, pa.DataType] | None = None
    ) -> Any:
        """A streaming reader; what looks like integers or is empty at first is read as float64.

        With `types` given, these count, and no text is taken for a missing value.
        """
        parse = pa.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        read = pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES)
        with pa.csv.open_csv(path, read, parse) as reader:
            schema = reader.schema
        refuse_lack_of(names, schema.names, path)
        for name in names or schema.names:
            if pa.types.is_binary(schema.field(name).type):
                raise InputError(
                    "column {column} is not UTF-8 text; save it as UTF-8",
                    file=path.name,
                    column=name,
                )
        nullable = types is None
        types = types or {name: _lasting_type(schema.field(name).type) for name in names}
        convert = pa.csv.ConvertOptions(
            column_types=types, include_columns=names, strings_can_be_null=nullable
        )
        return pa.csv.open_csv(path, read, parse, convert)


def _lasting_type(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


class CommaSeparated(Delimited):
    """CSV."""

    title, endings = "CSV", (".csv",)


class TabSeparated(Delimited):
    """TSV; a folder's .txt files are not taken for data, one that is named is."""

    title, endings = "TSV", (".tsv", ".txt")


class Parquet(Format):
    """Read a row group at a time."""

    title, endings, magic = "Parquet", (".parquet",), (b"PAR1",)

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From the footer."""
        schema = pa.parquet.read_schema(path)
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches end with their group, so partitions change no sum."""
        # Not the dataset reader: it keeps the column chunks of a file until the file's end.
        with pa.parquet.ParquetFile(part.path, pre_buffer=False) as file:
            groups = range(file.num_row_groups) if part.row_groups is None else part.row_groups
            for group in groups:
                yield from file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names)

    def head(self, path: Path, names: list[str]) -> pa.RecordBatch | None:
        """Less than a whole batch."""
        with pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16) as file:
            return next(file.iter_batches(HEAD_ROWS, columns=names), None)

    def untouched(self, path: Path, names: list[str]) -> pa.Table:
        """With types and zones."""
        self.schema(path, names)
        with pa.parquet.ParquetFile(path) as file:
            return file.read().select(names)

    def write(self, table: pa.Table, path: Path) -> None:
        """With Arrow's defaults."""
        pa.parquet.write_table(table, path)

    def parts(self, path: Path, rows: int) -> list[FilePart]:
        """Some row groups at a time."""
        metadata = pa.parquet.read_metadata(path)
        found: list[FilePart] = []
        groups: list[int] = []
        offset = held = 0
        for number in range(metadata.num_row_groups):
            groups.append(number)
            held += metadata.row_group(number).num_rows
            if held >= rows or number == metadata.num_row_groups - 1:
                found.append(FilePart(path, tuple(groups), offset, rows=held))
                offset, held, groups = offset + held, 0, []
        return found


class Feather(Format):
    """Feather and other Arrow files."""

    title, endings = "Feather", (".feather", ".arrow", ".ipc")
    magic = (b"ARROW1", b"FEA1")

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From the file's head."""
        schema = pa.dataset.dataset(path, format="feather").schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Those of the file, empty ones left out."""
        data = pa.dataset.dataset(part.path, format="feather")
        for batch in data.to_batches(columns=names, batch_size=BATCH_ROWS, batch_readahead=4):
            if batch.num_rows:
                yield batch

    def untouched(self, path: Path, names: list[str]) -> pa.Table:
        """With types, zones and dictionaries."""
        self.schema(path, names)
        return pa.feather.read_table(path).select(names)

    def write(self, table: pa.Table, path: Path) -> None:
        """With Arrow's defaults."""
        pa.feather.write_feather(table, str(path))


FORMATS: tuple[Format, ...] = (CommaSeparated(","), TabSeparated("\t"), Parquet(), Feather())


def formats_in_words() -> str:
    """All formats, for a sentence.

    >>> formats_in_words()
    'CSV, TSV, Parquet or Feather'
    """
    *first, last = (kind.title for kind in FORMATS)
    return f"{', '.join(first)} or {last}"


def ending_of(path: Path) -> str:
    """The ending that tells the format: that below .gz, if there is one."""
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def format_of(path: Path) -> Format | None:
    """The format of a file by its ending; None if it is none of ours."""
    for found in FORMATS:
        if ending_of(path) in found.endings and (found.may_be_gzipped or path.suffix != ".gz"):
            return found
    return None


def known_format(path: Path) -> Format:
    """The format of a file; a sentence if it is none of ours."""
    found = format_of(path)
    if found is None:
        known = listed([ending for each in FORMATS for ending in each.endings], max_items=20)
        raise InputError(
            f"the ending must be one of {known} (text files also with .gz)", file=str(path)
        )
    return found


def format_of_bytes(head: bytes) -> Format:
    r"""The format of a stream by its first bytes; text has commas or tabs.

    >>> [format_of_bytes(head).title for head in (b"PAR1", b"y\tp, q\tr\n", b"y,p\n")]
    ['Parquet', 'TSV', 'CSV']
    """
    for found in FORMATS:
        if head.startswith(found.magic or (b"\0" * 8,)):
            return found
    header = head.split(b"\n", 1)[0]
    return max(
        (kind for kind in FORMATS if isinstance(kind, Delimited)),
        key=lambda kind: header.count(kind.separator.encode()),
    )


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
