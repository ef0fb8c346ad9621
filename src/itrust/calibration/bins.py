"""Rows that are scored, cells of the prediction and sums over their rows.

Everything that depends on the prediction alone is a function of a few sums over rows of nearly the
same prediction, so rows can be read in any order, some at a time. Bins are few, cut by width or by
weight. Cells are many: up to 100,000 rows a cell holds one prediction, and nothing is lost. Of more
rows, a cell holds predictions whose distance from 0 or 1 differs by a factor of 1.0005 at most;
those below 1e-16, where 1 - p is 1, are one cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit

from itrust._core import (
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    Setting,
    Subject,
    checked_count,
    listed,
)
from itrust.data import (
    Sample,
    Scan,
    is_binary_scan,
    label_values,
    positive_column,
    read_labels,
    read_probabilities,
    read_weights,
    rows_at_hand,
    same_index,
)
from itrust.engines import Additive

THEIR_NAMES = {"label": "y_true", "prob": "y_prob", "weights": "sample_weight", "x": "x"}
PLAIN = ((0, 1), (-1, 1))  # labels of which 1 is the positive one


def rows_to_score(
    y_true: object, y_prob: object, sample_weight: object, pos_label: object, x: object = None
) -> Sample | Scan:
    """Rows that were read already, beside which no arrays may stand; or arrays, checked.

    The latter have no covariates, and one row will do.
    """
    if not (isinstance(y_true, Sample) or is_binary_scan(y_true)) or y_true.several:
        with in_their_words():
            return _read_arrays(y_true, y_prob, sample_weight, pos_label)
    given = {"y_prob": y_prob, "x": x, "sample_weight": sample_weight, "pos_label": pos_label}
    for name, value in given.items():
        if value is not None:
            problem = "{argument} goes with arrays, as in score(y_true, y_prob); a {kind} holds all"
            raise InputError(problem, argument=name, kind=type(y_true).__name__)
    return y_true


def _read_arrays(
    y_true: object, y_prob: object, sample_weight: object, pos_label: object
) -> Sample:
    if getattr(y_true, "several", False):
        raise InputError(
            "sample has several classes; take one with sample.one_class(name)", argument="sample"
        )
    if y_prob is None:
        problem = "a score takes a Sample, or labels and probabilities: score(y_true, y_prob)"
        raise InputError(problem, argument="y_prob")
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
            known=listed(values),
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


FINENESS = 11  # binary digits that are kept of how far a prediction is from 0 or 1
NO_DISTANCE = 1e-16  # closer to 0 than this is one cell; no double is closer to 1
ROUNDING = 1e-14  # a mean of predictions is as close to 1 as this if all of them are 1


@dataclass(frozen=True)
class Bins(ABC):
    """A way to cut [0, 1] into intervals that are open on the left, closed on the right.

    Parameters
    ----------
    number : int
        Of intervals; 10 by default.
    """

    number: int = 10

    def __post_init__(self) -> None:
        checked_count(self.number, "number")

    @abstractmethod
    def inner_edges(self, sample: Sample | Scan) -> FloatArray:
        """Choose edges from predictions and weights alone.

        Parameters
        ----------
        sample : Sample or Scan
            The rows; labels are not looked at.

        Returns
        -------
        (number - 1,) array of float
            Edges between 0 and 1, rising; fewer where predictions are tied.
        """


@dataclass(frozen=True)
class EqualWidth(Bins):
    """Intervals of the same width."""

    def inner_edges(self, sample: Sample | Scan) -> FloatArray:  # noqa: ARG002
        return np.linspace(0, 1, self.number + 1)[1:-1]


@dataclass(frozen=True)
class EqualMass(Bins):
    """Intervals that hold the same weight, up to ties."""

    def inner_edges(self, sample: Sample | Scan) -> FloatArray:
        # Just below k / number, so that rounding does not move a row into the next bin.
        levels = np.linspace(0, 1, self.number + 1)[1:-1] - 1e-12
        return np.unique(quantiles_of(sample, levels))


def quantiles_of(source: Sample | Scan, levels: FloatArray) -> FloatArray:
    """Quantiles of the predictions, by weight."""
    many = isinstance(source, Scan) or source.n > rows_at_hand()
    rows: Any = source.extract().some if many else source  # the same in memory and from files
    return np.asarray(np.quantile(rows.p, levels, weights=rows.weights, method="inverted_cdf"))


@dataclass(frozen=True, eq=False)
class Sums(Additive):
    """Sums over the rows of several cells, by label, (g,) each; rows of weight 0 do not count."""

    zeros: FloatArray
    ones: FloatArray
    weights0: FloatArray
    weights1: FloatArray
    squares0: FloatArray
    squares1: FloatArray
    predictions: FloatArray  # times weights

    @classmethod
    def of(cls, cell: IntArray, number: int, y: FloatArray, p: FloatArray, w: FloatArray) -> Sums:
        """Sum over some rows, each of which lies in a cell."""
        values = ((w > 0).astype(float), w, w * w)
        by_label = (part for each in values for part in (each * (1 - y), each * y))
        sums = [np.bincount(cell, part, minlength=number) for part in (*by_label, w * p)]
        return cls(*np.array(sums, dtype=float))

    @property
    def rows(self) -> FloatArray:
        """All rows."""
        return self.zeros + self.ones

    @property
    def weights(self) -> FloatArray:
        """Their weights."""
        return self.weights0 + self.weights1

    @property
    def squares(self) -> FloatArray:
        """Their squared weights."""
        return self.squares0 + self.squares1

    @property
    def mean(self) -> FloatArray:
        """Mean prediction of every cell, up to rounding; NaN where there is no weight."""
        return _ratio(self.predictions, self.weights)

    @property
    def predicted(self) -> FloatArray:
        """The same, 1 at most."""
        mean = np.minimum(self.mean, 1.0)
        return np.where(1 - mean < ROUNDING, 1.0, mean)  # weights of both labels add up otherwise

    @property
    def observed(self) -> FloatArray:
        """Rate of label 1 in every cell; NaN where there is no weight."""
        return _ratio(self.weights1, self.weights)

    @property
    def effective(self) -> FloatArray:
        """How many rows of the same weight they are worth; the rows, where all weights are 1."""
        return _ratio(np.square(self.weights), self.squares)

    def at(self, cells: AnyArray) -> Sums:
        """Keep some cells."""
        return Sums(*(values[cells] for values in vars(self).values()))

    def joined(self, first: IntArray) -> Sums:
        """Put neighbouring cells together."""
        return Sums(*(np.add.reduceat(values, first) for values in vars(self).values()))

    @property
    def occupied(self) -> IntArray:
        """Cells that hold rows that count."""
        return np.flatnonzero(self.weights > 0)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))


def bin_sums(y: FloatArray, p: FloatArray, w: FloatArray, edges: FloatArray) -> Sums:
    """Sum over some rows between edges; a prediction at an edge is below it."""
    return Sums.of(np.searchsorted(edges, p), edges.size + 1, y, p, w)


@dataclass(frozen=True, eq=False)
class PredictionCells:
    """Rows gathered by their prediction, in its order; only cells that count."""

    p: FloatArray
    sums: Sums
    are_weighted: bool  # whether some weight is not 1

    @classmethod
    def of(cls, p: FloatArray, sums: Sums) -> PredictionCells:
        """Keep the cells that count."""
        cells = sums.occupied
        sums = sums.at(cells)
        # Weights and their squares add up to the rows only where all of them are 1.
        equal = all(np.array_equal(part, sums.rows) for part in (sums.weights, sums.squares))
        return cls(p[cells], sums, not equal)

    @classmethod
    def of_rows(cls, y: FloatArray, p: FloatArray, w: FloatArray) -> PredictionCells:
        """Gather rows of exactly the same prediction."""
        values, cell = np.unique(p, return_inverse=True)
        return cls.of(values, Sums.of(cell, values.size, y, p, w))

    @cached_property
    def logit(self) -> FloatArray:
        """Of the prediction; infinite at 0 and 1."""
        return np.asarray(logit(self.p))

    @cached_property
    def is_certain(self) -> AnyArray:
        """Mark predictions of exactly 0 or 1."""
        return np.asarray((self.p == 0) | (self.p == 1))

    @property
    def contrary(self) -> int:
        """How many rows with such a prediction have the other label."""
        return int(self.sums.ones[self.p == 0].sum() + self.sums.zeros[self.p == 1].sum())

    def some(self, cells: AnyArray) -> PredictionCells:
        """Keep some cells."""
        return PredictionCells(self.p[cells], self.sums.at(cells), self.are_weighted)

    def merged(self, first: IntArray) -> PredictionCells:
        """Put neighbouring cells together."""
        sums, last = self.sums.joined(first), np.append(first[1:], self.p.size) - 1
        # no rounding beyond what is joined
        p = np.clip(sums.mean, self.p[first], self.p[last])
        return PredictionCells(p, sums, self.are_weighted)


def _digits(distance: FloatArray) -> IntArray:
    return np.asarray(distance).view(np.int64) >> (52 - FINENESS)


_FIRST = int(_digits(np.array([NO_DISTANCE]))[0])
CELLS = 2 * (int(_digits(np.array([0.5]))[0]) - _FIRST + 1)  # about 210,000


def fine_cell(p: FloatArray) -> IntArray:
    """Number the cell of each prediction, in the order of predictions."""
    step = _digits(np.maximum(np.minimum(p, 1 - p), NO_DISTANCE)) - _FIRST
    return np.asarray(np.where(p > 0.5, CELLS - 1 - step, step))


def fine_ends(cell: IntArray) -> tuple[FloatArray, FloatArray]:
    """Between which predictions each cell lies: a mean that is near 1 loses digits."""
    step = np.minimum(cell, CELLS - 1 - cell)
    near, far = ((step + _FIRST + k << 52 - FINENESS).view(np.float64) for k in (0, 1))
    near, above = np.where(step == 0, 0.0, near), cell >= CELLS // 2
    return np.where(above, 1 - far, near), np.where(above, 1 - near, far)
