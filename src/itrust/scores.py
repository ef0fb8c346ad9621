"""Scores of calibration that ask about the predictions alone: Brier, log loss, ECE, smooth ECE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn import metrics

from itrust.errors import InputError
from itrust.sample import Sample, checked_sample
from itrust.typing import FloatArray, IntArray

SMOOTH_CELLS = 8_192


def brier(sample: Sample) -> float:
    """Weighted mean of (y - p)^2 (scikit-learn's `brier_score_loss`).

    >>> import itrust as it
    >>> round(brier(it.Sample([0, 1], [0.5, 0.9])), 6)
    0.13
    """
    checked_sample(sample)
    return float(
        metrics.brier_score_loss(sample.y, sample.p, sample_weight=sample.weights, pos_label=1)
    )


def log_loss(sample: Sample) -> float:
    """Weighted mean of -log of the probability given to the label (scikit-learn's `log_loss`).

    A label the model called impossible counts as probability 2.2e-16, as there.

    >>> import itrust as it
    >>> round(log_loss(it.Sample([0, 1], [0.5, 0.5])), 6)
    0.693147
    """
    checked_sample(sample)
    return float(
        metrics.log_loss(sample.y, sample.p, sample_weight=sample.weights, labels=[0.0, 1.0])
    )


@dataclass(frozen=True)
class Bins(ABC):
    """A way to cut [0, 1] into intervals that are open on the left, closed on the right."""

    number: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.number, int | np.integer) or self.number < 1:
            raise InputError(f"bins need a whole number of at least 1, not {self.number!r}")

    @abstractmethod
    def inner_edges(self, sample: Sample) -> FloatArray:
        """Edges between 0 and 1, ascending; from predictions and weights alone."""


@dataclass(frozen=True)
class EqualWidth(Bins):
    """Intervals of the same width."""

    def inner_edges(self, sample: Sample) -> FloatArray:  # noqa: ARG002
        """Multiples of 1 / number."""
        return np.linspace(0, 1, self.number + 1)[1:-1]


@dataclass(frozen=True)
class EqualMass(Bins):
    """Intervals that hold the same weight, up to ties."""

    def inner_edges(self, sample: Sample) -> FloatArray:
        """Weighted quantiles of the predictions."""
        # Just below k / number, so that rounding does not move a row into the next bin.
        levels = np.linspace(0, 1, self.number + 1)[1:-1] - 1e-12
        return np.unique(
            np.quantile(sample.p, levels, weights=sample.weights, method="inverted_cdf")
        )


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Observed rate against mean prediction in bins that hold rows of positive weight.

    Attributes
    ----------
    predicted, observed : (b,) arrays
        Weighted mean prediction and weighted rate of positive labels.
    lower, upper : (b,) arrays
        Wilson interval of the observed rate, with the effective number of rows.
    rows : (b,) array
    share : (b,) array
        Share of the weight.
    """

    predicted: FloatArray
    observed: FloatArray
    lower: FloatArray
    upper: FloatArray
    rows: IntArray
    share: FloatArray

    @property
    def gap(self) -> FloatArray:
        """Observed minus predicted; positive: the model underestimates."""
        return self.observed - self.predicted

    def __str__(self) -> str:
        head = f"{'rows':>9} {'predicted':>10} {'observed':>9} {'interval':>16} {'gap':>8}"
        columns = self.rows, self.predicted, self.observed, self.lower, self.upper, self.gap
        lines = [
            f"{rows:>9,} {mean:>10.3f} {rate:>9.3f} {low:>8.3f} {high:>7.3f} {gap:>+8.3f}"
            for rows, mean, rate, low, high, gap in zip(*columns, strict=True)
        ]
        return "\n".join(
            [head, *lines, "gap = observed - predicted; positive: the model is too low"]
        )


def reliability_curve(
    sample: Sample, bins: Bins | None = None, *, confidence: float = 0.95
) -> ReliabilityCurve:
    """Observed rate against mean prediction, bin by bin, with intervals.

    Parameters
    ----------
    sample : Sample
    bins : EqualWidth or EqualMass
        Default: `EqualWidth(10)`.
    confidence : float
        Coverage of each interval by itself (Wilson 1927).

    Examples
    --------
    >>> import itrust as it
    >>> curve = reliability_curve(it.Sample([0, 1, 1, 1], [0.2, 0.2, 0.8, 0.9]), EqualWidth(2))
    >>> curve.predicted, curve.observed
    (array([0.2 , 0.85]), array([0.5, 1. ]))
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence!r}")
    bins = EqualWidth() if bins is None else bins
    if not isinstance(bins, Bins):
        raise InputError(f"bins must be EqualWidth(10) or EqualMass(10), not {bins!r}")
    edges = bins.inner_edges(checked_sample(sample))
    place = np.searchsorted(edges, sample.p)
    w = sample.weights_or_ones
    size = edges.size + 1
    mass, mass2, ones, predictions = (
        np.bincount(place, values, minlength=size)
        for values in (w, w**2, w * sample.y, w * sample.p)
    )
    full = mass > 0
    mass, mass2, ones, predictions = mass[full], mass2[full], ones[full], predictions[full]
    observed = ones / mass
    lower, upper = _wilson(observed, mass**2 / mass2, confidence)
    rows = np.bincount(place, minlength=size)[full]
    return ReliabilityCurve(predictions / mass, observed, lower, upper, rows, mass / mass.sum())


def _wilson(rate: FloatArray, n: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    z2 = float(norm.ppf((1 + confidence) / 2)) ** 2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def ece(sample: Sample, bins: Bins | None = None) -> float:
    """Expected calibration error: weighted mean over bins of |observed - predicted|.

    Depends on the bins; biased upwards when they hold few rows.
    """
    curve = reliability_curve(sample, bins)
    return float(np.sum(curve.share * np.abs(curve.gap)))


def mce(sample: Sample, bins: Bins | None = None) -> float:
    """Maximum calibration error: the largest |observed - predicted| of a bin."""
    return float(np.abs(reliability_curve(sample, bins).gap).max())


def smooth_ece(sample: Sample) -> float:
    """Calibration error without bins (Blasiok and Nakkiran 2023).

    Residuals are smoothed over the prediction by a Gaussian of width s reflected at 0 and 1;
    the score is the width s at which the integral of the absolute smoothed residual
    equals s. Predictions are rounded to 1/8192. Cost O(n).

    >>> import itrust as it
    >>> round(smooth_ece(it.Sample([0, 1, 1, 1], [0.5] * 4)), 6)
    0.25
    """
    w = checked_sample(sample).weights_or_ones / sample.weights_or_ones.sum()
    cell = np.minimum((sample.p * SMOOTH_CELLS).astype(int), SMOOTH_CELLS - 1)
    residual = np.bincount(cell, w * sample.residuals, minlength=SMOOTH_CELLS)
    # Reflected Gaussians are diagonal in the cosine transform: the heat equation on [0, 1].
    spectrum = dct(residual, norm="ortho")
    frequency = np.pi * np.arange(SMOOTH_CELLS)

    def excess(width: float) -> float:
        smoothed = idct(spectrum * np.exp(-0.5 * (frequency * width) ** 2), norm="ortho")
        return float(np.abs(smoothed).sum()) - width

    if excess(1e-9) <= 0:
        return 0.0
    return float(brentq(excess, 1e-9, 1.0, xtol=1e-9)) if excess(1.0) < 0 else 1.0
