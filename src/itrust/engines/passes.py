"""One pass over the rows for several pieces of work at once: draws are made once and shared.

What each chunk of rows contributes just adds up, so chunks, files and machines can be done in
any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from itrust._core import Advance, FloatArray, InputError, counted, listed
from itrust.data import Chunk, called_impossible
from itrust.engines.products import Drawn, Scratch, join
from itrust.nulls import Null, Rademacher, RowwiseNull

DRAWS_AT_ONCE = 1_024  # in a product


@dataclass(frozen=True)
class Drawing:
    """Which draws of which null; the data stand before them as column 0.

    Batches of draws differ in their numbers alone, so they can be made one after the other.
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

    def absorbed(self, other: Self) -> Self:
        """Add other rows into the arrays of these, which nobody else may hold."""
        if type(self).__add__ is not Additive.__add__:
            return self + other
        mine, others = vars(self), vars(other)
        return type(self)(**{name: _into(mine[name], others[name]) for name in mine})


def _into(a: Any, b: Any) -> Any:
    if isinstance(a, Additive):
        return a.absorbed(b)
    if isinstance(a, tuple):
        return tuple(_into(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) and a.dtype == b.dtype and a.flags.writeable:
        a += b
        return a
    return _plus(a, b)


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, frozenset):
        return a | b
    return tuple(x + y for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a + b


@dataclass(frozen=True, eq=False)
class Tally(Additive):
    """What everybody wants to know about the rows, whatever the work."""

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


class Partial(Protocol):
    """The share of one chunk in a piece of work, being made.

    One that has a sequence `products` of `Products` shares a product of matrices with others.
    """

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
        """Start on a chunk."""


@dataclass(frozen=True, eq=False)
class Job:
    """What one pass over the rows has to do."""

    works: Sequence[Work]
    drawing: Drawing
    unit: float
    advance: Advance | None = None


def accumulate(job: Job, chunk: Chunk, scratch: Scratch | None = None) -> Totals:
    """What the rows of one chunk contribute to every piece of work."""
    y, p, scratch = chunk.y, chunk.p, scratch or Scratch()
    w = np.ones(len(p)) if chunk.weights is None else chunk.weights / job.unit
    partials = [work.begin(chunk, w, job.drawing.columns) for work in job.works]
    join((one for partial in partials for one in getattr(partial, "products", ())), scratch)
    for drawn in _columns(chunk, job.drawing, scratch) if job.works else ():
        for partial in partials:
            partial.add(drawn)
    tally = Tally(
        rows=len(p),
        weight=float(w.sum()),
        weight2=float(np.square(w).sum()),
        positives=int(y.sum()),
        other_labels=chunk.other_labels,
        dropped=chunk.dropped,
        impossible=int(np.count_nonzero(called_impossible(y, p, chunk.weights))),
        certain=int(np.count_nonzero((p == 0) | (p == 1))),
    )
    return Totals(tally, tuple(partial.finished() for partial in partials))


def accumulate_all(job: Job, chunks: Iterable[Chunk]) -> Totals:
    """The same for several chunks, one after the other."""
    scratch = Scratch()
    parts = (accumulate(job, chunk, scratch) for chunk in chunks)
    total = next(parts)
    for part in parts:
        total = total.absorbed(part)
    return total


def _columns(chunk: Chunk, drawing: Drawing, scratch: Scratch) -> Iterator[Drawn]:
    """The data as column 0 and the draws after it, some columns at a time."""
    observed = (chunk.y == 1).astype(np.float32)
    if drawing.redraw is None:
        yield Drawn(slice(0, 1), observed[:, None], is_label=True)
        return
    for first in range(0, len(drawing.draws), DRAWS_AT_ONCE):
        block = drawing.draws[first : first + DRAWS_AT_ONCE]
        lead = int(first == 0)  # the data are a column of the same product as the draws
        columns = slice(first + 1 - lead, first + 1 + len(block))
        yield _drawn(chunk, drawing, block, columns, scratch)


def _drawn(chunk: Chunk, drawing: Drawing, block: range, columns: slice, scratch: Scratch) -> Drawn:
    """Some draws, after the data if there is a column for them."""
    redraw, residuals = drawing.redraw, chunk.y - chunk.p
    assert redraw is not None
    flips = isinstance(redraw, Rademacher)
    if isinstance(redraw, Rademacher):
        drawn = 1 - 2 * redraw.flips(chunk, block, drawing.seed).view(np.int8)
    else:
        drawn = redraw.draw(chunk, block, drawing.seed)
    is_label = drawn.dtype == bool
    shape = len(chunk.p), columns.stop - columns.start
    numbers = scratch.array("draws", shape, np.float32 if is_label or flips else np.float64)
    numbers[:, shape[1] - len(block) :] = drawn
    if shape[1] > len(block):
        numbers[:, 0] = chunk.y == 1 if is_label else (1.0 if flips else residuals)
    return Drawn(columns, numbers, is_label, residuals if flips else None)


@dataclass(frozen=True, eq=False)
class RowwiseWork:
    """What a function of a chunk gives, summed over all rows; no labels are redrawn."""

    function: Callable[[Chunk, FloatArray], Additive]
    unit: float

    @property
    def max_rows(self) -> None:
        """As many rows at once as the engine likes."""
        return None

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> RowwisePartial:  # noqa: ARG002
        """Compute the share of a chunk."""
        return RowwisePartial(self.function(chunk, weights))


@dataclass(frozen=True, eq=False)
class RowwisePartial:
    """The share of one chunk, which is finished when it begins."""

    share: Additive

    def add(self, drawn: Drawn) -> None:
        """Nothing depends on draws."""

    def finished(self) -> Additive:
        """The share."""
        return self.share


def checked_tally(tally: Tally, pair_weight: float) -> Tally:
    """Refuse rows in files that a `Sample` would have refused."""
    if tally.positives == 0 and len(tally.other_labels) > 1:
        raise InputError(
            "{argument}: no label is the positive one; the labels are {others}",
            argument="positive",
            details={"others": listed(sorted(tally.other_labels, key=str))},
        )
    if pair_weight <= 0:
        raise InputError(
            "{argument} are zero in all rows but at most one; two rows must count",
            argument="weights",
        )
    return tally


def tally_notes(tally: Tally) -> tuple[str, ...]:
    """Make the data-quality notes that need a whole pass over rows in files."""
    said = (
        [f"left out {counted(tally.dropped, 'row')} with missing values"] if tally.dropped else []
    )
    if len(tally.other_labels) > 1:
        others = listed(sorted(tally.other_labels, key=str))
        said.append(f"all labels but the positive one ({others}) count as 0")
    if tally.positives in (0, tally.rows):
        said.append(f"one class only: every label counts as {int(tally.positives > 0)}")
    if tally.certain == tally.rows:
        said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
    return tuple(said)
