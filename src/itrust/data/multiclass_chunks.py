"""Rows of several classes that come some at a time, and what is counted of them on the way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.data.column import Column
from itrust.data.rows import called_impossible

FACT_ROWS = 65_536  # added up at once, in memory and from files, so that sums are the same


@dataclass(frozen=True, eq=False)
class ClassChunk:
    """Consecutive rows of several classes."""

    first: int
    p: FloatArray
    codes: IntArray
    columns: tuple[Column, ...]
    weights: FloatArray | None = None

    def cut(self, rows: slice) -> ClassChunk:
        """Give some of the rows, which follow each other."""
        return ClassChunk(
            self.first + rows.start,
            self.p[rows],
            self.codes[rows],
            tuple(column.take(rows) for column in self.columns),
            None if self.weights is None else self.weights[rows],
        )


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """What is counted of rows of several classes."""

    n: int
    weight: float
    weight2: float
    labels: IntArray
    impossible: IntArray
    never: int
    uncertain: int

    @classmethod
    def of(cls, p: FloatArray, codes: IntArray, weights: FloatArray | None) -> ClassFacts:
        """Count rows."""
        parts = [
            _counted(p[rows], codes[rows], None if weights is None else weights[rows])
            for rows in (slice(at, at + FACT_ROWS) for at in range(0, len(p), FACT_ROWS))
        ]
        return reduce(lambda one, other: one.plus(other), parts)

    def plus(self, other: ClassFacts) -> ClassFacts:
        """Add what other rows have."""
        mine, others = vars(self), vars(other)
        return ClassFacts(**{name: mine[name] + others[name] for name in mine})

    @property
    def mean_square(self) -> float:
        """Of the weights."""
        return self.weight2 / self.n

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j."""
        return self.weight**2 - self.weight2


def _counted(p: FloatArray, codes: IntArray, weights: FloatArray | None) -> ClassFacts:
    n, classes = p.shape
    impossible = [
        np.count_nonzero(called_impossible(codes == k, p[:, k], weights)) for k in range(classes)
    ]
    return ClassFacts(
        n=n,
        weight=float(n) if weights is None else float(weights.sum()),
        weight2=float(n) if weights is None else float(np.square(weights).sum()),
        labels=np.bincount(codes, minlength=classes),
        impossible=np.array(impossible),
        never=int(np.count_nonzero(called_impossible(1, p[np.arange(n), codes], weights))),
        uncertain=int(np.count_nonzero(((p > 0) & (p < 1)).any(axis=1))),
    )
