"""Plain implementations to compare with: correct, dense, one draw at a time."""

from __future__ import annotations

import numpy as np


def dense_kernel(p: np.ndarray, x: np.ndarray, width_p: float, widths_x: list[float]) -> np.ndarray:
    """The local kernel as an (n, n) array."""
    matrix = np.exp(-((p[:, None] - p[None, :]) ** 2) / (2 * width_p**2))
    for column, width in zip(x.T, widths_x, strict=True):
        matrix *= np.exp(-((column[:, None] - column[None, :]) ** 2) / (2 * width**2))
    return matrix


def dense_test(y, p, x, width_p, widths_x, draws, rng) -> tuple[float, float]:
    """Statistic and exact p-value: P built once, then e_b @ P @ e_b for every draw."""
    n = len(y)
    matrix = dense_kernel(p, x, width_p, widths_x)
    np.fill_diagonal(matrix, 0.0)
    e = y - p
    statistic = e @ matrix @ e / (n * (n - 1))
    drawn = np.empty(draws)
    for b in range(draws):
        e_b = (rng.random(n) < p) - p
        drawn[b] = e_b @ matrix @ e_b / (n * (n - 1))
    return statistic, (1 + np.count_nonzero(drawn >= statistic)) / (1 + draws)


def element_wise_test(e, matrix, draws, rng) -> tuple[float, float]:
    """Algorithm 1 word by word: the (n, n) array of terms is formed again in every draw."""
    n = len(e)

    def statistic(residuals: np.ndarray) -> float:
        terms = residuals[:, None] * matrix * residuals[None, :]
        return (terms.sum() - np.trace(terms)) / (n * (n - 1))

    data = statistic(e)
    drawn = np.array([statistic(rng.choice(e, n)) for _ in range(draws)])
    return data, float(np.mean(drawn > data))
