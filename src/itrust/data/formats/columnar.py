"""Files that Arrow keeps column by column: Parquet and Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar

import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from itrust.data.formats.base import BATCH_ROWS, HEAD_ROWS, FilePart, Format, refuse_lack_of

LENGTH_BYTES = 4  # of the number that says how long a footer is


class Columnar(Format):
    """A file with a footer, whose length stands before the last bytes, the `ending`."""

    ending: ClassVar[bytes]
    has_categories = True

    def footer_bytes(self, file: BinaryIO, size: int) -> int:
        """As the file says."""
        known = LENGTH_BYTES + len(self.ending)
        file.seek(max(0, size - known))
        end = file.read(known)
        length = int.from_bytes(end[:LENGTH_BYTES], "little")
        return known + length if end.endswith(self.ending) and length <= size else 0


class Parquet(Columnar):
    """Read a row group at a time."""

    title, endings, magic = "Parquet", (".parquet",), (b"PAR1",)
    ending = b"PAR1"

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


class Feather(Columnar):
    """Feather and other Arrow files."""

    title, endings = "Feather", (".feather", ".arrow", ".ipc")
    magic = (b"ARROW1", b"FEA1")
    ending = b"ARROW1"

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
