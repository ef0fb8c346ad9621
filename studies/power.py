"""Level and power of the adaptive test, and of its alternatives: `make study NAME=power`.

Writes studies/pages/power.json, and its tables into the pages that show them; what is said about
them stands in the pages. RUNS=50 LEVEL_RUNS=200 gives a quick look, SECTION=level one table.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import itrust as it
from hard import rivals
from hard.thin import THIN
from itrust import simulate
from itrust.calibration import prepared_test
from itrust.calibration.pipeline import Scores
from itrust.calibration.power import Sensitivity
from itrust.data import Predicate
from quote import keep

RUNS = int(os.environ.get("RUNS", "500"))
LEVEL_RUNS = int(os.environ.get("LEVEL_RUNS", "2000"))
DRAWS = 199
SLOW_RUNS = 20  # of the slow rivals
SCAN_RUNS = min(RUNS, 20)  # for the scan, which takes a second or more
ALPHA = 0.05

# Type-II error that the paper's notebooks print (N, d); REFERENCE of the published code.
PRINTED = {
    500: {10: 0.006, 20: 0.069, 30: 0.242, 40: 0.426, 50: 0.534},
    1000: {10: 0.0, 20: 0.001, 30: 0.012, 40: 0.051, 50: 0.150},
}
LEVELS: dict[str, Callable[[int], simulate.Simulated]] = {
    "(a) the paper's design, n = 50": lambda k: simulate.papers_level_design(50, k),
    "(b) tight clusters, n = 500": lambda k: simulate.tight_clusters(500, k),
    "(c) rare events, f ~ .02, n = 500": lambda k: simulate.rare_events(500, k),
    "(d) weights that depend on x, n = 300": lambda k: simulate.weighted_rows(300, k),
    "(e) thirty rows": lambda k: simulate.papers_level_design(30, k),
    "1 covariate, n = 200": lambda k: simulate.normal_covariates(200, 1, k),
    "5 covariates, n = 200": lambda k: simulate.normal_covariates(200, 5, k),
    "20 covariates, n = 200": lambda k: simulate.normal_covariates(200, 20, k),
    "50 covariates, n = 200": lambda k: simulate.normal_covariates(200, 50, k),
}


def scores_of(sample: it.Sample, seed: int) -> Scores:
    return prepared_test(sample, draws=DRAWS, rng=seed).scores


def rejects(values: np.ndarray) -> bool:
    return bool(np.mean(values >= values[0] - 1e-9) <= ALPHA)


def combinations(found: Scores) -> dict[str, bool]:
    """The test itself and what else could have been done with the same checks."""
    scores = found.log_tails + found.log_weights[:, None]
    top = scores.max(axis=0)
    return {
        "adaptive": rejects(found.combined),
        "soft maximum": rejects(top + np.log(np.exp(scores - top).sum(axis=0))),
        "all entries alike": rejects(found.log_tails.max(axis=0)),
        "sd scale, alike": rejects(np.abs(found.standardised).max(axis=0)),
    }


def papers_run(n: int, d: int, seed: int) -> dict[str, bool]:
    sample = simulate.papers_power_design(n, d, seed).sample
    checks = scores_of(sample, seed)
    last = [entry.name for entry in checks.entries].index(f"x{d}: trend")
    return {
        **combinations(checks),
        "default kernel alone": rejects(checks.statistic),
        "oracle": rejects(checks.log_tails[last]),
    }


def level_run(name: str, seed: int) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        return it.klce_test(LEVELS[name](seed).sample, draws=99, rng=seed).pvalue <= ALPHA


def alternative_run(name: str, strength: float, seed: int) -> dict[str, bool]:
    sample = simulate.local_alternative(name, 1_000, seed, strength=strength).sample
    checks = scores_of(sample, seed)
    singles = {
        f"= {entry.name}": rejects(tails)
        for entry, tails in zip(checks.entries, checks.log_tails, strict=True)
    }
    return {**combinations(checks), "default": rejects(checks.statistic), **singles}


RIVALS: dict[str, Callable[[it.Sample, np.ndarray], float]] = {
    "Hosmer-Lemeshow by group": rivals.hosmer_lemeshow,
    "likelihood ratio with splines": rivals.spline_ratio,
    "boosted residuals": rivals.boosted_residuals,
}
SCAN = "bias scan"


def thin_run(name: str, seed: int) -> dict[str, tuple[float, float] | bool]:
    """Our test, and every other statistic on the labels and on labels that were redrawn."""
    known = THIN[name](seed)
    sample, rng = known.sample, np.random.default_rng([seed, 7])
    both = sample.y, (rng.random(sample.n) < sample.p).astype(float)
    found: dict[str, tuple[float, float] | bool] = {
        "adaptive": it.klce_test(sample, draws=99, rng=seed, progress=False).pvalue <= ALPHA,
        "score test": tuple(rivals.score_test(sample, y, known.directions) for y in both),
    }
    for title, rival in RIVALS.items():
        found[title] = tuple(rival(sample, y) for y in both)
    if seed < SCAN_RUNS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[SCAN] = tuple(rivals.bias_scan(sample, y) for y in both)
    return found


def at_its_own_level(values: Iterable[tuple[float, float]]) -> float:
    """Share of statistics beyond what 5 % of the redrawn ones exceed."""
    observed, redrawn = np.array([*values]).T
    return float(np.mean(observed > np.quantile(redrawn, 1 - ALPHA)))


def thin_table(pool: ProcessPoolExecutor) -> dict[str, Any]:
    rows = []
    for name in THIN:
        runs = [*pool.map(functools.partial(thin_run, name), range(RUNS), chunksize=5)]
        powers = {
            title: at_its_own_level(run[title] for run in runs if title in run)
            for title in ("score test", *RIVALS, SCAN)
        }
        adaptive = float(np.mean([run["adaptive"] for run in runs]))
        rows.append(shown({"bias": name, "adaptive": adaptive, **powers}))
    return {"runs": RUNS, "scan runs": SCAN_RUNS, "draws": 99, "rows": rows}


def missed(outcomes: Iterable[dict[str, bool]]) -> dict[str, float]:
    """Type-II error of everything that was tried in every run, or in the first of them."""
    found: dict[str, list[bool]] = {}
    for outcome in outcomes:
        for name, hit in outcome.items():
            found.setdefault(name, []).append(hit)
    enough = min(SLOW_RUNS, RUNS)
    return {name: 1 - sum(hits) / len(hits) for name, hits in found.items() if len(hits) >= enough}


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """The row, printed for whoever waits."""
    print(row, flush=True)
    return row


def papers_table(pool: ProcessPoolExecutor) -> dict[str, Any]:
    titles = (
        "adaptive",
        "soft maximum",
        "all entries alike",
        "sd scale, alike",
        "default kernel alone",
        "oracle",
    )
    rows = []
    for n, printed in PRINTED.items():
        for d, error in printed.items():
            run = functools.partial(papers_run, n, d)
            found = missed(pool.map(run, range(RUNS), chunksize=10))
            ours = {title: found.get(title) for title in titles}
            rows.append(shown({"N": n, "d": d, "printed": error, **ours}))
    return {"runs": RUNS, "draws": DRAWS, "rows": rows}


def level_table(pool: ProcessPoolExecutor) -> dict[str, Any]:
    rows = []
    for name in LEVELS:
        count = sum(pool.map(functools.partial(level_run, name), range(LEVEL_RUNS), chunksize=25))
        rows.append(shown({"design": name, "rejected": count / LEVEL_RUNS}))
    return {"runs": LEVEL_RUNS, "draws": 99, "rows": rows}


def alternatives_table(pool: ProcessPoolExecutor) -> dict[str, Any]:
    rows = []
    for name in simulate.ALTERNATIVES:
        full, less = (
            missed(
                pool.map(
                    functools.partial(alternative_run, name, strength), range(runs), chunksize=10
                )
            )
            for strength, runs in ((1.0, RUNS), (0.75, RUNS // 5))
        )
        best = min((key for key in full if key.startswith("= ")), key=lambda key: full[key])
        row = {"bias": name, "adaptive": full["adaptive"], "best": full[best]}
        row["best entry"] = best.removeprefix("= ")
        row["default"] = full["default"]
        row["adaptive at 3/4"] = less["adaptive"]
        row["best at 3/4"] = min(less[key] for key in less if key.startswith("= "))
        rows.append(shown(row))
    return {"runs": RUNS, "runs at 3/4": RUNS // 5, "draws": DRAWS, "rows": rows}


def check_of_detectable(pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Simulated power at the shift that `detectable` gives, region by region."""
    town = simulate.survey(2_000, rng=0).sample
    found = it.detectable(town, draws=999, simulations=0, rng=0)
    powers = pool.map(functools.partial(_checked, found.draws), (r.where for r in found.regions))
    rows = [
        shown({"where": str(region.where), "shift": region.up, "power": power})
        for region, power in zip(found.regions, powers, strict=True)
    ]
    return {"runs": RUNS, "rows": rows}


def _checked(draws: int, where: Predicate) -> float:
    town = simulate.survey(2_000, rng=0).sample
    setting = Sensitivity.of(town, draws=draws, rng=0)
    area = next(region for region in setting.regions() if region.where == where)
    return setting.simulated_power(where, setting.smallest_both(area)[0], RUNS)


SECTIONS: dict[str, Callable[[ProcessPoolExecutor], dict[str, Any]]] = {
    "papers": papers_table,
    "thin": thin_table,
    "alternatives": alternatives_table,
    "level": level_table,
    "detectable": check_of_detectable,
}


def main() -> None:
    begun = time.perf_counter()
    chosen = [name for name in os.environ.get("SECTION", ",".join(SECTIONS)).split(",") if name]
    with ProcessPoolExecutor() as pool:
        for name in chosen:
            keep("power", {name: SECTIONS[name](pool)})
    print(f"wrote power.json and its pages in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
