"""Quadratic forms of a kernel matrix in tiles: any kernel, any dimension, no n x n array.

And what `engine="auto"` means: tiles or a factor, by cost and by the label-free certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from itrust._core import Advance, FloatArray, InputError, Setting
from itrust.data import Points, Sample, Source
from itrust.engines.factor import TOLERANCE, Factor, LowRankPlan, what_needs_all_rows
from itrust.engines.passes import ALL, Job, Totals, available_threads, one_blas_thread
from itrust.engines.plan import (
    Columns,
    Engine,
    KernelOutcome,
    NullMoments,
    Plan,
    Purpose,
    Survey,
    rows_by_code,
    third_moments,
    triangles_of,
)
from itrust.kernels import GaussianGram, Gram, LocalKernel, power_of, split_match
from itrust.nulls import AnalyticNull

MAX_DENSE_ROWS = 5_000  # for eigenvalues
SMALLEST_TILE, TILES_A_SIDE = 128, 4  # where there are few rows
ROUNDING = 1e-13  # of the diagonal, which is 1: what no feature explains
MAX_FEATURES, ROWS_A_FEATURE = 128, 8  # beyond which tiles cost no more
MAX_ROWS_FOR_EXACT = 20_000  # the statistic alone
MAX_ROWS_FOR_TILES = 60_000  # where the rank does not suffice
MAX_ROWS_FOR_MANY_TILES = 8_000  # the same where many kernels are tested together
MAX_ROWS_FOR_OTHER_TILES = 3_000  # and for those of them that lend power only
FINE = 0.001  # tolerance for the statistic alone
# Seconds, measured on two AVX-512 cores; only their ratios matter.
KERNEL_VALUE, FLOP_64, FLOP_32, REDRAW, PLAN = 2e-9, 7e-12, 3.5e-12, 2e-9, 0.04


@dataclass(frozen=True)
class Tiles(Engine):
    """Walk the upper triangle of the matrix in square tiles that fit the cache.

    Parameters
    ----------
    tile : int
        Number of rows, and of columns, of a tile.
    threads : int, optional
        Default: the cores this process may use, or OMP_NUM_THREADS if that is smaller. The
        answer is the same to the last bit for any number of threads.
    """

    tile: int = 512
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.tile < 1 or (self.threads is not None and self.threads < 1):
            problem = "{value}: tile and threads must be at least 1"
            raise InputError(problem, argument="engine", value=self)

    def __str__(self) -> str:
        return f"tiles of {self.tile}"

    def survey(self, source: Source) -> Survey:
        if source.in_memory is None:
            problem = "tiles need a Sample in memory; use scan.load() or {auto}"
            auto = {"auto": Setting("engine", "auto")}
            raise InputError(problem, argument="engine", value=self, details=auto)
        return super().survey(source)

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> TiledPlan:  # noqa: ARG002
        sample = survey.source.in_memory
        assert sample is not None
        return TiledPlan(kernel, self, sample)

    def _pass(self, survey: Survey, job: Job, advance: Advance | None) -> Totals:
        return Factor(threads=self.threads)._pass(survey, job, advance)

    def forms(
        self, gram: Gram, residuals: FloatArray, advance: Advance | None = None
    ) -> FloatArray:
        """Sum over i != j of e_i P_ij e_j for every residual column e.

        Cost: n^2/2 kernel values and n^2 B multiply-adds; memory: the tiles of one row of
        tiles, O(tile (tile + B)) a thread. Rows with different categories have no pairs where the
        kernel matches these exactly, and a Gaussian kernel of a single number is a few features.

        Parameters
        ----------
        gram : Gram (n, n)
            Symmetric.
        residuals : (n, B) array
            One column for the data or a draw, weights included.
        advance : callable, optional
            Told shares of the number of rows.

        Returns
        -------
        (B,) array
            The form of every column.
        """
        total = np.zeros(residuals.shape[1])
        with one_blas_thread():
            shares = list(self._shares(gram, residuals))
            whole = sum(size for size, _ in shares)
            threads = min(self.threads or available_threads(), len(shares))
            with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
                sums = (pool.map if pool else map)(lambda share: share[1](), shares)
                for (size, _), some in zip(shares, sums, strict=True):
                    total += some  # in the order of the rows, whatever thread came first
                    if advance:
                        advance(len(residuals) * size / whole)
        return total

    def _shares(self, gram: Gram, residuals: FloatArray) -> Iterator[_Share]:
        """What can be done at once: rows of tiles, or all of a part that has few features."""
        for part, e in _matching(gram, residuals):
            features, n = exact_features(part), len(e)
            if features is not None:
                yield 2.0 * features.size, partial(_featured_forms, features, e)
                continue
            tile = min(self.tile, max(SMALLEST_TILE, -(-n // TILES_A_SIDE)))
            for start in range(0, n, tile):
                rows = slice(start, min(start + tile, n))
                size = float((rows.stop - start) * (n - start))
                yield size, partial(_row_of_tiles, part, e, rows, tile)


# The size of a share of the forms, compared with others, and what computes it, (B,).
_Share = tuple[float, Callable[[], FloatArray]]


def _matching(gram: Gram, residuals: FloatArray) -> list[tuple[Gram, FloatArray]]:
    """All rows, or those of each exact match: entries between different ones are 0."""
    smooth, match = split_match(gram)
    if match is None:
        return [(gram, residuals)]
    groups = (rows for rows in rows_by_code(match.left) if rows.size > 1)
    return [(smooth.take(rows), residuals[rows]) for rows in groups]


def _featured_forms(features: FloatArray, e: FloatArray) -> FloatArray:
    """All pairs of a part whose kernel is a few features."""
    squares = np.square(features.T @ e).sum(axis=0)
    # The diagonal is 1; dropped: unbiased, may be negative (eq. 4).
    return np.asarray(squares - np.einsum("ib,ib->b", e, e))


def _row_of_tiles(gram: Gram, residuals: FloatArray, rows: slice, tile: int) -> FloatArray:
    """The tiles on and right of the diagonal in one row of tiles."""
    n, corner = len(residuals), gram.block(rows, rows)
    np.fill_diagonal(corner, 0.0)  # diagonal dropped: unbiased, may be negative (eq. 4)
    smoothed = corner @ residuals[rows]
    smoothed *= 0.5  # the tiles right of the diagonal stand for two
    part = np.empty_like(smoothed)
    for start in range(rows.stop, n, tile):
        cols = slice(start, min(start + tile, n))
        smoothed += np.matmul(gram.block(rows, cols), residuals[cols], out=part)
    sums: FloatArray = np.einsum("ib,ib->b", residuals[rows], smoothed)
    return 2 * sums


@dataclass(frozen=True, eq=False)
class TiledPlan(Plan):
    """A kernel that is taken as it is, tile by tile."""

    kernel: LocalKernel
    tiles: Tiles
    sample: Sample

    @property
    def gram(self) -> Gram:
        """The kernel values of all rows."""
        return self.kernel.gram(self.sample.points)

    def matrix(self, points: Points) -> FloatArray:
        return self.kernel.gram(points).block(ALL, ALL)

    def moments(self, survey: Survey) -> NullMoments:
        """Null moments of all rows; only triangles are sampled."""
        p, w = self.sample.p, self.sample.weights_or_ones / survey.unit
        v = w**2 * p * (1 - p)
        gram, m = self.gram, third_moments(p, v)
        pairs = 4 * float(self.tiles.forms(power_of(gram, 3), m[:, None])[0])
        return NullMoments.of_one(
            float(gram.diagonal() @ v), self.variance(v), triangles_of(gram, v), pairs
        )

    def variance(self, v: FloatArray) -> float:
        """Null variance of the form: 2 sum over i != j of P_ij^2 v_i v_j."""
        return 2 * float(self.tiles.forms(power_of(self.gram, 2), v[:, None])[0])

    def outcome(self, sums: Columns, advance: Advance | None = None) -> TiledOutcome:
        residuals, squares, v = sums
        over_pairs, diagonal = self.tiles.forms(self.gram, residuals, advance), self.gram.diagonal()
        return TiledOutcome(over_pairs, diagonal @ squares, float(diagonal @ v), self, v)

    def describe(self) -> str:
        return str(self.tiles)


@dataclass(frozen=True, eq=False)
class TiledOutcome(KernelOutcome):
    """What tiles have found for one kernel."""

    plan: TiledPlan
    variances: FloatArray

    def variance(self) -> float:
        """Variance of the form under the null."""
        return self.plan.variance(self.variances)

    def spectrum(self) -> FloatArray:
        """Eigenvalues of w_i w_j P_ij sqrt(v_i v_j) with a zero diagonal."""
        n = self.plan.sample.n
        if n > MAX_DENSE_ROWS:
            raise InputError(
                "Spectral() takes up to {most} rows with tiles, this sample has {count}; use "
                "Bernoulli(), which is exact, or itrust.engines.Factor()",
                argument="null",
                count=n,
                most=MAX_DENSE_ROWS,
            )
        root = np.sqrt(self.variances)
        matrix = self.plan.gram.block(ALL, ALL)
        matrix *= root[:, None]
        matrix *= root
        np.fill_diagonal(matrix, 0.0)
        return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)


def exact_features(gram: Gram) -> FloatArray | None:
    """Features F with F F' = P up to 1e-13 in every entry, if few are enough.

    A Gaussian kernel of a single number has hardly more eigenvalues above rounding than twice the
    widths that its values spread over. Each step takes the row that is explained least; what is
    left is positive semi-definite, so its diagonal bounds it. Cost O(n r^2) for rank r.
    """
    if not isinstance(gram, GaussianGram) or gram.left.shape[1] != 1:
        return None
    n = len(gram.left)
    most = min(MAX_FEATURES, n // ROWS_A_FEATURE)
    if 2 * np.ptp(gram.left) > most:
        return None
    features, left = np.empty((most, n)), np.ones(n)
    for rank in range(most):
        pivot = int(np.argmax(left))
        if left[pivot] <= ROUNDING:
            return np.ascontiguousarray(features[:rank].T)
        column = gram.block(ALL, np.array([pivot]))[:, 0]
        column -= features[:rank, pivot] @ features[:rank]
        column /= np.sqrt(left[pivot])
        features[rank] = column
        left -= column * column
        left[pivot] = 0.0
    return None


EngineChoice = Engine | Literal["auto"]


def as_engine(engine: object) -> Engine:
    """The engine that was asked for; refuse what is none."""
    if isinstance(engine, Engine):
        return engine
    if engine != "auto":
        raise InputError(
            "{argument} must be 'auto' or one of itrust.engines (Tiles(), Factor(), Dask(client)), "
            "not {value}",
            argument="engine",
            value=engine,
        )
    return Auto()


@dataclass(frozen=True)
class Auto(Engine):
    """The cheaper one of `Tiles` and `Factor` that keeps the error at 1 %.

    Rows in files take the factor; so do many rows, unless the rank does not suffice for one
    kernel on up to 60,000 rows. What needs all rows at once takes tiles. A dictionary of checks on
    many rows takes the factor with an error of 5 % (`Factor`).
    """

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Plan:
        n, null = survey.n, purpose.null
        factor = Factor()._asked_for(purpose, n)
        if null is None:  # the statistic alone
            factor = replace(factor, tolerance=FINE)
        if survey.source.in_memory is None:
            return factor.plan(survey, kernel, purpose)
        exact = Tiles().plan(survey, kernel, purpose)
        dense = not isinstance(null, AnalyticNull) or n <= MAX_DENSE_ROWS
        if what_needs_all_rows(kernel, null):
            return exact
        if null is None and n <= MAX_ROWS_FOR_EXACT:  # tiles are cheap for long
            return exact
        if null is not None and dense and _tile_seconds(n, purpose.draws) < PLAN:
            return exact
        # With few rows, choosing landmarks from many would take longer than using them.
        factor = replace(factor, pilot=min(Factor.pilot, max(1_500, n // 3)))
        plan = factor._plan(survey, kernel, purpose)
        return exact if dense and _tiles_are_better(n, plan, factor, purpose) else plan

    def _pass(self, survey: Survey, job: Job, advance: Advance | None) -> Totals:
        return Factor()._pass(survey, job, advance)


def _tile_seconds(n: int, draws: int) -> float:
    return n**2 / 2 * (KERNEL_VALUE + 2 * (1 + draws) * FLOP_64)


def _tiles_are_better(n: int, plan: LowRankPlan, factor: Factor, purpose: Purpose) -> bool:
    draws = purpose.draws
    tolerance = factor.tolerance or TOLERANCE
    if not purpose.is_main and plan.sampled_error > tolerance:
        return n <= MAX_ROWS_FOR_OTHER_TILES
    if purpose.is_main and plan.error > tolerance:
        return n <= (MAX_ROWS_FOR_MANY_TILES if purpose.among_many else MAX_ROWS_FOR_TILES)
    landmarks = len(plan.landmarks) / max(len(plan.blocks), 1)
    rank = plan.rank / max(len(plan.blocks), 1)
    row = landmarks * (KERNEL_VALUE + 2 * rank * FLOP_32)
    row += 2 * rank * (rank + 1 + draws) * FLOP_32 + draws * REDRAW
    return n * row > _tile_seconds(n, draws)
