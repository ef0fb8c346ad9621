"""One pass over the rows for several pieces of work at once: draws are made once and shared.

What each chunk of rows contributes just adds up, so chunks, files and machines can be done in
any order. Two labels are one outcome, K classes are K outcomes: a row's class is drawn once and
gives the residuals of every outcome. Labels are 0 or 1, so sums of residuals and of their squares
are linear in them: one product of all features with all labels serves every kernel and every check.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from threading import Lock, local
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

from itrust._core import AnyArray, FloatArray, InputError, IntArray, listed
from itrust.data import Rows, called_impossible
from itrust.nulls import Null, Rademacher, RowwiseNull

_lock = Lock()
_users = 0
_controller: ThreadpoolController | None = None
_limiter: Any = None


def available_threads() -> int:
    """Cores this process may use, or OMP_NUM_THREADS if that is smaller."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(cores, int(asked)) if asked.isdecimal() and int(asked) > 0 else cores


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; the limit is the process's, so the last user lifts it.

    The libraries are looked up once, since that takes milliseconds.
    """
    global _users, _controller, _limiter
    with _lock:
        _users += 1
        if _users == 1:
            _controller = _controller or ThreadpoolController()
            _limiter = _controller.limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limiter.restore_original_limits()


Item = TypeVar("Item")
Answer = TypeVar("Answer")


def ordered_map(
    function: Callable[[Item], Answer], items: Iterable[Item], threads: int
) -> Generator[Answer, None, None]:
    """Apply a function in threads; no more items are under way than one for each thread and two.

    Items are taken from their source one by one, so a file is read as it is worked on, and
    answers come in the order of the items, so sums do not depend on the number of threads.
    """
    with one_blas_thread(), closing(items) if isinstance(items, Generator) else nullcontext():
        if threads == 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(threads) as pool:
            waiting: deque[Future[Answer]] = deque()
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) > threads + 1:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:  # an error or Ctrl-C: what has not begun shall not begin
                    future.cancel()


DRAWS_AT_ONCE = 1_024  # in a product
ALL = slice(None)
Picked = slice | IntArray  # rows of a chunk


class Scratch(local):
    """Arrays that are used again for every chunk, some for each thread.

    New ones would cost as much time as what is written into them.
    """

    def __init__(self) -> None:
        self._kept: dict[str, AnyArray] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> AnyArray:
        """Give an array with any content, the same one whenever the name is the same."""
        size, kept = prod(shape), self._kept.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            kept = self._kept[name] = np.empty(size, dtype=dtype)
        return kept[:size].reshape(shape)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some columns of the matrix whose column 0 is the data and whose others are draws.

    A null redraws labels, flips the signs of residuals, or makes other residuals. The numbers are
    good until the next ones are drawn: whoever wants them for longer has to copy them.
    """

    columns: slice
    numbers: AnyArray
    is_label: bool
    flipped: FloatArray | None = None
    _converted: dict[Any, AnyArray] = field(default_factory=dict, repr=False)

    def as_type(self, dtype: DTypeLike) -> AnyArray:
        """Labels or residuals in a precision, converted once for all who want them."""
        key = np.dtype(dtype)
        if key not in self._converted:
            numbers = self.numbers.astype(key, copy=False)
            if self.flipped is not None:
                numbers = numbers * self.flipped.astype(key)[:, None]
            self._converted[key] = numbers
        return self._converted[key]


class Products:
    """F'e and Q'e^2 of some rows for many columns: features (n, r), squares (n, q), p (n,)."""

    def __init__(
        self, features: AnyArray, squares: AnyArray, p: FloatArray, rows: Picked = ALL
    ) -> None:
        self.rank, self.width = features.shape[1], features.shape[1] + squares.shape[1]
        self.stack = _Stack([(features, squares)], p.astype(features.dtype), rows)
        self.first = 0

    def of(self, drawn: Drawn) -> tuple[AnyArray, AnyArray]:
        """Multiply features and squares with some columns."""
        own = self.stack.of(drawn)[self.first : self.first + self.width]
        return own[: self.rank], own[self.rank :]


def join(products: Iterable[Products], scratch: Scratch) -> None:
    """Let all products of the same rows be made at once, as one large product."""
    alike: dict[tuple[Any, ...], list[Products]] = {}
    for one in products:
        rows = one.stack.rows
        same = (rows.start, rows.stop) if isinstance(rows, slice) else rows.tobytes()
        alike.setdefault((one.stack.p.dtype, same), []).append(one)
    for number, members in enumerate(alike.values()):
        parts, first = [part for one in members for part in one.stack.parts], 0
        stack = _Stack(parts, members[0].stack.p, members[0].stack.rows, scratch, f"stack {number}")
        for one in members:
            one.stack, one.first = stack, first
            first += one.width


class _Stack:
    """Pairs of features and squares of the same rows, one below the other, for one product."""

    def __init__(
        self,
        parts: list[tuple[AnyArray, AnyArray]],
        p: AnyArray,
        rows: Picked,
        scratch: Scratch | None = None,
        name: str = "stack",
    ) -> None:
        self.parts, self.p, self.rows = parts, p, rows
        self.scratch, self.name = scratch or Scratch(), name
        self.last: tuple[Drawn, AnyArray] | None = None
        self.linear: tuple[AnyArray, AnyArray] | None = None

    def of(self, drawn: Drawn) -> AnyArray:
        """F'e and Q'e^2 of all parts for some columns, made once for all who ask."""
        if self.last is None or self.last[0] is not drawn:
            self.last = drawn, self._made(drawn)
        return self.last[1]

    def _made(self, drawn: Drawn) -> AnyArray:
        if not drawn.is_label and drawn.flipped is None:
            values = drawn.as_type(self.p.dtype)[self.rows]
            both = values, np.square(values)
            return np.concatenate(
                [x.T @ e for pair in self.parts for x, e in zip(pair, both, strict=True)]
            )
        # All draws of a pass are of one kind, so that this is done once.
        self.linear = self.linear or self._in_labels_or_signs(drawn.flipped)
        matrix, constant = self.linear
        sums: AnyArray = matrix @ drawn.numbers[self.rows].astype(self.p.dtype, copy=False)
        sums += constant
        return sums

    def _in_labels_or_signs(self, flipped: FloatArray | None) -> tuple[AnyArray, AnyArray]:
        """What labels or signs are multiplied with, (r + q, n), and what is added, (r + q, 1)."""
        p = self.p
        shape = sum(len(x.T) for pair in self.parts for x in pair), p.size
        matrix = self.scratch.array(self.name, shape, p.dtype)
        constant, first = np.zeros((shape[0], 1), dtype=p.dtype), 0
        for features, by_square in self.parts:
            last = first + features.shape[1]
            forms, squares = slice(first, last), slice(last, last + by_square.shape[1])
            first = squares.stop
            if flipped is None:  # e = y - p, and e^2 = p^2 + y (1 - 2p) is linear in y, too
                matrix[forms] = features.T
                np.multiply(by_square.T, 1 - 2 * p, out=matrix[squares])
                constant[forms, 0] = -(features.T @ p)
                constant[squares, 0] = by_square.T @ np.square(p)
            else:  # e times a sign, whose square is e^2
                e = flipped[self.rows].astype(p.dtype)
                np.multiply(features.T, e, out=matrix[forms])
                matrix[squares] = 0.0
                constant[squares, 0] = by_square.T @ np.square(e)
        return matrix, constant


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
        if self.draws and isinstance(self.null, RowwiseNull):
            return self.null
        return None


@dataclass(frozen=True, eq=False)
class Additive:
    """Facts about some rows; those of different rows add up, field by field."""

    def __add__(self, other: Self) -> Self:
        return self._sum(other, in_place=False)

    def absorbed(self, other: Self) -> Self:
        """Add other rows into the arrays of these, which nobody else may hold."""
        own_sum = type(self).__add__ is not Additive.__add__
        return self + other if own_sum else self._sum(other, in_place=True)

    def _sum(self, other: Self, *, in_place: bool) -> Self:
        pairs = {name: (mine, vars(other)[name]) for name, mine in vars(self).items()}
        return type(self)(**{name: added(*pair, in_place) for name, pair in pairs.items()})


def added(a: Any, b: Any, in_place: bool = False) -> Any:
    """Sum of what adds up: numbers, arrays, sets, `Additive`, and tuples entry by entry."""
    if isinstance(a, tuple):
        return tuple(added(x, y, in_place) for x, y in zip(a, b, strict=True))
    if isinstance(a, frozenset):
        return a | b
    if in_place and isinstance(a, Additive):
        return a.absorbed(b)
    if in_place and isinstance(a, np.ndarray) and a.dtype == b.dtype and a.flags.writeable:
        a += b
        return a
    return a + b


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

    @classmethod
    def of(cls, chunk: Rows, w: FloatArray) -> Tally:
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
        )

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j."""
        return self.weight**2 - self.weight2

    def refuse(self, pair_weight: float) -> None:
        """Refuse rows in files that a `Sample` would have refused."""
        if not self.positives.any() and len(self.other_labels) > 1:
            problem = "{argument}: no label is the positive one; the labels are {others}"
            others = listed(sorted(self.other_labels, key=str))
            raise InputError(problem, argument="positive", others=others)
        if pair_weight <= 0:
            problem = "{argument} are zero in all rows but at most one; two rows must count"
            raise InputError(problem, argument="weights")

    @property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes that need a whole pass over rows in files, of one outcome."""
        said, positives = [], int(self.positives[0])
        if len(self.other_labels) > 1:
            others = listed(sorted(self.other_labels, key=str))
            said.append(f"all labels but the positive one ({others}) count as 0")
        if positives in (0, self.rows):
            said.append(f"one class only: every label counts as {int(positives > 0)}")
        if self.certain == self.rows:
            said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
        return tuple(said)


# The tally of the rows and the sums of every piece of work.
Totals = tuple[Tally, tuple[Any, ...]]


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
    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> Any:
        """Start on a chunk: what has `add(drawn)` for some columns, and `finished()`, its sums.

        Where it has a sequence `products` of `Products`, these share a product with others. Of all
        outcomes it has `of(outcome, rows)`, which gives what has `add`, and `finished()`.
        """


@dataclass(frozen=True, eq=False)
class Summing:
    """What one chunk contributes, being made: products with some columns go to their places.

    Work of all outcomes has a function in the place of targets, of an outcome and its rows.
    """

    targets: Any  # sequence of (Products, forms, diagonals), the latter two by column
    finished: Callable[[], Any]  # gives what adds up: arrays, a tuple of them, or `Additive`

    @property
    def products(self) -> list[Products]:
        """What may be multiplied together with others."""
        return [products for products, _, _ in self.targets]

    def of(self, outcome: int, rows: Rows) -> Summing:
        """What one outcome contributes."""
        if not callable(self.targets):
            return self
        return Summing(self.targets(outcome, rows), self.finished)

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        for products, forms, diagonals in self.targets:
            sums, squares = products.of(drawn)
            forms[:, drawn.columns] = sums
            diagonals[:, drawn.columns] += squares


@dataclass(frozen=True, eq=False)
class FunctionWork(Work):
    """Work that a function of a chunk, its weights and the number of columns begins."""

    function: Callable[[Rows, FloatArray, int], Any]
    unit: float
    outcome: int | None = 0

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> Any:
        return self.function(chunk, weights, columns)


def rowwise_work(
    function: Callable[[Rows, FloatArray], Any], unit: float, outcome: int | None = 0
) -> FunctionWork:
    """What a function of a chunk gives, summed over all rows; no labels are redrawn."""

    def begin(chunk: Rows, weights: FloatArray, columns: int) -> Summing:  # noqa: ARG001
        share = function(chunk, weights)
        return Summing((), lambda: share)

    return FunctionWork(begin, unit, outcome)


# What one pass over the rows adds up, with which draws.
Job = tuple[Sequence[Work], Drawing]


def accumulate(job: Job, chunk: Rows, scratch: Scratch | None = None) -> Totals:
    """What the rows of one chunk contribute to every piece of work."""
    scratch, (works, drawing) = scratch or Scratch(), job
    unit = works[0].unit if works else 1.0
    w = np.ones(chunk.n) if chunk.weights is None else chunk.weights / unit
    outcomes = chunk.predictions.shape[1]
    # Classes and signs of rows with several outcomes are drawn once and serve every outcome.
    shared = outcomes > 1 and drawing.redraw is not None
    whole = _drawn(chunk, drawing, drawing.draws) if shared else None

    def drawn(first: int, block: range) -> AnyArray:
        if whole is None:
            return _drawn(chunk, drawing, block)
        return whole[:, first : first + len(block)]

    of_all = {n: work.begin(chunk, w, drawing.columns) for n, work in _reading(works, None)}
    sums: dict[int, Any] = {}
    for k in range(outcomes):
        rows = chunk.outcome(k)
        alone = {n: work.begin(rows, w, drawing.columns) for n, work in _reading(works, k)}
        partials = [*alone.values(), *(partial.of(k, rows) for partial in of_all.values())]
        join((one for partial in partials for one in getattr(partial, "products", ())), scratch)
        for columns in _columns_of(rows, k, drawing, drawn, scratch) if partials else ():
            for partial in partials:
                partial.add(columns)
        sums |= {n: partial.finished() for n, partial in alone.items()}
    sums |= {n: partial.finished() for n, partial in of_all.items()}
    return Tally.of(chunk, w), tuple(sums[n] for n in range(len(works)))


def _reading(works: Sequence[Work], outcome: int | None) -> list[tuple[int, Work]]:
    return [(n, work) for n, work in enumerate(works) if work.outcome == outcome]


def accumulate_all(job: Job, chunks: Iterable[Rows]) -> Totals:
    """The same for several chunks, one after the other."""
    scratch = Scratch()
    parts = (accumulate(job, chunk, scratch) for chunk in chunks)
    return reduce(lambda total, part: added(total, part, in_place=True), parts)


def _columns_of(
    rows: Rows, k: int, drawing: Drawing, drawn: Callable[[int, range], AnyArray], scratch: Scratch
) -> Iterator[Drawn]:
    """The data of an outcome as column 0 and its draws after it, some columns at a time."""
    if drawing.redraw is None:
        observed = (rows.y == 1).astype(np.float32)
        yield Drawn(slice(0, 1), observed[:, None], is_label=True)
        return
    flips = isinstance(drawing.redraw, Rademacher)
    residuals = rows.y - rows.p
    for first in range(0, len(drawing.draws), DRAWS_AT_ONCE):
        raw = drawn(first, drawing.draws[first : first + DRAWS_AT_ONCE])
        several = raw.dtype.kind in "iu"
        is_label = not flips and raw.dtype.kind != "f"
        lead = int(first == 0)  # the data are a column of the same product as the draws
        columns = slice(first + 1 - lead, first + 1 + raw.shape[1])
        shape = rows.n, raw.shape[1] + lead
        numbers = scratch.array("draws", shape, np.float32 if is_label or flips else float)
        if several:
            np.equal(raw, k, out=numbers[:, lead:], casting="unsafe")
        else:
            numbers[:, lead:] = 1 - 2 * raw.view(np.int8) if flips else raw
        if lead:
            numbers[:, 0] = rows.y == 1 if is_label else (1.0 if flips else residuals)
        yield Drawn(columns, numbers, is_label, residuals if flips else None)


def _drawn(chunk: Rows, drawing: Drawing, block: range) -> AnyArray:
    """Whose signs are flipped, labels, classes, or residuals, (n, draws)."""
    redraw, seed = drawing.redraw, drawing.seed
    if isinstance(redraw, Rademacher):
        return redraw.flips(chunk, block, seed)
    assert redraw is not None
    return redraw.draw(chunk, block, seed)
