"""Mean residuals at many places as a part of a pass over the rows, in memory or in files.

For rows that are independent draws: labels are redrawn row by row. Normal numbers, one a row, that
the residuals would be multiplied with are not drawn: their sums at all places are normal with a
covariance that is itself a sum over rows, so they are drawn from it when all rows have been seen.
So several sets of places (points, groups, slices) share one pass with a test and with tasks, on
the same redrawn labels. Where rows come from a design, clusters have to stay whole: see
`average_by_design`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import (
    AnyArray,
    FloatArray,
    IntArray,
    progress_bar,
    tickets,
)
from itrust.bias.smoothing import (
    MAX_IN_DOUBLE,
    Averages,
    Tile,
    Weights,
    average_by_design,
    moments_of,
)
from itrust.data import Chunk, Source
from itrust.engines import (
    Additive,
    Drawn,
    Engine,
    Outcome,
    Plan,
    Survey,
    Work,
    as_engine,
    run_together,
    work_of_parts,
)
from itrust.nulls import Bernoulli, RowwiseNull

NOBODY = -1.0  # a ticket below all others
# Of the variance, added so that a covariance has a root in spite of rounding; the first suffices.
JITTERS = (1e-4, 1e-3, 1e-2, 0.1)


@dataclass(frozen=True, eq=False)
class PlaceSet:
    """Places whose means are wanted together."""

    weights: Weights
    spread: bool = False
    above: float = NOBODY


@dataclass(frozen=True, eq=False)
class PlaceSums(Additive):
    """What some rows contribute, one array for each set of places; see `Averages`.

    `sums` are of a times the residual, (m, 1 + draws), data first; `spread` (m, 1 + draws) or
    empty; `covariance` of a b times the squared residual, for every two places of one family, one
    array for each family of all sets; `plain`, `second` and `third` as `moments_of` takes them;
    `rows` (m,) counts rows, and `total` is the weight of all rows.
    """

    sums: tuple[AnyArray, ...]
    spread: tuple[AnyArray, ...]
    covariance: tuple[AnyArray, ...]
    plain: tuple[FloatArray, ...]
    second: tuple[FloatArray, ...]
    third: tuple[FloatArray, ...]
    rows: tuple[IntArray, ...]
    total: float


@dataclass(frozen=True, eq=False)
class PlacesPart:
    """Sets of places as a part of a pass: it gives the `Averages` of each."""

    sets: tuple[PlaceSet, ...]
    seed: int
    dtype: DTypeLike
    unit: float

    @classmethod
    def of(
        cls, sets: Sequence[PlaceSet], n: int, draws: int, seed: int, unit: float = 1.0
    ) -> PlacesPart:
        """Choose the precision: large work is done in single precision, data and draws alike.

        Weights of rows are then rounded, too, but sums over the data are double.
        """
        places = sum(own.weights.places for own in sets)
        large = float(n) * places * draws > MAX_IN_DOUBLE
        dtype = np.float32 if large else np.float64
        return cls(tuple(sets), seed, dtype, unit)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        return sum((2 if own.spread else 1) * own.weights.places for own in self.sets)

    def works(self, block: range) -> list[PlacesWork]:
        """One piece of work for all sets."""
        first = block.start == 0 and len(block) > 0
        return [PlacesWork(self.sets, first, self.dtype, self.unit)]

    def reduced(self, outcome: Outcome, block: range) -> PlaceSums:
        """Keep the sums; those of the data once."""
        found: PlaceSums = outcome.works[0]
        if block.start == 0:
            return found
        kept = {name: getattr(found, name) for name in vars(found)}
        kept["sums"] = tuple(own[:, 1:] for own in found.sums)
        kept["spread"] = tuple(own[:, 1:] for own in found.spread)
        return PlaceSums(**kept)

    def finished(self, found: Sequence[PlaceSums]) -> list[Averages]:
        """Put batches of draws side by side."""
        first, covariance, unit = found[0], iter(found[0].covariance), self.unit

        def joined(name: str, k: int, scale: float) -> FloatArray:
            parts = [getattr(own, name)[k] for own in found]
            return np.concatenate(parts, axis=1).astype(np.float64) * scale

        draws = sum(own.sums[0].shape[1] for own in found) - 1
        return [
            Averages(
                sums=joined("sums", k, unit)[None],
                multiplied=self._multiplied(k, covariance, first.second[k][3], draws) * unit,
                spread=joined("spread", k, unit**2),
                residual=first.plain[k][2] * unit,
                moments=moments_of(
                    first.plain[k] * unit, first.second[k] * unit**2, first.third[k] * unit**3
                ),
                freedom=None,
                rows=first.rows[k],
                total=first.total * unit,
            )
            for k in range(len(self.sets))
        ]

    def _multiplied(
        self, k: int, covariance: Iterator[AnyArray], variance: FloatArray, draws: int
    ) -> FloatArray:
        """Sums of residuals times normal numbers at the places of one set, (m, draws)."""
        found = np.empty((variance.size, draws))
        for family in self.sets[k].weights.families if draws else ():
            own = slice(family.places.start, family.places.stop)
            rng = np.random.default_rng([self.seed, 1, family.part])
            found[own] = _normal_sums(next(covariance), variance[own], draws, rng)
        return found


@dataclass(frozen=True, eq=False)
class PlacesWork(Work):
    """What is summed at all places over some rows."""

    sets: tuple[PlaceSet, ...]
    with_covariance: bool
    dtype: DTypeLike
    unit: float

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> _PlacesPartial:
        """Start on a chunk."""
        return _PlacesPartial(self, chunk, weights, columns)


class _PlacesPartial:
    """What one chunk contributes, being made."""

    def __init__(self, work: PlacesWork, chunk: Chunk, w: FloatArray, columns: int) -> None:
        self.work, self.chunk = work, chunk
        sizes = [own.weights.places for own in work.sets]
        spreads = [columns if own.spread else 1 for own in work.sets]
        self.sums = PlaceSums(
            sums=tuple(np.zeros((m, columns), dtype=work.dtype) for m in sizes),
            spread=tuple(
                np.zeros((m, wide), dtype=work.dtype)
                for m, wide in zip(sizes, spreads, strict=True)
            ),
            covariance=tuple(
                np.zeros((len(family.places),) * 2, dtype=work.dtype)
                for own in work.sets
                for family in own.weights.families
                if work.with_covariance
            ),
            plain=tuple(np.zeros((3, m)) for m in sizes),
            second=tuple(np.zeros((5, m)) for m in sizes),
            third=tuple(np.zeros((4, m)) for m in sizes),
            rows=tuple(np.zeros(m, dtype=np.int64) for m in sizes),
            total=float(w.sum()),
        )
        e, p = chunk.y - chunk.p, chunk.p
        # Powers of the weights times these make all moments.
        self.plain = np.column_stack([w, w * p, w * e])
        self.second = np.column_stack([np.ones_like(p), p, p**2, e**2, e]) * w[:, None] ** 2
        self.third = np.column_stack([np.ones_like(p), p, p**2, p**3]) * w[:, None] ** 3
        # What labels, their squares and the data's residuals count at a place with weight 1.
        self.w = None if chunk.weights is None else w.astype(work.dtype)
        self.errors = (w * e).astype(work.dtype)
        self.squares = (w**2 * (1 - 2 * p)).astype(work.dtype)

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        first, columns = drawn.columns.start == 0, drawn.columns
        labels = drawn.as_type(self.work.dtype)
        covariances = iter(self.sums.covariance)
        for k, own in enumerate(self.work.sets):
            sums, spread = self.sums.sums[k], self.sums.spread[k]
            families = own.weights.families if self.work.with_covariance and first else []
            covariance = [(family.places, next(covariances)) for family in families]
            for places, rows, weights in self._tiles(own):
                if first:
                    self._moments(k, places, rows, weights)
                rough = weights.astype(self.work.dtype, copy=False)
                y = _taken(labels, rows)
                sums[places, columns] += self._weighted(rough, rows) @ y
                if own.spread:
                    spread[places, columns] += (np.square(rough) * self.squares[rows]) @ y
                if covariance:
                    _add_covariance(covariance, places, rough * self.errors[rows])
            # What labels have in common: e = y - p, and so with its square, p^2 + y (1 - 2p).
            sums[:, columns] -= self.sums.plain[k][1][:, None]
            if own.spread:
                spread[:, columns] += self.sums.second[k][2][:, None]

    def _weighted(self, rough: AnyArray, rows: IntArray) -> AnyArray:
        return rough if self.w is None else rough * self.w[rows]

    def _tiles(self, own: PlaceSet) -> Iterator[Tile]:
        """Places, rows of the chunk that count there, and their weights (places, rows)."""
        points, chosen, dtype = self.chunk.points, None, self.work.dtype
        if own.above > NOBODY:
            chosen = np.flatnonzero(tickets(self.chunk.first, len(points)) > own.above)
            points = points.take(chosen)
        if not len(points):
            return
        for places, rows, weights in own.weights.tiles(points, whole=False, dtype=dtype):
            yield places, rows if chosen is None else chosen[rows], weights

    def _moments(self, k: int, places: IntArray, rows: IntArray, weights: AnyArray) -> None:
        sums, power = self.sums, weights.astype(np.float64)
        sums.plain[k][:, places] += (power @ self.plain[rows]).T
        sums.rows[k][places] += np.count_nonzero(weights, axis=1)
        power *= weights
        sums.second[k][:, places] += (power @ self.second[rows]).T
        power *= weights
        sums.third[k][:, places] += (power @ self.third[rows]).T

    def finished(self) -> PlaceSums:
        """The sums of the chunk."""
        return self.sums


def _taken(numbers: AnyArray, rows: IntArray) -> AnyArray:
    """Some rows of an array; the array itself where they are all, in their order."""
    if rows.size == len(numbers) and rows[0] == 0 and rows[-1] == rows.size - 1:
        return numbers
    return numbers[rows]


def _add_covariance(
    families: list[tuple[range, AnyArray]], places: IntArray, shares: AnyArray
) -> None:
    """Add what some rows contribute, whose shares (places, rows) are weights times residuals."""
    for known, into in families:
        first, last = np.searchsorted(places, [known.start, known.stop])
        if first < last:
            own, at = shares[first:last], places[first:last] - known.start
            into[np.ix_(at, at)] += own @ own.T


def _normal_sums(
    covariance: AnyArray, variance: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Normal numbers with this covariance, (m, draws), whose diagonal is known more precisely.

    What rounding leaves without a root gets one by a little variance that places do not share; so
    it is where places are more than rows.
    """
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    correlation = covariance / scale / scale[:, None]
    root: AnyArray = np.eye(variance.size)  # uncorrelated, if nothing helps
    jitter = 0.0
    for tried in JITTERS:
        np.fill_diagonal(correlation, 1 + tried)
        try:
            root, jitter = np.linalg.cholesky(correlation), tried
            break
        except np.linalg.LinAlgError:
            continue
    normals = rng.standard_normal((draws, variance.size)).T
    return np.asarray(root @ normals * np.sqrt(variance / (1 + jitter))[:, None])


def average(
    source: Source,
    weights: Weights,
    laws: Sequence[RowwiseNull],
    draws: int,
    seed: int,
    *,
    spread: bool = False,
    title: str = "local bias",
    engine: Engine | None = None,
    survey: Survey | None = None,
) -> Averages:
    """Mean residuals at all places, by one pass over the rows."""
    sample = source.in_memory
    if sample is not None and not sample.design.is_simple:
        return average_by_design(sample, weights, laws, draws, seed, spread=spread, title=title)
    chosen = as_engine("auto") if engine is None else engine
    rows = chosen.survey(source) if survey is None else survey
    part = PlacesPart.of([PlaceSet(weights, spread)], rows.n, draws, seed, rows.unit)
    amount = work_of_parts(rows, [part], draws)
    with progress_bar(title, amount, None if draws else False) as advance:
        ((found,),) = run_together(chosen, rows, [part], Bernoulli(), draws, seed, advance)
    averages: Averages = found
    return averages
