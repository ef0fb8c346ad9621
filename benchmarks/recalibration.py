"""`Local`: seconds to fit and to predict, peak memory, growth, and the ratio to scikit-learn.

`python benchmarks/recalibration.py`; part of `make bench`. The plain way is scikit-learn's
LogisticRegression on the same features, all of them in memory at once; it has no offset, so the
logit goes in as a feature.
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
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust.recalibrate.features import Basis

ROWS = [10_000, 100_000, 1_000_000]
MAX_PLAIN = 100_000
WIDTH, RIDGE = 0.1, 8.0  # narrow: all 150 features are used


def data(n: int) -> it.Sample:
    """A bias that waves along two numbers, so that narrow features are wanted."""
    rng = np.random.default_rng(0)
    x, z = rng.random((n, 2)), rng.normal(size=n)
    bias = np.sin(12 * x[:, 0]) * (x[:, 1] - 0.5)
    return it.Sample(rng.random(n) < expit(z + bias), expit(z), x)


def ours(n: int) -> dict[str, float]:
    sample = data(n)
    it.recalibrate.Local().fit(data(500))  # imports and thread pools
    begun = time.perf_counter()
    fix = it.recalibrate.Local(widths=(WIDTH, 0.4), ridges=(RIDGE, 32.0, 128.0)).fit(sample)
    fitted = time.perf_counter()
    fix.predict(sample.p, sample)
    told = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    features = max((len(part.basis) for part in fix.corrections_), default=0)
    return {
        "fit": fitted - begun,
        "predict": told - fitted,
        "peak_mb": peak,
        "features": features,
    }


def plain(n: int) -> dict[str, float]:
    sample = data(n)
    begun = time.perf_counter()
    features = Basis.of(sample.points, WIDTH, 150).matrix(sample.points)
    matrix = np.column_stack([features, logit(sample.p)])
    LogisticRegression(C=1 / RIDGE, max_iter=1_000).fit(matrix, sample.y)
    return {"fit": time.perf_counter() - begun}


def main() -> None:
    table = Table(title="Local, two numbers", title_justify="left")
    for heading in ("rows", "features", "fit s", "predict s", "MB", "plain fit s"):
        table.add_column(heading, justify="right")
    for n in ROWS:
        mine = call("ours", n)
        naive = f"{call('plain', n)['fit']:.1f}" if n <= MAX_PLAIN else "-"
        table.add_row(
            f"{n:,}",
            f"{mine['features']:.0f}",
            f"{mine['fit']:.1f}",
            f"{mine['predict']:.2f}",
            f"{mine['peak_mb']:.0f}",
            naive,
        )
    Console().print(table)


def call(name: str, n: int) -> dict[str, float]:
    """In a process of its own, so that peak memory is its own."""
    done = subprocess.run(
        [sys.executable, __file__, name, str(n)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(globals()[sys.argv[1]](int(sys.argv[2]))))
    else:
        main()
