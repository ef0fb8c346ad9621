"""The factor engine: one pass over the rows, linear in n, with a certified error.

With P ~ F F' everything is a sum over rows: S = F'We for the data and all draws, the diagonal
term, and C = F'W^2 V F for the spectral null. Sums of chunks, files and machines just add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from itrust.engine.plan import Plan, make_plan, relative_bound
from itrust.engine.stream import ordered_map
from itrust.engine.threads import available_threads, one_blas_thread
from itrust.errors import InputError
from itrust.kernels import LocalKernel
from itrust.points import Chunk, Points, called_impossible
from itrust.progress import Advance
from itrust.typing import AnyArray, BoolArray, FloatArray

DRAWS_AT_ONCE = 1_024


class Redraw(Protocol):
    """What the pass needs of a null: draws of single rows."""

    def draw(self, chunk: Chunk, draws: range, seed: int) -> AnyArray:
        """Labels (boolean) or residuals (float) of the rows under the null, (n, len(draws))."""


class Source(Protocol):
    """Rows in memory or in files."""

    @property
    def n(self) -> int:
        """How many there are."""

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, at most `size` at a time."""

    def pilot(self, size: int) -> tuple[Points, FloatArray]:
        """Random rows of the whole, always the same, and their w^2 p (1 - p)."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far the approximate kernel can be from the true one; p-values are exact for it.

    Attributes
    ----------
    rank : int
    bound : float
        Under the null, the error's standard deviation is at most this share of the
        statistic's own. Uses no label.
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
class Sums:
    """What some rows contribute; sums of different rows add up.

    `forms` and `moments` have one array a block of the plan: S (rank, 1 + draws), data
    first, and C (rank, rank).
    """

    rows: int
    weight: float
    weight2: float
    positives: int
    other_labels: frozenset[Any]
    dropped: int
    impossible: int
    certain: int
    forms: tuple[FloatArray, ...]
    diagonal: FloatArray
    moments: tuple[FloatArray, ...]
    trace_left: float
    diagonal2: float
    worst_root: float
    worst_square: float

    def __add__(self, other: Sums) -> Sums:
        mine, others = vars(self), vars(other)
        return Sums(**{name: _plus(mine[name], others[name]) for name in mine})

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j."""
        return self.weight**2 - self.weight2

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

    def certificate(self, plan: Plan) -> Certificate:
        """The bounds for these rows."""
        norm = float(np.sqrt(self.norm2))
        slack = 10 * plan.rounding * norm if np.isfinite(plan.rounding) else 0.0
        low, high = -self.worst_square - slack, self.worst_root**2 - self.worst_square + slack
        rounding = plan.rounding if np.isfinite(plan.rounding) else 0.0
        return Certificate(
            rank=plan.rank,
            bound=relative_bound(self.trace_left, norm) + rounding,
            sampled=plan.sampled_error,
            worst_case=(low / self.pair_weight, high / self.pair_weight),
            precision=str(np.dtype(plan.dtype)),
        )


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, frozenset):
        return a | b
    return tuple(x + y for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a + b


@dataclass(frozen=True)
class Factor:
    """Low rank with a certificate: cost linear in the rows.

    Parameters
    ----------
    tolerance : float
        Largest null error relative to the null standard deviation.
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
        plan: Plan,
        redraw: Redraw | None,
        draws: int,
        seed: int,
        advance: Advance | None = None,
    ) -> Sums:
        """One pass over all rows: the data and `draws` draws."""
        work = ordered_map(
            lambda chunk: accumulate(plan, chunk, redraw, draws, seed),
            source.chunks(self.chunk_rows(source.n)),
            self.threads or available_threads(),
        )
        total: Sums | None = None
        with closing(work):  # an interrupt must not leave threads to the garbage collector
            for part in work:
                total = part if total is None else total + part
                if advance:
                    advance(part.rows)
        if total is None:
            raise InputError("there are no rows")
        return total


def accumulate(plan: Plan, chunk: Chunk, redraw: Redraw | None, draws: int, seed: int) -> Sums:
    """What the rows of one chunk contribute."""
    y, p = chunk.y, chunk.p
    w = np.ones(len(p)) if chunk.weights is None else chunk.weights / plan.unit
    e, v = y - p, w**2 * p * (1 - p)
    blocks = plan.features(chunk.points)
    explained = np.zeros(len(p))
    moments = [np.zeros((block.rank, block.rank)) for block in plan.blocks]
    for rows, number, features in blocks:
        explained[rows] = np.einsum("ij,ij->i", features, features, dtype=np.float64)
        scaled = features * np.sqrt(v[rows]).astype(plan.dtype)[:, None]
        moments[number] += scaled.T @ scaled
    left = np.maximum(plan.kernel.gram(chunk.points).diagonal() - explained, 0.0)
    forms, diagonal = _forms(plan, chunk, blocks, w, explained, redraw, draws, seed)
    return Sums(
        rows=len(p),
        weight=float(w.sum()),
        weight2=float(np.square(w).sum()),
        positives=int(y.sum()),
        other_labels=chunk.other_labels,
        dropped=chunk.dropped,
        impossible=int(np.count_nonzero(called_impossible(y, p))),
        certain=int(np.count_nonzero((p == 0) | (p == 1))),
        forms=tuple(forms),
        diagonal=diagonal,
        moments=tuple(moments),
        trace_left=float(v @ left),
        diagonal2=float(np.square(v * explained).sum()),
        worst_root=float(np.sum(w * np.abs(e) * np.sqrt(left))),
        worst_square=float(np.sum(np.square(w * e) * left)),
    )


def _forms(
    plan: Plan,
    chunk: Chunk,
    blocks: list[tuple[Any, int, AnyArray]],
    w: FloatArray,
    explained: FloatArray,
    redraw: Redraw | None,
    draws: int,
    seed: int,
) -> tuple[list[FloatArray], FloatArray]:
    """S (rank, 1 + draws) of every block and the diagonal term (1 + draws,)."""
    forms = [np.zeros((block.rank, 1 + draws)) for block in plan.blocks]
    diagonal = np.zeros(1 + draws)
    squares = w**2 * explained
    for columns, drawn in _columns(chunk, redraw, draws, seed):
        is_label = drawn.dtype == bool
        if is_label:  # e^2 = p^2 + y (1 - 2p), so the diagonal term is linear in the label
            diagonal[columns] = squares @ chunk.p**2
        else:
            diagonal[columns] = np.einsum("i,ib,ib->b", squares, drawn, drawn)
        slope = (squares * (1 - 2 * chunk.p)).astype(plan.dtype)
        for rows, number, features in blocks:
            weighted = features * w[rows].astype(plan.dtype)[:, None]
            values = drawn[rows].astype(plan.dtype)
            part = weighted.T @ values
            if is_label:
                diagonal[columns] += slope[rows] @ values
                part = part - (weighted.T @ chunk.p[rows].astype(plan.dtype))[:, None]
            forms[number][:, columns] = part
    return forms, diagonal


def _columns(
    chunk: Chunk, redraw: Redraw | None, draws: int, seed: int
) -> Iterator[tuple[slice, AnyArray]]:
    """The data as column 0 and the draws after it, some columns at a time."""
    observed: BoolArray = (chunk.y == 1)[:, None]
    if redraw is None or draws == 0:
        yield slice(0, 1), observed
        return
    for first in range(0, draws, DRAWS_AT_ONCE):
        block = range(first, min(first + DRAWS_AT_ONCE, draws))
        drawn = redraw.draw(chunk, block, seed)
        if first == 0:  # the data are a column of the same product as the draws
            data = observed if drawn.dtype == bool else (chunk.y - chunk.p)[:, None]
            drawn = np.hstack([data, drawn])
        yield slice(block.stop - drawn.shape[1] + 1, block.stop + 1), drawn
