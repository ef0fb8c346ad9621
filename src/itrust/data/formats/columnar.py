"""Files that Arrow keeps column by column: Parquet and Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    Put,
    refuse_empty,
    refuse_lack_of,
    refused,
    sound,
)

GROUP_ROWS = 2**20  # of a row group that is written, at most
BUFFER_BYTES = 2**20  # that are read at once of a column
PACKED = "lz4" if pa.Codec.is_available("lz4") else None


class Parquet(Format):
    """Read a row group at a time."""

    title, endings, magic = "Parquet", (".parquet",), (b"PAR1",)
    has_categories = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        refuse_empty(path)
        schema = pa.parquet.read_schema(path)
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches end with their group, so partitions change no sum."""
        # Not the dataset reader: it keeps the column chunks of a file until the file's end.
        with pa.parquet.ParquetFile(
            part.path,
            pre_buffer=False,
            buffer_size=BUFFER_BYTES,
            page_checksum_verification=True,
        ) as file:
            every = range(file.num_row_groups)
            for number in every if part.row_groups is None else part.row_groups:
                left = file.metadata.row_group(number).num_rows
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[number], columns=names):
                    left -= batch.num_rows
                    refuse_lack_of(names, batch.schema.names, part.path)  # as its other schema says
                    yield sound(batch, part.path)
                if left:
                    sentence = (
                        "row group {group} of {file} has other rows than it says; is it whole?"
                    )
                    raise refused(part.path, sentence, group=number + 1)

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        with pa.parquet.ParquetWriter(path, schema, write_page_checksum=True) as file:
            yield lambda table: file.write_table(table, GROUP_ROWS)

    def about_rows(self, path: Path) -> float | None:
        return float(sum(_counts(path)))

    def parts(self, path: Path, rows: int) -> list[FilePart]:
        parts: list[FilePart] = []
        groups: list[int] = []
        offset = gathered = 0
        counts = _counts(path)
        for number, count in enumerate(counts):
            groups.append(number)
            gathered += count
            if gathered >= rows or number == len(counts) - 1:
                parts.append(FilePart(path, tuple(groups), offset, rows=gathered))
                offset, gathered, groups = offset + gathered, 0, []
        return parts


def _counts(path: Path) -> list[int]:
    """The rows of each row group; refuses a footer that contradicts itself."""
    about = pa.parquet.read_metadata(path)
    counts = [about.row_group(number).num_rows for number in range(about.num_row_groups)]
    if min(counts, default=0) < 0 or sum(counts) != about.num_rows:
        raise refused(path, "{file} contradicts itself on its rows; is it whole?")
    return counts


class Feather(Format):
    """Feather and other Arrow files."""

    title, endings = "Feather", (".feather", ".arrow", ".ipc")
    magic = (b"ARROW1", b"FEA1")
    has_categories = one_dictionary = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        refuse_empty(path)
        with pa.OSFile(str(path)) as raw, pa.ipc.open_file(raw) as file:
            schema = file.schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Those of the file, large ones cut and empty ones left out."""
        schema = self.schema(part.path, names)
        fields = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(n) for n in names])
        # Not the dataset reader: it reads ahead as far as memory goes if its rows are not wanted.
        with pa.OSFile(str(part.path)) as raw, pa.ipc.open_file(raw, options=fields) as file:
            for number in range(file.num_record_batches):
                batch = sound(file.get_batch(number).select(names), part.path)
                for first in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(first, BATCH_ROWS)

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        packing = pa.ipc.IpcWriteOptions(compression=PACKED)
        with pa.ipc.new_file(str(path), schema, options=packing) as file:
            yield lambda table: file.write_table(table, BATCH_ROWS)

    def about_rows(self, path: Path) -> float | None:
        from pyarrow.dataset import dataset  # which takes a while to load

        return float(dataset(path, format="ipc").count_rows())


FORMATS: tuple[Format, ...] = (Parquet(), Feather())
