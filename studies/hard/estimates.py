"""Estimates on a population where few positives are labelled."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, logit

import itrust as it
from hard.kit import Section, decimal, repeated, table
from itrust.data import Points
from itrust.tasks.expressions import TaskRows

WAYS = {
    "labelled": "labels alone",
    "prediction_powered": "prediction-powered",
    "recalibrated": "recalibrated",
}
RATE, MEAN, INSIDE = 'prevalence(r == "a")', "mean(x)", 'mean(x | r == "a")'
POPULATION, MANY = 800, 400_000
BROKEN = """\
Estimates on a population had a normal quantile and the variance that labels show of themselves.
With three positives that variance is often far too small, and with none the interval was
`0 (0 to 0)`."""
SHOWN = """\
Coverage of nominal 95 % intervals in {runs} runs, and in brackets their mean width over that of an
oracle (the normal quantile times the standard deviation of the estimate over all runs). The
shortest interval of all is {least:.3g} wide. Runs without a positive label that counts are refused
and left out."""


@dataclass(frozen=True)
class Design:
    """A fifth of the rows are of group a; log odds follow x and something unseen."""

    title: str
    task: str
    before: str
    rows: int = 500
    rate: float = 0.034  # where log odds of group a are centred
    rest: float = 0.1
    along_x: float = 0.4
    noise: float = 0.5  # of the model, in log odds
    shrink: float = 1.0  # of the model's log odds
    skewed: bool = False
    cluster_size: int | None = None
    weighted: bool = False

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[np.ndarray, ...]:
        """Group, x, what is unseen, truth and probabilities."""
        r, z, unseen = rng.random(rows) < 0.2, rng.normal(size=rows), rng.normal(size=rows)
        x = np.exp(z) if self.skewed else 50 + 15 * z
        odds = logit(np.where(r, self.rate, self.rest)) + self.along_x * z + 0.8 * unseen - 0.4
        if self.cluster_size:
            odds += 0.8 * rng.normal(size=rows)[np.arange(rows) // self.cluster_size]
        p = expit(self.shrink * odds + self.noise * rng.normal(size=rows))
        return np.where(r, "a", "b"), x, unseen, expit(odds), p

    def truth(self) -> float:
        """The number where the population comes from."""
        r, x, _, truth, p = self.draw(np.random.default_rng(0), MANY)
        many = it.Population(p, {"r": r, "x": x})
        rows = TaskRows(Points(many.p, many.columns), np.ones(MANY), truth)
        return it.tasks.parse(self.task).linear(rows).value

    def labelled(self, rng: np.random.Generator) -> it.Sample:
        """Rows with labels; with weights, those high in what is unseen are likelier."""
        drawn = self.rows * (3 if self.weighted else 1)
        r, x, unseen, truth, p = self.draw(rng, drawn)
        y, chance = rng.random(drawn) < truth, np.where(unseen > 0, 1 / 2, 1 / 6)
        kept = rng.random(drawn) < chance if self.weighted else np.ones(drawn, dtype=bool)
        unit = np.arange(drawn) // self.cluster_size if self.cluster_size else None
        return it.Sample(
            y[kept],
            p[kept],
            {"r": r[kept], "x": x[kept]},
            weights=1 / chance[kept] if self.weighted else None,
            cluster=unit,
        )


DESIGNS = (
    Design("rate .034, 100 rows of a", RATE, ".87"),
    Design("rate .034, shrunken model, clusters of 4", RATE, "", shrink=0.5, cluster_size=4),
    Design("rate .034, weights", RATE, "", weighted=True),
    Design("10 positives", MEAN, ".90", rate=0.018, rest=0.018),
    Design("10 positives, x lognormal", MEAN, "", rate=0.018, rest=0.018, skewed=True),
    Design("3 to 5 positives", INSIDE, ".70 to .78", rate=0.04),
    Design("3 to 5 positives, x lognormal", INSIDE, "", rate=0.04, skewed=True),
    Design(
        "3 to 5 positives, poor model, weights", INSIDE, "", rate=0.04, noise=1.2, weighted=True
    ),
)


def ends(design: Design, seed: int) -> list[tuple[float, float, float]] | None:
    """Value and interval of every way; nothing if no positive label counts."""
    rng = np.random.default_rng([17, seed])
    labelled = design.labelled(rng)
    r, x, _, _, p = design.draw(rng, POPULATION)
    try:
        found = it.tasks.parse(design.task).estimate(
            it.Population(p, {"r": r, "x": x}), labelled=labelled
        )
    except it.InputError:
        return None
    return [(way.value, way.lower, way.upper) for way in (found.ways[name] for name in WAYS)]


def make(pool: ProcessPoolExecutor, runs: int) -> str:
    """Coverage and width of three ways in every design."""
    rows, least = [], np.inf
    for design in DESIGNS:
        truth = design.truth()
        outcomes = repeated(pool, partial(ends, design), runs)
        found = np.array([run for run in outcomes if run is not None])
        value, lower, upper = found[..., 0], found[..., 1], found[..., 2]
        covered = ((lower <= truth) & (truth <= upper)).mean(axis=0)
        wide = (upper - lower).mean(axis=0) / (2 * 1.96 * value.std(axis=0))
        least = min(least, float((upper - lower).min()))
        cells = [f"{decimal(c)} ({w:.2f})" for c, w in zip(covered, wide, strict=True)]
        task = design.task.replace("|", "\\|")  # a table has bars of its own
        rows.append([design.title, f"`{task}`", f"{truth:.4g}", design.before, *cells])
    head = ["design", "task", "truth", "before", *WAYS.values()]
    return "\n\n".join([BROKEN, table(head, rows), SHOWN.format(runs=runs, least=least)])


SECTION = Section("estimates", "Estimates from few positives", 500, make)
