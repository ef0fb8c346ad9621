"""Files that Arrow keeps column by column: Parquet and Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from itrust._core import InputError, free_memory
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    Put,
    in_bytes,
    refuse_empty,
    refuse_lack_of,
    room_for,
    sound,
)

GROUP_ROWS, GROUP_BYTES = 2**20, 2**27  # of a row group that is written, whichever comes first
BUFFER_BYTES = 2**20  # that are read at once of a column
PACKED = "lz4" if pa.Codec.is_available("lz4") else None


class Parquet(Format):
    """Read a row group at a time."""

    title, endings, magic = "Parquet", (".parquet",), (b"PAR1",)
    has_categories = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From the footer."""
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
                _refuse_large_group(file, number, names, part.path)
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[number], columns=names):
                    left -= batch.num_rows
                    yield sound(batch, part.path)
                if left:
                    raise InputError(
                        "row group {group} of {file} has other rows than it says; is it whole?",
                        file=part.path.name,
                        details={"group": number + 1},
                    )

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        """With checksums of pages; rows are gathered to groups of a good size."""
        tables: list[pa.Table] = []

        def flush() -> None:
            if tables:
                file.write_table(pa.concat_tables(tables), GROUP_ROWS)
                tables.clear()

        def put(table: pa.Table) -> None:
            tables.append(table)
            rows, size = sum(t.num_rows for t in tables), sum(t.nbytes for t in tables)
            if rows >= GROUP_ROWS or size >= GROUP_BYTES:
                flush()

        with pa.parquet.ParquetWriter(path, schema, write_page_checksum=True) as file:
            yield put
            flush()

    def about_rows(self, path: Path) -> float | None:
        """From the footer."""
        return float(sum(_counts(path)))

    def parts(self, path: Path, rows: int) -> list[FilePart]:
        """Some row groups at a time."""
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
        raise InputError("{file} contradicts itself on its rows; is it whole?", file=path.name)
    return counts


def _refuse_large_group(
    file: pa.parquet.ParquetFile, number: int, names: list[str], path: Path
) -> None:
    """Raise if some columns of a row group do not fit into memory when they are unpacked."""
    group, room = file.metadata.row_group(number), room_for()
    if group.total_byte_size <= room:
        return
    # Arrow ends the process where it is asked for a column whose statistics contradict themselves;
    # its reader, which looks at them first, raises an error.
    next(file.iter_batches(1, row_groups=[number], columns=names), None)
    leaves = range(group.num_columns)
    wanted = [leaf for leaf in leaves if file.schema.column(leaf).path.split(".")[0] in names]
    size = sum(group.column(leaf).total_uncompressed_size for leaf in wanted)
    if size > room:
        raise InputError(
            "{file} says that row group {group} takes {size} in memory, where {free} are free; if "
            "that is so, write it in smaller groups",
            file=path.name,
            details={
                "group": number + 1,
                "size": in_bytes(size),
                "free": in_bytes(free_memory()),
            },
        )


class Feather(Format):
    """Feather and other Arrow files."""

    title, endings = "Feather", (".feather", ".arrow", ".ipc")
    magic = (b"ARROW1", b"FEA1")
    has_categories = one_dictionary = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From the file's footer."""
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
        with (
            pa.OSFile(str(part.path)) as raw,
            pa.ipc.open_file(raw, options=fields) as file,
        ):
            for number in range(file.num_record_batches):
                batch = sound(file.get_batch(number).select(names), part.path)
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
        from pyarrow.dataset import dataset  # which takes a while to load

        return float(dataset(path, format="ipc").count_rows())


FORMATS: tuple[Format, ...] = (Parquet(), Feather())
