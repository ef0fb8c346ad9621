"""Rows of a file are what their types say, and fit into memory, before anybody uses them.

Arrow's readers trust a file: offsets, lengths and text in a damaged one may point anywhere, and
whatever looks at them then reads foreign memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import Code, InputError, free_memory

DAYS = -719_162, 2_932_896  # of the years 1 to 9999, from 1970
SHARE, VALUE_BYTES = 1 / 2, 8
SMALL_BYTES = 2**28  # are never refused: what is free changes from moment to moment
AS_A_STREAM = Code(
    "use the scan itself, without load(), or fewer columns",
    "read them as a stream (--stream), or name fewer columns",
)
IN_A_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def sound(batch: pa.RecordBatch, path: Path) -> pa.RecordBatch:
    """The same rows; Arrow's error where they are not what their types say."""
    batch.validate(full=True)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        for leaf in _leaves(column):
            _refuse_foreign_times(leaf, field.name, path)
    return batch


def room_for(share: float = 1.0) -> float:
    """Bytes that something may take: a share of free memory, and never very few."""
    return max(share * free_memory(), SMALL_BYTES)


def refuse_too_large(size: float, path: Path, what: str) -> None:
    """Raise if what a file says that it unpacks to does not fit into memory."""
    if size > room_for():
        raise InputError(
            "{file} says that {what} takes {size} in memory, where {free} are free; if that is so, "
            "write it in smaller batches",
            file=path.name,
            details={"what": what, "size": in_bytes(size), "free": in_bytes(free_memory())},
        )


class Room:
    """Memory for rows that are gathered: half of what is free, as they will be copied."""

    def __init__(self) -> None:
        self.left = room_for(SHARE)

    def take(self, batch: pa.RecordBatch, path: Path) -> None:
        """Raise if these rows, on top of those before, do not fit."""
        self.left -= max(batch.nbytes, VALUE_BYTES * batch.num_rows)
        if self.left < 0:
            raise InputError(
                "the rows of {file} do not fit into memory: they take more than {size}, half of "
                "what is free; {cure}",
                file=path.name,
                details={"size": in_bytes(SHARE * free_memory()), "cure": AS_A_STREAM},
            )


def decoded(column: pa.DictionaryArray, name: str) -> pa.Array:
    """The values of a dictionary, row by row; refuses a few long ones in very many rows."""
    values = column.dictionary
    if pa.types.is_large_string(values.type) or pa.types.is_string(values.type):
        lengths = pc.binary_length(values)
        size = (pc.max(lengths).as_py() or 0) * len(column)
        if size > SMALL_BYTES:
            size = pc.sum(lengths.take(column.indices)).as_py() or 0
        if size > room_for(SHARE):
            raise InputError(
                "column {column} has texts of {size} in {count} rows, more than fits into memory",
                column=name,
                count=len(column),
                details={"size": in_bytes(size)},
            )
    return column.dictionary_decode()


def in_bytes(size: float) -> str:
    """A size for people.

    >>> in_bytes(3.2e9), in_bytes(2e6), in_bytes(12), in_bytes(64_000)
    ('3.2 GB', '2 MB', '12 bytes', '64 kB')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            digits = ".2g" if size < 10 * unit else ",.0f"
            return f"{size / unit:{digits}} {name}"
    return f"{size:.0f} bytes"


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    """The plain columns that a nested one is made of."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(column.storage)
    elif pa.types.is_dictionary(kind):
        yield from _leaves(column.dictionary)
    elif pa.types.is_struct(kind):
        for child in column.flatten():
            yield from _leaves(child)
    elif pa.types.is_map(kind):
        yield from _leaves(column.keys)
        yield from _leaves(column.items)
    elif pa.types.is_run_end_encoded(kind):
        yield from _leaves(column.values)
    elif pa.types.is_nested(kind) and not pa.types.is_union(kind):
        yield from _leaves(column.flatten())
    else:
        yield column


def _refuse_foreign_times(column: pa.Array, name: str, path: Path) -> None:
    """Raise for dates that no calendar has: they would wrap around where dates become numbers."""
    kind = column.type
    if pa.types.is_date32(kind):
        steps, column = 1, column.view(pa.int32())
    elif pa.types.is_date64(kind):
        steps, column = IN_A_DAY["ms"], column.view(pa.int64())
    elif pa.types.is_timestamp(kind):
        steps, column = IN_A_DAY[kind.unit], column.view(pa.int64())
        _refuse_unknown_zone(kind.tz, name, path)
    else:
        return
    ends = pc.min_max(column)
    for end in (ends["min"].as_py(), ends["max"].as_py()):
        if end is not None and not DAYS[0] <= end // steps <= DAYS[1]:
            raise InputError(
                "column {column} holds {value}, which is no date of the years 1 to 9999",
                file=path.name,
                column=name,
                value=end,
            )


def _refuse_unknown_zone(zone: str | None, name: str, path: Path) -> None:
    if zone is None:
        return
    try:
        pa.lib.string_to_tzinfo(zone)
    except (ValueError, LookupError, OSError):
        raise InputError(
            "column {column} has the time zone {value}, which is not known here",
            file=path.name,
            column=name,
            value=zone,
        ) from None
