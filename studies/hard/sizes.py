"""The sizes that are quoted, beside the truth at the place that is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import itrust as it
from hard.kit import Section, decimal, repeated, share, table
from itrust.bias import PartBias
from people import people

DRAWS = 99
TOLERANCE = 0.05

Quote = tuple[float, float, float]  # at least, estimate, truth
Bias = Callable[[dict[str, np.ndarray]], np.ndarray]

SLICES: dict[str, tuple[int, Bias]] = {
    "lab missing, .10": (10_000, lambda x: 0.10 * np.isnan(x["lab"])),
    "age < 30 and charge = F, .10": (
        10_000,
        lambda x: 0.10 * ((x["age"] < 30) & (x["charge"] == "F")),
    ),
    "lab missing, .10, fewer rows": (4_000, lambda x: 0.10 * np.isnan(x["lab"])),
}
GROUPS: dict[str, float] = {"one of eight groups, .10": 0.10, "one of eight groups, .05": 0.05}


def slice_run(name: str, seed: int) -> list[Quote]:
    """The confirmed slice that a verdict would quote first."""
    n, of = SLICES[name]
    rng = np.random.default_rng([seed, 41])
    x = people(rng, n)
    p = np.clip(0.4 + 0.08 * rng.normal(size=n), 0.1, 0.8)
    shift = of(x)
    sample = it.Sample(rng.random(n) < p + shift, p, x, missing="level")
    found = it.bias_slices(sample, draws=DRAWS, rng=seed).confirmed
    return [
        quote(part, float(shift[part.where.rows(sample.points)].mean()))
        for part in found
        if abs(part.at_least) >= TOLERANCE
    ][:1]


def quote(part: PartBias, truth: float) -> Quote:
    """Sizes in the direction of the part."""
    sign = float(np.sign(part.bias))
    return abs(part.at_least), sign * part.estimate, sign * truth


def group_run(name: str, seed: int) -> list[Quote]:
    """Groups that are marked."""
    rng = np.random.default_rng([seed, 42])
    g = rng.integers(0, 8, 2_000)
    p = rng.uniform(0.2, 0.6, g.size)
    shift = GROUPS[name] * (g == 0)
    sample = it.Sample(rng.random(g.size) < p + shift, p, {"g": [f"g{k}" for k in g]})
    table_ = it.bias_groups(sample, "g", draws=DRAWS, rng=seed)
    return [
        quote(part, float(shift[part.where.rows(sample.points)].mean()))
        for part in table_
        if part.pvalue <= table_.alpha
    ]


def line(kind: str, name: str, runs: Iterable[list[Quote]]) -> list[str]:
    """One design: how often anything was quoted, the bounds and the estimates beside the truth."""
    every = list(runs)
    quotes = [found for run in every for found in run]
    head = [kind, name, share(bool(run) for run in every)]
    if not quotes:
        return [*head, "", "", "", "", ""]
    least, estimate, truth = np.array(quotes).T.mean(axis=1)
    false = share(any(a > c for a, _, c in run) for run in every)
    sizes = [decimal(float(value)) for value in (least, truth)]
    return [*head, *sizes, false, str(len(quotes)), f"{estimate - truth:+.3f}"]


def make(pool: ProcessPoolExecutor, runs: int) -> str:
    """The section."""
    kinds = (("a slice", SLICES, slice_run), ("a group", GROUPS, group_run))
    lines = [
        line(kind, name, repeated(pool, partial(run, name), runs))
        for kind, designs, run in kinds
        for name in designs
    ]
    head = [
        "quoted",
        "bias",
        "runs with a quote",
        "at least",
        "truth there",
        "runs with a bound above the truth",
        "estimates",
        "estimate less truth",
    ]
    return TEXT.format(runs=runs, table=table(head, lines))


TEXT = """\
A verdict quotes the end of the interval next to 0, "at least", and an estimate less what being
singled out adds. {runs} runs a line, 99 draws; truth is the mean bias of the part.

{table}

Bounds are above the truth in at most .05 of the runs, and estimates are those of the place.
"""

SECTION = Section("sizes", "Sizes that are quoted", 200, make)
