"""The factor engine: one pass over the rows, linear in n, with a certified error.

With P ~ F F' everything is a sum over rows: S = F'We for the data and all draws, the diagonal
term, and C = F'W^2 V F for the spectral null. Sums of chunks, files and machines just add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from itrust._core import Advance, FloatArray, InputError
from itrust.data import Chunk
from itrust.engines.passes import (
    Additive,
    Drawn,
    Products,
    Redraw,
    Source,
    Totals,
    Work,
    accumulate,
)
from itrust.engines.plan import Plan, make_plan, relative_bound
from itrust.engines.stream import ordered_map
from itrust.engines.threads import available_threads, one_blas_thread
from itrust.kernels import LocalKernel


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far the approximate kernel can be from the true one; p-values are exact for it.

    Attributes
    ----------
    rank : int
    bound : float
        Under the null, the error's standard deviation is at most this share of the
        statistic's own. Uses no label. In single precision a small part of it, for rounding, is
        estimated from some rows.
    sampled : float
        That share itself, estimated from sampled pairs of rows.
    worst_case : (float, float)
        The true KLCE^2 minus the computed one lies between these, for the observed labels.
    precision : str
        Of the features: "float32" or "float64".
    """

    rank: int
    bound: float
    sampled: float
    worst_case: tuple[float, float]
    precision: str

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, which has no infinity."""
        facts = {**vars(self), "worst_case": list(self.worst_case)}
        for name in ("bound", "sampled"):
            facts[name] = facts[name] if np.isfinite(facts[name]) else None
        return facts


@dataclass(frozen=True, eq=False)
class Sums(Additive):
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

    def over_pairs(self) -> FloatArray:
        """Sum over i != j of e_i P_ij e_j for the data and every draw, (1 + draws,)."""
        squares = reduce(np.add, [np.square(s).sum(axis=0) for s in self.forms], 0 * self.diagonal)
        return np.asarray(squares - self.diagonal)

    @property
    def norm2(self) -> float:
        """Squared norm of V^(1/2) F F' V^(1/2) without its diagonal."""
        return max(sum(float(np.square(c).sum()) for c in self.moments) - self.diagonal2, 0.0)

    def spectrum(self) -> FloatArray:
        """Weights l_j of the limit law sum l_j (chi2 - 1); the variance is the exact one."""
        values = np.concatenate([np.linalg.eigvalsh(c) for c in self.moments] or [np.empty(0)])
        total = float(np.square(values).sum())
        return np.asarray(values * np.sqrt(self.norm2 / total) if total else values)

    def certificate(self, plan: Plan, pair_weight: float) -> Certificate:
        """The bounds for these rows."""
        norm = float(np.sqrt(self.norm2))
        slack = 10 * plan.rounding * norm if np.isfinite(plan.rounding) else 0.0
        low, high = -self.worst_square - slack, self.worst_root**2 - self.worst_square + slack
        rounding = plan.rounding if np.isfinite(plan.rounding) else 0.0
        return Certificate(
            rank=plan.rank,
            bound=relative_bound(self.trace_left, norm) + rounding,
            sampled=plan.sampled_error,
            worst_case=(low / pair_weight, high / pair_weight),
            precision=str(np.dtype(plan.dtype)),
        )


@dataclass(frozen=True)
class Factor:
    """Low rank with a certificate: cost linear in the rows.

    Parameters
    ----------
    tolerance : float
        Largest null error relative to the null standard deviation. In the adaptive test this is
        for the default kernel; other kernels, which lend power only, get 5 % if it is smaller.
    max_rank : int
        Most landmarks for rows that share their categories. Where that does not suffice, the
        certificate says so; the p-value stays exact, for the approximate kernel.
    pilot, chunk : int
        Most rows from which landmarks are chosen, and most rows in work at once.
    threads : int, optional
        As for `Tiles`; the answer does not depend on it.
    """

    tolerance: float = 0.01
    max_rank: int = 512
    pilot: int = 4_096
    chunk: int = 8_192
    threads: int | None = None

    def __post_init__(self) -> None:
        counts = (
            self.max_rank,
            self.pilot,
            self.chunk,
            1 if self.threads is None else self.threads,
        )
        if not 0 < self.tolerance < 1 or min(counts) < 1:
            raise InputError(f"{self!r}: tolerance in (0, 1), the rest at least 1")

    def plan(self, source: Source, kernel: LocalKernel) -> Plan:
        """Choose landmarks from random rows of the whole, always the same; sees no label."""
        points, variances = source.pilot(self.pilot)
        with one_blas_thread():  # else the landmarks would depend on the number of threads
            return make_plan(
                kernel,
                points,
                variances,
                tolerance=self.tolerance,
                max_rank=self.max_rank,
                rng=np.random.default_rng(0),
            )

    def chunk_rows(self, n: int) -> int:
        """Fewer rows at once when there are few in all, so that every thread has work."""
        return min(self.chunk, max(1_024, n // 8))

    def run(
        self,
        source: Source,
        works: Sequence[Work],
        redraw: Redraw | None,
        draws: int,
        seed: int,
        advance: Advance | None = None,
    ) -> Totals:
        """One pass over all rows: the data and `draws` draws through every piece of work."""
        work = ordered_map(
            lambda chunk: accumulate(works, chunk, redraw, draws, seed),
            source.chunks(self.chunk_rows(source.n)),
            self.threads or available_threads(),
        )
        total: Totals | None = None
        with closing(work):  # an interrupt must not leave threads to the garbage collector
            for part in work:
                total = part if total is None else total + part
                if advance:
                    advance(part.tally.rows)
        if total is None:
            raise InputError("there are no rows")
        return total


@dataclass(frozen=True, eq=False)
class KernelWork:
    """The forms of one kernel, by the features of its plan."""

    plan: Plan

    @property
    def unit(self) -> float:
        """Weights are divided by this."""
        return self.plan.unit

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> _KernelPart:
        """Start on a chunk."""
        return _KernelPart(self.plan, chunk, weights, columns)


class _KernelPart:
    """What one chunk contributes, being made."""

    def __init__(self, plan: Plan, chunk: Chunk, w: FloatArray, columns: int) -> None:
        self.plan, self.chunk, self.w = plan, chunk, w
        self.v = w**2 * chunk.p * (1 - chunk.p)
        blocks = plan.features(chunk.points)
        self.explained = np.zeros(len(w))
        self.moments = [np.zeros((block.rank, block.rank)) for block in plan.blocks]
        for rows, number, features in blocks:
            self.explained[rows] = np.einsum("ij,ij->i", features, features, dtype=np.float64)
            scaled = features * np.sqrt(self.v[rows]).astype(plan.dtype)[:, None]
            self.moments[number] += scaled.T @ scaled
        self.forms = [np.zeros((block.rank, columns)) for block in plan.blocks]
        self.diagonal = np.zeros(columns)
        squares = (w**2 * self.explained).astype(plan.dtype)[:, None]
        self.products = [
            (
                rows,
                number,
                Products(
                    features * w[rows].astype(plan.dtype)[:, None], squares[rows], chunk.p[rows]
                ),
            )
            for rows, number, features in blocks
        ]

    def add(self, drawn: Drawn) -> None:
        """S of every block and the diagonal term for some columns."""
        for rows, number, products in self.products:
            forms, diagonal = products.of(drawn, rows)
            self.forms[number][:, drawn.columns] = forms
            self.diagonal[drawn.columns] += diagonal[0]

    def finished(self) -> Sums:
        """The sums of the chunk."""
        residuals = self.w * (self.chunk.y - self.chunk.p)
        left = self.plan.kernel.gram(self.chunk.points).diagonal() - self.explained
        left = np.maximum(left, 0.0)
        return Sums(
            forms=tuple(self.forms),
            diagonal=self.diagonal,
            expected=float(self.v @ self.explained),
            moments=tuple(self.moments),
            trace_left=float(self.v @ left),
            diagonal2=float(np.square(self.v * self.explained).sum()),
            worst_root=float(np.sum(np.abs(residuals) * np.sqrt(left))),
            worst_square=float(np.sum(np.square(residuals) * left)),
        )
