"""Files that Arrow keeps column by column: Parquet and Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa
import pyarrow.parquet

from itrust._core import InputError
from itrust.data.formats.arrow_layout import DICTIONARY, ArrowLayout, wanted_bytes
from itrust.data.formats.base import (
    BATCH_ROWS,
    HEAD_ROWS,
    FilePart,
    Format,
    Put,
    refuse_empty,
    refuse_lack_of,
)
from itrust.data.formats.parquet_layout import RowGroup, row_groups, rows_of_batches
from itrust.data.formats.soundness import refuse_too_large, sound

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
        refuse_empty(path)
        schema = pa.parquet.read_schema(path)
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches end with their group, so partitions change no sum."""
        with _opened(part.path) as file:
            known = row_groups(part.path)
            for number in range(len(known)) if part.row_groups is None else part.row_groups:
                yield from _of_group(part.path, file, known[number], number, names, BATCH_ROWS)

    def head(self, path: Path, names: list[str]) -> pa.RecordBatch | None:
        """Less than a whole batch."""
        with _opened(path, buffer_size=2**16) as file:
            found = (
                batch
                for number, group in enumerate(row_groups(path))
                for batch in _of_group(path, file, group, number, names, HEAD_ROWS)
            )
            with closing(found):
                return next(found, None)

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        """With checksums of pages; rows are gathered to groups of a good size."""
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

        with pa.parquet.ParquetWriter(path, schema, write_page_checksum=True) as file:
            yield put
            flush()

    def about_rows(self, path: Path) -> float | None:
        """From the footer."""
        return float(sum(group.rows for group in row_groups(path)))

    def parts(self, path: Path, rows: int) -> list[FilePart]:
        """Some row groups at a time."""
        counts = [group.rows for group in row_groups(path)]
        found: list[FilePart] = []
        groups: list[int] = []
        offset = held = 0
        for number, count in enumerate(counts):
            groups.append(number)
            held += count
            if held >= rows or number == len(counts) - 1:
                found.append(FilePart(path, tuple(groups), offset, rows=held))
                offset, held, groups = offset + held, 0, []
        return found


def _opened(path: Path, **settings: Any) -> pa.parquet.ParquetFile:
    # Not the dataset reader: it keeps the column chunks of a file until the file's end.
    return pa.parquet.ParquetFile(
        path, pre_buffer=False, page_checksum_verification=True, **settings
    )


def _of_group(
    path: Path,
    file: pa.parquet.ParquetFile,
    group: RowGroup,
    number: int,
    names: list[str],
    most: int,
) -> Iterator[pa.RecordBatch]:
    """The rows of a row group, all that it says it has, a number at most at a time."""
    rows, left = min(most, rows_of_batches(path, group, number, names)), group.rows
    for batch in file.iter_batches(rows, row_groups=[number], columns=names):
        left -= batch.num_rows
        yield sound(batch, path)
    if left:
        raise InputError(
            "row group {group} of {file} has other rows than it says; is it whole?",
            file=path.name,
            details={"group": number + 1},
        )


class Feather(Columnar):
    """Feather and other Arrow files."""

    title, endings = "Feather", (".feather", ".arrow", ".ipc")
    magic = (b"ARROW1", b"FEA1")
    ending = b"ARROW1"
    one_dictionary = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From the file's footer."""
        refuse_empty(path)
        with self._layout(path), pa.OSFile(str(path)) as raw, pa.ipc.open_file(raw) as file:
            schema = file.schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Those of the file, large ones cut and empty ones left out."""
        schema = self.schema(part.path, names)
        fields = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(n) for n in names])
        # Not the dataset reader: it reads ahead as far as memory goes if its rows are not wanted.
        with (
            self._layout(part.path) as layout,
            pa.OSFile(str(part.path)) as raw,
            pa.ipc.open_file(raw, options=fields) as file,
        ):
            _refuse_large_dictionaries(layout)
            for number, block in enumerate(layout.batches):
                size = wanted_bytes(layout.records(block), schema, names)
                refuse_too_large(size, part.path, f"batch {number + 1}")
                batch = sound(file.get_batch(number).select(names), part.path)
                for first in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(first, BATCH_ROWS)

    @contextmanager
    def _layout(self, path: Path) -> Iterator[ArrowLayout]:
        with path.open("rb") as file:
            yield ArrowLayout(path, file)

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        """As Arrow writes tables by default."""
        packing = pa.ipc.IpcWriteOptions(compression=PACKED)
        with pa.ipc.new_file(str(path), schema, options=packing) as file:
            yield lambda table: file.write_table(table, BATCH_ROWS)

    def about_rows(self, path: Path) -> float | None:
        """From the heads of its batches."""
        with self._layout(path) as layout:
            return float(sum(layout.records(block).rows for block in layout.batches))


def _refuse_large_dictionaries(layout: ArrowLayout) -> None:
    """Raise if all dictionaries together, which Arrow reads at once, do not fit into memory."""
    found = (layout.records(block, DICTIONARY) for block in layout.dictionaries)
    size = sum(sum(records.sizes) for records in found)
    refuse_too_large(size, layout.path, "its dictionaries")
