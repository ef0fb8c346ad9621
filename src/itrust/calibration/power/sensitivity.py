"""Power of the adaptive test against a shift of some rows, in closed form.

A shift of the probabilities moves every entry of the dictionary by an amount that is known in
closed form, and so is the spread about it. The test rejects when any entry reaches its critical
value; the power computed is that of the best few entries of one feature together, of the best entry
of several features or of the best kernel, whichever is larger, by normal approximation. The test
has a little more. Nothing here looks at a label.

There are many regions and many entries. So the few entries that see a region best are found first,
for many regions at once, by the sums of their features there, and only those are worked out. If
that leaves out the best one, the power computed is smaller than it could be, never larger.

With clusters, the variance of the sum along a feature is that of `clustering`, the covariance of
several likewise, and critical values are Student's with the degrees of freedom of the clusters.
Kernels are known on rows that seldom hold whole clusters; pairs within clusters count for those
that are not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, islice, product
from operator import and_
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from itrust._core import BoolArray, FloatArray, InputError, IntArray, Rng, as_seed, checked_share
from itrust.calibration.adaptive import PILOT_ROWS, Checks, checked_draws, planned_test
from itrust.calibration.dictionary import codes_of, reach
from itrust.calibration.pipeline import Prepared, Scores, score
from itrust.calibration.power.clusters import Clustering, ClusterNoise
from itrust.calibration.tails import pearson3_log_sf, student_quantile
from itrust.data import Everywhere, Points, Predicate, Rows, Sample, Scan, cut_of
from itrust.engines import EngineChoice, as_engine, weight_unit
from itrust.nulls import Bernoulli, RowwiseNull, redrawn_labels

MAX_ROWS = 10**10
SMALL_SHARE = 0.01  # regions below this share of the rows do not make the headline
TENTHS, FIFTHS = 10, 5
MAX_CUT = 60  # covariates that are looked at one by one, the first ones
MAX_CROSSED = 20  # covariates that are crossed with one another, the first ones
SHIFTS = np.array(
    [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.11, 0.15, 0.2, 0.3, 0.4, 0.5]
)
CELLS_OF_KERNELS = 2**22  # of the matrices of all kernels together
MIN_KERNEL_ROWS = 16  # of a region, where the matrices hold some of the rows only
BEST_SINGLES, BEST_FORMS, BEST_KERNELS = 6, 2, 1  # checks that are worked out for a region
ROOM = 0.8  # of a shift that must fit between 0 and 1 on average
LEAST_QUANTILE = 0.5  # so that Student's can be compared with it
LIKELY = 0.84  # standard deviations beyond the critical value, for a power of .8
TRIED_WINDOWS, ALIKE = 60, 0.95  # regions of a scan, and how much those that are worked out overlap
CORNERS = 2, 4, 6  # how often rows are halved to get a rectangle
MIN_VARIANCE = 3.0  # of its sum, in labels
SMALLEST_TAIL = 1e-9  # of a check that any draw exceeds
BITS = 30
# Where points move along each axis, k-th number times 2^-k: those of Joe and Kuo (2008).
DIRECTIONS = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1, 1],
        [1, 3, 5, 15, 17, 51, 85, 255],
        [1, 3, 3, 9, 29, 23, 71, 197],
        [1, 3, 1, 5, 31, 29, 81, 147],
        [1, 1, 1, 11, 31, 55, 61, 157],
        [1, 1, 3, 3, 25, 9, 43, 251],
    ]
)


def sobol_points(dimensions: int, count: int, seed: int) -> FloatArray:
    """Spread points evenly over a cube: Sobol's, scrambled at random as Matousek does.

    As `scipy.stats.qmc.Sobol` makes them, which takes most of a second to load.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    places = np.arange(BITS)
    shift = rng.integers(2, size=(dimensions, BITS), dtype=np.uint32) @ 2**places
    below = np.tril(rng.integers(2, size=(dimensions, BITS, BITS), dtype=np.uint32), -1)
    mixed = below + np.eye(BITS, dtype=np.int64)
    steps = count.bit_length() - 1
    moves = DIRECTIONS[:dimensions, :steps] << (BITS - 1 - np.arange(steps))
    digits = (moves[..., None] >> places[::-1]) & 1  # the largest first
    moves = (np.einsum("dij,dkj->dki", mixed, digits) % 2) @ 2 ** places[::-1]
    numbers = np.arange(1, count)
    changed = np.log2(numbers & -numbers).astype(int)  # of Gray's code, one digit at a time
    path = np.vstack([shift, moves[:, changed].T])
    return np.asarray(np.bitwise_xor.accumulate(path, axis=0) / 2**BITS)


# Normal numbers that fill the space of the best singles evenly.
NORMALS = ndtri(sobol_points(BEST_SINGLES, 256, seed=0))


# Parts of the rows, their shares, and which pilot rows lie in each, (G, m).
Cut = tuple[list[Predicate], FloatArray, csr_array]


def cuts_of(points: Points, pilot: Points) -> Iterator[Cut]:
    """All rows, then every covariate by itself: levels of a category, tenths of a number."""
    covariates = islice(_with_parts(points, TENTHS), MAX_CUT)
    whole: list[Predicate] = [Everywhere()]
    for parts in (whole, *(parts for _, parts in covariates)):
        yield _cut([(part,) for part in parts], _codes(parts, points), _codes(parts, pilot))


def pairs_of(points: Points, pilot: Points) -> Iterator[Cut]:
    """Pairs of parts of two covariates with at least 1 % of the rows, numbers in fifths."""
    covariates = islice(_with_parts(points, FIFTHS), MAX_CROSSED)
    coded = [(parts, (_codes(parts, points), _codes(parts, pilot))) for _, parts in covariates]
    for (parts, codes), (others, other_codes) in combinations(coded, 2):
        pairs, wide = list(product(parts, others)), len(others)
        whole, some = (
            np.where((a == len(parts)) | (b == wide), len(pairs), a * np.int64(wide) + b)
            for a, b in zip(codes, other_codes, strict=True)
        )
        yield _cut(pairs, whole, some, SMALL_SHARE)


def left_out(points: Points) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the covariates of which no part, and no pair of parts, is looked at."""
    uncut = islice(_with_parts(points, TENTHS), MAX_CUT, None)
    uncrossed = islice(_with_parts(points, FIFTHS), MAX_CROSSED, None)
    return tuple(name for name, _ in uncut), tuple(name for name, _ in uncrossed)


def _with_parts(points: Points, number: int) -> Iterator[tuple[str, list[Predicate]]]:
    """Covariates that differ between rows, in order, and their parts."""
    cuts = ((column.name, list(cut_of(column, number))) for column in points.columns)
    return ((name, parts) for name, parts in cuts if parts)


def _codes(parts: Sequence[Predicate], points: Points) -> NDArray[np.int16]:
    """The number of every row's part, small ones for many rows; the last for rows of none."""
    codes = np.full(len(points), len(parts), dtype=np.int16)
    for code, part in enumerate(parts):
        codes[part.rows(points)] = code
    return codes


def _cut(
    parts: Sequence[tuple[Predicate, ...]],
    whole: NDArray[np.integer],
    some: NDArray[np.integer],
    min_share: float = 0.0,
) -> Cut:
    """Regions with enough rows, and with one at least that stands for them."""
    number = len(parts)
    counts, standing = (np.bincount(codes, minlength=number)[:number] for codes in (whole, some))
    kept = np.flatnonzero((counts >= min_share * whole.size) & (standing > 0))
    inside = (np.ones(some.size), (some, np.arange(some.size)))
    members = csr_array(inside, shape=(number + 1, some.size))[kept]
    return [reduce(and_, parts[k]) for k in kept.tolist()], counts[kept] / whole.size, members


@dataclass(frozen=True, eq=False)
class Area:
    """A region: its place among the rows that stand for all, and the checks that see it best."""

    where: Predicate
    share: float
    rows: IntArray
    times: float
    kernel_times: float
    singles: IntArray
    normals: FloatArray
    forms: IntArray
    kernels: IntArray
    windows: Windows | None = None


# Regions of the scan: which pilot rows are inside, (W, m), their null variances, the |z| that show
# them, (W,), and normal numbers with their null correlations, (256, W).
Windows = tuple[BoolArray, FloatArray, FloatArray, FloatArray]


class Sensitivity:
    """Power of the best check against a shift of some rows, by normal approximation.

    Without scores of draws from the probabilities, draws are made.
    """

    def __init__(
        self,
        prepared: Prepared,
        scores: Scores | None,
        alpha: float,
        power: float,
        draws: int,
        seed: int,
        clustering: Clustering | None,
    ) -> None:
        allowed = _allowed(alpha, power, draws)
        self.alpha, self.wanted, self.draws, self.seed = alpha, power, draws, seed
        self.clustering = clustering
        self.prepared = prepared = prepared.for_null(Bernoulli())
        if not prepared.weights.size:
            raise InputError("every probability is 0 or 1, so no draw differs from another")
        if scores is None:
            scores = score(prepared, Bernoulli(), draws, seed)
        scores = _without_labels(scores)
        self.critical = float(np.sort(scores.combined[1:])[-allowed])
        self.bank, self.n = prepared.bank, scores.tally.rows
        self._choose_rows()
        self._find_critical(scores)
        whole = prepared.survey.source.in_memory
        self.noise = None
        stated = clustering is not None and clustering.icc == 0 and clustering.correlation is None
        if not (clustering is None or stated or whole is None):  # that labels are independent
            self.noise = ClusterNoise(clustering, whole, self.bank, self.v[: self.known])
        self.freedom = math.inf if self.noise is None else self.noise.freedom
        self._find_spreads(scores)
        self.law = None
        if self.bank.grids and self.noise is None:
            self.law = scores.region_law(independent=True)
            needed = self.critical - self.law.log_weights
            self.region_scores = self.law.scores_of(np.maximum(needed, SMALLEST_TAIL))
            self.codes = [codes_of(grid, self.pilot) for grid in self.bank.grids]

    @classmethod
    def of(
        cls,
        sample: Sample | Scan,
        alpha: float = 0.05,
        power: float = 0.8,
        checks: Checks | None = None,
        draws: int = 999,
        rng: Rng = None,
        engine: EngineChoice = "auto",
        clustering: Clustering | None = None,
    ) -> Sensitivity:
        """Prepare the test that `klce_test` would make, and run its draws."""
        chosen, draws, seed = as_engine(engine), checked_draws(draws), as_seed(rng)
        _allowed(alpha, power, draws)
        prepared = planned_test(chosen, chosen.survey(sample), Bernoulli(), draws, checks)
        return cls(prepared, None, alpha, power, draws, seed, clustering)

    def _choose_rows(self) -> None:
        """Rows that stand for all, in random order, so that the first of them do, too."""
        pilot = self.prepared.survey.rows.first(PILOT_ROWS)
        shuffled = np.argsort(pilot.tickets)
        self.pilot = pilot.points.take(shuffled)
        v = pilot.points.p * (1 - pilot.points.p)
        variances = pilot.variances / weight_unit(pilot) ** 2
        weights = np.sqrt(np.divide(variances, v, out=np.ones_like(v), where=v > 0))
        self.p, self.weights = self.pilot.p, weights[shuffled]
        self.v = np.square(self.weights) * self.p * (1 - self.p)
        self.features = np.ascontiguousarray(self.bank.matrix(self.pilot).T, dtype=float)
        # Kernels are known on as many rows as their matrices have room for.
        plans = [plan for entry, plan, _ in self.prepared.kernels if entry is not None]
        if any(plan.kernel.is_positional for plan in plans):
            raise InputError("a precomputed matrix cannot say what other rows would show")
        room = math.isqrt(CELLS_OF_KERNELS // max(len(plans), 1))
        self.known = min(self.p.size, room) if plans else 0
        self.kernels = [plan.matrix(self.pilot.take(slice(0, self.known))) for plan in plans]

    def _find_critical(self, scores: Scores) -> None:
        """Values of each check at the critical score, up and down, and without skewness."""
        needed = self.critical - np.log(self.prepared.weights)
        two_sided = needed + np.where(scores.is_single, np.log(2), 0.0)
        self.critical_up, self.critical_down, normal = (
            _inverse_tail(two_sided, np.maximum(sign * scores.skewness, 0.0)) for sign in (1, -1, 0)
        )
        self.critical_normal = np.where(scores.is_single, normal, self.critical_up)
        self.normal = np.maximum(-ndtri(np.exp(-needed) / 2), LEAST_QUANTILE)

    def _find_spreads(self, scores: Scores) -> None:
        """Null spreads and expected diagonals of all checks, the kernels last."""
        bank, noise, times = self.bank, self.noise, self.n / self.p.size
        is_single = bank.single >= 0
        self.single_scales = np.sqrt(np.asarray(bank.selector.sum(axis=1)).ravel())
        self.covariances: dict[int, Sequence[FloatArray]] = {}  # of several features: F'VF
        effects, first = np.ones(is_single.size), is_single.size + len(bank.grids)
        if noise is not None:
            effects = np.where(is_single, noise.effects[bank.single], 1.0)
        for check in np.flatnonzero(~is_single).tolist():
            columns, scales = bank.features_of(check)
            f = self.features[:, columns]
            independent = (f * (times * self.v)[:, None]).T @ f
            self.covariances[check] = (independent,)
            if noise is not None:
                self.covariances[check] = noise.covariances(columns, independent)
                effects[check] = noise.effect(columns, scales, independent)
        spread = scores.sd[: is_single.size] * np.where(is_single, np.sqrt(effects), effects)
        diagonals = times * (bank.selector @ (self.v @ np.square(self.features)))
        v, more = self.v[: self.known], np.ones(len(self.kernels))
        if noise is not None:
            more = np.array([noise.form_effect(matrix) for matrix in self.kernels])
        traces = [self.n / v.size * float(np.diagonal(matrix) @ v) for matrix in self.kernels]
        ones = np.ones(len(bank.grids))  # scans of regions have a law of their own
        self.effects = np.concatenate([effects, ones, more])
        self.null_sd = np.concatenate([spread, ones, scores.sd[first:] * more])
        expected = np.where(is_single, np.square(spread), diagonals)
        self.expected = np.concatenate([expected, ones, traces])

    def regions(self) -> list[Area]:
        """All rows, then the parts of every covariate; those without rows are left out."""
        cuts = cuts_of(self.prepared.survey.points, self.pilot)
        return [area for cut in cuts for area in self._areas(cut)]

    def pairs(self) -> Iterator[Area]:
        """Pairs of parts of two covariates that hold at least 1 % of the rows, some at a time."""
        for cut in pairs_of(self.prepared.survey.points, self.pilot):
            yield from self._areas(cut)

    def corners(self) -> tuple[tuple[float, float], ...]:
        """Shares of the rows, and the shift of a rectangle of two columns that is seen, anywhere.

        By the sum of its residuals, where probabilities are as they are on average.
        """
        grids = self.bank.grids if self.law is not None else ()
        pairs = [k for k, grid in enumerate(grids) if len(grid.entry.crossed) == 2]
        if not pairs:
            return ()
        score = float(self.region_scores[pairs].max())
        mass, variance = (self.n * float(own.mean()) for own in (self.weights, self.v))
        beyond = -float(ndtri(1 - self.wanted))
        found = []
        for depth in CORNERS:
            share = 0.5**depth
            z = float(reach(score, np.array(depth))) + beyond
            found.append((share, z * math.sqrt(variance / share) / mass))
        return tuple(own for own in found if own[0] * variance >= MIN_VARIANCE)

    def _areas(self, cut: Cut) -> Iterator[Area]:
        """Find the checks that see each of some regions best."""
        parts, shares, inside = cut
        means = np.asarray(inside.multiply(self.weights).tocsr() @ self.features)  # (G, R)
        few = csr_array(inside[:, : self.known])
        known_rows = np.diff(few.indptr)
        enough = known_rows >= (2 if self.known == self.n else MIN_KERNEL_ROWS)
        singles, forms, kernels = self._best_checks(means, few)
        for k, (where, share) in enumerate(zip(parts, shares.tolist(), strict=True)):
            rows = inside.indices[inside.indptr[k] : inside.indptr[k + 1]].astype(np.int64)
            yield Area(
                where=where,
                share=share,
                rows=rows,
                times=share * self.p.size / rows.size,
                kernel_times=share * self.known / max(known_rows[k], 1),
                singles=singles[k],
                normals=self._normals(singles[k], means[k]),
                forms=forms[k],
                kernels=kernels[k][: None if enough[k] else 0],
                windows=self._windows(where, rows),
            )

    def _windows(self, where: Predicate, rows: IntArray) -> Windows | None:
        """Regions of scans that see some rows best; None where none reads their columns."""
        if self.law is None:
            return None
        times, found = self.n / self.p.size, list[tuple[float, float, BoolArray]]()
        for k, (grid, codes) in enumerate(zip(self.bank.grids, self.codes, strict=True)):
            if not where.names <= {*grid.entry.covariates} or len(grid.entry.crossed) > 2:
                continue
            moved = np.bincount(codes[rows], self.weights[rows], grid.cells)
            variance = times * np.bincount(codes, self.v, grid.cells)
            needed = reach(self.region_scores[k], grid.depths)
            seen = times * grid.regions(moved) * grid.scales(variance) / needed
            for at in np.argsort(-seen, axis=None)[:TRIED_WINDOWS]:
                a, b = np.unravel_index(int(at), seen.shape)
                inside = grid.a.windows[a][codes // grid.b.cells] > 0
                inside &= grid.b.windows[b][codes % grid.b.cells] > 0
                found.append((float(seen[a, b]), float(needed[a, b]), inside))
        chosen: list[tuple[float, float, BoolArray]] = []
        for own in sorted(found, key=lambda own: -own[0]):
            alike = (self._overlap(own[2], other[2]) >= ALIKE for other in chosen)
            if own[0] > 0 and not any(alike):
                chosen.append(own)
            if len(chosen) == BEST_SINGLES:
                break
        if not chosen:
            return None
        inside = np.array([own[2] for own in chosen])
        covariance = times * ((inside * self.v) @ inside.T)
        normals = NORMALS[:, : len(chosen)] @ _root(covariance)
        return inside, np.diagonal(covariance), np.array([own[1] for own in chosen]), normals

    def _overlap(self, a: BoolArray, b: BoolArray) -> float:
        """Correlation of sums in two regions."""
        return float(self.v[a & b].sum() / math.sqrt(self.v[a].sum() * self.v[b].sum()))

    def _best_checks(self, means: FloatArray, few: csr_array) -> tuple[IntArray, ...]:
        """Checks of one feature, of several, and kernels, by their values over critical ones."""
        singles, forms = (
            np.flatnonzero(own) for own in (self.bank.single >= 0, self.bank.single < 0)
        )
        critical = (self.critical_up[singles] + self.critical_down[singles]) / 2 + LIKELY
        unit = self.null_sd[singles] * critical / self.single_scales[singles]
        by_single = np.abs(means[:, self.bank.single[singles]]) / unit
        units = self.null_sd * np.maximum(self.critical_up, 1.0)
        by_form = np.asarray(csr_array(self.bank.selector[forms]) @ np.square(means.T)).T
        weighted = few.multiply(self.weights[: self.known]).tocsr()
        by_kernel = np.empty((few.shape[0], len(self.kernels)))
        for k, matrix in enumerate(self.kernels):
            by_kernel[:, k] = weighted.multiply(weighted @ matrix).sum(axis=1)
        return (
            singles[_largest(by_single, BEST_SINGLES)],
            forms[_largest(by_form / units[forms], BEST_FORMS)],
            _largest(by_kernel / units[units.size - len(self.kernels) :], BEST_KERNELS),
        )

    def _normals(self, checks: IntArray, means: FloatArray) -> FloatArray:
        """Normal numbers with the null correlations of checks of one feature, (256, checks)."""
        columns = self.bank.single[checks]
        signs = np.where(means[columns] < 0, -1.0, 1.0)
        f = self.features[:, columns]
        covariance = self.n / self.p.size * ((f * self.v[:, None]).T @ f)
        if self.noise is not None:
            covariance = self.noise.covariances(columns, covariance)[1]
        covariance = covariance * signs * signs[:, None]
        return np.asarray(NORMALS[:, : checks.size] @ _root(covariance))

    def rows_needed(self, area: Area, bias: float) -> float:
        """Rows at which a bias is seen with the wanted power, whichever direction it has."""
        low, high = 10.0, float(MAX_ROWS)
        if not self.is_seen(area, bias, high):
            return math.inf
        while high / low > 1.002:
            middle = math.sqrt(low * high)
            enough = self.is_seen(area, bias, middle)
            low, high = (low, middle) if enough else (middle, high)
        return high

    def is_seen(self, area: Area, bias: float, rows: float) -> bool:
        """Whether so many rows show a bias in every direction it can have."""
        if not math.isfinite(rows):
            return True
        shifts = bias * self._directions(area, bias)
        return bool((self.power(area, shifts, rows) >= self.wanted).all())

    def _directions(self, area: Area, shift: float = 0.05) -> FloatArray:
        """Ways in which probabilities can be shifted by that much; the better one at least."""
        signs = np.array([1.0, -1.0])
        room = self._moved(area, signs * shift)
        able = room >= ROOM * shift
        return signs[able] if able.any() else signs[[np.argmax(room)]]

    def _moved(self, area: Area, shifts: FloatArray) -> FloatArray:
        """How far shifts move the probabilities of a region, which end at 0 and 1, (k,)."""
        p = self.p[area.rows, None]
        return np.asarray(np.abs(np.clip(p + shifts, 0, 1) - p).mean(axis=0))

    def simulated_power(self, region: Predicate, shift: float, simulations: int) -> float:
        """Share of samples, drawn with the shift, that the test rejects."""
        seed = as_seed(np.random.default_rng([self.seed, 1]))
        made = score(self.prepared, _Moved(region, shift), simulations, seed)
        if self.law is not None:  # these draws do not tell what a calibrated model shows
            made.log_tails[made.is_region] = self.law.tails(made.standardised[made.is_region])
        return float(np.mean(made.combined[1:] > self.critical))

    def smallest_both(self, area: Area) -> tuple[float, float]:
        """The smallest shifts up and down that are seen; NaN for a way without room.

        Where neither way has room (probabilities near 0 and near 1 side by side), the way with
        more of it is taken, and the shift is the one that the rows have on average.
        """
        fitting = {
            sign: SHIFTS[self._moved(area, sign * SHIFTS) >= ROOM * SHIFTS] for sign in (1, -1)
        }
        # Both ways at once, which takes half the time.
        powers = self._powers(area, np.concatenate([s * fitting[s] for s in fitting]), self.n)
        up, down = (
            self._smallest(area, sign, fitting[sign], part)
            for sign, part in zip(fitting, np.split(powers, [fitting[1].size], axis=1), strict=True)
        )
        if not (math.isnan(up) and math.isnan(down)):
            return up, down
        sign = int(self._directions(area)[0])
        shift = self._smallest(area, sign, SHIFTS, self._powers(area, sign * SHIFTS, self.n))
        if math.isfinite(shift):
            shift = float(self._moved(area, np.array([sign * shift]))[0])
        return (shift, math.nan) if sign > 0 else (math.nan, shift)

    def _smallest(self, area: Area, sign: int, shifts: FloatArray, powers: FloatArray) -> float:
        """The smallest of some shifts one way that is seen with the wanted power.

        NaN if none of them is seen, infinity if 0.5 is among them and is not seen.
        """
        reached = np.flatnonzero(powers.max(axis=0) >= self.wanted)
        if reached.size == 0:
            return math.inf if SHIFTS[-1] in shifts else math.nan
        at = int(reached[0])
        # What does not reach it at the upper end does not reach it between.
        seen = powers[1:, at] >= self.wanted
        area = replace(
            area,
            singles=area.singles[: None if powers[0, at] >= self.wanted else 0],
            forms=area.forms[seen[: area.forms.size]],
            kernels=area.kernels[seen[seen.size - area.kernels.size :]],
        )
        between = np.linspace(shifts[at - 1] if at else 0.0, shifts[at], 21)[1:]
        reached = np.flatnonzero(self.power(area, sign * between) >= self.wanted)
        return float(between[reached[0]]) if reached.size else math.inf

    def power(self, area: Area, shifts: FloatArray, rows: float | None = None) -> FloatArray:
        """Power against each shift, (k,), with as many rows as asked for."""
        return np.asarray(self._powers(area, shifts, self.n if rows is None else rows).max(axis=0))

    def _powers(self, area: Area, shifts: FloatArray, n: float) -> FloatArray:
        """Power of the singles together, of each form and of each kernel, (1 + checks, k)."""
        p, w = self.p[area.rows, None], self.weights[area.rows, None]
        truth = np.clip(p + shifts, 0.0, 1.0)
        moved, change = w * (truth - p), w**2 * (truth * (1 - truth) - p * (1 - p))
        powers = [np.zeros(shifts.size)]
        if area.singles.size:
            powers = [self._of_singles(area, moved, change, n)]
        powers += [self._of_form(int(check), area, moved, change, n) for check in area.forms]
        if area.windows is not None and n == self.n:
            powers.append(self._of_windows(area.windows, area, moved, change))
        some = area.rows < self.known
        few = replace(area, rows=area.rows[some])
        powers += [self._of_kernel(int(k), few, moved[some], change[some], n) for k in area.kernels]
        return np.array(powers)

    def _critical(
        self, side: FloatArray, checks: IntArray | int, n: float, exponent: int
    ) -> FloatArray:
        """Critical values with n rows: skewness shrinks with their root; clusters: Student's."""
        normal = self.critical_normal[checks]
        critical = np.asarray(normal + (side[checks] - normal) * math.sqrt(self.n / n))
        if self.noise is None:
            return critical
        normal = self.normal[checks]
        student = student_quantile(ndtr(-normal), self._freedom(n)) / normal
        return np.asarray(critical * np.maximum(student, 1.0) ** exponent)

    def _freedom(self, n: float) -> float:
        """Degrees of freedom of an estimated variance with n rows; infinite without clusters."""
        return max(self.freedom * n / self.n, 1.0)

    def _swollen(self, observed: FloatArray, expected: FloatArray | float) -> FloatArray:
        """What values are divided by beside their null spread; see `scaling`."""
        if not self.bank.is_studentised:
            return np.ones_like(observed)
        return np.maximum(observed / expected, 1.0)

    def _of_singles(
        self, area: Area, moved: FloatArray, change: FloatArray, n: float
    ) -> FloatArray:
        """Power of checks of one feature together, (k,)."""
        checks, scale = area.singles, area.times * n / self.p.size
        f = self.features[area.rows[:, None], self.bank.single[checks]]
        f = (f * self.single_scales[checks]).T
        squares = np.square(f)
        mean = scale * (f @ moved)
        diagonal = scale * (squares @ np.square(moved))  # the shift's part in it
        expected = self.expected[checks, None] * n / self.n
        more = self.effects[checks, None] * scale * (squares @ change)
        spread = np.maximum(expected + more, 0.0)
        unit = np.sqrt(expected * self._swollen(spread + diagonal, expected))
        up, down = (
            self._critical(side, checks, n, 1)[:, None]
            for side in (self.critical_up, self.critical_down)
        )
        critical = np.where(mean > 0, up, down)
        # How many standard deviations each check is beyond its critical value, on the side on which
        # the shift has moved it; the other side has next to no power.
        beyond = (np.abs(mean) / unit - critical) * unit / (np.sqrt(spread) + 1e-300)
        beyond = beyond / np.sqrt(1 + np.square(critical) / (2 * self._freedom(n)))
        together = np.mean((area.normals[:, :, None] > -beyond).any(axis=1), axis=0)
        return np.asarray(np.maximum(together, ndtr(beyond).max(axis=0)))

    def _of_form(
        self, check: int, area: Area, moved: FloatArray, change: FloatArray, n: float
    ) -> FloatArray:
        """Power of a check of several features, (k,)."""
        scale = area.times * n / self.p.size
        columns, scales = self.bank.features_of(check)
        squares = np.square(scales)
        f = self.features[area.rows[:, None], columns]
        traces = scale * (np.square(f) @ squares)
        means = scale * (f.T @ moved)
        diagonal = traces @ np.square(moved)
        pull = squares[:, None] * means
        noises = [np.sum(pull * (part @ pull), axis=0) for part in self.covariances[check]]
        noise = n / self.n * np.max(noises, axis=0)
        noise += self.effects[check] * scale * np.sum(change * np.square(f @ pull), axis=0)
        value = squares @ np.square(means) - diagonal
        return self._of_quadratic(check, n, value, noise, traces @ change, diagonal)

    def _of_windows(
        self, windows: Windows, area: Area, moved: FloatArray, change: FloatArray
    ) -> FloatArray:
        """Power of sums of residuals in regions of the scan together, (k,)."""
        inside, variance, needed, normals = windows
        scale, own = area.times * self.n / self.p.size, inside[:, area.rows].astype(float)
        mean, spread = np.abs(scale * (own @ moved)), variance[:, None] + scale * (own @ change)
        beyond = mean - (needed * np.sqrt(variance))[:, None]
        beyond /= np.sqrt(np.maximum(spread, 1e-300))
        return np.asarray(np.mean((normals[:, :, None] > -beyond).any(axis=1), axis=0))

    def _of_kernel(
        self, kernel: int, area: Area, moved: FloatArray, change: FloatArray, n: float
    ) -> FloatArray:
        """Power of a kernel that is known on some rows, (k,)."""
        matrix = self.kernels[kernel]
        check = self.null_sd.size - len(self.kernels) + kernel
        rows = area.rows
        scale, times = n / self.known, area.kernel_times
        traces = times * np.diagonal(matrix)[rows]
        smoothed = times * (matrix[rows].T @ moved)
        diagonal = traces @ np.square(moved)
        pairs = times * np.sum(moved * smoothed[rows], axis=0) - diagonal
        more_pairs = (1 - 1 / max(scale * times * rows.size, 2.0)) / (1 - 1 / rows.size)
        if self.noise is None:
            noise = self.v[: self.known] @ np.square(smoothed)
        else:
            noise = self.noise.variance(smoothed)
        noise += self.effects[check] * times * np.sum(change * np.square(smoothed[rows]), axis=0)
        value = scale**2 * more_pairs * pairs
        return self._of_quadratic(
            check, n, value, scale**3 * noise, scale * (traces @ change), scale * diagonal
        )

    def _of_quadratic(
        self,
        check: int,
        n: float,
        value: FloatArray,
        noise: FloatArray,
        change: FloatArray,
        diagonal: FloatArray,
    ) -> FloatArray:
        """Power of a quadratic form, given its mean, its noise and its diagonal, (k,)."""
        expected, null_sd = self.expected[check] * n / self.n, self.null_sd[check] * n / self.n
        spread = np.maximum(expected + change, 0.0)
        critical = float(self._critical(self.critical_up, check, n, 2))
        doubt = 2 / self._freedom(n) * (critical * null_sd) ** 2
        variance = (null_sd * spread / expected) ** 2 + 4 * np.maximum(noise, 0.0) + doubt
        needed = critical * null_sd * self._swollen(spread + diagonal, expected)
        return np.asarray(ndtr((value - needed) / (np.sqrt(variance) + 1e-300)))


def _without_labels(scores: Scores) -> Scores:
    """Scores whose scans of regions have their scale from draws alone."""
    some = scores.is_region
    if not some.any():
        return scores
    standardised, log_tails = scores.standardised.copy(), scores.log_tails.copy()
    standardised[some, 0] = np.median(standardised[some, 1:], axis=1)
    made = replace(scores, standardised=standardised)
    log_tails[some] = made.region_law(independent=True).tails(standardised[some])
    return replace(made, log_tails=log_tails)


def _root(covariance: FloatArray) -> FloatArray:
    """The symmetric root of the correlations: signs, which differ between machines, cancel."""
    unit = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / unit / unit[:, None])
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _allowed(alpha: float, power: float, draws: int) -> int:
    """Which of the largest draws is the critical one."""
    checked_share(alpha, "alpha")
    checked_share(power, "power")
    number = math.floor(alpha * (1 + draws) + 1e-9)
    if number < 1:
        problem = f"{{argument}} {alpha:g} needs more than {draws} draws to be reached"
        raise InputError(problem, argument="alpha", value=alpha)
    return number


@dataclass(frozen=True)
class _Moved(RowwiseNull):
    """Labels from probabilities that are shifted in a region."""

    region: Predicate
    shift: float
    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = "labels drawn from shifted probabilities"

    def draw(self, chunk: Rows, draws: range, seed: int) -> BoolArray:
        """Labels of the rows, (n, draws)."""
        inside = self.region.rows(chunk.points)
        truth = np.where(inside, np.clip(chunk.p + self.shift, 0.0, 1.0), chunk.p)
        return redrawn_labels(truth, chunk.rows, draws, seed)


def _largest(values: FloatArray, number: int) -> IntArray:
    """Where the largest values of each row are, the largest first, (G, number) or fewer."""
    if values.shape[1] <= number:
        return np.argsort(-values, axis=1, kind="stable")
    least = np.partition(values, -number, axis=1)[:, -number]
    places = np.empty((len(values), number), dtype=np.int64)
    for k, (row, bar) in enumerate(zip(values, least, strict=True)):
        able = np.flatnonzero(~(row < bar))  # a few more than enough where values tie
        places[k] = able[np.argsort(-row[able], kind="stable")[:number]]
    return places


def _inverse_tail(needed: FloatArray, skewness: FloatArray) -> FloatArray:
    """Z with -log P(Z >= z) = needed, by bisection."""
    low, high = np.full(needed.shape, -2.0), np.full(needed.shape, 4.0)
    while (short := -pearson3_log_sf(high, skewness) < needed).any():
        high = np.where(short, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        above = -pearson3_log_sf(middle, skewness) >= needed
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high
