"""The local bias: seconds, peak memory, and the ratio to a plain loop over draws.

`python benchmarks/bias.py`; part of `make bench`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit

import itrust as it
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mb": peak, "size": float(np.median(b.size))}


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


def main() -> None:
    table = Table(title=f"local_bias, {DRAWS} draws, both bands", title_justify="left")
    for heading in ("rows", "points", "neighbours", "seconds", "MB", "plain s", "ratio"):
        table.add_column(heading, justify="right")
    for n, m in CELLS:
        mine = call("ours", n, m)
        naive = call("plain", n, m)["seconds"] if n <= MAX_PLAIN else None
        table.add_row(
            f"{n:,}",
            f"{m:,}",
            f"{mine['size']:,.0f}",
            f"{mine['seconds']:.2f}",
            f"{mine['peak_mb']:.0f}",
            "-" if naive is None else f"{naive:.1f}",
            "-" if naive is None else f"{naive / mine['seconds']:.1f}",
        )
    Console().print(table)


def call(name: str, n: int, m: int) -> dict[str, float]:
    """In a process of its own, so that peak memory is its own."""
    done = subprocess.run(
        [sys.executable, __file__, name, str(n), str(m)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(globals()[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main()
