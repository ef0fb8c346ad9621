"""A kernel of low rank: its plan, the sums of one pass over the rows, and what they give.

With P ~ F F' everything is a sum over rows: S = F'We for the data and all draws, the diagonal
term, and C = F'W^2 V F for the spectral null. Sums of chunks, files and machines just add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import Advance, AnyArray, FloatArray, IntArray
from itrust.data import Points, Rows
from itrust.engines.passes import ALL, Additive, Drawn, Picked, Products, Work
from itrust.engines.plan import (
    Certificate,
    Columns,
    KernelOutcome,
    NullMoments,
    Plan,
    Survey,
    some_of,
    third_moments,
)
from itrust.kernels import Gram, LocalKernel, split_match

ROWS_AT_ONCE = 1_024  # whose kernel values are in hand
FAINT_DIAGONAL = 0.1  # of the squared norm, below which traces need no correction


@dataclass(frozen=True, eq=False)
class LandmarkBlock:
    """Landmarks that share their exact matches, and the map from kernel values to features."""

    landmarks: IntArray
    projection: AnyArray  # (landmarks, rank)

    @property
    def rank(self) -> int:
        """Number of features."""
        return int(self.projection.shape[1])


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
    def rank(self) -> int:
        """Number of features of all blocks."""
        return sum(block.rank for block in self.blocks)

    @property
    def work(self) -> KernelWork:
        return KernelWork(self, self.unit)

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
            code = match.right[block.landmarks[0]]
            first, last = np.searchsorted(ordered, [code, code + 1])
            if first < last:
                rows = order[first:last]
                found.append((rows, number, self._features(smooth, rows, block)))
        return found

    def _features(self, smooth: Gram, rows: Picked, block: LandmarkBlock) -> AnyArray:
        numbers = np.arange(smooth.shape[0])[rows]
        features = np.empty((block.rank, numbers.size), dtype=self.dtype)
        for at in range(0, numbers.size, ROWS_AT_ONCE):
            some = numbers[at : at + ROWS_AT_ONCE]
            values = smooth.block_as(some, block.landmarks, self.dtype)
            np.matmul(block.projection.T, values.T, out=features[:, at : at + ROWS_AT_ONCE])
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

    def can_vary(self, moments: NullMoments) -> bool:  # noqa: ARG002
        return self.rank > 0

    def outcome(
        self,
        sums: LowRankSums,
        columns: Columns | None = None,  # noqa: ARG002
        advance: Advance | None = None,  # noqa: ARG002
    ) -> LowRankOutcome:
        return LowRankOutcome(self, sums)

    def describe(self) -> str:
        return f"factor of rank {self.rank}"


@dataclass(frozen=True, eq=False)
class KernelWork(Work):
    """The forms of one kernel, by the features of its plan."""

    plan: LowRankPlan
    unit: float

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> _KernelPart:
        return _KernelPart(self.plan, chunk, weights, columns)


class _KernelPart:
    """What one chunk contributes, being made."""

    def __init__(self, plan: LowRankPlan, chunk: Rows, w: FloatArray, columns: int) -> None:
        self.plan, self.chunk, self.w = plan, chunk, w
        self.v = w**2 * chunk.p * (1 - chunk.p)
        self.explained = np.zeros(len(w))
        self.moments = [np.zeros((block.rank, block.rank)) for block in plan.blocks]
        self.forms = [np.zeros((block.rank, columns)) for block in plan.blocks]
        self.diagonal = np.zeros(columns)
        self.numbers: list[int] = []
        self.products: list[Products] = []
        for rows, number, features in plan.features(chunk.points):
            explained = np.einsum("ri,ri->i", features, features)
            self.explained[rows] = explained
            scaled = features * np.sqrt(self.v[rows]).astype(plan.dtype)
            self.moments[number] += scaled @ scaled.T
            if chunk.weights is not None:
                features *= w[rows].astype(plan.dtype)
                explained *= np.square(w[rows])
            self.numbers.append(number)
            self.products.append(Products(features.T, explained[:, None], chunk.p[rows], rows))

    def add(self, drawn: Drawn) -> None:
        for number, products in zip(self.numbers, self.products, strict=True):
            forms, diagonal = products.of(drawn)
            self.forms[number][:, drawn.columns] = forms
            self.diagonal[drawn.columns] += diagonal[0]

    def finished(self) -> LowRankSums:
        residuals = self.w * (self.chunk.y - self.chunk.p)
        points = self.chunk.points.like(self.plan.landmarks)
        left = self.plan.kernel.gram(points).diagonal() - self.explained
        left = np.maximum(left, 0.0)
        return LowRankSums(
            forms=tuple(self.forms),
            diagonal=self.diagonal,
            expected=float(self.v @ self.explained),
            moments=tuple(self.moments),
            trace_left=float(self.v @ left),
            diagonal2=float(np.square(self.v * self.explained).sum()),
            worst_root=float(np.sum(np.abs(residuals) * np.sqrt(left))),
            worst_square=float(np.sum(np.square(residuals) * left)),
        )


@dataclass(frozen=True, eq=False)
class LowRankSums(Additive):
    """What some rows contribute to the forms of one kernel.

    `forms` and `moments` have one array a block of the plan: S (rank, 1 + draws), data
    first, and C (rank, rank). `diagonal` is the sum of w^2 e^2 (FF')_ii, `expected` its mean
    under the null.
    """

    forms: tuple[FloatArray, ...]
    diagonal: FloatArray
    expected: float
    moments: tuple[FloatArray, ...]
    trace_left: float
    diagonal2: float
    worst_root: float
    worst_square: float

    @property
    def norm2(self) -> float:
        """Squared norm of V^(1/2) F F' V^(1/2) without its diagonal."""
        return max(sum(float(np.square(c).sum()) for c in self.moments) - self.diagonal2, 0.0)


@dataclass(frozen=True, eq=False)
class LowRankOutcome(KernelOutcome):
    """What the sums of all rows give for one kernel."""

    plan: LowRankPlan
    sums: LowRankSums

    @cached_property
    def over_pairs(self) -> FloatArray:  # type: ignore[override]
        """Sum over i != j of e_i P_ij e_j for the data and every draw, (1 + draws,)."""
        diagonal = self.sums.diagonal
        squares = reduce(np.add, [np.square(s).sum(axis=0) for s in self.sums.forms], 0 * diagonal)
        return np.asarray(squares - diagonal)

    @property
    def diagonal(self) -> FloatArray:  # type: ignore[override]
        return self.sums.diagonal

    @property
    def expected(self) -> float:  # type: ignore[override]
        """The mean of the diagonal term under the null."""
        return self.sums.expected

    def variance(self) -> float:
        """Twice the squared norm of V^(1/2) F F' V^(1/2) without its diagonal."""
        return 2 * self.sums.norm2

    def refined(self, moments: NullMoments) -> NullMoments:
        """The pass has seen all rows, the plan only some."""
        sums, ratio = self.sums, self.sums.expected / moments.expected[0]
        triangles = moments.triangles * ratio**3
        if sums.diagonal2 < FAINT_DIAGONAL * sums.norm2:  # then all rows can tell
            triangles = np.array([8 * sum(float(np.trace(c @ c @ c)) for c in sums.moments)])
        return replace(
            moments,
            expected=np.array([sums.expected]),
            variance=np.array([2 * sums.norm2]),
            triangles=triangles,
            pairs=moments.pairs * ratio**2,
        )

    def spectrum(self) -> FloatArray:
        """Weights l_j of the limit law sum l_j (chi2 - 1); the variance is the exact one."""
        moments = self.sums.moments
        values = np.concatenate([np.linalg.eigvalsh(c) for c in moments] or [np.empty(0)])
        total = float(np.square(values).sum())
        return np.asarray(values * np.sqrt(self.sums.norm2 / total) if total else values)

    def offset(self) -> float:
        """The mean of the weighted sum of chi-squares."""
        return float(self.spectrum().sum())

    def certificate(self, pair_weight: float) -> Certificate:
        """The bounds for these rows."""
        plan, sums = self.plan, self.sums
        norm = float(np.sqrt(sums.norm2))
        slack = 10 * plan.rounding * norm if np.isfinite(plan.rounding) else 0.0
        low, high = -sums.worst_square - slack, sums.worst_root**2 - sums.worst_square + slack
        rounding = plan.rounding if np.isfinite(plan.rounding) else 0.0
        return Certificate(
            rank=plan.rank,
            bound=relative_bound(sums.trace_left, norm) + rounding,
            sampled=plan.sampled_error,
            worst_case=(low / pair_weight, high / pair_weight),
            precision=str(np.dtype(plan.dtype)),
        )


def relative_bound(trace: float, norm: float) -> float:
    """trace(V R) over the norm of P, of which the norm of F F' can be above by the trace."""
    if trace <= 0:
        return 0.0
    return trace / (norm - trace) if norm > trace else np.inf
