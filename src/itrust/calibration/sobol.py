"""Points that fill a cube evenly: Sobol's, scrambled, as `scipy.stats.qmc.Sobol` makes them.

That package takes most of a second to load, and six dimensions are all that is needed here.
"""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray

BITS = 30
# Where points move along each axis, k-th number times 2^-k: those of Joe and Kuo (2008).
DIRECTIONS = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1, 1],
        [1, 3, 5, 15, 17, 51, 85, 255],
        [1, 3, 3, 9, 29, 23, 71, 197],
        [1, 3, 1, 5, 31, 29, 81, 147],
        [1, 1, 1, 11, 31, 55, 61, 157],
        [1, 1, 3, 3, 25, 9, 43, 251],
    ]
)


def sobol_points(dimensions: int, count: int, seed: int) -> FloatArray:
    """Spread points evenly over a cube, by Matousek's random scrambling.

    Examples
    --------
    >>> points = sobol_points(2, 4, seed=0)
    >>> sorted((4 * points[:, 1]).astype(int).tolist())
    [0, 1, 2, 3]
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    places = np.arange(BITS)
    shift = rng.integers(2, size=(dimensions, BITS), dtype=np.uint32) @ 2**places
    below = np.tril(rng.integers(2, size=(dimensions, BITS, BITS), dtype=np.uint32), -1)
    mixed = below + np.eye(BITS, dtype=np.int64)
    steps = count.bit_length() - 1
    moves = DIRECTIONS[:dimensions, :steps] << (BITS - 1 - np.arange(steps))
    digits = (moves[..., None] >> places[::-1]) & 1  # the largest first
    moves = (np.einsum("dij,dkj->dki", mixed, digits) % 2) @ 2 ** places[::-1]
    numbers = np.arange(1, count)
    changed = np.log2(numbers & -numbers).astype(int)  # of Gray's code, one digit at a time
    path = np.vstack([shift, moves[:, changed].T])
    return np.asarray(np.bitwise_xor.accumulate(path, axis=0) / 2**BITS)
