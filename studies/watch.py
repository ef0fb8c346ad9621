"""Watching: how often a calibrated model raises an alarm, how soon drift is found, coverage.

`make study NAME=watch` writes watch.json and watch.md in studies/pages. Runs that the file
already holds are kept, so that it can be stopped and go on; FRESH=1 begins anew. RUNS=100 gives a
quick look; ONLY=level, drift or numbers one part.
"""

from __future__ import annotations

import functools
import json
import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import math
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from probcal.monitor import CalibrationMonitor
from scipy.stats import binomtest

import itrust as it
from itrust._core import write_whole
from itrust.watch.bets import PanelWealth, bet_sums, ratios_of, since_of
from itrust.watch.components import CheckPanel, settled_panel
from itrust.watch.results import Promise
from itrust.watch.sequences import TaskSequence

RUNS = int(os.environ.get("RUNS", "1000"))
PROCESSES = int(os.environ.get("PROCESSES", "0")) or None
ONLY = os.environ.get("ONLY", "")
AT_ONCE = 20
ALPHA = 0.05
ROWS, REFERENCE, PILOT = 200, 4_000, 20_000
AFTER = 10  # batches before the drift
COMPARED = 100  # runs that the other monitor sees, too: it takes longer
FOLDER = Path(__file__).parents[1] / "studies" / "pages"
RECORD, PAGE = FOLDER / "watch.json", FOLDER / "watch.md"
TASKS = ["mean(age)", "prevalence()", 'prevalence(sex == "m") - prevalence(sex == "f")']


@dataclass(frozen=True)
class Drawn:
    """Rows with their true probabilities."""

    sample: it.Sample
    truth: np.ndarray


def drawn(rng: np.random.Generator, n: int, drift: str, since: int = 0, cluster: int = 1) -> Drawn:
    """Rows of three covariates; from row `since` on labels follow a drifted law."""
    sex, age, region = rng.integers(0, 2, n), rng.uniform(20, 80, n), rng.integers(0, 4, n)
    logit = rng.normal(0, 0.8, n) + 0.02 * (age - 50) + 0.3 * (sex - 0.5)
    if cluster > 1:  # one probability and one label for the rows of a cluster
        logit = np.repeat(logit[::cluster], cluster)[:n]
    p = 1 / (1 + np.exp(-logit))
    bias = {
        "none": np.zeros(n),
        "everywhere": np.full(n, 0.05),
        "one eighth": 0.15 * ((sex == 1) & (region == 2)),
        "cancelling": np.where((sex == 1) == (age > 50), 0.10, -0.10),
        "within the tolerance": np.full(n, 0.03),
        "moving": 0.15 * np.sin(np.arange(n) / 2_000),
    }[drift]
    truth = np.clip(np.where(np.arange(n) >= since, p + bias, p), 0, 1)
    uniform = np.repeat(rng.random(n)[::cluster], cluster)[:n]
    x = {
        "sex": np.array(["f", "m"])[sex],
        "age": age,
        "region": np.array(["east", "north", "south", "west"])[region],
    }
    units = {"cluster": np.arange(n) // cluster} if cluster > 1 else {}
    return Drawn(it.Sample((uniform < truth).astype(float), p, x, **units), truth)


@functools.lru_cache(maxsize=4)
def settled(number: int) -> tuple[it.Sample, CheckPanel]:
    """A reference and its checks; some runs share one."""
    sample = drawn(np.random.default_rng([number, 1]), REFERENCE, "none").sample
    return sample, settled_panel(sample.pilot(PILOT))


@dataclass(frozen=True)
class Cell:
    """A design, and how it is watched."""

    part: str
    title: str
    drift: str
    batches: int
    tolerance: float | None = None
    promise: Promise = "ever"
    cluster: int = 1
    runs: int = 1_000
    compared: bool = False
    target: str = ""

    @property
    def after(self) -> int:
        """Batches before the drift."""
        return AFTER if self.part == "drift" else 0


RUN_LENGTH = "run length"
CELLS = [
    Cell("level", "no drift", "none", 1_000, target="ever alarms <= .05"),
    Cell(
        "level",
        "bias .03 everywhere, tolerance .05",
        "within the tolerance",
        300,
        tolerance=0.05,
        target="ever alarms <= .05",
    ),
    Cell("level", "no drift, clusters of 5 that share a label", "none", 300, cluster=5, runs=400),
    Cell("level", "no drift, a run length of 20 promised", "none", 400, None, RUN_LENGTH, runs=400),
    Cell("drift", "+.05 everywhere", "everywhere", 40, compared=True, target=">= .97, <= 12"),
    Cell("drift", "+.15 in one eighth", "one eighth", 40, compared=True, target=">= .97, <= 15"),
    Cell("drift", "+-.10 by sex x age", "cancelling", 40, compared=True, target=">= .97, <= 6"),
    Cell("numbers", "no drift", "none", 100, runs=200),
    Cell("numbers", "a bias that comes and goes, up to .15", "moving", 100, runs=200),
]


def watched(cell: Cell, seed: int) -> dict[str, float]:
    """One run: the batch that raises an alarm, and whether the onset's interval holds the truth.

    The same numbers as `Watch.update` gives, with the functions of many batches computed at once
    (tests/watch/test_study.py compares them).
    """
    _, panel = settled(seed // AT_ONCE)
    rng = np.random.default_rng([seed, cell.batches, len(cell.title)])
    rows = drawn(rng, cell.batches * ROWS, cell.drift, cell.after * ROWS, cell.cluster)
    sample, moved = rows.sample, cell.tolerance is None
    held = PanelWealth.begun(panel, cell.promise, moved=moved)
    if moved:
        reference, _ = settled(seed // AT_ONCE)
        held = held.with_reference(reference.points, (reference.y, reference.p, None))
    share = None if cell.cluster == 1 else np.full(ROWS, 1 / cell.cluster)
    batch = 0
    for first in range(0, sample.n, 20 * ROWS):
        lot = slice(first, min(first + 20 * ROWS, sample.n))
        matrix = panel.matrix(sample.points.take(lot))
        count = matrix.shape[1] // ROWS
        matrix = np.moveaxis(matrix.reshape(len(matrix), count, ROWS), 0, 1)
        y, p = sample.y[lot].reshape(count, ROWS), sample.p[lot].reshape(count, ROWS)
        shares = None if share is None else np.broadcast_to(share, y.shape)
        sums = bet_sums(matrix, (y, p, shares), cell.tolerance or 0.0)
        for k in range(count):
            batch += 1
            ratios, known = np.zeros(held.log_moved.size), held.known
            if moved:
                own, phi = (y[k], p[k], share), matrix[k][list(panel.joint)]
                ratios = ratios_of(known.moves(), phi, own)
                known = known.faded().plus(phi, own)
            held = held.moved_by(sums[:, k], ratios, known, batch, cell.promise)
            if held.total(batch, cell.promise) >= -math.log(ALPHA):
                return {"alarm": batch, **_onset(cell, held, batch)}
    return {"alarm": 0}


def _onset(cell: Cell, held: PanelWealth, batch: int) -> dict[str, float]:
    if cell.part != "drift" or batch <= AFTER:
        return {}
    names = [(k + 1, None) for k in range(batch)]
    since = since_of([held], names, ALPHA, cell.promise)
    held_it = since.lower <= AFTER + 1 <= since.upper
    return {"onset": float(held_it), "width": since.upper - since.lower + 1}


def compared(cell: Cell, seed: int) -> dict[str, float]:
    """The same rows watched by probcal's monitor, as it comes."""
    rng = np.random.default_rng([seed, cell.batches, len(cell.title)])
    rows = drawn(rng, cell.batches * ROWS, cell.drift, cell.after * ROWS)
    monitor = CalibrationMonitor(alpha=ALPHA)
    for k in range(cell.batches):
        own = slice(k * ROWS, (k + 1) * ROWS)
        if monitor.update(rows.sample.y[own], rows.sample.p[own]).alarm:
            return {"theirs": k + 1}
    return {"theirs": 0}


def numbered(cell: Cell, seed: int) -> dict[str, float]:
    """One run: for each number whether its interval held the truth after every batch."""
    rng = np.random.default_rng([seed, cell.batches, len(cell.title)])
    rows = drawn(rng, cell.batches * ROWS, cell.drift)
    sequences = begun(seed // AT_ONCE)
    true = begun(seed // AT_ONCE)
    held = np.ones(len(sequences), dtype=bool)
    for k in range(cell.batches):
        own = slice(k * ROWS, (k + 1) * ROWS)
        batch: Any = rows.sample.take(np.arange(own.start, own.stop))
        exact: Any = SimpleNamespace(
            points=batch.points, y=rows.truth[own], p=batch.p, n=ROWS, weights=None, cluster=None
        )
        sequences = tuple(one.after({None: batch}) for one in sequences)
        true = tuple(one.after({None: exact}) for one in true)
        for number, (one, other) in enumerate(zip(sequences, true, strict=True)):
            found = one.so_far(ALPHA)
            predicted, exact_value = other.values()
            held[number] &= found.lower <= exact_value - predicted <= found.upper
    last = [one.so_far(ALPHA) for one in sequences]
    return {f"held {k}": float(own) for k, own in enumerate(held)} | {
        f"width {k}": own.upper - own.lower for k, own in enumerate(last)
    }


@functools.lru_cache(maxsize=4)
def begun(number: int) -> tuple[TaskSequence, ...]:
    """Numbers before the first batch."""
    reference, _ = settled(number)
    return it.Watch.start(reference, TASKS).sequences


def one_run(cell: Cell, seed: int) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell.part == "numbers":
            return numbered(cell, seed)
        is_compared = cell.compared and seed < COMPARED
        return watched(cell, seed) | (compared(cell, seed) if is_compared else {})


Runs = list[dict[str, float]]


def by_name(runs: Runs) -> dict[str, list[float | None]]:
    """Runs as the file holds them: one list for each figure."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: [run.get(name) for run in runs] for name in names}


def by_run(figures: dict[str, list[float | None]]) -> Runs:
    """The runs of a file."""
    rows = zip(*figures.values(), strict=True)
    return [
        {name: value for name, value in zip(figures, row, strict=True) if value is not None}
        for row in rows
    ]


def delays(runs: Runs, name: str = "alarm") -> tuple[float, float, float]:
    """Found within 30 batches of the drift, the median delay of those, and too early."""
    found = [run[name] - AFTER for run in runs if run[name] > AFTER]
    early = sum(0 < run[name] <= AFTER for run in runs)
    share = sum(delay <= 30 for delay in found) / max(len(runs) - early, 1)
    return share, float(np.median(found)) if found else math.nan, early / max(len(runs), 1)


def page(found: dict[str, Runs]) -> str:
    """The tables; what is said of them is made of the figures alone."""
    lines = ["# Watching", "", INTRODUCTION, "", "## A model that stays calibrated", "", LEVEL, ""]
    lines += ["| design | batches | runs | alarms | target |", "|---|---|---|---|---|"]
    for cell in CELLS:
        runs = found.get(f"{cell.part}: {cell.title}", [])
        if runs and cell.part == "level":
            lines.append(_level_line(cell, runs))
    lines += ["", "## Drift after ten batches", "", DRIFT, ""]
    lines += [
        "| design | runs | found within 30 | median delay | onset held | probcal 0.4.0 | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in CELLS:
        runs = found.get(f"{cell.part}: {cell.title}", [])
        if runs and cell.part == "drift":
            lines.append(_drift_line(cell, runs))
    lines += ["", "## Numbers so far", "", NUMBERS, ""]
    lines += [
        "| design | number | runs | holds at all times | last width |",
        "|---|---|---|---|---|",
    ]
    for cell in CELLS:
        runs = found.get(f"{cell.part}: {cell.title}", [])
        for k, task in enumerate(TASKS) if runs and cell.part == "numbers" else ():
            held = np.mean([run[f"held {k}"] for run in runs])
            width = np.mean([run[f"width {k}"] for run in runs])
            lines.append(f"| {cell.title} | `{task}` | {len(runs):,} | {held:.3f} | {width:.3g} |")
    return "\n".join([*lines, ""])


def _level_line(cell: Cell, runs: Runs) -> str:
    alarms = sum(run["alarm"] > 0 for run in runs)
    if cell.promise is RUN_LENGTH:
        lengths = [run["alarm"] or cell.batches for run in runs]
        told = f"after {np.mean(lengths):.0f} batches on average"
        return f"| {cell.title} | {cell.batches:,} | {len(runs):,} | {told} | >= 20 |"
    doubt = binomtest(alarms, len(runs), ALPHA, alternative="greater").pvalue < 0.001
    mark = "**" if doubt else ""
    told = f"{mark}{alarms / len(runs):.3f}{mark}"
    return f"| {cell.title} | {cell.batches:,} | {len(runs):,} | {told} | <= .05 |"


def _drift_line(cell: Cell, runs: Runs) -> str:
    share, delay, _ = delays(runs)
    theirs, their_delay, _ = delays([run for run in runs if "theirs" in run], "theirs")
    held = [run["onset"] for run in runs if "onset" in run]
    onset = f"{np.mean(held):.2f}" if held else "-"
    told = "-" if math.isnan(their_delay) else f"{their_delay:.0f}"
    return (
        f"| {cell.title} | {len(runs):,} | {share:.3f} | {delay:.0f} | {onset} | "
        f"{theirs:.2f}, {told} | {cell.target} |"
    )


INTRODUCTION = f"""What `Watch` promises, measured. Batches have {ROWS} rows with three
covariates (sex, age, region) and predictions between .1 and .9 or so; the reference has
{REFERENCE:,} rows, and alpha is .05. `make study NAME=watch` makes the tables, and goes on
where it was stopped (`RUNS=1000` by default)."""
LEVEL = """Alarms are counted over all batches: "ever". With a run length, the average number of
batches until the first alarm is told; runs without one count as long as they were watched. Bold
where a binomial test at .001 says that there are more than .05."""
DRIFT = """How many runs raise an alarm within 30 batches after the drift begins, and the median
number of batches until then. "Onset held" is about the interval of the onset at the time of the
alarm: how often the first drifted batch lies in it. The last column but one is the monitor of
probcal 0.4.0 (found, median delay; in the first 100 runs) with the same alpha, which sees
predictions and labels and no covariates."""
NUMBERS = """How often the interval holds the number that the true probabilities of all rows so
far give, after each of 100 batches, all of them together (promised: .95), and its mean width
after the last one."""


def main() -> None:
    begun_at = time.perf_counter()
    found: dict[str, Runs] = {}
    if RECORD.exists() and not os.environ.get("FRESH"):
        kept = json.loads(RECORD.read_text(encoding="utf-8"))["cells"]
        found = {title: by_run(figures) for title, figures in kept.items()}
    with ProcessPoolExecutor(PROCESSES) as pool:
        for first in range(0, RUNS, AT_ONCE):
            for cell in CELLS:
                runs = found.setdefault(f"{cell.part}: {cell.title}", [])
                if ONLY not in ("", cell.part) or len(runs) > first or first >= cell.runs:
                    continue
                seeds = range(first, min(first + AT_ONCE, RUNS, cell.runs))
                made: list[dict[str, Any]] = list(
                    pool.map(functools.partial(one_run, cell), seeds, chunksize=5)
                )
                runs += [{k: float(f"{v:.4g}") for k, v in run.items()} for run in made]
                cells = {title: by_name(own) for title, own in found.items()}
                record = {"alpha": ALPHA, "rows": ROWS, "cells": cells}
                write_whole(RECORD, json.dumps(record, separators=(",", ":")) + "\n")
                elapsed = time.perf_counter() - begun_at
                print(f"{elapsed:6.0f} s  {cell.part}: {cell.title}  {len(runs)}", flush=True)
            write_whole(PAGE, page(found))
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun_at:.0f} s")


if __name__ == "__main__":
    main()
