"""The rows that numbers are compared on."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import itrust as it

NONE, SURVEY, COMPAS, NHANES = "none", "survey", "COMPAS", "nhanes2"
HALVES = [0.5, 0.5]


@dataclass(frozen=True)
class Halves:
    """Rows that a recalibration is learned from, and the rows that everything is judged on."""

    few: it.Sample
    test: it.Sample

    @property
    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and probabilities of the rows that are judged."""
        return self.test.y, self.test.p


@functools.cache
def survey() -> Halves:
    """4,000 rows of the simulated survey, seed 1: the model is wrong by age and region."""
    return Halves(*it.simulate.survey(4_000, rng=1).sample.split(HALVES, rng=1))


@functools.cache
def compas() -> Halves:
    """COMPAS: a logistic regression from a third of the rows, applied to the others."""
    from recalibration import split

    return Halves(*split("COMPAS", "logistic", 0))


@dataclass(frozen=True)
class Nhanes:
    """The survey as columns, and as two samples: by its strata and clusters, by its replicates."""

    columns: dict[str, np.ndarray]
    by_design: it.Sample
    by_replicates: it.Sample
    sets: np.ndarray  # (n, 32) weights of the half samples


@functools.cache
def nhanes() -> Nhanes:
    """NHANES II with 31 strata of two clusters and 32 half samples; probabilities rise with age."""
    file = Path(os.environ.get("ITRUST_DATA", ".")) / "nhanes2.csv"
    if not file.exists():
        raise FileNotFoundError("nhanes2.csv is not in the folder that ITRUST_DATA names")
    table = csv.read_csv(file)
    table = table.filter(pa.compute.is_valid(table["highbp"]))
    names = ("stratum", "psu", "finalwgt", "sex", "age", "highbp")
    columns = {name: table[name].to_numpy().astype(float) for name in names}
    columns["unit"] = columns["stratum"] * 10 + columns["psu"]
    weights = columns["finalwgt"]
    brr = [name for name in table.column_names if name.startswith("brr_")]
    sets = np.column_stack([table[name].to_numpy() for name in brr]) * weights[:, None]
    p = 1 / (1 + np.exp(3.5 - columns["age"] / 20))
    x = {name: columns[name] for name in ("age", "sex")}

    def sample(**design: Any) -> it.Sample:
        return it.Sample(columns["highbp"], p, x, weights=weights, **design)

    return Nhanes(
        columns,
        sample(cluster=columns["unit"], strata=columns["stratum"]),
        sample(replicate_weights=sets, replicate_method="brr"),
        sets,
    )


SETS: dict[str, Callable[[], Any]] = {SURVEY: survey, COMPAS: compas, NHANES: nhanes}
TOLD = {
    SURVEY: "2,000 rows of `it.simulate.survey` (seed 1), recalibrated on 2,000 others",
    COMPAS: "2,404 people of COMPAS, recalibrated on 2,405 others, a logistic regression fitted on "
    "a third set",
    NHANES: "NHANES II: 10,351 people in 31 strata of two clusters, with 32 half samples",
    NONE: "no rows of data; what is simulated has its seed in the code",
}
