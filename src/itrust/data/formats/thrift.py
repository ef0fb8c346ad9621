"""Thrift's compact protocol, as far as Parquet files need it: some fields, the rest passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Types of values, and the lengths of those that have one.
NUMBERS, TEXT, LISTS, STRUCT = (4, 5, 6), 8, (9, 10), 12
FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
BOOLEANS = (1, 2)  # which are a type of a field, and a byte of a list
MANY = 15
MAX_DEPTH = 16
MAX_BITS = 64  # of a number


class DamagedThriftError(ValueError):
    """These bytes are no struct."""


def compact_fields(
    held: bytes, at: int, wanted: Mapping[int, Any], depth: int = MAX_DEPTH
) -> tuple[dict[int, Any], int]:
    """Some fields of a struct by number, and where it ends.

    Examples
    --------
    >>> held = bytes([0x15, 0x04, 0x15, 0x81, 0x01, 0x18, 0x02, 65, 66, 0x00, 99])
    >>> compact_fields(held, 0, {2: {}, 3: {}})
    ({2: -65, 3: b'AB'}, 10)
    """
    if depth <= 0:
        raise DamagedThriftError("a header is nested too deeply")
    found: dict[int, Any] = {}
    field = 0
    while head := held[at]:
        at += 1
        kind, step = head & 15, head >> 4
        if step:
            field += step
        else:
            field, at = _number(held, at)
        if field in wanted:
            found[field], at = _value(kind, held, at, wanted[field], depth)
        else:
            at = _behind(kind, held, at, depth)
    return found, at + 1


def _value(
    kind: int, held: bytes, at: int, wanted: Mapping[int, Any], depth: int
) -> tuple[Any, int]:
    if kind in NUMBERS:
        return _number(held, at)
    if kind == TEXT:
        length, at = _varint(held, at)
        if at + length > len(held):
            raise IndexError
        return held[at : at + length], at + length
    if kind == STRUCT:
        return compact_fields(held, at, wanted, depth - 1)
    if kind not in LISTS or depth <= 0:
        raise DamagedThriftError("a field has another type than it should have")
    count, kind, at = _list_head(held, at)
    values = []
    for _ in range(count):
        value, at = _value(kind, held, at, wanted, depth - 1)
        values.append(value)
    return values, at


def _behind(kind: int, held: bytes, at: int, depth: int) -> int:
    """The place behind a value that is passed over."""
    if kind in NUMBERS:
        return _varint(held, at)[1]
    if kind in FIXED:
        return at + FIXED[kind]
    if kind == TEXT:
        length, at = _varint(held, at)
        return at + length
    if kind == STRUCT:
        return compact_fields(held, at, {}, depth - 1)[1]
    if kind not in LISTS or depth <= 0:
        raise DamagedThriftError("a field has no known type")
    count, kind, at = _list_head(held, at)
    for _ in range(count):
        at = at + 1 if kind in BOOLEANS else _behind(kind, held, at, depth - 1)
        if at > len(held):  # a count of very many ends with the bytes
            raise IndexError
    return at


def _list_head(held: bytes, at: int) -> tuple[int, int, int]:
    """How many values of which type, and where they begin."""
    count, kind = held[at] >> 4, held[at] & 15
    if count < MANY:
        return count, kind, at + 1
    count, at = _varint(held, at + 1)
    return count, kind, at


def _number(held: bytes, at: int) -> tuple[int, int]:
    """A whole number with a sign, and where it ends."""
    found, at = _varint(held, at)
    return (found >> 1) ^ -(found & 1), at


def _varint(held: bytes, at: int) -> tuple[int, int]:
    """A whole number, seven bits a byte, and where it ends."""
    byte = held[at]
    if byte < 128:
        return byte, at + 1
    found, shift = byte & 127, 7
    while shift < MAX_BITS:
        at += 1
        byte = held[at]
        found |= (byte & 127) << shift
        if byte < 128 and not found >> MAX_BITS:
            return found, at + 1
        shift += 7
    raise DamagedThriftError("a number has more than 64 bits")
