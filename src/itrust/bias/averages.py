"""Weighted mean residuals at many places, of the data and of all draws, by one pass over the rows.

A place is anything that gives every row a weight: a kernel around a point, a group, a rule. Summed
besides the residuals are the moments that tell how much such a mean varies if the bias there has
some value, and what tells how it varies in the design, see `Spreading`. Several sets of places
share one pass with a test and with tasks, on the same redrawn labels. Where rows come from a
design, clusters stay whole in a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, BoolArray, FloatArray, IntArray, progress_bar, tickets
from itrust.bias.spreading import Spreading, spreading_of
from itrust.bias.weights import Tile, Weights
from itrust.calibration import normal_score
from itrust.data import Chunk, Design, Sample, Source
from itrust.engines import (
    Additive,
    Drawn,
    Engine,
    Outcome,
    Plan,
    Survey,
    Work,
    as_engine,
    available_threads,
    ordered_map,
    run_together,
    work_of_parts,
)
from itrust.nulls import Bernoulli, RowwiseNull, is_symmetric

CHUNK_ROWS = 8_192
CHUNK_BYTES = 2**26  # of random numbers held at once by a thread
MAX_IN_DOUBLE = 2e9  # rows x places x draws
BEYOND_DOUBT = 1e5  # score of a label that was called impossible: above all others
NOBODY = -1.0  # a ticket below all others


@dataclass(frozen=True, eq=False)
class Moments:
    """How a weighted mean of y - p varies if the bias at its place is b: sums over rows.

    With a_i the weight of row i, survey weight included, and P the weighted mean of p: labels with
    a mean bias b are taken to be 1 with probability p (1 + b / P) if b is negative, and 0 with
    probability (1 - p) (1 - b / (1 - P)) if it is positive. So variance and third central
    moment of sum a_i (y_i - p_i) are polynomials in b, and all is possible from "never" to
    "always".
    """

    mass: FloatArray
    predicted: FloatArray
    second: FloatArray
    third: FloatArray
    squares: FloatArray
    by_design: FloatArray
    multiplied: FloatArray
    carried: FloatArray

    @property
    def size(self) -> FloatArray:
        """Effective number of rows, or of clusters, (sum a)^2 / sum a^2, (m,)."""
        return _ratio(self.mass**2, self.carried[0])

    @property
    def is_symmetric(self) -> BoolArray:
        """Whether clusters' sums are nearly symmetric, so that Student's law suffices, (m,)."""
        return is_symmetric(*self.carried[1:])

    @property
    def mean_prediction(self) -> FloatArray:
        """Weighted mean of p, (m,)."""
        return _ratio(self.predicted, self.mass)

    def central(self, bias: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Variance and third central moment of the sum if the bias is this, (m,) each."""
        mean = np.nan_to_num(self.mean_prediction, nan=0.5)
        up = bias > 0
        room = np.where(up, 1 - mean, mean)
        c = np.clip(1 - np.abs(bias) / np.where(room > 0, room, 1.0), 0.0, 1.0)
        # With q = 1 - p the upward case is the downward one of the other label.
        one, p, pp = self.second
        q1, q2 = np.where(up, one - p, p), np.where(up, one - 2 * p + pp, pp)
        variance = c * q1 - c**2 * q2
        one, p, pp, ppp = self.third
        r1 = np.where(up, one - p, p)
        r2 = np.where(up, one - 2 * p + pp, pp)
        r3 = np.where(up, one - 3 * p + 3 * pp - ppp, ppp)
        skew = c * r1 - 3 * c**2 * r2 + 2 * c**3 * r3
        return np.maximum(variance, 0.0), np.where(up, -skew, skew)

    def take(self, places: IntArray) -> Moments:
        return Moments(**{name: part[..., places] for name, part in vars(self).items()})


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def polynomial(coefficients: FloatArray, at: FloatArray | float) -> FloatArray:
    """Sum of coefficients (k, m) times powers of `at`, by Horner's rule, (m,)."""
    value = coefficients[-1] + np.zeros_like(at)
    for coefficient in coefficients[-2::-1]:
        value = value * at + coefficient
    return np.asarray(value)


@dataclass(frozen=True, eq=False)
class Averages:
    """Sums of weighted residuals at m places."""

    sums: FloatArray  # (laws, m, 1 + draws), data first
    multiplied: FloatArray  # (m, draws), residuals times normal numbers
    spread: FloatArray
    residual: FloatArray
    moments: Moments
    freedom: float | None  # of a design
    rows: IntArray
    total: float

    @property
    def has_clusters(self) -> bool:
        """Whether rows are not independent draws."""
        return self.freedom is not None

    def take(self, places: IntArray) -> Averages:
        parts = {name: vars(self)[name][places] for name in ("multiplied", "spread", "residual")}
        moments, rows = self.moments.take(places), self.rows[places]
        return replace(self, sums=self.sums[:, places], moments=moments, rows=rows, **parts)

    @property
    def values(self) -> FloatArray:
        """Weighted mean residual of the data, (m,); NaN where no row counts."""
        return _ratio(self.residual, self.moments.mass)

    @property
    def stderr(self) -> FloatArray:
        """Standard error of the values, from how much residuals vary in the design, (m,)."""
        variance = polynomial(self.moments.by_design, np.nan_to_num(self.values))
        return _ratio(np.sqrt(np.maximum(variance, 0.0)), self.moments.mass)

    @property
    def inflation(self) -> FloatArray:
        """How much the design adds to the variance, at least 1, (m,)."""
        if not self.has_clusters:
            return np.ones(self.residual.size)
        b, size = np.nan_to_num(self.values), self.moments.size
        plain = polynomial(self.moments.squares, b)
        ratio = _ratio(polynomial(self.moments.by_design, b), plain)
        return np.fmax(1.0, ratio * np.fmax(_ratio(size, size - 1), 1.0))

    def null_scales(self) -> tuple[FloatArray, FloatArray]:
        """Variance and skewness of the sums under "no row has a bias", (laws, m) each.

        Labels of independent rows have closed forms; of those that are alike within clusters, the
        draws tell, the data among them.
        """
        if self.has_clusters:
            variance = np.square(self.sums).mean(axis=2)
            third = (self.sums**3).mean(axis=2)
        else:
            variance, third = (part[None] for part in self.moments.central(0.0))
        lively = variance > 1e-12 * self.moments.second[0]
        scale = np.where(lively, variance, 1.0)
        return np.where(lively, variance, 0.0), third * scale**-1.5 * lively

    def null_scores(self, *, studentised: bool) -> FloatArray:
        """Normal scores under "no row has a bias", data first, (laws, m, 1 + draws).

        With `studentised`, a place whose residuals vary more than p (1 - p) says is divided by
        how much they do: the score then also holds where biases of its rows cancel.
        """
        scores = np.empty(self.sums.shape)
        # Rows that cannot vary have no draws; a residual there is a label called impossible.
        impossible = np.abs(self.residual) > 1e-9 * np.maximum(self.moments.mass, 1e-300)
        for law, (variance, skewness) in enumerate(zip(*self.null_scales(), strict=True)):
            lively = variance > 0
            scale = np.where(lively, variance, 1.0)[:, None]
            scores[law] = self.sums[law] / np.sqrt(scale)
            if studentised and not self.has_clusters:
                scores[law] /= np.sqrt(np.maximum(self.spread / scale, 1.0))
            scores[law] = normal_score(scores[law], skewness[:, None])
            scores[law, ~lively] = 0.0
            beyond = ~lively & impossible
            scores[law, beyond, 0] = BEYOND_DOUBT * np.sign(self.residual[beyond])
        return scores

    def multiplier_scores(self) -> FloatArray:
        """Standard normal at every place, correlated as the estimates are, (m, draws)."""
        spread = self.moments.multiplied
        scale = np.sqrt(np.where(spread > 0, spread, 1.0))
        return np.asarray(self.multiplied / scale[:, None])


@dataclass(frozen=True, eq=False)
class PlaceSet:
    """Places whose means are wanted together, from rows with tickets above a bar."""

    weights: Weights
    spread: bool = False
    above: float = NOBODY


@dataclass(frozen=True, eq=False)
class PlaceSums(Additive):
    """What some rows contribute at m places, a being the weight of a row at a place."""

    sums: AnyArray  # of a times the residual, (m, 1 + draws), data first
    spread: AnyArray  # of a^2 times its square
    plain: FloatArray  # of a times 1, p, e
    second: FloatArray  # of a^2 times 1, p, p^2, e^2, e
    third: FloatArray  # of a^3 times 1, p, p^2, p^3
    rows: IntArray
    total: float  # weight of all rows
    spreading: tuple[AnyArray, ...]  # see `Spreading`


@dataclass(frozen=True, eq=False)
class PlacesPart:
    """Sets of places as a part of a pass: it gives the `Averages` of each."""

    sets: tuple[PlaceSet, ...]
    spreading: Spreading
    unit: float

    @classmethod
    def of(
        cls,
        sets: Sequence[PlaceSet],
        n: int,
        draws: int,
        seed: int,
        unit: float = 1.0,
        design: Design | None = None,
    ) -> PlacesPart:
        """Choose the precision: large work is done in single precision, but moments never are."""
        places = sum(some.weights.places for some in sets)
        dtype = np.float32 if float(n) * places * draws > MAX_IN_DOUBLE else np.float64
        return cls(tuple(sets), spreading_of(design, draws, seed, dtype), unit)

    @property
    def plans(self) -> tuple[Plan, ...]:
        return ()

    @property
    def width(self) -> int:
        return sum((2 if some.spread else 1) * some.weights.places for some in self.sets)

    def works(self, block: range) -> list[PlacesWork]:
        """One for each set; how its sums spread is known from the first batch of draws."""
        first = self.spreading if block.start == 0 else None
        return [PlacesWork(some, first, self.spreading.dtype, self.unit) for some in self.sets]

    def reduced(self, outcome: Outcome, block: range) -> tuple[PlaceSums, ...]:
        if block.start == 0:
            return outcome.works
        return tuple(
            replace(some, sums=some.sums[:, 1:], spread=some.spread[:, 1:])
            for some in outcome.works
        )

    def finished(self, found: Sequence[tuple[PlaceSums, ...]]) -> list[Averages]:
        return [
            self._averages(some, batches)
            for some, batches in zip(self.sets, zip(*found, strict=True), strict=True)
        ]

    def _averages(self, some: PlaceSet, batches: Sequence[PlaceSums]) -> Averages:
        first, unit, spreading = batches[0], self.unit, self.spreading

        def joined(name: str, scale: float) -> FloatArray:
            parts = [getattr(batch, name) for batch in batches]
            whole = np.concatenate(parts, axis=1, dtype=np.float64)
            whole *= scale
            return whole

        return Averages(
            sums=joined("sums", unit)[None],
            multiplied=spreading.multiplied(some.weights, first) * unit,
            spread=joined("spread", unit**2),
            residual=first.plain[2] * unit,
            moments=spreading.settled(_moments(first, unit), first),
            freedom=spreading.freedom,
            rows=first.rows,
            total=first.total * unit,
        )


def _moments(sums: PlaceSums, unit: float) -> Moments:
    """Moments of independent rows."""
    second = sums.second * unit**2
    squares = np.stack([second[3], -2 * second[4], second[0]])
    return Moments(
        mass=sums.plain[0] * unit,
        predicted=sums.plain[1] * unit,
        second=second[:3],
        third=sums.third * unit**3,
        squares=squares,
        by_design=squares,
        multiplied=second[3],
        carried=second[:4],
    )


@dataclass(frozen=True, eq=False)
class PlacesWork(Work):
    """What is summed at the places of one set over some rows."""

    places: PlaceSet
    spreading: Spreading | None
    dtype: DTypeLike
    unit: float

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> PlacesPartial:
        return PlacesPartial(self, chunk, weights, columns)


class PlacesPartial:
    """What one chunk contributes, being made."""

    def __init__(self, work: PlacesWork, chunk: Chunk, w: FloatArray, columns: int) -> None:
        self.work, self.chunk, self.w = work, chunk, w
        weights, dtype, spreading = work.places.weights, work.dtype, work.spreading
        m = weights.places
        self.sums = PlaceSums(
            sums=np.zeros((m, columns), dtype),
            spread=np.zeros((m, columns if work.places.spread else 1), dtype),
            plain=np.zeros((3, m)),
            second=np.zeros((5, m)),
            third=np.zeros((4, m)),
            rows=np.zeros(m, dtype=np.int64),
            total=float(w.sum()),
            spreading=() if spreading is None else spreading.empty(weights),
        )
        p = chunk.p
        self.e = e = chunk.y - p
        # Powers of the weights times these make all moments.
        self.plain = np.column_stack([w, w * p, w * e])
        self.second = np.column_stack([np.ones_like(p), p, p**2, e**2, e]) * w[:, None] ** 2
        self.third = np.column_stack([np.ones_like(p), p, p**2, p**3]) * w[:, None] ** 3
        self.errors = (w * e).astype(dtype)
        # What squares of labels count at a place with weight 1.
        self.squares = (w**2 * (1 - 2 * p)).astype(dtype)
        self.multiplied = None if spreading is None else spreading.multiplied_errors(self)

    def add(self, drawn: Drawn) -> None:
        work, columns = self.work, drawn.columns
        labels = drawn.as_type(work.dtype)
        sums, spread = self.sums.sums, self.sums.spread
        w = None if self.chunk.weights is None else self.w.astype(work.dtype)
        for places, rows, weights in self._tiles():
            if columns.start == 0:
                self._moments(places, rows, weights)
            rough = weights.astype(work.dtype, copy=False)
            y = _taken(labels, rows)
            sums[places, columns] += (rough if w is None else rough * w[rows]) @ y
            if work.places.spread:
                spread[places, columns] += (np.square(rough) * self.squares[rows]) @ y
            if columns.start == 0 and work.spreading is not None:
                work.spreading.add(self, (places, rows, rough))
        # What labels have in common: e = y - p, and so with its square, p^2 + y (1 - 2p).
        sums[:, columns] -= self.sums.plain[1][:, None]
        if work.places.spread:
            spread[:, columns] += self.sums.second[2][:, None]

    def _tiles(self) -> Iterator[Tile]:
        """Places, rows of the chunk that count there, and their weights (places, rows)."""
        points, chosen, places = self.chunk.points, None, self.work.places
        if places.above > NOBODY:
            chosen = np.flatnonzero(tickets(self.chunk.first, len(points)) > places.above)
            points = points.take(chosen)
        if not len(points):
            return
        whole, dtype = self.chunk.cluster is not None, self.work.dtype
        for some, rows, weights in places.weights.tiles(points, whole=whole, dtype=dtype):
            yield some, rows if chosen is None else chosen[rows], weights

    def _moments(self, places: IntArray, rows: IntArray, weights: AnyArray) -> None:
        sums, power = self.sums, weights.astype(np.float64)
        sums.plain[:, places] += (power @ self.plain[rows]).T
        sums.rows[places] += np.count_nonzero(weights, axis=1)
        power *= weights
        sums.second[:, places] += (power @ self.second[rows]).T
        power *= weights
        sums.third[:, places] += (power @ self.third[rows]).T

    def finished(self) -> PlaceSums:
        return self.sums


def _taken(numbers: AnyArray, rows: IntArray) -> AnyArray:
    """Some rows of an array; the array itself where they are all, in their order."""
    if rows.size == len(numbers) and rows[0] == 0 and rows[-1] == rows.size - 1:
        return numbers
    return numbers[rows]


def average(
    source: Source,
    weights: Weights,
    laws: Sequence[RowwiseNull] = (),
    draws: int = 0,
    seed: int = 0,
    *,
    spread: bool = False,
    title: str = "local bias",
) -> Averages:
    """Mean residuals at the places of one set."""
    (averages,) = average_all(source, [PlaceSet(weights, spread)], laws, draws, seed, title=title)
    return averages


def average_all(
    source: Source,
    sets: Sequence[PlaceSet],
    laws: Sequence[RowwiseNull],
    draws: int,
    seed: int,
    *,
    title: str = "local bias",
    engine: Engine | None = None,
    survey: Survey | None = None,
) -> list[Averages]:
    """Mean residuals at the places of several sets, by one pass over the rows."""
    sample = source.in_memory
    if sample is not None and not sample.design.is_simple:
        return _by_design(sample, sets, laws, draws, seed, title)
    chosen = as_engine("auto") if engine is None else engine
    rows = chosen.survey(source) if survey is None else survey
    part = PlacesPart.of(sets, rows.n, draws, seed, rows.unit)
    amount = work_of_parts(rows, [part], draws)
    with progress_bar(title, amount, None if draws else False) as advance:
        (averages,) = run_together(chosen, rows, [part], Bernoulli(), draws, seed, advance)
    found: list[Averages] = averages
    return found


def _by_design(
    sample: Sample,
    sets: Sequence[PlaceSet],
    laws: Sequence[RowwiseNull],
    draws: int,
    seed: int,
    title: str,
) -> list[Averages]:
    """The same where rows come from a design: draws of all laws side by side, clusters whole.

    Memory O(m draws) a law and thread, and O(m) a stratum. The answer is the same to the last bit
    for any number of threads.
    """
    if sample.cluster is not None:
        sample = sample.take(np.argsort(sample.cluster, kind="stable"))
    part = PlacesPart.of(sets, sample.n, draws, seed, design=sample.design)
    works, columns = part.works(range(draws)), 1 + len(laws) * draws

    def summed(rows: slice) -> tuple[PlaceSums, ...]:
        chunk = _chunk(sample, rows)
        labels = np.empty((chunk.y.size, columns), part.spreading.dtype)
        labels[:, 0] = chunk.y
        for k, law in enumerate(laws if draws else ()):
            own = slice(1 + k * draws, 1 + (k + 1) * draws)
            labels[:, own] = law.draw(chunk, range(draws), seed)
        w = np.ones(chunk.y.size) if chunk.weights is None else chunk.weights
        partials = [work.begin(chunk, w, columns) for work in works]
        for partial in partials:
            partial.add(Drawn(slice(0, columns), labels, is_label=True))
        return tuple(partial.finished() for partial in partials)

    chunks = list(_whole_clusters(sample, draws))
    parts = ordered_map(summed, chunks, min(available_threads(), len(chunks)))
    totals: tuple[PlaceSums, ...] = ()
    with progress_bar(title, sample.n, None if draws else False) as advance:
        for rows, sums in zip(chunks, parts, strict=True):
            totals = tuple(map(PlaceSums.absorbed, totals, sums)) if totals else sums
            advance(rows.stop - rows.start)
    return [
        replace(averages, sums=_by_law(averages.sums[0], len(laws), draws))
        for averages in part.finished([totals])
    ]


def _by_law(sums: FloatArray, laws: int, draws: int) -> FloatArray:
    """The data before the draws of every law, (laws, m, 1 + draws)."""
    redrawn = sums[:, 1:].reshape(len(sums), laws, draws).transpose(1, 0, 2)
    data = np.broadcast_to(sums[:, :1], (laws, len(sums), 1))
    return np.concatenate([data, redrawn], axis=2)


def _whole_clusters(sample: Sample, draws: int) -> Iterator[slice]:
    """Some rows at a time; a cluster stays whole."""
    size = int(np.clip(CHUNK_BYTES // (16 * (draws + 1)), 256, CHUNK_ROWS))
    cluster = np.arange(sample.n) if sample.cluster is None else sample.cluster
    ends = np.append(np.flatnonzero(np.diff(cluster)) + 1, sample.n)
    at = 0
    while at < sample.n:
        # The last end that fits, or the first end there is.
        fits, first = np.searchsorted(ends, [at + size, at], side="right")
        stop = int(ends[max(fits - 1, first)])
        yield slice(at, stop)
        at = stop


def _chunk(sample: Sample, rows: slice) -> Chunk:
    return sample.cut(rows, None if sample.weights is None else sample.weights_or_ones)
