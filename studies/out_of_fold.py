"""Out-of-fold predictions: how often the test rejects them. `make study NAME=out_of_fold`.

Writes studies/pages/out_of_fold.md. RUNS=50 gives a quick look.
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
PAGE = Path(__file__).parents[1] / "studies" / "pages" / "out_of_fold.md"


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


TEXT = """\
# Out-of-fold predictions, and rows of the training

Made by `RUNS={runs} make study NAME=out_of_fold`: {rows} rows with two numbers and a group, {folds}
folds (`Sample.from_estimator(model, X, y, cv={folds})`), {runs} samples a line. The table has the
share of samples in which `klce_test` rejects at .05 given all three covariates; bold where a
binomial test at .001 says that it is above .05.

{table}

*Out-of-fold*: predictions of models that were fitted to the other folds, and the labels that were
there. *Same predictions, new labels*: these predictions again, but the labels that judge them are
drawn anew from the truth, so that no model has seen any of them. For these the p-value is exact,
and a share above .05 is power: a model that was fitted to few rows is not the truth, and is
rejected for what it is off. *Rows of the training*: one model, judged on the rows that it was
fitted to.

What this says:

- The dependence between folds did not make the test reject too often. In every line, out-of-fold
  predictions are rejected at most as often as the same predictions with new labels. Where the model
  can be the truth and has few parameters, they are rejected in about .05 of the samples or fewer.
- It makes the test miss errors of estimation. A chance excess of positives in one fold raises the
  predictions for the others and leaves its own low, so that such errors cancel over all folds. For
  a regression with few parameters that is nearly all there is.
- On rows of the training the test says nothing about new rows. A regression passes whatever it has
  learned by chance, and a forest is rejected whatever it would predict for others.
"""


if __name__ == "__main__":
    main()
