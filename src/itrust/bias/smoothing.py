"""Weighted mean residuals at many places, for the data and for all draws, in one pass.

A place is anything that gives every row a weight: a kernel around a point, a group, a rule. What
is summed besides the residuals are the moments that tell how much such a mean varies if the
bias there has some value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, BoolArray, FloatArray, IntArray, as_seed, progress_bar
from itrust.bias.spreading import Spreading
from itrust.calibration import normal_score
from itrust.data import Chunk, Points, Predicate, Sample
from itrust.engines import available_threads, one_blas_thread
from itrust.nulls import RowwiseNull, is_symmetric

CHUNK_ROWS = 8_192
CHUNK_BYTES = 2**26  # of random numbers held at once by a thread
MAX_IN_DOUBLE = 2e9  # rows x places x draws
MAX_FAMILY = 2_048  # places whose covariance is held
BEYOND_DOUBT = 1e5  # score of a label that was called impossible: above all others

Tile = tuple[IntArray, IntArray, AnyArray]  # places, rows and the weights between them


class Family(NamedTuple):
    """Places whose covariance is known."""

    part: int  # 0, unless those that are judged together had to be cut
    places: range


def families_of(places: range) -> list[Family]:
    """Cut places that are judged together into families of at most 2,048."""
    starts = range(0, len(places), MAX_FAMILY)
    return [Family(k, places[at : at + MAX_FAMILY]) for k, at in enumerate(starts)]


class Weights(ABC):
    """How much every row counts at every place, known without labels."""

    @property
    @abstractmethod
    def places(self) -> int:
        """Number of places."""

    @abstractmethod
    def tiles(self, rows: Points, *, whole: bool, dtype: DTypeLike = np.float64) -> Iterator[Tile]:
        """Weights of some rows at all places, without those that are 0 throughout.

        With `whole`, all rows of a place come in one tile; else all places of a family at which a
        row counts do, in ascending order.
        """

    @property
    def families(self) -> list[Family]:
        """Places that may be judged together, 2,048 at most.

        Of more, those of different families are taken as uncorrelated, which makes the largest of
        them rather too large.
        """
        return families_of(range(self.places))


@dataclass(frozen=True)
class Members(Weights):
    """A row counts 1 inside a region and 0 outside."""

    regions: Sequence[Predicate]

    @property
    def places(self) -> int:
        """Number of regions."""
        return len(self.regions)

    def tiles(
        self,
        rows: Points,
        *,
        whole: bool,  # noqa: ARG002
        dtype: DTypeLike = np.float64,
    ) -> Iterator[Tile]:
        """One tile: all regions, all rows."""
        if not self.regions:
            return
        inside = np.array([region.rows(rows) for region in self.regions], dtype=dtype)
        yield np.arange(self.places), np.arange(len(rows)), inside


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
        """Whether clusters' sums add up to something nearly symmetric, whatever labels do, (m,).

        There the variance between clusters and Student's law suffice; elsewhere labels must be
        redrawn. Known without labels.
        """
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
        """Some places."""
        return Moments(**{name: part[..., places] for name, part in vars(self).items()})


def moments_of(plain: FloatArray, second: FloatArray, third: FloatArray) -> Moments:
    """Moments of independent rows.

    `plain` are sums of a times 1, p, e; `second` of a^2 times 1, p, p^2, e^2, e; `third` of a^3
    times 1, p, p^2, p^3.
    """
    one, p, pp, q0, q1 = second
    squares = np.stack([q0, -2 * q1, one])
    return Moments(
        mass=plain[0],
        predicted=plain[1],
        second=np.stack([one, p, pp]),
        third=third,
        squares=squares,
        by_design=squares,
        multiplied=q0,
        carried=second[:4],
    )


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

    sums: FloatArray
    multiplied: FloatArray
    spread: FloatArray
    residual: FloatArray
    moments: Moments
    freedom: float | None
    rows: IntArray
    total: float

    @property
    def has_clusters(self) -> bool:
        """Whether rows are not independent draws."""
        return self.freedom is not None

    def take(self, places: IntArray) -> Averages:
        """Some places."""
        return Averages(
            self.sums[:, places],
            self.multiplied[places],
            self.spread[places],
            self.residual[places],
            self.moments.take(places),
            self.freedom,
            self.rows[places],
            self.total,
        )

    @property
    def values(self) -> FloatArray:
        """Weighted mean residual of the data, (m,); NaN where no row counts."""
        return _ratio(self.residual, self.moments.mass)

    @property
    def stderr(self) -> FloatArray:
        """Standard error of the values, from how much residuals vary in the design, (m,)."""
        variance = polynomial(self.moments.by_design, np.nan_to_num(self.values))
        return _ratio(np.sqrt(np.maximum(variance, 0.0)), self.moments.mass)

    @cached_property
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
        variances, skews = self.null_scales()
        return np.array(
            [
                self._scores_of(sums, variance, skewness, studentised=studentised)
                for sums, variance, skewness in zip(self.sums, variances, skews, strict=True)
            ]
        ).reshape(self.sums.shape)

    def _scores_of(
        self, sums: FloatArray, variance: FloatArray, skewness: FloatArray, *, studentised: bool
    ) -> FloatArray:
        moments = self.moments
        lively = variance > 0
        scale = np.where(lively, variance, 1.0)
        scores = sums / np.sqrt(scale)[:, None]
        if studentised and not self.has_clusters:
            scores /= np.sqrt(np.maximum(self.spread / scale[:, None], 1.0))
        scores = normal_score(scores, skewness[:, None])
        # Rows that cannot vary have no draws; a residual there is a label called impossible.
        impossible = ~lively & (np.abs(self.residual) > 1e-9 * np.maximum(moments.mass, 1e-300))
        scores[~lively] = 0.0
        scores[impossible, 0] = BEYOND_DOUBT * np.sign(self.residual[impossible])
        return scores

    def multiplier_scores(self) -> FloatArray:
        """Standard normal at every place, correlated as the estimates are, (m, draws)."""
        spread = self.moments.multiplied
        scale = np.sqrt(np.where(spread > 0, spread, 1.0))
        return np.asarray(self.multiplied / scale[:, None])


def average_by_design(
    sample: Sample,
    weights: Weights,
    laws: Sequence[RowwiseNull],
    draws: int,
    seed: int,
    *,
    spread: bool = False,
    title: str = "local bias",
) -> Averages:
    """Mean residuals at all places where rows come from a design: one pass, clusters whole.

    Cost O(n m draws) at most, for every law; places without a share in a tile are skipped. Memory
    O(m draws) a law and thread, and O(m) a stratum. The answer is the same to the last bit for
    any number of threads. Large work is done in single precision, data and draws alike; values and
    moments never are.
    """
    source = (
        sample if sample.cluster is None else sample.take(np.argsort(sample.cluster, kind="stable"))
    )
    multiplier_seed = as_seed(np.random.default_rng([seed, 1]))
    large = float(sample.n) * weights.places * draws > MAX_IN_DOUBLE
    dtype = np.float32 if large else np.float64
    spreading = Spreading.of(source.design, draws, multiplier_seed, dtype)
    work = _Work(weights, tuple(laws), draws, seed, spreading, spread, dtype)
    chunks = list(_bounds(source, draws))
    threads = min(available_threads(), len(chunks))
    total = work.empty()
    with (
        one_blas_thread(),
        ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool,
        progress_bar(title, source.n, None if draws else False) as advance,
    ):
        for batch in _batches(chunks, threads):
            parts = (pool.map if pool else map)(lambda rows: work.of(_chunk(source, rows)), batch)
            for rows, part in zip(batch, parts, strict=True):
                total.add(part)  # in the order of the rows, whatever thread came first
                advance(rows.stop - rows.start)
    return total.finished(spreading)


def _bounds(source: Sample, draws: int) -> Iterator[slice]:
    """Some rows at a time; a cluster stays whole."""
    size = int(np.clip(CHUNK_BYTES // (16 * (draws + 1)), 256, CHUNK_ROWS))
    if source.cluster is None:
        yield from (slice(at, min(at + size, source.n)) for at in range(0, source.n, size))
        return
    ends = np.append(np.flatnonzero(np.diff(source.cluster)) + 1, source.n)
    at = 0
    while at < source.n:
        fits = ends[(ends > at) & (ends <= at + size)]
        stop = int(fits[-1]) if fits.size else int(ends[ends > at][0])
        yield slice(at, stop)
        at = stop


def _chunk(source: Sample, rows: slice) -> Chunk:
    return Chunk(
        rows.start,
        source.y[rows],
        source.p[rows],
        source.points.take(rows),
        source.weights_or_ones[rows],
        None if source.cluster is None else source.cluster[rows],
    )


def _batches(chunks: list[slice], threads: int) -> Iterator[list[slice]]:
    """So many at once that finished parts do not pile up."""
    for at in range(0, len(chunks), 2 * threads):
        yield chunks[at : at + 2 * threads]


@dataclass(eq=False)
class _Sums:
    """What is added up over chunks."""

    sums: FloatArray
    multiplied: FloatArray
    spread: FloatArray
    plain: FloatArray  # sums of a, a p, a (y - p)
    second: FloatArray
    third: FloatArray
    totals: FloatArray  # what the design keeps of its units
    carried: FloatArray
    rows: IntArray
    total: FloatArray  # (1,)

    def add(self, other: _Sums) -> None:
        for name, mine in vars(self).items():
            mine += vars(other)[name]

    def finished(self, spreading: Spreading) -> Averages:
        moments = moments_of(self.plain, self.second, self.third)
        mass, predicted = moments.mass, moments.predicted
        moments = replace(
            moments,
            by_design=spreading.variance(self.totals, mass),
            multiplied=spreading.multiplied_variance(self.totals),
            carried=spreading.settled(self.carried, mass, predicted),
        )
        freedom = spreading.design.freedom
        return Averages(
            self.sums,
            self.multiplied,
            self.spread,
            self.plain[2],
            moments,
            freedom,
            self.rows,
            float(self.total[0]),
        )


@dataclass(frozen=True)
class _Work:
    """The share of one chunk in all sums."""

    weights: Weights
    laws: tuple[RowwiseNull, ...]
    draws: int
    seed: int
    spreading: Spreading
    spread: bool
    dtype: DTypeLike

    def empty(self) -> _Sums:
        m, (kinds, units) = self.weights.places, self.spreading.shape
        return _Sums(
            sums=np.zeros((len(self.laws), m, 1 + self.draws)),
            multiplied=np.zeros((m, self.draws)),
            spread=np.zeros((m, 1 + self.draws if self.spread and len(self.laws) == 1 else 1)),
            plain=np.zeros((3, m)),
            second=np.zeros((5, m)),
            third=np.zeros((4, m)),
            totals=np.zeros((kinds, m, units)),
            carried=np.zeros((4, m)),
            rows=np.zeros(m, dtype=np.int64),
            total=np.zeros(1),
        )

    def of(self, chunk: Chunk) -> _Sums:
        part = self.empty()
        w, p, e = chunk.weights, chunk.p, chunk.y - chunk.p
        assert w is not None
        part.total += w.sum()
        here = slice(chunk.rows.start, chunk.rows.stop)
        drawn = [self._residuals(chunk, law) for law in self.laws]
        wanted = self.spread and len(drawn) == 1
        squares = w[:, None] ** 2 * drawn[0] ** 2 if wanted else (w * e)[:, None] ** 2
        for residuals in drawn:
            residuals *= w[:, None].astype(self.dtype)
        multiplied = self.spreading.multipliers(here)
        multiplied *= (w * e)[:, None].astype(self.dtype)
        plain = np.column_stack([w, w * p, w * e])
        second = np.column_stack([np.ones_like(p), p, p**2, e**2, e])
        second *= w[:, None] ** 2
        third = np.column_stack([np.ones_like(p), p, p**2, p**3])
        third *= w[:, None] ** 3
        for places, rows, weights in self.weights.tiles(
            chunk.points, whole=chunk.cluster is not None
        ):
            rough = weights.astype(self.dtype, copy=False)
            for law, residuals in enumerate(drawn):
                part.sums[law, places] += rough @ residuals[rows]
            part.multiplied[places] += rough @ multiplied[rows]
            part.plain[:, places] += (weights @ plain[rows]).T
            part.rows[places] += np.count_nonzero(weights, axis=1)
            power = weights * weights
            part.spread[places] += power @ squares[rows]
            part.second[:, places] += (power @ second[rows]).T
            power *= weights
            part.third[:, places] += (power @ third[rows]).T
            a, numbers = weights * w[rows], here.start + rows
            part.totals[:, places] += self.spreading.totals(a, e[rows], numbers)
            part.carried[:, places] += self.spreading.carried(a, p[rows], numbers)
        return part

    def _residuals(self, chunk: Chunk, law: RowwiseNull) -> AnyArray:
        """Of the data and all draws, (rows, 1 + draws)."""
        drawn = np.empty((chunk.p.size, 1 + self.draws), dtype=self.dtype)
        # Data and draws by the same arithmetic: what ties must tie to the last bit.
        p = chunk.p.astype(self.dtype)
        np.subtract(chunk.y.astype(bool), p, out=drawn[:, 0])
        if self.draws:
            labels = law.draw(chunk, range(self.draws), self.seed)
            if labels.dtype == bool:
                np.subtract(labels, p[:, None], out=drawn[:, 1:])
            else:
                drawn[:, 1:] = labels
        return drawn
