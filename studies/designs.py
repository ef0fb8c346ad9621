"""Rows in clusters and strata, beside what else one would run: `make study NAME=designs`.

Writes studies/pages/designs.md. RUNS=100 gives a quick look, SECTION=level,power some parts (the
page holds those that have been made).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import json
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import numpy as np

import itrust as it
from hard.clustered import DESIGNS, HARD, POWER
from hard.kit import repeated, share, table
from itrust.calibration import pipeline
from itrust.nulls import Copula, Rademacher, RowwiseNull

DRAWS, ALPHA = 39, 0.05
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "studies" / "pages" / "designs.md"
BUILD = ROOT / "build" / "designs"
TASK = it.tasks.prevalence(where={"g": "a"}) - it.tasks.prevalence(where={"g": "b"})


@dataclass(frozen=True)
class Skewed(RowwiseNull):
    """Mammen's two-point multipliers, one a cluster: a wild bootstrap with skewed weights."""

    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "residuals times skewed numbers, one a cluster"
    keeps_clusters: ClassVar[bool] = True
    keeps_residuals: ClassVar[bool] = True

    def draw(self, chunk, draws, seed):
        """Residuals of the data times the numbers of their clusters."""
        root = np.sqrt(5)
        units, unit = np.unique(chunk.cluster, return_inverse=True)
        drawn = np.random.default_rng([seed, draws.start]).random((units.size, len(draws)))
        low = drawn < (root + 1) / (2 * root)
        return (chunk.y - chunk.p)[:, None] * np.where(low, (1 - root) / 2, (1 + root) / 2)[unit]


def default(sample: it.Sample, seed: int) -> float:
    return it.klce_test(sample, draws=DRAWS, rng=seed).pvalue


def flips_as_before(sample: it.Sample, seed: int) -> float:
    """Signs flipped by cluster, every check in units of independent rows."""
    with patch.object(pipeline, "_is_clustered", lambda _prepared, _null: False):
        return it.klce_test(sample, null=Rademacher(), draws=DRAWS, rng=seed).pvalue


def with_null(null: RowwiseNull, sample: it.Sample, seed: int) -> float:
    return it.klce_test(sample, null=null, draws=DRAWS, rng=seed).pvalue


def independent(sample: it.Sample, seed: int) -> float:
    return it.klce_test(sample, null=it.nulls.Bernoulli(), draws=DRAWS, rng=seed).pvalue


METHODS = {
    "chosen": default,
    "flips as before": flips_as_before,
    "flips": partial(with_null, Rademacher()),
    "copula": partial(with_null, Copula()),
    "skewed multipliers": partial(with_null, Skewed()),
    "independent rows": independent,
}


def tested(name: str, bias: float, methods: tuple[str, ...], seed: int) -> tuple[float, ...]:
    """P-values of several tests on one sample; NaN where one is refused."""
    warnings.simplefilter("ignore")
    sample = DESIGNS[name](np.random.default_rng(seed), bias)
    return tuple(METHODS[method](sample, seed) for method in methods)


def judged(name: str, seed: int) -> tuple[bool, ...]:
    """Whether anything is marked in a sample of a calibrated model."""
    warnings.simplefilter("ignore")
    sample = DESIGNS[name](np.random.default_rng(seed), 0.0)
    settings = {"draws": DRAWS, "rng": seed}
    groups = it.bias_groups(sample, "g", "z", "prediction", **settings)
    slices = it.bias_slices(sample, **settings)
    points = it.local_bias(sample, **settings)
    known, values = points.known, points.values
    outside = (values < points.null_band.lower) | (values > points.null_band.upper)
    (task,) = it.tasks.evaluate_tasks(sample, [TASK], **settings)
    return (
        any(group.pvalue <= ALPHA for group in groups),
        len(slices.confirmed) > 0,
        bool(outside[known].any()),
        bool((points.pvalues[known] <= ALPHA).any()),
        bool(task.pvalue <= ALPHA),
    )


def rejected(found: list[tuple[float, ...]], column: int) -> str:
    return share(run[column] <= ALPHA for run in found)


def refused(found: list[tuple[float, ...]], column: int) -> str:
    return share(np.isnan(run[column]) for run in found)


def level(pool: ProcessPoolExecutor, runs: int) -> str:
    rows, some = [], max(runs // 5, 1)
    for name in HARD:
        found = repeated(pool, partial(tested, name, 0.0, ("chosen",)), runs)
        before = repeated(pool, partial(tested, name, 0.0, ("flips as before",)), some)
        rows.append([name, rejected(found, 0), refused(found, 0), rejected(before, 0)])
        print(rows[-1], flush=True)
    text = table(["design", "chosen", "refused", "flips as before"], rows)
    return (
        f"Share of {runs:,} samples of a calibrated model that the test rejects at .05 ({DRAWS} "
        f"draws; standard error .007 at 1,000 runs), and of the first {some:,} of them that signs "
        f"flipped by cluster reject, with checks in units of independent rows, as the package did "
        f"before. A refused p-value is no rejection.\n\n{text}"
    )


def parts(pool: ProcessPoolExecutor, runs: int) -> str:
    rows = []
    for name in HARD:
        found = repeated(pool, partial(judged, name), runs)
        rows.append([name, *(share(run[k] for run in found) for k in range(5))])
        print(rows[-1], flush=True)
    head = ["design", "any group", "any slice", "null band left", "any point", "a task"]
    return (
        f"Share of {runs:,} samples of a calibrated model in which anything is marked at .05: "
        f"groups of a category, of a number in quarters and of the prediction, with crossings; "
        f"confirmed slices; values outside the null band and points whose confidence band excludes "
        f"0; a difference of two prevalences.\n\n{table(head, rows)}"
    )


def power(pool: ProcessPoolExecutor, runs: int) -> str:
    methods = ("chosen", "flips as before", "copula", "skewed multipliers")
    rows = []
    for name, bias in POWER.items():
        right = repeated(pool, partial(tested, name, 0.0, methods), runs)
        wrong = repeated(pool, partial(tested, name, bias, methods), runs)
        cells = [f"{rejected(wrong, k)} ({rejected(right, k)})" for k in range(len(methods))]
        rows.append([name, *cells])
        print(rows[-1], flush=True)
    return (
        f"Share of {runs:,} samples of a miscalibrated model that are rejected at .05, with that "
        f"of a calibrated one in parentheses: power counts where the level holds.\n\n"
        f"{table(['design', *methods], rows)}"
    )


SECTIONS = {
    "level": ("Level of the test", 1_000, level),
    "parts": ("Groups, slices, bands and tasks", 300, parts),
    "power": ("Power, beside what else one would run", 200, power),
}
HEAD = """\
# Rows in clusters and strata

Made by `make study NAME=designs`. What the package chooses by itself (see
[the theory](../../docs/theory/designs.md)), on models that are calibrated, in designs that were
chosen to hurt: rare events, labels that a whole cluster shares, few and unequal clusters, strata.
Seeds start at 1,000. The designs are in `studies/hard/clustered.py`.
"""


def main() -> None:
    """Make the sections that were asked for, then the page from all that have been made."""
    chosen = [name for name in os.environ.get("SECTION", ",".join(SECTIONS)).split(",") if name]
    strange = [name for name in chosen if name not in SECTIONS]
    if strange:
        sys.exit(f"there is no section {strange[0]!r}; there are {', '.join(SECTIONS)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        for name in chosen:
            title, usual, make = SECTIONS[name]
            begun = time.perf_counter()
            text = f"## {title}\n\n{make(pool, int(os.environ.get('RUNS', usual)))}\n"
            (BUILD / f"{name}.json").write_text(json.dumps(text), encoding="utf-8")
            print(f"{text}\n{name}: {time.perf_counter() - begun:.0f} s\n", flush=True)
    made = [path for name in SECTIONS if (path := BUILD / f"{name}.json").exists()]
    texts = [json.loads(path.read_text(encoding="utf-8")) for path in made]
    PAGE.write_text("\n".join([HEAD, *texts]), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
