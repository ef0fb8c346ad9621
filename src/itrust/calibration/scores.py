"""Scores of calibration that ask about the predictions alone: Brier, log loss, ECE, smooth ECE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq
from scipy.stats import norm, t

from itrust._core import FloatArray, InputError, IntArray, Result, checked_count, checked_share
from itrust.data import Chunk, Sample, Scan, checked_sample, design_variance, variance_units

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
__dir__ = __all__.copy  # what tab completion offers


SMOOTH_CELLS = 8_192
CHUNK_ROWS = 65_536


def brier(sample: Sample | Scan) -> float:
    """Compute the Brier score, the weighted mean of (y - p)^2.

    Parameters
    ----------
    sample : Sample or Scan
        Labels and probabilities, in memory or in a file.

    Returns
    -------
    float
        0 at best, 1 at worst.

    Examples
    --------
    >>> import itrust as it
    >>> round(brier(it.Sample([0, 1], [0.5, 0.9])), 6)
    0.13
    """
    return _mean_over_chunks(sample, _mean_square)


def log_loss(sample: Sample | Scan) -> float:
    """Compute the weighted mean of -log of the probability that the label was given.

    A label of probability 0 makes it infinite: nothing is clipped.

    Parameters
    ----------
    sample : Sample or Scan
        Where the labels and probabilities are; a scan is read once, chunk by chunk, and
        weights count.

    Returns
    -------
    float
        0 at best; log 2 for a model that always says 1/2.

    Examples
    --------
    >>> import itrust as it
    >>> round(log_loss(it.Sample([0, 1], [0.5, 0.5])), 6)
    0.693147
    """
    return _mean_over_chunks(sample, _mean_surprise)


def _mean_square(chunk: Chunk) -> float:
    return float(np.average(np.square(chunk.y - chunk.p), weights=chunk.weights))


def _mean_surprise(chunk: Chunk) -> float:
    y, p, w = chunk.y, chunk.p, _weights(chunk)
    counts = w > 0
    given = np.where(y == 1, p, 1 - p)[counts]
    with np.errstate(divide="ignore"):
        return float(np.average(-np.log(given), weights=w[counts]))


def _chunks(sample: Sample | Scan) -> Iterator[Chunk]:
    """A sample in memory is one chunk."""
    source = sample if isinstance(sample, Scan) else checked_sample(sample)
    return source.chunks(CHUNK_ROWS if isinstance(source, Scan) else source.n)


def _mean_over_chunks(sample: Sample | Scan, score: Callable[[Chunk], float]) -> float:
    """Scores of chunks, averaged by their weight; a chunk without weight has none."""
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
    """A way to cut [0, 1] into intervals that are open on the left, closed on the right.

    Parameters
    ----------
    number : int
        Of intervals; 10 by default.
    """

    number: int = 10

    def __post_init__(self) -> None:
        checked_count(self.number, "number")

    @abstractmethod
    def inner_edges(self, sample: Sample | Scan) -> FloatArray:
        """Choose edges from predictions and weights alone.

        Parameters
        ----------
        sample : Sample or Scan
            The rows; labels are not looked at.

        Returns
        -------
        (number - 1,) array of float
            Edges between 0 and 1, rising; fewer where predictions are tied.
        """


@dataclass(frozen=True)
class EqualWidth(Bins):
    """Intervals of the same width."""

    def inner_edges(self, sample: Sample | Scan) -> FloatArray:  # noqa: ARG002
        return np.linspace(0, 1, self.number + 1)[1:-1]


@dataclass(frozen=True)
class EqualMass(Bins):
    """Intervals that hold the same weight, up to ties."""

    def inner_edges(self, sample: Sample | Scan) -> FloatArray:
        if isinstance(sample, Scan):
            raise InputError(
                "EqualMass needs a Sample in memory; use EqualWidth or scan.load()",
                argument="bins",
                value=self,
            )
        # Just below k / number, so that rounding does not move a row into the next bin.
        levels = np.linspace(0, 1, self.number + 1)[1:-1] - 1e-12
        return np.unique(
            np.quantile(sample.p, levels, weights=sample.weights, method="inverted_cdf")
        )


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Result):
    """Observed rate against mean prediction in bins that hold rows of positive weight.

    Attributes
    ----------
    predicted : (b,) array of float
        Weighted mean prediction of each bin.
    observed : (b,) array of float
        Weighted rate of positive labels.
    lower : (b,) array of float
        Lower end of the Wilson interval of that rate, with the effective number of rows; where rows
        come from a design, as many as its variance says, and Student's quantile.
    upper : (b,) array of float
        Its upper end.
    rows : (b,) array of int
        Number of rows.
    share : (b,) array of float
        Share of the weight; they add up to 1.
    """

    predicted: FloatArray
    observed: FloatArray
    lower: FloatArray
    upper: FloatArray
    rows: IntArray
    share: FloatArray

    def _facts(self) -> dict[str, FloatArray | IntArray]:
        return {**vars(self), "gap": self.gap}

    @property
    def gap(self) -> FloatArray:
        """Observed minus predicted rate of each bin; positive: the model underestimates."""
        return self.observed - self.predicted

    def _rows(self) -> list[dict[str, float]]:
        facts = self._facts()
        return [
            dict(zip(facts, values, strict=True)) for values in zip(*facts.values(), strict=True)
        ]


def reliability_curve(
    sample: Sample | Scan, bins: Bins | None = None, *, confidence: float = 0.95
) -> ReliabilityCurve:
    """Compare the observed rate with the mean prediction, bin by bin, with intervals.

    Parameters
    ----------
    sample : Sample or Scan
        The rows; `EqualMass` needs a Sample.
    bins : EqualWidth or EqualMass, optional
        How [0, 1] is cut; default: `EqualWidth(10)`.
    confidence : float
        Coverage of each interval by itself (Wilson 1927); 0.95 by default.

    Returns
    -------
    ReliabilityCurve
        One entry for each bin that holds rows of positive weight.

    Examples
    --------
    >>> import itrust as it
    >>> curve = reliability_curve(it.Sample([0, 1, 1, 1], [0.2, 0.2, 0.8, 0.9]), EqualWidth(2))
    >>> curve.predicted, curve.observed
    (array([0.2 , 0.85]), array([0.5, 1. ]))
    """
    checked_share(confidence, "confidence")
    bins = EqualWidth() if bins is None else bins
    if not isinstance(bins, Bins):
        raise InputError(
            "{argument} must be EqualWidth(10) or EqualMass(10), not {value}",
            argument="bins",
            value=bins,
        )
    source = sample if isinstance(sample, Scan) else checked_sample(sample)
    edges = bins.inner_edges(source)
    sums = np.zeros((5, edges.size + 1))
    for chunk in _chunks(source):
        place, w = np.searchsorted(edges, chunk.p), _weights(chunk)
        values = np.ones(w.size), w, w**2, w * chunk.y, w * chunk.p
        sums += [np.bincount(place, value, minlength=edges.size + 1) for value in values]
    _positive(float(sums[1].sum()))
    rows, mass, mass2, ones, predictions = sums[:, sums[1] > 0]
    observed, sizes, quantile = ones / mass, mass**2 / mass2, float(norm.ppf((1 + confidence) / 2))
    if isinstance(source, Sample) and not source.design.is_simple:
        held = np.flatnonzero(sums[1] > 0)
        sizes = _design_sizes(source, np.searchsorted(edges, source.p), held, sizes)
        quantile = float(t.ppf((1 + confidence) / 2, source.design.freedom))
    lower, upper = _wilson(observed, sizes, quantile)
    shares = mass / mass.sum()
    return ReliabilityCurve(
        predictions / mass, observed, lower, upper, rows.astype(np.int64), shares
    )


def _design_sizes(sample: Sample, place: IntArray, held: IntArray, sizes: FloatArray) -> FloatArray:
    """How many independent rows the rate of each bin is worth by the design, (b,).

    Never more than its rows; where all labels are the same, as many as it has clusters.
    """
    w, unit, found = sample.weights_or_ones, variance_units(sample.design), sizes.copy()
    for k, number in enumerate(held):
        inside = w * (place == number)
        mass = float(inside.sum())
        rate = float(inside @ sample.y) / mass
        variance = design_variance(sample.design, inside * (sample.y - rate) / mass)
        if 0 < rate < 1 and variance > 0:
            found[k] = min(sizes[k], rate * (1 - rate) / variance)
        elif unit is not None:
            found[k] = mass**2 / float(np.square(np.bincount(unit, inside)).sum())
    return found


def _wilson(rate: FloatArray, n: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
    z2 = quantile**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def ece(sample: Sample | Scan, bins: Bins | None = None) -> float:
    """Compute the expected calibration error: the weighted mean of |observed - predicted|.

    It depends on the bins, and is biased upwards when they hold few rows.

    Parameters
    ----------
    sample : Sample or Scan
        The rows.
    bins : EqualWidth or EqualMass, optional
        How predictions are binned; default: `EqualWidth(10)`.

    Returns
    -------
    float
        0 if every bin is calibrated, at most 1.
    """
    curve = reliability_curve(sample, bins)
    return float(np.sum(curve.share * np.abs(curve.gap)))


def mce(sample: Sample | Scan, bins: Bins | None = None) -> float:
    """Compute the maximum calibration error: the largest |observed - predicted| of a bin.

    Parameters
    ----------
    sample : Sample or Scan
        The rows.
    bins : EqualWidth or EqualMass, optional
        The bins; default: `EqualWidth(10)`. One that holds few rows may decide alone.

    Returns
    -------
    float
        Of the worst bin.
    """
    return float(np.abs(reliability_curve(sample, bins).gap).max())


def smooth_ece(sample: Sample | Scan) -> float:
    """Compute a calibration error that needs no bins (Blasiok and Nakkiran 2023).

    Residuals are smoothed over the prediction by a Gaussian of width s reflected at 0 and 1;
    the score is the width s at which the integral of the absolute smoothed residual
    equals s. Predictions are rounded to 1/8192. Cost O(n).

    Parameters
    ----------
    sample : Sample or Scan
        The rows, in memory or in a file; one pass over them suffices.

    Returns
    -------
    float
        Between 0 and 1; small for a calibrated model.

    Examples
    --------
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
