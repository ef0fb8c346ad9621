"""Out-of-fold predictions: how often the test rejects them. `make study NAME=out_of_fold`.

Writes docs/studies/out_of_fold.md. RUNS=50 gives a quick look.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import itrust as it

RUNS = int(os.environ.get("RUNS", "150"))
ROWS, FOLDS, DRAWS, ALPHA = 500, 5, 99, 0.05
PAGE = Path(__file__).parents[1] / "docs" / "studies" / "out_of_fold.md"


def linear(X: np.ndarray) -> np.ndarray:
    return expit(-0.5 + 0.8 * X[:, 0] - 0.6 * X[:, 1] + 0.7 * X[:, 2])


def flat(X: np.ndarray) -> np.ndarray:
    return np.full(len(X), 0.3)


def logistic() -> Any:
    return LogisticRegression(C=1e6)


def forest() -> Any:
    return RandomForestClassifier(50, min_samples_leaf=20, random_state=0)


# What the truth is, and how the model is made.
DESIGNS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[], Any]]] = {
    "one rate for all, truth flat": (flat, lambda: DummyClassifier(strategy="prior")),
    "logistic regression, truth logistic": (linear, logistic),
    "logistic regression with 19 terms, truth logistic": (
        linear,
        lambda: make_pipeline(PolynomialFeatures(3), logistic()),
    ),
    "random forest, truth logistic": (linear, forest),
    "random forest, truth flat": (flat, forest),
}
WAYS = ("out-of-fold", "same predictions, new labels", "rows of the training")


def one_run(task: tuple[str, int]) -> list[bool]:
    """Whether the test rejects, each way."""
    name, seed = task
    truth, make = DESIGNS[name]
    rng = np.random.default_rng([seed, 7])
    X = np.column_stack([rng.normal(size=(ROWS, 2)), rng.integers(0, 2, ROWS)])
    y, again = (rng.random(ROWS) < truth(X) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = it.Sample.from_estimator(make(), X, y, cv=FOLDS, rng=seed)
        samples = (
            folds,
            it.Sample(again, folds.p, X),
            it.Sample.from_estimator(make().fit(X, y), X, y),
        )
        return [it.klce_test(s, draws=DRAWS, rng=seed).pvalue <= ALPHA for s in samples]


def main() -> None:
    begun = time.perf_counter()
    lines = [f"| model | {' | '.join(WAYS)} |", f"|---|{'---|' * len(WAYS)}"]
    with ProcessPoolExecutor() as pool:
        for name in DESIGNS:
            found = list(pool.map(one_run, [(name, seed) for seed in range(RUNS)], chunksize=10))
            rates = np.mean(found, axis=0)
            lines.append(f"| {name} | {' | '.join(map(told, rates))} |")
            print(lines[-1], flush=True)
    PAGE.write_text(TEXT.format(runs=RUNS, rows=ROWS, folds=FOLDS, table="\n".join(lines)))
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


def told(rate: float) -> str:
    above = binomtest(round(rate * RUNS), RUNS, ALPHA, alternative="greater").pvalue < 0.001
    text = f"{rate:.3f}".removeprefix("0")
    return f"**{text}**" if above else text


TEXT = """TEXT {runs} {rows} {folds}
{table}
"""

if __name__ == "__main__":
    main()
