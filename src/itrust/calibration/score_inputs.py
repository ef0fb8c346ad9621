"""What a score is called with: rows that were read already, or arrays as scikit-learn has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, Setting, Subject, listed
from itrust.data import (
    Chunk,
    Sample,
    Scan,
    label_values,
    read_labels,
    read_probabilities,
    read_weights,
    same_index,
)

THEIR_NAMES = {"label": "y_true", "prob": "y_prob", "weights": "sample_weight", "x": "x"}
PLAIN = ({0, 1}, {-1, 1})  # labels of which 1 is the positive one


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Labels and probabilities without covariates; one row will do."""

    y: FloatArray
    p: FloatArray
    weights: FloatArray | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, at most `size` at a time."""
        for first in range(0, self.n, size):
            rows = slice(first, first + size)
            w = None if self.weights is None else self.weights[rows]
            yield Chunk.of_labels(self.y[rows], self.p[rows], w, first)


ScoreSource = Sample | Scan | ScoredRows


def rows_to_score(
    y_true: object, y_prob: object, sample_weight: object, pos_label: object, x: object = None
) -> ScoreSource:
    """Rows that were read already, beside which no arrays may stand; or arrays, checked."""
    if not isinstance(y_true, Sample | Scan):
        with in_their_words():
            return ScoredRows(*_read_arrays(y_true, y_prob, sample_weight, pos_label))
    given = {"y_prob": y_prob, "x": x, "sample_weight": sample_weight, "pos_label": pos_label}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                "{argument} goes with arrays, as in score(y_true, y_prob); a {kind} holds all",
                argument=name,
                details={"kind": type(y_true).__name__},
            )
    return y_true


def _read_arrays(
    y_true: object, y_prob: object, sample_weight: object, pos_label: object
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Labels, probabilities and weights, each (n,)."""
    if getattr(y_true, "several", False):
        raise InputError(
            "sample has several classes; take one with sample.one_class(name)", argument="sample"
        )
    if y_prob is None:
        raise InputError(
            "a score takes a Sample, or labels and probabilities: score(y_true, y_prob)",
            argument="y_prob",
        )
    same_index([("y_true", y_true), ("y_prob", y_prob), ("sample_weight", sample_weight)])
    values = label_values(y_true)
    if pos_label is None:
        _refuse_swapped(values, y_prob)
    positive = _positive_of(values, pos_label)
    y, _ = read_labels(y_true, positive)
    p = read_probabilities(_one_column(y_prob, values, positive), y.size)
    return (
        y,
        p,
        None if sample_weight is None else read_weights(sample_weight, y.size, Subject("weights")),
    )


def _refuse_swapped(values: tuple[Any, ...], y_prob: object) -> None:
    """Refuse probabilities in the place of the labels, and labels in theirs."""
    numbers = all(isinstance(value, int | float) and 0 <= value <= 1 for value in values)
    if not numbers or set(values) <= {0, 1} or getattr(y_prob, "ndim", 1) != 1:
        return
    others = label_values(y_prob)
    if set(others) <= {0, 1}:
        raise InputError(
            "{argument} has the values {known}, and y_prob labels: give them the other way round, "
            "score(y_true, y_prob)",
            argument="label",
            value=values,
            details={"known": listed(values)},
        )


def _positive_of(values: tuple[Any, ...], pos_label: object) -> object:
    if pos_label is not None:
        return pos_label
    if any(set(values) <= plain for plain in PLAIN):
        return 1
    raise InputError(
        "{argument} has the values {known}",
        argument="label",
        value=values,
        hint="say which value counts as 1 with {settings}",
        settings=[Setting("pos_label", value) for value in values[:2]],
        details={"known": listed(values)},
    )


def _one_column(y_prob: object, values: tuple[Any, ...], positive: object) -> object:
    """Of a matrix with two columns that of the positive label, as `predict_proba` has them."""
    matrix = np.asarray(y_prob) if getattr(y_prob, "ndim", 1) == 2 else None
    if matrix is None or matrix.shape[1] == 1:
        return y_prob if matrix is None else matrix[:, 0]
    if matrix.shape[1] != 2:
        raise InputError(
            "{argument} must be one column, or two as of predict_proba, not of shape {value}",
            argument="prob",
            value=matrix.shape,
        )
    if any(set(values) <= plain for plain in PLAIN):
        return matrix[:, int(positive is None or positive == 1)]
    if len(values) != 2:
        raise InputError(
            "{argument} has two columns and the labels one value, so that it is not clear which "
            "column is that of {value}; pass that column alone",
            argument="prob",
            value=positive,
        )
    return matrix[:, values.index(positive)]


@contextmanager
def in_their_words() -> Iterator[None]:
    """Let errors name arguments as scikit-learn does."""
    try:
        yield
    except InputError as error:
        settings = tuple(
            Setting("pos_label", setting.value)
            if isinstance(setting, Setting) and setting.name == "positive"
            else setting
            for setting in error.settings
        )
        name = THEIR_NAMES.get(error.argument or "", error.argument)
        details = dict(error.details)
        if details.get("cure") == Setting("missing", "drop"):  # which a score does not take
            details["cure"] = "it.Sample(y_true, y_prob, missing='drop'), given in their place,"
        raise error.at(argument=name, settings=settings, details=details) from None
