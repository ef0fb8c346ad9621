"""From sums of residuals to intervals and p-values that agree with each other.

A bias b at a place is compatible when the observed mean is not too far out in the law that labels
with probability p + b would give it: variance and skewness are those at b, not at the estimate, so
the interval holds its level with rare events, too. Residuals that vary more than that (biases that
differ between the rows of a place) widen it.

A place is shown to be biased when redrawn labels say so, which is exact, and 0 is not compatible:
the p-value takes both into account, and an interval that redrawn labels do not back reaches 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import ndtr, ndtri

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.calibration import (
    from_normal_score,
    normal_score,
    step_down,
    student_quantile,
    student_tail,
    unadjusted_pvalues,
    upper_score,
)
from itrust.nulls import is_symmetric

BEYOND_DOUBT = 1e5  # score of a label that was called impossible: above all others
MAX_STEPS, PRECISION = 100, 2.0**-40  # of looking for the end of an interval
TIE = 1e-9  # draws within this share of the largest score count as ties with the data
FAR_OUT = 40.0  # normal score beyond which all is alike
MIN_FREEDOM = 0.5  # effective clusters less one, below which nothing can be said


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def polynomial(coefficients: FloatArray, at: FloatArray | float) -> FloatArray:
    """Sum of coefficients (k, m) times powers of `at`, (m,)."""
    return np.asarray(polyval(at, coefficients, tensor=False))


@dataclass(frozen=True, eq=False)
class Averages:
    """Sums of weighted residuals at m places, and how they vary if the bias there is b.

    With a_i the weight of row i, survey weight included, and P the weighted mean of p: labels with
    a mean bias b are taken to be 1 with probability p (1 + b / P) if b is negative, and 0 with
    probability (1 - p) (1 - b / (1 - P)) if it is positive. So variance and third central
    moment of sum a_i (y_i - p_i) are polynomials in b, and all is possible from "never" to
    "always".
    """

    sums: FloatArray  # (laws, m, 1 + draws), data first
    multiplied: FloatArray  # (m, draws), residuals times normal numbers
    spread: FloatArray
    residual: FloatArray
    rows: IntArray
    mass: FloatArray
    predicted: FloatArray
    second: FloatArray
    third: FloatArray
    squares: FloatArray
    by_design: FloatArray
    by_multipliers: FloatArray
    carried: FloatArray
    freedom: float | None  # of a design
    total: float

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

    @property
    def freedom_at_places(self) -> FloatArray | None:
        """Degrees of freedom at every place of a design, (m,)."""
        if self.freedom is None:
            return None
        return np.minimum(self.freedom, np.nan_to_num(self.size) - 1)

    def take(self, places: IntArray) -> Averages:
        kept: dict[str, Any] = {"sums": self.sums[:, places]}
        kept |= {name: vars(self)[name][places] for name in ("multiplied", "spread")}
        for own in fields(self):
            value = getattr(self, own.name)
            if own.name not in kept and isinstance(value, np.ndarray):
                kept[own.name] = value[..., places]
        return replace(self, **kept)

    @property
    def values(self) -> FloatArray:
        """Weighted mean residual of the data, (m,); NaN where no row counts."""
        return _ratio(self.residual, self.mass)

    @property
    def stderr(self) -> FloatArray:
        """Standard error of the values, from how much residuals vary in the design, (m,)."""
        variance = polynomial(self.by_design, np.nan_to_num(self.values))
        return _ratio(np.sqrt(np.maximum(variance, 0.0)), self.mass)

    @cached_property
    def inflation(self) -> FloatArray:
        """How much the design adds to the variance, at least 1, (m,)."""
        if self.freedom is None:
            return np.ones(self.residual.size)
        b, size = np.nan_to_num(self.values), self.size
        plain = polynomial(self.squares, b)
        ratio = _ratio(polynomial(self.by_design, b), plain)
        return np.fmax(1.0, ratio * np.fmax(_ratio(size, size - 1), 1.0))

    @cached_property
    def _beyond_labels(self) -> tuple[FloatArray, FloatArray]:
        """Variance of residuals beyond that of labels from p + b, and how far labels go astray.

        From 0, labels vary as p says, to 1, at least twice as much.
        """
        b = np.nan_to_num(self.values)
        labels = self.central(b)[0]
        excess = np.maximum(polynomial(self.squares, b) - labels, 0.0)
        astray = np.where(excess < labels, excess / np.where(labels > 0, labels, 1.0), 1.0)
        return excess, np.where(excess > 0, astray, 0.0)

    def distance(self, values: FloatArray, bias: FloatArray) -> FloatArray:
        """Normal score of the observed mean if this were the bias, without its sign.

        In a design Student's law takes the place of the normal one, with the degrees of freedom of
        the design, or of the effective clusters at the place where these are fewer.
        """
        excess, astray = self._beyond_labels
        plain, third = self.central(bias)
        # Of the sum: that of labels and the excess; of residuals where labels go astray.
        modelled = plain + excess
        seen = np.maximum(polynomial(self.squares, bias), modelled)
        variance = (modelled + astray * (seen - modelled)) * self.inflation
        scale = np.where(variance > 0, variance, 1.0)
        # Labels come in steps: where few events are expected, half a step counts as equal.
        step = self.second[0] / np.where(self.mass > 0, self.mass, 1.0)
        slack = 0.5 * step / (1 + plain / np.where(step > 0, step, 1.0) ** 2)
        away = np.abs(values - bias) * self.mass
        off = np.maximum(away - slack, 0.0)
        z = off / np.sqrt(scale)
        score = upper_score(z, np.sign(values - bias) * third / scale**1.5)
        # No room for any variation: nothing but the bias itself is compatible.
        score = np.where((variance > 0) | (away == 0), score, np.inf)
        freedom = self.freedom_at_places
        if freedom is None:
            return score
        some = freedom > MIN_FREEDOM  # 0 where a cluster or so is all there is
        tail = student_tail(score, np.where(some, freedom, 1.0))
        return np.where(some, -ndtri(tail), 0.0)

    def null_scales(self) -> tuple[FloatArray, FloatArray]:
        """Variance and skewness of the sums under "no row has a bias", (laws, m) each.

        Labels of independent rows have closed forms; of those that are alike within clusters, the
        draws tell, the data among them.
        """
        if self.freedom is not None:
            variance = np.square(self.sums).mean(axis=2)
            third = (self.sums**3).mean(axis=2)
        else:
            variance, third = (part[None] for part in self.central(0.0))
        lively = variance > 1e-12 * self.second[0]
        scale = np.where(lively, variance, 1.0)
        return np.where(lively, variance, 0.0), third * scale**-1.5 * lively

    def null_scores(self, *, studentised: bool) -> FloatArray:
        """Normal scores under "no row has a bias", data first, (laws, m, 1 + draws).

        With `studentised`, a place whose residuals vary more than p (1 - p) says is divided by
        how much they do: the score then also holds where biases of its rows cancel.
        """
        scores = np.empty(self.sums.shape)
        # Rows that cannot vary have no draws; a residual there is a label called impossible.
        impossible = np.abs(self.residual) > 1e-9 * np.maximum(self.mass, 1e-300)
        for law, (variance, skewness) in enumerate(zip(*self.null_scales(), strict=True)):
            lively = variance > 0
            scale = np.where(lively, variance, 1.0)[:, None]
            scores[law] = self.sums[law] / np.sqrt(scale)
            if studentised and self.freedom is None:
                scores[law] /= np.sqrt(np.maximum(self.spread / scale, 1.0))
            scores[law] = normal_score(scores[law], skewness[:, None])
            scores[law, ~lively] = 0.0
            beyond = ~lively & impossible
            scores[law, beyond, 0] = BEYOND_DOUBT * np.sign(self.residual[beyond])
        return scores

    def multiplier_scores(self) -> FloatArray:
        """Standard normal at every place, correlated as the estimates are, (m, draws)."""
        spread = self.by_multipliers
        scale = np.sqrt(np.where(spread > 0, spread, 1.0))
        return np.asarray(self.multiplied / scale[:, None])


@dataclass(frozen=True, eq=False)
class Band:
    """A lower and an upper end for every place.

    Attributes
    ----------
    lower, upper : (m,) array
        Ends of the interval at each place; NaN where nothing is known.
    """

    lower: FloatArray
    upper: FloatArray

    @property
    def at_least(self) -> FloatArray:
        """Ends next to 0, with their sign; 0 where an interval includes 0, (m,)."""
        return np.asarray(np.maximum(self.lower, 0.0) + np.minimum(self.upper, 0.0))

    def take(self, places: IntArray) -> Band:
        """Keep some places.

        Parameters
        ----------
        places : (k,) array of int
            Which places, by number.

        Returns
        -------
        Band
            With k intervals.
        """
        return Band(self.lower[places], self.upper[places])


def critical_value(maxima: FloatArray, alpha: float) -> float:
    """The value that a new maximum exceeds with probability at most `alpha`, (draws,).

    The draws and the data are alike, so the k-th largest of B draws is exceeded with probability
    at most k / (B + 1). Infinite where the draws are too few.
    """
    allowed = math.floor(alpha * (1 + maxima.size) + 1e-9)
    return float(np.sort(maxima)[-allowed]) if allowed >= 1 else math.inf


def null_band(averages: Averages, critical: FloatArray, by_design: float) -> Band:
    """Mean residuals whose normal score stays within +- critical if no row has a bias.

    The widest of all laws, each with its critical value, (laws,). In a design, `by_design` is the
    critical value where clusters' sums are nearly symmetric: the variance between clusters and
    Student's law tell how far means go there.
    """
    mass = np.where(averages.mass > 0, averages.mass, np.nan)
    ends = [np.full(mass.size, np.nan), np.full(mass.size, np.nan)]
    for variance, skewness, reach in zip(*averages.null_scales(), critical, strict=True):
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
        still = (variance <= 0) & np.isfinite(mass)
        for side, (sign, widest) in enumerate(((-1, np.fmin), (1, np.fmax))):
            own = from_normal_score(np.full(mass.size, sign * reach), skewness) * scale / mass
            ends[side] = widest(ends[side], np.where(still, 0.0, own))
    freedom = averages.freedom_at_places
    if freedom is not None:
        symmetric = averages.is_symmetric
        some = freedom > MIN_FREEDOM
        normal_tail = ndtr(-np.full(mass.size, by_design))
        reached = student_quantile(normal_tail, np.where(some, freedom, 1.0))
        reached = np.where(some, reached, np.inf)
        spread = reached * np.sqrt(np.maximum(averages.by_design[0], 0.0)) / mass
        ends = [
            np.where(symmetric, sign * spread, np.where(np.isnan(end), sign * 1.0, end))
            for sign, end in zip((-1, 1), ends, strict=True)
        ]
    # Between "every label is 0" and "every label is 1" lies all that can happen.
    predicted = averages.mean_prediction
    return Band(np.fmax(ends[0], -predicted), np.fmin(ends[1], 1 - predicted))


def confidence_band(
    averages: Averages, reach: FloatArray | float, reach_at_zero: float | None = None
) -> Band:
    """Biases b whose law puts the observed mean within the reach.

    The reach is a normal score: one for all, or one for each place, (m,).
    Where redrawn labels give the reach at b = 0, it changes in proportion to b up to the estimate.
    """
    values = averages.values
    at_zero = reach if reach_at_zero is None else reach_at_zero

    def room(bias: FloatArray) -> FloatArray:
        """How much farther out the observed mean might be if this were the bias."""
        towards_zero = (bias * values >= 0) & (np.abs(bias) < np.abs(values))
        slope = (reach - at_zero) / np.where(values == 0, 1.0, values)
        allowed = np.where(towards_zero, at_zero + slope * bias, reach)
        distance = averages.distance(values, bias)
        return np.minimum(allowed, FAR_OUT) - np.minimum(distance, 2 * FAR_OUT)

    # The compatible bias farthest from the estimate, towards either end; 0 is tried first.
    predicted = averages.mean_prediction
    ends = np.stack([-predicted, 1 - predicted])
    between = (np.minimum(values, ends) <= 0) & (np.maximum(values, ends) >= 0)
    near = averages.distance(values, np.zeros_like(values)) <= at_zero
    inside = np.where(between & near, 0.0, values)
    lower, upper = _last_with_room(room, inside, np.where(between & ~near, 0.0, ends))
    known = np.isfinite(values)
    return Band(np.where(known, lower, np.nan), np.where(known, upper, np.nan))


def flagged(averages: Averages, alpha: float) -> tuple[Band, Band, FloatArray]:
    """Null band, confidence band and p-values of points, where any bias of a neighbour counts.

    Redrawn labels decide about 0, multipliers about the rest.
    Means of labels have lighter tails than the normal numbers of multipliers, and how much lighter
    is known exactly where there is no bias.
    """
    redrawn = np.abs(averages.null_scores(studentised=False))
    maxima = redrawn[:, :, 1:].max(axis=1, initial=0.0)
    at_zero = np.array([critical_value(own, alpha) for own in maxima])
    multiplied = np.abs(averages.multiplier_scores()).max(axis=0, initial=0.0)
    reach = critical_value(multiplied, alpha)
    zero = np.abs(zero_scores(averages))
    if averages.freedom is not None:
        by_law = [_at_least(*pair) for pair in zip(maxima, redrawn[:, :, 0], strict=True)]
        pvalues = np.maximum(_at_least(multiplied, zero), _where_redrawn(averages, by_law))
        band = confidence_band(averages, reach)
    else:
        # The score of the band at 0 is nearly that of the redraws; both have to be beyond.
        observed = np.minimum(redrawn[0, :, 0], zero)
        rounding = TIE * np.abs(redrawn).max(initial=0.0)
        pvalues = _at_least(maxima[0], observed - rounding)
        band = confidence_band(averages, reach, float(at_zero[0]))
    null = null_band(averages, at_zero, reach)
    # No value leaves the null band whose p-value does not say so.
    inside = np.where(pvalues > alpha, averages.values, np.nan)
    null = Band(np.fmin(null.lower, inside), np.fmax(null.upper, inside))
    return null, backed(band, pvalues <= alpha), pvalues


def _where_redrawn(averages: Averages, pvalues: Sequence[FloatArray]) -> FloatArray:
    """The largest p-values of all laws; 0 where clusters' sums are symmetric, 1 without laws."""
    largest = np.max(pvalues, axis=0) if len(pvalues) else np.ones(averages.residual.size)
    symmetric = averages.freedom is not None and averages.is_symmetric
    return np.where(symmetric, 0.0, largest)


def backed(band: Band, backed: BoolArray) -> Band:
    """Intervals that reach 0 where that is not refuted."""
    lower = np.where(backed, band.lower, np.minimum(band.lower, 0.0))
    upper = np.where(backed, band.upper, np.maximum(band.upper, 0.0))
    return Band(lower, upper)


def judged(
    averages: Averages, alpha: float, *, simultaneous: bool = True
) -> list[dict[str, float]]:
    """Rates, intervals and p-values of groups of rows, together or each alone.

    Together, redrawn labels are compared by step-down max-T, and 0 with the maxima of multipliers
    that also give the intervals.
    """
    laws = [np.abs(scores) for scores in averages.null_scores(studentised=True)]
    drawn = np.abs(np.column_stack([zero_scores(averages), averages.multiplier_scores()]))
    redrawn = _where_redrawn(averages, [unadjusted_pvalues(scores) for scores in laws])
    if simultaneous:
        unadjusted = np.maximum(redrawn, unadjusted_pvalues(drawn))
        maxima = drawn[:, 1:].max(axis=0, initial=0.0)
        reach = np.asarray(critical_value(maxima, alpha))
        together = _where_redrawn(averages, [step_down(scores) for scores in laws])
        adjusted = np.maximum(together, _at_least(maxima, drawn[:, 0]))
    else:
        reach = np.asarray(ndtri(1 - alpha / 2))
        unadjusted = np.maximum(redrawn, 2 * ndtr(-drawn[:, 0]))
        adjusted = unadjusted
    band = backed(confidence_band(averages, reach), adjusted <= alpha)
    return rates_of(averages, band, unadjusted, adjusted)


def rates_of(
    averages: Averages, band: Band, unadjusted: FloatArray, adjusted: FloatArray
) -> list[dict[str, float]]:
    """Rates, intervals and p-values of every place, by name."""
    predicted = averages.mean_prediction
    columns = {
        "predicted": predicted,
        "observed": predicted + averages.values,
        "lower": band.lower,
        "upper": band.upper,
        "stderr": averages.stderr,
        "unadjusted_pvalue": unadjusted,
        "pvalue": adjusted,
    }
    rows = np.column_stack(list(columns.values())).tolist()
    return [dict(zip(columns, row, strict=True)) for row in rows]


def zero_scores(averages: Averages) -> FloatArray:
    """Normal scores of the observed means if there were no bias, with their sign, (m,)."""
    values = np.nan_to_num(averages.values)
    away = averages.distance(values, np.zeros_like(values))
    return np.sign(values) * np.maximum(away, 0.0)  # negative: more likely than not to be as far


def _at_least(maxima: FloatArray, observed: FloatArray) -> FloatArray:
    """(1 + maxima at least as large) / (1 + maxima) for every place, (m,)."""
    below = np.searchsorted(np.sort(maxima), observed, side="left")
    return (1 + maxima.size - below) / (1 + maxima.size)


def _last_with_room(
    room: Callable[[FloatArray], FloatArray], inside: FloatArray, outside: FloatArray
) -> FloatArray:
    """The last bias with room on the way outside; all the way where nothing stops it.

    Chandrupatla's method: interpolation where three values allow it, halving where they do not.
    """
    new, old = inside, outside
    at_new, at_old = np.maximum(room(inside), 0.0), room(outside)
    all_the_way = at_old >= 0
    share = np.full_like(inside, 0.5)
    for _ in range(MAX_STEPS):
        tried = new + share * (old - new)
        at_tried = room(tried)
        same = (at_tried >= 0) == (at_new >= 0)
        third, at_third = np.where(same, new, old), np.where(same, at_new, at_old)
        old, at_old = np.where(same, old, new), np.where(same, at_old, at_new)
        new, at_new = tried, at_tried
        if (all_the_way | ~(np.abs(old - new) > PRECISION)).all():
            break
        share = _next_share((new, old, third), (at_new, at_old, at_third))
    return np.where(all_the_way, outside, np.where(at_new >= 0, new, old))


def _next_share(at: Sequence[FloatArray], found: Sequence[FloatArray]) -> FloatArray:
    """How far from the first place to the second to look next, given what a third place gave."""
    (a, b, c), (fa, fb, fc) = at, found
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x, y = (a - b) / (c - b), (fa - fb) / (fc - fb)
        straight = fa / (fb - fa) * fc / (fb - fc)
        curved = straight + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        least = np.minimum(0.5 * PRECISION / np.abs(b - a), 0.5)
        smooth = (y**2 < x) & ((1 - y) ** 2 < 1 - x) & np.isfinite(curved)
        return np.clip(np.where(smooth, curved, 0.5), least, 1 - least)
