"""Rows that are not independent, and rows that are but look as if they were not."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import itrust as it


def drawn(rng, p):
    return (rng.random(p.size) < np.clip(p, 0, 1)).astype(int)


def candidacies(rng, units=60, dates=78):
    """Forecasts of every candidacy on 78 dates: p and the polls drift, the outcome is one."""
    start = rng.normal(0, 1.6, units)[:, None]
    strength = start + np.cumsum(rng.normal(0, 0.08, (units, dates)), axis=1)
    p = expit(strength)
    won = drawn(rng, p[:, -1])
    return {
        "y": np.repeat(won, dates),
        "p": p.ravel(),
        "poll": (strength + rng.normal(0, 0.3, p.shape)).ravel(),
        "candidate": np.repeat([f"c{k}" for k in range(units)], dates),
        "state": np.repeat([f"s{k}" for k in rng.integers(20, size=units)], dates),
        "date": np.tile(np.datetime64("2018-08-01") + np.arange(dates), units),
    }


def quarters(rng, count=60, forecasters=188):
    """Forecasters who answer in six quarters of ten, all about one outcome."""
    signal = rng.uniform(-1.5, 1.5, count)
    quarter, who = np.nonzero(rng.random((count, forecasters)) < 0.6)
    return {
        "y": drawn(rng, expit(signal))[quarter],
        "p": expit(signal[quarter] + rng.normal(0, 0.7, quarter.size)),
        "growth": rng.normal(size=count)[quarter] + rng.normal(0, 0.5, quarter.size),
        "quarter": quarter,
        "forecaster": who,
    }


def daily(rng, days=600, latent=0.365):
    """A series whose residuals have correlation .22 from day to day."""
    shocks = rng.normal(size=days) * np.sqrt(1 - latent**2)
    shocks[0] = rng.normal()
    for day in range(1, days):
        shocks[day] += latent * shocks[day - 1]
    season = np.sin(2 * np.pi * np.arange(days) / 365)
    p = expit(season + rng.normal(0, 0.5, days))
    return {
        "y": (norm.cdf(shocks) < p).astype(int),
        "p": p,
        "warmth": season + rng.normal(0, 0.5, days),
    }


def independent(rng, n=500, columns=12):
    """A calibrated model, and many columns that name units of all sizes."""
    p = rng.uniform(0.05, 0.95, n)
    rows = {"y": drawn(rng, p), "p": p, "x": rng.normal(size=n)}
    rows |= {f"id{k}": rng.integers(n // (2 + 3 * k), size=n) for k in range(columns)}
    return rows | {"when": np.datetime64("2020-01-01") + np.sort(rng.integers(n // 4, size=n))}


def rare(rng, n=1000):
    p = expit(rng.normal(-4, 0.7, n))
    rows = {"y": drawn(rng, p), "p": p, "x": rng.normal(size=n)}
    return rows | {f"id{k}": np.arange(n) // (2 + 3 * k) for k in range(8)}


def sure(rng, n=600):
    """Most p are .003 or .997."""
    p = np.where(rng.random(n) < 0.5, 0.003, 0.997)
    p[:100] = rng.uniform(0.1, 0.9, 100)
    return {"y": drawn(rng, p), "p": p, "x": rng.normal(size=n), "id": np.arange(n) // 4}


def sorted_by_x(rng, n=1000):
    x, p = np.sort(rng.normal(size=n)), rng.uniform(0.3, 0.7, n)
    return {"y": drawn(rng, p + 0.25 * np.sin(2 * x)), "p": p, "x": x, "id": np.arange(n) // 5}


def few_sorted_by_x(rng, n=300):
    x, p = np.sort(rng.normal(size=n)), rng.uniform(0.3, 0.7, n)
    return {"y": drawn(rng, p + 0.28 * np.sin(3 * x)), "p": p, "x": x}


def sorted_by_p(rng, n=1000):
    p = np.sort(rng.uniform(0.02, 0.98, n))
    y = drawn(rng, expit(3 * logit(p) + 0.8))
    return {"y": y, "p": p, "x": rng.normal(size=n), "id": np.arange(n) // 5}


def sorted_by_label(rng, n=500):
    rows = independent(rng, n, 0)
    order = np.argsort(rows["y"], kind="stable")
    return {name: values[order] for name, values in rows.items() if name != "when"}


def sorted_by_all(rng, n=1000):
    """Every p many times, and labels sorted among them."""
    p = np.round(rng.uniform(0.1, 0.9, n), 2)
    y = drawn(rng, p)
    order = np.lexsort((y, p))
    return {"y": y[order], "p": p[order], "x": np.round(p[order] * 5)}


def places(rng, n=2000):
    """A column that stands for two covariates whose interaction is biased."""
    centres, who = rng.normal(size=(200, 2)), rng.integers(200, size=n)
    x = centres[who] + rng.normal(0, 0.2, (n, 2))
    p = rng.uniform(0.3, 0.7, n)
    y = drawn(rng, p + 0.25 * np.sign(x[:, 0] * x[:, 1]))
    return {"y": y, "p": p, "x": x[:, 0], "z": x[:, 1], "place": who}


def regions(rng, n=2000):
    """Ten regions, each with a bias of its own."""
    p, region = rng.uniform(0.3, 0.7, n), rng.integers(10, size=n)
    y = drawn(rng, p + rng.choice([-0.25, 0.25], 10)[region])
    return {"y": y, "p": p, "x": rng.normal(size=n), "region": region}


def hospitals(rng, n=1000):
    """A random effect of .4 on the logit; sorted by hospital."""
    p, hospital = expit(rng.normal(size=n)), np.sort(rng.integers(50, size=n))
    y = drawn(rng, expit(logit(p) + rng.normal(0, 0.4, 50)[hospital]))
    return {"y": y, "p": p, "x": rng.normal(size=n), "hospital": hospital}


def ages(rng, n=2000):
    """A bias that goes up and down with a whole number."""
    p, age = rng.uniform(0.3, 0.7, n), rng.integers(18, 80, n)
    y = drawn(rng, p + 0.25 * np.sin(age / 8))
    return {"y": y, "p": p, "x": rng.normal(size=n), "age": age}


def crossings(rng, n=1000):
    """Cells of 8 x 8 levels, each with one p and a bias; sorted by p."""
    one, other = rng.integers(8, size=(2, n))
    p = rng.uniform(0.3, 0.7, (8, 8))[one, other]
    y = drawn(rng, p + rng.normal(0, 0.15, (8, 8))[one, other])
    order = np.argsort(p, kind="stable")
    return {"y": y[order], "p": p[order], "x": one[order], "z": other[order]}


def drifting(rng, n=1000):
    p = rng.uniform(0.2, 0.8, n)
    y = drawn(rng, p + 0.2 * np.sin(6 * np.arange(n) / n))
    return {"y": y, "p": p, "x": rng.normal(size=n), "day": np.arange(n) // 4}


DEPENDENT = {
    "candidacies on 78 dates": (candidacies, ("candidate",)),
    "188 forecasters of one outcome": (quarters, ("quarter",)),
    "daily, correlation .22": (daily, ()),
}
INDEPENDENT = {
    "calibrated, 13 columns": independent,
    "rare events, 8 columns": rare,
    "p near 0 and 1": sure,
    "miscalibrated, sorted by x": sorted_by_x,
    "miscalibrated, a steeper wave, 300 rows sorted by x": few_sorted_by_x,
    "miscalibrated, sorted by p": sorted_by_p,
    "sorted by the label": sorted_by_label,
    "sorted by p, then by the label": sorted_by_all,
    "a column that stands for x": places,
    "ten regions with a bias": regions,
    "50 hospitals, random effect .4": hospitals,
    "bias along an age that is not in x": ages,
    "64 cells with a bias": crossings,
    "bias that drifts along the file": drifting,
}
COVARIATES = ("x", "z", "poll", "growth", "warmth")


def as_sample(rows: dict[str, np.ndarray]) -> it.Sample:
    """The rows as a sample; columns that are no covariates stay in the frame."""
    on = [name for name in rows if name in COVARIATES]
    return it.Sample.from_frame(rows, label="y", prob="p", on=on)
