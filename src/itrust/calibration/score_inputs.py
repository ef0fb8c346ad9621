"""What a score is called with: rows that were read already, or arrays as scikit-learn has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from itrust._core import InputError, Setting, Subject, listed
from itrust.data import (
    Sample,
    Scan,
    label_values,
    positive_column,
    read_labels,
    read_probabilities,
    read_weights,
    same_index,
)

THEIR_NAMES = {"label": "y_true", "prob": "y_prob", "weights": "sample_weight", "x": "x"}
PLAIN = ((0, 1), (-1, 1))  # labels of which 1 is the positive one


def rows_to_score(
    y_true: object, y_prob: object, sample_weight: object, pos_label: object, x: object = None
) -> Sample | Scan:
    """Rows that were read already, beside which no arrays may stand; or arrays, checked.

    The latter have no covariates, and one row will do.
    """
    if not isinstance(y_true, Sample | Scan):
        with in_their_words():
            return _read_arrays(y_true, y_prob, sample_weight, pos_label)
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
) -> Sample:
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
    plain = next((known for known in PLAIN if set(values) <= set(known)), None)
    positive = 1 if plain and pos_label is None else pos_label
    if pos_label is None and plain is None:
        _refuse_swapped(values, y_prob)
    y, _, _ = read_labels(y_true, positive)
    if getattr(y_prob, "ndim", 1) == 2:  # one column, or two as of predict_proba
        matrix = np.asarray(y_prob)
        named = positive if plain is None else plain[int(positive == 1)]
        one = matrix.shape[1] == 1
        y_prob = matrix[:, 0] if one else positive_column(matrix, plain or values, named)
    p, w = read_probabilities(y_prob, y.size), None
    if sample_weight is not None:
        w = read_weights(sample_weight, y.size, Subject("weights"))
        if not w.any():
            raise InputError("{argument}: no row has a positive weight", argument="weights")
    return Sample.of_labels(y, p, w)


def _refuse_swapped(values: tuple[Any, ...], y_prob: object) -> None:
    """Refuse probabilities in the place of the labels, and labels in theirs."""
    numbers = all(isinstance(value, int | float) and 0 <= value <= 1 for value in values)
    if numbers and getattr(y_prob, "ndim", 1) == 1 and set(label_values(y_prob)) <= {0, 1}:
        raise InputError(
            "{argument} has the values {known}, and y_prob labels: give them the other way round, "
            "score(y_true, y_prob)",
            argument="label",
            value=values,
            details={"known": listed(values)},
        )


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
