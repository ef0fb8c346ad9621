"""Tasks on a population without labels: coverage and width. `make study NAME=estimates`.

Writes studies/pages/estimates.md. RUNS=50 gives a quick look. The last column of the first line
needs `pip install ppi-python` (part of the test extra).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import itrust as it
from itrust.tasks.expressions import TaskRows

RUNS = int(os.environ.get("RUNS", "500"))
ROWS, LABELLED = 6_000, 0.2
PAGE = Path(__file__).parents[1] / "studies" / "pages" / "estimates.md"
WAYS = ("plugin", "recalibrated", "prediction_powered", "labelled")
TASKS = {
    "prevalence": "prevalence()",
    "age of owners": "mean(age)",
    "gap in prevalence": 'prevalence(region == "south") - prevalence(region == "west")',
    "gap in age of owners": 'mean(age | region == "south") - mean(age | region == "west")',
}


@functools.cache
def truths() -> dict[str, float]:
    many = it.simulate.survey(2_000_000, rng=99)
    rows = TaskRows(many.sample.points, np.ones(many.sample.n), many.truth)
    return {name: it.tasks.parse(text).linear(rows).value for name, text in TASKS.items()}


def one_run(seed: int) -> dict[str, list[float]]:
    """Covers or not, and width, for every task and way; for prevalence also ppi-python's."""
    few, rest = it.simulate.survey(ROWS, rng=seed).sample.split([LABELLED, 1 - LABELLED], rng=seed)
    x = {
        c.name: [c.levels[int(v)] for v in c.values] if c.is_category else c.values
        for c in rest.columns
    }
    population = it.Population(rest.p, x)
    found = {}
    for name, text in TASKS.items():
        estimate = it.tasks.parse(text).estimate(population, labelled=few)
        ends = [(getattr(estimate, way).lower, getattr(estimate, way).upper) for way in WAYS]
        if name == "prevalence":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from ppi_py import ppi_mean_ci

                low, high = ppi_mean_ci(few.y, few.p, rest.p, alpha=0.05)
            ends.append((float(low[0]), float(high[0])))
        truth = truths()[name]
        found[name] = [v for low, high in ends for v in (low <= truth <= high, high - low)]
    return found


def told(covered: np.ndarray) -> str:
    text = f"{covered.mean():.3f}".removeprefix("0")
    excluded = binomtest(int(covered.sum()), covered.size, 0.95).pvalue < 0.001
    return f"**{text}**" if excluded else text


def main() -> None:
    begun = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        outcomes = list(pool.map(one_run, range(RUNS), chunksize=5))
    heads = (*WAYS, "ppi-python")
    lines = [f"| task | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name in TASKS:
        values = np.array([outcome[name] for outcome in outcomes], dtype=float)
        cells = [
            f"{told(values[:, k])} ({values[:, k + 1].mean():.3g})"
            for k in range(0, values.shape[1], 2)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |{' |' * (len(heads) - len(cells))}")
        print(lines[-1], flush=True)
    labelled = int(LABELLED * ROWS)
    page = TEXT.format(runs=RUNS, labelled=labelled, rest=ROWS - labelled, table="\n".join(lines))
    PAGE.write_text(page)
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


TEXT = """\
# A number for a population without labels

Made by `RUNS={runs} make study NAME=estimates`: the simulated survey, whose model is miscalibrated
in the south and the west; {labelled:,} rows with labels, {rest:,} without. The table has the share
of 95 % intervals that contain the truth and, in parentheses, their mean width; bold where a
binomial test at .001 excludes .95.

{table}

*Plug-in* takes the probabilities as they are, and its interval covers sampling alone.
*Recalibrated* adds the local bias of the labelled rows. *Prediction-powered* corrects the
probabilities by labels, with a weight that is chosen for a short interval; for a plain mean it is
what [ppi-python](https://github.com/aangelopoulos/ppi_py) does, which has no means among positives
and no arithmetic of tasks. *Labelled* uses the labelled rows only.
"""


if __name__ == "__main__":
    main()
