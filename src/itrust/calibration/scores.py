"""Scores of calibration that ask about the predictions alone: Brier, log loss, ECE, smooth ECE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn import metrics

from itrust._core import FloatArray, InputError, IntArray
from itrust.data import Chunk, Sample, Scan, checked_sample

__all__ = [
    "Bins",
    "EqualMass",
    "EqualWidth",
    "ReliabilityCurve",
    "brier",
    "ece",
    "log_loss",
    "mce",
    "reliability_curve",
    "smooth_ece",
]

SMOOTH_CELLS = 8_192
CHUNK_ROWS = 65_536


def brier(sample: Sample | Scan) -> float:
    """Weighted mean of (y - p)^2 (scikit-learn's `brier_score_loss`).

    >>> import itrust as it
    >>> round(brier(it.Sample([0, 1], [0.5, 0.9])), 6)
    0.13
    """
    return _mean_over_chunks(
        sample,
        lambda chunk: metrics.brier_score_loss(
            chunk.y, chunk.p, sample_weight=chunk.weights, pos_label=1
        ),
    )


def log_loss(sample: Sample | Scan) -> float:
    """Weighted mean of -log of the probability given to the label (scikit-learn's `log_loss`).

    A label the model called impossible counts as probability 2.2e-16, as there.

    >>> import itrust as it
    >>> round(log_loss(it.Sample([0, 1], [0.5, 0.5])), 6)
    0.693147
    """
    return _mean_over_chunks(
        sample,
        lambda chunk: metrics.log_loss(
            chunk.y, chunk.p, sample_weight=chunk.weights, labels=[0.0, 1.0]
        ),
    )


def _chunks(sample: Sample | Scan) -> Iterator[Chunk]:
    """A sample in memory is one chunk."""
    source = sample if isinstance(sample, Scan) else checked_sample(sample)
    return source.chunks(CHUNK_ROWS if isinstance(source, Scan) else source.n)


def _mean_over_chunks(sample: Sample | Scan, score: Callable[[Chunk], float]) -> float:
    """Chunks with weight, averaged by their weight; a chunk without weight has no score."""
    total = weighted = 0.0
    for chunk in _chunks(sample):
        mass = float(_weights(chunk).sum())
        if mass > 0:
            total += mass
            weighted += mass * score(chunk)
    return weighted / _positive(total)


def _positive(total: float) -> float:
    if total <= 0:
        raise InputError("no rows with a positive weight")
    return total


def _weights(chunk: Chunk) -> FloatArray:
    return np.ones(chunk.y.size) if chunk.weights is None else chunk.weights


@dataclass(frozen=True)
class Bins(ABC):
    """A way to cut [0, 1] into intervals that are open on the left, closed on the right."""

    number: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.number, int | np.integer) or self.number < 1:
            raise InputError(f"bins need a whole number of at least 1, not {self.number!r}")

    @abstractmethod
    def inner_edges(self, sample: Sample | Scan) -> FloatArray:
        """Edges between 0 and 1, ascending; from predictions and weights alone."""


@dataclass(frozen=True)
class EqualWidth(Bins):
    """Intervals of the same width."""

    def inner_edges(self, sample: Sample | Scan) -> FloatArray:  # noqa: ARG002
        """Multiples of 1 / number."""
        return np.linspace(0, 1, self.number + 1)[1:-1]


@dataclass(frozen=True)
class EqualMass(Bins):
    """Intervals that hold the same weight, up to ties."""

    def inner_edges(self, sample: Sample | Scan) -> FloatArray:
        """Weighted quantiles of the predictions."""
        if isinstance(sample, Scan):
            raise InputError("EqualMass needs a Sample in memory; use EqualWidth or scan.load()")
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
    sample: Sample | Scan, bins: Bins | None = None, *, confidence: float = 0.95
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
    source = sample if isinstance(sample, Scan) else checked_sample(sample)
    edges = bins.inner_edges(source)
    sums = np.zeros((5, edges.size + 1))
    for chunk in _chunks(source):
        place, w = np.searchsorted(edges, chunk.p), _weights(chunk)
        values = np.ones(w.size), w, w**2, w * chunk.y, w * chunk.p
        sums += [np.bincount(place, value, minlength=edges.size + 1) for value in values]
    _positive(float(sums[1].sum()))
    rows, mass, mass2, ones, predictions = sums[:, sums[1] > 0]
    observed = ones / mass
    lower, upper = _wilson(observed, mass**2 / mass2, confidence)
    shares = mass / mass.sum()
    return ReliabilityCurve(
        predictions / mass, observed, lower, upper, rows.astype(np.int64), shares
    )


def _wilson(rate: FloatArray, n: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    z2 = float(norm.ppf((1 + confidence) / 2)) ** 2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def ece(sample: Sample | Scan, bins: Bins | None = None) -> float:
    """Expected calibration error: weighted mean over bins of |observed - predicted|.

    Depends on the bins; biased upwards when they hold few rows.
    """
    curve = reliability_curve(sample, bins)
    return float(np.sum(curve.share * np.abs(curve.gap)))


def mce(sample: Sample | Scan, bins: Bins | None = None) -> float:
    """Maximum calibration error: the largest |observed - predicted| of a bin."""
    return float(np.abs(reliability_curve(sample, bins).gap).max())


def smooth_ece(sample: Sample | Scan) -> float:
    """Calibration error without bins (Blasiok and Nakkiran 2023).

    Residuals are smoothed over the prediction by a Gaussian of width s reflected at 0 and 1;
    the score is the width s at which the integral of the absolute smoothed residual
    equals s. Predictions are rounded to 1/8192. Cost O(n).

    >>> import itrust as it
    >>> round(smooth_ece(it.Sample([0, 1, 1, 1], [0.5] * 4)), 6)
    0.25
    """
    residual, total = np.zeros(SMOOTH_CELLS), 0.0
    for chunk in _chunks(sample):
        w = _weights(chunk)
        cell = np.minimum((chunk.p * SMOOTH_CELLS).astype(int), SMOOTH_CELLS - 1)
        residual += np.bincount(cell, w * (chunk.y - chunk.p), minlength=SMOOTH_CELLS)
        total += float(w.sum())
    residual /= _positive(total)
    # Reflected Gaussians are diagonal in the cosine transform: the heat equation on [0, 1].
    spectrum = dct(residual, norm="ortho")
    frequency = np.pi * np.arange(SMOOTH_CELLS)

    def excess(width: float) -> float:
        smoothed = idct(spectrum * np.exp(-0.5 * (frequency * width) ** 2), norm="ortho")
        return float(np.abs(smoothed).sum()) - width

    if excess(1e-9) <= 0:
        return 0.0
    return float(brentq(excess, 1e-9, 1.0, xtol=1e-9)) if excess(1.0) < 0 else 1.0
