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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from itrust._core import BoolArray, FloatArray, InputError, IntArray
from itrust.calibration.dictionary.bank import Bank
from itrust.calibration.pipeline import Scores
from itrust.calibration.power.clusters import ClusterLaw, SharedNoise
from itrust.calibration.prepared import Prepared
from itrust.calibration.tails import pearson3_log_sf, student_quantile
from itrust.data import Points, Predicate

SHIFTS = np.array(
    [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.11, 0.15, 0.2, 0.3, 0.4, 0.5]
)
CELLS_OF_KERNELS = 2**22  # of the matrices of all kernels together
MIN_KERNEL_ROWS = 16  # of a region, where the matrices hold some of the rows only
BEST_SINGLES, BEST_FORMS, BEST_KERNELS = 6, 2, 1  # checks that are worked out for a region
ROOM = 0.8  # of a shift that must fit between 0 and 1 on average
LEAST_QUANTILE = 0.5  # so that Student's can be compared with it
LIKELY = 0.84  # standard deviations beyond the critical value, for a power of .8
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

    def only(self, kept: BoolArray) -> Area:
        """Keep the singles, or not, and some of the forms and kernels, in this order."""
        forms, kernels = np.split(kept[1:], [self.forms.size])
        singles = self.singles[: None if kept[0] else 0]
        return replace(
            self, singles=singles, forms=self.forms[forms], kernels=self.kernels[kernels]
        )


@dataclass(frozen=True, eq=False)
class _Move:
    """Rows of a region and what shifts do to them: (r, 1) and (r, k) arrays."""

    rows: IntArray
    moved: FloatArray  # w (truth - p)
    change: FloatArray  # of the variance w^2 p (1 - p)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Power of the best check against a shift of some rows, by normal approximation."""

    bank: Bank
    p: FloatArray
    weights: FloatArray
    features: FloatArray
    expected: FloatArray
    null_sd: FloatArray
    covariances: dict[int, tuple[FloatArray, ...]]
    kernels: tuple[_Dense, ...]
    critical_up: FloatArray
    critical_down: FloatArray
    critical_normal: FloatArray
    effects: FloatArray
    normal: FloatArray
    n: int
    law: ClusterLaw | None = None

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        scores: Scores,
        pilot: Points,
        weights: FloatArray,
        critical: float,
        law: ClusterLaw | None = None,
    ) -> Sensitivity:
        """From a prepared test and rows that stand for all, in random order."""
        bank, times = prepared.bank, scores.n / len(pilot)
        features = np.ascontiguousarray(bank.matrix(pilot).T, dtype=float)
        v = np.square(weights) * pilot.p * (1 - pilot.p)
        null_sd, kernel_sd = np.split(scores.sd, [len(bank.entries)])
        diagonals = times * (bank.selector @ (v @ np.square(features)))
        needed = critical - np.log(prepared.weights)
        two_sided = np.where(scores.is_single, np.log(2), 0.0)
        up, down, normal = (
            _inverse_tail(needed + two_sided, np.maximum(sign * scores.skewness, 0.0))
            for sign in (1, -1, 0)
        )
        independent = {}
        for check in np.flatnonzero(bank.single < 0).tolist():  # of several features: F'VF
            f = features[:, bank.features_of(check)[0]]
            independent[check] = (f * (times * v)[:, None]).T @ f
        covariances: dict[int, tuple[FloatArray, ...]]
        covariances = {check: (part,) for check, part in independent.items()}
        effects = np.ones(null_sd.size)
        if law is not None:
            effects = np.where(bank.single >= 0, law.effects[bank.single], 1.0)
            for check, part in independent.items():
                columns, scales = bank.features_of(check)
                effects[check] = law.effect(columns, scales, part)
                covariances[check] = law.covariances(columns, part)
            null_sd = null_sd * np.where(bank.single >= 0, np.sqrt(effects), effects)
        return cls(
            bank=bank,
            p=pilot.p,
            weights=weights,
            features=features,
            expected=np.where(bank.single >= 0, np.square(null_sd), diagonals),
            null_sd=null_sd,
            covariances=covariances,
            kernels=_on_some_rows(prepared, pilot, v, kernel_sd / scores.n, law),
            critical_up=up,
            critical_down=down,
            critical_normal=np.where(scores.is_single, normal, up),
            effects=effects,
            normal=np.maximum(-ndtri(np.exp(-needed) / 2), LEAST_QUANTILE),
            n=scores.n,
            law=law,
        )

    def areas(
        self, parts: Sequence[Predicate], inside: csr_array, shares: FloatArray
    ) -> list[Area]:
        """Find the checks that see each of some regions best."""
        means = np.asarray(inside.multiply(self.weights).tocsr() @ self.features)  # (G, R)
        known = self.kernels[0].v.size if self.kernels else 0
        few = csr_array(inside[:, :known])
        known_rows = np.diff(few.indptr)
        enough = known_rows >= (2 if known == self.n else MIN_KERNEL_ROWS)
        singles, forms = self._best_singles(means), self._best_forms(means)
        kernels = self._best_kernels(few)
        areas = []
        for k, (where, share) in enumerate(zip(parts, shares.tolist(), strict=True)):
            rows = inside.indices[inside.indptr[k] : inside.indptr[k + 1]].astype(np.int64)
            times, kernel_times = (
                share * self.p.size / rows.size,
                share * known / max(known_rows[k], 1),
            )
            normals = self._normals(singles[k], means[k])
            best = kernels[k][: None if enough[k] else 0]
            areas.append(
                Area(where, share, rows, times, kernel_times, singles[k], normals, forms[k], best)
            )
        return areas

    def _best_singles(self, means: FloatArray) -> IntArray:
        """Checks of one feature by their sum over its critical value, (G, few)."""
        checks = np.flatnonzero(self.bank.single >= 0)
        critical = (self.critical_up[checks] + self.critical_down[checks]) / 2 + LIKELY
        unit = self.null_sd[checks] * critical / self._single_scales[checks]
        seen = np.abs(means[:, self.bank.single[checks]]) / unit
        return checks[_largest(seen, BEST_SINGLES)]

    def _best_forms(self, means: FloatArray) -> IntArray:
        """Checks of several features by their form over its critical value, (G, few)."""
        checks = np.flatnonzero(self.bank.single < 0)
        unit = self.null_sd[checks] * np.maximum(self.critical_up[checks], 1.0)
        forms = csr_array(self.bank.selector[checks]) @ np.square(means.T)
        return checks[_largest(np.asarray(forms).T / unit, BEST_FORMS)]

    def _best_kernels(self, inside: csr_array) -> IntArray:
        """Kernels by their form over its critical value, (G, few)."""
        if not self.kernels:
            return np.empty((inside.shape[0], 0), dtype=np.int64)
        critical = np.maximum(self.critical_up[len(self.bank.entries) :], 1.0)
        weighted = inside.multiply(self.weights[: inside.shape[1]]).tocsr()
        seen = [
            (weighted.multiply(weighted @ kernel.matrix).sum(axis=1) / (kernel.null_sd * needed))
            for kernel, needed in zip(self.kernels, critical, strict=True)
        ]
        return _largest(np.stack(seen, axis=1), BEST_KERNELS)

    def _normals(self, checks: IntArray, means: FloatArray) -> FloatArray:
        """Normal numbers with the null correlations of checks of one feature, (256, checks)."""
        columns = self.bank.single[checks]
        signs = np.where(means[columns] < 0, -1.0, 1.0)
        v = np.square(self.weights) * self.p * (1 - self.p)
        f = self.features[:, columns]
        covariance = self.n / self.p.size * ((f * v[:, None]).T @ f)
        if self.law is not None:
            covariance = self.law.covariances(columns, covariance)[1]
        covariance = covariance * signs * signs[:, None]
        unit = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
        values, vectors = np.linalg.eigh(covariance / unit / unit[:, None])
        # The symmetric root: signs of eigenvectors, which differ between machines, cancel.
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return np.asarray(NORMALS[:, : checks.size] @ root)

    @cached_property
    def _single_scales(self) -> FloatArray:
        """Scales of the checks of one feature, (E,)."""
        return np.sqrt(np.asarray(self.bank.selector.sum(axis=1)).ravel())

    def directions(self, area: Area, shift: float = 0.05) -> tuple[int, ...]:
        """Ways in which probabilities can be shifted by that much; the better one at least."""
        signs = np.array([1, -1])
        room = self._moved(area, signs * shift)
        able = signs[room >= ROOM * shift].tolist()
        return tuple(able or [int(signs[np.argmax(room)])])

    def _moved(self, area: Area, shifts: FloatArray) -> FloatArray:
        """How far shifts move the probabilities of a region, which end at 0 and 1, (k,)."""
        p = self.p[area.rows, None]
        return np.asarray(np.abs(np.clip(p + shifts, 0, 1) - p).mean(axis=0))

    def smallest_both(self, area: Area, wanted: float) -> tuple[float, float]:
        """The smallest shifts up and down that are seen; NaN for a way without room.

        Where neither way has room (probabilities near 0 and near 1 side by side), the way with
        more of it is taken, and the shift is the one that the rows have on average.
        """
        fitting = {
            sign: SHIFTS[self._moved(area, sign * SHIFTS) >= ROOM * SHIFTS] for sign in (1, -1)
        }
        # Both ways at once, which takes half the time.
        powers = self._powers(area, np.concatenate([s * fitting[s] for s in fitting]), self.n)
        parts = np.split(powers, [fitting[1].size], axis=1)
        up, down = (
            self._smallest(area, sign, fitting[sign], part, wanted)
            for sign, part in zip(fitting, parts, strict=True)
        )
        if not (math.isnan(up) and math.isnan(down)):
            return up, down
        sign = self.directions(area)[0]
        powers = self._powers(area, sign * SHIFTS, self.n)
        shift = self._smallest(area, sign, SHIFTS, powers, wanted)
        if math.isfinite(shift):
            shift = float(self._moved(area, np.array([sign * shift]))[0])
        return (shift, math.nan) if sign > 0 else (math.nan, shift)

    def _smallest(
        self, area: Area, sign: int, shifts: FloatArray, powers: FloatArray, wanted: float
    ) -> float:
        """The smallest of some shifts one way that is seen with the wanted power.

        NaN if none of them is seen, infinity if 0.5 is among them and is not seen.
        """
        if shifts.size == 0:
            return math.nan
        low, high = _first_reached(shifts, powers.max(axis=0), wanted)
        if not math.isfinite(high):
            return math.inf if shifts[-1] == SHIFTS[-1] else math.nan
        # What does not reach it at the upper end does not reach it between.
        area = area.only(powers[:, shifts == high].ravel() >= wanted)
        between = np.linspace(low, high, 21)[1:]
        return _first_reached(between, self.power(area, sign * between), wanted)[1]

    def power(self, area: Area, shifts: FloatArray, rows: float | None = None) -> FloatArray:
        """Power against each shift, (k,), with as many rows as asked for."""
        return np.asarray(self._powers(area, shifts, self.n if rows is None else rows).max(axis=0))

    def _powers(self, area: Area, shifts: FloatArray, n: float) -> FloatArray:
        """Power of the singles together, of each form and of each kernel, (1 + checks, k)."""
        p, w = self.p[area.rows, None], self.weights[area.rows, None]
        truth = np.clip(p + shifts, 0.0, 1.0)
        move = _Move(area.rows, w * (truth - p), w**2 * (truth * (1 - truth) - p * (1 - p)))
        found = [np.zeros((1, shifts.size))]
        if area.singles.size:
            found = [self._of_singles(area, move, n)]
        found += [self._of_form(int(check), area, move, n) for check in area.forms]
        if area.kernels.size:
            some = area.rows < self.kernels[0].v.size
            move = _Move(area.rows[some], move.moved[some], move.change[some])
            found += [self._of_kernel(int(check), area, move, n) for check in area.kernels]
        return np.concatenate(found)

    def _critical(self, side: FloatArray, checks: IntArray | int, n: float) -> FloatArray:
        """Critical values with n rows: the skewness of a sum shrinks with their root."""
        normal = self.critical_normal[checks]
        return np.asarray(normal + (side[checks] - normal) * math.sqrt(self.n / n))

    def _student(self, checks: IntArray | int, n: float) -> FloatArray:
        """What Student's law makes of critical values with n rows; 1 without clusters."""
        normal = np.asarray(self.normal[checks])
        if self.law is None:
            return np.ones_like(normal)
        student = student_quantile(ndtr(-normal), self._freedom(n))
        return np.asarray(np.maximum(student / normal, 1.0))

    def _freedom(self, n: float) -> float:
        """Degrees of freedom of an estimated variance with n rows; infinite without clusters."""
        return math.inf if self.law is None else max(self.law.freedom * n / self.n, 1.0)

    def _swollen(self, observed: FloatArray, expected: FloatArray | float) -> FloatArray:
        """What values are divided by beside their null spread; see `scaling`."""
        if not self.bank.is_studentised:
            return np.ones_like(observed)
        return np.maximum(observed / expected, 1.0)

    def _of_singles(self, area: Area, move: _Move, n: float) -> FloatArray:
        """Power of checks of one feature together, (1, k)."""
        checks, scale = area.singles, area.times * n / self.p.size
        f = self.features[move.rows[:, None], self.bank.single[checks]]
        f = (f * self._single_scales[checks]).T
        squares = np.square(f)
        mean = scale * (f @ move.moved)
        own = scale * (squares @ np.square(move.moved))  # the shift's part in the diagonal
        expected = self.expected[checks, None] * n / self.n
        change = self.effects[checks, None] * scale * (squares @ move.change)
        spread = np.maximum(expected + change, 0.0)
        unit = np.sqrt(expected * self._swollen(spread + own, expected))
        critical = np.where(
            mean > 0,
            self._critical(self.critical_up, checks, n)[:, None],
            self._critical(self.critical_down, checks, n)[:, None],
        )
        critical = critical * self._student(checks, n)[:, None]
        # How many standard deviations each check is beyond its critical value, on the side on which
        # the shift has moved it; the other side has next to no power.
        beyond = (np.abs(mean) / unit - critical) * unit / (np.sqrt(spread) + 1e-300)
        beyond = beyond / np.sqrt(1 + np.square(critical) / (2 * self._freedom(n)))
        together = np.mean((area.normals[:, :, None] > -beyond).any(axis=1), axis=0)
        return np.asarray(np.maximum(together, ndtr(beyond).max(axis=0)))[None]

    def _of_form(self, check: int, area: Area, move: _Move, n: float) -> FloatArray:
        """Power of a check of several features, (1, k)."""
        scale = area.times * n / self.p.size
        columns, scales = self.bank.features_of(check)
        squares = np.square(scales)
        f = self.features[move.rows[:, None], columns]
        diagonal = np.square(f) @ squares
        means = scale * (f.T @ move.moved)
        own = scale * (diagonal @ np.square(move.moved))
        pull = squares[:, None] * means
        noises = [np.sum(pull * (part @ pull), axis=0) for part in self.covariances[check]]
        noise = n / self.n * np.max(noises, axis=0)
        noise += self.effects[check] * scale * np.sum(move.change * np.square(f @ pull), axis=0)
        return self._beyond_critical(
            value=squares @ np.square(means) - own,
            expected=self.expected[check] * n / self.n,
            change=scale * (diagonal @ move.change),
            own=own,
            noise=4 * np.maximum(noise, 0.0),
            null_sd=self.null_sd[check] * n / self.n,
            check=check,
            n=n,
        )

    def _of_kernel(self, check: int, area: Area, move: _Move, n: float) -> FloatArray:
        """Power of a kernel that is known on some rows, (1, k)."""
        kernel, rows = self.kernels[check], move.rows
        scale, times = n / kernel.v.size, area.kernel_times
        diagonal = kernel.diagonal[rows]
        smoothed = times * (kernel.matrix[rows].T @ move.moved)
        own = times * (diagonal @ np.square(move.moved))
        pairs = times * (np.sum(move.moved * smoothed[rows], axis=0) - own)
        more_pairs = (1 - 1 / max(scale * times * rows.size, 2.0)) / (1 - 1 / rows.size)
        noise = kernel.noise(smoothed)
        noise += kernel.effect * times * np.sum(move.change * np.square(smoothed[rows]), axis=0)
        return self._beyond_critical(
            value=scale**2 * more_pairs * pairs,
            expected=kernel.expected,
            change=times * (diagonal @ move.change),
            own=own,
            noise=4 * scale**3 * np.maximum(noise, 0.0),
            null_sd=n * kernel.null_sd,
            check=len(self.bank.entries) + check,
            n=n,
        )

    def _beyond_critical(
        self,
        *,
        value: FloatArray,
        expected: float,
        change: FloatArray,
        own: FloatArray,
        noise: FloatArray,
        null_sd: float,
        check: int,
        n: float,
    ) -> FloatArray:
        """Power of a quadratic form, given its mean, its diagonal and its noise, (1, k)."""
        spread = np.maximum(expected + change, 0.0)
        critical = float(self._critical(self.critical_up, check, n) * self._student(check, n) ** 2)
        doubt = 2 / self._freedom(n) * (critical * null_sd) ** 2
        total_sd = np.sqrt((null_sd * spread / expected) ** 2 + noise + doubt) + 1e-300
        needed = critical * null_sd * self._swollen(spread + own, expected)
        return np.asarray(ndtr((value - needed) / total_sd))[None]


@dataclass(frozen=True, eq=False)
class _Dense:
    """A kernel on some rows; its null sd, from all rows, is that of one row and grows with n."""

    matrix: FloatArray
    diagonal: FloatArray
    v: FloatArray
    expected: float
    null_sd: float
    shared: SharedNoise | None  # by rows of a cluster
    effect: float  # of clusters, on the null sd

    def noise(self, shares: FloatArray) -> FloatArray:
        """Null variances of sums of shares times residuals, (k,)."""
        if self.shared is None:
            return np.asarray(self.v @ np.square(shares))
        return self.shared.variance(shares)


def _on_some_rows(
    prepared: Prepared,
    pilot: Points,
    v: FloatArray,
    null_sd: FloatArray,
    law: ClusterLaw | None,
) -> tuple[_Dense, ...]:
    """The checks that are kernels, on as many rows as their matrices have room for."""
    plans = [kernel.plan for kernel in prepared.kernels if kernel.entry is not None]
    if any(plan.kernel.is_positional for plan in plans):
        raise InputError("a precomputed matrix cannot say what other rows would show")
    known = min(len(pilot), math.isqrt(CELLS_OF_KERNELS // max(len(plans), 1)))
    some = pilot.take(slice(0, known))
    shared = None if law is None or not plans else law.shared(v[:known])
    kernels = []
    for plan, sd in zip(plans, null_sd.tolist(), strict=True):
        matrix = plan.matrix(some)
        diagonal = np.diagonal(matrix).copy()
        effect = 1.0 if shared is None else shared.effect(matrix)
        expected = float(diagonal @ v[:known])
        kernels.append(_Dense(matrix, diagonal, v[:known], expected, effect * sd, shared, effect))
    return tuple(kernels)


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


def _first_reached(shifts: FloatArray, powers: FloatArray, wanted: float) -> tuple[float, float]:
    """The shifts between which the power first reaches what is wanted."""
    reached = np.flatnonzero(powers >= wanted)
    if reached.size == 0:
        return math.inf, math.inf
    at = int(reached[0])
    return float(shifts[at - 1]) if at else 0.0, float(shifts[at])
