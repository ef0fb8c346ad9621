"""Level and power of the test under every null, and what breaks it: `make study NAME=level`.

Writes docs/studies/levels.md. RUNS=200 gives a quick look.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import itrust as it
from itrust import nulls, simulate
from itrust.kernels import RBF, Constant, LocalKernel

RUNS = int(os.environ.get("RUNS", "2000"))
DRAWS = 199
LEVEL = 0.05
PAGE = Path(__file__).parents[1] / "docs" / "studies" / "levels.md"

NULLS = {
    "Bernoulli (exact)": nulls.Bernoulli(),
    "Rademacher": nulls.Rademacher(),
    "Spectral": nulls.Spectral(),
    "Algorithm 1": nulls.ResidualBootstrap(),
    "permuted": nulls.Permutation(),
    "permuted, centred": nulls.Permutation(centred=True),
}
NARROW = LocalKernel(RBF(0.1), RBF(0.1))
WIDE_ON_F = LocalKernel(RBF(0.99 / np.sqrt(2)), Constant())


def thirty_rows(rng: int) -> simulate.Simulated:
    return simulate.papers_level_design(30, rng)


def named_units(rng: int) -> simulate.Simulated:
    town = simulate.repeated_units(rng=rng)
    s = town.sample
    unit = np.repeat(np.arange(60), 5)
    return simulate.Simulated(it.Sample(s.y, s.p, s.columns[0].values, cluster=unit), town.truth)


@dataclass(frozen=True)
class Row:
    """One line of a table: a design, its kernel, and the nulls to try on it."""

    title: str
    design: Callable[..., simulate.Simulated]
    kernel: LocalKernel | None = None
    columns: tuple[str, ...] = tuple(NULLS)


CALIBRATED = [
    Row("(a) the paper's design, n = 50", simulate.papers_level_design),
    Row("(a) the same, kernel on f only, w = .99", simulate.papers_level_design, WIDE_ON_F),
    Row("(b) tight clusters at f = .5, rest at .01, n = 500", simulate.tight_clusters, NARROW),
    Row("(c) rare events, f ~ .02, n = 500", simulate.rare_events),
    Row("(d) weights that depend on x, n = 300", simulate.weighted_rows),
    Row("(e) n = 30", thirty_rows),
]
SHIFTED = [
    Row("shift of +.12 everywhere, n = 300", simulate.uniform_shift, LocalKernel(RBF(0.3))),
]
BROKEN = [
    Row(
        "60 units of 5 rows, units not named", simulate.repeated_units, None, ("Bernoulli (exact)",)
    ),
    Row("the same, `cluster=` named", named_units, None, ("Bernoulli (exact)", "Rademacher")),
    Row("weights built from the outcome", simulate.outcome_weights, None, ("Bernoulli (exact)",)),
]


def one_run(row: Row, null: nulls.Null, seed: int) -> tuple[bool, bool]:
    """Whether the test rejects, and whether it warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", it.AssumptionWarning)
        result = it.klce_test(
            row.design(rng=seed).sample,
            row.kernel or LocalKernel(),
            null,
            draws=DRAWS,
            rng=seed,
            progress=False,
        )
    return result.pvalue <= LEVEL, bool(caught)


def cell(row: Row, column: str, pool: ProcessPoolExecutor) -> tuple[int, int]:
    """Rejections and warnings in RUNS runs; run k has seed k."""
    outcomes = pool.map(functools.partial(one_run, row, NULLS[column]), range(RUNS), chunksize=50)
    rejected, warned = zip(*outcomes, strict=True)
    return sum(rejected), sum(warned)


def shown(count: int, judged: bool) -> str:
    """Share of rejections; bold where it cannot be 0.05."""
    text = f"{count / RUNS:.3f}".removeprefix("0") if count < RUNS else "1.00"
    return f"**{text}**" if judged and binomtest(count, RUNS, LEVEL).pvalue < 0.001 else text


def table(rows: list[Row], pool: ProcessPoolExecutor, *, judged: bool) -> list[str]:
    columns = [name for name in NULLS if any(name in row.columns for row in rows)]
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for row in rows:
        counts = [
            shown(cell(row, name, pool)[0], judged) if name in row.columns else ""
            for name in columns
        ]
        lines.append(f"| {row.title} | {' | '.join(counts)} |")
        print(lines[-1], flush=True)
    return lines


def warning_lines(pool: ProcessPoolExecutor) -> list[str]:
    lines = []
    for row in (*BROKEN, *CALIBRATED):
        _, warned = cell(row, row.columns[0], pool)
        lines.append(f"| {row.title} | {warned / RUNS:.3f} |")
    return ["| | share of runs that warn |", "|---|---|", *lines]


def main() -> None:
    begun = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        level = table(CALIBRATED, pool, judged=True)
        power = table(SHIFTED, pool, judged=False)
        broken = table(BROKEN, pool, judged=True)
        warned = warning_lines(pool)
    page = f"""\
# Level and power of the test

Made by `make study NAME=level` ({RUNS:,} runs a cell, {DRAWS} draws, alpha {LEVEL}; seeds are the
run numbers). The numbers are shares of runs that reject; bold where a binomial test at 0.001
excludes 0.05. Where the title names no kernel, the default kernel is used. The designs are in
`itrust.simulate`.

## A calibrated model: every number should be .05

{chr(10).join(level)}

Redrawing labels from the probabilities rejects as often as it should everywhere. The paper's
Algorithm 1 does not: it moves residuals between rows whose variances differ, as in (b), and every
draw carries the mean of the residuals, as in (a). "Permuted, centred" is the null of the package
behind the paper's figure 4 and tables; how often it rejects depends on the width.

## A model that is too low everywhere: power

{chr(10).join(power)}

Resampled residuals carry the shift into every draw, so Algorithm 1 compares the data with
themselves.

## What breaks exactness

{chr(10).join(broken)}

The p-value is exact if rows are independent given (x, f), if the model has not seen their labels,
and if weights carry no information on the label beyond (x, f). When the data contradict
the first or the last, the test says so (an `AssumptionWarning`, repeated in the printed result):

{chr(10).join(warned)}
"""
    PAGE.write_text(page)
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
