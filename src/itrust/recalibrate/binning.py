"""Recalibration by steps of the prediction: isotonic, histogram binning, BBQ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.isotonic import IsotonicRegression

from itrust._core import (
    EntryShape,
    FloatArray,
    InputError,
    ListOf,
    Maybe,
    Numbers,
    Record,
    inside,
    same_size,
    unfit,
)
from itrust.data import Rows
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.rows import Predictions
from itrust.recalibrate.saved import COUNT, PROBABILITY
from itrust.terms import interpolated

PRIOR_ROWS = 2.0  # N' of Naeini et al.
RANGE = 10.0  # C of Naeini et al.
NEGLIGIBLE = 1e-12  # weight of a binning that no prediction shows
BIN_EDGES, BIN_RATES = Numbers(PROBABILITY, apart=True), Numbers(PROBABILITY, at_least=1)


class Isotonic(Recalibrator):
    """Isotonic regression (Zadrozny and Elkan 2002), as scikit-learn computes it.

    The rising step function with the least squared error, joined by straight lines.

    Attributes
    ----------
    knots_ : (k,) array of float
        Predictions, rising, between which the map is a straight line.
    heights_ : (k,) array of float
        The recalibrated probability at each knot; beyond the ends that of the end.

    Examples
    --------
    >>> import itrust as it
    >>> few = it.simulate.survey(2_000, rng=0).sample
    >>> it.recalibrate.Isotonic().fit(few).predict([0.2, 0.5]).round(2)
    array([0.29, 0.5 ])
    """

    _LEARNED = Record(
        {
            "knots": Numbers(PROBABILITY, at_least=1, rising=True),
            "heights": Numbers(PROBABILITY, rising=True),
        }
    )

    def _fit(self, rows: Predictions) -> None:
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        model.fit(rows.p[:, 0], rows.codes, sample_weight=rows.w)
        self.knots_, self.heights_ = model.X_thresholds_, model.y_thresholds_

    def _predict(self, rows: Rows) -> FloatArray:
        return interpolated(rows.p, self.knots_, self.heights_)[:, None]

    def _refuse_misfit(self) -> None:
        same_size("learned.heights", self.heights_.size, "learned.knots", self.knots_.size)


class HistogramBinning(Recalibrator):
    """The rate of positive labels in bins of equal weight (Zadrozny and Elkan 2001).

    Parameters
    ----------
    bins : int
        Number of bins; there are fewer where predictions are tied.

    Attributes
    ----------
    edges_ : (b - 1,) array of float
        Predictions that divide the bins, which are closed on the right.
    rates_ : (b,) array of float
        The share of positive labels in each bin: the recalibrated probability of its rows.

    Examples
    --------
    >>> import itrust as it
    >>> few = it.simulate.survey(2_000, rng=0).sample
    >>> it.recalibrate.HistogramBinning(bins=4).fit(few).rates_.round(2)
    array([0.36, 0.5 , 0.62, 0.8 ])
    """

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {"bins": COUNT}
    _LEARNED = Record({"edges": BIN_EDGES, "rates": BIN_RATES})

    def __init__(self, bins: int = 10) -> None:
        self.bins = bins

    def _fit(self, rows: Predictions) -> None:
        self.edges_, ones, weights = _binner(rows)(self.bins)
        self.rates_ = ones / weights

    def _predict(self, rows: Rows) -> FloatArray:
        return np.asarray(self.rates_[np.searchsorted(self.edges_, rows.predictions)])

    def _refuse_misfit(self) -> None:
        _refuse_misfit(self.edges_, self.rates_, "learned.edges", "learned.rates")


def _refuse_misfit(edges: FloatArray, rates: FloatArray, at: str, rates_at: str) -> None:
    if rates.size != edges.size + 1:
        unfit(
            rates_at, f"must have one entry more than {at}, {edges.size + 1:,}, not {rates.size:,}"
        )


Bins = tuple[FloatArray, FloatArray, FloatArray]  # inner edges, weight of ones and of all rows


def _binner(rows: Predictions) -> Callable[[int], Bins]:
    """What cuts rows into bins of equal weight, in O(bins) each."""
    order = np.argsort(rows.p[:, 0], kind="stable")
    p, w = rows.p[order, 0], rows.w[order]  # of sum n: a prior of two rows needs such weights
    running, ones = (
        np.concatenate([[0.0], np.cumsum(part)]) for part in (w, w * rows.codes[order])
    )

    def binned(bins: int) -> Bins:
        # Just below k / bins, so that rounding does not move a row into the next bin.
        wanted = (np.linspace(0, 1, int(bins) + 1)[1:-1] - 1e-12) * running[-1]
        edges = np.unique(p[np.searchsorted(running[1:], wanted)])
        edges = edges[edges < p[-1]]
        ends = np.searchsorted(p, edges, side="right")
        ends = np.concatenate([[0], ends, [p.size]])
        return edges, np.diff(ones[ends]), np.diff(running[ends])

    return binned


class BBQ(Recalibrator):
    """Bayesian binning into quantiles (Naeini, Cooper and Hauskrecht 2015).

    Histogram binnings with B bins of equal frequency, for every B from n^(1/3) / 10 to
    10 n^(1/3), are averaged with their Bayesian scores as weights. With N_b rows and m_b ones in
    bin b, and a prior of alpha_b = (2/B) c_b ones and beta_b = (2/B) (1 - c_b) zeros, c_b the
    middle of the bin, the score of a binning is

        prod_b  G(2/B) / G(N_b + 2/B) * G(m_b + alpha_b) / G(alpha_b)
                * G(N_b - m_b + beta_b) / G(beta_b),      G the gamma function,

    and its prediction in bin b is (m_b + alpha_b) / (N_b + 2/B).

    Parameters
    ----------
    min_bins : int, optional
        The smallest number of bins B; default: n^(1/3) / 10, at least 1.
    max_bins : int, optional
        The largest number of bins B; default: 10 n^(1/3), at most n.

    Attributes
    ----------
    edges_ : list of k arrays
        Predictions that divide the bins of each of the k binnings.
    rates_ : list of k arrays
        The prediction of each binning in each of its bins.
    weights_ : (k,) array of float
        Scores of the binnings, divided by their sum.

    Examples
    --------
    >>> import itrust as it
    >>> few = it.simulate.survey(2_000, rng=0).sample
    >>> it.recalibrate.BBQ(min_bins=2, max_bins=9).fit(few).weights_.round(2)
    array([0.  , 0.01, 0.52, 0.44, 0.03, 0.  , 0.  , 0.  ])
    """

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {
        "min_bins": Maybe(COUNT),
        "max_bins": Maybe(COUNT),
    }
    _LEARNED = Record(
        {
            "edges": ListOf(BIN_EDGES, at_least=1),
            "rates": ListOf(BIN_RATES),
            "weights": Numbers(PROBABILITY),
        }
    )

    def __init__(self, min_bins: int | None = None, max_bins: int | None = None) -> None:
        self.min_bins, self.max_bins = min_bins, max_bins

    def _fit(self, rows: Predictions) -> None:
        binned = _binner(rows)
        root = np.cbrt(rows.n)
        lowest, highest = self.min_bins, self.max_bins
        if lowest is None:
            lowest = max(1, int(root / RANGE))
        if highest is None:
            highest = min(rows.n, int(np.ceil(root * RANGE)))
        if lowest > highest:
            raise InputError(
                "BBQ needs min_bins <= max_bins, not {value} and {highest}",
                argument="min_bins",
                value=lowest,
                details={"highest": repr(highest)},
            )
        found: dict[bytes, tuple[FloatArray, FloatArray, float]] = {}
        for bins in range(lowest, highest + 1):
            edges, ones, weights = binned(bins)
            # Ties make binnings with different B equal: one binning counts once.
            found.setdefault(edges.tobytes(), (edges, *_scored(edges, ones, weights)))
        self.edges_ = [edges for edges, _, _ in found.values()]
        self.rates_ = [rates for _, rates, _ in found.values()]
        scores = np.array([score for _, _, score in found.values()])
        self.weights_ = np.exp(scores - logsumexp(scores))

    def _predict(self, rows: Rows) -> FloatArray:
        total = np.zeros((rows.n, 1))
        for edges, rates, weight in zip(self.edges_, self.rates_, self.weights_, strict=True):
            if weight > NEGLIGIBLE:
                total += weight * rates[np.searchsorted(edges, rows.predictions)]
        return total

    def _learned(self) -> dict[str, Any]:
        kept = np.flatnonzero(self.weights_ > NEGLIGIBLE)  # the others would be most of a file
        return {
            "edges": [self.edges_[k] for k in kept],
            "rates": [self.rates_[k] for k in kept],
            "weights": self.weights_[kept],
        }

    def _refuse_misfit(self) -> None:
        for name, own in (("rates", self.rates_), ("weights", self.weights_)):
            same_size(f"learned.{name}", len(own), "learned.edges", len(self.edges_))
        for at, (edges, rates) in enumerate(zip(self.edges_, self.rates_, strict=True)):
            places = [inside(f"learned.{name}", at) for name in ("edges", "rates")]
            _refuse_misfit(edges, rates, *places)
        if not np.isclose(self.weights_.sum(), 1.0, rtol=0, atol=1e-6):
            unfit("learned.weights", f"must sum to 1, not {self.weights_.sum():.6g}")


def _scored(edges: FloatArray, ones: FloatArray, rows: FloatArray) -> tuple[FloatArray, float]:
    """Predictions of a binning and the log of its Bayesian score."""
    prior = PRIOR_ROWS / rows.size
    ends = np.array([0.0, *edges, 1.0])
    # Bins of width 0 at 0 or 1 would have a prior of no rows.
    middle = np.clip((ends[1:] + ends[:-1]) / 2, 1e-6, 1 - 1e-6)
    alpha, beta = prior * middle, prior * (1 - middle)
    score = gammaln(prior) - gammaln(rows + prior)
    score += gammaln(ones + alpha) - gammaln(alpha) + gammaln(rows - ones + beta) - gammaln(beta)
    return (ones + alpha) / (rows + prior), float(score.sum())
