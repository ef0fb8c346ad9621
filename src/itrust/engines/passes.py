"""One pass over the rows for several pieces of work at once: draws are made once and shared.

What each chunk of rows contributes just adds up, so chunks, files and machines can be done in
any order. Two labels are one outcome, K classes are K outcomes: a row's class is drawn once and
gives the residuals of every outcome.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from itrust._core import Advance, AnyArray, FloatArray, InputError, IntArray, counted, listed
from itrust.data import Chunk, called_impossible
from itrust.engines.products import Drawn, Scratch, join
from itrust.nulls import CategoryDraws, Null, Rademacher, RowwiseNull

DRAWS_AT_ONCE = 1_024  # in a product


@dataclass(frozen=True)
class Drawing:
    """Which draws of which null; the data stand before them as column 0.

    Batches of draws differ in their numbers alone, so they can be made one after the other.
    """

    null: Null | CategoryDraws | None = None
    draws: range = range(0)
    seed: int = 0

    @property
    def columns(self) -> int:
        """The data and all draws."""
        return 1 + len(self.draws)

    @property
    def redraw(self) -> RowwiseNull | CategoryDraws | None:
        """The null if it draws rows one by one."""
        if self.draws and isinstance(self.null, RowwiseNull | CategoryDraws):
            return self.null
        return None


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
    """What everybody wants to know about the rows, whatever the work.

    `positives` and `refuted` count by outcome: labels 1, and labels that the model gave
    probability 0. `impossible` counts rows whose label had probability 0.
    """

    rows: int
    weight: float
    weight2: float
    positives: IntArray
    refuted: IntArray
    impossible: int
    certain: int
    other_labels: frozenset[Any] = frozenset()
    dropped: int = 0

    @classmethod
    def of(cls, chunk: Chunk, w: FloatArray) -> Tally:
        """Count the rows of a chunk."""
        p = chunk.predictions
        outcomes = [chunk.outcome(k) for k in range(p.shape[1])]
        marks = np.array([called_impossible(one.y, one.p, chunk.weights) for one in outcomes])
        never = marks if len(marks) == 1 else marks & [one.y == 1 for one in outcomes]
        return cls(
            rows=len(p),
            weight=float(w.sum()),
            weight2=float(np.square(w).sum()),
            positives=np.array([int(one.y.sum()) for one in outcomes]),
            refuted=np.count_nonzero(marks, axis=1),
            impossible=int(np.count_nonzero(never.any(axis=0))),
            certain=int(np.count_nonzero(((p == 0) | (p == 1)).all(axis=1))),
            other_labels=chunk.other_labels,
            dropped=chunk.left_out,
        )

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j."""
        return self.weight**2 - self.weight2

    def refuse(self, pair_weight: float) -> None:
        """Refuse rows in files that a `Sample` would have refused."""
        if not self.positives.any() and len(self.other_labels) > 1:
            raise InputError(
                "{argument}: no label is the positive one; the labels are {others}",
                argument="positive",
                details={"others": listed(sorted(self.other_labels, key=str))},
            )
        if pair_weight <= 0:
            raise InputError(
                "{argument} are zero in all rows but at most one; two rows must count",
                argument="weights",
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes that need a whole pass over rows in files, of one outcome."""
        said, positives = [], int(self.positives[0])
        if self.dropped:
            said.append(f"left out {counted(self.dropped, 'row')} with missing values")
        if len(self.other_labels) > 1:
            others = listed(sorted(self.other_labels, key=str))
            said.append(f"all labels but the positive one ({others}) count as 0")
        if positives in (0, self.rows):
            said.append(f"one class only: every label counts as {int(positives > 0)}")
        if self.certain == self.rows:
            said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
        return tuple(said)


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


class PartialOfAll(Protocol):
    """The same of work that reads all outcomes, one after the other."""

    def of(self, outcome: int, rows: Chunk) -> Partial:
        """What one outcome adds, being made."""

    def finished(self) -> Additive:
        """The sums."""


class Work(ABC):
    """Something to be summed over all rows: of one outcome, or of all (None).

    Weights are divided by the unit, which all works of a pass share.
    """

    unit: float
    outcome: int | None = 0

    @property
    def max_rows(self) -> int | None:
        """Most rows that should be in hand at a time; None where it does not matter."""
        return None

    @abstractmethod
    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> Any:
        """Start on a chunk, of its outcome or of all: a `Partial` or a `PartialOfAll`."""


@dataclass(frozen=True, eq=False)
class RowwiseWork(Work):
    """What a function of a chunk gives, summed over all rows; no labels are redrawn."""

    function: Callable[[Chunk, FloatArray], Additive]
    unit: float
    outcome: int | None = 0

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> RowwisePartial:  # noqa: ARG002
        return RowwisePartial(self.function(chunk, weights))


@dataclass(frozen=True, eq=False)
class RowwisePartial:
    """The share of one chunk, which is finished when it begins."""

    share: Additive

    def of(self, outcome: int, rows: Chunk) -> RowwisePartial:  # noqa: ARG002
        return self

    def add(self, drawn: Drawn) -> None:
        """Nothing depends on draws."""

    def finished(self) -> Additive:
        return self.share


@dataclass(frozen=True, eq=False)
class Job:
    """What one pass over the rows has to do."""

    works: Sequence[Work]
    drawing: Drawing
    unit: float
    advance: Advance | None = None


def accumulate(job: Job, chunk: Chunk, scratch: Scratch | None = None) -> Totals:
    """What the rows of one chunk contribute to every piece of work."""
    scratch = scratch or Scratch()
    w = np.ones(chunk.n) if chunk.weights is None else chunk.weights / job.unit
    columns, draws = job.drawing.columns, _Draws(chunk, job.drawing, scratch)
    of_all = {n: work.begin(chunk, w, columns) for n, work in _reading(job, None)}
    sums: dict[int, Additive] = {}
    for k in range(chunk.predictions.shape[1]):
        sums |= _of_outcome(job, k, chunk.outcome(k), w, of_all, draws)
    sums |= {n: partial.finished() for n, partial in of_all.items()}
    return Totals(Tally.of(chunk, w), tuple(sums[n] for n in range(len(job.works))))


def _of_outcome(
    job: Job, k: int, rows: Chunk, w: FloatArray, of_all: dict[int, Any], draws: _Draws
) -> dict[int, Additive]:
    """The sums of the works that read one outcome alone; others take it in, too."""
    own = {n: work.begin(rows, w, job.drawing.columns) for n, work in _reading(job, k)}
    partials = [*own.values(), *(partial.of(k, rows) for partial in of_all.values())]
    join((one for partial in partials for one in getattr(partial, "products", ())), draws.scratch)
    for drawn in draws.of(k, rows) if partials else ():
        for partial in partials:
            partial.add(drawn)
    return {n: partial.finished() for n, partial in own.items()}


def _reading(job: Job, outcome: int | None) -> list[tuple[int, Work]]:
    return [(n, work) for n, work in enumerate(job.works) if work.outcome == outcome]


def accumulate_all(job: Job, chunks: Iterable[Chunk]) -> Totals:
    """The same for several chunks, one after the other."""
    scratch = Scratch()
    parts = (accumulate(job, chunk, scratch) for chunk in chunks)
    total = next(parts)
    for part in parts:
        total = total.absorbed(part)
    return total


class _Draws:
    """The data as column 0 and the draws after it, some columns at a time.

    Classes and signs of rows with several outcomes are drawn once and serve every outcome.
    """

    def __init__(self, chunk: Chunk, drawing: Drawing, scratch: Scratch) -> None:
        self.chunk, self.drawing, self.scratch = chunk, drawing, scratch
        self.drawn: AnyArray | None = None

    def of(self, k: int, rows: Chunk) -> Iterator[Drawn]:
        draws = self.drawing.draws
        if self.drawing.redraw is None:
            observed = (rows.y == 1).astype(np.float32)
            yield Drawn(slice(0, 1), observed[:, None], is_label=True)
            return
        if self.drawn is None and self.chunk.predictions.shape[1] > 1:
            self.drawn = self._raw(draws)
        for first in range(0, len(draws), DRAWS_AT_ONCE):
            block = draws[first : first + DRAWS_AT_ONCE]
            if self.drawn is None:
                raw = self._raw(block)
            else:
                raw = self.drawn[:, first : first + len(block)]
            yield self._columns(k, rows, raw, first)

    def _raw(self, block: range) -> AnyArray:
        """Whose signs are flipped, labels, classes, or residuals, (n, draws)."""
        redraw, seed = self.drawing.redraw, self.drawing.seed
        if isinstance(redraw, Rademacher):
            return redraw.flips(self.chunk, block, seed)
        if isinstance(redraw, CategoryDraws):
            return redraw.codes(self.chunk.rows, block, seed, self.chunk.predictions)
        assert redraw is not None
        return redraw.draw(self.chunk, block, seed)

    def _columns(self, k: int, rows: Chunk, raw: AnyArray, first: int) -> Drawn:
        """Some draws, after the data if these are the first."""
        flips = isinstance(self.drawing.redraw, Rademacher)
        several = isinstance(self.drawing.redraw, CategoryDraws)
        is_label = not flips and (several or raw.dtype == bool)
        lead = int(first == 0)  # the data are a column of the same product as the draws
        columns = slice(first + 1 - lead, first + 1 + raw.shape[1])
        shape = rows.n, raw.shape[1] + lead
        numbers = self.scratch.array("draws", shape, np.float32 if is_label or flips else float)
        drawn = numbers[:, lead:]
        if several:
            np.equal(raw, k, out=drawn, casting="unsafe")
        else:
            drawn[...] = 1 - 2 * raw.view(np.int8) if flips else raw
        residuals = rows.y - rows.p
        if lead:
            numbers[:, 0] = rows.y == 1 if is_label else (1.0 if flips else residuals)
        return Drawn(columns, numbers, is_label, residuals if flips else None)
