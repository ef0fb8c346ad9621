"""The local bias: seconds, peak memory, and the ratio to a plain loop over draws.

`python benchmarks/bias.py`; part of `make bench`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy.special import expit

import itrust as it
import kit
from itrust.bias import neighbour_kernel

DRAWS = 499
PLAIN_DRAWS = 10  # the plain loop is timed on these and projected
CELLS = [(2_000, 2_000), (10_000, 2_000), (100_000, 2_000), (1_000_000, 2_000)]
MAX_PLAIN = 10_000


def data(n: int) -> it.Sample:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    p = expit(0.7 * x[:, 0] - 0.4 * x[:, 1])
    return it.Sample(rng.random(n) < p, p, x)


def ours(n: int, m: int) -> dict[str, float]:
    sample = data(n)
    at = sample.take(np.linspace(0, n - 1, m).astype(int))
    it.local_bias(data(300), draws=19, rng=0)  # imports and thread pools
    begun = time.perf_counter()
    b = it.local_bias(sample, at=at, draws=DRAWS, rng=0)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak_mb": kit.peak_mb(), "size": float(np.median(b.size))}


def plain(n: int, m: int) -> dict[str, float]:
    """All weights at once, and for every draw one product for each of the two bands."""
    sample = data(n)
    at = sample.take(np.linspace(0, n - 1, m).astype(int))
    kernel = neighbour_kernel(sample.points)
    rng = np.random.default_rng(0)
    begun = time.perf_counter()
    weights = np.maximum(
        kernel.gram(at.points, sample.points).block(slice(None), slice(None)) - 0.05, 0
    )
    weights /= weights.sum(axis=1, keepdims=True)
    scale = np.sqrt(weights**2 @ (sample.p * (1 - sample.p)))
    once = time.perf_counter() - begun
    begun = time.perf_counter()
    for _ in range(PLAIN_DRAWS):
        e = (rng.random(n) < sample.p) - sample.p
        float(np.abs(weights @ e / scale).max())
        float(np.abs(weights @ (rng.normal(size=n) * sample.residuals) / scale).max())
    return {"seconds": once + (time.perf_counter() - begun) * (1 + DRAWS) / PLAIN_DRAWS}


def row(n: int, m: int) -> tuple[str, ...]:
    mine = kit.in_own_process(__file__, "ours", n, m)
    is_small = n <= MAX_PLAIN
    naive = kit.in_own_process(__file__, "plain", n, m)["seconds"] if is_small else None
    first = f"{n:,}", f"{m:,}", f"{mine['size']:,.0f}"
    return (
        *first,
        f"{mine['seconds']:.2f}",
        f"{mine['peak_mb']:.0f}",
        *kit.against(naive, mine["seconds"]),
    )


def rows() -> Iterator[tuple[str, ...]]:
    return (row(n, m) for n, m in CELLS)


def main() -> None:
    kit.show(
        f"local_bias, {DRAWS} draws, both bands",
        ("rows", "points", "neighbours", "seconds", "MB", "plain s", "ratio"),
        rows(),
    )


if __name__ == "__main__":
    kit.run(main, ours=ours, plain=plain)
