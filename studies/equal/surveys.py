"""Means, ratios, differences and their standard errors by the design of a survey."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import statsmodels.api as sm
from scipy.linalg import hadamard

import itrust as it
from equal.data import NHANES, NONE, Nhanes
from equal.kit import row
from itrust import tasks
from itrust.tasks.uncertainty import LabelledTask

Pair = tuple[Any, Any]
SUMS = 1e-9
TEXTS = (
    "prevalence()",
    "prevalence(sex == 2)",
    "mean(age)",
    "prevalence(sex == 1) - prevalence(sex == 2)",
    "mean(age | sex == 1) - mean(age | sex == 2)",
)
CENTRED = "estimates with replicate weights spread around the estimate, not around their mean"


def ours(sample: it.Sample) -> tuple[list[float], list[float]]:
    """Values of all tasks with labels, and their standard errors."""
    told = [LabelledTask.of(tasks.parse(text), sample) for text in TEXTS]
    return [task.labels.value for task in told], [task.less().stderr for task in told]


def by_svy(columns: dict[str, np.ndarray], design: Any) -> tuple[list[float], list[float]]:
    """The same by svy."""
    import svy

    frame = pl.DataFrame(columns).with_columns(top=pl.col("y") * pl.col("age"))
    estimation = svy.Sample(frame, design).estimation
    how = {"method": "replication", "variance_center": "estimate"} if design.rep_wgts else {}

    def told(text: str) -> tuple[float, float]:
        def estimate(**which: Any) -> Any:
            if "mean" in text:
                return estimation.ratio("top", "y", **which, **how)
            return estimation.mean("y", **which, **how)

        if " - " in text:
            found = estimate(by="sex").contrast(svy.estd(1) - svy.estd(2)).to_dicts()[0]
            return found["est"], found["se"]
        inside = {"where": pl.col("sex") == 2} if "sex" in text else {}
        found = estimate(**inside).estimates[0]
        return found.est, found.se

    values, errors = zip(*(told(text) for text in TEXTS), strict=True)
    return list(values), list(errors)


def nhanes_columns(rows: Nhanes) -> dict[str, np.ndarray]:
    named = {f"set_{k + 1}": own for k, own in enumerate(rows.sets.T)}
    return {**rows.columns, "y": rows.columns["highbp"], **named}


def by_design(rows: Nhanes) -> tuple[Pair, Pair]:
    """Values and standard errors by strata and clusters, ours and theirs."""
    import svy

    design = svy.Design(stratum="stratum", psu="unit", wgt="finalwgt")
    return ours(rows.by_design), by_svy(nhanes_columns(rows), design)


@row("Five weighted prevalences, means and differences", "svy", on=(NHANES,), within=SUMS)
def values(rows: Nhanes) -> Pair:
    mine, theirs = by_design(rows)
    return mine[0], theirs[0]


@row("Their standard errors by strata and clusters", "svy", on=(NHANES,), within=SUMS)
def linearised(rows: Nhanes) -> Pair:
    mine, theirs = by_design(rows)
    return mine[1], theirs[1]


@row("By BRR", "svy", on=(NHANES,), within=SUMS, note=CENTRED)
def half_samples(rows: Nhanes) -> Pair:
    import svy

    sets = svy.RepWeights("brr", "set_", rows.sets.shape[1])
    design = svy.Design(wgt="finalwgt", rep_wgts=sets)
    return ours(rows.by_replicates)[1], by_svy(nhanes_columns(rows), design)[1]


def people(clusters: int) -> dict[str, np.ndarray]:
    """Rows of unequal clusters, labels that go with age."""
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(clusters), rng.integers(10, 40, clusters))
    age = 45 + 6 * rng.normal(size=clusters)[unit] + 12 * rng.normal(size=unit.size)
    p = 1 / (1 + np.exp(0.3 - (age - 45) / 30))
    return {
        "y": (rng.random(unit.size) < p).astype(float),
        "p": p,
        "age": age,
        "sex": rng.integers(1, 3, unit.size),
        "unit": unit,
        "weight": np.exp(0.6 * rng.normal(size=unit.size)),
    }


def replicated(sets: np.ndarray, columns: dict[str, np.ndarray], method: str, theirs: Any) -> Pair:
    import svy

    x = {name: columns[name] for name in ("age", "sex")}
    sample = it.Sample(
        columns["y"],
        columns["p"],
        x,
        weights=columns["weight"],
        replicate_weights=sets,
        replicate_method=method,
    )
    named = {f"set_{k + 1}": own for k, own in enumerate(sets.T)}
    design = svy.Design(wgt="weight", rep_wgts=theirs)
    return ours(sample)[1], by_svy({**columns, **named}, design)[1]


@row("By Fay's method, factor .5, simulated", "svy", on=(NONE,), within=SUMS, note=CENTRED)
def fay() -> Pair:
    import svy

    columns = people(40)
    unit = columns["unit"]
    signs = hadamard(32)[:, 1:21][:, unit // 2] * np.where(unit % 2 == 0, 1, -1)
    sets = (columns["weight"] * (1 + 0.5 * signs)).T
    return replicated(sets, columns, "fay:0.5", svy.RepWeights("brr", "set_", 32, fay_coef=0.5))


@row("By the jackknife (JK1), simulated", "svy", on=(NONE,), within=SUMS, note=CENTRED)
def jackknife() -> Pair:
    import svy

    columns = people(40)
    left = columns["unit"][:, None] != np.arange(40)
    sets = columns["weight"][:, None] * left * 40 / 39
    return replicated(sets, columns, "jk1", svy.RepWeights("jackknife", "set_", 40, kind="jk1"))


@row("By successive differences, simulated", "svy", on=(NONE,), within=SUMS, note=CENTRED)
def successive() -> Pair:
    import svy

    columns = people(40)
    signs = hadamard(64)[:, 1:42]
    unit = columns["unit"]
    factors = 1 + 2**-1.5 * (signs[:, unit] - signs[:, unit + 1])
    sets = (columns["weight"] * factors).T
    return replicated(sets, columns, "sdr", svy.RepWeights("sdr", "set_", 64))


@row(
    "Standard error of a weighted mean by clusters (sandwich), simulated",
    "statsmodels",
    on=(NONE,),
    within=SUMS,
    note="strata are not known to statsmodels",
)
def sandwich() -> Pair:
    columns = people(60)
    sample = it.Sample(
        columns["y"],
        columns["p"],
        {"age": columns["age"], "sex": columns["sex"]},
        weights=columns["weight"],
        cluster=columns["unit"],
    )
    told = LabelledTask.of(tasks.parse("prevalence()"), sample)
    fit = sm.WLS(columns["y"], np.ones_like(columns["y"]), columns["weight"]).fit(
        cov_type="cluster", cov_kwds={"groups": columns["unit"]}
    )
    return [told.labels.value, told.less().stderr], [fit.params[0], fit.bse[0]]
