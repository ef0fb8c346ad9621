"""Several classes: level of the test, and power against a class that is taken for another.

`make study NAME=classes` writes studies/pages/classes.json and studies/pages/classes.md. Runs that
the file already holds are kept, so that it can be stopped and go on; FRESH=1 begins anew. RUNS=100
gives a quick look; ONLY=level or ONLY=power one part. A level needs many runs, a comparison of two
tests on the same rows far fewer, and a run of it costs up to forty times as much: POWER_RUNS.
"""

from __future__ import annotations

import functools
import json
import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import itrust as it
from itrust._core import write_whole

RUNS = int(os.environ.get("RUNS", "1000"))
POWER_RUNS = int(os.environ.get("POWER_RUNS", "0")) or min(RUNS, 300)
PROCESSES = int(os.environ.get("PROCESSES", "0")) or None
ONLY = os.environ.get("ONLY", "")
AT_ONCE = 20
DRAWS = 199
LEVEL = 0.05
FOLDER = Path(__file__).parents[1] / "studies" / "pages"
RECORD, PAGE = FOLDER / "classes.json", FOLDER / "classes.md"
REGIONS, SHARES = ["north", "south", "east", "west"], [0.4, 0.25, 0.2, 0.15]


def rows(
    rng: np.random.Generator, n: int, classes: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Covariates, and logits of the classes that depend on one of them and on much else."""
    x = {"age": rng.normal(size=n), "region": rng.choice(REGIONS, n, p=SHARES)}
    slopes = rng.normal(size=classes) * 0.7
    return x, np.outer(x["age"], slopes) + rng.normal(size=(n, classes)) * 0.7


def softmax(logits: np.ndarray) -> np.ndarray:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def labelled(
    rng: np.random.Generator, x: dict[str, np.ndarray], p: np.ndarray, truth: np.ndarray
) -> it.MulticlassSample:
    """Labels drawn from the truth, which the model says are drawn from p."""
    last = p.shape[1] - 1
    y = (rng.random(len(p))[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, last)
    possible = truth[np.arange(len(p)), y] > 0  # not what rounding leaves
    y = np.where(possible, y, truth.argmax(axis=1))
    return it.MulticlassSample(y, p, x, classes=list(range(last + 1)))


def calibrated(seed: int, n: int, classes: int) -> it.MulticlassSample:
    rng = np.random.default_rng([seed, n, classes])
    x, logits = rows(rng, n, classes)
    p = softmax(logits)
    return labelled(rng, x, p, p)


def rare(seed: int, n: int) -> it.MulticlassSample:
    """Four classes, one of them with 1 % of the rows."""
    rng = np.random.default_rng([seed, n, 1])
    x, logits = rows(rng, n, 4)
    logits[:, 3] -= 4.2
    p = softmax(logits)
    return labelled(rng, x, p, p)


def zeros(seed: int, n: int) -> it.MulticlassSample:
    """Four classes, of which a row can have two or three: the others have probability 0."""
    rng = np.random.default_rng([seed, n, 2])
    x, logits = rows(rng, n, 4)
    p = softmax(logits) * (rng.random((n, 4)) > 0.35)
    p[:, 0] += p.sum(axis=1) == 0
    p /= p.sum(axis=1, keepdims=True)
    return labelled(rng, x, p, p)


def taken(seed: int, n: int, classes: int, share: float) -> it.MulticlassSample:
    """In the south a share of the probability of class 0 belongs to class 1."""
    rng = np.random.default_rng([seed, n, classes, 3])
    x, logits = rows(rng, n, classes)
    p = softmax(logits)
    moved = share * p[:, 0] * (x["region"] == "south")
    truth = p.copy()
    truth[:, 0] -= moved
    truth[:, 1] += moved
    return labelled(rng, x, p, truth)


@dataclass(frozen=True)
class Cell:
    """A design, and the tests that are made of it: of all classes, or of one at a time, too."""

    part: str
    title: str
    make: Callable[[int], it.MulticlassSample]
    compared: bool = False


CELLS = [
    *(
        Cell("level", f"{k} classes, n = {n:,}", functools.partial(calibrated, n=n, classes=k))
        for n in (200, 2_000)
        for k in (2, 3, 5, 10)
    ),
    *(
        Cell("level", f"{what}, n = {n:,}", functools.partial(make, n=n))
        for n in (200, 2_000)
        for what, make in (("4 classes, one of 1 %", rare), ("4 classes, zeros in P", zeros))
    ),
    *(
        Cell(
            "power",
            f"{k} classes, n = {n:,}: {100 * share:.0f} % of a class taken for another",
            functools.partial(taken, n=n, classes=k, share=share),
            compared=True,
        )
        for k, n, share in ((3, 600, 0.33), (5, 1_000, 0.4), (10, 2_000, 0.45))
    ),
]


def one_run(cell: Cell, seed: int) -> tuple[bool, bool | None]:
    """Whether the test rejects, and whether one of the tests of single classes does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        sample = cell.make(seed)
        rejected = it.klce_test(sample, draws=DRAWS, rng=seed, progress=False).pvalue <= LEVEL
        if not cell.compared:
            return rejected, None
        single = (
            it.klce_test(sample.one_class(name), draws=DRAWS, rng=seed, progress=False).pvalue
            for name in sample.classes
        )
        alpha = LEVEL / len(sample.classes) + 1e-9
        return rejected, any(pvalue <= alpha for pvalue in single)


def page(found: dict[str, dict[str, int]], note: str) -> str:
    """The tables; what is said of them is made of the figures alone."""
    lines = ["# Several classes", "", INTRODUCTION, *([note] if note else []), "", "## Level", ""]
    lines += ["| calibrated model | runs | rejected |", "|---|---|---|"]
    for cell in CELLS:
        counts = found.get(cell.title)
        if counts and cell.part == "level":
            share = counts["rejected"] / counts["runs"]
            doubt = binomtest(counts["rejected"], counts["runs"], LEVEL).pvalue < 0.001
            mark = "**" if doubt else ""
            lines.append(f"| {cell.title} | {counts['runs']:,} | {mark}{share:.3f}{mark} |")
    lines += ["", "## Power", "", POWER, ""]
    lines += ["| design | runs | all at once | one class at a time |", "|---|---|---|---|"]
    for cell in CELLS:
        counts = found.get(cell.title)
        if counts and cell.part == "power":
            both = " | ".join(
                f"{counts[name] / counts['runs']:.2f}" for name in ("rejected", "single")
            )
            lines.append(f"| {cell.title} | {counts['runs']:,} | {both} |")
    return "\n".join([*lines, ""])


INTRODUCTION = f"""How often `klce_test` of several classes rejects at .05 with {DRAWS} draws.
Covariates are a number and a region with four levels; probabilities are a softmax of the number and
of noise, different in every run. `make study NAME=classes` makes the tables, and goes on where it
was stopped (`RUNS=1000` of each level and `POWER_RUNS=300` of each power by default). Bold where a
binomial test at .001 excludes .05."""
POWER = """In the south, a share of the probability that the model gives to one class belongs to
another one. "One class at a time" is `klce_test` of each class against the rest, with Bonferroni's
correction."""


def main() -> None:
    begun = time.perf_counter()
    found: dict[str, dict[str, int]] = {}
    note = ""  # on runs that an earlier version has made
    if RECORD.exists() and not os.environ.get("FRESH"):
        kept = json.loads(RECORD.read_text(encoding="utf-8"))
        found, note = kept["cells"], kept.get("note", "")
    with ProcessPoolExecutor(PROCESSES) as pool:
        for first in range(0, max(RUNS, POWER_RUNS), AT_ONCE):
            for cell in CELLS:
                counts = found.setdefault(cell.title, {"runs": 0, "rejected": 0, "single": 0})
                wanted = RUNS if cell.part == "level" else POWER_RUNS
                seeds = range(max(first, counts["runs"]), min(first + AT_ONCE, wanted))
                if ONLY not in ("", cell.part) or not seeds:
                    continue
                outcomes = list(pool.map(functools.partial(one_run, cell), seeds, chunksize=5))
                counts["runs"] += len(seeds)
                counts["rejected"] += sum(rejected for rejected, _ in outcomes)
                counts["single"] += sum(bool(single) for _, single in outcomes)
                written(found, note)
                print(f"{time.perf_counter() - begun:6.0f} s  {cell.title}  {counts}", flush=True)
    written(found, note)
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


def written(found: dict[str, dict[str, int]], note: str) -> None:
    """Write record and page as they are so far: a study that is stopped has both."""
    made = {title: counts for title, counts in found.items() if counts["runs"]}
    record = {"draws": DRAWS, "level": LEVEL, "note": note, "cells": made}
    write_whole(RECORD, json.dumps(record, indent=1) + "\n")
    write_whole(PAGE, page(made, note))


if __name__ == "__main__":
    main()
