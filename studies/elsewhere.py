"""Numbers for populations that nobody sampled at random. `make study NAME=elsewhere`.

Writes studies/pages/elsewhere.md. RUNS=60 gives a quick look; ONLY=young,weak some designs, which
are printed and not written.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binomtest

import itrust as it
from itrust.data import Points
from itrust.tasks import estimate_tasks
from itrust.tasks.expressions import TaskRows

RUNS = int(os.environ.get("RUNS", "500"))
PROCESSES = int(os.environ.get("PROCESSES", "0")) or None
ONLY = [name for name in os.environ.get("ONLY", "").split(",") if name]
PAGE = Path(__file__).parents[1] / "studies" / "pages" / "elsewhere.md"
MANY = 1_000_000
WAYS = ("plugin", "prediction_powered", "recalibrated", "transported", "best")
TASKS = (
    "prevalence()",
    'prevalence(region == "south") - prevalence(region == "west")',
    "mean(age)",
)
COEFFICIENTS = (
    'coef(region["south"] ; age + region against "west")',
    'coef(region["south"] ; region against "west" ; identity)',
    "coef(age ; age + region)",
)
Columns = dict[str, np.ndarray]
Drawn = tuple[Columns, np.ndarray, np.ndarray]  # covariates, probabilities, truth


def survey(rng: np.random.Generator, n: int) -> Drawn:
    """The simulated survey: the model is miscalibrated in the south and the west."""
    made = it.simulate.survey(n, rng=rng)
    x = {
        c.name: np.array(c.levels)[c.values] if c.is_category else c.values
        for c in made.sample.columns
    }
    return x, made.sample.p, made.truth


def lacking(rng: np.random.Generator, n: int) -> Drawn:
    """The survey, with a covariate that matters and that the model has never seen."""
    x, p, truth = survey(rng, n)
    rooms = rng.normal(size=n)
    return {**x, "rooms": np.round(4 + 1.5 * rooms, 2)}, p, expit(logit(truth) + 0.9 * rooms)


def rare(rng: np.random.Generator, n: int) -> Drawn:
    """Some 4 % of positives, from a model that is too sure of itself."""
    x, _, _ = survey(rng, n)
    z = (x["age"] - 52) / 19
    odds = -3.6 + 0.8 * z + 0.5 * (x["region"] == "south")
    return x, expit(1.4 * odds + 0.8), expit(odds)


def extreme(rng: np.random.Generator, n: int) -> Drawn:
    """Probabilities near 0 and 1, and incomes with a heavy tail."""
    x, _, _ = survey(rng, n)
    income = 20_000 * rng.pareto(1.5, n) + 10_000
    odds = 4 * (x["age"] - 52) / 19 + 0.5 * (np.log(income) - 10)
    x = {**x, "income": np.round(income, -2)}
    return x, expit(1.3 * odds), expit(odds)


@dataclass(frozen=True)
class Design:
    """Where rows come from, and who is labelled."""

    title: str
    chance: Callable[[Columns, np.ndarray], np.ndarray]  # up to a factor
    draw: Callable[[np.random.Generator, int], Drawn] = survey
    rows: int = 6_000
    labelled: int = 1_200
    known: bool = False
    apart: bool = False  # whether the population is another file
    selected: bool = True
    tasks: tuple[str, ...] = TASKS


def _young(slope: float) -> Callable[[Columns, np.ndarray], np.ndarray]:
    return lambda x, p: np.exp(-slope * x["age"])  # noqa: ARG005


def _three(x: Columns, p: np.ndarray) -> np.ndarray:
    return np.exp(-0.025 * x["age"] + 0.7 * (x["region"] == "south") - 1.5 * p)


def _rooms(x: Columns, p: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return np.exp(0.5 * (x["rooms"] - 4))


def _alike(x: Columns, p: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return np.ones(p.size)


def _step(x: Columns, p: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return np.where(x["age"] < 45, 4.0, 1.0)


DESIGNS = {
    "young": Design("the young likelier", _young(0.05)),
    "step": Design("those below 45 four times as likely", _step),
    "three": Design("age, region and p", _three),
    "strong": Design("the young far likelier", _young(0.085)),
    "known": Design("probabilities known", _young(0.05), known=True),
    "few": Design("400 labelled rows", _young(0.05), labelled=400),
    "lacking": Design("on a covariate that the model lacks", _rooms, lacking),
    "apart": Design("population in another file", _young(0.05), apart=True),
    "rare": Design("4 % positives", _young(0.03), rare, 10_000, 2_000),
    "extreme": Design("p near 0 and 1, heavy tail", _young(0.04), extreme),
    "sixty": Design("60 labelled rows", _young(0.03), labelled=60),
    "weak": Design("the young hardly likelier", _young(0.007)),
    "coefficients": Design("the young likelier", _young(0.05), tasks=COEFFICIENTS),
    "coefficients_known": Design(
        "probabilities known", _young(0.05), known=True, tasks=COEFFICIENTS
    ),
    "coefficients_lacking": Design(
        "on a covariate that the model lacks", _rooms, lacking, tasks=COEFFICIENTS
    ),
    "coefficients_random": Design("labels at random", _alike, selected=False, tasks=COEFFICIENTS),
    "random": Design("labels at random", _alike, selected=False),
    "random_few": Design("400 labels at random", _alike, labelled=400, selected=False),
}


@functools.cache
def truths(
    draw: Callable[[np.random.Generator, int], Drawn], tasks: tuple[str, ...]
) -> list[float]:
    """The numbers where rows come from."""
    x, p, truth = draw(np.random.default_rng(99), MANY)
    rows = TaskRows(Points(p, it.Population(p, x).columns), np.ones(MANY), truth)
    return [it.tasks.parse(text).linear(rows).value for text in tasks]


def one_run(name: str, seed: int) -> dict[str, object] | None:
    """Intervals of all ways, and what the look at the rows said."""
    design = DESIGNS[name]
    rng = np.random.default_rng([sum(map(ord, name)), seed])
    x, p, truth = design.draw(rng, design.rows)
    y = rng.random(design.rows) < truth
    chance = design.chance(x, p)
    if design.known:
        pi = np.minimum(1.0, chance * design.labelled / chance.sum())
        chosen = np.flatnonzero(rng.random(design.rows) < pi)
        selection = pi[chosen]
    else:
        share = chance / chance.sum()
        chosen = np.sort(rng.choice(design.rows, design.labelled, replace=False, p=share))
        selection = None
    few = it.Sample(y[chosen], p[chosen], {key: column[chosen] for key, column in x.items()})
    if design.apart:
        x, p, _ = design.draw(rng, design.rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = estimate_tasks(
                [it.tasks.parse(text) for text in design.tasks],
                it.Population(p, x),
                few,
                selection=selection,
                rng=seed,
            )
        except it.InputError as error:
            print(name, seed, error, file=sys.stderr)
            return None
    ends = [
        [
            (np.nan,) * 3 if way is None else (way.value, way.lower, way.upper)
            for way in (getattr(one, kind) for kind in WAYS)
        ]
        for one in found
    ]
    look = found[0].resemblance
    return {
        "ends": ends,
        "pvalue": look.pvalue,
        "named": look.differences[0].name if look.differences else "",
        "effective": found[0].effective / few.n,
        "unlike": look.unlike,
        "powered": [one.best_way == "prediction_powered" for one in found],
    }


def told(covered: np.ndarray) -> str:
    text = f"{covered.mean():.3f}".removeprefix("0")
    excluded = binomtest(int(covered.sum()), covered.size, 0.95).pvalue < 0.001
    return f"**{text}**" if excluded else text


def described(name: str, outcomes: list[dict[str, object]]) -> tuple[list[str], str]:
    """Rows of the table of coverage, and one of that of resemblance."""
    design = DESIGNS[name]
    ends = np.array([run["ends"] for run in outcomes], dtype=float)  # runs, tasks, ways, 3
    truth = np.array(truths(design.draw, design.tasks))[:, None]
    covers = (ends[..., 1] <= truth) & (truth <= ends[..., 2])
    lines = []
    for task, text in enumerate(design.tasks):
        cells = []
        for way in range(len(WAYS)):
            given = np.isfinite(ends[:, task, way, 0])
            if not given.any():
                cells.append("")
                continue
            width = (ends[given, task, way, 2] - ends[given, task, way, 1]).mean()
            some = "" if given.all() else f", {given.sum()} of {given.size} given"
            cells.append(f"{told(covers[given, task, way])} ({width:.3g}{some})")
        short = text.replace("prevalence", "P").replace('region == "', "").replace('")', ")")
        short = short.replace('"', "").replace("coef(", "b(")
        lines.append(f"| {design.title} | {short} | {' | '.join(cells)} |")
    pvalues = np.array([run["pvalue"] for run in outcomes], dtype=float)
    named = [str(run["named"]) for run in outcomes]
    often = max(set(named), key=named.count) if any(named) else ""
    effective = np.nanmean([run["effective"] for run in outcomes])
    unlike = np.mean([run["unlike"] for run in outcomes])
    powered = np.mean([run["powered"] for run in outcomes])
    look = (
        f"| {design.title} | {(pvalues <= 0.05).mean():.3f} | {often} "
        f"({named.count(often) / len(named):.2f}) | {effective:.2f} | {100 * unlike:.2f} % "
        f"| {powered:.2f} |"
    )
    return lines, look


def main() -> None:
    begun = time.perf_counter()
    lines = [
        f"| who is labelled | number | {' | '.join(WAYS)} |".replace("_", "-"),
        f"|---|---|{'---|' * len(WAYS)}",
    ]
    looks = [
        "| who is labelled | differs | first named | effective size | unlike | random form best |",
        "|---|---|---|---|---|---|",
    ]
    with ProcessPoolExecutor(PROCESSES) as pool:
        for name in ONLY or DESIGNS:
            outcomes = list(pool.map(functools.partial(one_run, name), range(RUNS), chunksize=5))
            rows, look = described(name, [run for run in outcomes if run is not None])
            lines += rows
            looks.append(look)
            print("\n".join([*rows, look]), f"{time.perf_counter() - begun:.0f} s", flush=True)
    if ONLY:
        return
    PAGE.write_text(TEXT.format(runs=RUNS, table="\n".join(lines), looks="\n".join(looks)))
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


TEXT = """\
# A number for a population that nobody sampled at random

Made by `RUNS={runs} make study NAME=elsewhere`. Rows come from the simulated survey, whose model is
miscalibrated in the south and the west, 6,000 of them unless said otherwise; 1,200 are labelled,
and who is labelled depends on the covariates. The population is all rows. The table has the share
of 95 % intervals that contain the truth and, in parentheses, their mean width and in how many runs
one was given, if not in all; bold where a binomial test at .001 excludes .95.

{table}

*Transported* recalibrates the probabilities on other rows and weights the labelled rows to be like
the population; *best* is the estimate that is recommended. The other ways are those of
[the study of estimates](estimates.md), which assume that labelled rows are a random sample, or that
the bias is smooth. b(...) is a coefficient of a regression, logistic unless said otherwise.

What the look at the rows says, without labels: how often labelled rows are said to differ at .05,
the covariate that is named first, the effective size of the weights over the number of labelled
rows, the share of the population that no labelled row resembles, and how often the
random-sample form is recommended.

{looks}
"""


if __name__ == "__main__":
    main()
