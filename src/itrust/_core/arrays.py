"""Arrays: names of their types, as JSON takes them, and randomness that is handed in.

Bits belong to (seed, row, draw).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from itrust._core.errors import Code, InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
Rng: TypeAlias = int | np.random.Generator | None
UnsignedArray = NDArray[np.unsignedinteger[Any]]
ByteArray = NDArray[np.uint8]

ROW_BYTES = 128  # that a row has side by side in a stream
FLIP_BYTES = 16  # the same where each draw takes one bit


def plain(value: Any) -> Any:
    """Turn numbers of NumPy into Python's, arrays into lists, and NaN or infinity into None.

    Members of enumerations become their values, what has a `to_dict` that, and other dataclasses
    records of their fields.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {own.name: plain(getattr(value, own.name)) for own in fields(value)}
    return value


def as_seed(rng: Rng) -> int:
    """Turn an int, a Generator or None into the one number a result can be made again from."""
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 16)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**48))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InputError(
            "{argument} must be a non-negative {kinds}, not {value}",
            argument="rng",
            value=rng,
            kinds=Code("int, a NumPy Generator or None", "whole number"),
        )
    return int(rng)


def as_generator(rng: Rng) -> np.random.Generator:
    """Turn an int, a Generator or None into a Generator; a Generator passes as it is."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(as_seed(rng))


def keyed_bits(
    seed: int, rows: range, draws: range, dtype: type[np.unsignedinteger[Any]] = np.uint32
) -> UnsignedArray:
    """Uniform integers that depend on (seed, row, draw) and on nothing else.

    So any block of rows and draws can be made alone, in any order, on any machine.
    """
    bits = np.empty((len(rows), len(draws)), dtype=dtype)
    for some, part in keyed_blocks(seed, rows, draws, dtype):
        bits[:, some.start - draws.start : some.stop - draws.start] = part
    return bits


def keyed_blocks(
    seed: int, rows: range, draws: range, dtype: type[np.unsignedinteger[Any]]
) -> Iterator[tuple[range, UnsignedArray]]:
    """The same integers, some draws at a time, as they are made.

    The draws that fill 128 bytes have a stream of their own (PCG64DXSM), in which row i has bytes
    128 i to 128 i + 127; the generator can go to any place of it at once.
    """
    size = np.dtype(dtype).itemsize
    for some, inside, block in _blocks(draws, ROW_BYTES // size):
        raw = _stream(seed, size, block, rows, ROW_BYTES)
        yield some, raw.view(np.dtype(dtype).newbyteorder("<"))[:, inside]


def keyed_flips(seed: int, rows: range, draws: range) -> BoolArray:
    """Fair coins that depend on (seed, row, draw) and on nothing else, apart from `keyed_bits`."""
    flips = np.empty((len(rows), len(draws)), dtype=bool)
    for some, inside, block in _blocks(draws, 8 * FLIP_BYTES):
        packed = _stream(seed, 0, block, rows, FLIP_BYTES)
        coins = np.unpackbits(packed, axis=1, bitorder="little").view(bool)
        flips[:, some.start - draws.start : some.stop - draws.start] = coins[:, inside]
    return flips


def _blocks(draws: range, size: int) -> Iterator[tuple[range, slice, int]]:
    """Draws by blocks: their numbers, their places in the block, and the number of the block."""
    for block in range(draws.start // size, -(-draws.stop // size)):
        start, stop = max(draws.start, block * size), min(draws.stop, (block + 1) * size)
        yield range(start, stop), slice(start - block * size, stop - block * size), block


def _stream(seed: int, purpose: int, block: int, rows: range, width: int) -> ByteArray:
    """Bytes of some rows in the stream of a block, (rows, width)."""
    words = width // 8
    stream = np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(purpose, block)))
    stream.advance(words * rows.start)
    raw = stream.random_raw(words * len(rows)).astype("<u8", copy=False)
    return raw.view(np.uint8).reshape(len(rows), width)


def keyed_fractions(seed: int, rows: IntArray, draws: IntArray) -> FloatArray:
    """Uniform numbers in [0, 1) for (row, draw) pairs (broadcast), apart from `keyed_bits`.

    The pair's own number with its bits mixed.
    """
    pair = rows.astype(np.uint64) * np.uint64(2**32) + draws.astype(np.uint64)
    key = np.uint64(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    z = stirred(pair * np.uint64(0x9E3779B97F4A7C15) + key) >> np.uint64(11)
    return z.astype(np.float64) * 2.0**-53


def stirred(words: AnyArray) -> AnyArray:
    """Mix the bits of 64-bit words, each into its own (Steele, Lea and Flood 2014)."""
    z = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def tickets(first: int, count: int) -> FloatArray:
    """A uniform number for each of `count` consecutive rows, from the row's number alone.

    The rows with the smallest tickets are a random sample of the whole, and can be found in any
    order and in parts.
    """
    rows = np.arange(first, first + count, dtype=np.int64)
    return keyed_fractions(0, rows, np.full(1, 2**32 - 1, dtype=np.int64))


def smallest_tickets(drawn: FloatArray, size: int) -> IntArray:
    """Positions of the smallest tickets, ascending."""
    if drawn.size <= size:
        return np.arange(drawn.size)
    return np.sort(np.argpartition(drawn, size)[:size])
