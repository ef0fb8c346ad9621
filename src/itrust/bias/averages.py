"""Weighted mean residuals at many places, of the data and of all draws, by one pass over the rows.

A place is anything that gives every row a weight: a kernel around a point, a group, a rule. Summed
besides the residuals are the moments that tell how much such a mean varies if the bias there has
some value, and what tells how it varies in the design, see `Spreading`. Several sets of places
share one pass with a test and with tasks, on the same redrawn labels. Where rows come from a
design, clusters stay whole in a chunk. `Redraws` says how biases are judged: the rows, how their
labels are redrawn, how much error is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import ndtri

from itrust._core import (
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    as_seed,
    checked_reach,
    counted,
    keyed_fractions,
    progress_bar,
)
from itrust.bias.bands import Averages
from itrust.bias.weights import Tile, Weights
from itrust.calibration import null_warnings, whole_clusters
from itrust.data import (
    Design,
    Extract,
    Rows,
    Sample,
    Scan,
    Source,
    checked_sample,
    is_binary_scan,
    rows_at_hand,
)
from itrust.engines import (
    Auto,
    Drawn,
    Engine,
    EngineChoice,
    FunctionWork,
    Outcome,
    Plan,
    Survey,
    Work,
    added,
    as_engine,
    available_threads,
    ordered_map,
    run_together,
    work_of_parts,
)
from itrust.kernels import LocalKernel
from itrust.nulls import Bernoulli, RowwiseNull, places_null, worst_moments

CHUNK_ROWS = 8_192
CHUNK_BYTES = 2**26  # of random numbers held at once by a thread
MAX_IN_DOUBLE = 2e9  # rows x places x draws
UNITS_AT_ONCE = 8_192
NORMALS = ndtri((np.arange(2**16) + 0.5) / 2**16)
# Of the variance, added so that a covariance has a root in spite of rounding; the first suffices.
JITTERS = (1e-4, 1e-3, 1e-2, 0.1)


# What some rows contribute at m places, a being the weight of a row at a place: the sums of a times
# the residual and of a^2 times its square, (m, 1 + draws), data first; of a times 1, p, e; of a^2
# times 1, p, p^2, e^2, e; of a^3 times 1, p, p^2, p^3; their number; the weight of all rows; and
# what tells how sums spread, see `Spreading`.
PlaceSums = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class PlacesPart:
    """Sets of places as a part of a pass: it gives the `Averages` of each."""

    sets: tuple[Weights, ...]
    spreading: Spreading
    unit: float
    plans: tuple[Plan, ...] = ()

    @classmethod
    def of(
        cls,
        sets: Sequence[Weights],
        n: int,
        draws: int,
        seed: int,
        unit: float = 1.0,
        design: Design | None = None,
    ) -> PlacesPart:
        """Choose the precision: large work is done in single precision, but moments never are."""
        places = sum(weights.places for weights in sets)
        dtype = np.float32 if float(n) * places * draws > MAX_IN_DOUBLE else np.float64
        return cls(tuple(sets), spreading_of(design, draws, seed, dtype), unit)

    @property
    def width(self) -> int:
        return sum((2 if places.spread else 1) * places.places for places in self.sets)

    def works(self, block: range) -> list[Work]:
        """One for each set; how its sums spread is known from the first batch of draws."""
        first = self.spreading if block.start == 0 else None
        begins = (partial(PlacesPartial, self, weights, first) for weights in self.sets)
        return [FunctionWork(begin, self.unit) for begin in begins]

    def reduced(self, outcome: Outcome, block: range) -> tuple[PlaceSums, ...]:
        some = slice(0 if block.start == 0 else 1, None)  # the data once
        return tuple((own[0][:, some], own[1][:, some], *own[2:]) for own in outcome.works)

    def finished(self, found: Sequence[tuple[PlaceSums, ...]]) -> list[Averages]:
        batches = zip(*found, strict=True)
        return [self._averages(*pair) for pair in zip(self.sets, batches, strict=True)]

    def _averages(self, weights: Weights, batches: Sequence[PlaceSums]) -> Averages:
        unit, spreading = self.unit, self.spreading
        sums, spread = (
            np.concatenate([batch[k] for batch in batches], axis=1, dtype=np.float64)
            for k in (0, 1)
        )
        *_, plain, second, third, rows, total, spreads = batches[0]
        multiplied = spreading.multiplied(weights, second[3], spreads)
        sums *= unit
        spread *= unit**2
        mass, predicted, residual = plain * unit
        second, third = second * unit**2, third * unit**3
        squares = np.stack([second[3], -2 * second[4], second[0]])
        alone = Averages(
            sums=sums[None],
            multiplied=multiplied * unit,
            spread=spread,
            residual=residual,
            rows=rows,
            mass=mass,
            predicted=predicted,
            second=second[:3],
            third=third,
            squares=squares,
            by_design=squares,
            by_multipliers=second[3],
            carried=second[:4],
            freedom=spreading.freedom,
            total=total * unit,
        )
        return spreading.settled(alone, spreads)


class PlacesPartial:
    """What one chunk contributes, being made."""

    def __init__(
        self,
        part: PlacesPart,
        weights: Weights,
        spreading: Spreading | None,
        chunk: Rows,
        w: FloatArray,
        columns: int,
    ) -> None:
        self.weights, self.spreading, self.chunk, self.w = weights, spreading, chunk, w
        self.dtype = dtype = part.spreading.dtype
        m = weights.places
        self.sums = np.zeros((m, columns), dtype)
        self.spread = np.zeros((m, columns if weights.spread else 1), dtype)
        self.powers = np.zeros((3, m)), np.zeros((5, m)), np.zeros((4, m))
        self.rows = np.zeros(m, dtype=np.int64)
        self.spreads = () if spreading is None else spreading.empty(weights)
        p = chunk.p
        self.e = e = chunk.y - p
        # Powers of the weights times these make all moments.
        self.factors = [
            np.column_stack([w, w * p, w * e]),
            np.column_stack([np.ones_like(p), p, p**2, e**2, e]) * w[:, None] ** 2,
            np.column_stack([np.ones_like(p), p, p**2, p**3]) * w[:, None] ** 3,
        ]
        self.errors = (w * e).astype(dtype)
        # What squares of labels count at a place with weight 1.
        self.squares = (w**2 * (1 - 2 * p)).astype(dtype)
        if spreading is not None:
            self.multiplied = spreading.multiplied_errors(self)

    def add(self, drawn: Drawn) -> None:
        columns, labels = drawn.columns, drawn.as_type(self.dtype)
        sums, spread = self.sums, self.spread
        w = None if self.chunk.weights is None else self.w.astype(self.dtype)
        for places, rows, weights in self._tiles():
            if columns.start == 0:
                self._moments(places, rows, weights)
            rough = weights.astype(self.dtype, copy=False)
            in_order = rows.size == len(labels) and rows[0] == 0 and rows[-1] == rows.size - 1
            y = labels if in_order else labels[rows]
            sums[places, columns] += (rough if w is None else rough * w[rows]) @ y
            if self.weights.spread:
                spread[places, columns] += (np.square(rough) * self.squares[rows]) @ y
            if columns.start == 0 and self.spreading is not None:
                self.spreading.add(self, (places, rows, rough))
        # What labels have in common: e = y - p, and so with its square, p^2 + y (1 - 2p).
        sums[:, columns] -= self.powers[0][1][:, None]
        if self.weights.spread:
            spread[:, columns] += self.powers[1][2][:, None]

    def _tiles(self) -> Iterator[Tile]:
        """Places, rows of the chunk that count there, and their weights (places, rows)."""
        whole = self.chunk.cluster is not None
        return self.weights.tiles(self.chunk.points, whole=whole, dtype=self.dtype)

    def _moments(self, places: IntArray, rows: IntArray, weights: AnyArray) -> None:
        power = np.ones(weights.shape)
        self.rows[places] += np.count_nonzero(weights, axis=1)
        for into, factors in zip(self.powers, self.factors, strict=True):
            power *= weights
            into[:, places] += (power @ factors[rows]).T

    def finished(self) -> PlaceSums:
        total = float(self.w.sum())
        return self.sums, self.spread, *self.powers, self.rows, total, self.spreads


def average(
    source: Source,
    weights: Weights,
    laws: Sequence[RowwiseNull] = (),
    draws: int = 0,
    seed: int = 0,
) -> Averages:
    """Mean residuals at the places of one set."""
    return average_all(source, [weights], laws, draws, seed)[0]


def average_all(
    source: Source,
    sets: Sequence[Weights],
    laws: Sequence[RowwiseNull] = (),
    draws: int = 0,
    seed: int = 0,
    *,
    title: str = "local bias",
    engine: Engine | None = None,
    survey: Survey | None = None,
) -> list[Averages]:
    """Mean residuals at the places of several sets, by one pass over the rows."""
    sample = source.in_memory
    if sample is not None and not sample.design.is_simple:
        return _by_design(sample, sets, laws, draws, seed, title)
    engine = engine or as_engine("auto")
    survey = survey or engine.survey(source)
    part = PlacesPart.of(sets, survey.n, draws, seed, survey.unit)
    amount = work_of_parts(survey, [part], draws)
    with progress_bar(title, amount, None if draws else False) as advance:
        (averages,) = run_together(engine, survey, [part], Bernoulli(), draws, seed, advance)
    return list(averages)


def _by_design(
    sample: Sample,
    sets: Sequence[Weights],
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
    weights = sample.weights_or_ones

    def summed(rows: slice) -> tuple[PlaceSums, ...]:
        chunk = sample.cut(rows, None if sample.weights is None else weights)
        labels = np.empty((chunk.n, columns), part.spreading.dtype)
        labels[:, 0] = chunk.y
        for k, law in enumerate(laws if draws else ()):
            labels[:, 1 + k * draws : 1 + (k + 1) * draws] = law.draw(chunk, range(draws), seed)
        begun = [work.begin(chunk, weights[rows], columns) for work in works]
        for sums in begun:
            sums.add(Drawn(slice(0, columns), labels, is_label=True))
        return tuple(sums.finished() for sums in begun)

    size = int(np.clip(CHUNK_BYTES // (16 * (draws + 1)), 256, CHUNK_ROWS))
    cluster = np.arange(sample.n) if sample.cluster is None else sample.cluster
    chunks = list(whole_clusters(cluster, size))
    parts = ordered_map(summed, chunks, min(available_threads(), len(chunks)))
    totals: tuple[PlaceSums, ...] = ()
    with progress_bar(title, sample.n, None if draws else False) as advance:
        for rows, sums in zip(chunks, parts, strict=True):
            totals = added(totals, sums, in_place=True) if totals else sums
            advance(rows.stop - rows.start)
    by_law = []
    for averages in part.finished([totals]):  # the data before the draws of every law
        data, redrawn = averages.sums[:, :, :1], averages.sums[0, :, 1:]
        redrawn = redrawn.reshape(len(redrawn), len(laws), draws).transpose(1, 0, 2)
        both = np.concatenate([np.repeat(data, len(laws), axis=0), redrawn], axis=2)
        by_law.append(replace(averages, sums=both))
    return by_law


@dataclass(frozen=True, eq=False)
class Spreading:
    """How sums of residuals vary: of independent rows by a covariance for every family of places.

    Normal numbers, one a row, that the residuals would be multiplied with are not drawn: their
    sums at all places are normal with a covariance that is itself a sum over rows, so they are
    drawn from it when all rows have been seen. In a design, numbers of clusters or replicates are
    drawn and used.
    """

    draws: int
    seed: int
    dtype: DTypeLike

    @property
    def freedom(self) -> float | None:
        """Degrees of freedom of a design."""
        return None

    def empty(self, weights: Weights) -> tuple[AnyArray, ...]:
        """What is added up over chunks."""
        families = weights.families if self.draws else []
        return tuple(np.zeros((len(family),) * 2, self.dtype) for family in families)

    def multiplied_errors(self, partial: PlacesPartial) -> AnyArray:
        """Weighted residuals of a chunk, in a design times normal numbers, (rows, draws)."""
        return partial.errors

    def add(self, partial: PlacesPartial, tile: Tile) -> None:
        """Take in some rows of a chunk at some places; clusters are whole."""
        if not self.draws:
            return
        places, rows, weights = tile
        shares = weights * partial.multiplied[rows]
        families = partial.weights.families
        for family, into in zip(families, partial.spreads, strict=True):
            first, last = np.searchsorted(places, [family.start, family.stop])
            if first < last:
                some, at = shares[first:last], places[first:last] - family.start
                into[np.ix_(at, at)] += some @ some.T

    def multiplied(
        self, weights: Weights, variance: FloatArray, spreads: tuple[AnyArray, ...]
    ) -> FloatArray:
        """Sums of residuals times normal numbers, (m, draws)."""
        drawn = np.empty((variance.size, self.draws))
        families = weights.families if self.draws else []
        for part, (family, covariance) in enumerate(zip(families, spreads, strict=True)):
            some = slice(family.start, family.stop)
            rng = np.random.default_rng([self.seed, 1, part])
            drawn[some] = _normal_sums(covariance, variance[some], self.draws, rng)
        return drawn

    def settled(self, alone: Averages, spreads: tuple[AnyArray, ...]) -> Averages:  # noqa: ARG002
        """What is known as the design has it, given what it would be of independent rows."""
        return alone


def spreading_of(design: Design | None, draws: int, seed: int, dtype: DTypeLike) -> Spreading:
    """The one that fits a design; None: independent rows."""
    if design is None:
        return Spreading(draws, seed, dtype)
    of_design = _ByReplicates if design.known_by_replicates else _ByClusters
    return of_design(draws, as_seed(np.random.default_rng([seed, 1])), dtype, design)


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


@dataclass(frozen=True, eq=False)
class _ByClusters(Spreading):
    """Clusters, drawn within strata: sums over clusters around the mean of their stratum."""

    design: Design

    @property
    def freedom(self) -> float:
        return self.design.freedom

    @property
    def shape(self) -> tuple[int, int]:
        """What a place keeps of the units: kinds of sums, and how many of each."""
        return 8, self.design.stratum_count

    def empty(self, weights: Weights) -> tuple[AnyArray, ...]:
        (kinds, units), m = self.shape, weights.places
        return np.zeros((m, self.draws)), np.zeros((kinds, m, units))

    def multiplied_errors(self, partial: PlacesPartial) -> AnyArray:
        rows = partial.chunk.rows
        return np.asarray(self.multipliers(slice(rows.start, rows.stop)) * partial.errors[:, None])

    def add(self, partial: PlacesPartial, tile: Tile) -> None:
        places, rows, weights = tile
        multiplied, totals = partial.spreads
        multiplied[places] += weights @ partial.multiplied[rows]
        a, numbers = weights * partial.w[rows], partial.chunk.first + rows
        totals[:, places] += self.totals(a, partial.e[rows], partial.chunk.p[rows], numbers)

    def multiplied(self, *known: Any) -> FloatArray:
        return np.asarray(known[-1][0])

    def _normals(self, units: IntArray) -> AnyArray:
        draws = np.arange(self.draws, dtype=np.int64)
        fractions = keyed_fractions(self.seed, units[:, None], draws)
        return NORMALS.astype(self.dtype)[(fractions * 2**16).astype(np.int64)]

    @cached_property
    def _factor(self) -> FloatArray:
        sizes = self.design.stratum_sizes
        return np.asarray(sizes / np.maximum(sizes - 1, 1))

    def multipliers(self, rows: slice) -> AnyArray:
        """Normal numbers of some rows, (rows, draws); sums of them vary as the design says."""
        units, where = np.unique(self.design.units[rows], return_inverse=True)
        normals = self._normals(units)
        if self.design.stratum_count > 1:
            stratum = self.design.stratum_of_unit[units]
            factor = np.sqrt(self._factor).astype(self.dtype)
            normals = (normals - self._means[stratum]) * factor[stratum][:, None]
        return np.asarray(normals[where])

    @cached_property
    def _means(self) -> AnyArray:
        """Means of the normal numbers of every stratum, (strata, draws)."""
        stratum, sizes = self.design.stratum_of_unit, self.design.stratum_sizes
        order = np.argsort(stratum, kind="stable")
        sums = np.zeros((sizes.size, self.draws))
        for at in range(0, order.size, UNITS_AT_ONCE):
            some = order[at : at + UNITS_AT_ONCE]
            first = np.flatnonzero(np.diff(stratum[some], prepend=-1))
            sums[stratum[some[first]]] += np.add.reduceat(self._normals(some), first, axis=0)
        return (sums / sizes[:, None]).astype(self.dtype)

    def totals(self, a: FloatArray, e: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:
        """What rows with weights (places, rows) add to totals, (kinds, places, units)."""
        unit = self.design.units[rows]
        order = np.argsort(unit, kind="stable")
        first = np.flatnonzero(np.diff(unit[order], prepend=-1))
        parts = (a * e, a, a * p)
        errors, masses, predicted = (np.add.reduceat(x[:, order], first, axis=1) for x in parts)
        variance, third = worst_moments(masses, predicted)
        squares = errors**2, errors * masses, masses**2
        kinds = np.stack([*squares, errors, masses, variance, third, variance**2])
        if self.design.stratum_count == 1:
            return np.asarray(kinds.sum(axis=2, keepdims=True))
        totals = np.zeros((8, len(a), self.design.stratum_count))
        stratum = self.design.stratum_of_unit[unit[order[first]]]
        for into, kind in zip(totals, kinds, strict=True):
            np.add.at(into.T, stratum, kind.T)
        return totals

    def settled(self, alone: Averages, spreads: tuple[AnyArray, ...]) -> Averages:
        ee, em, mm, e, m, *worst = spreads[1]
        sizes = self.design.stratum_sizes
        parts = ee - e * e / sizes, -2 * (em - e * m / sizes), mm - m * m / sizes
        variance = np.stack([(part * self._factor).sum(axis=1) for part in parts])
        one = self.design.stratum_count == 1  # then multipliers are not centred
        return replace(
            alone,
            by_design=variance,
            by_multipliers=ee[:, 0] if one else variance[0],
            carried=np.stack([kind.sum(axis=1) for kind in (mm, *worst)]),
        )


class _ByReplicates(_ByClusters):
    """Replicate weights: the sum with each of them."""

    @property
    def shape(self) -> tuple[int, int]:
        return 2, self.design.replicate_deviations.shape[1]

    def multipliers(self, rows: slice) -> AnyArray:
        deviations = self.design.replicate_deviations[rows]
        normals = self._normals(np.arange(deviations.shape[1], dtype=np.int64))
        return (deviations @ normals).astype(self.dtype)

    def totals(self, a: FloatArray, e: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:  # noqa: ARG002
        deviations = self.design.replicate_deviations[rows]
        return np.stack([(a * e) @ deviations, a @ deviations])

    def settled(self, alone: Averages, spreads: tuple[AnyArray, ...]) -> Averages:
        errors, masses = spreads[1]
        # A replicate of the mean is (sum + change) / (mass + change), without linearisation.
        assert self.design.replication is not None
        scale = np.sqrt(self.design.replication.scale(errors.shape[1]))
        mass = alone.mass[:, None]
        whole = mass + masses / scale
        factor = np.divide(mass, whole, out=np.ones_like(whole), where=whole > 0) ** 2
        parts = errors**2, -2 * errors * masses, masses**2
        # As many equal clusters as replicates have degrees of freedom, and one.
        count = self.design.freedom + 1
        variance, third = worst_moments(alone.mass / count, alone.predicted / count)
        worst = count * variance, count * third, count * variance**2
        return replace(
            alone,
            by_design=np.stack([(part * factor).sum(axis=1) for part in parts]),
            by_multipliers=np.square(errors).sum(axis=1),
            carried=np.stack([alone.second[0], *worst]),
        )


@dataclass(frozen=True, eq=False)
class Redraws:
    """A sample and how its labels are redrawn: everything is checked here, once."""

    sample: Sample
    null: RowwiseNull
    draws: int
    seed: int
    alpha: float
    extract: Extract | None = None
    engine: Engine = field(default_factory=Auto)

    def __post_init__(self) -> None:
        if self.extract is None:
            object.__setattr__(self, "engine", self.engine.in_memory)

    @classmethod
    def of(
        cls,
        sample: Sample | Scan,
        *,
        alpha: float,
        draws: int,
        rng: Rng = None,
        engine: EngineChoice = "auto",
    ) -> Redraws:
        """Check the rows and the settings; of very many rows, random ones are at hand.

        Rows that come from a design are loaded: their clusters have to stay whole.
        """
        number, seed = checked_reach(draws, alpha), as_seed(rng)
        chosen, rows = as_engine(engine), sample
        if is_binary_scan(rows) and not rows.is_simple:
            rows = rows.load()
        if not is_binary_scan(rows):
            rows = checked_sample(rows)
            if not rows.design.is_simple or rows.n <= rows_at_hand():
                return cls(rows, places_null(rows), number, seed, float(alpha), None, chosen)
        extract = chosen.extract(rows)
        return cls.of_extract(extract, alpha=float(alpha), draws=number, seed=seed, engine=chosen)

    @classmethod
    def of_extract(
        cls, extract: Extract, *, alpha: float, draws: int, seed: int, engine: Engine
    ) -> Redraws:
        """Take rows that were extracted already."""
        some = None if extract.is_all else extract
        return cls(extract.some, places_null(extract.some), draws, seed, alpha, some, engine)

    @property
    def source(self) -> Source:
        """All rows."""
        return self.sample if self.extract is None else self.extract.source

    @property
    def n(self) -> int:
        """Number of all rows."""
        return self.sample.n if self.extract is None else self.extract.n

    @cached_property
    def survey(self) -> Survey:
        """What the engine has to know of the rows."""
        if self.extract is None:
            return self.engine.survey(self.sample)
        return self.engine.survey_of(self.extract)

    def averages(self, *sets: Weights, title: str) -> list[Averages]:
        """Mean residuals of the data and of every redraw at some places, over all rows."""
        asked = (self.source, sets, self.laws, self.draws, self.seed)
        survey = None if self.extract is None else self.survey
        return average_all(*asked, title=title, engine=self.engine, survey=survey)

    def again(
        self, *, alpha: float | None = None, draws: int | None = None, rng: Rng = None
    ) -> Redraws:
        """The same rows, redrawn with other settings."""
        allowed = self.alpha if alpha is None else alpha
        number = checked_reach(self.draws if draws is None else draws, allowed)
        seed, allowed = self.seed if rng is None else as_seed(rng), float(allowed)
        if (number, seed, allowed) == (self.draws, self.seed, self.alpha):
            return self  # with the laws that it has found
        return replace(self, draws=number, seed=seed, alpha=allowed)

    @cached_property
    def laws(self) -> tuple[RowwiseNull, ...]:
        """What labels may be redrawn by; none where replicate weights are all that is known."""
        return () if self.null.keeps_residuals else self.null.laws(self.sample, self.seed)

    @cached_property
    def kernels(self) -> dict[tuple[Any, ...], LocalKernel]:
        """Kernels of pictures, whose widths are chosen once for the same covariates."""
        return {}

    @property
    def settings(self) -> dict[str, Any]:
        """What a table of biases keeps of all this."""
        return {
            "alpha": self.alpha,
            "null": self.null,
            "draws": self.draws,
            "seed": self.seed,
            "notes": self.notes,
            "out_of_fold": bool(self.sample.folds),
        }

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes to read beside a table of biases."""
        sample = self.sample
        said = [*sample.notes, *null_warnings(sample, self.null)]
        if sample.impossible.size:
            said.append(
                f"{counted(sample.impossible.size, 'row')} with a label that the model called "
                f"impossible (p = 0 and y = 1, or p = 1 and y = 0): the model is miscalibrated "
                f"there, whatever the size"
            )
        if sample.design.known_by_replicates:
            said.append(
                "where few events may happen, replicate weights alone give no p-value, and 1 "
                "stands in its place; clusters would give one"
            )
        if sample.clusters is not None:
            said.append(
                f"p-values and bands are approximate, by clusters ({sample.clusters:,} of them); "
                f"sizes count clusters"
            )
        return tuple(said)


Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Question(Generic[Made]):
    """Places whose bias is wanted, and what is made of their mean residuals."""

    redraws: Redraws
    places: Weights
    finished: Callable[[Averages], Made]
    title: str

    def made(self) -> Made:
        """The answer, by a pass of its own."""
        return self.finished(*self.redraws.averages(self.places, title=self.title))


def names_of(names: object) -> tuple[str, ...]:
    """One name of a covariate or several, each once; refuse what is no name.

    >>> names_of("age"), names_of(["sex", "race", "sex"])
    (('age',), ('sex', 'race'))
    """
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        problem = "name covariates by text, such as 'sex' or ['sex', 'race'], not {value}"
        raise InputError(problem, argument="names", value=names)
    return tuple(dict.fromkeys(names))
