"""Biases that are spread thinly, or sit where few look: designs of the study of power.

Each takes a seed and gives a sample, together with what a score test that knows the family of the
bias would regress the residuals on (None where there is no such family).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

import itrust as it

LETTERS = np.array(list("abcdefgh"))


@dataclass(frozen=True)
class Known:
    """A sample, and the directions of its bias that a test with hindsight would look along."""

    sample: it.Sample
    directions: np.ndarray


def _drawn(
    rng: np.random.Generator,
    truth: np.ndarray,
    p: np.ndarray,
    x: dict[str, np.ndarray],
    directions: np.ndarray,
) -> Known:
    return Known(it.Sample(rng.random(p.size) < truth, p, x), directions)


def _named(x: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{j + 1}": column for j, column in enumerate(x.T)}


def _normal(seed: int, n: int, d: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Normal covariates that all count alike, and their sum."""
    rng = np.random.default_rng([seed, n, d])
    x = rng.normal(size=(n, d))
    return rng, x, x.sum(axis=1) / np.sqrt(d)


def coefficient_drift(seed: int, *, n: int = 500, d: int = 10, sd: float = 0.125) -> Known:
    """All coefficients of a logistic model have moved a little since it was fitted."""
    rng, x, score = _normal(seed, n, d)
    moved = score + x @ rng.normal(scale=sd, size=d)
    return _drawn(rng, expit(moved), expit(score), _named(x), x)


def quadratic(seed: int, *, n: int = 500, d: int = 8, size: float = 0.108) -> Known:
    """A little curvature in every covariate."""
    rng, x, score = _normal(seed, n, d)
    curved = score + size * (x**2 - 1).sum(axis=1)
    return _drawn(rng, expit(curved), expit(score), _named(x), x**2 - 1)


def one_of_ten(seed: int, *, n: int = 500, size: float = 0.3, bent: bool = False) -> Known:
    """A bias along one covariate of ten."""
    rng, x, score = _normal(seed, n, 10)
    of_all = x**2 - 1 if bent else x
    return _drawn(rng, expit(score + size * of_all[:, 2]), expit(score), _named(x), of_all)


def tail(seed: int, *, n: int = 500, d: int = 3, shift: float = 0.4) -> Known:
    """The highest 3 % of a skewed covariate."""
    rng, z, score = _normal(seed, n, d)
    x, p = np.exp(z), expit(0.5 * score - 0.5)
    truth = np.clip(p + shift * (z[:, 0] > 1.88), 0, 0.98)
    return _drawn(rng, truth, p, _named(x), x)


def hospitals(seed: int, *, n: int = 1_000, groups: int = 50, sd: float = 0.4) -> Known:
    """Fifty groups, each with an effect of its own."""
    rng = np.random.default_rng([seed, n, groups])
    code, z = rng.integers(0, groups, n), rng.normal(size=n)
    effect = rng.normal(scale=sd, size=groups)
    names = np.array([f"h{k:02d}" for k in range(groups)])
    which = (code[:, None] == np.arange(groups)).astype(float)
    return _drawn(rng, expit(z - 0.5 + effect[code]), expit(z - 0.5), {"unit": names[code]}, which)


def one_cell(seed: int, *, n: int = 6_000, p: float = 0.055, truth: float = 0.155) -> Known:
    """One crossing of two categories of eight levels."""
    rng = np.random.default_rng([seed, n])
    a, b = rng.integers(0, 8, (2, n))
    rate = np.where((a == 3) & (b == 5), truth, p)
    which = ((8 * a + b)[:, None] == np.arange(64)).astype(float)
    return _drawn(rng, rate, np.full(n, p), {"a": LETTERS[a], "b": LETTERS[b]}, which)


def corner(seed: int, *, n: int = 5_000, share: float = 0.017, shift: float = 0.3) -> Known:
    """A rectangle of two covariates of three, of any shape and anywhere."""
    rng, x, score = _normal(seed, n, 3)
    p = expit(0.7 * score - 1)
    width = np.clip(np.sqrt(share) * np.exp(rng.uniform(-0.4, 0.4)), share, 1)
    sides = np.array([width, share / width])
    ranks = x[:, :2].argsort(axis=0).argsort(axis=0) / n
    low = rng.uniform(0, 1 - sides)
    inside = ((ranks >= low) & (ranks < low + sides)).all(axis=1)
    truth = np.clip(p + shift * inside, 0.0, 0.98)
    return _drawn(rng, truth, p, _named(x), inside[:, None].astype(float))


THIN: dict[str, Callable[[int], Known]] = {
    "coefficient drift, d = 10": coefficient_drift,
    "coefficient drift, d = 20": partial(coefficient_drift, d=20, sd=0.1),
    "quadratic in 8 covariates": quadratic,
    "one of 10 covariates, a trend": one_of_ten,
    "one of 10 covariates, a quadratic": partial(one_of_ten, size=0.25, bent=True),
    "3 % tail of a skewed covariate, +.4": tail,
    "50 hospitals, random effect .4, n = 1,000": hospitals,
    "one of 64 cells, .055 to .155, n = 6,000": one_cell,
    "corner of 1.7 %, +.3, n = 5,000": corner,
    "corner of 1.7 %, +.2, n = 5,000": partial(corner, shift=0.2),
    "corner of 5 %, +.12, n = 5,000": partial(corner, share=0.05, shift=0.12),
}
