"""What a Parquet file says of its row groups and pages, before Arrow makes room for them.

The footer, and a header before every page, are structs of Thrift
(https://parquet.apache.org/docs/file-format/). Two gigabytes of one value fit into a page of some
kilobytes, and a row of one byte may mean the longest value of a dictionary. Arrow's own view of
the footer is not asked: it ends the process where statistics of a column contradict themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from itrust._core import InputError
from itrust.data.formats.base import BATCH_ROWS, impossible
from itrust.data.formats.soundness import refuse_too_large, room_for
from itrust.data.formats.thrift import DamagedThriftError, compact_fields

END_BYTES = 8  # the length of the footer, and four letters
HEADER_BYTES, MAX_HEADER = 2**12, 2**24  # at first, and at most (statistics hold values)
SMALL_PAGE, NEIGHBOURS = 2**13, 2**17  # bytes of a page, and what is read for many of them at once
DICTIONARY_PAGE = 2
# Fields: type, unpacked and packed size, and how many values three kinds of pages have.
PAGE: dict[int, Any] = {1: {}, 2: {}, 3: {}, 5: {1: {}}, 7: {1: {}}, 8: {1: {}}}
# Type, encodings, path, values, packed size, first data page, dictionary.
COLUMN: dict[int, Any] = {1: {}, 2: {}, 3: {}, 5: {}, 7: {}, 9: {}, 11: {}}
# Of the schema: repetition and name; rows; of row groups: columns and rows.
FOOTER: dict[int, Any] = {2: {3: {}, 4: {}}, 3: {}, 4: {1: {3: COLUMN}, 3: {}}}
REPEATED, BYTE_ARRAY, DELTA_BYTE_ARRAY = 2, 6, 7
BYTES_OF_A_VALUE = 8
FORGOTTEN = 100  # bytes: some old writers did not count the header of a dictionary
SHARE = 1 / 4  # of free memory, for the values of one batch


# What a footer whose fields have other types than they should leads to.
DAMAGE = (DamagedThriftError, LookupError, TypeError, AttributeError, UnicodeDecodeError)


@dataclass(frozen=True)
class ColumnChunk:
    """A column of a row group, as the footer describes it."""

    path: tuple[str, ...]
    values: int
    start: int
    size: int
    is_text: bool
    is_nested: bool
    repeats: bool  # a value may say that it is the one before, and something more


@dataclass(frozen=True)
class RowGroup:
    """Rows that are kept together."""

    rows: int
    chunks: tuple[ColumnChunk, ...]


def row_groups(path: Path) -> tuple[RowGroup, ...]:
    """What the footer of a file says; refuses one that contradicts itself."""
    with path.open("rb") as file, impossible(path, *DAMAGE):
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - END_BYTES, 0))
        length = int.from_bytes(file.read(END_BYTES)[:4], "little")
        if length > size - END_BYTES:
            raise DamagedThriftError("its footer is longer than the file")
        file.seek(size - END_BYTES - length)
        rows, groups = _footer(file.read(length))
    if min((group.rows for group in groups), default=0) < 0 or sum(g.rows for g in groups) != rows:
        raise InputError("{file} contradicts itself on its rows; is it whole?", file=path.name)
    return groups


# An audit opens a file some ten times.
@lru_cache(maxsize=8)
def _footer(held: bytes) -> tuple[int, tuple[RowGroup, ...]]:
    found, _ = compact_fields(held, 0, FOOTER)
    repeated = {element[4] for element in found[2] if element.get(3) == REPEATED}
    groups = [
        RowGroup(group[3], tuple(_chunk(column[3], repeated) for column in group[1]))
        for group in found.get(4, ())
    ]
    return found[3], tuple(groups)


def _chunk(about: dict[int, Any], repeated: set[bytes]) -> ColumnChunk:
    # Without values there may be a dictionary and no other page, which is said to be at 0.
    starts = [start for start in (about[9], about.get(11, 0)) if start > 0]
    return ColumnChunk(
        tuple(part.decode() for part in about[3]),
        about[5],
        min(starts, default=0),
        about[7],
        about[1] == BYTE_ARRAY,
        len(about[3]) > 1 or about[3][0] in repeated,
        DELTA_BYTE_ARRAY in about[2],
    )


@dataclass(frozen=True)
class ColumnPages:
    """What the pages of a chunk take: its dictionary, and its largest other one."""

    dictionary: int = 0
    largest: int = 0

    @property
    def size(self) -> int:
        """Both are in memory at the same time."""
        return self.dictionary + self.largest


def rows_of_batches(path: Path, group: RowGroup, number: int, names: Sequence[str]) -> int:
    """How many rows of a row group fit into memory at once; refuses larger pages."""
    chunks = [chunk for chunk in group.chunks if chunk.path[0] in names]
    with impossible(path, *DAMAGE):
        stamp = _stamp(path)
        pages = [_pages_of(chunk, path, stamp) for chunk in chunks]
    nested = sum(BYTES_OF_A_VALUE * chunk.values for chunk in chunks if chunk.is_nested)
    refuse_too_large(sum(own.size for own in pages) + nested, path, f"row group {number + 1}")
    room = room_for(SHARE)
    longest = [
        _longest_value(path, chunk, number, own, room)
        for chunk, own in zip(chunks, pages, strict=True)
        if chunk.is_text
    ]
    return max(1, int(min(BATCH_ROWS, room // max(sum(longest), 1))))


def _stamp(path: Path) -> tuple[int, ...]:
    """What differs between two files that had the same path, one after the other."""
    now = path.stat()
    return now.st_size, now.st_mtime_ns, now.st_ino


# Every pass over the rows asks again; small pages may be as many as rows.
@lru_cache(maxsize=2**16)
def _pages_of(chunk: ColumnChunk, path: Path, stamp: tuple[int, ...]) -> ColumnPages:  # noqa: ARG001
    dictionary = largest = values = 0
    with path.open("rb") as raw:
        for kind, unpacked, count in _pages(chunk, raw):
            if kind == DICTIONARY_PAGE:
                dictionary = max(dictionary, unpacked)
            else:
                largest = max(largest, unpacked)
                values += count
            if values >= chunk.values:
                break
    if values != chunk.values:  # no checksum covers the headers of pages
        raise DamagedThriftError("the pages of a column hold another number of values than it has")
    return ColumnPages(dictionary, largest)


def _pages(chunk: ColumnChunk, raw: BinaryIO) -> Iterator[tuple[int, int, int]]:
    """Type, unpacked size and number of values of the pages, one after the other."""
    at, last = chunk.start, chunk.start + chunk.size
    stop = min(last + FORGOTTEN, raw.seek(0, os.SEEK_END))
    headers = _Headers(raw, stop)
    while at < last:
        header, end = headers.at(at)
        kind, unpacked, packed = header[1], header[2], header[3]
        if min(unpacked, packed) < 0 or end + packed > stop:
            raise DamagedThriftError("a page lies outside of its column")
        counts = [own[1] for field, own in header.items() if field > 3 and 1 in own]
        yield kind, unpacked, max(counts, default=0)
        at = end + packed


class _Headers:
    """Headers of pages, asked for in order; those of small pages come from one reading."""

    def __init__(self, raw: BinaryIO, stop: int) -> None:
        self.raw, self.stop = raw, stop
        self.held, self.start = b"", 0
        self.before: int | None = None

    def at(self, place: int) -> tuple[dict[int, Any], int]:
        """The fields of the header at a place, and where it ends."""
        is_near = self.before is not None and place - self.before < SMALL_PAGE
        self.before = place
        if self.start <= place < self.start + len(self.held):
            with suppress(IndexError):  # it goes on behind what is held
                return self._parsed(place)
        size = NEIGHBOURS if is_near else HEADER_BYTES
        while 0 <= place < self.stop:
            self.raw.seek(place)
            self.start, self.held = place, self.raw.read(min(size, self.stop - place))
            try:
                return self._parsed(place)
            except IndexError:
                if len(self.held) < size or size >= MAX_HEADER:
                    break
                size *= 16
        raise DamagedThriftError("a page has no header")

    def _parsed(self, place: int) -> tuple[dict[int, Any], int]:
        fields, end = compact_fields(self.held, place - self.start, PAGE)
        return fields, self.start + end


def _longest_value(
    path: Path, chunk: ColumnChunk, group: int, pages: ColumnPages, room: float
) -> int:
    """Bytes of the longest text that a row can repeat; 0 where all rows would fit anyway."""
    if chunk.repeats:
        return pages.largest
    if pages.dictionary * BATCH_ROWS <= room:
        return 0
    name = ".".join(chunk.path)
    with pa.parquet.ParquetFile(
        path, read_dictionary=[name], pre_buffer=False, page_checksum_verification=True
    ) as file:
        first = next(file.iter_batches(1, row_groups=[group], columns=[name]), None)
    if first is None or not pa.types.is_dictionary(first.column(0).type):
        return pages.dictionary
    first.validate(full=True)
    lengths = pc.binary_length(first.column(0).dictionary)
    return pc.max(lengths).as_py() or 0
