"""Rows to learn from, in memory or in files, in the form that a method needs.

Methods that read covariates learn from a `Sample`: of more than 500,000 rows in files, from random
ones that are chosen without a look at labels. Methods that read the prediction alone learn from
every row: beyond 500,000 of them rows are gathered in cells of nearly equal predictions, whose sums
of weights are all that these methods ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import Advance, FloatArray, InputError, IntArray, counted
from itrust.data import Rows, Sample, Scan, checked_sample

MAX_ROWS = 500_000
CHUNK_ROWS = 65_536
FINENESS = 13  # binary digits that are kept of how far a prediction is from 0 or 1
NO_DISTANCE = 1e-9  # closer to 0 or 1 than this is rounding
FARTHEST_EDGE = 0.01

Announce = Callable[[float], Advance]
Triple = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels, predictions and weights: what methods that read the prediction alone learn from."""

    y: FloatArray
    p: FloatArray
    w: FloatArray
    n: int
    edge: float
    values: tuple[Any, Any] = (0, 1)

    @classmethod
    def of(cls, sample: Sample) -> Predictions:
        """Of rows in memory, all of which count."""
        return cls(
            sample.y,
            sample.p,
            sample.weights_or_ones,
            sample.n,
            edge_of(sample.p),
            (sample.values[0], sample.values[1]),
        )


class CalibrationRows:
    """Rows to learn from; those in files are read when they are first asked for."""

    def __init__(self, source: object, announce: Announce) -> None:
        self.source = source if isinstance(source, Scan) else checked_sample(source)
        self.announce = announce

    def ready(self, with_covariates: bool) -> None:
        """Read the rows now."""
        _ = self.sample if with_covariates else self.predictions

    @cached_property
    def sample(self) -> Sample:
        """All rows, or random ones of those in files, without rows of weight 0."""
        return _that_count(self._drawn[0])

    @property
    def n(self) -> int:
        """How many rows there are, random ones or not."""
        sample, available = self._drawn
        return available or sample.n

    @property
    def available(self) -> int:
        """How many rows these were drawn from; their own number if there are no others."""
        return self._drawn[1] or self.sample.n

    @cached_property
    def _drawn(self) -> tuple[Sample, int | None]:
        rows = rows_in_files(self.source)
        return random_rows(self.source, MAX_ROWS, self.announce(rows) if rows else unseen)

    @cached_property
    def predictions(self) -> Predictions:
        """Labels and predictions of all rows, gathered in cells if they are many."""
        if isinstance(self.source, Scan) and self.source.is_simple:
            return _gathered(self.source, self.announce(rows_in_files(self.source)))
        return Predictions.of(self.sample)


def random_rows(source: Sample | Scan, size: int, advance: Advance) -> tuple[Sample, int | None]:
    """Random rows of files with their labels, chosen without a look at these."""
    if not isinstance(source, Scan):
        return checked_sample(source), None
    if not source.is_simple:
        return source.load(), None
    extract = source.extract(size, advance)
    return extract.some, None if extract.is_all else extract.n


def rows_in_files(source: object) -> float:
    """About how many rows are to be read: none of a sample."""
    return source.rows_expected if isinstance(source, Scan) else 0.0


def unseen(amount: float) -> None:
    """Progress that nobody is told of."""


def _that_count(sample: Sample) -> Sample:
    counts = sample.weights_or_ones > 0
    return sample if counts.all() else sample.take(counts)


def _gathered(scan: Scan, advance: Advance) -> Predictions:
    """Labels and predictions of all rows of a scan, in one pass."""
    few: list[Triple] = []
    cells: _Cells | None = None
    rows = 0
    others: set[Any] = set()
    for chunk in scan.chunks(CHUNK_ROWS):
        few.append(_counted(chunk))
        rows += few[-1][0].size
        others |= chunk.other_labels
        if rows > MAX_ROWS:
            cells = cells or _Cells()
            cells.add(few)
            few.clear()
        advance(chunk.y.size)
    if rows < 2:
        raise InputError(
            "the files hold {rows} of a weight above 0; two must count",
            argument="sample",
            count=rows,
            details={"rows": counted(rows, "row")},
        )
    positive = 1 if scan.roles.positive is None else scan.roles.positive
    values = (others.pop() if len(others) == 1 else None, positive)
    if cells is not None:
        return cells.predictions(values)
    y, p, w = (np.concatenate(own) for own in zip(*few, strict=True))
    return Predictions(y, p, w / w.mean(), y.size, edge_of(p), values)


def _counted(chunk: Rows) -> Triple:
    """Labels, predictions and weights of the rows that count."""
    if chunk.weights is None:
        return chunk.y, chunk.p, np.ones(chunk.y.size)
    counts = chunk.weights > 0
    return chunk.y[counts], chunk.p[counts], chunk.weights[counts]


class _Cells:
    """Sums of weights by label in cells of nearly equal predictions.

    A cell holds predictions whose distance from 0 or 1 has the same binary digits up to the
    fourteenth: these distances differ by a factor of 1.0002 at most, wherever they lie.
    """

    def __init__(self) -> None:
        self.zeros, self.ones, self.sums = (np.zeros(_NUMBER) for _ in range(3))
        self.n = 0
        self.nearest = np.inf
        self.certain = False

    def add(self, rows: Sequence[Triple]) -> None:
        for y, p, w in rows:
            cell = _cell(p)
            self.zeros += np.bincount(cell, w * (1 - y), minlength=_NUMBER)
            self.ones += np.bincount(cell, w * y, minlength=_NUMBER)
            self.sums += np.bincount(cell, w * p, minlength=_NUMBER)
            self.n += y.size
            nearest, certain = _nearest(p)
            self.nearest, self.certain = min(self.nearest, nearest), self.certain or certain

    def predictions(self, values: tuple[Any, Any]) -> Predictions:
        """Two rows a cell at most, one for each label, at its mean prediction."""
        weights = self.zeros + self.ones
        mean = np.divide(self.sums, weights, out=np.zeros(_NUMBER), where=weights > 0)
        zeros, ones = (np.flatnonzero(own) for own in (self.zeros, self.ones))
        w = np.concatenate([self.zeros[zeros], self.ones[ones]])
        return Predictions(
            np.repeat([0.0, 1.0], [zeros.size, ones.size]),
            mean[np.concatenate([zeros, ones])],
            w * (self.n / w.sum()),
            self.n,
            _edge(self.nearest, self.certain, self.n),
            values,
        )


def _digits(distance: FloatArray) -> IntArray:
    return np.asarray(distance).view(np.int64) >> (52 - FINENESS)


_FIRST = int(_digits(np.array([NO_DISTANCE]))[0])
_NUMBER = 2 * (int(_digits(np.array([0.5]))[0]) - _FIRST + 1)  # half a million


def _cell(p: FloatArray) -> IntArray:
    distance = np.maximum(np.minimum(p, 1 - p), NO_DISTANCE)
    return np.asarray(2 * (_digits(distance) - _FIRST) + (p > 0.5))


def edge_of(p: FloatArray) -> float:
    """How near to 0 and 1 a probability may be taken at its word, for a logit.

    Predictions at exactly 0 or 1 are read as lying half as far from it as the nearest others do
    (0.005 for a forest of 100 trees), at most .01. Where there are none, at half of 1 / n or of
    the smallest distance.

    >>> import numpy as np
    >>> edge_of(np.array([0.0, 0.01, 0.5, 1.0]))
    0.005
    """
    return _edge(*_nearest(p), p.size)


def _nearest(p: FloatArray) -> tuple[float, bool]:
    """The smallest distance from 0 or 1 that is one, and whether some have none."""
    distance = np.minimum(p, 1 - p)
    apart = distance > NO_DISTANCE
    return float(distance.min(where=apart, initial=np.inf)), not bool(apart.all())


def _edge(nearest: float, certain: bool, n: int) -> float:
    return min(nearest / 2, FARTHEST_EDGE if certain else 0.5 / n)
