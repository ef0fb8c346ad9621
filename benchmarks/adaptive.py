"""The default test: seconds, peak memory, and the ratio to a plain loop over entries and draws.

`python benchmarks/adaptive.py`; part of `make bench`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy.special import expit

import itrust as it
import kit
from itrust.calibration import prepared_test

DRAWS = 999
PLAIN_DRAWS = 20  # the plain loop is timed on these and projected
MAX_PLAIN = 100_000
CELLS = [(1_000, 50), (10_000, 10), (100_000, 5), (1_000_000, 2)]


def data(n: int, d: int) -> it.Sample:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    p = expit(0.7 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * rng.normal(size=n))
    return it.Sample(rng.random(n) < p, p, x)


def ours(n: int, d: int) -> dict[str, float]:
    sample = data(n, d)
    it.klce_test(data(300, 2), draws=9, rng=0)  # imports and thread pools
    begun = time.perf_counter()
    r = it.klce_test(sample, draws=DRAWS, rng=0)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak_mb": kit.peak_mb(), "entries": len(r.findings)}


def plain(n: int, d: int) -> dict[str, float]:
    """Every entry by its own features and every draw by itself, kernels left out."""
    sample = data(n, d)
    bank = prepared_test(sample, draws=1, rng=0).prepared.bank
    rng = np.random.default_rng(0)
    begun = time.perf_counter()
    f = bank.matrix(sample.points).astype(float)
    features = [
        f[bank.selector.indices[a:b]] * np.sqrt(bank.selector.data[a:b])[:, None]
        for a, b in zip(bank.selector.indptr[:-1], bank.selector.indptr[1:], strict=True)
    ]
    once = time.perf_counter() - begun
    begun = time.perf_counter()
    for _ in range(PLAIN_DRAWS):
        e = (rng.random(n) < sample.p) - sample.p
        for own in features:
            float(np.sum((own @ e) ** 2) - np.sum(np.square(own) @ np.square(e)))
    return {"seconds": once + (time.perf_counter() - begun) * (1 + DRAWS) / PLAIN_DRAWS}


def rows() -> Iterator[tuple[str, ...]]:
    for n, d in CELLS:
        mine = kit.in_own_process(__file__, "ours", n, d)
        naive = None
        if n <= MAX_PLAIN:
            naive = kit.in_own_process(__file__, "plain", n, d)["seconds"]
        numbers = f"{mine['entries']:,.0f}", f"{mine['seconds']:.2f}", f"{mine['peak_mb']:.0f}"
        yield f"{n:,}", str(d), *numbers, *kit.against(naive, mine["seconds"])


def main() -> None:
    headings = ("rows", "covariates", "entries", "seconds", "MB", "plain s", "ratio")
    kit.show(f"klce_test, default dictionary, {DRAWS} draws", headings, rows())


if __name__ == "__main__":
    kit.run(main, ours=ours, plain=plain)
