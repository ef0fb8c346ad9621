"""What would overturn it: level at the worst laws, tipping points with a planted truth, and cost.

`make study NAME=overturn` writes overturn.json and overturn.md in studies/pages. Runs that
the file already holds are kept, so that it can be stopped and go on; FRESH=1 begins anew. RUNS=200
gives a quick look; ONLY=level, ONLY=tipping or ONLY=cost one part.
"""

from __future__ import annotations

import functools
import json
import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit
from scipy.stats import binomtest, norm

import itrust as it
from itrust._core import write_whole
from itrust.calibration import IntervalRun
from itrust.calibration.interval import scores_of
from itrust.nulls import IntervalNull
from itrust.overturn import tipping_points

RUNS = int(os.environ.get("RUNS", "2000"))
PROCESSES = int(os.environ.get("PROCESSES", "0")) or None
ONLY = os.environ.get("ONLY", "")
SETS = 100  # of labels for one design
POOL, DRAWS = 999, 199
ALPHA = 0.05
ALMOST = 0.999  # a likelihood ratio with a probability of 1 would not be a sum
FOLDER = Path(__file__).parents[1] / "studies" / "pages"
RECORD, PAGE = FOLDER / "overturn.json", FOLDER / "overturn.md"
Points = tuple[dict[str, np.ndarray], np.ndarray]


def plain(rng: np.random.Generator, n: int) -> Points:
    """Two numbers and a region; probabilities of every size."""
    x = {name: rng.normal(size=n) for name in ("age", "income")}
    x["region"] = rng.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2])
    return x, 1 / (1 + np.exp(-x["age"] - 0.5 * rng.normal(size=n)))


def rare(rng: np.random.Generator, n: int) -> Points:
    """The same with about 2 % of events."""
    x, _ = plain(rng, n)
    return x, 1 / (1 + np.exp(4.2 - 0.7 * x["age"]))


def many(rng: np.random.Generator, n: int) -> Points:
    """Ten numbers."""
    x = {f"x{k}": rng.normal(size=n) for k in range(10)}
    return x, 1 / (1 + np.exp(-x["x0"] - 0.5 * x["x1"]))


DESIGNS: dict[str, Callable[[np.random.Generator, int], Points]] = {
    "two numbers and a region": plain,
    "rare events": rare,
    "ten covariates": many,
}
NULLS: dict[str, IntervalNull] = {
    "selection, odds 1.5": it.nulls.Selection(1.5),
    "label error .05": it.nulls.LabelError(0.05),
    "tolerance .05": it.nulls.Tolerance(0.05),
    "prudence": it.nulls.Prudent(),
}


@dataclass(frozen=True)
class LevelCell:
    """Labels from a law at the edge of what a null allows."""

    null: str
    design: str
    n: int
    law: str  # "upper": every probability at its upper end; "split": where the first number is high

    @property
    def title(self) -> str:
        """The first columns of its row."""
        return f"{self.null} | {self.design} | {self.n:,} | {self.law}"

    @property
    def batch(self) -> int:
        """Runs that one seed makes."""
        return SETS

    def outcome(self, seed: int) -> list[float]:
        """P-values of many sets of labels of one design; they share their draws."""
        rng = np.random.default_rng([seed, self.n, len(self.null), len(self.design)])
        x, p = DESIGNS[self.design](rng, self.n)
        null = NULLS[self.null]
        lo, hi = null.bounds(p)
        first = next(iter(x.values()))
        pi = hi if self.law == "upper" else np.where(first > 0, hi, lo)
        y = rng.random((self.n, SETS)) < pi[:, None]
        sample = it.Sample(y[:, 0].astype(int), p, x)
        run = IntervalRun.of(sample, None, POOL, seed, it.engines.Factor(threads=1))
        outcome = run.engine.run(run.survey, [], works=[run.work([null])])
        (sums,) = outcome.works
        own = (run.directions.parts(sample.points, np.float64) @ y.astype(float))[None]
        drawn = scores_of(run.directions, sums, 0).combined[1:]
        seen = scores_of(run.directions, replace(sums, high=own, low=own), 0)
        scores = (seen.tails[:, 1:] + np.log(seen.weights)[:, None]).max(axis=0)
        reached = drawn[:, None] >= scores[None] - 1e-9 * np.abs(scores).max()
        return [float(found) for found in (1 + reached.sum(axis=0)) / (1 + POOL)]


@dataclass(frozen=True)
class TippingCell:
    """A violation of one size everywhere."""

    kind: str
    size: float
    n: int = 20_000

    @property
    def title(self) -> str:
        """The first columns of its row."""
        return f"{self.kind.replace('_', ' ')} | {self.size:g} | {self.n:,}"

    @property
    def batch(self) -> int:
        """Runs that one seed makes."""
        return 1

    def null(self, size: float) -> IntervalNull:
        """A violation of any size."""
        made: dict[str, Callable[[float], IntervalNull]] = {
            "selection": it.nulls.Selection,
            "label_error": it.nulls.LabelError,
            "tolerance": it.nulls.Tolerance,
        }
        return made[self.kind](size)

    def limit(self) -> float:
        """The largest median that a test can have which knows the direction of the violation.

        Likelihood ratios are best against one law, and sums of so many terms are nearly normal.
        """
        _, p = plain(np.random.default_rng([0, self.n, 7]), self.n)
        truth = self.null(self.size).bounds(p)[1]

        def excess(size: float) -> float:
            law = self.null(size).bounds(p)[1]
            ratio = logit(np.minimum(truth, ALMOST)) - logit(np.minimum(law, ALMOST))
            sd = np.sqrt((ratio**2 * law * (1 - law)).sum())
            return float(ratio @ (truth - law) / sd - norm.isf(ALPHA))

        neutral = 1.0 if self.kind == "selection" else 0.0
        room = self.size - neutral
        return float(brentq(excess, neutral + 0.01 * room, self.size - 0.001 * room))

    def outcome(self, seed: int) -> list[float]:
        """The tipping point of one set of rows."""
        rng = np.random.default_rng([seed, self.n, 7])
        x, p = plain(rng, self.n)
        y = rng.random(self.n) < self.null(self.size).bounds(p)[1]
        sample = it.Sample(y.astype(int), p, x)
        run = IntervalRun.of(sample, None, DRAWS, seed, it.engines.Factor(threads=1))
        (neutral,), _ = run.run([it.nulls.Tolerance(0.0)])
        (tipping,) = tipping_points(run, neutral, ALPHA, (self.kind,))
        return [np.nan if tipping.point is None else tipping.point]


LEVEL_CELLS = [
    LevelCell(null, design, n, law)
    for null in NULLS
    for design in DESIGNS
    for n in (500, 5_000)
    for law in ("upper", "split")
    if law == "upper" or null != "prudence"
]
TIPPING_CELLS = [
    TippingCell("selection", 1.5),
    TippingCell("label_error", 0.05),
    TippingCell("tolerance", 0.05),
]
CELLS: dict[str, list[Any]] = {"level": LEVEL_CELLS, "tipping": TIPPING_CELLS}


def cost() -> dict[str, list[float]]:
    """Seconds of one processor: the test itself, one interval null, all tipping points."""
    found = {}
    for n in (5_000, 20_000, 100_000):
        rng = np.random.default_rng([1, n])
        x, p = plain(rng, n)
        y = rng.random(n) < it.nulls.Selection(1.5).bounds(p)[1]
        sample = it.Sample(y.astype(int), p, x)
        calls: list[Callable[[], Any]] = [
            lambda sample=sample: it.klce_test(sample, rng=0),
            lambda sample=sample: it.klce_test(sample, null=it.nulls.Selection(1.2), rng=0),
            lambda sample=sample: it.robustness(sample, rng=0),
        ]
        seconds = []
        for call in calls:
            begun = time.process_time()
            call()
            seconds.append(round(time.process_time() - begun, 2))
        found[f"{n:,}"] = seconds
    return found


def page(record: dict[str, Any]) -> str:
    """The tables; what is said of them is made of the figures alone."""
    lines = ["# What would overturn it", "", INTRODUCTION, "", "## Level at the worst laws", ""]
    lines += [LEVEL, "", "| null | design | rows | law | runs | rejected |"]
    lines += ["|---|---|---|---|---|---|"]
    for cell in LEVEL_CELLS:
        found = record["level"].get(cell.title)
        if found:
            share = found["rejected"] / found["runs"]
            test = binomtest(found["rejected"], found["runs"], ALPHA, alternative="greater")
            mark = "**" if test.pvalue < 0.001 else ""
            lines.append(f"| {cell.title} | {found['runs']:,} | {mark}{share:.3f}{mark} |")
    lines += ["", "## Tipping points of a planted violation", "", TIPPING, ""]
    lines += [
        "| violation | truth | rows | runs | median | at best | 5 % | 95 % | above the truth |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for cell in TIPPING_CELLS:
        points = np.array(record["tipping"].get(cell.title, []), dtype=float)
        if points.size:
            low, middle, high = np.quantile(points, [0.05, 0.5, 0.95])
            above = float(np.mean(points >= cell.size))
            told = f"{middle:.4g} | {cell.limit():.4g} | {low:.4g} | {high:.4g} | {above:.3f}"
            lines.append(f"| {cell.title} | {points.size:,} | {told} |")
    if record.get("cost"):
        lines += ["", "## Cost", "", COST, ""]
        columns = "rows | the test itself | one interval null | ratio | all tipping points | ratio"
        lines += [f"| {columns} |", "|---|---|---|---|---|---|"]
        for n, (own, one, every) in record["cost"].items():
            told = f"{one:.2f} | {one / own:.2f} | {every:.2f} | {every / own:.2f}"
            lines.append(f"| {n} | {own:.2f} | {told} |")
    return "\n".join([*lines, ""])


INTRODUCTION = """How the test of an interval null behaves where it has least to spare.
`make study NAME=overturn` makes the tables, and goes on where it was stopped (`RUNS=2000` by
default)."""
LEVEL = f"""Labels follow a law at the edge of what the null allows: every probability at its upper
end, or at the upper end where the first number is above 0 and at the lower end elsewhere. Shares
rejected at .05; bold where a binomial test at .001 says that it is more. {SETS} sets of labels
share their covariates, their probabilities and {POOL:,} draws."""
TIPPING = f"""Every probability is moved by the same violation. The tipping point at .05, with
{DRAWS} draws, is a lower confidence limit for it: it may lie above the truth in 5 % of the runs.
"At best" is about the median of the best test against this one law at level .05 (likelihood
ratios): no test that holds its level can have a much larger one."""
COST = """Seconds of one processor with 999 draws, in one run each: the test of calibration itself,
the test of `Selection(1.2)`, and `robustness`, which searches the tipping points of five kinds of
violation and looks at prudence."""


def one_run(cell: LevelCell | TippingCell, seed: int) -> list[float]:
    return cell.outcome(seed)


def main() -> None:
    begun = time.perf_counter()
    record: dict[str, Any] = {"level": {}, "tipping": {}, "cost": {}}
    if RECORD.exists() and not os.environ.get("FRESH"):
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    if ONLY in ("", "cost"):
        record["cost"] = cost()
        write_whole(RECORD, json.dumps(record, indent=1) + "\n")
        write_whole(PAGE, page(record))
    with ProcessPoolExecutor(PROCESSES) as pool:
        for at in range(0, RUNS, SETS):  # all cells grow together
            for part, cells in CELLS.items():
                for cell in cells:
                    if ONLY in ("", part):
                        _extend(pool, record[part], part, cell, at + SETS)
                        write_whole(RECORD, json.dumps(record, indent=1) + "\n")
            print(f"{time.perf_counter() - begun:6.0f} s  {at + SETS:,} runs", flush=True)
            write_whole(PAGE, page(record))


def _extend(
    pool: ProcessPoolExecutor, found: dict[str, Any], part: str, cell: Any, runs: int
) -> None:
    """Make the runs of a cell that are missing."""
    counts = found.setdefault(cell.title, {"runs": 0, "rejected": 0} if part == "level" else [])
    done = counts["runs"] if part == "level" else len(counts)
    seeds = range(done // cell.batch, runs // cell.batch)
    outcomes = list(pool.map(functools.partial(one_run, cell), seeds, chunksize=5))
    values = [value for outcome in outcomes for value in outcome]
    if part == "level":
        counts["runs"] += len(values)
        counts["rejected"] += sum(value <= ALPHA for value in values)
    else:
        counts.extend(round(value, 5) for value in values)


if __name__ == "__main__":
    main()
