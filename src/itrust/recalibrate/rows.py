"""Rows to learn from, in memory or in files, in the form that a method needs.

Methods that read covariates learn from `Rows`: of more than 500,000 rows in files, from random ones
that are chosen without a look at labels. Methods that read the prediction alone learn from every
row: beyond 500,000 of them rows are gathered in cells of nearly equal predictions, whose sums of
weights are all that these methods ask for.

Predictions are (n, K): one column for two labels, with logits, or one for each of several classes,
with logarithms that are softmaxed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from itrust._core import (
    Advance,
    FloatArray,
    InputError,
    IntArray,
    counted,
    listed,
    smallest_tickets,
    tickets,
)
from itrust.data import Column, Design, Points, Rows, Scan, checked_sample
from itrust.terms import log_softmax

MAX_ROWS = 500_000
CHUNK_ROWS = 65_536
FINENESS = 13  # binary digits that are kept of how far a prediction is from 0 or 1
NO_DISTANCE = 1e-9  # closer to 0 or 1 than this is rounding
FARTHEST_EDGE = 0.01
NEARLY_ONE = 1 - 2.0**-53  # the largest number below 1: its logit is finite
FOLDS = 4
MIN_TO_FOLD = 8

Announce = Callable[[float], Advance]
Triple = tuple[FloatArray, FloatArray, FloatArray]


# --- predictions (n, K) on the scale of logits -------------------------------------------------


def edge_of(p: FloatArray) -> float:
    """How near to 0 and 1 a probability (n, K) may be taken at its word, for a logarithm.

    Predictions at exactly 0 or 1 (of several classes, at 0) are read as lying half as far from it
    as the nearest others do (0.005 for a forest of 100 trees), at most .01. Where there are none,
    at half of 1 / n or of the smallest distance.

    >>> import numpy as np
    >>> edge_of(np.array([[0.0], [0.01], [0.5], [1.0]]))
    0.005
    >>> edge_of(np.array([[0.0, 0.02, 0.98], [0.5, 0.25, 0.25]]))
    0.01
    """
    return _edge(*_nearest(p), len(p))


def _distances(p: FloatArray) -> FloatArray:
    return np.minimum(p, 1 - p) if p.shape[1] == 1 else p


def _nearest(p: FloatArray) -> tuple[float, bool]:
    """The smallest distance from 0 or 1 that is one, and whether some have none."""
    distance = _distances(p)
    apart = distance > NO_DISTANCE
    return float(distance.min(where=apart, initial=np.inf)), not bool(apart.all())


def _edge(nearest: float, certain: bool, n: int) -> float:
    return min(nearest / 2, FARTHEST_EDGE if certain else 0.5 / n)


def held_logit(p: FloatArray, edge: float) -> FloatArray:
    """Logits of probabilities held within [edge, 1 - edge]; finite for every edge above 0."""
    return np.asarray(logit(np.clip(p, edge, min(1 - edge, NEARLY_ONE))))


def held_logits(p: FloatArray, edge: float) -> FloatArray:
    """Logits of one outcome, logarithms of several, held at `edge`, (n, K) -> (n, K)."""
    return held_logit(p, edge) if p.shape[1] == 1 else np.log(np.maximum(p, edge))


def probabilities(logits: FloatArray) -> FloatArray:
    """The inverse of `held_logits`: of several classes rows sum to 1, (n, K) -> (n, K)."""
    if logits.shape[1] == 1:
        return np.asarray(expit(logits))
    p = np.exp(log_softmax(logits))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def losses(codes: IntArray, logits: FloatArray) -> FloatArray:
    """Log loss of every row, (n,)."""
    if logits.shape[1] == 1:
        z = logits[:, 0]
        return np.asarray(np.logaddexp(0, z) - codes * z)
    return -log_softmax(logits)[np.arange(codes.size), codes]


def softened(p: FloatArray, edge: float) -> FloatArray:
    """As given, but what was called impossible or certain is next to it, (n, K) -> (n, K)."""
    certain = _distances(p) <= NO_DISTANCE
    if p.shape[1] == 1:
        return np.where(certain, np.clip(p, edge, 1 - edge), p)
    moved = np.where(certain, max(edge, NO_DISTANCE), p)
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def points_of(p: FloatArray, columns: tuple[Column, ...]) -> list[Points]:
    """The prediction of each outcome, (n, K), with the covariates."""
    return [Points(np.ascontiguousarray(own), columns) for own in p.T]


# --- rows that are divided ------------------------------------------------------------------------


def random_of(rows: Rows, most: int) -> Rows:
    """Random rows, at most so many, always the same ones."""
    return rows if rows.n <= most else rows.take(smallest_tickets(tickets(0, rows.n), most))


def units(design: Design) -> int:
    """Number of rows, or clusters of them."""
    return design.n if design.cluster is None else int(np.unique(design.cluster).size)


def folds(design: Design, rng: int) -> IntArray:
    """The fold of every row; clusters are never torn apart."""
    codes = design.drawn_together
    order = np.random.default_rng(rng).permutation(int(codes.max()) + 1)
    return np.asarray((order % FOLDS)[codes])


def one_label(rows: Rows) -> bool:
    """Whether all labels are equal."""
    return bool(rows.codes.min() == rows.codes.max())


def refuse_other_outcomes(rows: Any, classes: tuple[Any, ...] | None, argument: str) -> None:
    """Refuse rows of other classes than those of the fit, in its order; None: of two labels."""
    if rows.several and classes is None:
        problem = "{argument} has several classes, and the fit is on two labels"
    elif classes is not None and not rows.several:
        problem = (
            "{argument} has two labels, and the fit is on several classes; take a MulticlassSample"
        )
    elif classes is None or rows.classes == classes:
        return
    elif set(rows.classes) == set(classes):
        cure = "in another order than in the fit; put them in that order"
        problem = f"{{argument}} has the classes {{found}}, {cure}: {{classes}}"
    else:
        cure = "which are not those of the fit; give those, or fit again"
        problem = f"{{argument}} has the classes {{found}}, {cure}: {{classes}}"
    details = {"found": listed(rows.classes), "classes": listed(classes or ())}
    raise InputError(problem, argument=argument, value=rows.classes, details=details)


# --- what methods learn from ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Predictions:
    """Codes (n,), predictions (n, K) and weights: what methods of the prediction alone learn from.

    Weights sum to the number of rows, `n`, of which there may be more than there are here.
    """

    codes: IntArray
    p: FloatArray
    w: FloatArray
    n: int
    edge: float
    classes: tuple[Any, ...]
    design: Design
    columns: ClassVar[tuple[Column, ...]] = ()

    @classmethod
    def of(cls, rows: Rows) -> Predictions:
        """Of rows in memory, all of which count."""
        p = rows.predictions
        return cls(
            rows.codes, p, rows.weights_or_ones, rows.n, edge_of(p), rows.classes, rows.design
        )


class CalibrationRows:
    """Rows to learn from; those in files are read when they are first asked for."""

    def __init__(self, source: Any, announce: Announce = lambda _: unseen) -> None:
        self.source = labelled(source)
        self.announce = announce

    @cached_property
    def sample(self) -> Rows:
        """All rows, or random ones of those in files, without rows of weight 0."""
        rows = self._drawn[0]
        counts = rows.weights_or_ones > 0
        return rows if counts.all() else rows.take(counts)

    @property
    def n(self) -> int:
        """How many rows there are, random ones or not."""
        rows, available = self._drawn
        return available or rows.n

    @property
    def available(self) -> int:
        """How many rows these were drawn from; their own number if there are no others."""
        return self._drawn[1] or self.sample.n

    @cached_property
    def _drawn(self) -> tuple[Rows, int | None]:
        rows = rows_in_files(self.source)
        return random_rows(self.source, MAX_ROWS, self.announce(rows) if rows else unseen)

    @cached_property
    def predictions(self) -> Predictions:
        """Labels and predictions of all rows, gathered in cells if they are many."""
        source = self.source
        if isinstance(source, Scan) and source.is_simple and not source.several:
            return _gathered(source, self.announce(rows_in_files(source)))
        return Predictions.of(self.sample)


def labelled(source: Any) -> Any:
    """Pass rows with labels on, at hand or in files; refuse anything else."""
    if isinstance(source, Scan) and source.label is not None:
        return source
    several = isinstance(source, Rows) and source.several and source.labelled
    return source if several else checked_sample(source)


def random_rows(source: Any, size: int, advance: Advance) -> tuple[Rows, int | None]:
    """Random rows of files with their labels, chosen without a look at these."""
    source = labelled(source)
    if not isinstance(source, Scan):
        return source, None
    if source.several or not source.is_simple:
        return source.load(), None
    extract = source.extract(size, advance)
    return extract.some, None if extract.is_all else extract.n


def rows_in_files(source: object) -> float:
    """About how many rows are to be read: none of a sample."""
    return source.rows_expected if isinstance(source, Scan) else 0.0


def unseen(amount: float) -> None:
    """Progress that nobody is told of."""


def _gathered(scan: Scan, advance: Advance) -> Predictions:
    """Labels and predictions of all rows of a scan, in one pass."""
    few: list[Triple] = []
    sums: FloatArray | None = None
    rows, nearest, certain = 0, np.inf, False
    others: set[Any] = set()
    for chunk in scan.chunks(CHUNK_ROWS):
        y, p, w = _counted(chunk)
        few.append((y, p, w))
        rows += y.size
        others |= chunk.other_labels
        distance, some_certain = _nearest(p[:, None])
        nearest, certain = min(nearest, distance), certain or some_certain
        if rows > MAX_ROWS:
            for triple in few:
                sums = _sums(*triple) if sums is None else sums + _sums(*triple)
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
    classes = (others.pop() if len(others) == 1 else None, positive)
    if sums is None:
        y, p, w = (np.concatenate(parts) for parts in zip(*few, strict=True))
        w = w / w.mean()
    else:
        y, p, w = _of_cells(sums, rows)
    edge, codes = _edge(nearest, certain, rows), y.astype(np.int64)
    return Predictions(codes, p[:, None], w, rows, edge, classes, Design(y.size))


def _counted(chunk: Rows) -> Triple:
    """Labels, predictions and weights of the rows that count."""
    if chunk.weights is None:
        return chunk.y, chunk.p, np.ones(chunk.y.size)
    counts = chunk.weights > 0
    return chunk.y[counts], chunk.p[counts], chunk.weights[counts]


def _sums(y: FloatArray, p: FloatArray, w: FloatArray) -> FloatArray:
    """Weights by label, and weighted predictions, in cells of nearly equal ones, (3, cells).

    A cell holds predictions whose distance from 0 or 1 has the same binary digits up to the
    fourteenth: these distances differ by a factor of 1.0002 at most, wherever they lie.
    """
    cell = _cell(p)
    return np.stack([np.bincount(cell, v, _NUMBER) for v in (w * (1 - y), w * y, w * p)])


def _of_cells(sums: FloatArray, n: int) -> Triple:
    """Two rows a cell at most, one for each label, at its mean prediction."""
    weights = sums[0] + sums[1]
    mean = np.divide(sums[2], weights, out=np.zeros(_NUMBER), where=weights > 0)
    zeros, ones = (np.flatnonzero(part) for part in sums[:2])
    w = np.concatenate([sums[0, zeros], sums[1, ones]])
    y = np.repeat([0.0, 1.0], [zeros.size, ones.size])
    return y, mean[np.concatenate([zeros, ones])], w * (n / w.sum())


def _digits(distance: FloatArray) -> IntArray:
    return np.asarray(distance).view(np.int64) >> (52 - FINENESS)


_FIRST = int(_digits(np.array([NO_DISTANCE]))[0])
_NUMBER = 2 * (int(_digits(np.array([0.5]))[0]) - _FIRST + 1)  # half a million


def _cell(p: FloatArray) -> IntArray:
    distance = np.maximum(np.minimum(p, 1 - p), NO_DISTANCE)
    return np.asarray(2 * (_digits(distance) - _FIRST) + (p > 0.5))
