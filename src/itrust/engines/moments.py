"""Moments of quadratic forms under the null, in closed form from the probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.kernels import Gram, split_match

MAX_ROWS_OF_TRIANGLES = 512  # of rows that share their exact matches


@dataclass(frozen=True, eq=False)
class NullMoments:
    """Null moments of some forms: where the tail of each begins and how long it is.

    For an entry of one feature phi, of the sum of w e phi; for others, of the sum over i != j of
    w_i e_i P_ij w_j e_j. All are closed forms in p, so no label is looked at.
    """

    expected: FloatArray
    variance: FloatArray
    triangles: FloatArray
    pairs: FloatArray
    cubic: FloatArray

    @classmethod
    def of_one(
        cls, expected: float, variance: float, triangles: float, pairs: float
    ) -> NullMoments:
        """Put the moments of a single kernel into arrays."""
        moments = (expected, variance, triangles, pairs, 0.0)
        return cls(*(np.array([moment]) for moment in moments))

    def skewness_of_singles(self, expected: FloatArray) -> FloatArray:
        """Give the skewness of the sums along single features, all rows."""
        return np.asarray(self.cubic / self.expected**1.5 / np.sqrt(expected / self.expected))

    def of_forms(self, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give standard deviation and skewness of the forms, all rows."""
        ratio = expected / self.expected
        variance = self.variance * ratio**2
        third = self.triangles * ratio**3 + self.pairs * ratio**2
        some = np.maximum(variance, np.finfo(float).tiny ** 0.5)  # single features have none
        return np.sqrt(variance), np.maximum(third / some**1.5, 0.0)

    def take(self, kept: IntArray) -> NullMoments:
        """Keep some entries."""
        return NullMoments(**{name: values[kept] for name, values in vars(self).items()})


def third_moments(p: FloatArray, variances: FloatArray) -> FloatArray:
    """Give E (w e)^3 = w^3 v (1 - 2p), from w^2 v."""
    v = p * (1 - p)
    w = np.sqrt(np.divide(variances, v, out=np.zeros_like(v), where=v > 0))
    return np.asarray(variances * w * (1 - 2 * p))


def triangles_of(gram: Gram, v: FloatArray) -> float:
    """8 sum over distinct i, j, k of P_ij P_jk P_ki v_i v_j v_k, sampled group by group.

    Rows that share their exact matches form a group, and of a large group some rows stand for
    all.
    """
    _, match = split_match(gram)
    codes = np.zeros(v.size, dtype=np.int64) if match is None else match.left
    order = np.argsort(codes, kind="stable")
    triangles = 0.0
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        some = rows[some_of(rows.size)]
        root = np.sqrt(v[some])
        a = gram.block(some, some) * root * root[:, None]
        np.fill_diagonal(a, 0.0)
        # Twice the same matrix, which BLAS sees: half of the product is enough.
        triangles += 8 * float(np.sum(a * (a @ a.T))) * (rows.size / some.size) ** 3
    return triangles


def some_of(size: int) -> IntArray:
    """Positions of the rows of a group that stand for all of it."""
    return np.linspace(0, size - 1, min(size, MAX_ROWS_OF_TRIANGLES)).astype(np.int64)
