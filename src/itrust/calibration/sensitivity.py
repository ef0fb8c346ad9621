"""Power of the adaptive test against a shift of some rows, in closed form.

A shift of the probabilities moves every entry of the dictionary by an amount that is known in
closed form, and so is the spread about it. The test rejects when any entry reaches its critical
value; the power computed is that of the single best entry, by normal approximation. Where several
entries see the shift, the test has more. Nothing here looks at a label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from itrust._core import BoolArray, FloatArray, InputError, IntArray
from itrust.calibration.dictionary.bank import Bank
from itrust.calibration.pipeline import Scores
from itrust.calibration.prepared import Prepared
from itrust.calibration.tails import pearson3_log_sf
from itrust.data import Points

SHIFTS = np.array(
    [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.11, 0.15, 0.2, 0.3, 0.4, 0.5]
)
MAX_ROWS_OF_KERNELS = 512
ROOM = 0.8  # of a shift that must fit between 0 and 1 on average


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Power of the best check against a shift of some rows, by normal approximation.

    Attributes
    ----------
    prepared : Prepared
        The test whose power is computed, with its checks.
    p, weights : (m,) arrays
        Of rows that stand for all.
    features : (R, m) array
        Their features, and the sums over each check's features of their squares in `squares`.
    expected : (E,) array
        Null variances of the checks on these rows.
    single_scales : (E,) array
        Scales of checks of a single feature.
    moments : mapping
        For checks of several features: which, and their null covariance.
    kernels : tuple
        Checks that are kernels, on some of the rows.
    critical_up, critical_down : (E,) arrays
        Standardised values that reach the critical score, on the positive and negative side.
    critical_normal : (E,) array
        The same without skewness.
    n : int
        Number of rows in the whole.
    """

    prepared: Prepared
    p: FloatArray
    weights: FloatArray
    features: FloatArray
    squares: FloatArray
    expected: FloatArray
    single_scales: FloatArray
    moments: dict[int, tuple[IntArray, FloatArray]]
    kernels: tuple[_Dense, ...]
    critical_up: FloatArray
    critical_down: FloatArray
    critical_normal: FloatArray
    n: int

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        scores: Scores,
        pilot: Points,
        weights: FloatArray,
        critical: float,
    ) -> Sensitivity:
        """From a prepared test and rows that stand for all."""
        bank = prepared.bank
        features = np.asarray(bank.matrix(pilot), dtype=float)
        few = pilot.take(slice(0, MAX_ROWS_OF_KERNELS))
        squares = bank.selector @ np.square(features)
        v = np.square(weights) * pilot.p * (1 - pilot.p)
        kernels = []
        sds = iter(scores.sd[len(bank.entries) :] / scores.n)
        for kernel in prepared.kernels:
            if kernel.entry is not None:
                if kernel.plan.kernel.is_positional:
                    raise InputError("a precomputed matrix cannot say what other rows would show")
                kernels.append(_Dense.of(kernel.plan.matrix(few), v[: len(few)], next(sds)))
        needed = critical - np.log(prepared.weights)
        two_sided = np.where(scores.is_single, np.log(2), 0.0)
        up, down, normal = (
            _inverse_tail(needed + two_sided, np.maximum(sign * scores.skewness, 0.0))
            for sign in (1, -1, 0)
        )
        return cls(
            prepared=prepared,
            p=pilot.p,
            weights=weights,
            features=features,
            squares=squares,
            expected=squares @ v,
            single_scales=np.sqrt(np.asarray(bank.selector.sum(axis=1)).ravel()),
            moments=_moments(bank, features, v),
            kernels=tuple(kernels),
            critical_up=up,
            critical_down=down,
            critical_normal=np.where(scores.is_single, normal, up),
            n=scores.n,
        )

    def directions(self, inside: BoolArray, shift: float = 0.05) -> tuple[int, ...]:
        """Ways in which probabilities can be shifted by that much; the better one at least."""
        p = self.p[inside]
        room = {sign: np.abs(np.clip(p + sign * shift, 0, 1) - p).mean() for sign in (1, -1)}
        able = tuple(sign for sign in room if room[sign] >= ROOM * shift)
        return able or (max(room, key=lambda sign: room[sign]),)

    def smallest_both(self, inside: BoolArray, wanted: float) -> tuple[float, float]:
        """The smallest shifts up and down that are seen; NaN for a way without room.

        Where neither way has room (probabilities near 0 and near 1 side by side), the way with
        more of it is taken, and the shift is the one that the rows have on average.
        """
        up, down = (self.smallest(inside, sign, wanted) for sign in (1, -1))
        if not (math.isnan(up) and math.isnan(down)):
            return up, down
        sign = self.directions(inside)[0]
        shift = self.smallest(inside, sign, wanted, cramped=True)
        if math.isfinite(shift):
            p = self.p[inside]
            shift = float(np.abs(np.clip(p + sign * shift, 0, 1) - p).mean())
        return (shift, math.nan) if sign > 0 else (math.nan, shift)

    def smallest(
        self, inside: BoolArray, sign: int, wanted: float, *, cramped: bool = False
    ) -> float:
        """The smallest shift one way that is seen with the wanted power.

        Only shifts that fit between 0 and 1 count, unless `cramped`: NaN if those that fit are
        not seen, infinity if 0.5 fits and is not seen.
        """
        p = self.p[inside, None]
        moved = np.abs(np.clip(p + sign * SHIFTS, 0, 1) - p).mean(axis=0)
        shifts = SHIFTS if cramped else SHIFTS[moved >= ROOM * SHIFTS]
        if shifts.size == 0:
            return math.nan
        low, high = _first_reached(shifts, self.power(inside, sign * shifts), wanted)
        if not math.isfinite(high):
            return math.inf if shifts[-1] == SHIFTS[-1] else math.nan
        between = np.linspace(low, high, 21)[1:]
        return _first_reached(between, self.power(inside, sign * between), wanted)[1]

    def power(self, inside: BoolArray, shifts: FloatArray, rows: float | None = None) -> FloatArray:
        """Power against each shift, (k,), with as many rows as asked for."""
        n = self.n if rows is None else rows
        up, down = (self._critical(side, n) for side in (self.critical_up, self.critical_down))
        moving = np.flatnonzero(inside)
        truth = np.clip(self.p[moving, None] + shifts, 0.0, 1.0)
        found = [self._of_features(moving, truth, n / self.p.size, up, down)]
        few = moving < MAX_ROWS_OF_KERNELS
        for kernel, needed in zip(self.kernels, up[len(self.prepared.bank.entries) :], strict=True):
            found.append(self._of_kernel(kernel, moving[few], truth[few], n, float(needed)))
        return np.asarray(np.concatenate(found).max(axis=0))

    def _critical(self, side: FloatArray, n: float) -> FloatArray:
        """Critical values with n rows: the skewness of a sum shrinks with their root."""
        return self.critical_normal + (side - self.critical_normal) * math.sqrt(self.n / n)

    def _of_features(
        self,
        moving: IntArray,
        truth: FloatArray,
        scale: float,
        critical_up: FloatArray,
        critical_down: FloatArray,
    ) -> FloatArray:
        """Power of every entry made of features, (E, k)."""
        bank = self.prepared.bank
        if not bank.entries:
            return np.zeros((1, truth.shape[1]))
        w, p = self.weights[moving, None], self.p[moving, None]
        moved, squares = truth - p, self.squares[:, moving]
        means = scale * (self.features[:, moving] @ (w * moved))  # (R, k)
        own = scale * (squares @ (w * moved) ** 2)  # the shift's part in the diagonal
        expected = scale * self.expected[:, None]
        spread = expected + scale * (squares @ (w**2 * (truth * (1 - truth) - p * (1 - p))))
        swollen = np.maximum((spread + own) / expected, 1.0)
        up, down = (c[: len(bank.entries), None] for c in (critical_up, critical_down))
        power = np.empty(swollen.shape)
        at = np.flatnonzero(bank.single >= 0)
        mean = means[bank.single[at]] * self.single_scales[at, None]
        unit = np.sqrt(expected[at] * swollen[at])
        sd = np.sqrt(np.maximum(spread[at], 0.0)) / unit + 1e-12
        power[at] = ndtr((mean / unit - up[at]) / sd) + ndtr((-mean / unit - down[at]) / sd)
        at = np.flatnonzero(bank.single < 0)
        if at.size:
            null_sd = bank.moments.take(at).of_forms(expected[at, 0])[0][:, None]
            value = bank.selector[at] @ np.square(means) - own[at]
            noise = scale * np.stack([self._noise(k, means) for k in at.tolist()])
            total_sd = np.sqrt((null_sd * spread[at] / expected[at]) ** 2 + noise)
            power[at] = ndtr((value - up[at] * null_sd * swollen[at]) / total_sd)
        return power

    def _noise(self, entry: int, means: FloatArray) -> FloatArray:
        """4 mu' C mu for the features of one entry, (k,); C of the rows that stand for all."""
        columns, moments = self.moments[entry]
        chosen = means[columns]
        return np.asarray(4 * np.einsum("rk,rk->k", chosen, moments @ chosen))

    def _of_kernel(
        self,
        kernel: _Dense,
        moving: IntArray,
        truth: FloatArray,
        n: float,
        critical: float,
    ) -> FloatArray:
        """Power of a kernel that is known on some rows, (1, k)."""
        scale = n / len(kernel.v)
        w, v, diagonal = self.weights[moving, None], kernel.v, kernel.diagonal
        p = self.p[moving, None]
        moved = w * (truth - p)
        smoothed = kernel.matrix[:, moving] @ moved
        own = diagonal[moving] @ moved**2
        value = scale**2 * (np.sum(moved * smoothed[moving], axis=0) - own)
        spread = kernel.expected + diagonal[moving] @ (w**2 * (truth * (1 - truth) - p * (1 - p)))
        swollen = np.maximum((spread + own) / kernel.expected, 1.0)
        null_sd = n * kernel.null_sd
        noise = 4 * scale**3 * (v @ np.square(smoothed))
        total_sd = np.sqrt((null_sd * spread / kernel.expected) ** 2 + noise) + 1e-300
        return np.asarray(ndtr((value - critical * null_sd * swollen) / total_sd))[None]


@dataclass(frozen=True, eq=False)
class _Dense:
    """A kernel on some rows; its null sd, from all rows, is that of one row and grows with n."""

    matrix: FloatArray
    diagonal: FloatArray
    v: FloatArray
    expected: float
    null_sd: float

    @classmethod
    def of(cls, matrix: FloatArray, v: FloatArray, null_sd: float) -> _Dense:
        diagonal = np.diagonal(matrix).copy()
        return cls(matrix, diagonal, v, float(diagonal @ v), null_sd)


def _moments(
    bank: Bank, features: FloatArray, v: FloatArray
) -> dict[int, tuple[IntArray, FloatArray]]:
    """For entries of several features: which, and L C L with C = F'VF and L their scales^2."""
    found = {}
    for entry in np.flatnonzero(bank.single < 0).tolist():
        row = slice(bank.selector.indptr[entry], bank.selector.indptr[entry + 1])
        columns: IntArray = bank.selector.indices[row].astype(np.int64)
        scales: FloatArray = bank.selector.data[row]
        f = features[columns]
        found[entry] = columns, scales[:, None] * ((f * v) @ f.T) * scales
    return found


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
