"""Where an Arrow file says that its batches and their buffers are, checked before Arrow reads them.

The footer and the heads of batches are flatbuffers (https://arrow.apache.org/docs/format/Columnar.html,
"Serialization and Interprocess Communication"). Arrow allocates what a compressed buffer says of
itself, and reads a block as often as the footer names it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from itrust.data.formats.base import impossible

MAGIC, START = b"ARROW1", 8
END = struct.Struct("<i6s")  # length of the footer, and the magic bytes again
BLOCK = struct.Struct("<qi4xq")  # offset, length of the head, length of the body
BUFFER = struct.Struct("<qq")  # offset in the body, length
LENGTH = struct.Struct("<q")
CONTINUATION = 0xFFFFFFFF
DICTIONARY, RECORDS = 2, 3  # kinds of messages
STORED = -1  # the length of a buffer that was not worth compressing
MAX_HEAD = 2**28  # bytes of the head of a batch, or of a footer
MAX_ROWS = 2**31 - 1  # of a batch, as other readers allow


@dataclass(frozen=True)
class FlatTable:
    """A table of a flatbuffer: its fields by number, 0 or None where they are not there."""

    held: bytes
    at: int

    @classmethod
    def root(cls, held: bytes) -> FlatTable:
        """The table that a flatbuffer is."""
        return cls(held, _number(held, "<I", 0))

    def number(self, field: int, form: str) -> int:
        """A number."""
        place = self._place(field)
        return 0 if place is None else _number(self.held, form, place)

    def table(self, field: int) -> FlatTable | None:
        """Another table."""
        place = self._place(field)
        return (
            None if place is None else FlatTable(self.held, place + _number(self.held, "<I", place))
        )

    def structs(self, field: int, form: struct.Struct) -> list[tuple[int, ...]]:
        """A vector of plain values."""
        place = self._place(field)
        if place is None:
            return []
        start = place + _number(self.held, "<I", place)
        count = _number(self.held, "<I", start)
        first, stop = start + 4, start + 4 + count * form.size
        if stop > len(self.held):
            raise struct.error("a vector is longer than what holds it")
        return list(form.iter_unpack(self.held[first:stop]))

    def _place(self, field: int) -> int | None:
        known = self.at - _number(self.held, "<i", self.at)
        entry = 4 + 2 * field
        if entry + 2 > _number(self.held, "<H", known):
            return None
        offset = _number(self.held, "<H", known + entry)
        return self.at + offset if offset else None


def _number(held: bytes, form: str, at: int) -> int:
    if at < 0:  # Python would count from the end
        raise struct.error("a place before the beginning")
    found: int = struct.unpack_from(form, held, at)[0]
    return found


@dataclass(frozen=True)
class Records:
    """A batch of rows, or of the values of a dictionary.

    `sizes` are those of its buffers in memory, `views` the numbers of buffers of columns of views.
    """

    rows: int
    sizes: tuple[int, ...]
    views: tuple[int, ...]


class ArrowLayout:
    """An Arrow file as its footer describes it; what cannot be so is refused."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        with self._refusing():
            self.dictionaries, self.batches = self._blocks()

    def records(self, block: tuple[int, ...], kind: int = RECORDS) -> Records:
        """What a block holds."""
        with self._refusing():
            return self._records(block, kind)

    def _refusing(self) -> Any:
        return impossible(self.path, struct.error)

    def _blocks(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        size = self.file.seek(0, os.SEEK_END)
        length, magic = END.unpack(self._read(size - END.size, END.size))
        stop = size - END.size - length
        if magic != MAGIC or length <= 0 or stop < START:
            raise struct.error("it does not end with a footer")
        footer = FlatTable.root(self._read(stop, length))
        dictionaries, batches = footer.structs(2, BLOCK), footer.structs(3, BLOCK)
        end = START
        for offset, head, body in sorted([*dictionaries, *batches]):
            if offset < end or head <= 0 or body < 0 or offset + head + body > stop:
                raise struct.error("its footer names blocks that overlap or lie outside of it")
            end = offset + head + body
        return dictionaries, batches

    def _read(self, at: int, length: int) -> bytes:
        if at < 0 or length > MAX_HEAD:
            raise struct.error("its footer or the head of a batch has an impossible length")
        self.file.seek(at)
        return self.file.read(length)

    def _records(self, block: tuple[int, ...], kind: int) -> Records:
        offset, head, body = block
        held = self._read(offset, head)
        first = _number(held, "<I", 0)
        message = FlatTable.root(held[8:] if first == CONTINUATION else held[4:])
        found = message.table(2)
        if message.number(1, "<B") != kind or found is None:
            raise struct.error("a block is not what its footer says")
        records = found if kind == RECORDS else found.table(1)
        if records is None:
            raise struct.error("a dictionary without values")
        rows = records.number(0, "<q")
        if not 0 <= rows <= MAX_ROWS:
            raise struct.error(f"a batch of {rows} rows")
        sizes = tuple(self._sizes(records, offset + head, body))
        views = tuple(count for (count,) in records.structs(4, LENGTH))
        return Records(rows, sizes, views)

    def _sizes(self, records: FlatTable, start: int, body: int) -> Iterator[int]:
        packed = records.table(3) is not None
        for offset, length in records.structs(2, BUFFER):
            if offset < 0 or length < 0 or offset + length > body:
                raise struct.error("a buffer lies outside of its batch")
            if not packed or length < LENGTH.size:
                yield length
                continue
            (told,) = LENGTH.unpack(self._read(start + offset, LENGTH.size))
            if told < STORED:
                raise struct.error(f"a buffer of {told} bytes")
            yield length if told == STORED else told


def wanted_bytes(records: Records, schema: pa.Schema, names: Sequence[str]) -> int:
    """What some columns of a batch take in memory."""
    views = iter(records.views)
    counts = [_buffers(field.type, views) for field in schema]
    if sum(counts) != len(records.sizes):  # older files have other buffers for some types
        return sum(records.sizes)
    found, at = 0, 0
    for field, count in zip(schema, counts, strict=True):
        if field.name in names:
            found += sum(records.sizes[at : at + count])
        at += count
    return found


def _buffers(kind: pa.DataType, views: Iterator[int]) -> int:
    """How many buffers a column of a type has."""
    if isinstance(kind, pa.BaseExtensionType):
        return _buffers(kind.storage_type, views)
    if pa.types.is_dictionary(kind):
        return 2
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return 2 + max(next(views, 0), 0)
    children = [kind.field(number).type for number in range(kind.num_fields)]
    return _own_buffers(kind) + sum(_buffers(child, views) for child in children)


def _own_buffers(kind: pa.DataType) -> int:
    types = pa.types
    if types.is_null(kind) or types.is_run_end_encoded(kind):
        return 0
    if types.is_struct(kind) or types.is_fixed_size_list(kind):
        return 1
    if types.is_union(kind):
        return 1 if kind.mode == "sparse" else 2
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return 3
    with_offsets = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    return 3 if any(is_one(kind) for is_one in with_offsets) else 2
