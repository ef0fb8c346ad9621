"""Covariates that should not be there: made from the label, the prediction, or the row's number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.calibration.assumptions.rows import Rows
from itrust.data import is_index, is_prediction

MIN_ROWS, MIN_SQUARES = 50, 5.0
MANY_ROWS, LEFT, LEFT_OF_FEW = 200, 0.1, 0.05  # of the squares, where a column tells labels
FEW_VALUES = 20
WINDOW = 2  # rows on each side


@dataclass(frozen=True)
class Leak:
    """A covariate that is or foretells something else."""

    name: str
    kind: Literal["label", "p", "1 - p", "index"]


def leaks(whole: Rows, *, repeated: bool) -> list[Leak]:
    """All such covariates; `repeated` if rows share units, which then foretell labels, too."""
    found = []
    sample = whole.sample
    for column, codes in zip(whole.columns[1:], whole.codes[1:], strict=True):
        copy = is_prediction(sample.column(column.name), sample.p)
        if copy is not None:
            found.append(Leak(column.name, copy))
        elif is_index(sample.column(column.name)):
            found.append(Leak(column.name, "index"))
        elif _foretells_labels(whole, codes, column.is_category, repeated=repeated):
            found.append(Leak(column.name, "label"))
    return found


def _foretells_labels(rows: Rows, codes: IntArray, is_category: bool, *, repeated: bool) -> bool:
    """Whether rows with the same value, or with the next ones, tell a row's label nearly surely."""
    y = rows.sample.y[rows.numbers]
    squares = float(((y - rows.sample.p[rows.numbers]) ** 2).sum())
    if y.size < MIN_ROWS or squares < MIN_SQUARES:
        return False
    few = int(codes.max()) + 1 <= FEW_VALUES
    if not few and (repeated or is_category):
        return False
    told = _by_value(y, codes) if few else _by_neighbours(y, codes)
    left = LEFT if y.size >= MANY_ROWS else LEFT_OF_FEW
    return bool(((y - told) ** 2).sum() < left * squares)


def _by_value(y: FloatArray, codes: IntArray) -> FloatArray:
    """The mean label of the other rows with the same value; of all rows where there are none."""
    size, sums = np.bincount(codes)[codes], np.bincount(codes, y)[codes]
    others = np.maximum(size - 1, 1)
    told: FloatArray = np.where(size > 1, (sums - y) / others, y.mean())
    return told


def _by_neighbours(y: FloatArray, codes: IntArray) -> FloatArray:
    """The mean label of the two rows before and the two behind in the order of the values."""
    order = np.argsort(codes, kind="stable")
    ordered = np.pad(y[order], WINDOW, mode="reflect")
    sums = sum(ordered[k : k + y.size] for k in range(2 * WINDOW + 1)) - y[order]
    told = np.empty(y.size)
    told[order] = sums / (2 * WINDOW)
    return told
