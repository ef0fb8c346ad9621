"""Differences of scores between two models, where events or clusters are few."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, logit

import itrust as it
from hard.kit import Section, decimal, repeated, share, table
from itrust.auditing.comparison import _score_differences

MANY = 400_000
BROKEN = """\
Intervals of differences between models used a normal quantile and the variance that rows or
clusters show of themselves. With five events that variance is often far too small, and with six
clusters it is worth five degrees of freedom."""
SHOWN = """\
Coverage of nominal 95 % intervals, {runs} runs (plus or minus {width}). Student's law with the
effective degrees of freedom, and a variance that counts labels that could have been, keep it."""


@dataclass(frozen=True)
class Design:
    """Rows, events and clusters; the second model is off by `tilt` in its log odds."""

    title: str
    before: str
    rows: int
    rate: float
    tilt: float = 0.7
    clusters: int | None = None
    spread: float = 0.0  # of clusters, in log odds

    def draw(self, rng: np.random.Generator, rows: int, clusters: int | None) -> tuple:
        """Labels, both models' probabilities, and clusters."""
        x = rng.normal(size=rows)
        unit = None if clusters is None else np.sort(rng.integers(clusters, size=rows))
        own = 0.0 if unit is None else self.spread * rng.normal(size=clusters)[unit]
        truth = expit(logit(self.rate) + x + own)
        first = expit(logit(self.rate) + x)
        second = expit(logit(self.rate) + self.tilt * x + 0.4)
        return rng.random(rows) < truth, first, second, unit

    def truth(self) -> dict[str, float]:
        """Expected differences, from many rows (and many clusters)."""
        clusters = None if self.clusters is None else MANY // 20
        y, a, b, _ = self.draw(np.random.default_rng(0), MANY, clusters)
        parts = _score_differences(it.Sample(y, a), it.Sample(y, b), 0.05)
        return {part.what: part.value for part in parts}


DESIGNS = (
    Design("five events, 1,000 rows", ".83", 1_000, 0.0033),
    Design("ten events, 300 rows", "", 300, 0.022),
    Design("three events, 200 rows", "", 200, 0.009),
    Design("6 clusters of 50 rows", ".89", 300, 0.3, clusters=6, spread=1.0),
    Design("10 clusters of 30 rows, rare", "", 300, 0.04, clusters=10, spread=0.7),
)


def covers(design: Design, truth: dict[str, float], seed: int) -> dict[str, bool]:
    """Whether the intervals of one sample cover."""
    y, a, b, unit = design.draw(np.random.default_rng([7, seed]), design.rows, design.clusters)
    first, second = (it.Sample(y, p, cluster=unit) for p in (a, b))
    return {
        part.what: part.lower <= truth[part.what] <= part.upper
        for part in _score_differences(first, second, 0.05)
    }


def make(pool: ProcessPoolExecutor, runs: int) -> str:
    """Coverage of both scores in every design."""
    rows = []
    for design in DESIGNS:
        found = repeated(pool, partial(covers, design, design.truth()), runs, chunk=50)
        told = [share(run[what] for run in found) for what in ("Brier", "log loss")]
        rows.append([design.title, design.before, *told])
    width = decimal(1.96 * (0.05 * 0.95 / runs) ** 0.5)
    shown = SHOWN.format(runs=runs, width=width)
    return "\n\n".join([BROKEN, table(["design", "before", "Brier", "log loss"], rows), shown])


SECTION = Section("comparison", "Differences between models", 2_000, make)
