"""Coefficients of regressions: coverage, width and level. `make study NAME=regressions`.

Writes studies/pages/regressions.md. RUNS=50 gives a quick look.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import binomtest

import itrust as it
from itrust.tasks.expressions import TaskRows

RUNS = int(os.environ.get("RUNS", "500"))
PAGE = Path(__file__).parents[1] / "studies" / "pages" / "regressions.md"
MANY = 400_000
WAYS = ("plugin", "recalibrated", "prediction_powered", "labelled")
Drawn = tuple[np.ndarray, np.ndarray, dict[str, Any], dict[str, Any]]  # y, p, covariates, design


def _rows(rng: np.random.Generator, n: int, *, start: float = -2.0, tiny: float = 0.2) -> Any:
    """Covariates, and log odds that also depend on what no covariate tells."""
    age = rng.uniform(20, 80, n)
    group = rng.choice(["a", "b", "c"], n, p=[0.7 - tiny, 0.3, tiny])
    eta = start + 0.04 * age + 0.5 * (group == "b") + 1.5 * rng.normal(size=n)
    return {"age": age, "group": group}, eta


def _labels(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return (rng.random(eta.size) < expit(eta)).astype(float)


def biased(rng: np.random.Generator, n: int) -> Drawn:
    """Predictions that are too flat, and off for one group."""
    x, eta = _rows(rng, n)
    return _labels(rng, eta), expit(0.7 * eta + 0.5 * (x["group"] == "c")), x, {}


def calibrated(rng: np.random.Generator, n: int) -> Drawn:
    """Predictions that are right."""
    x, eta = _rows(rng, n)
    return _labels(rng, eta), expit(eta), x, {}


def rare(rng: np.random.Generator, n: int) -> Drawn:
    """About one positive in twenty."""
    x, eta = _rows(rng, n, start=-6.5)
    return _labels(rng, eta), expit(0.8 * eta - 0.5), x, {}


def extreme(rng: np.random.Generator, n: int) -> Drawn:
    """Predictions near 0 and 1."""
    x, _ = _rows(rng, n)
    p = np.clip(rng.beta(0.25, 0.25, n), 1e-4, 1 - 1e-4)
    return (rng.random(n) < p).astype(float), p, x, {}


def tiny(rng: np.random.Generator, n: int) -> Drawn:
    """A group of one row in thirty."""
    x, eta = _rows(rng, n, tiny=0.033)
    return _labels(rng, eta), expit(0.7 * eta + 0.5 * (x["group"] == "c")), x, {}


def weighted(rng: np.random.Generator, n: int) -> Drawn:
    """Weights whose effective size is four tenths of the rows."""
    y, p, x, _ = biased(rng, n)
    return y, p, x, {"weights": np.exp(rng.normal(0, 1, n))}


def clustered(rng: np.random.Generator, n: int) -> Drawn:
    """Ten rows a cluster that share their age, and three tenths of what makes a label."""
    cluster = np.arange(n) // 10
    x, _ = _rows(rng, n)
    x["age"] = rng.uniform(20, 80, cluster[-1] + 1)[cluster]
    eta = -2 + 0.04 * x["age"] + 0.5 * (x["group"] == "b")
    shared = np.sqrt(0.3) * rng.normal(size=cluster[-1] + 1)[cluster]
    y = ndtr(shared + np.sqrt(0.7) * rng.normal(size=n)) < expit(eta)
    return y.astype(float), expit(0.7 * eta), x, {"cluster": cluster}


DESIGNS: dict[str, tuple[Callable[[np.random.Generator, int], Drawn], int, int]] = {
    "biased predictions": (biased, 1_000, 3_000),
    "calibrated predictions": (calibrated, 1_000, 3_000),
    "rare events": (rare, 1_500, 3_000),
    "predictions near 0 and 1": (extreme, 1_000, 3_000),
    "a small group": (tiny, 1_000, 3_000),
    "unequal weights": (weighted, 1_000, 3_000),
    "clusters of ten": (clustered, 1_000, 3_000),
    "few rows": (biased, 250, 2_000),
}
TASKS = {
    "age, logit": "coef(age ; age + group)",
    "group c, logit": 'coef(group["c"] ; age + group)',
    "group c, identity": 'coef(group["c"] ; age + group ; identity)',
    "group b, log": 'coef(group["b"] ; age + group ; log)',
}


@functools.cache
def truths(design: str) -> dict[str, tuple[float, float]]:
    """Coefficients of labels and of probabilities among very many rows."""
    y, p, x, _ = DESIGNS[design][0](np.random.default_rng(99), MANY)
    sample = it.Sample(y, p, x)
    found = {}
    for name, text in TASKS.items():
        task = it.tasks.parse(text)
        labels, predicted = TaskRows.labelled(sample), TaskRows.predicted(sample)
        found[name] = (task.linear(labels).value, task.linear(predicted).value)
    return found


def one_run(job: tuple[str, int]) -> dict[str, list[float] | None]:
    """Whether every interval covers and its width; the bias; None where a task is refused."""
    design, seed = job
    draw, n, size = DESIGNS[design]
    y, p, x, beside = draw(np.random.default_rng(seed), n + size)
    own = {name: values[:n] for name, values in beside.items()}
    few = it.Sample(y[:n], p[:n], {name: values[:n] for name, values in x.items()}, **own)
    rest = it.Population(p[n:], {name: values[n:] for name, values in x.items()})
    found: dict[str, list[float] | None] = {}
    for name, text in TASKS.items():
        task, (truth, plugin) = it.tasks.parse(text), truths(design)[name]
        try:
            bias = task.evaluate(few, draws=199, rng=seed)
            estimate = task.estimate(rest, labelled=few)
        except it.InputError:
            found[name] = None
            continue
        cells = [bias.lower <= truth - plugin <= bias.upper, bias.upper - bias.lower]
        for way in WAYS:
            ends = getattr(estimate, way)
            cells += [ends.lower <= truth <= ends.upper, ends.width]
        found[name] = [float(cell) for cell in cells]
    return found


def told(covered: np.ndarray) -> str:
    text = f"{covered.mean():.3f}".removeprefix("0")
    excluded = binomtest(int(covered.sum()), covered.size, 0.95).pvalue < 0.001
    return f"**{text}**" if excluded else text


def lines(design: str, outcomes: list[dict[str, list[float] | None]]) -> Iterator[str]:
    for name in TASKS:
        known = [outcome[name] for outcome in outcomes if outcome[name] is not None]
        values = np.array(known, dtype=float)
        cells = [
            f"{told(values[:, k])} ({values[:, k + 1].mean():.3g})"
            for k in range(0, values.shape[1], 2)
        ]
        refused = f"{len(outcomes) - len(known)}"
        yield f"| {design} | {name} | {' | '.join(cells)} | {refused} |"


def main() -> None:
    begun = time.perf_counter()
    heads = ("design", "coefficient", "bias", *(way.replace("_", "-") for way in WAYS), "refused")
    table = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    with ProcessPoolExecutor() as pool:
        for design in DESIGNS:
            outcomes = list(pool.map(one_run, [(design, run) for run in range(RUNS)], chunksize=5))
            for line in lines(design, outcomes):
                table.append(line)
                print(line, flush=True)
    PAGE.write_text(TEXT.format(runs=RUNS, table="\n".join(table)))
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


TEXT = """\
# Coefficients of regressions

Made by `RUNS={runs} make study NAME=regressions`: regressions of a label on an age and a group of
three levels, in eight designs. The table has the share of 95 % intervals that contain the truth
and, in parentheses, their mean width; bold where a binomial test at .001 excludes .95. Labels
depend on more than age and group, so no regression is the true one: the truth is what it gives for
very many rows.

{table}

*Bias* is the interval for what probabilities do to the coefficient, from labelled rows alone. It
excludes 0 if and only if the p-value is at most .05, so its errors are the level of the p-value
where predictions are calibrated (the second design, and that with predictions near 0 and 1). The
other columns are estimates on a population without labels: *plug-in* takes probabilities as they
are, *recalibrated* adds the local bias of the labelled rows, *prediction-powered* solves the
corrected equation, and *labelled* uses labelled rows only, with a sandwich. *Refused* counts runs
in which labels gave no estimate, such as a level without positives.
"""


if __name__ == "__main__":
    main()
