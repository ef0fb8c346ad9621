"""Every method on the paper's data sets, judged by the exact test: `make study NAME=recalibration`.

Writes studies/pages/recalibration.json, and its tables into the pages that show them; what is said
about them stands in the pages. RUNS=2 gives a quick look. Needs the four data sets (downloaded, or
in the folder that ITRUST_DATA names).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import itrust as it
from itrust import recalibrate
from itrust.bias import Neighbours, neighbour_kernel
from itrust.data import Points
from quote import keep

RUNS = int(os.environ.get("RUNS", "20"))
DRAWS = 199
SETS = {
    "COMPAS": "age, sex, African-American",
    "Housing": "income, Black",
    "Adult": "age, sex",
    "Heart": "age, sex",
}
MODELS = ("forest", "logistic")
METHODS = {
    "Platt": recalibrate.Platt(),
    "temperature": recalibrate.Temperature(),
    "isotonic": recalibrate.Isotonic(),
    "histogram": recalibrate.HistogramBinning(),
    "BBQ": recalibrate.BBQ(),
    "beta": recalibrate.Beta(),
    "multicalibration": recalibrate.Multicalibration(),
    "proportional": recalibrate.ProportionalMulticalibration(),
    "Local": recalibrate.Local(),
}


@functools.cache
def data(name: str) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Inputs of the models, labels, covariates of the test; as in the paper's code."""
    if name == "COMPAS":
        t = it.datasets.compas().to_pandas()
        counts = ["juv_fel_count", "juv_misd_count", "priors_count"]
        inputs = t[counts].assign(
            age=t.age / 10, female=t.sex == "Female", degree=t.c_charge_degree == "M"
        )
        inputs = pd.concat([inputs, pd.get_dummies(t.race)], axis=1)
        black = np.where(t.race == "African-American", "yes", "no")
        covariates = {"age": t.age / 10, "sex": t.sex, "black": black}
        y = t.is_recid
    elif name == "Housing":
        t = it.datasets.ahs2019().to_pandas()
        inputs, y = t.drop(columns="OWNER"), t.OWNER
        covariates = {"income": t.HINCP, "black": np.where(t.BLACK == 1, "yes", "no")}
    elif name == "Adult":
        t = it.datasets.adult().to_pandas()
        inputs, y = pd.get_dummies(t.drop(columns="income")), t.income == "<=50K"
        covariates = {"age": t.age.astype(float), "sex": t.gender}
    else:
        t = it.datasets.heart().to_pandas()
        inputs, y = pd.get_dummies(t.drop(columns="HeartDisease")), t.HeartDisease
        covariates = {"age": t.Age.astype(float), "sex": t.Sex}
    frame = pd.DataFrame({key: np.asarray(column) for key, column in covariates.items()})
    return inputs.to_numpy(float), y.to_numpy(float), frame


def split(name: str, model: str, seed: int) -> tuple[it.Sample, it.Sample]:
    """A third to train on, a third to calibrate, a third to judge."""
    inputs, y, covariates = data(name)
    order = np.random.default_rng(seed).permutation(y.size)
    train, *others = np.array_split(order, 3)
    chosen = (
        RandomForestClassifier(random_state=seed)
        if model == "forest"
        else make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    )
    chosen.fit(inputs[train], y[train])
    calibration, test = (
        it.Sample(y[rows], chosen.predict_proba(inputs[rows])[:, 1], covariates.iloc[rows])
        for rows in others
    )
    return calibration, test


# --- designs of Local that lost, kept here so that the comparison can be made again ----------


def start(calibration: it.Sample, test: it.Sample) -> tuple[np.ndarray, np.ndarray]:
    beta = recalibrate.Beta().fit(calibration)
    return beta.logits(calibration.p), beta.logits(test.p)


def surprise(y: np.ndarray, z: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, z) - y * z))


def boosted(calibration: it.Sample, test: it.Sample, rate: float = 0.1) -> np.ndarray:
    """Trees of depth 3 on (logit, x), each fitted to what is left; number by three folds."""
    ours, theirs = start(calibration, test)
    tables = [
        np.column_stack([z, *(column.values for column in sample.columns)])
        for z, sample in ((ours, calibration), (theirs, test))
    ]
    y = calibration.y

    def grown(rows: np.ndarray, other: np.ndarray, z: np.ndarray, trees: int) -> list[np.ndarray]:
        mine, path = ours[rows].copy(), [z.copy()]
        for number in range(trees):
            p = expit(mine)
            v = np.maximum(p * (1 - p), 1e-3)
            tree = DecisionTreeRegressor(
                max_depth=3, min_samples_leaf=max(20, rows.size // 100), random_state=number
            )
            tree.fit(tables[0][rows], (y[rows] - p) / v, sample_weight=v)
            mine += rate * tree.predict(tables[0][rows])
            path.append(path[-1] + rate * tree.predict(other))
        return path

    fold = np.random.default_rng(0).permutation(y.size) % 3
    losses = np.zeros(201)
    for held in range(3):
        rows, out = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        path = grown(rows, tables[0][out], ours[out], 200)
        losses += [surprise(y[out], z) for z in path]
    everyone = np.arange(y.size)
    return expit(grown(everyone, tables[1], theirs, int(np.argmin(losses)))[-1])


def smoothed(calibration: it.Sample, test: it.Sample) -> np.ndarray:
    """Mean residual of neighbours over p (1 - p), shrunk; width and shrinkage by two folds."""
    ours, theirs = start(calibration, test)
    y = calibration.y

    def added(rows: np.ndarray, places: Points, factor: float, shrink: float) -> np.ndarray:
        known = calibration.take(rows).with_predictions(expit(ours[rows]))
        kernel = neighbour_kernel(known.points).widened(factor)
        mass, lean = np.zeros(len(places)), np.zeros(len(places))
        for some, near, block in Neighbours(places, kernel).tiles(known.points, whole=False):
            mass[some] += block.sum(axis=1)
            lean[some] += block @ known.residuals[near]
        v = np.maximum(places.p * (1 - places.p), 1e-3)
        return lean / (mass + shrink) / v

    def at(sample: it.Sample, z: np.ndarray) -> Points:
        return Points(expit(z), sample.columns)

    fold = np.random.default_rng(0).permutation(y.size) % 2
    best = (surprise(y, ours), 0.0, np.inf)
    for factor in (0.5, 1.0, 2.0, 4.0):
        for shrink in (10.0, 50.0, 200.0):
            z = ours.copy()
            for held in (0, 1):
                rows, out = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
                z[out] += added(rows, at(calibration.take(out), ours[out]), factor, shrink)
            best = min(best, (surprise(y, z), factor, shrink))
    if best[1] == 0:
        return expit(theirs)
    return expit(theirs + added(np.arange(y.size), at(test, theirs), *best[1:]))


DESIGNS: dict[str, Callable[[it.Sample, it.Sample], np.ndarray]] = {
    "design: boosted trees": boosted,
    "design: kernel": smoothed,
}
TOO_SLOW = {("design: kernel", "Housing"), ("design: kernel", "Adult")}


def one_run(name: str, model: str, seed: int) -> dict[str, list[float]]:
    """Brier, KLCE^2, its null sd, rejected, seconds; for every method on one split."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibration, test = split(name, model, seed)
    found = {}
    for method in ("none", *METHODS, *DESIGNS):
        if (method, name) in TOO_SLOW:
            continue
        begun = time.perf_counter()
        if method == "none":
            told = test
        elif method in METHODS:
            told = METHODS[method].fit(calibration).apply(test)
        else:
            told = test.with_predictions(DESIGNS[method](calibration, test))
        seconds = time.perf_counter() - begun
        result = it.klce_test(told, draws=DRAWS, rng=seed, progress=False)
        found[method] = [
            it.scores.brier(told),
            result.statistic,
            it.null_sd(told),
            float(result.pvalue <= 0.05),
            seconds,
        ]
    return found


def table(name: str, model: str, pool: ProcessPoolExecutor) -> list[dict[str, Any]]:
    """One row a method: means over the splits; KLCE^2 in millionths."""
    outcomes = list(pool.map(functools.partial(one_run, name, model), range(RUNS)))
    rows = []
    for method in outcomes[0]:
        v = np.array([outcome[method] for outcome in outcomes])
        brier, plain, _, rejected, seconds = v.mean(axis=0)
        floored = float(np.maximum(v[:, 1], v[:, 2]).mean())
        row = {"set": name, "model": model, "given": SETS[name], "method": method}
        row |= {"brier": brier, "klce2": 1e6 * plain, "floored": 1e6 * floored}
        rows.append(row | {"rejected": rejected, "seconds": seconds})
        print(rows[-1], flush=True)
    return rows


def judgement(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Local against the best of the others, in one setting."""
    local = next(row for row in rows if row["method"] == "Local")
    others = [row for row in rows if row["method"] not in ("Local", *DESIGNS)]
    best = min(others, key=lambda row: row["floored"])
    return {
        "setting": f"{local['set']}, {local['model']}",
        "best other": best["method"],
        "its rejected": best["rejected"],
        "ratio": local["floored"] / best["floored"],
        "rejected": local["rejected"],
        "least other": min(row["rejected"] for row in others),
        "brier": local["brier"] - min(row["brier"] for row in rows),
    }


def as_good_as_it_gets(name: str, model: str, seed: int) -> tuple[float, float]:
    """Local where a truth of its own kind is known: labels drawn from its own answer.

    The model's own probabilities are to be recalibrated again, from as many rows as before. What
    is left is what the number of rows leaves.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibration, test = split(name, model, seed)
    fix = recalibrate.Local().fit(calibration)
    rng = np.random.default_rng([seed, 7])
    drawn = []
    for sample in (calibration, test):
        truth = fix.apply(sample).p
        values = {
            c.name: np.array(c.levels)[c.values] if c.is_category else c.values
            for c in sample.columns
        }
        drawn.append(it.Sample(rng.random(sample.n) < truth, sample.p, values))
    told = recalibrate.Local().fit(drawn[0]).apply(drawn[1])
    result = it.klce_test(told, draws=DRAWS, rng=seed, progress=False)
    return max(result.statistic, it.null_sd(told)), float(result.pvalue <= 0.05)


def limits(pool: ProcessPoolExecutor) -> list[dict[str, Any]]:
    rows = []
    for name in ("COMPAS", "Housing", "Adult"):
        for model in MODELS:
            work = functools.partial(as_good_as_it_gets, name, model)
            left, rejected = np.mean(list(pool.map(work, range(max(RUNS // 2, 1)))), axis=0)
            row = {"setting": f"{name}, {model}", "floored": 1e6 * left, "rejected": rejected}
            rows.append(row)
            print("known truth:", row, flush=True)
    return rows


def main() -> None:
    begun = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        parts = [
            table(name, model, pool)
            for name in ("Heart", "COMPAS", "Housing", "Adult")
            for model in MODELS
        ]
        left = limits(pool)
    tables = {
        "judged": {"runs": RUNS, "rows": [judgement(rows) for rows in parts]},
        "left": {"runs": max(RUNS // 2, 1), "rows": left},
        "all": {"runs": RUNS, "draws": DRAWS, "rows": list(chain(*parts))},
    }
    keep("recalibration", tables)
    print(f"wrote recalibration.json and its pages in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
