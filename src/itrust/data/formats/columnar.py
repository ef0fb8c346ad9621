"""Files that Arrow keeps column by column: Parquet and Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, ClassVar

import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from itrust.data.formats.base import BATCH_ROWS, HEAD_ROWS, FilePart, Format, Put, refuse_lack_of

GROUP_ROWS, GROUP_BYTES = 2**20, 2**27  # of a row group that is written, whichever comes first
PACKED = "lz4" if pa.Codec.is_available("lz4") else None

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

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        """With Arrow's defaults; rows are gathered to groups of a good size."""
        held: list[pa.Table] = []

        def flush() -> None:
            if held:
                file.write_table(pa.concat_tables(held), GROUP_ROWS)
                held.clear()

        def put(table: pa.Table) -> None:
            held.append(table)
            rows, size = (
                sum(getattr(own, what) for own in held) for what in ("num_rows", "nbytes")
            )
            if rows >= GROUP_ROWS or size >= GROUP_BYTES:
                flush()

        with pa.parquet.ParquetWriter(path, schema) as file:
            yield put
            flush()

    def about_rows(self, path: Path) -> float | None:
        """From the footer."""
        return float(pa.parquet.read_metadata(path).num_rows)

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
    one_dictionary = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From the file's head."""
        schema = pa.dataset.dataset(path, format="feather").schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Those of the file, large ones cut and empty ones left out."""
        schema = self.schema(part.path, names)
        fields = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(n) for n in names])
        # Not the dataset reader: it reads ahead as far as memory goes if its rows are not wanted.
        with pa.OSFile(str(part.path)) as raw, pa.ipc.open_file(raw, options=fields) as file:
            for number in range(file.num_record_batches):
                batch = file.get_batch(number).select(names)
                for first in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(first, BATCH_ROWS)

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        """As Arrow writes tables by default."""
        packing = pa.ipc.IpcWriteOptions(compression=PACKED)
        with pa.ipc.new_file(str(path), schema, options=packing) as file:
            yield lambda table: file.write_table(table, BATCH_ROWS)

    def about_rows(self, path: Path) -> float | None:
        """From the heads of its batches."""
        return float(pa.dataset.dataset(path, format="feather").count_rows())
