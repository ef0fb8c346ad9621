"""Recalibration of several classes on held-out rows: `make study NAME=recalibration_classes`.

Prints the tables of studies/pages/recalibration_classes.md, one row a data set and method: means
over splits of the held-out log loss, of its difference to that of `Local` with a standard error,
of the Brier score and of KLCE^2 of all classes (in ten thousandths), and the share of splits in
which the test of all classes rejects at .05. RUNS=2 gives a quick look; SETS names some of the
sets. Needs Adult and the housing survey (downloaded, or in the folder that ITRUST_DATA names); the
digits come with scikit-learn.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import functools
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import itrust as it
from itrust import recalibrate

RUNS = int(os.environ.get("RUNS", "10"))
ROWS = int(os.environ.get("ROWS", "5000"))  # in all, at most
SHARES = (0.25, 0.6, 0.15)  # to train, to calibrate and to judge
DRAWS = 199
METHODS = {
    "temperature": recalibrate.TemperatureScaling(),
    "vector": recalibrate.VectorScaling(),
    "matrix": recalibrate.MatrixScaling(),
    "Dirichlet": recalibrate.DirichletCalibration(),
    "one against rest, isotonic": recalibrate.OneVsRest(),
    "multicalibration": recalibrate.Multicalibration(),
    "Local": recalibrate.Local(),
}
Data = tuple[np.ndarray, np.ndarray, pd.DataFrame]


def digits() -> Data:
    """The model sees the upper half of the picture; x sums up the lower half."""
    pixels, y = load_digits(return_X_y=True)
    low = pixels.reshape(-1, 8, 8)[:, 4:]
    ink = low.sum(axis=(1, 2)) + 1
    across = (low.sum(axis=1) * np.arange(8)).sum(axis=1) / ink
    x = {"ink": ink, "across": across, "last row": low[:, 3].sum(axis=1)}
    return pixels[:, :32], y, pd.DataFrame(x)


def occupation() -> Data:
    """The model sees age, education and hours; x are age, gender and income."""
    t = it.datasets.adult().to_pandas()
    t = t[t.occupation.map(t.occupation.value_counts()) >= 900].reset_index(drop=True)
    inputs = t[["age", "educational-num", "hours-per-week"]]
    x = pd.DataFrame({"age": t.age.astype(float), "gender": t.gender, "income": t.income})
    return inputs.to_numpy(float), t.occupation.to_numpy(), x


def tenure() -> Data:
    """Owner or renter, alone or not; the model does not see age, x are age, income and race."""
    t = it.datasets.ahs2019().to_pandas()
    alone = np.where(t.NUMPEOPLE == 1, "alone", "with others")
    y = np.where(t.OWNER == 1, "owner ", "renter ").astype(object) + alone
    black = np.where(t.BLACK == 1, "yes", "no")
    x = pd.DataFrame({"age": t.HHAGE.astype(float), "income": t.HINCP, "black": black})
    inputs = pd.get_dummies(t[["HINCP", "HHGRAD", "METRO", "HHMAR"]].astype({"HHMAR": str}))
    return inputs.to_numpy(float), y, x


SETS = {"digits": digits, "occupation": occupation, "tenure": tenure}
MODELS = {
    "digits": RandomForestClassifier(300, min_samples_leaf=2),
    "occupation": RandomForestClassifier(200, min_samples_leaf=10),
    "tenure": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
}
data = functools.cache(lambda name: SETS[name]())


def split(name: str, seed: int) -> tuple[it.MulticlassSample, it.MulticlassSample]:
    """Train on some rows; the others to calibrate on and to judge."""
    inputs, y, x = data(name)
    order = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    train, *others = np.split(order, (np.cumsum(SHARES[:2]) * len(order)).astype(int))
    model = clone(MODELS[name])
    model.set_params(**{key: seed for key in model.get_params() if key == "random_state"})
    model.fit(inputs[train], y[train])
    classes = list(model.classes_)
    calibration, test = (
        it.MulticlassSample(y[rows], model.predict_proba(inputs[rows]), x.iloc[rows], classes)
        for rows in others
    )
    return calibration, test


def one_run(name: str, seed: int) -> dict[str, list[float]]:
    """Log loss, Brier score, p-value and seconds of every method on one split."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibration, test = split(name, seed)
    table = recalibrate.compare(
        METHODS, calibration, test, draws=DRAWS, rng=seed, slices=False, progress=False
    )
    return {
        row.name: [row.log_loss, row.brier, row.klce2, row.pvalue, row.seconds] for row in table
    }


def lines(name: str, pool: ProcessPoolExecutor) -> list[str]:
    """The table of one data set."""
    outcomes = list(pool.map(functools.partial(one_run, name), range(RUNS)))
    found = {m: np.array([outcome[m] for outcome in outcomes]) for m in outcomes[0]}
    said = []
    for method, v in found.items():
        difference = "" if method == "Local" else _difference(v[:, 0] - found["Local"][:, 0])
        loss, brier, klce2, _, seconds = v.mean(axis=0)
        rejected = (v[:, 3] <= 0.05).mean()
        said.append(
            f"| {name} | {method} | {loss:.4f} | {difference} | {brier:.4f} | {1e4 * klce2:.1f} | "
            f"{rejected:.2f} | {seconds:.1f} |"
        )
    return said


def _difference(more: np.ndarray) -> str:
    """The mean with its standard error."""
    if np.isinf(more).any():
        return "infinite"
    return f"{more.mean():+.4f} ({more.std(ddof=1) / np.sqrt(len(more)):.4f})"


def main() -> None:
    begun = time.perf_counter()
    print("| set | method | log loss | more than Local | Brier | KLCE^2 | rejected | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for name in os.environ.get("SETS", ",".join(SETS)).split(","):
            print("\n".join(lines(name, pool)), flush=True)
    print(f"{RUNS} splits in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
