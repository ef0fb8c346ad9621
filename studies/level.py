"""Level and power of the test under every null, and what breaks it: `make study NAME=level`.

Writes studies/pages/levels.json, and its tables into the pages that show them; what is said about
them stands in the pages. RUNS=200 gives a quick look.
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
from typing import Any

import numpy as np

import itrust as it
from itrust import nulls, simulate
from itrust.kernels import RBF, Constant, LocalKernel
from quote import keep

RUNS = int(os.environ.get("RUNS", "2000"))
DRAWS = 199
LEVEL = 0.05

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
SHIFTED = [Row("shift of +.12 everywhere, n = 300", simulate.uniform_shift, LocalKernel(RBF(0.3)))]
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


def table(rows: list[Row], pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Shares of runs that reject, one row a design."""
    columns = [name for name in NULLS if any(name in row.columns for row in rows)]
    found = []
    for row in rows:
        shares = {
            name: cell(row, name, pool)[0] / RUNS if name in row.columns else None
            for name in columns
        }
        found.append({"design": row.title, **shares})
        print(found[-1], flush=True)
    return {"runs": RUNS, "draws": DRAWS, "rows": found}


def warning_table(pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Shares of runs that warn."""
    rows = [
        {"design": row.title, "warned": cell(row, row.columns[0], pool)[1] / RUNS}
        for row in (*BROKEN, *CALIBRATED)
    ]
    return {"runs": RUNS, "draws": DRAWS, "rows": rows}


def main() -> None:
    begun = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        tables = {
            "calibrated": table(CALIBRATED, pool),
            "shifted": table(SHIFTED, pool),
            "broken": table(BROKEN, pool),
            "warned": warning_table(pool),
        }
    keep("levels", tables)
    print(f"wrote levels.json and its pages in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
