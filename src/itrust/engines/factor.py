"""The factor engine: one pass over the rows, linear in n, with a certified error.

Landmarks are few points that stand for all, chosen from (p, x). P ~ F F' with F = K(rows,
landmarks) T. The residual R = P - F F' is positive semi-definite, so its diagonal bounds it, and
under the null the error's standard deviation relative to the statistic's own is at most
trace(V R) / ||V^(1/2) P V^(1/2)||_F (diagonal left out of the norm).

The null variance v = p(1 - p) vanishes where the model is sure, and there a bad model errs the
most. So the same ratio must be small with v plus its mean in place of v, too: confident rows get
their share of the landmarks. The certificate counts v alone.

With P ~ F F' everything is a sum over rows: S = F'We for the data and all draws, the diagonal
term, and C = F'W^2 V F for the spectral null. Sums of chunks, files and machines just add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import solve_triangular

from itrust._core import Advance, AnyArray, BoolArray, FloatArray, InputError, IntArray
from itrust.data import Pilot, Points, Rows
from itrust.engines.passes import (
    ALL,
    FunctionWork,
    Job,
    Picked,
    Products,
    Scratch,
    Summing,
    Totals,
    Work,
    accumulate,
    added,
    available_threads,
    one_blas_thread,
    ordered_map,
)
from itrust.engines.plan import (
    PILOT,
    Certificate,
    Engine,
    KernelOutcome,
    NullMoments,
    Plan,
    Purpose,
    Survey,
    some_of,
    third_moments,
    weight_unit,
)
from itrust.kernels import Gram, LocalKernel, split_match
from itrust.nulls import Null, RowwiseNull, SimulatedNull

ROWS_AT_ONCE = 1_024  # whose kernel values are in hand
FAINT_DIAGONAL = 0.1  # of the squared norm, below which traces need no correction
TOLERANCE = 0.01
# For kernels other than the main one, which lend power and no number to the report:
ROUGHLY, RANK_OF_OTHERS = 0.05, 128
LARGE_WORK = 2e10  # multiply-adds from which on the main one among many is no finer
PIVOTS_AT_ONCE = 48
SPENT_ON_LANDMARKS = 0.6  # share of the tolerance; compression takes most of the rest
SPENT_IN_ALL = 0.8  # the pilot rows are a sample, so some is left for the others
JUDGED_BY_THE_OTHERS = 2 / 3
SAMPLED_ROWS = 400
FEW_ROWS = 100
LEAST_IMPORTANCE = 1e-3
IMPORTANCE, VARIANCE = 0, 1  # the two weights of a row


@dataclass(frozen=True)
class Factor(Engine):
    """Low rank with a certificate: cost linear in the rows.

    Parameters
    ----------
    tolerance : float, optional
        Largest null error relative to the null standard deviation. Default: 1 %, but 5 % where a
        dictionary of checks meets many rows (from 40,000 with 999 draws). In the adaptive test this
        is for the default kernel; other kernels, which lend power only, get 5 % if it is smaller,
        and no certificate.
    max_rank : int
        Most landmarks for rows that share their categories. Where that does not suffice, the
        certificate says so; the p-value stays exact, for the approximate kernel.
    pilot : int
        Most rows from which landmarks are chosen.
    chunk : int
        Most rows in work at once.
    threads : int, optional
        Number of threads; default: the cores this process may use, or OMP_NUM_THREADS if that is
        smaller. The answer does not depend on it.
    """

    tolerance: float | None = None
    max_rank: int = 512
    pilot: int = PILOT
    chunk: int = 8_192
    threads: int | None = None

    def __post_init__(self) -> None:
        threads = 1 if self.threads is None else self.threads
        tolerance = TOLERANCE if self.tolerance is None else self.tolerance
        if not 0 < tolerance < 1 or min(self.max_rank, self.pilot, self.chunk, threads) < 1:
            problem, engine = "{engine}: tolerance in (0, 1), the rest at least 1", repr(self)
            raise InputError(problem, argument="engine", value=self, engine=engine)

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> LowRankPlan:
        # Landmarks come from random rows of the whole, always the same; no label is seen.
        if needy := what_needs_all_rows(kernel, purpose.null):
            raise InputError(
                "{needy} needs all rows at once; use a Sample in memory (scan.load()) with "
                "itrust.engines.Tiles()",
                argument="engine",
                needy=needy,
            )
        asked = self._asked_for(purpose, survey.n)
        with one_blas_thread():  # else the landmarks would depend on the number of threads
            made = make_plan(
                kernel,
                survey.rows.first(asked.pilot),
                tolerance=asked.tolerance or TOLERANCE,
                max_rank=asked.max_rank,
                certified=purpose.is_main,
            )
        return replace(made, unit=survey.unit)  # one for all works of a pass

    def _asked_for(self, purpose: Purpose, n: int) -> Factor:
        """Give the engine with the tolerance and rank that a purpose deserves.

        Rougher for kernels that only lend power, and among many kernels where rows and draws
        are many and no tolerance was asked for.
        """
        tolerance = TOLERANCE if self.tolerance is None else self.tolerance
        if not purpose.is_main:
            rank = min(self.max_rank, RANK_OF_OTHERS)
            return replace(self, tolerance=max(tolerance, ROUGHLY), max_rank=rank)
        large = purpose.among_many and float(n) * purpose.draws * self.max_rank > LARGE_WORK
        return replace(self, tolerance=ROUGHLY if large and self.tolerance is None else tolerance)

    def _chunk_rows(self, n: int, works: Sequence[Work] = ()) -> int:
        """Rows at once: fewer when there are few, so that all threads have work."""
        wanted = [work.max_rows for work in works if work.max_rows is not None]
        return min(self.chunk, *wanted, max(1_024, n // 8))

    @property
    def factor_of_all(self) -> Factor:
        """Itself."""
        return self

    def _pass(self, survey: Survey, job: Job, advance: Advance | None) -> Totals:
        scratch = Scratch()
        work = ordered_map(
            lambda chunk: accumulate(job, chunk, scratch),
            survey.source.chunks(self._chunk_rows(survey.n, job[0])),
            self.threads or available_threads(),
        )
        total: Totals | None = None
        with closing(work):  # an interrupt must not leave threads to the garbage collector
            for part in work:
                total = part if total is None else added(total, part, in_place=True)
                if advance:
                    advance(part[0].rows)
        if total is None:
            raise InputError("there are no rows")
        return total


def what_needs_all_rows(kernel: LocalKernel, null: Null | None) -> str | None:
    """What about a test rules a stream of chunks out, if anything."""
    if kernel.is_positional:
        return "a precomputed matrix"
    whole = isinstance(null, SimulatedNull) and not isinstance(null, RowwiseNull)
    return f"{type(null).__name__}()" if whole else None


def make_plan(
    kernel: LocalKernel, pilot: Pilot, *, tolerance: float, max_rank: int, certified: bool = True
) -> LowRankPlan:
    """Choose landmarks among the pilot rows until the certificate is below the tolerance.

    Random pivots (probability proportional to the residual variance of a row, Chen et al.
    2022) come from two thirds of the pilot rows; the others, which no pivot has flattered,
    judge the error. Then the features are rotated to their principal axes, and the smallest are
    cut off: as far as the certificate allows, or until their own null standard deviation is the
    tolerance times that of the whole, which is far more of them.
    """
    points, rng = pilot.points, np.random.default_rng(0)
    gram = kernel.gram(points)
    smooth, match = split_match(gram)
    codes = np.zeros(len(points), dtype=np.int64) if match is None else match.left
    is_judge = rng.permutation(len(points)) >= JUDGED_BY_THE_OTHERS * len(points)
    roles = np.stack([is_judge, ~is_judge])
    if len(points) < FEW_ROWS:  # then they are all rows, and all may be landmarks
        roles[:] = True
    unit = weight_unit(pilot)
    variances = pilot.variances / unit**2
    importance = variances + max(float(variances.mean()), LEAST_IMPORTANCE)
    settings = np.stack([importance, variances]), roles, max_rank
    growing = [
        _Growing(smooth, np.flatnonzero(codes == code), *settings) for code in np.unique(codes)
    ]
    _grow(growing, tolerance, 8 * max_rank, rng)
    norms = np.array([_norm(growing, kind) for kind in (IMPORTANCE, VARIANCE)])
    lost = _lost(growing)
    allowance = SPENT_IN_ALL * tolerance * norms
    left = np.maximum(allowance - lost, 0.0) if certified else allowance
    blocks, cut = _compress(growing, left, certified=certified)
    pivots = np.concatenate([block.rows[block.pivots] for block in growing]).astype(np.int64)
    error = relative_bound(float((lost + cut)[VARIANCE]), float(norms[VARIANCE]))
    exact = LowRankPlan(kernel, points.take(pivots), blocks, error, 0.0, 0.0, np.float64, unit)
    judges = np.flatnonzero(roles[0])[:SAMPLED_ROWS]
    values = gram.block(judges, judges)
    return _finished(exact, points.take(judges), variances[judges], values, tolerance)


class _Growing:
    """Pivoted Cholesky of one block of pilot rows, a few pivots at a time."""

    def __init__(
        self, smooth: Gram, rows: IntArray, weights: FloatArray, roles: BoolArray, max_rank: int
    ) -> None:
        self.smooth, self.rows, self.weights = smooth, rows, weights[:, rows]
        self.is_judge, self.is_candidate = roles[:, rows]
        self.start = smooth.diagonal()[rows]
        self.left = self.start.copy()
        self.pivots: list[int] = []
        room = min(max_rank, int(np.count_nonzero(self.is_candidate)))
        self._features = np.zeros((rows.size, room))
        self._moments = np.zeros((room, room))

    @property
    def room(self) -> int:
        return self._features.shape[1] - len(self.pivots)

    @property
    def features(self) -> FloatArray:
        return self._features[:, : len(self.pivots)]

    def moments(self, kind: int) -> FloatArray:
        """F'VF of the block's pilot rows, (r, r); with importance it is kept up to date."""
        if kind == IMPORTANCE:
            return self._moments[: len(self.pivots), : len(self.pivots)]
        return np.asarray((self.features * self.weights[kind][:, None]).T @ self.features)

    def norm2(self, kind: int) -> float:
        """Squared norm of V^(1/2) F F' V^(1/2) without the diagonal."""
        diagonal = self.weights[kind] * np.maximum(self.start - self.left, 0.0)
        return float(np.square(self.moments(kind)).sum() - np.square(diagonal).sum())

    @property
    def chance(self) -> FloatArray:
        """What each row still adds to the bound; 0 where no pivot is to be had."""
        free = (self.left > 1e-12 * self.start) & self.is_candidate & (self.room > 0)
        return np.where(free, self.weights[IMPORTANCE] * self.left, 0.0)

    @property
    def lost(self) -> FloatArray:
        """Sums over the judges of importance and of variance times what is left, (2,)."""
        return np.asarray(self.weights[:, self.is_judge] @ self.left[self.is_judge])

    def add(self, tried: IntArray, rng: np.random.Generator) -> None:
        tried, old = tried[: self.room], len(self.pivots)
        columns = self.smooth.block(self.rows, self.rows[tried])
        columns -= self.features @ self.features[tried].T
        chosen, triangle = _accepted(columns[tried], rng)
        added = solve_triangular(triangle, columns[:, chosen].T, lower=True).T
        self._features[:, old : old + len(chosen)] = added
        self.pivots.extend(tried[chosen].tolist())
        now = len(self.pivots)
        weighted = added * self.weights[IMPORTANCE][:, None]
        self._moments[:now, old:now] = self.features.T @ weighted
        self._moments[old:now, :old] = self._moments[:old, old:now].T
        self.left = np.maximum(self.left - np.square(added).sum(axis=1), 0.0)
        self.left[self.pivots] = 0.0


def _grow(
    growing: list[_Growing], tolerance: float, max_pivots: int, rng: np.random.Generator
) -> None:
    """Add pivots where most is left until the bound is met or the rank is used up."""
    block_of = np.concatenate([np.full(g.rows.size, k) for k, g in enumerate(growing)])
    place = np.concatenate([np.arange(g.rows.size) for g in growing])
    while sum(len(g.pivots) for g in growing) < max_pivots:
        chance = np.concatenate([g.chance for g in growing])
        lost, share = _lost(growing), SPENT_ON_LANDMARKS * tolerance
        # The norm with variances costs more, so it is asked for last.
        if chance.sum() == 0 or all(
            lost[kind] <= share * _norm(growing, kind) for kind in (IMPORTANCE, VARIANCE)
        ):
            return
        chance = np.round(chance / chance.max(), 4)  # so that rounding errors choose no pivot
        size = min(PIVOTS_AT_ONCE * min(len(growing), 8), int(np.count_nonzero(chance)))
        tried = rng.choice(chance.size, size, replace=False, p=chance / chance.sum())
        for number in np.unique(block_of[tried]):
            growing[number].add(place[tried[block_of[tried] == number]], rng)


def _lost(growing: list[_Growing]) -> FloatArray:
    """trace(V R) of the pilot rows, from the judges among them, with importance and variance."""
    return np.asarray(_scale(growing) * np.sum([g.lost for g in growing], axis=0))


def _scale(growing: list[_Growing]) -> float:
    """Pilot rows a judge."""
    rows = sum(g.rows.size for g in growing)
    return rows / max(sum(int(g.is_judge.sum()) for g in growing), 1)


def _norm(growing: list[_Growing], kind: int) -> float:
    """||V^(1/2) F F' V^(1/2)||_F of all blocks without the diagonal."""
    return float(np.sqrt(max(sum(g.norm2(kind) for g in growing), 0.0)))


def _accepted(block: FloatArray, rng: np.random.Generator) -> tuple[list[int], FloatArray]:
    """Candidates that still add something after those before them, and their Cholesky factor.

    Each is kept with the probability that one-by-one pivoting would have given it.
    """
    left = block.copy()
    start = np.diagonal(block).copy()
    luck = np.maximum(rng.random(len(block)), 1e-3)
    chosen: list[int] = []
    columns: list[FloatArray] = []
    for candidate in range(len(block)):
        rest = left[candidate, candidate]
        if chosen and rest < luck[candidate] * start[candidate]:
            continue
        column = left[:, candidate] / np.sqrt(rest)
        left -= np.outer(column, column)
        chosen.append(candidate)
        columns.append(column)
    return chosen, np.column_stack(columns)[chosen]


def _traces(block: _Growing, axes: FloatArray) -> FloatArray:
    """What the axes carry of the trace of the block's judges, with both weights, (2, axes)."""
    judges = block.is_judge
    return np.asarray(block.weights[:, judges] @ np.square(block.features[judges] @ axes))


def _squared_norms(block: _Growing, axes: FloatArray) -> FloatArray:
    """What each axis adds to the squared norm of those before it, with both weights, (2, axes)."""
    rotated = [axes.T @ block.moments(kind) @ axes for kind in (IMPORTANCE, VARIANCE)]
    squares = [np.square(np.tril(moments)) for moments in rotated]
    return np.array([2 * part.sum(axis=1) - np.diagonal(part) for part in squares])


def _compress(
    growing: list[_Growing], allowance: FloatArray, *, certified: bool
) -> tuple[tuple[LandmarkBlock, ...], FloatArray]:
    """Rotate each block to its principal axes and drop the smallest, as far as is allowed.

    The allowance is for the traces that are dropped or, without a certificate, for their norm, with
    both weights. Gives the blocks and those traces.
    """
    rotated = [(g, *np.linalg.eigh(g.moments(IMPORTANCE))) for g in growing]
    values = np.concatenate([values for _, values, _ in rotated])
    traces = _scale(growing) * np.hstack([_traces(g, axes) for g, _, axes in rotated])
    costs, order = traces, np.argsort(values)  # (2, all axes)
    if not certified:
        costs = np.hstack([_squared_norms(g, axes) for g, _, axes in rotated])
        allowance = np.square(allowance)
    within = (np.cumsum(costs[:, order], axis=1) <= allowance[:, None]).all(axis=0)
    dropped = np.zeros(values.size, dtype=bool)
    dropped[order[: int(np.argmin(within)) if not within.all() else within.size]] = True
    blocks, first = [], 0
    for block, own, axes in rotated:
        kept = axes[:, ~dropped[first : first + own.size]]
        if kept.shape[1]:
            corner = block.features[block.pivots]
            projection = solve_triangular(corner.T, kept, lower=False)
            blocks.append((first + np.arange(own.size), projection))
        first += own.size
    return tuple(blocks), np.asarray(traces[:, dropped].sum(axis=1))


def _finished(
    plan: LowRankPlan, judges: Points, variances: FloatArray, exact: FloatArray, tolerance: float
) -> LowRankPlan:
    """Add the sampled error, and single precision where it costs nothing that counts."""
    single_plan = replace(
        plan,
        blocks=tuple((marks, axes.astype(np.float32)) for marks, axes in plan.blocks),
        dtype=np.float32,
    )
    double, single = plan.matrix(judges), single_plan.matrix(judges)
    weights = np.sqrt(np.outer(variances, variances))
    np.fill_diagonal(weights, 0.0)
    norm = float(np.linalg.norm(weights * exact))
    errors = [float(np.linalg.norm(weights * part)) for part in (exact - double, single - double)]
    sampled, rounding = [error / norm if norm else np.nan for error in errors]
    if rounding < 0.05 * tolerance:
        return replace(single_plan, sampled_error=sampled, rounding=rounding)
    return replace(plan, sampled_error=sampled)


# Landmarks that share their exact matches, and the map from kernel values to features (m, rank).
LandmarkBlock = tuple[IntArray, AnyArray]


@dataclass(frozen=True, eq=False)
class LowRankPlan(Plan):
    """Landmarks and features in place of a kernel; made without labels."""

    kernel: LocalKernel
    landmarks: Points
    blocks: tuple[LandmarkBlock, ...]
    error: float
    sampled_error: float
    rounding: float
    dtype: DTypeLike
    unit: float

    @property
    def ranks(self) -> list[int]:
        """Number of features of every block."""
        return [int(projection.shape[1]) for _, projection in self.blocks]

    @property
    def rank(self) -> int:
        return sum(self.ranks)

    @property
    def work(self) -> Work:
        return FunctionWork(self._begin, self.unit)

    def features(self, points: Points) -> list[tuple[Picked, int, AnyArray]]:
        """Rows, number of the block and features (rank, rows) of every block that has rows."""
        points = points.like(self.landmarks)
        smooth, match = split_match(self.kernel.gram(points, self.landmarks))
        if match is None:
            return [(ALL, 0, self._features(smooth, ALL, self.blocks[0]))] if self.blocks else []
        order = np.argsort(match.left, kind="stable")
        ordered = match.left[order]
        found: list[tuple[Picked, int, AnyArray]] = []
        for number, block in enumerate(self.blocks):
            code = match.right[block[0][0]]
            first, last = np.searchsorted(ordered, [code, code + 1])
            if first < last:
                rows = order[first:last]
                found.append((rows, number, self._features(smooth, rows, block)))
        return found

    def _features(self, smooth: Gram, rows: Picked, block: LandmarkBlock) -> AnyArray:
        numbers, (landmarks, projection) = np.arange(smooth.shape[0])[rows], block
        features = np.empty((projection.shape[1], numbers.size), dtype=self.dtype)
        for at in range(0, numbers.size, ROWS_AT_ONCE):
            some = numbers[at : at + ROWS_AT_ONCE]
            values = smooth.block_as(some, landmarks, self.dtype)
            np.matmul(projection.T, values.T, out=features[:, at : at + ROWS_AT_ONCE])
        return features

    def matrix(self, points: Points) -> FloatArray:
        result = np.zeros((len(points), len(points)))
        for rows, _, features in self.features(points):
            index = np.arange(len(points))[rows]
            result[np.ix_(index, index)] = features.T @ features
        return result

    def moments(self, survey: Survey) -> NullMoments:
        """Null moments on the pilot rows, block by block; the pass makes good for the others."""
        points, v = survey.pilot.points, survey.pilot.variances / survey.unit**2
        m = third_moments(points.p, v)
        totals = np.zeros(4)
        for rows, _, features in self.features(points):
            inside = np.arange(len(points))[rows]
            f = features[:, some_of(inside.size)].astype(float)
            some = inside[some_of(inside.size)]
            p = f.T @ f
            expected = float(np.diagonal(p) @ v[some])
            np.fill_diagonal(p, 0.0)
            root, more = np.sqrt(v[some]), inside.size / some.size
            a = p * root * root[:, None]
            variance, triangles = 2 * np.square(a).sum(), 8 * np.sum(a * (a @ a))
            pairs = 4 * m[some] @ (p * p * p) @ m[some]
            totals += expected * more, variance * more**2, triangles * more**3, pairs * more**2
        return NullMoments.of_one(*totals)

    def _begin(self, chunk: Rows, w: FloatArray, columns: int) -> Summing:
        """Forms of a chunk, by its features."""
        v, explained = w**2 * chunk.p * (1 - chunk.p), np.zeros(len(w))
        moments = [np.zeros((rank, rank)) for rank in self.ranks]
        forms = [np.zeros((rank, columns)) for rank in self.ranks]
        diagonal, targets = np.zeros((1, columns)), []
        for rows, number, features in self.features(chunk.points):
            squares = np.einsum("ri,ri->i", features, features)
            explained[rows] = squares
            scaled = features * np.sqrt(v[rows]).astype(self.dtype)
            moments[number] += scaled @ scaled.T
            if chunk.weights is not None:
                features *= w[rows].astype(self.dtype)
                squares *= np.square(w[rows])
            products = Products(features.T, squares[:, None], chunk.p[rows], rows)
            targets.append((products, forms[number], diagonal))

        def finished() -> LowRankSums:
            residuals, points = w * (chunk.y - chunk.p), chunk.points.like(self.landmarks)
            left = np.maximum(self.kernel.gram(points).diagonal() - explained, 0.0)
            expected, trace_left = float(v @ explained), float(v @ left)
            diagonal2 = float(np.square(v * explained).sum())
            worst_root = float(np.sum(np.abs(residuals) * np.sqrt(left)))
            worst_square = float(np.sum(np.square(residuals) * left))
            numbers = expected, trace_left, diagonal2, worst_root, worst_square
            return tuple(forms), diagonal[0], tuple(moments), numbers

        return Summing(targets, finished)

    def can_vary(self, moments: NullMoments) -> bool:  # noqa: ARG002
        return self.rank > 0

    def outcome(self, sums: LowRankSums, advance: Advance | None = None) -> LowRankOutcome:  # noqa: ARG002
        forms, diagonal, moments, (expected, *others) = sums
        squares = [np.square(s).sum(axis=0) for s in forms]
        over_pairs = np.asarray(reduce(np.add, squares, 0 * diagonal) - diagonal)
        return LowRankOutcome(over_pairs, diagonal, expected, self, moments, *others)

    def describe(self) -> str:
        return f"factor of rank {self.rank}"


# What some rows contribute to the forms of one kernel. For every block of the plan S, data first,
# (rank, 1 + draws); the sum of w^2 e^2 (FF')_ii; for every block C (rank, rank); and five numbers:
# the mean of that sum under the null, then those of `LowRankOutcome`.
LowRankSums = tuple[tuple[FloatArray, ...], FloatArray, tuple[FloatArray, ...], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class LowRankOutcome(KernelOutcome):
    """What the sums of all rows give for one kernel."""

    plan: LowRankPlan
    moments: tuple[FloatArray, ...]  # C of every block
    trace_left: float
    diagonal2: float
    worst_root: float
    worst_square: float

    @property
    def norm2(self) -> float:
        """Squared norm of V^(1/2) F F' V^(1/2) without its diagonal."""
        return max(sum(float(np.square(c).sum()) for c in self.moments) - self.diagonal2, 0.0)

    def variance(self) -> float:
        """Twice the squared norm of V^(1/2) F F' V^(1/2) without its diagonal."""
        return 2 * self.norm2

    def refined(self, moments: NullMoments) -> NullMoments:
        """The pass has seen all rows, the plan only some."""
        ratio = self.expected / moments.expected[0]
        triangles = moments.triangles * ratio**3
        if self.diagonal2 < FAINT_DIAGONAL * self.norm2:  # then all rows can tell
            triangles = np.array([8 * sum(float(np.trace(c @ c @ c)) for c in self.moments)])
        return replace(
            moments,
            expected=np.array([self.expected]),
            variance=np.array([2 * self.norm2]),
            triangles=triangles,
            pairs=moments.pairs * ratio**2,
        )

    def spectrum(self) -> FloatArray:
        """Weights l_j of the limit law sum l_j (chi2 - 1); the variance is the exact one."""
        values = np.concatenate([np.linalg.eigvalsh(c) for c in self.moments] or [np.empty(0)])
        total = float(np.square(values).sum())
        return np.asarray(values * np.sqrt(self.norm2 / total) if total else values)

    def certificate(self, pair_weight: float) -> Certificate:
        """The bounds for these rows."""
        plan, norm = self.plan, float(np.sqrt(self.norm2))
        rounding = plan.rounding if np.isfinite(plan.rounding) else 0.0
        slack = 10 * rounding * norm
        low, high = -self.worst_square - slack, self.worst_root**2 - self.worst_square + slack
        return Certificate(
            rank=plan.rank,
            bound=relative_bound(self.trace_left, norm) + rounding,
            sampled=plan.sampled_error,
            worst_case=(low / pair_weight, high / pair_weight),
            precision=str(np.dtype(plan.dtype)),
        )


def relative_bound(trace: float, norm: float) -> float:
    """trace(V R) over the norm of P, of which the norm of F F' can be above by the trace."""
    if trace <= 0:
        return 0.0
    return trace / (norm - trace) if norm > trace else np.inf
