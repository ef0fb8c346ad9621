"""`Local`: seconds to fit and to predict, peak memory, growth, and the ratio to scikit-learn.

`python benchmarks/recalibration.py`; part of `make bench`. The plain way is scikit-learn's
LogisticRegression on the same features, all of them in memory at once; it has no offset, so the
logit goes in as a feature.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import itrust as it
import kit
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
    features = max((len(part.basis) for part in fix.corrections_), default=0)
    return {
        "fit": fitted - begun,
        "predict": told - fitted,
        "peak_mb": kit.peak_mb(),
        "features": features,
    }


def plain(n: int) -> dict[str, float]:
    sample = data(n)
    begun = time.perf_counter()
    features = Basis.of(sample.points, WIDTH, 150).matrix(sample.points)
    matrix = np.column_stack([features, logit(sample.p)])
    LogisticRegression(C=1 / RIDGE, max_iter=1_000).fit(matrix, sample.y)
    return {"fit": time.perf_counter() - begun}


def row(n: int) -> tuple[str, ...]:
    mine = kit.in_own_process(__file__, "ours", n)
    naive = "-"
    if n <= MAX_PLAIN:
        naive = f"{kit.in_own_process(__file__, 'plain', n)['fit']:.1f}"
    fit, predict, memory = f"{mine['fit']:.1f}", f"{mine['predict']:.2f}", f"{mine['peak_mb']:.0f}"
    return f"{n:,}", f"{mine['features']:.0f}", fit, predict, memory, naive


def main() -> None:
    headings = ("rows", "features", "fit s", "predict s", "MB", "plain fit s")
    kit.show("Local, two numbers", headings, map(row, ROWS))


if __name__ == "__main__":
    kit.run(main, ours=ours, plain=plain)
