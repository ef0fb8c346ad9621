"""Do the bands, groups and slices hold what they promise? `make study NAME=bias`.

Writes studies/pages/bias.md. RUNS=100 gives a quick look.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import itrust as it
from itrust.bias import LocalBias
from people import people

RUNS = int(os.environ.get("RUNS", "1000"))
SLICE_RUNS = max(RUNS // 10, 20)
DRAWS = 199
PAGE = Path(__file__).parents[1] / "studies" / "pages" / "bias.md"

# Predictions and truth along x, uniform on (0, 1).
DESIGNS: dict[str, Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    "calibrated, f from .1 to .9": lambda x, r: (p := r.uniform(0.1, 0.9, x.size), p),
    "calibrated, rare events, f near .02": lambda x, _: (p := 0.02 + 0.005 * x, p),
    "miscalibrated in one half by .2": lambda x, r: (
        p := r.uniform(0.2, 0.7, x.size),
        p + 0.2 * (x > 0.5),
    ),
    "f near .02, truth near .12": lambda x, _: (
        p := 0.02 + 0.005 * x,
        p + 0.1 + 0.04 * np.sin(6 * x),
    ),
    "far off, a wave of .3": lambda x, r: (
        p := r.uniform(0.35, 0.65, x.size),
        p + 0.3 * np.sin(6 * x),
    ),
    "biases that cancel between neighbours": lambda x, r: (
        p := r.uniform(0.25, 0.7, x.size),
        p + 0.2 * r.choice([-1, 1], x.size),
    ),
}


def band_run(name: str, n: int, seed: int) -> tuple[bool, bool, bool, float]:
    """A flag where all is right; misses of the confidence and null band as one; its width."""
    rng = np.random.default_rng([seed, n])
    x = rng.random(n)
    p, truth = DESIGNS[name](x, rng)
    sample = it.Sample(rng.random(n) < truth, p, {"x": x})
    b = it.local_bias(sample, at=_some(sample), draws=DRAWS, rng=seed)
    bias, right = _smoothed(b, truth)
    known = b.known
    inside = (b.band.lower <= bias) & (bias <= b.band.upper)
    half = (b.null_band.upper - b.null_band.lower) / 2
    return (
        bool(b.flagged[known & right].any()),
        not inside[known].all(),
        not (np.abs(b.values - bias) <= half)[known].all(),
        float(np.median((b.band.upper - b.band.lower)[known])),
    )


def _some(sample: it.Sample) -> it.Sample:
    return sample.take(np.linspace(0, sample.n - 1, 100).astype(int))


def _smoothed(b: LocalBias, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the band is to cover, and which points have neighbours without a bias only."""
    gram = b.kernel.gram(b.points, b.sample.points).block(slice(None), slice(None))
    weights = np.maximum(gram - b.cut, 0)
    shift = truth - b.sample.p
    return weights @ shift / weights.sum(axis=1), (weights @ np.abs(shift)) < 1e-12


PLANTED: dict[str, Callable[[dict[str, np.ndarray]], np.ndarray]] = {
    "`age >= 74` (one condition)": lambda x: x["age"] >= 74,
    "`lab missing` (one condition)": lambda x: np.isnan(x["lab"]),
    "`age < 30 and charge = F`": lambda x: (x["age"] < 30) & (x["charge"] == "F"),
    "`race = b and income < 17700`": lambda x: (x["race"] == "b") & (x["income"] < 17_700),
    "`sex = f and charge = M and age < 43`": lambda x: (
        (x["sex"] == "f") & (x["charge"] == "M") & (x["age"] < 43)
    ),
}


def slice_run(name: str | None, n: int, seed: int) -> tuple[bool, bool, bool]:
    """Any slice confirmed; one that shares half of its rows with the planted one; covered."""
    rng = np.random.default_rng([seed, 5])
    x = people(rng, n)
    p = np.clip(0.4 + 0.08 * rng.normal(size=n), 0.1, 0.8)
    planted = PLANTED[name](x) if name else np.zeros(n, dtype=bool)
    truth = p + 0.1 * planted
    sample = it.Sample(rng.random(n) < truth, p, x, missing="level")
    table = it.bias_slices(sample, draws=999 if name else DRAWS, rng=seed)
    found, covered = False, True
    for part in table:
        rows = part.where.rows(sample.points)
        bias = float((truth - p)[rows].mean())
        covered &= part.lower <= bias <= part.upper
        alike = (rows & planted).sum() > 0.5 * (rows | planted).sum()
        found |= bool(alike and part.bias > 0 and part.pvalue <= 0.05)
    return bool(table.confirmed), found, covered


def group_run(seed: int) -> tuple[bool, bool, bool]:
    """Any blame of a right model; any blame where biases cancel; a miss of an interval."""
    rng = np.random.default_rng([seed, 6])
    p = rng.beta(0.6, 2.0, 400)
    x = {"a": rng.choice(list("uvw"), 400, p=[0.7, 0.25, 0.05]), "b": rng.random(400) < 0.3}
    right = it.bias_groups(it.Sample(rng.random(400) < p, p, x), "a", "b", draws=DRAWS, rng=seed)
    sure = np.where(rng.random(400) < 0.5, 0.05, 0.95)
    coins = it.Sample(rng.random(400) < 0.5, sure, x)
    cancelled = it.bias_groups(coins, "a", draws=DRAWS, rng=seed)
    q = rng.uniform(0.2, 0.6, 400)
    truth = q + np.select([x["a"] == "u", x["a"] == "v"], [0.1, -0.08], 0.0)
    table = it.bias_groups(
        it.Sample(rng.random(400) < truth, q, x), "a", "b", draws=DRAWS, rng=seed
    )
    missed = False
    for group in table:
        rows = group.where.rows(it.Sample(truth > 0.5, q, x).points)
        missed |= not group.lower <= float((truth - q)[rows].mean()) <= group.upper
    blamed = [min(group.pvalue for group in found) <= 0.05 for found in (right, cancelled)]
    return blamed[0], blamed[1], missed


def household_run(units: int, groups: int, seed: int) -> tuple[bool, bool]:
    """Rows of a unit share half of their labels: any blame of a right model; a miss."""
    rng = np.random.default_rng([seed, 7])
    p = np.repeat(rng.uniform(0.2, 0.8, units), 6)
    common = np.repeat(rng.random(units), 6)
    own = np.where(rng.random(p.size) < 0.5, common, rng.random(p.size))
    unit = np.repeat(np.arange(units), 6)
    x = {"g": [f"g{k % groups}" for k in unit]}
    table = it.bias_groups(it.Sample(own < p, p, x, cluster=unit), "g", draws=DRAWS, rng=seed)
    blamed = min(group.pvalue for group in table) <= 0.05
    return blamed, not all(group.lower <= 0 <= group.upper for group in table)


def hardly_any_run(seed: int) -> tuple[bool, bool]:
    """A hundred groups of 30 rows, f from .00003 to .001, all right: any blame; a miss."""
    rng = np.random.default_rng([seed, 8])
    g = np.repeat(np.arange(100), 30)
    p = (10 ** rng.uniform(-4.5, -3, 100))[g]
    x = {"g": [f"l{k}" for k in g]}
    table = it.bias_groups(it.Sample(rng.random(3_000) < p, p, x), "g", draws=DRAWS, rng=seed)
    blamed = min(group.pvalue for group in table) <= 0.05
    return blamed, not all(group.lower <= 1e-12 and group.upper >= -1e-12 for group in table)


def counted(pool: ProcessPoolExecutor, run: Callable[[int], tuple], runs: int) -> np.ndarray:
    return np.array(list(pool.map(run, range(runs), chunksize=5)), dtype=float)


def share(values: Iterable[float], nominal: float | None = None) -> str:
    """Three digits; bold where a binomial test at .001 excludes the nominal share."""
    told = np.asarray(list(values))
    text = f"{told.mean():.3f}".removeprefix("0") if told.mean() < 1 else "1.00"
    if nominal is None:
        return text
    side = "greater" if nominal < 0.5 else "two-sided"  # errors may be rarer than promised
    excluded = binomtest(int(told.sum()), told.size, nominal, side).pvalue < 0.001
    return f"**{text}**" if excluded else text


def bands(pool: ProcessPoolExecutor) -> list[str]:
    lines = [
        "| | n | flags where calibrated | confidence band covers | null band instead | width |",
        "|---|---|---|---|---|---|",
    ]
    for name in DESIGNS:
        for n in (500, 2_000):
            flags, missed, null_missed, width = counted(
                pool, functools.partial(band_run, name, n), RUNS
            ).T
            has_right = not name.startswith(("f near", "far", "biases"))
            lines.append(
                f"| {name} | {n:,} | {share(flags, 0.05) if has_right else ''} | "
                f"{share(1 - missed, 0.95)} | {share(1 - null_missed)} | {width.mean():.3f} |"
            )
            print(lines[-1], flush=True)
    return lines


def slices(pool: ProcessPoolExecutor) -> list[str]:
    lines = ["| planted | any slice confirmed | the planted one |", "|---|---|---|"]
    for name in PLANTED:
        any_, found, _ = counted(pool, functools.partial(slice_run, name, 10_000), SLICE_RUNS).T
        lines.append(f"| {name} | {share(any_)} | {share(found)} |")
        print(lines[-1], flush=True)
    return lines


def slices_of_a_right_model(pool: ProcessPoolExecutor) -> list[str]:
    lines = ["| n | any slice confirmed | all intervals cover |", "|---|---|---|"]
    for n in (2_000, 10_000):
        any_, _, covered = counted(
            pool, functools.partial(slice_run, None, n), max(RUNS // 2, 20)
        ).T
        lines.append(f"| {n:,} | {share(any_)} | {share(covered)} |")
        print(lines[-1], flush=True)
    return lines


def groups(pool: ProcessPoolExecutor) -> list[str]:
    right, cancelled, missed = counted(pool, group_run, RUNS).T
    lines = [
        "| | any group significant | all intervals cover |",
        "|---|---|---|",
        f"| a calibrated model | {share(right, 0.05)} | |",
        f"| biases that cancel within every group | {share(cancelled, 0.05)} | |",
        f"| a miscalibrated model | | {share(1 - missed, 0.95)} |",
    ]
    for title, run in (
        ("calibrated, 100 groups with .001 to .03 events each", hardly_any_run),
        ("calibrated, 80 clusters of 6 in 2 groups", functools.partial(household_run, 80, 2)),
        ("calibrated, 40 clusters of 6 in 4 groups", functools.partial(household_run, 40, 4)),
    ):
        blamed, off = counted(pool, run, max(RUNS // 2, 20)).T
        lines.append(f"| {title} | {share(blamed, 0.05)} | {share(1 - off, 0.95)} |")
    print(*lines[2:], sep="\n", flush=True)
    return lines


def main() -> None:
    begun = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        found = {
            "bands": bands(pool),
            "groups": groups(pool),
            "right": slices_of_a_right_model(pool),
            "slices": slices(pool),
        }
    told = {name: "\n".join(lines) for name, lines in found.items()}
    PAGE.write_text(
        TEXT.format(runs=RUNS, half=max(RUNS // 2, 20), slice_runs=SLICE_RUNS, draws=DRAWS, **told)
    )
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


TEXT = """\
# Local bias, groups and slices: what is promised and what was seen

Made by `make study NAME=bias` ({runs:,} runs a line, {draws} draws, alpha .05; bold where a
binomial test at .001 excludes the nominal share, for errors from above). Bias is observed minus
predicted; positive: the model underestimates.

## Bands of the local bias

100 points, the default widths, x uniform and f as named. *Flags where calibrated*: share of runs
in which any point is flagged whose neighbours all have no bias (promised: at most .05).
*Confidence band covers*: the smoothed bias at all points together (promised: .95). *Null band
instead*: how often the null band, laid around the estimate, would cover.

{bands}

The null band tells where the model is miscalibrated, never by how much. The confidence band covers
more than it promises in three cases: where events are rare and the model calibrated, because a
handful of events in a neighbourhood cannot use up the error that is allowed; where biases of
neighbours cancel, because residuals then vary more than the mean does; and, a little, with 500
rows, because means of a hundred labels have lighter tails than the normal law.

## Groups

400 rows, eleven groups and combinations of groups, the smallest of about six rows, unless the line
says otherwise. With clusters everything is approximate. Where hardly any event is expected, whole
events cannot use up the error that is allowed. The last three lines have {half:,} runs.

{groups}

## Slices

A calibrated model with six covariates: share of runs in which any slice is confirmed (promised: at
most .05), and in which the intervals of all slices, confirmed or not, cover the mean bias of their
rows (promised: at least .95).
{half:,} runs a line.

{right}

A bias of .10 in one tenth of 10,000 rows, f around .4 ({slice_runs} runs, 999 draws). *The planted
one*: a confirmed slice that shares more than half of the rows in either with it.

{slices}
"""


if __name__ == "__main__":
    main()
