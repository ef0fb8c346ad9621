"""One pass over the rows for several pieces of work at once: draws are made once and shared.

What each chunk of rows contributes just adds up, so chunks, files and machines can be done in
any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import Advance, AnyArray, BoolArray, FloatArray
from itrust.data import Chunk, called_impossible
from itrust.nulls import Null, RowwiseNull

DRAWS_AT_ONCE = 1_024


@dataclass(frozen=True)
class Drawing:
    """Which draws of which null; the data stand before them as column 0.

    Batches of draws differ in their numbers alone, so they can be made one after the other.

    Attributes
    ----------
    null : Null or None
        None: no draws.
    draws : range
        Numbers of the draws.
    seed : int
        Draw b of row i depends on (seed, i, b) alone.
    """

    null: Null | None = None
    draws: range = range(0)
    seed: int = 0

    @property
    def columns(self) -> int:
        """The data and all draws."""
        return 1 + len(self.draws)

    @property
    def redraw(self) -> RowwiseNull | None:
        """The null if it draws rows one by one."""
        return self.null if isinstance(self.null, RowwiseNull) and self.draws else None


@dataclass(frozen=True, eq=False)
class Additive:
    """Facts about some rows; those of different rows add up, field by field."""

    def __add__(self, other: Self) -> Self:
        mine, others = vars(self), vars(other)
        return type(self)(**{name: _plus(mine[name], others[name]) for name in mine})


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, frozenset):
        return a | b
    return tuple(x + y for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a + b


@dataclass(frozen=True, eq=False)
class Tally(Additive):
    """What everybody wants to know about the rows, whatever the work.

    Attributes
    ----------
    rows : int
        How many there are.
    weight, weight2 : float
        Sums of weights and of their squares.
    positives : int
        Rows whose label counts as 1.
    other_labels : frozenset
        Values that count as 0, where known.
    dropped : int
        Rows that were left out for missing covariates.
    impossible : int
        Rows with a label that the model gave probability 0.
    certain : int
        Rows with a probability of 0 or 1.
    """

    rows: int
    weight: float
    weight2: float
    positives: int
    other_labels: frozenset[Any]
    dropped: int
    impossible: int
    certain: int

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j."""
        return self.weight**2 - self.weight2


@dataclass(frozen=True, eq=False)
class Totals(Additive):
    """The tally of the rows and the sums of every piece of work."""

    tally: Tally
    parts: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some columns of the matrix whose column 0 is the data and whose others are draws.

    A null either redraws labels, kept as booleans, or changes residuals, kept as numbers.

    Attributes
    ----------
    columns : slice
        Which columns.
    values : (rows, columns) array
        Labels (boolean) or residuals (float).
    """

    columns: slice
    values: AnyArray

    @property
    def is_label(self) -> bool:
        """Whether values are labels instead of residuals."""
        return bool(self.values.dtype == bool)

    @cached_property
    def single(self) -> AnyArray:
        """Values in single precision, converted once for all who want them."""
        return self.values.astype(np.float32)

    def as_type(self, dtype: DTypeLike) -> AnyArray:
        """Give the values as numbers.

        Parameters
        ----------
        dtype : numpy type
            float32 or float64.

        Returns
        -------
        (rows, columns) array
            Converted once for all who want single precision.
        """
        return self.single if np.dtype(dtype) == np.float32 else self.values.astype(np.float64)


class Products:
    """F'e and Q'e^2 of some rows for many columns, by one matrix product where e comes from labels.

    Parameters
    ----------
    features : (n, r) array
        F, weights included.
    squares : (n, q) array
        Q, weights included; of the same type.
    p : (n,) array
        Probabilities of the rows.
    """

    def __init__(self, features: AnyArray, squares: AnyArray, p: FloatArray) -> None:
        self.features, self.squares, self.rank = features, squares, features.shape[1]
        self.p = p.astype(features.dtype)

    @cached_property
    def _stacked(self) -> AnyArray:
        # e^2 = p^2 + y (1 - 2p) is linear in the label, as e is.
        return np.hstack([self.features, self.squares * (1 - 2 * self.p)[:, None]])

    @cached_property
    def _without_labels(self) -> AnyArray:
        """What the columns have in common, (r + q, 1)."""
        parts = [-(self.features.T @ self.p), self.squares.T @ self.p**2]
        return np.concatenate(parts)[:, None]

    def of(self, drawn: Drawn, rows: Any = slice(None)) -> tuple[AnyArray, AnyArray]:
        """Multiply features and squares with some columns.

        Parameters
        ----------
        drawn : Drawn
            The columns.
        rows : index
            Which rows of the drawn ones belong to the features; default: all.

        Returns
        -------
        (r, columns) and (q, columns) arrays
            F'e and Q'e^2.
        """
        values = drawn.as_type(self.features.dtype)[rows]
        if not drawn.is_label:
            return self.features.T @ values, self.squares.T @ np.square(values)
        sums = self._stacked.T @ values
        sums += self._without_labels
        return sums[: self.rank], sums[self.rank :]


class Partial(Protocol):
    """The share of one chunk in a piece of work, being made."""

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""

    def finished(self) -> Additive:
        """The sums."""


class Work(Protocol):
    """Something to be summed over all rows."""

    @property
    def unit(self) -> float:
        """Weights are divided by this."""

    @property
    def max_rows(self) -> int | None:
        """Most rows that should be in hand at a time; None where it does not matter."""

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> Partial:
        """Start on a chunk.

        Parameters
        ----------
        chunk : Chunk
            Some rows.
        weights : (n,) array
            Their weights, divided by the unit.
        columns : int
            The data and all draws.

        Returns
        -------
        Partial
            Takes in columns, some at a time.
        """


@dataclass(frozen=True, eq=False)
class Job:
    """What one pass over the rows has to do.

    Attributes
    ----------
    works : sequence of Work
        What is summed over the rows.
    drawing : Drawing
        The draws to make.
    unit : float
        Weights are divided by this.
    advance : callable or None
        Told the number of rows done.
    """

    works: Sequence[Work]
    drawing: Drawing
    unit: float
    advance: Advance | None = None


def accumulate(job: Job, chunk: Chunk) -> Totals:
    """What the rows of one chunk contribute to every piece of work."""
    y, p = chunk.y, chunk.p
    w = np.ones(len(p)) if chunk.weights is None else chunk.weights / job.unit
    partials = [work.begin(chunk, w, job.drawing.columns) for work in job.works]
    for drawn in _columns(chunk, job.drawing) if job.works else ():
        for partial in partials:
            partial.add(drawn)
    tally = Tally(
        rows=len(p),
        weight=float(w.sum()),
        weight2=float(np.square(w).sum()),
        positives=int(y.sum()),
        other_labels=chunk.other_labels,
        dropped=chunk.dropped,
        impossible=int(np.count_nonzero(called_impossible(y, p))),
        certain=int(np.count_nonzero((p == 0) | (p == 1))),
    )
    return Totals(tally, tuple(partial.finished() for partial in partials))


def accumulate_all(job: Job, chunks: Iterable[Chunk]) -> Totals:
    """The same for several chunks, one after the other."""
    parts = (accumulate(job, chunk) for chunk in chunks)
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def _columns(chunk: Chunk, drawing: Drawing) -> Iterator[Drawn]:
    """The data as column 0 and the draws after it, some columns at a time."""
    observed: BoolArray = (chunk.y == 1)[:, None]
    if drawing.redraw is None:
        yield Drawn(slice(0, 1), observed)
        return
    for first in range(0, len(drawing.draws), DRAWS_AT_ONCE):
        block = drawing.draws[first : first + DRAWS_AT_ONCE]
        drawn = drawing.redraw.draw(chunk, block, drawing.seed)
        last = first + len(block) + 1
        if first == 0:  # the data are a column of the same product as the draws
            data = observed if drawn.dtype == bool else (chunk.y - chunk.p)[:, None]
            drawn = np.hstack([data, drawn])
        yield Drawn(slice(last - drawn.shape[1], last), drawn)
