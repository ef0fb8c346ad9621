"""The default test: seconds, peak memory, and the ratio to a plain loop over entries and draws.

`python benchmarks/adaptive.py`; part of `make bench`.
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
from itrust import nulls
from itrust.calibration.pipeline import prepare

DRAWS = 999
PLAIN_DRAWS = 20  # the plain loop is timed on these and projected
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mb": peak, "entries": len(r.findings)}


def plain(n: int, d: int) -> dict[str, float]:
    """Every entry by its own features and every draw by itself, kernels left out."""
    sample = data(n, d)
    prepared = prepare(sample, it.default_dictionary(sample), nulls.Bernoulli(), DRAWS, "auto")
    bank = prepared.bank
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


def main() -> None:
    table = Table(title=f"klce_test, default dictionary, {DRAWS} draws", title_justify="left")
    for heading in ("rows", "covariates", "entries", "seconds", "MB", "plain s", "ratio"):
        table.add_column(heading, justify="right")
    for n, d in CELLS:
        mine = call("ours", n, d)
        naive = call("plain", n, d)["seconds"] if n <= 100_000 else None
        table.add_row(
            f"{n:,}",
            str(d),
            f"{mine['entries']:,.0f}",
            f"{mine['seconds']:.2f}",
            f"{mine['peak_mb']:.0f}",
            "-" if naive is None else f"{naive:.1f}",
            "-" if naive is None else f"{naive / mine['seconds']:.1f}",
        )
    Console().print(table)


def call(name: str, n: int, d: int) -> dict[str, float]:
    """In a process of its own, so that peak memory is its own."""
    done = subprocess.run(
        [sys.executable, __file__, name, str(n), str(d)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(globals()[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main()
