"""Randomness that is handed in: seeds, and bits that belong to (seed, row, draw)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from itrust._core.arrays import FloatArray, IntArray
from itrust._core.errors import Code, InputError

Rng: TypeAlias = int | np.random.Generator | None
UnsignedArray = NDArray[np.unsignedinteger[Any]]

COUNTER_BYTES = 32  # one Philox 4x64 output


def as_seed(rng: Rng) -> int:
    """Turn an int, a Generator or None into the one number a result can be made again from.

    >>> as_seed(7)
    7
    """
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 16)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**48))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InputError(
            "{argument} must be a non-negative {kinds}, not {value}",
            argument="rng",
            value=rng,
            details={"kinds": Code("int, a NumPy Generator or None", "whole number")},
        )
    return int(rng)


def as_generator(rng: Rng) -> np.random.Generator:
    """Turn an int, a Generator or None into a Generator; a Generator passes as it is."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(as_seed(rng))


def keyed_bits(
    seed: int, rows: range, draws: range, dtype: type[np.unsignedinteger[Any]] = np.uint32
) -> UnsignedArray:
    """Uniform integers that depend on (seed, row, draw) and on nothing else.

    With m words of `dtype` in 32 bytes, draw b of row i is word b mod m of the Philox output
    with key (seed, b div m) and counter i, so any block of rows and draws can be made alone,
    in any order, on any machine.

    Parameters
    ----------
    seed : int
    rows, draws : range
        Consecutive positions (step 1).
    dtype : unsigned integer type
        Different types give different, dependent numbers: use one for one purpose.

    Returns
    -------
    (len(rows), len(draws)) array of `dtype`

    Examples
    --------
    >>> whole = keyed_bits(0, range(10), range(20))
    >>> bool((keyed_bits(0, range(4, 6), range(7, 19)) == whole[4:6, 7:19]).all())
    True
    """
    key = _key(seed)
    words = COUNTER_BYTES // np.dtype(dtype).itemsize
    little = np.dtype(dtype).newbyteorder("<")
    first, last = draws.start // words, -(-draws.stop // words)
    bits = np.empty((len(rows), (last - first) * words), dtype=dtype)
    for block in range(first, last):
        philox = np.random.Philox(
            key=np.array([key, block], dtype=np.uint64), counter=[rows.start, 0, 0, 0]
        )
        raw = philox.random_raw(4 * len(rows)).astype("<u8", copy=False).view(little)
        at = (block - first) * words
        bits[:, at : at + words] = raw.reshape(len(rows), words)
    offset = draws.start - first * words
    return bits[:, offset : offset + len(draws)]


def keyed_fractions(seed: int, rows: IntArray, draws: IntArray) -> FloatArray:
    """Uniform numbers in [0, 1) for (row, draw) pairs (broadcast), apart from `keyed_bits`.

    A 64-bit finaliser (Steele, Lea and Flood 2014) of the pair's own number.
    """
    pair = rows.astype(np.uint64) * np.uint64(2**32) + draws.astype(np.uint64)
    z = pair * np.uint64(0x9E3779B97F4A7C15) + _key(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
    return z.astype(np.float64) * 2.0**-53


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


def _key(seed: int) -> np.uint64:
    return np.uint64(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
