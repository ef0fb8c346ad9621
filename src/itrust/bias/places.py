"""Mean residuals at many places as a part of a pass over the rows, in memory or in files.

For rows that are independent draws: labels of a place are redrawn row by row, and normal numbers
that residuals are multiplied with are, too. So several sets of places (points, groups, slices)
share one pass with a test and with tasks, on the same redrawn labels. Where rows come from a
design, clusters have to stay whole: see `average_by_design`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import (
    AnyArray,
    FloatArray,
    IntArray,
    as_seed,
    keyed_bits,
    keyed_fractions,
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
from itrust.bias.spreading import NORMALS
from itrust.data import Chunk, Source
from itrust.engines import (
    Additive,
    Drawn,
    Engine,
    Outcome,
    Plan,
    Survey,
    as_engine,
    run_together,
    work_of_parts,
)
from itrust.nulls import Bernoulli, RowwiseNull

NOBODY = -1.0  # a ticket below all others
NORMAL_ROWS = 8_192  # that have normal numbers of their own; later ones have these with other signs


@dataclass(frozen=True, eq=False)
class PlaceSet:
    """Places whose means are wanted together.

    Attributes
    ----------
    weights : Weights
        How much every row counts at every place.
    spread : bool
        Whether the variance of the residuals is wanted for every draw, too.
    above : float
        Only rows with a larger ticket count: those that are not among the random ones at hand.
        Default: all rows.
    """

    weights: Weights
    spread: bool = False
    above: float = NOBODY


@dataclass(frozen=True, eq=False)
class PlaceSums(Additive):
    """What some rows contribute, one array for each set of places; see `Averages`.

    `sums` are of a times the residual, (m, 1 + draws), data first; `multiplied` (m, draws);
    `spread` (m, 1 + draws) or empty; `plain`, `second` and `third` as `moments_of` takes them;
    `rows` (m,) counts rows, and `total` is the weight of all rows.
    """

    sums: tuple[AnyArray, ...]
    multiplied: tuple[AnyArray, ...]
    spread: tuple[AnyArray, ...]
    plain: tuple[FloatArray, ...]
    second: tuple[FloatArray, ...]
    third: tuple[FloatArray, ...]
    rows: tuple[IntArray, ...]
    total: float


@dataclass(frozen=True, eq=False)
class PlacesPart:
    """Sets of places as a part of a pass: it gives the `Averages` of each.

    Attributes
    ----------
    sets : tuple of PlaceSet
        The places.
    seed : int
        Of the labels; multipliers have a seed of their own that follows from it.
    dtype : numpy type
        Of sums over draws; moments are double.
    unit : float
        Weights are divided by this.
    normal_rows : int
        Rows that have normal numbers of their own: all, or the first 8,192.
    """

    sets: tuple[PlaceSet, ...]
    seed: int
    dtype: DTypeLike
    unit: float
    normal_rows: int = NORMAL_ROWS

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
        return cls(tuple(sets), seed, dtype, unit, min(n, NORMAL_ROWS))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        return sum((3 if own.spread else 2) * own.weights.places for own in self.sets)

    def works(self, block: range) -> list[PlacesWork]:
        """One piece of work for all sets.

        Parameters
        ----------
        block : range
            Numbers of the draws.

        Returns
        -------
        list of PlacesWork
            With the multipliers of these draws.
        """
        own_seed = as_seed(np.random.default_rng([self.seed, 1]))
        work = PlacesWork(self.sets, block, own_seed, self.dtype, self.unit, self.normal_rows)
        return [work]

    def reduced(self, outcome: Outcome, block: range) -> PlaceSums:
        """Keep the sums; those of the data once.

        Parameters
        ----------
        outcome : Outcome
            Of the pass.
        block : range
            Numbers of the draws.

        Returns
        -------
        PlaceSums
            As they are.
        """
        found: PlaceSums = outcome.works[0]
        if block.start == 0:
            return found
        kept = {name: getattr(found, name) for name in vars(found)}
        kept["sums"] = tuple(own[:, 1:] for own in found.sums)
        kept["spread"] = tuple(own[:, 1:] for own in found.spread)
        return PlaceSums(**kept)

    def finished(self, found: Sequence[PlaceSums]) -> list[Averages]:
        """Put batches of draws side by side.

        Parameters
        ----------
        found : sequence of PlaceSums
            One for each batch.

        Returns
        -------
        list of Averages
            One for each set of places.
        """
        first = found[0]

        def joined(name: str, k: int) -> FloatArray:
            parts = [getattr(own, name)[k] for own in found]
            return np.concatenate(parts, axis=1).astype(np.float64, copy=False)

        return [
            Averages(
                sums=joined("sums", k)[None],
                multiplied=joined("multiplied", k),
                spread=joined("spread", k),
                residual=first.plain[k][2],
                moments=moments_of(first.plain[k], first.second[k], first.third[k]),
                freedom=None,
                rows=first.rows[k],
                total=first.total,
            )
            for k in range(len(self.sets))
        ]


@dataclass(frozen=True, eq=False)
class PlacesWork:
    """What is summed at all places over some rows.

    Attributes
    ----------
    sets : tuple of PlaceSet
        The places.
    block : range
        Numbers of the draws.
    seed : int
        Of the multipliers.
    dtype : numpy type
        Of sums over draws.
    unit : float
        Weights are divided by this.
    normal_rows : int
        Rows that have normal numbers of their own.
    """

    sets: tuple[PlaceSet, ...]
    block: range
    seed: int
    dtype: DTypeLike
    unit: float
    normal_rows: int = NORMAL_ROWS

    @property
    def max_rows(self) -> None:
        """As many rows at once as the engine likes."""
        return None

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> _PlacesPartial:
        """Start on a chunk."""
        return _PlacesPartial(self, chunk, weights, columns)


class _PlacesPartial:
    """What one chunk contributes, being made."""

    def __init__(self, work: PlacesWork, chunk: Chunk, w: FloatArray, columns: int) -> None:
        self.work, self.chunk = work, chunk
        self.drawn = 0  # draws that were taken in
        sizes = [own.weights.places for own in work.sets]
        spreads = [columns if own.spread else 1 for own in work.sets]
        self.sums = PlaceSums(
            sums=tuple(np.zeros((m, columns), dtype=work.dtype) for m in sizes),
            multiplied=tuple(np.zeros((m, columns - 1), dtype=work.dtype) for m in sizes),
            spread=tuple(
                np.zeros((m, wide), dtype=work.dtype)
                for m, wide in zip(sizes, spreads, strict=True)
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
        # The same as what labels, their squares and multipliers are multiplied with.
        self.w = None if chunk.weights is None else w.astype(work.dtype)
        self.errors = (w * e).astype(work.dtype)
        self.squares = (w**2 * (1 - 2 * p)).astype(work.dtype)
        self.stretch, self.place = np.divmod(chunk.first + np.arange(p.size), NORMAL_ROWS)

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        first, columns = drawn.columns.start == 0, drawn.columns
        labels = drawn.as_type(self.work.dtype)
        draws = self.work.block[self.drawn : self.drawn + labels.shape[1] - first]
        later = slice(self.drawn, self.drawn + len(draws))
        multipliers = self._multipliers(draws)
        for k, own in enumerate(self.work.sets):
            sums, multiplied, spread = (
                part[k] for part in (self.sums.sums, self.sums.multiplied, self.sums.spread)
            )
            for places, rows, weights in self._tiles(own):
                if first:
                    self._moments(k, places, rows, weights)
                rough = weights.astype(self.work.dtype, copy=False)
                y = _taken(labels, rows)
                sums[places, columns] += self._weighted(rough, rows) @ y
                if own.spread:
                    spread[places, columns] += (np.square(rough) * self.squares[rows]) @ y
                if draws:
                    part = (rough * self.errors[rows]) @ _taken(multipliers, rows)
                    multiplied[places, later] += part
            # What labels have in common: e = y - p, and so with its square, p^2 + y (1 - 2p).
            sums[:, columns] -= self.sums.plain[k][1][:, None]
            if own.spread:
                spread[:, columns] += self.sums.second[k][2][:, None]
            if draws and self._in_one_stretch:
                signs = _signs(self.work.seed, int(self.stretch[0]), draws)
                multiplied[:, later] *= signs.astype(self.work.dtype)
        self.drawn += len(draws)

    @property
    def _in_one_stretch(self) -> bool:
        """Whether all rows have the same signs, which then wait for the sums."""
        return bool(self.stretch[0] == self.stretch[-1])

    def _multipliers(self, draws: range) -> AnyArray:
        """Normal numbers of the rows, which repeat with other signs every 8,192 rows."""
        work = self.work
        normals = _normals(work.seed, draws, work.normal_rows, work.dtype == np.float32)
        if self._in_one_stretch:
            return normals[self.place[0] : self.place[-1] + 1]
        found = normals[self.place]
        for number in np.unique(self.stretch).tolist():
            found[self.stretch == number] *= _signs(work.seed, number, draws).astype(work.dtype)
        return found

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


@lru_cache(maxsize=2)
def _normals(seed: int, draws: range, rows: int, single: bool) -> AnyArray:
    """Normal numbers of the first rows, (rows, draws).

    To draw others for every row would cost more than all else that is done with them. With signs
    of their own in every stretch of rows, sums over stretches are uncorrelated and have the same
    variances, and that is all that multipliers are for.
    """
    bits = keyed_bits(seed, range(rows), draws, np.uint16)
    return NORMALS.astype(np.float32 if single else np.float64)[bits]


@lru_cache(maxsize=64)
def _signs(seed: int, stretch: int, draws: range) -> FloatArray:
    """1 or -1 for every draw of a stretch of rows, (draws,)."""
    if not stretch:
        return np.ones(len(draws))
    numbers = keyed_fractions(seed, np.array([stretch]), np.array(draws, dtype=np.int64))
    return np.where(numbers < 0.5, -1.0, 1.0)


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
    """Mean residuals at all places, by one pass over the rows.

    Parameters
    ----------
    source : Source
        The rows.
    weights : Weights
        The places.
    laws : sequence of RowwiseNull
        What labels may be redrawn by.
    draws : int
        How often.
    seed : int
        Of the draws.
    spread : bool
        Also sum a^2 (y - p)^2 of every draw.
    title : str
        Of the progress bar.
    engine : Engine, optional
        Who goes over the rows; default: this machine.
    survey : Survey, optional
        Of the rows, where it was made already.

    Returns
    -------
    Averages
        Of every place.
    """
    sample = source.in_memory
    if sample is not None and not sample.design.is_simple:
        return average_by_design(sample, weights, laws, draws, seed, spread=spread, title=title)
    chosen = as_engine("auto") if engine is None else engine
    rows = chosen.survey(source) if survey is None else survey
    part = PlacesPart.of([PlaceSet(weights, spread)], rows.n, draws, seed)
    amount = work_of_parts(rows, [part], draws)
    with progress_bar(title, amount, None if draws else False) as advance:
        ((found,),) = run_together(chosen, rows, [part], Bernoulli(), draws, seed, advance)
    averages: Averages = found
    return averages
