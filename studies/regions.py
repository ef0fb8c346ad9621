"""Whether verdict and headline stand still, and claims hold: `make study NAME=regions`.

Ten seeds audit the same rows, of four designs with a clear bias, the housing survey and COMPAS;
numbers that are codes are declared as categories, and labelled. Then 200 samples of which the truth
is known: how often every "too high by at least b" is true. Writes studies/pages/regions.json.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import json
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import compas
import housing
import itrust as it
import kit

SEEDS, RUNS = int(os.environ.get("SEEDS", "10")), int(os.environ.get("RUNS", "200"))
BRIEF = {"charts": False, "validation": False, "robustness": False, "progress": False}
BIASES = ("slope", "group", "pair", "corner")


def designed(bias: str, seed: int = 0, n: int = 4_000) -> tuple[it.Sample, np.ndarray]:
    """Rows with numbers, codes and a category, and the true probabilities."""
    rng = np.random.default_rng([seed, BIASES.index(bias)])
    age, education = rng.integers(18, 90, n), rng.choice([1, 2, 3, 4], n, p=[0.4, 0.3, 0.2, 0.1])
    sex, income = rng.choice([1, 2], n), np.exp(rng.normal(10, 0.7, n))
    score = 0.02 * (age - 50) + 0.3 * (sex == 1) + 0.5 * np.log(income / 22_000)
    score += rng.normal(0, 0.8, n)
    p = expit(score)
    truth = {
        "slope": expit(0.75 * score) + 0.15 * (education == 3),
        "group": p + 0.12 * (education == 3),
        "pair": p + 0.25 * ((sex == 1) & (education == 2)),
        "corner": p + 0.3 * ((age > 70) & (income < 16_000)),
    }[bias]
    truth = np.clip(truth, 0.0, 1.0)
    x = {"age": age, "education": education, "sex": sex, "income": income}
    return it.Sample((rng.random(n) < truth).astype(float), p, x), truth


def surveyed(rows: int = 5_000) -> it.Sample:
    """Households of the survey, with a regression that was fitted to others."""
    data = housing.survey()
    x = np.column_stack([data[name] for name in housing.PERSON]).astype(float)
    train, rest = np.split(np.random.default_rng(0).permutation(len(x)), [20_000])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
        x[train], data["OWNER"][train]
    )
    some = rest[:rows]
    on = {name: data[name][some] for name in ("HHAGE", "BLACK", "HINCP", "HHMAR")}
    return it.Sample(data["OWNER"][some], model.predict_proba(x[some])[:, 1], on)


def rows_of(name: str) -> it.Sample:
    """A file, by its name."""
    if name == "COMPAS":
        return compas.experiment().test
    return surveyed() if name == "housing" else designed(name)[0]


def told(sample: it.Sample, seed: int = 0) -> tuple[str, str]:
    """The verdict, and what comes first in the evidence, without its numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = it.audit(sample, rng=seed, **BRIEF)
    first = found.evidence[0] if found.evidence else None
    return found.verdict.value, f"{type(first).__name__} {getattr(first, 'where', '')}".strip()


def told_of(name: str, seed: int) -> tuple[str, str]:
    return told(rows_of(name), seed)


def declared(name: str) -> list[tuple[str, str]]:
    """Verdict and headline with codes as numbers, declared as categories, and as texts."""
    sample = designed(name)[0]
    x = {column.name: column.values for column in sample.columns}
    codes = {key: x[key].astype(int) for key in ("education", "sex")}
    texts = {key: np.array([str(value) for value in own]) for key, own in codes.items()}
    factors = {key: pd.Categorical(own) for key, own in codes.items()}
    return [told(it.Sample(sample.y, sample.p, x | own)) for own in (codes, factors, texts)]


def claims(bias: str, seed: int) -> tuple[int, int]:
    """How many sizes that a part is said to have at least are true, and how many there are."""
    sample, truth = designed(bias, seed + 1, 2_000)
    found = it.audit(sample, rng=seed, draws=199, **BRIEF)
    right = said = 0
    for part in found.diagnosis.shown:
        inside = part.where.rows(sample.points)
        real = float(np.mean((truth - sample.p)[inside]))
        said += 1
        right += np.sign(part.at_least) * real >= abs(part.at_least)
    return right, said


def main() -> None:
    begun, made = time.perf_counter(), {}
    with ProcessPoolExecutor() as pool:
        for name in (*BIASES, "housing", "COMPAS"):
            found = [*pool.map(functools.partial(told_of, name), range(SEEDS))]
            counts = [Counter(own[k] for own in found).most_common(1)[0] for k in (0, 1)]
            made[name] = dict(zip(("verdict", "headline"), counts, strict=True))
            print(name, counts, flush=True)
        made["declared"] = {name: declared(name) for name in BIASES}
        print(made["declared"], flush=True)
        for name in BIASES:
            runs = [*pool.map(functools.partial(claims, name), range(RUNS), chunksize=5)]
            true = sum(right == said for right, said in runs)
            made[f"claims, {name}"] = {
                "runs": RUNS,
                "all true": true,
                "said": sum(s for _, s in runs),
            }
            print(name, made[f"claims, {name}"], flush=True)
    folder = kit.ROOT / "studies" / "pages"
    (folder / "regions.json").write_text(json.dumps(made, indent=1) + "\n")
    print(f"wrote regions.json in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
