"""The paper's COMPAS experiment: its three subsets and its forest.

Where the data folder (ITRUST_DATA) holds the predictions that the published notebook makes, in
compas-fig4-calibration.csv and compas-fig4-test.csv, these are taken, and every number can be
compared with the printed one to the digit. Elsewhere a forest is fitted anew on the same subsets.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.csv
from sklearn.ensemble import RandomForestClassifier

import itrust as it

SEED = 1864
CUTS = (2_380, 4_761)  # rows of the three subsets: 2,380, 2,381 and 2,453
COUNTS = ("juv_fel_count", "juv_misd_count", "priors_count")
ON = ("age10", "female", "african_american")


@dataclass(frozen=True)
class Experiment:
    """Calibration and test rows with the forest's probabilities.

    `kept` has the probabilities of the published recalibrations on the test rows, by method;
    it is empty for a forest that was fitted anew.
    """

    calibration: it.Sample
    test: it.Sample
    kept: Mapping[str, np.ndarray]

    def first(self, rows: int | None) -> Experiment:
        """The first rows of both subsets; None for all of them."""
        kept = slice(rows)
        return Experiment(
            self.calibration.take(np.arange(self.calibration.n)[kept]),
            self.test.take(np.arange(self.test.n)[kept]),
            {name: p[kept] for name, p in self.kept.items()},
        )

    @property
    def source(self) -> str:
        """Whose forest it is."""
        return "predictions of the published notebook" if self.kept else "forest fitted anew"


@functools.cache
def experiment() -> Experiment:
    """The published predictions where they are at hand, else our own."""
    folder = Path(os.environ.get("ITRUST_DATA", ""))
    files = [folder / f"compas-fig4-{part}.csv" for part in ("calibration", "test")]
    if not all(file.is_file() for file in files):
        return fitted_anew()
    calibration, test = (pyarrow.csv.read_csv(file) for file in files)
    kept = {
        name: test[f"p_{name.lower()}"].to_numpy()
        for name in ("Platt", "temperature", "isotonic", "BBQ")
    }
    samples = (
        it.Sample.from_frame(part, label="y", prob="p", on=ON) for part in (calibration, test)
    )
    return Experiment(*samples, kept)


def fitted_anew() -> Experiment:
    """The same subsets with a forest of our own seed.

    The published forest takes its seed from NumPy's global state; what else had drawn from it by
    then cannot be told.
    """
    table = it.datasets.compas().to_pandas()
    order = np.random.RandomState(SEED).permutation(len(table))
    table = table.iloc[order].reset_index(drop=True)
    races = sorted(set(table["race"]))
    x = {
        "age10": table["age"].to_numpy() / 10,
        "female": (table["sex"] == "Female").to_numpy(int),
        "african_american": (table["race"] == "African-American").to_numpy(int),
    }
    inputs = np.column_stack(
        [
            x["age10"],
            x["female"],
            table["c_charge_degree"] == "M",
            *(table[name] for name in COUNTS),
            *(table["race"] == race for race in races),
        ]
    ).astype(float)
    y = table["is_recid"].to_numpy()
    forest = RandomForestClassifier(random_state=SEED).fit(inputs[: CUTS[0]], y[: CUTS[0]])
    p = forest.predict_proba(inputs)[:, 1]
    calibration, test = (
        it.Sample(y[rows], p[rows], {name: values[rows] for name, values in x.items()})
        for rows in (slice(*CUTS), slice(CUTS[1], None))
    )
    return Experiment(calibration, test, {})
