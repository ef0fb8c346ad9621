"""Level and power of the adaptive test, and of its alternatives: `make study NAME=power`.

Writes docs/studies/power.md. RUNS=50 LEVEL_RUNS=200 gives a quick look, SECTION=level one part
(the page is made when all parts have been).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import json
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import itrust as it
from hard import rivals
from hard.thin import THIN
from itrust import simulate
from itrust.calibration import prepared_test
from itrust.calibration.pipeline import Scores
from itrust.calibration.power_setting import Demand, PowerSetting
from itrust.data import Predicate

RUNS = int(os.environ.get("RUNS", "500"))
LEVEL_RUNS = int(os.environ.get("LEVEL_RUNS", "2000"))
DRAWS = 199
SLOW_RUNS = 20  # for what learns or tunes
SCAN_RUNS = min(RUNS, 20)  # for the scan, which takes a second or more
ALPHA = 0.05
PAGE = Path(__file__).parents[1] / "docs" / "studies" / "power.md"
BUILD = Path(__file__).parents[1] / "build" / "power"

# Type-II error that the paper's notebooks print (N, d); REFERENCE of the published code.
PRINTED = {
    500: {10: 0.006, 20: 0.069, 30: 0.242, 40: 0.426, 50: 0.534},
    1000: {10: 0.0, 20: 0.001, 30: 0.012, 40: 0.051, 50: 0.150},
}
LEARNED = (10, 50)  # dimensions at which the witness is tried
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
    scores = found.scores
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
    found = {
        **combinations(checks),
        "default kernel alone": rejects(checks.statistic),
        "oracle": rejects(checks.log_tails[last]),
    }
    if seed < SLOW_RUNS and d in LEARNED:
        found["witness"] = it.witness_test(sample, draws=DRAWS, rng=seed).pvalue <= ALPHA
    return found


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
    extra = {}
    if strength == 1.0 and seed < SLOW_RUNS:
        extra = {
            "witness": it.witness_test(sample, draws=DRAWS, rng=seed).pvalue <= ALPHA,
            "tuned": it.tuned_test(sample, draws=DRAWS, rng=seed).pvalue <= ALPHA,
        }
    return {**combinations(checks), "default": rejects(checks.statistic), **extra, **singles}


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


def thin_table(pool: ProcessPoolExecutor) -> list[str]:
    titles = ["adaptive", "score test", *RIVALS, SCAN]
    head = ["`klce_test`", "score test that knows the family", *RIVALS, "AIF360's `bias_scan`"]
    lines = [f"| bias | {' | '.join(head)} |", f"|---|{'---|' * len(head)}"]
    for name in THIN:
        runs = [*pool.map(functools.partial(thin_run, name), range(RUNS), chunksize=5)]
        powers = [float(np.mean([run["adaptive"] for run in runs]))]
        powers += [
            at_its_own_level(run[title] for run in runs if title in run) for title in titles[1:]
        ]
        lines.append(f"| {name} | {' | '.join(told(power) for power in powers)} |")
        print(lines[-1], flush=True)
    return lines


def missed(outcomes: Iterable[dict[str, bool]]) -> dict[str, float]:
    """Type-II error of everything that was tried in every run, or in the first of them."""
    found: dict[str, list[bool]] = {}
    for outcome in outcomes:
        for name, hit in outcome.items():
            found.setdefault(name, []).append(hit)
    enough = min(SLOW_RUNS, RUNS)
    return {name: 1 - sum(hits) / len(hits) for name, hits in found.items() if len(hits) >= enough}


def told(error: float) -> str:
    return f"{error:.3f}".removeprefix("0") if error < 1 else "1"


def papers_table(pool: ProcessPoolExecutor) -> list[str]:
    titles = [
        "printed",
        "adaptive",
        "soft maximum",
        "all entries alike",
        "sd scale, alike",
        "default kernel alone",
        "witness",
        "oracle",
    ]
    lines = [f"| N | d | {' | '.join(titles)} |", f"|---|---|{'---|' * len(titles)}"]
    for n, printed in PRINTED.items():
        for d, error in printed.items():
            run = functools.partial(papers_run, n, d)
            found = missed(pool.map(run, range(RUNS), chunksize=10))
            cells = [
                told(error),
                *(told(found[title]) if title in found else "" for title in titles[1:]),
            ]
            lines.append(f"| {n} | {d} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def level_table(pool: ProcessPoolExecutor) -> list[str]:
    lines = ["| design | rejected | p of .05 |", "|---|---|---|"]
    for name in LEVELS:
        count = sum(pool.map(functools.partial(level_run, name), range(LEVEL_RUNS), chunksize=25))
        judged = binomtest(count, LEVEL_RUNS, ALPHA).pvalue
        lines.append(f"| {name} | {told(count / LEVEL_RUNS)} | {judged:.2f} |")
        print(lines[-1], flush=True)
    return lines


def alternatives_table(pool: ProcessPoolExecutor) -> list[str]:
    head = "adaptive | best single entry | | default kernel | tuned widths | witness | "
    lines = [
        f"| bias | {head} adaptive at 3/4 | best at 3/4 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
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
        best_less = min(error for key, error in less.items() if key.startswith("= "))
        cells = [full["adaptive"], full[best], None, full["default"], full["tuned"]]
        text = [best[2:] if cell is None else told(cell) for cell in cells]
        text += [told(full["witness"]), told(less["adaptive"]), told(best_less)]
        lines.append(f"| {name} | {' | '.join(text)} |")
        print(lines[-1], flush=True)
    return lines


def check_of_detectable(pool: ProcessPoolExecutor) -> list[str]:
    """Simulated power at the shift that `detectable` gives, region by region."""
    town = simulate.survey(2_000, rng=0).sample
    found = it.detectable(town, draws=999, simulations=0, rng=0)
    powers = pool.map(functools.partial(_checked, found.draws), (r.where for r in found.regions))
    lines = ["| where | shift | simulated power |", "|---|---|---|"]
    for region, power in zip(found.regions, powers, strict=True):
        lines.append(f"| {region.where} | {region.up:.3f} | {power:.2f} |")
        print(lines[-1], flush=True)
    return lines


def _checked(draws: int, where: Predicate) -> float:
    town = simulate.survey(2_000, rng=0).sample
    setting = PowerSetting.of(town, Demand(0.05, 0.8), None, draws, 0, "auto")
    area = next(region.area for region in setting.regions() if region.where == where)
    return setting.simulated_power(where, setting.sensitivity.smallest(area, 1, 0.8), RUNS)


SECTIONS: dict[str, Callable[[ProcessPoolExecutor], list[str]]] = {
    "papers": papers_table,
    "thin": thin_table,
    "alternatives": alternatives_table,
    "level": level_table,
    "detectable": check_of_detectable,
}


def main() -> None:
    begun = time.perf_counter()
    BUILD.mkdir(parents=True, exist_ok=True)
    chosen = [name for name in os.environ.get("SECTION", ",".join(SECTIONS)).split(",") if name]
    with ProcessPoolExecutor() as pool:
        for name in chosen:
            (BUILD / f"{name}.json").write_text(json.dumps(SECTIONS[name](pool)))
    done = {name: BUILD / f"{name}.json" for name in SECTIONS}
    if not all(path.exists() for path in done.values()):
        return
    papers, thin, alternatives, level, detectable = (
        json.loads(path.read_text()) for path in done.values()
    )
    shares = it.default_dictionary(simulate.local_alternative("shift", 1_000, 0).sample)
    page = f"""\
# Power of the adaptive test

Made by `make study NAME=power` ({RUNS:,} runs a cell of power, {LEVEL_RUNS:,} of level, {DRAWS}
draws, alpha {ALPHA}; seeds are the run numbers; witness and tuned widths in 20 to 50 runs only).
The numbers are type II errors: the share of runs in which a miscalibrated model is *not* rejected.

`klce_test` makes many checks at once, one for each entry of a dictionary. The score of an entry is
minus the log of its approximate null tail plus the log of its weight, and the largest score counts.
For the alternatives below the dictionary is

```text
{shares}
```

## The paper's design, with up to fifty covariates

x is normal in d dimensions, the truth is sigmoid(sum of x), and the model lacks the last covariate.
"Printed" is what the paper's notebooks show; "oracle" knows which covariate is missing.

{chr(10).join(papers)}

"Soft maximum" sums the inverse tails instead of taking the largest. "All entries alike" drops the
weights of the families, "sd scale" also the tails. With the maximum, the smallest adjusted p-value
is that of the whole test, so the findings and the verdict cannot contradict each other.

## Biases that are spread thinly, and what else one would run

n = 500 unless noted, 99 draws; the numbers are *powers*: shares of runs in which the miscalibrated
model is rejected at .05. The score test is told which directions the bias lies in (all ten slopes,
all fifty hospitals, all 64 cells) and nothing else. The others know as little as `klce_test`:
Hosmer-Lemeshow within every level and every fifth of a covariate, the smallest p-value counting; a
likelihood-ratio test of the labels on offset(logit p) plus splines of every number and levels of
every category; trees that learn residuals on half of the rows and are tried on the other half; and
the subset scan of AIF360 on fifths ({SCAN_RUNS} runs, one start). None of these knows its own law
at these sizes, so each is held to its own statistic on labels redrawn from the probabilities: what
5 % of them exceed.

{chr(10).join(thin)}

## Alternatives: never much worse than the best single entry

n = 1,000, four numbers and two categories (`itrust.simulate.local_alternative`). The best single
entry is the one that would have been best if it had been the only one, chosen with hindsight.
At full strength the best entry misses next to nothing. The last two columns are for a bias of
three quarters ({RUNS // 5} runs), where making a hundred checks at once costs power.

{chr(10).join(alternatives)}

**Dictionary, tuned widths or witness?** The dictionary is the default because it uses all rows for
the test. Tuned widths spend half of the rows on tuning and end with one kernel: use them if you
want that kernel itself. The learned witness needs rows to learn from, so it is the weaker test if
rows are few and the bias is simple. Use it if you have thousands of rows and suspect a bias for
which the dictionary has no entry. In this table it is nowhere ahead by more than .004.

## What could have been missed

`detectable` on the simulated survey (n = 2,000), where power .8 was asked for, tried on {RUNS}
simulated samples a region. The shift is computed for the entries that see a region best, by
normal approximation; where more entries see a shift, the power of the whole test is higher.

{chr(10).join(detectable)}

## Level: every number should be .05

{chr(10).join(level)}

99 draws. Every one of these tests is exact by construction. The last column is the p-value of a
two-sided binomial test of .05.
"""
    PAGE.write_text(page)
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
