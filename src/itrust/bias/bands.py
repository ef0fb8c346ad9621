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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.bias.averages import Averages, Moments, polynomial
from itrust.calibration import (
    from_normal_score,
    step_down,
    student_quantile,
    student_tail,
    unadjusted_pvalues,
    upper_score,
)

MAX_STEPS, PRECISION = 100, 2.0**-40  # of looking for the end of an interval
TIE = 1e-9  # draws within this share of the largest score count as ties with the data
FAR_OUT = 40.0  # normal score beyond which all is alike
MIN_FREEDOM = 0.5  # effective clusters less one, below which nothing can be said


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
    moments = averages.moments
    mass = np.where(moments.mass > 0, moments.mass, np.nan)
    ends = [np.full(mass.size, np.nan), np.full(mass.size, np.nan)]
    for variance, skewness, reach in zip(*averages.null_scales(), critical, strict=True):
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
        still = (variance <= 0) & np.isfinite(mass)
        for side, (sign, widest) in enumerate(((-1, np.fmin), (1, np.fmax))):
            own = from_normal_score(np.full(mass.size, sign * reach), skewness) * scale / mass
            ends[side] = widest(ends[side], np.where(still, 0.0, own))
    if averages.has_clusters:
        symmetric = moments.is_symmetric
        reached = _student_reach(np.full(mass.size, by_design), _freedom(averages))
        spread = reached * np.sqrt(np.maximum(moments.by_design[0], 0.0)) / mass
        ends = [
            np.where(symmetric, sign * spread, np.where(np.isnan(end), sign * 1.0, end))
            for sign, end in zip((-1, 1), ends, strict=True)
        ]
    # Between "every label is 0" and "every label is 1" lies all that can happen.
    predicted = moments.mean_prediction
    return Band(np.fmax(ends[0], -predicted), np.fmin(ends[1], 1 - predicted))


def confidence_band(
    averages: Averages, reach: FloatArray | float, reach_at_zero: float | None = None
) -> Band:
    """Biases b whose law puts the observed mean within the reach.

    The reach is a normal score: one for all, or (2, m) for means above and below b at each place.
    Where redrawn labels give the reach at b = 0, it changes in proportion to b up to the estimate.
    """
    law, values = MeanLaw.of(averages), averages.values
    reach = np.broadcast_to(reach, (2, values.size))
    at_zero = reach if reach_at_zero is None else np.full(reach.shape, reach_at_zero)

    def room(bias: FloatArray) -> FloatArray:
        """How much farther out the observed mean might be if this were the bias."""
        towards_zero = (bias * values >= 0) & (np.abs(bias) < np.abs(values))
        slope = (reach - at_zero) / np.where(values == 0, 1.0, values)
        allowed = np.where(towards_zero, at_zero + slope * bias, reach)
        distance = law.distance(values, bias)
        return np.minimum(allowed, FAR_OUT) - np.minimum(distance, 2 * FAR_OUT)

    # The compatible bias farthest from the estimate, towards either end; 0 is tried first.
    predicted = averages.moments.mean_prediction
    ends = np.stack([-predicted, 1 - predicted])
    between = (np.minimum(values, ends) <= 0) & (np.maximum(values, ends) >= 0)
    near = law.distance(values, np.zeros_like(values)) <= at_zero
    inside = np.where(between & near, 0.0, values)
    lower, upper = _last_with_room(room, inside, np.where(between & ~near, 0.0, ends))
    known = np.isfinite(values)
    return Band(np.where(known, lower, np.nan), np.where(known, upper, np.nan))


@dataclass(frozen=True, eq=False)
class Shares:
    """How the error that is allowed is spread over places and sides."""

    above: FloatArray
    below: FloatArray

    def combined(self, scores: FloatArray) -> FloatArray:
        """Tails of normal scores on the log scale; a larger share needs to show less, (m, k)."""
        sides = ((self.above, scores), (self.below, -scores))
        tails = (np.log(own)[:, None] - log_ndtr(-np.minimum(z, FAR_OUT)) for own, z in sides)
        return np.asarray(np.maximum(*tails))

    def reach(self, critical: float) -> FloatArray:
        """Normal scores at which one side alone is critical, (2, m)."""
        tails = critical - np.log(np.stack([self.above, self.below]))
        return np.maximum(-ndtri_exp(np.minimum(-tails, 0.0)), 0.0)


class Verdicts(NamedTuple):
    """Intervals and p-values of m places, which agree at alpha."""

    band: Band
    unadjusted: FloatArray
    adjusted: FloatArray


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
    if averages.has_clusters:
        pvalues = np.maximum(
            _at_least(multiplied, zero),
            _where_redrawn(
                averages,
                [_at_least(own, score[:, 0]) for own, score in zip(maxima, redrawn, strict=True)],
            ),
        )
        band = confidence_band(averages, reach)
    else:
        # The score of the band at 0 is nearly that of the redraws; both have to be beyond.
        observed = np.minimum(redrawn[0, :, 0], zero)
        rounding = TIE * np.abs(redrawn).max(initial=0.0)
        pvalues = _at_least(maxima[0], observed - rounding)
        band = confidence_band(averages, reach, float(at_zero[0]))
    null = _including(null_band(averages, at_zero, reach), averages.values, pvalues > alpha)
    return null, _backed(band, pvalues <= alpha), pvalues


def _where_redrawn(averages: Averages, pvalues: Sequence[FloatArray]) -> FloatArray:
    """The largest p-values of all laws; 0 where clusters' sums are symmetric, 1 without laws."""
    largest = np.max(pvalues, axis=0) if len(pvalues) else np.ones(averages.residual.size)
    symmetric = averages.has_clusters and averages.moments.is_symmetric
    return np.where(symmetric, 0.0, largest)


def _including(band: Band, values: FloatArray, kept: BoolArray) -> Band:
    """A null band that no value leaves whose p-value does not say so."""
    lower = np.where(kept, np.fmin(band.lower, values), band.lower)
    upper = np.where(kept, np.fmax(band.upper, values), band.upper)
    return Band(lower, upper)


def _backed(band: Band, backed: BoolArray) -> Band:
    """Intervals that reach 0 where that is not refuted."""
    lower = np.where(backed, band.lower, np.minimum(band.lower, 0.0))
    upper = np.where(backed, band.upper, np.maximum(band.upper, 0.0))
    return Band(lower, upper)


def judged(
    averages: Averages,
    alpha: float,
    *,
    simultaneous: bool = True,
    shares: Shares | None = None,
) -> Verdicts:
    """Intervals and p-values of groups of rows, together or each alone.

    Together, redrawn labels are compared by step-down max-T, and 0 with the maxima of multipliers
    that also give the intervals.
    """
    combined = np.abs if shares is None else shares.combined
    laws = [combined(scores) for scores in averages.null_scores(studentised=True)]
    drawn = combined(np.column_stack([zero_scores(averages), averages.multiplier_scores()]))
    redrawn = _where_redrawn(averages, [unadjusted_pvalues(scores) for scores in laws])
    if simultaneous:
        unadjusted = np.maximum(redrawn, unadjusted_pvalues(drawn))
        maxima = drawn[:, 1:].max(axis=0, initial=0.0)
        critical = critical_value(maxima, alpha)
        reach = np.asarray(critical) if shares is None else shares.reach(critical)
        together = _where_redrawn(averages, [step_down(scores) for scores in laws])
        adjusted = np.maximum(together, _at_least(maxima, drawn[:, 0]))
    else:
        reach = np.asarray(ndtri(1 - alpha / 2))
        unadjusted = np.maximum(redrawn, 2 * ndtr(-drawn[:, 0]))
        adjusted = unadjusted
    band = confidence_band(averages, reach)
    return Verdicts(_backed(band, adjusted <= alpha), unadjusted, adjusted)


def zero_scores(averages: Averages) -> FloatArray:
    """Normal scores of the observed means if there were no bias, with their sign, (m,)."""
    values = np.nan_to_num(averages.values)
    away = MeanLaw.of(averages).distance(values, np.zeros_like(values))
    return np.sign(values) * np.maximum(away, 0.0)  # negative: more likely than not to be as far


def _at_least(maxima: FloatArray, observed: FloatArray) -> FloatArray:
    """(1 + maxima at least as large) / (1 + maxima) for every place, (m,)."""
    below = np.searchsorted(np.sort(maxima), observed, side="left")
    return (1 + maxima.size - below) / (1 + maxima.size)


@dataclass(frozen=True, eq=False)
class MeanLaw:
    """How the weighted mean of y - p varies, given the bias at each place."""

    moments: Moments
    inflation: FloatArray
    excess: FloatArray  # variance of the residuals beyond that of labels from p + b
    astray: FloatArray  # from 0, labels vary as p says, to 1, at least twice as much
    freedom: FloatArray | None  # of Student's law in a design

    @classmethod
    def of(cls, averages: Averages) -> MeanLaw:
        moments, b = averages.moments, np.nan_to_num(averages.values)
        labels = moments.central(b)[0]
        excess = np.maximum(polynomial(moments.squares, b) - labels, 0.0)
        astray = np.where(excess < labels, excess / np.where(labels > 0, labels, 1.0), 1.0)
        astray = np.where(excess > 0, astray, 0.0)
        freedom = _freedom(averages) if averages.has_clusters else None
        return cls(moments, averages.inflation, excess, astray, freedom)

    def variance(self, bias: FloatArray, labels: FloatArray) -> FloatArray:
        """Of the sum: that of labels and the excess; of residuals where labels go astray."""
        modelled = labels + self.excess
        seen = np.maximum(polynomial(self.moments.squares, bias), modelled)
        return (modelled + self.astray * (seen - modelled)) * self.inflation

    def distance(self, values: FloatArray, bias: FloatArray) -> FloatArray:
        """Normal score of the observed mean if this were the bias, without its sign.

        In a design Student's law takes the place of the normal one, with the degrees of freedom of
        the design, or of the effective clusters at the place where these are fewer.
        """
        moments = self.moments
        plain, third = moments.central(bias)
        variance = self.variance(bias, plain)
        scale = np.where(variance > 0, variance, 1.0)
        # Labels come in steps: where few events are expected, half a step counts as equal.
        step = moments.second[0] / np.where(moments.mass > 0, moments.mass, 1.0)
        slack = 0.5 * step / (1 + plain / np.where(step > 0, step, 1.0) ** 2)
        away = np.abs(values - bias) * moments.mass
        off = np.maximum(away - slack, 0.0)
        z = off / np.sqrt(scale)
        score = upper_score(z, np.sign(values - bias) * third / scale**1.5)
        # No room for any variation: nothing but the bias itself is compatible.
        score = np.where((variance > 0) | (away == 0), score, np.inf)
        return score if self.freedom is None else _student_score(score, self.freedom)


def _freedom(averages: Averages) -> FloatArray:
    """Degrees of freedom at every place of a design, (m,)."""
    assert averages.freedom is not None
    return np.minimum(averages.freedom, np.nan_to_num(averages.moments.size) - 1)


def _student_score(score: FloatArray, freedom: FloatArray) -> FloatArray:
    """Scores of Student's law as normal ones; 0 where a cluster or so is all there is."""
    some = freedom > MIN_FREEDOM
    return np.where(some, -ndtri(student_tail(score, np.where(some, freedom, 1.0))), 0.0)


def _student_reach(score: FloatArray, freedom: FloatArray) -> FloatArray:
    """The inverse: how far Student's law goes where a normal one goes this far."""
    some = freedom > MIN_FREEDOM
    return np.where(some, student_quantile(ndtr(-score), np.where(some, freedom, 1.0)), np.inf)


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
