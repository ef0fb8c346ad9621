"""Rows of several classes in the form that methods learn from and predict for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_softmax

from itrust._core import FloatArray, InputError, IntArray, Subject, listed
from itrust.data import (
    SUM_TOLERANCE,
    Column,
    Design,
    MulticlassSample,
    Points,
    Sample,
    encode_numbers,
    frame_columns,
    is_frame,
)
from itrust.recalibrate.rows import FARTHEST_EDGE, NO_DISTANCE


@dataclass(frozen=True, eq=False)
class ClassPoints:
    """Probabilities of all classes, (n, K), and covariates; no labels."""

    p: FloatArray
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.p)

    def one(self, code: int) -> Points:
        """The probability of one class and the covariates."""
        return Points(np.ascontiguousarray(self.p[:, code]), self.columns)

    def take(self, rows: slice) -> ClassPoints:
        """Some rows."""
        return ClassPoints(self.p[rows], tuple(column.take(rows) for column in self.columns))


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Labelled rows of a sample, all of which count.

    `carrier` is the sample of its first class against the rest: covariates, weights and design are
    the same for every class. `index` says which rows of the source these are.
    """

    source: MulticlassSample
    carrier: Sample
    index: IntArray

    @classmethod
    def of(cls, sample: MulticlassSample) -> FittedRows:
        """All rows but those of weight 0."""
        carrier = sample.one_class(sample.classes[0])
        index = np.flatnonzero(carrier.weights_or_ones > 0)
        if index.size < sample.n:
            carrier = carrier.take(index)
        return cls(sample, carrier, index)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.index.size

    @property
    def units(self) -> int:
        """Number of rows, or clusters of them."""
        return self.n if self.carrier.clusters is None else self.carrier.clusters

    @cached_property
    def codes(self) -> IntArray:
        """Position of every label among the classes, (n,)."""
        return np.asarray(self.source.codes[self.index])

    @cached_property
    def p(self) -> FloatArray:
        """Probabilities, (n, K)."""
        return np.asarray(self.source.p[self.index])

    @property
    def w(self) -> FloatArray:
        """Weights of mean 1 over the whole sample, (n,)."""
        return self.carrier.weights_or_ones

    @property
    def design(self) -> Design:
        """How the rows were drawn."""
        return self.carrier.design

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes."""
        return self.source.classes

    @cached_property
    def points(self) -> ClassPoints:
        """Probabilities and covariates."""
        return ClassPoints(self.p, self.carrier.columns)

    @property
    def has_one_class(self) -> bool:
        """Whether all labels are equal."""
        return bool(self.codes.min() == self.codes.max())

    def take(self, rows: IntArray) -> FittedRows:
        """Some rows, by their positions among these."""
        return FittedRows(self.source, self.carrier.take(rows), self.index[rows])

    def split(self, shares: tuple[float, ...], rng: int) -> list[FittedRows]:
        """Parts as `Sample.split` makes them."""
        part = self.design.parts(np.array(shares), rng)
        return [self.take(np.flatnonzero(part == k)) for k in range(len(shares))]

    def folds(self, rng: int, number: int) -> IntArray:
        """The fold of every row; clusters are never torn apart."""
        codes = self.design.drawn_together
        order = np.random.default_rng(rng).permutation(int(codes.max()) + 1)
        return np.asarray((order % number)[codes])

    def mean(self, values: FloatArray) -> float:
        """Weighted mean."""
        return float(np.average(values, weights=self.w))

    def errors(self, gains: FloatArray) -> float:
        """The weighted mean of the rows' gains, in standard errors."""
        mean = self.mean(gains)
        left = self.w * (gains - mean)
        if not self.design.rows_are_independent:
            left = np.asarray(np.bincount(self.design.drawn_together, weights=left), dtype=float)
        error = float(np.sqrt(np.square(left).sum())) / float(self.w.sum())
        return mean / error if error else float(np.sign(mean)) * np.inf if mean else 0.0

    def told(self, p: FloatArray) -> MulticlassSample:
        """The rows as a sample with other probabilities."""
        return with_predictions(self.source, p, self.index)

    def binary(self, code: int) -> Sample:
        """One class against the rest."""
        own: Sample = self.source.one_class(self.classes[code])
        return own if self.n == own.n else own.take(self.index)


def with_predictions(
    sample: MulticlassSample, p: FloatArray, index: IntArray | None = None
) -> MulticlassSample:
    """The rows of a sample, or some of them, with other probabilities."""
    chosen = sample if index is None or index.size == sample.n else sample.take(index)
    return chosen.with_predictions(p)


def edge_of_classes(p: FloatArray) -> float:
    """How near to 0 a probability may be taken at its word, for a logarithm.

    Probabilities of 0 are read as half of the smallest other one, at most .01. Where there are
    none, all are read as at least half of 1 / n or of the smallest: as for two classes.

    >>> import numpy as np
    >>> edge_of_classes(np.array([[0.0, 0.02, 0.98], [0.5, 0.25, 0.25]]))
    0.01
    """
    apart = p > NO_DISTANCE
    nearest = float(p.min(where=apart, initial=np.inf))
    return min(nearest / 2, 0.5 / len(p) if apart.all() else FARTHEST_EDGE)


def held_logs(p: FloatArray, edge: float) -> FloatArray:
    """Logarithms of probabilities held at `edge` or above, (n, K)."""
    return np.asarray(np.log(np.maximum(p, edge)))


def softened(p: FloatArray, edge: float) -> FloatArray:
    """As given, but rows in which a class was called impossible have the edge in its place."""
    held = np.where(p <= NO_DISTANCE, max(edge, NO_DISTANCE), p)
    return np.asarray(held / held.sum(axis=1, keepdims=True))


def probabilities(logits: FloatArray) -> FloatArray:
    """Rows that sum to 1, (n, K)."""
    p = np.exp(log_softmax(logits, axis=1))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def checked_matrix(p: object, classes: tuple[Any, ...]) -> FloatArray:
    """Probabilities to recalibrate, (n, K), in the order of the classes of the fit."""
    if isinstance(p, Mapping) or is_frame(p):
        columns = dict(p) if isinstance(p, Mapping) else dict(frame_columns(p))
        refuse_other_classes(tuple(columns), classes, "p")
        found = [
            encode_numbers(column, Subject("p", str(name))) for name, column in columns.items()
        ]
        if len({values.size for values in found}) > 1:
            raise InputError("the columns of {argument} must be equally long", argument="p")
        matrix = np.column_stack(found)
    else:
        try:
            matrix = np.array(p, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                "{argument} must be a matrix of numbers, one column a class", argument="p"
            ) from None
    if matrix.ndim != 2 or matrix.shape[1] != len(classes):
        raise InputError(
            "{argument} must have one column for each of the classes {classes}, in this order, not "
            "the shape {value}",
            argument="p",
            value=matrix.shape,
            details={"classes": listed(classes)},
        )
    wrong = ~((matrix >= 0) & (matrix <= 1)).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "prob must lie in [0, 1]; {row} has {value}",
            argument="p",
            row=row,
            value=matrix[row].tolist(),
            count=int(wrong.sum()),
        )
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"the probabilities of a row must sum to 1; those of {{row}} sum to {sums[row]:.6g}",
            argument="p",
            row=row,
            value=float(sums[row]),
            count=int(off.sum()),
        )
    return matrix


def refuse_other_classes(found: tuple[Any, ...], classes: tuple[Any, ...], argument: str) -> None:
    """Refuse classes that are not those of the fit, in its order."""
    if found == classes:
        return
    if set(found) == set(classes):
        problem = "in another order than in the fit; put them in that order"
    else:
        problem = "which are not those of the fit; give those, or fit again"
    raise InputError(
        "{argument} has the classes {found}, {problem}: {classes}",
        argument=argument,
        value=found,
        details={"found": listed(found), "problem": problem, "classes": listed(classes)},
    )
