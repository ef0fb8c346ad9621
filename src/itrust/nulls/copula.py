"""Labels and classes redrawn alike within clusters: every row keeps its probabilities exactly.

And which null fits some rows, the one that every test and every interval takes by default: the
choice looks at probabilities, weights and clusters, never at labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtr, ndtri

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    as_seed,
    keyed_bits,
    keyed_fractions,
)
from itrust.data import Rows, Sample, Source
from itrust.nulls.base import Bernoulli, Rademacher, Replicates, RowwiseNull

DIGITS = 2**16
EDGES = ndtri(np.arange(DIGITS + 1) / DIGITS)  # of the normal numbers that share a digit
LOWER, UPPER = EDGES[:-1], EDGES[1:]
GRID = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0)
SET_DRAWS, CLASS_SET_DRAWS = 399, 199
SURPRISING = 0.05  # on either side: a correlation whose draws are this far from the labels is out
MAX_SET_ROWS = 20_000  # so many rows at most judge the correlation
DRAWS_AT_ONCE = 64
MAX_LAWS = 5  # of classes, from the least to the largest correlations not contradicted
BELOW_1 = 1 - 2.0**-53
BITS = 2.0**32
NUMBERS_AT_ONCE = 2**17  # of rows and draws, so that they stay near the processor
MAX_SKEWNESS2 = 0.05  # squared skewness up to which a sum over clusters is nearly symmetric
MAX_SKEWNESS2_OF_THIRDS = 0.5  # the same of the thirds with the lowest and highest probabilities
MIN_CLUSTERS = 10.0  # effective ones, below which nothing holds the level
MIN_SYMMETRIC = 7.0  # the same where signs may be flipped: six can give no p-value below .03

# What several parts of an audit ask of the same rows; forgotten with them.
_FOUND: WeakKeyDictionary[Sample, dict[int, tuple[float, ...]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Copula(RowwiseNull):
    """Redraw labels from their probabilities, alike within clusters.

    A label is 1 where sqrt(rho) z + sqrt(1 - rho) w is below the normal quantile of its
    probability, with one standard normal z a cluster and one w a row. So every row keeps its
    probability exactly, however near to 0 or 1 it is; rho = 0 is `Bernoulli`, and with rho = 1
    a cluster whose probabilities are equal has one label.

    Of several classes every one has a waiting time with the exponential law of rate p_k, all of
    them independent, and the row falls on the class that comes first: P(y = k) = p_k exactly,
    whatever the order of the classes. The time of a class ties the rows of a cluster together: it
    is -log(1 - Phi(g)) / p_k with g = sqrt(rho_k) z + sqrt(1 - rho_k) w as above. One class against
    the rest is about as much alike as two labels with the same rho.

    Without a value, rho is one of several that the labels do not contradict (`laws`), and a
    p-value is the largest of theirs. Exact if the labels follow such a law and rho is among
    those; approximate else.

    Parameters
    ----------
    rho : float or tuple of float, optional
        Correlation within clusters of the normal numbers behind the labels, from 0 to 1; of several
        classes one for all, or one for each. Default: not known.
    """

    rho: float | tuple[float, ...] | None = None
    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "labels redrawn from the probabilities, alike within clusters"
    keeps_clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rho is not None and not all(0 <= rho <= 1 for rho in np.atleast_1d(self.rho)):
            problem = "{argument} is a correlation from 0 to 1, not {value}"
            raise InputError(problem, argument="rho", value=self.rho)

    def laws(self, source: Source, seed: int) -> tuple[RowwiseNull, ...]:
        if self.rho is not None:
            return (self,)
        sample = source.in_memory
        if sample is None or sample.cluster is None:
            problem = "Copula() needs rows in memory that have clusters; use Bernoulli()"
            raise InputError(problem, argument="null", value=self)
        if sample.predictions.shape[1] == 1:
            return tuple(Copula(rho) for rho in compatible_correlations(sample, seed))
        p, units = sample.predictions, sample.design.units
        sets = compatible_class_correlations(p, units, sample.codes, sample.weights, seed)
        count = min(max(len(own) for own in sets), MAX_LAWS)
        at = np.linspace(0, 1, count) if count > 1 else np.zeros(1)
        profiles = [
            tuple(own[round(share * (len(own) - 1))] for own in sets) for share in at.tolist()
        ]
        return tuple(Copula(profile) for profile in dict.fromkeys(profiles))

    def draw(self, chunk: Rows, draws: range, seed: int) -> AnyArray:
        if self.rho is None or chunk.cluster is None:
            problem = "Copula() draws for rows with clusters, by one of its laws"
            raise InputError(problem, argument="null", value=self)
        p, units = chunk.predictions, chunk.cluster
        if p.shape[1] > 1:
            return classes_alike(p, units, self.rho, chunk.rows, draws, seed)
        units, unit = np.unique(units, return_inverse=True)
        shared_seed = as_seed(np.random.default_rng([seed, 2]))
        shared = np.sqrt(self.rho) * _shared(shared_seed, units, draws)[unit]
        quantile = ndtri(chunk.p)[:, None]
        if self.rho == 1:
            return np.asarray(shared < quantile)
        # Where shared + sqrt(1 - rho) w < quantile, w by 16 bits, and if they leave it open by 53.
        limit = (quantile - shared) / np.sqrt(np.subtract(1.0, self.rho))
        digit = keyed_bits(seed, chunk.rows, draws, np.uint16)
        labels: BoolArray = UPPER[digit] <= limit
        at, draw = np.nonzero((LOWER[digit] < limit) & ~labels)
        fraction = keyed_fractions(seed, at + chunk.first, draw + draws.start)
        labels[at, draw] = ndtri((digit[at, draw] + fraction) / DIGITS) < limit[at, draw]
        return labels


def classes_alike(
    p: FloatArray,
    clusters: IntArray,
    rho: float | tuple[float, ...],
    rows: range,
    draws: range,
    seed: int,
) -> AnyArray:
    """Classes of some rows, drawn by the waiting times of a copula."""
    rhos = np.broadcast_to(rho, p.shape[1]).tolist()
    units, unit = np.unique(clusters, return_inverse=True)
    codes = np.zeros((len(rows), len(draws)), dtype=np.int16)
    seeds = [_seeds(seed, k) for k in range(len(rhos))]
    size = max(DRAWS_AT_ONCE, NUMBERS_AT_ONCE // len(rows))
    for at in range(0, len(draws), size):
        block = draws[at : at + size]
        normals = (
            (
                _shared(shared_seed, units, block)[unit] if rho > 0 else 0.0,
                _own(own_seed, rows, block) if rho < 1 else 0.0,
            )
            for rho, (shared_seed, own_seed) in zip(rhos, seeds, strict=True)
        )
        _first_to_come(codes[:, at : at + len(block)], normals, rhos, p)
    return codes


def _seeds(seed: int, code: int) -> tuple[int, int]:
    """Of the numbers that clusters share, and of those of the rows."""
    made = np.random.SeedSequence([seed, 4, code]).generate_state(2, np.uint64)
    return int(made[0] >> 16), int(made[1] >> 16)


def _own(seed: int, rows: range, draws: range) -> FloatArray:
    """Standard normal numbers of rows and draws, to 32 bits."""
    return np.asarray(ndtri((keyed_bits(seed, rows, draws) + 0.5) / BITS))


def _first_to_come(
    codes: AnyArray,
    normals: Iterable[tuple[FloatArray | float, FloatArray | float]],
    correlations: Iterable[float],
    p: FloatArray,
) -> None:
    """Write the class of every row that comes first, from shared and own numbers of each class."""
    first = np.full(codes.shape, np.inf)
    for k, ((shared, own), rho) in enumerate(zip(normals, correlations, strict=False)):
        g = np.sqrt(rho) * shared + np.sqrt(1 - rho) * own
        with np.errstate(divide="ignore", over="ignore"):  # a class of probability 0 never comes
            waited = -np.log1p(-np.minimum(ndtr(g), BELOW_1)) / p[:, [k]]
        earlier: BoolArray = waited < first
        np.copyto(codes, k, where=earlier)
        np.copyto(first, waited, where=earlier)


def compatible_correlations(sample: Sample, seed: int) -> tuple[float, ...]:
    """The values of rho that the labels of a sample do not contradict."""
    known = _FOUND.setdefault(sample, {})
    if seed not in known:
        part = sample.take(_rows_by_cluster(sample.design.units, MAX_SET_ROWS))
        assert part.cluster is not None
        units, unit = np.unique(part.cluster, return_inverse=True)
        own_seed = as_seed(np.random.default_rng([seed, 3]))
        shared_seed = as_seed(np.random.default_rng([own_seed, 2]))
        quantile = ndtri(part.p)[:, None]

        def on_grid(draws: range) -> Iterator[BoolArray]:
            """Labels by every correlation of the grid, from the same normal numbers."""
            shared = _shared(shared_seed, units, draws)[unit]
            own = _shared(own_seed, np.arange(part.n), draws)
            for rho in GRID:
                yield np.sqrt(rho) * shared + np.sqrt(1 - rho) * own < quantile

        labels = {1: part.p}, part.y, part.cluster, part.weights
        (known[seed],) = _compatible(*labels, SET_DRAWS, on_grid)
    return known[seed]


def compatible_class_correlations(
    p: FloatArray, units: IntArray, codes: IntArray, weights: FloatArray | None, seed: int
) -> list[tuple[float, ...]]:
    """The same for every class, whose draws have the same correlation for all.

    So a rare class that comes in clusters is not taken for one that does not because frequent ones
    do not.
    """
    rows = _rows_by_cluster(units, max(MAX_SET_ROWS // p.shape[1], 2_000))
    p, units, codes = p[rows], units[rows], codes[rows]
    weights = None if weights is None else weights[rows]
    seed = as_seed(np.random.default_rng([seed, 3]))
    clusters, unit = np.unique(units, return_inverse=True)
    seeds = [_seeds(seed, k) for k in range(p.shape[1])]

    def on_grid(draws: range) -> Iterator[AnyArray]:
        normals = [
            (_shared(shared, clusters, draws)[unit], _own(own, range(len(p)), draws))
            for shared, own in seeds
        ]
        for rho in GRID:
            drawn = np.zeros((len(p), len(draws)), dtype=np.int16)
            _first_to_come(drawn, normals, repeat(rho), p)
            yield drawn

    return _compatible(dict(enumerate(p.T)), codes, units, weights, CLASS_SET_DRAWS, on_grid)


def _compatible(
    outcomes: Mapping[int, FloatArray],
    codes: AnyArray,
    units: IntArray,
    weights: FloatArray | None,
    count: int,
    on_grid: Callable[[range], Iterable[AnyArray]],
) -> list[tuple[float, ...]]:
    """For every outcome, values of rho whose own draws are as much alike as its labels are.

    What is compared is the sum over clusters of ((sum e)^2 - sum e^2), divided by its largest
    possible value given the squares, sum over clusters of (m - 1) sum e^2: the share of a
    positive's cluster that is positive, too, which few events tell well. The value whose draws are
    nearest is always among them. With weights, values that agree with weighted residuals are kept
    as well. Rows are in the order of their clusters.
    """
    first = np.flatnonzero(np.diff(units, prepend=-1))
    by_weight = [np.ones((units.size, 1))]
    if weights is not None:  # heavy rows may be more alike than others
        by_weight.append(weights[:, None])

    def alike(labels: AnyArray) -> list[list[FloatArray]]:
        residuals = ((labels == code) - p[:, None] for code, p in outcomes.items())
        return [[_alikeness(w * one, first) for w in by_weight] for one in residuals]

    observed = np.array(alike(codes[:, None]))[..., 0]
    drawn = np.empty((*observed.shape, len(GRID), count))
    for at in range(0, count, DRAWS_AT_ONCE):
        draws = range(at, min(at + DRAWS_AT_ONCE, count))
        for number, labels in enumerate(on_grid(draws)):
            drawn[:, :, number, draws.start : draws.stop] = alike(labels)
    sets = []
    for k, p in enumerate(outcomes.values()):
        seen = observed[k][:, None, None]
        above, below = drawn[k] >= seen - 1e-9, drawn[k] <= seen + 1e-9
        # The smaller of the shares of draws that are at least, and at most, as large as the data.
        counts = np.minimum(above.sum(axis=2), below.sum(axis=2))
        nearness = (1 + counts) / (1 + count)
        nearest = nearness == nearness.max(axis=1, keepdims=True)
        kept = ((nearness > SURPRISING) | nearest).any(axis=0)
        varies = ((p > 0) & (p < 1)).any()
        sets.append(tuple(np.array(GRID)[kept].tolist()) if varies else (0.0,))
    return sets


def _shared(seed: int, units: IntArray, draws: range) -> FloatArray:
    """Standard normal numbers of units and draws."""
    fractions = keyed_fractions(seed, units[:, None], np.array(draws))
    return np.asarray(ndtri(np.maximum(fractions, 2.0**-54)))


def _rows_by_cluster(units: IntArray, size: int) -> IntArray:
    """Rows in the order of their clusters: all of them, or some random ones of each."""
    n, clusters = units.size, int(units.max()) + 1
    tickets = keyed_fractions(0, np.arange(n), np.zeros(1, dtype=np.int64))
    rows = np.lexsort((tickets, units))
    if n > size:
        some = size // 2  # clusters at most, and so many rows of each that they fit
        most = max(size // min(clusters, some), 2)
        chance = keyed_fractions(1, np.arange(clusters), np.zeros(1, dtype=np.int64))
        chosen = np.argsort(np.argsort(chance, kind="stable")) < some
        sizes = np.bincount(units)
        within = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = rows[(within < most) & chosen[units[rows]]]
    return rows


def _alikeness(residuals: FloatArray, first: IntArray) -> FloatArray:
    """How much residuals of a cluster go together, from rows in the order of clusters, (columns,).

    `first` has the first row of every cluster.
    """
    sums = np.add.reduceat(residuals, first, axis=0)
    squares = np.add.reduceat(np.square(residuals), first, axis=0)
    others = np.diff(np.append(first, len(residuals)))[:, None] - 1
    possible = (others * squares).sum(axis=0)
    together = (np.square(sums) - squares).sum(axis=0)
    return np.asarray(
        np.divide(together, possible, out=np.zeros_like(together), where=possible > 0)
    )


@dataclass(frozen=True)
class Carriers:
    """What carries a sum of residuals, if every cluster had one label: the worst case."""

    clusters: int
    effective: float
    skewness2: float
    skewness2_of_thirds: float = 0.0

    @property
    def symmetric(self) -> bool:
        """Whether the sum is so nearly symmetric that signs of clusters may be flipped."""
        thirds = self.skewness2_of_thirds <= MAX_SKEWNESS2_OF_THIRDS
        return self.skewness2 <= MAX_SKEWNESS2 and thirds

    @property
    def needed(self) -> float:
        """Effective clusters that a p-value needs."""
        return MIN_SYMMETRIC if self.symmetric else MIN_CLUSTERS

    @property
    def enough(self) -> bool:
        """Whether there are clusters enough for any p-value."""
        return self.effective >= self.needed


def carriers_of(sample: Sample) -> Carriers:
    """Count what carries the sum of all residuals, from probabilities, weights and clusters."""
    design, w = sample.design, sample.weights_or_ones
    mass, predicted = design.totals(w), design.totals(w * sample.p)
    if design.known_by_replicates:
        count = int(design.freedom) + 1
        overall = float(predicted.sum() / mass.sum())
        mass, predicted = np.ones(count), np.full(count, overall)
    spread, third = worst_moments(mass, predicted)
    squares = float(np.square(spread).sum())
    effective = float(spread.sum()) ** 2 / squares if squares > 0 else 0.0
    # The clusters with low and those with high probabilities.
    mean = np.divide(predicted, mass, out=np.zeros_like(predicted), where=mass > 0)
    order, size = np.argsort(mean, kind="stable"), max(mass.size // 3, 1)
    thirds = [_skewness2(spread[part], third[part]) for part in (order[:size], order[-size:])]
    return Carriers(int(mass.size), effective, _skewness2(spread, third), max(thirds))


def _skewness2(variance: FloatArray, third: FloatArray) -> float:
    """Squared skewness of a sum, from second and third moments of its parts."""
    total = float(variance.sum())
    return float(third.sum()) ** 2 / total**3 if total > 0 else float(np.inf)


def worst_moments(mass: FloatArray, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance and third moment of clusters' sums of residuals if each had a single label."""
    mean = np.divide(predicted, mass, out=np.zeros_like(predicted), where=mass > 0)
    variance = mean * (1 - mean) * mass**2
    return variance, variance * (1 - 2 * mean) * mass


def fitting_null(source: Source) -> RowwiseNull:
    """Give the null that keeps what is known about the dependence of rows."""
    sample = source.in_memory
    if sample is None or sample.design.rows_are_independent:
        return Bernoulli()
    if sample.design.known_by_replicates:
        return Replicates.of(sample.design)
    return Rademacher() if carriers_of(sample).symmetric else Copula()


def places_null(sample: Sample) -> RowwiseNull:
    """Give the null for groups, slices and points, some of which may hold few events."""
    if sample.design.known_by_replicates:
        return Replicates.of(sample.design)
    return Bernoulli() if sample.cluster is None else Copula()


def is_symmetric(variance: FloatArray, third: FloatArray, squares: FloatArray) -> BoolArray:
    """Mark sums over clusters that are nearly symmetric and that many clusters carry."""
    safe = np.where(variance > 0, variance, 1.0)
    many = variance**2 >= MIN_CLUSTERS * squares
    return np.asarray((variance > 0) & (third**2 <= MAX_SKEWNESS2 * safe**3) & many)
