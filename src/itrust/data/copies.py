"""Covariates that are the label, the prediction or the row number under another name."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from itrust._core import Code, FloatArray, InputError, IntArray, shown
from itrust.data.column import Column

MIN_ROWS, FEW_ROWS = 50, 20
NAMELESS = re.compile(r"\s*|unnamed.*", re.IGNORECASE)
INDEX = re.compile(
    r"\s*|unnamed.*|index|level_0|_?(row_?)?(id|index|nr|no|num|number)", re.IGNORECASE
)
WITHOUT_IT = Code("take it out of the covariates", "name the other covariates with --on")
ROUNDING = 0.0051  # of probabilities with two decimals
COINCIDENCE = np.log(1e-6)  # of labels, by p or by chance, that a column has the same values as


def refuse_copies_of_the_label(
    y: FloatArray, p: FloatArray, columns: Sequence[Column], what: str = "the label"
) -> None:
    """Raise if a covariate has two values, one for each label, and that is no coincidence.

    With few rows, where p foretells all labels, or where hardly any differs from the others, an
    honest covariate can be so, too. `what` is copied, in words.
    """
    if y.size < MIN_ROWS or max(log_likelihood(y, p), _log_chance(y)) > COINCIDENCE:
        return
    for column in columns:
        opposite = copies_label(column, y)
        if opposite is not None:
            raise InputError(
                "{subject} is {copy}; {out}, for given the label no probability but "
                "0 and 1 is calibrated",
                argument="x",
                column=column.name,
                details={
                    "copy": f"the opposite of {what}" if opposite else f"a copy of {what}",
                    "out": WITHOUT_IT,
                },
            )


def refuse_copies_of_classes(
    codes: IntArray, p: FloatArray, columns: Sequence[Column], classes: Sequence[Any]
) -> None:
    """Raise if a covariate is one to one with the class, or tells one class from all others."""
    for k, name in enumerate(classes):
        y = (codes == k).astype(float)
        what = "the label" if len(classes) == 2 else f"the label {shown(name)}"
        refuse_copies_of_the_label(y, p[:, k], columns, what)
    with np.errstate(divide="ignore"):
        foretold = float(np.log(p[np.arange(codes.size), codes]).sum())
    counts = np.bincount(codes)
    chance = sum(math.lgamma(count + 1) for count in counts) - math.lgamma(codes.size + 1)
    if codes.size < MIN_ROWS or max(foretold, chance) > COINCIDENCE:
        return
    for column in columns:
        if is_one_to_one(column, codes):
            raise InputError(
                "{subject} is a copy of the label; {out}, for given the label no probability but "
                "0 and 1 is calibrated",
                argument="x",
                column=column.name,
                details={"out": WITHOUT_IT},
            )


def is_one_to_one(column: Column, codes: IntArray) -> bool:
    """Whether every class has one value of a covariate, and another one than the others."""
    present, first = np.unique(codes, return_index=True)
    values = column.values[first]
    if np.unique(values).size < present.size:
        return False
    of_class = np.zeros(int(present.max()) + 1, dtype=values.dtype)
    of_class[present] = values
    return bool((column.values == of_class[codes]).all())


def _log_chance(y: FloatArray) -> float:
    """The log of the probability that as many rows, marked at random, are those of a label."""
    positive, negative = np.count_nonzero(y == 1), np.count_nonzero(y != 1)
    one_way = math.lgamma(positive + 1) + math.lgamma(negative + 1)
    return one_way - math.lgamma(y.size + 1)


def log_likelihood(y: FloatArray, p: FloatArray) -> float:
    """The log of the probability that p gives to the labels."""
    with np.errstate(divide="ignore"):
        return float(np.log(np.where(y == 1, p, 1 - p)).sum())


def copies_label(column: Column, y: FloatArray) -> bool | None:
    """None unless values and labels are one to one; then whether the larger one stands for 0."""
    first = int(np.argmax(y == 1)), int(np.argmax(y == 0))
    one, zero = (column.values[row] for row in first)
    if one == zero or y[first[0]] == y[first[1]]:
        return None
    same: np.ndarray[tuple[int], np.dtype[np.bool_]] = column.values == np.where(y == 1, one, zero)
    return bool(one < zero) if same.all() else None


def is_prediction(column: Column, p: FloatArray) -> Literal["p", "1 - p"] | None:
    """Say "p" or "1 - p" if a column is that in every row, up to rounding; else None."""
    if column.is_category or p.size < FEW_ROWS or np.ptp(p) <= 2 * ROUNDING:
        return None
    if bool((np.abs(column.values - p) <= ROUNDING).all()):  # never true of missing values
        return "p"
    return "1 - p" if bool((np.abs(column.values - (1 - p)) <= ROUNDING).all()) else None


def is_score(column: Column, p: FloatArray) -> bool:
    """Whether a column is the logit of p or the rank of p, up to its sign.

    Other functions of p are left alone: a model may be a function of one of its covariates.
    """
    if column.is_category or p.size < FEW_ROWS or np.ptp(p) <= 2 * ROUNDING:
        return False
    inner = (p > 0) & (p < 1)
    logits = np.log(p[inner] / (1 - p[inner]))
    if inner.sum() >= FEW_ROWS and any(
        np.allclose(column.values[inner], s * logits) for s in (1, -1)
    ):
        return True
    ordered = column.values[np.argsort(p)]
    steps = np.diff(ordered)
    return bool(abs(steps[0]) == 1 and (steps == steps[0]).all())


def is_index(column: Column) -> bool:
    """Whether a column numbers the rows and is called so, or has no name and all values differ."""
    if column.kind != "number" or not INDEX.fullmatch(column.name):
        return False
    nameless = NAMELESS.fullmatch(column.name) is not None and len(column) >= FEW_ROWS
    return counts_rows(column) or (nameless and np.unique(column.values).size == len(column))


def counts_rows(column: Column) -> bool:
    """Whether a column of numbers goes up, or down, by one from row to row."""
    if column.kind != "number" or len(column) < FEW_ROWS:
        return False
    steps = np.diff(column.values)
    return bool(abs(steps[0]) == 1 and (steps == steps[0]).all())


def copy_notes(column: Column, p: FloatArray) -> list[str]:
    """Say where a covariate adds nothing to p, or to the order of the rows, and may be meant so.

    The prediction itself and an index are told by the test, as a warning.
    """
    if is_prediction(column, p) or is_index(column):
        return []
    if counts_rows(column):
        return [f"{column.name!r} counts the rows: as a covariate it is their order"]
    if is_score(column, p):
        return [f"{column.name!r} orders the rows as p does, so it adds nothing to p"]
    return []
