"""Quadratic forms of a kernel matrix in tiles: any kernel, any dimension, no n x n array."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from itrust._core import Advance, FloatArray, InputError
from itrust.engines.threads import available_threads, one_blas_thread
from itrust.kernels import Gram


@dataclass(frozen=True)
class Tiles:
    """Walk the upper triangle of the matrix in square tiles that fit the cache.

    Parameters
    ----------
    tile : int
        Rows and columns of a tile.
    threads : int, optional
        Default: the cores this process may use, or OMP_NUM_THREADS if that is smaller. The
        answer is the same to the last bit for any number of threads.
    """

    tile: int = 512
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.tile < 1 or (self.threads is not None and self.threads < 1):
            raise InputError(f"{self!r}: tile and threads must be at least 1")

    def __str__(self) -> str:
        return f"tiles of {self.tile}"

    def forms(
        self, gram: Gram, residuals: FloatArray, advance: Advance | None = None
    ) -> FloatArray:
        """Sum over i != j of e_i P_ij e_j for every residual column e.

        Cost: n^2/2 kernel values and n^2 B multiply-adds; memory: the tiles of one row of
        tiles, O(tile (tile + B)) a thread.

        Parameters
        ----------
        gram : Gram (n, n)
            Symmetric.
        residuals : (n, B) array
        advance : callable, optional
            Told the number of kernel values done.

        Returns
        -------
        (B,) array
        """
        total = np.zeros(residuals.shape[1])
        starts = range(0, len(residuals), self.tile)
        threads = min(self.threads or available_threads(), len(starts))
        with (
            one_blas_thread(),
            ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool,
        ):
            work = (pool.map if pool else map)(
                lambda start: self._row_of_tiles(gram, residuals, start), starts
            )
            for start, part in zip(starts, work, strict=True):
                total += part  # in the order of the rows, whatever thread came first
                if advance:
                    advance(min(self.tile, len(residuals) - start) * (len(residuals) - start))
        return total

    def _row_of_tiles(self, gram: Gram, residuals: FloatArray, start: int) -> FloatArray:
        """Contribution of the tiles on and right of the diagonal in one row of tiles, (B,)."""
        n = len(residuals)
        rows = slice(start, min(start + self.tile, n))
        corner = gram.block(rows, rows)
        np.fill_diagonal(corner, 0.0)  # diagonal dropped: unbiased, may be negative (eq. 4)
        smoothed = corner @ residuals[rows]
        smoothed *= 0.5  # the tiles right of the diagonal stand for two
        part = np.empty_like(smoothed)
        for cols in self._slices(rows.stop, n):
            smoothed += np.matmul(gram.block(rows, cols), residuals[cols], out=part)
        sums: FloatArray = np.einsum("ib,ib->b", residuals[rows], smoothed)
        return 2 * sums

    def _slices(self, start: int, stop: int) -> Iterator[slice]:
        for at in range(start, stop, self.tile):
            yield slice(at, min(at + self.tile, stop))
