"""What pages of a Parquet file unpack to, as their headers say, before Arrow makes room for it.

A header stands before every page, in Thrift's compact protocol
(https://parquet.apache.org/docs/file-format/data-pages/). Two gigabytes of one value fit into a
page of some kilobytes, and a row of one byte may mean the longest value of a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from itrust._core import free_memory
from itrust.data.formats.base import BATCH_ROWS, impossible
from itrust.data.formats.soundness import refuse_too_large

HEADER_BYTES, MAX_HEADER = 2**12, 2**24  # at first, and at most (statistics hold values)
MAX_DEPTH = 8
TYPE, UNPACKED, PACKED = 1, 2, 3  # fields of a header
DATA, INDEX, DICTIONARY, NEWER_DATA = range(4)  # types of pages
VALUES = {DATA: 5, DICTIONARY: 7, NEWER_DATA: 8}  # the field whose own first one counts values
BYTES_OF_A_VALUE = 8
FORGOTTEN = 100  # bytes: some old writers did not count the header of a dictionary
SHARE = 1 / 4  # of free memory, for the values of one batch
REPEATING = {"DELTA_BYTE_ARRAY"}  # encodings in which a value repeats the one before


# Of Thrift's compact protocol: types of values, and the lengths of those that have one.
NUMBERS, TEXT, LISTS, STRUCT, MANY = (4, 5, 6), 8, (9, 10), 12, 15
FIXED = {1: 0, 2: 0, 3: 1, 7: 8}


class DamagedHeaderError(ValueError):
    """No header of a page."""


@dataclass(frozen=True)
class ColumnPages:
    """What the pages of a column in a row group take: its dictionary, and its largest other one."""

    dictionary: int = 0
    largest: int = 0

    @property
    def size(self) -> int:
        """Both are in memory at the same time."""
        return self.dictionary + self.largest


def rows_of_batches(
    path: Path, file: pa.parquet.ParquetFile, group: int, names: Sequence[str]
) -> int:
    """How many rows of a row group may be read at once; refuses pages that do not fit into memory.

    Parameters
    ----------
    path : Path
        The file.
    file : ParquetFile
        The same file.
    group : int
        Number of the row group.
    names : sequence of str
        The columns that will be read.

    Returns
    -------
    int
        At most as many as a batch has.
    """
    chunks = list(_chunks(file, group, names))
    with path.open("rb") as raw, impossible(path, DamagedHeaderError):
        pages = [_pages_of(chunk, raw) for _, chunk in chunks]
    repeated = sum(
        BYTES_OF_A_VALUE * chunk.num_values
        for number, chunk in chunks
        if file.schema.column(number).max_repetition_level
    )
    refuse_too_large(sum(own.size for own in pages) + repeated, path, f"row group {group + 1}")
    room = SHARE * free_memory()
    longest = [
        _longest_value(path, chunk, group, own, room)
        for (_, chunk), own in zip(chunks, pages, strict=True)
        if chunk.physical_type == "BYTE_ARRAY"
    ]
    return max(1, int(min(BATCH_ROWS, room // max(sum(longest), 1))))


def _chunks(
    file: pa.parquet.ParquetFile, group: int, names: Sequence[str]
) -> Iterator[tuple[int, Any]]:
    """The columns as the file has them; nested ones are several."""
    about = file.metadata.row_group(group)
    for number in range(about.num_columns):
        chunk = about.column(number)
        path = chunk.path_in_schema
        if any(path == name or path.startswith(f"{name}.") for name in names):
            yield number, chunk


def _pages_of(chunk: Any, raw: BinaryIO) -> ColumnPages:
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    stop, values = start + chunk.total_compressed_size + FORGOTTEN, 0
    dictionary = largest = 0
    while start < stop and values < chunk.num_values:
        header, length = _header(raw, start, stop)
        kind = header.get(TYPE, INDEX)
        unpacked, packed = header.get(UNPACKED, -1), header.get(PACKED, -1)
        if min(unpacked, packed) < 0 or start + length + packed > stop:
            raise DamagedHeaderError("a page lies outside of its column")
        if kind == DICTIONARY:
            dictionary = max(dictionary, unpacked)
        else:
            largest = max(largest, unpacked)
            values += header.get(VALUES.get(kind, 0), 0)
        start += length + packed
    return ColumnPages(dictionary, largest)


def _longest_value(path: Path, chunk: Any, group: int, pages: ColumnPages, room: float) -> int:
    """Bytes of the longest text that a row can repeat; 0 where all rows would fit anyway."""
    if REPEATING & {*chunk.encodings}:
        return pages.largest
    if pages.dictionary * BATCH_ROWS <= room:
        return 0
    name = chunk.path_in_schema
    with pa.parquet.ParquetFile(
        path, read_dictionary=[name], pre_buffer=False, page_checksum_verification=True
    ) as file:
        first = next(file.iter_batches(1, row_groups=[group], columns=[name]), None)
    if first is None or not pa.types.is_dictionary(first.column(0).type):
        return pages.dictionary
    first.validate(full=True)
    lengths = pc.binary_length(first.column(0).dictionary)
    return pc.max(lengths).as_py() or 0


def _header(raw: BinaryIO, start: int, stop: int) -> tuple[dict[int, int], int]:
    """The whole numbers of a header by field, and how long it is."""
    size = HEADER_BYTES
    while True:
        if start < 0:
            raise DamagedHeaderError("a page lies before the file")
        raw.seek(start)
        held = raw.read(min(size, stop - start))
        try:
            return compact_numbers(held, 0)
        except IndexError:
            if len(held) < size or size >= MAX_HEADER:
                raise DamagedHeaderError("a page has no header") from None
            size *= 16


def compact_numbers(held: bytes, at: int, depth: int = MAX_DEPTH) -> tuple[dict[int, int], int]:
    """The whole numbers of a struct in Thrift's compact protocol, and where it ends.

    Of a struct within it, the first number is given; everything else is passed over. `IndexError`
    says that there are not enough bytes.

    >>> compact_numbers(bytes([0x15, 0x04, 0x15, 0x81, 0x01, 0x18, 0x02, 65, 66, 0x00, 99]), 0)
    ({1: 2, 2: -65}, 10)
    """
    if not depth:
        raise DamagedHeaderError("a header is nested too deeply")
    found: dict[int, int] = {}
    field = 0
    while head := held[at]:
        at += 1
        kind, step = head & 15, head >> 4
        if step:
            field += step
        else:
            number, at = _varint(held, at)
            field = (number >> 1) ^ -(number & 1)
        if kind in NUMBERS:
            number, at = _varint(held, at)
            found[field] = (number >> 1) ^ -(number & 1)
        elif kind == STRUCT:
            inner, at = compact_numbers(held, at, depth - 1)
            found[field] = inner.get(1, 0)
        else:
            at = _behind(kind, held, at, depth)
    return found, at + 1


def _varint(held: bytes, at: int) -> tuple[int, int]:
    """A whole number, seven bits a byte, and where it ends."""
    byte = held[at]
    if byte < 128:
        return byte, at + 1
    found, shift = byte & 127, 7
    while shift < 70:
        at += 1
        byte = held[at]
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at + 1
        shift += 7
    raise DamagedHeaderError("a header has a number of too many bytes")


def _behind(kind: int, held: bytes, at: int, depth: int) -> int:
    """The place behind a value that is passed over."""
    if kind in FIXED:
        return at + FIXED[kind]
    if kind in NUMBERS:
        return _varint(held, at)[1]
    if kind == TEXT:
        length, at = _varint(held, at)
        return at + length
    if kind == STRUCT:
        return compact_numbers(held, at, depth - 1)[1]
    if kind not in LISTS or depth <= 1:
        raise DamagedHeaderError("a header has a field of no known type")
    count, kind = held[at] >> 4, held[at] & 15
    at += 1
    if count == MANY:
        count, at = _varint(held, at)
    for _ in range(count):
        # Whether it is true or false takes a byte in a list.
        at = at + 1 if kind in (1, 2) else _behind(kind, held, at, depth - 1)
        if at > len(held):
            raise IndexError
    return at
