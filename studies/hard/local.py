"""`Local` where it should do nothing: calibrated models, and rows far from the calibration rows."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy.special import expit

import itrust as it
from hard.kit import Section, decimal, repeated, table
from itrust.recalibrate import Local, Multicalibration, Platt, Recalibrator

CALIBRATED = {  # rows, covariates, shift of the logit; the harm of the version before
    (100, 5, 0.0): ".00357",
    (200, 1, 0.0): ".00110",
    (200, 5, 0.0): ".00166",
    (200, 20, 0.0): ".00086",
    (200, 5, -3.0): ".00248",
    (500, 5, 0.0): ".00028",
}
FAR_ROWS = 500
METHODS: dict[str, Recalibrator] = {
    "Local": Local(),
    "Multicalibration": Multicalibration(),
    "Platt": Platt(),
}
FAR_DESIGNS = {
    "error 1.5 x, p apart from x": "tilt",
    "error +.8, p apart from x": "level",
    "error 1.5 x, p = expit(x)": "same",
    "error x1 + x2, correlation .95": "corner",
}


def calibrated(size: tuple[int, int, float], seed: int) -> tuple[bool, float]:
    """Whether a right model was changed, and its expected log loss beyond that of the truth."""
    n, d, shift = size
    rng = np.random.default_rng([seed, n, d])

    def rows(n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        x = rng.normal(size=(d, n))
        named = {f"x{k}": own for k, own in enumerate(x, 1)}
        return named, expit(x[0] + 0.5 * rng.normal(size=n) + shift)

    x, p = rows(n)
    y = rng.random(n) < p
    if y.min() == y.max():
        return False, 0.0
    fix = Local().fit(it.Sample(y, p, x))
    x, p = rows(4_000)
    told = fix.predict(p, x)
    excess = p * np.log(p / told) + (1 - p) * np.log((1 - p) / (1 - told))
    return not fix.unchanged_, float(excess.mean())


def near(design: str, rng: np.random.Generator, n: int) -> it.Sample:
    """Calibration rows, where predictions are wrong."""
    z = rng.normal(size=n)
    if design == "corner":
        x1 = rng.normal(size=n)
        x2 = 0.95 * x1 + np.sqrt(1 - 0.95**2) * rng.normal(size=n)
        return it.Sample(rng.random(n) < expit(z + x1 + x2), expit(z), {"x1": x1, "x2": x2})
    x = rng.uniform(-1, 1, n)
    given = x if design == "same" else z
    error = 0.8 if design == "level" else 1.5 * x
    return it.Sample(rng.random(n) < expit(given + error), expit(given), {"x": x})


def far(design: str, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows where predictions are right: x from 2 to 4, or x1 and x2 at opposite corners."""
    z = rng.normal(size=FAR_ROWS)
    if design == "corner":
        x1 = rng.uniform(1, 2, FAR_ROWS)
        return expit(z), {"x1": x1, "x2": -x1}
    x = rng.uniform(2, 4, FAR_ROWS)
    return expit(x if design == "same" else z), {"x": x}


def moved(design: str, seed: int) -> dict[str, tuple[float, float, float]]:
    """By method: how far right predictions moved far out, wrong ones near by, share marked."""
    rng = np.random.default_rng(seed)
    sample, other = near(design, rng, 1_000), near(design, rng, 1_000)
    p, x = far(design, rng)
    found = {}
    for name, method in METHODS.items():
        fitted = method.fit(sample)
        gain = it.scores.log_loss(other) - it.scores.log_loss(fitted.apply(other))
        apart = float(np.abs(fitted.predict(p, x) - p).mean())
        found[name] = (apart, gain, float(fitted.outside(p, x).mean()))
    return found


def make(pool: ProcessPoolExecutor, runs: int) -> str:
    """Both tables."""
    harmed = []
    for size, before in CALIBRATED.items():
        found = np.array(repeated(pool, partial(calibrated, size), runs))
        n, d, shift = size
        changed, (mean, worst) = found[:, 0].mean(), (found[:, 1].mean(), found[:, 1].max())
        kind = "rare events" if shift else "common"
        cells = [decimal(changed, 3), decimal(mean, 5), before, decimal(worst, 3)]
        harmed.append([f"{n:,}", d, kind, *cells])
    out = []
    for title, design in FAR_DESIGNS.items():
        few = repeated(pool, partial(moved, design), max(runs // 20, 5), chunk=1)
        mean = {name: np.mean([one[name] for one in few], axis=0) for name in METHODS}
        cells = [decimal(mean[name][0]) for name in METHODS]
        out.append([title, BEFORE[design], *cells, *(decimal(v) for v in mean["Local"][1:])])
    head = ["rows", "covariates", "events", "changed", "log loss", "before", "worst"]
    names = ["design", "Local before", *METHODS, "Local's gain inside", "marked"]
    return TEXT.format(
        runs=runs,
        few=max(runs // 20, 5),
        harmed=table(head, harmed),
        moved=table(names, out),
        far_rows=FAR_ROWS,
    )


BEFORE = {"tilt": ".276", "level": ".163", "same": ".053", "corner": ".076"}  # four samples each

TEXT = """\
`Local` changed calibrated models, and extended what it had learned to rows unlike any it had seen.

**A calibrated model.** {runs} samples each. *Changed*: share of fits that changed anything. *Log
loss*: how much more of it than the truth has on new rows, on average over all fits; the truth is 0,
and at most .0003 was asked for. *Before*: the same in 100 samples.

{harmed}

**Rows far from the calibration rows.** 1,000 calibration rows where predictions are wrong, {few}
samples; {far_rows} rows elsewhere where they are right: x from 2 to 4 after -1 to 1, or x1 from 1
to 2 and x2 = -x1 after a correlation of .95. Shown is how far right predictions were moved on
average; the truth is 0. *Gain inside*: fall of the log loss of `Local` on new rows like the
calibration rows. *Marked*: share of the far rows that `outside` marks.

{moved}

`Local` leaves far rows nearly as they are, and keeps its gain near by. The price is that an error
that goes on outside, even one of level alone, is not corrected there: the rows cannot tell. The
other methods go on as at the edge of what they know.
"""

SECTION = Section(name="local", title="Local where it should do nothing", runs=200, make=make)
