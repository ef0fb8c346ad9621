"""Randomness that is handed in: seeds, and bits that belong to (seed, row, draw)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from itrust.errors import InputError

Rng: TypeAlias = int | np.random.Generator | None

DRAWS_PER_COUNTER = 8  # one Philox 4x64 output holds eight 32-bit numbers


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
        raise InputError(f"rng must be a non-negative int, a NumPy Generator or None, not {rng!r}")
    return int(rng)


def as_generator(rng: Rng) -> np.random.Generator:
    """Turn an int, a Generator or None into a Generator; a Generator passes as it is."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(as_seed(rng))


def keyed_bits(seed: int, rows: range, draws: range) -> NDArray[np.uint32]:
    """Uniform 32-bit numbers that depend on (seed, row, draw) and on nothing else.

    Draw b of row i is word b mod 8 of the Philox output with key (seed, b div 8) and counter
    i, so any block of rows and draws can be made alone, in any order, on any machine.

    Parameters
    ----------
    seed : int
    rows, draws : range
        Consecutive positions (step 1).

    Returns
    -------
    (len(rows), len(draws)) array of uint32

    Examples
    --------
    >>> whole = keyed_bits(0, range(10), range(20))
    >>> bool((keyed_bits(0, range(4, 6), range(7, 19)) == whole[4:6, 7:19]).all())
    True
    """
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    first, last = draws.start // DRAWS_PER_COUNTER, -(-draws.stop // DRAWS_PER_COUNTER)
    bits = np.empty((len(rows), (last - first) * DRAWS_PER_COUNTER), dtype=np.uint32)
    for block in range(first, last):
        philox = np.random.Philox(
            key=np.array([key, block], dtype=np.uint64), counter=[rows.start, 0, 0, 0]
        )
        words = philox.random_raw(4 * len(rows)).astype("<u8", copy=False).view("<u4")
        at = (block - first) * DRAWS_PER_COUNTER
        bits[:, at : at + DRAWS_PER_COUNTER] = words.reshape(len(rows), DRAWS_PER_COUNTER)
    offset = draws.start - first * DRAWS_PER_COUNTER
    return bits[:, offset : offset + len(draws)]
