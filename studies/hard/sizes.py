"""The sizes that are quoted, beside the truth at the place that is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import numpy as np

import itrust as it
from hard.kit import Section, decimal, repeated, share, table
from itrust.auditing.verdict import PointBias, judge
from itrust.bias import LocalBias, Slice, SliceTable
from itrust.calibration import CalibrationResult
from people import people

DRAWS = 99
TOLERANCE = 0.05
SLICE_SHARE = 2  # runs of slices, of those of points

Quote = tuple[float, float | None, float]  # at least, estimate, truth
Bias = Callable[[dict[str, np.ndarray]], np.ndarray]

PLACES: dict[str, tuple[int, Bias]] = {
    "everywhere .10": (1_500, lambda x: np.full(x["age"].size, 0.10)),
    "one group of four, .10": (6_000, lambda x: 0.10 * (x["g"] == "a")),
    "one group of four, .20": (1_500, lambda x: 0.20 * (x["g"] == "a")),
    "a bump of .2 along age": (4_000, lambda x: 0.2 * np.exp(-(((x["age"] - 50) / 10) ** 2))),
    "a wave of .03": (1_500, lambda x: 0.03 * np.sin(x["age"] / 8)),
}
SLICES: dict[str, tuple[int, Bias]] = {
    "lab missing, .10": (10_000, lambda x: 0.10 * np.isnan(x["lab"])),
    "age < 30 and charge = F, .10": (
        10_000,
        lambda x: 0.10 * ((x["age"] < 30) & (x["charge"] == "F")),
    ),
    "lab missing, .10, fewer rows": (4_000, lambda x: 0.10 * np.isnan(x["lab"])),
}
GROUPS: dict[str, float] = {"one of eight groups, .10": 0.10, "one of eight groups, .05": 0.05}


def place_run(name: str, seed: int) -> list[Quote]:
    """What a verdict would quote of the local bias."""
    n, of = PLACES[name]
    rng = np.random.default_rng([seed, 40])
    x = {
        "g": rng.choice(list("abcd"), n),
        "age": rng.uniform(20, 80, n),
        "income": rng.normal(size=n),
    }
    p = np.clip(rng.beta(3, 4, n), 0.05, 0.75)
    shift = of(x)
    sample = it.Sample(rng.random(n) < p + shift, p, x)
    bias = it.local_bias(sample, at=sample.take(np.arange(250)), draws=DRAWS, rng=seed)
    found = judged_places(bias)
    return [
        (
            abs(point.at_least),
            None if point.bias is None else float(np.sign(point.at_least)) * point.bias,
            float(np.sign(point.at_least)) * truth_near(bias, point, shift),
        )
        for point in found
    ]


def judged_places(bias: LocalBias) -> list[PointBias]:
    """The points among the evidence of a verdict, without the rest of an audit."""
    test, none = refuted()
    told = judge(test, bias, none, None, (), alpha=1.0, tolerance=TOLERANCE)
    return [item for item in told.evidence if isinstance(item, PointBias)]


@cache
def refuted() -> tuple[CalibrationResult, SliceTable]:
    """Any test, which is refuted at alpha 1, and a search without a find."""
    few = it.simulate.survey(60, rng=0).sample
    return it.klce_test(few, draws=DRAWS, rng=0), it.bias_slices(few, draws=DRAWS, rng=0)


def truth_near(bias: LocalBias, point: PointBias, shift: np.ndarray) -> float:
    """The smoothed bias at a point that is known by its coordinates."""
    k = int(np.argmin(np.abs(bias.points.p - point.prediction)))
    one = bias.points.take(np.array([k]))
    gram = bias.kernel.gram(one, bias.sample.points).block(slice(None), slice(None))
    weights = np.maximum(gram - bias.cut, 0.0)[0]
    return float(weights @ shift / weights.sum())


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


def quote(part: Slice, truth: float) -> Quote:
    """Sizes in the direction of the slice."""
    sign = float(np.sign(part.bias))
    return abs(part.at_least), sign * part.estimate(TOLERANCE), sign * truth


def group_run(name: str, seed: int) -> list[Quote]:
    """Groups that are marked."""
    rng = np.random.default_rng([seed, 42])
    g = rng.integers(0, 8, 2_000)
    p = rng.uniform(0.2, 0.6, g.size)
    shift = GROUPS[name] * (g == 0)
    sample = it.Sample(rng.random(g.size) < p + shift, p, {"g": [f"g{k}" for k in g]})
    table_ = it.bias_groups(sample, "g", draws=DRAWS, rng=seed)
    return [
        (
            abs(part.at_least),
            float(np.sign(part.bias)) * part.estimate(),
            float(np.sign(part.bias)) * float(shift[part.where.rows(sample.points)].mean()),
        )
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
    least, _, truth = np.array([(a, 0.0, c) for a, _, c in quotes]).T
    beside = np.array([(b, c) for _, b, c in quotes if b is not None]).reshape(-1, 2)
    false = share(any(a > c for a, _, c in run) for run in every)
    sizes = [decimal(float(values.mean())) for values in (least, truth)]
    if not len(beside):
        return [*head, *sizes, false, "0", ""]
    gap = float((beside[:, 0] - beside[:, 1]).mean())
    return [*head, *sizes, false, str(len(beside)), f"{gap:+.3f}"]


def make(pool: ProcessPoolExecutor, runs: int) -> str:
    """The section."""
    fewer = max(runs // SLICE_SHARE, 5)
    kinds = (
        ("a place", PLACES, place_run, runs),
        ("a slice", SLICES, slice_run, fewer),
        ("a group", GROUPS, group_run, runs),
    )
    lines = [
        line(kind, name, repeated(pool, partial(run, name), number))
        for kind, designs, run, number in kinds
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
    return TEXT.format(runs=runs, fewer=fewer, table=table(head, lines))


TEXT = """\
The verdict quoted the place that cleared the tolerance (.05) with its raw estimate: .231 where the
truth was .10 near a point, .151 for a slice. It now quotes the end of the interval next to 0, "by
at least". Beside it stands an estimate of the half of the rows that did not choose the place (where
one half alone shows the bias), and for slices and marked groups the raw estimate less what being
singled out adds. {runs} runs a line ({fewer} for slices), 99 draws; truth is the mean, or the
smoothed, bias at the place that was quoted.

{table}

Bounds are above the truth in at most .05 of the runs, and estimates are those of the place.
"""

SECTION = Section("sizes", "Sizes that are quoted", 200, make)
