"""Assumptions that are promised to be looked for: what is found, and what is found wrongly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import itrust as it
from hard.dependent_rows import DEPENDENT, INDEPENDENT, as_sample, drawn
from hard.kit import Section, repeated, share, table
from itrust.calibration.assumptions import ResidualRows, assumption_notes, dependence

Design = Callable[[np.random.Generator], dict[str, Any]]
INTRODUCTION = """\
The p-value takes rows as independent, and `itrust` promises to look for contradictions. It looked
for rows with identical p and covariates only. Forecasts of one candidacy on many dates, forecasters
who share an outcome, and days that follow each other went by without a word, and so did a label
among the covariates. Now residuals are compared within the values of every column that may name a
unit, within rows that are nearly alike, and along the file.
"""
SHOWN = """\
Dependence of the kind that was missed is seen, and by its name where a column has it. Independent
rows of calibrated and of miscalibrated models stay silent. {few} days are few for a correlation of
.22: the mean product of neighbours has a standard error of .06 there.
"""
DAYS = (300, 400)


def found(seed: int, design: Design) -> tuple[str, ...] | None:
    """The columns that are named for a design; None if nothing is."""
    sample = as_sample(design(np.random.default_rng(seed)))
    seen = dependence(ResidualRows(sample))
    return None if seen is None else seen.names


def leaked(seed: int, column: Callable[..., Any], n: int) -> bool:
    """Whether a covariate is refused or warned about."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    y = drawn(rng, p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            notes = assumption_notes(it.Sample(y, p, {"column": column(rng, y, p)}))
        except it.InputError:
            return True
    return any("'column'" in note for note in notes)


def opposite(rng: np.random.Generator, y: Any, p: Any) -> Any:  # noqa: ARG001
    return 1 - y


def status(rng: np.random.Generator, y: Any, p: Any) -> Any:  # noqa: ARG001
    return np.where(y == 1, rng.choice(["paid", "paid late"], y.size), "default")


def margin(rng: np.random.Generator, y: Any, p: Any) -> Any:  # noqa: ARG001
    return y - 0.5 + rng.uniform(-0.49, 0.49, y.size)


def other_probability(rng: np.random.Generator, y: Any, p: Any) -> Any:  # noqa: ARG001
    return 1 - p


def strong(rng: np.random.Generator, y: Any, p: Any) -> Any:  # noqa: ARG001
    return y + rng.normal(0, 0.4, y.size)


def mostly_right(rng: np.random.Generator, y: Any, p: Any) -> Any:  # noqa: ARG001
    return np.where(rng.random(y.size) < 0.9, y, 1 - y)


LEAKS = {
    "1 - label": (opposite, 400, True),
    "a status that follows from the label": (status, 400, True),
    "the margin behind the label": (margin, 400, True),
    "1 - p": (other_probability, 400, True),
    "a number that goes with the label, sd .4": (strong, 400, False),
    "right in nine rows of ten, 30 rows": (mostly_right, 30, False),
    "right in nine rows of ten, 60 rows": (mostly_right, 60, False),
}


def make(pool: ProcessPoolExecutor, runs: int) -> str:
    """The section."""
    rows: list[tuple[str, ...]] = []
    dependent = dict(DEPENDENT)
    for days in DAYS:
        design = partial(DEPENDENT["daily, correlation .22"][0], days=days)
        dependent[f"the same, {days} days"] = (design, ())
    for name, (design, columns) in dependent.items():
        seen = repeated(pool, partial(found, design=design), runs)
        named = share([columns == one for one in seen])
        rows.append(
            (name, ", ".join(columns) or "none", share([one is not None for one in seen]), named)
        )
    head = ("rows that depend on each other", "column to name", "warned", "with that column")
    power = table(head, rows)
    quiet = table(
        ("independent rows", "warned"),
        [
            (
                name,
                share([one is not None for one in repeated(pool, partial(found, design=d), runs)]),
            )
            for name, d in INDEPENDENT.items()
        ],
    )
    leaks = table(
        ("covariate", "should be told", "refused or warned about"),
        [
            (
                name,
                "yes" if told else "no",
                share(repeated(pool, partial(leaked, column=c, n=n), runs)),
            )
            for name, (c, n, told) in LEAKS.items()
        ],
    )
    before = "None of these raised a warning before."
    count = f"{runs:,} runs for each row."
    last = SHOWN.format(few=DAYS[0])
    return "\n".join([INTRODUCTION, count, before, "", power, "", quiet, "", leaks, "", last])


SECTION = Section("dependence", "Assumptions that are looked for", 250, make)
