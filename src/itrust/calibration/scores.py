"""Scores of calibration: Brier, log loss, ECE, smooth ECE; and KLCE, which asks about covariates.

Every score takes rows that were read already, `brier(sample)`, or arrays as the metrics of
scikit-learn do, `brier(y_true, y_prob, sample_weight=w)`, and gives one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.special import ndtri, xlogy

from itrust._core import FloatArray, InputError, IntArray, Result, Rng, checked_share, tickets
from itrust.calibration.bins import (
    Bins,
    EqualMass,
    EqualWidth,
    Sums,
    bin_sums,
    in_their_words,
    rows_to_score,
)
from itrust.calibration.klce import klce2, klce_test
from itrust.calibration.tails import student_quantile
from itrust.calibration.validation import (
    DecisionPoint,
    Grade,
    Validation,
    ValidationStatistic,
    ValidationTable,
    validation,
)
from itrust.data import (
    Covariates,
    MulticlassSample,
    Sample,
    Scan,
    design_variance,
    of_two_classes,
    variance_units,
)
from itrust.kernels import LocalKernel

__all__ = [
    "Bins",
    "CalibrationScorer",
    "DecisionPoint",
    "EqualMass",
    "EqualWidth",
    "Grade",
    "ReliabilityCurve",
    "Validation",
    "ValidationStatistic",
    "ValidationTable",
    "brier",
    "ece",
    "klce",
    "local_calibration_pvalue",
    "log_loss",
    "mce",
    "reliability_curve",
    "scorer",
    "smooth_ece",
    "validation",
]
__dir__ = __all__.copy  # what tab completion offers


SMOOTH_CELLS = 8_192
CHUNK_ROWS = 65_536


def brier(
    y_true: object, y_prob: object = None, *, sample_weight: object = None, pos_label: object = None
) -> float:
    """Compute the Brier score, the weighted mean of (y - p)^2, as scikit-learn does.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.

    Returns
    -------
    float
        0 at best, 1 at worst.

    Examples
    --------
    >>> import itrust as it
    >>> round(brier(it.Sample([0, 1], [0.5, 0.9])), 6)
    0.13
    >>> round(brier(["no", "yes"], [0.5, 0.9], pos_label="yes"), 6)
    0.13
    """
    rows = rows_to_score(y_true, y_prob, sample_weight, pos_label)
    return _mean(rows, lambda y, p, w: float(w @ np.square(y - p)))


def log_loss(
    y_true: object, y_prob: object = None, *, sample_weight: object = None, pos_label: object = None
) -> float:
    """Compute the weighted mean of -log of the probability that the label was given.

    A label of probability 0 makes it infinite: nothing is clipped.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.

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
    return _mean(rows_to_score(y_true, y_prob, sample_weight, pos_label), surprise)


def surprise(y: FloatArray, p: FloatArray, w: FloatArray) -> float:
    """Sum of weights times -log of the probability that the label was given."""
    return -float(xlogy(w, np.where(y == 1, p, 1 - p)).sum())


def _arrays(source: Sample | Scan) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Labels, predictions and weights; a sample in memory is one chunk."""
    for chunk in source.chunks(source.n if isinstance(source, Sample) else CHUNK_ROWS):
        yield (chunk.y, chunk.p, np.ones(chunk.n) if chunk.weights is None else chunk.weights)


def _mean(
    source: Sample | Scan, total: Callable[[FloatArray, FloatArray, FloatArray], float]
) -> float:
    """The sum of a score over all rows, by weight."""
    sums = np.zeros(2)
    for y, p, w in _arrays(source):
        sums += float(w.sum()), total(y, p, w)
    return float(sums[1] / _positive(sums[0]))


def _positive(total: float) -> float:
    if total <= 0:
        raise InputError("no rows with a positive weight")
    return total


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
        Number of rows that have a positive weight.
    share : (b,) array of float
        Share of the weight; they add up to 1.
    """

    predicted: FloatArray
    observed: FloatArray
    lower: FloatArray
    upper: FloatArray
    rows: IntArray
    share: FloatArray

    def __repr__(self) -> str:
        return f"<ReliabilityCurve: {self.rows.size} bins, {int(self.rows.sum()):,} rows>"

    def _facts(self) -> dict[str, FloatArray | IntArray]:
        return {**vars(self), "gap": self.gap}

    @property
    def gap(self) -> FloatArray:
        """Observed minus predicted rate of each bin; positive: the model underestimates."""
        return self.observed - self.predicted

    def _rows(self) -> list[dict[str, float]]:
        facts = self._facts()
        return [dict(zip(facts, row, strict=True)) for row in zip(*facts.values(), strict=True)]


def reliability_curve(
    y_true: object,
    y_prob: object = None,
    *,
    bins: Bins | None = None,
    confidence: float = 0.95,
    sample_weight: object = None,
    pos_label: object = None,
) -> ReliabilityCurve:
    """Compare the observed rate with the mean prediction, bin by bin, with intervals.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample,
        beside which `bins` may stand in this place.
    bins : EqualWidth or EqualMass, optional
        How [0, 1] is cut; default: `EqualWidth(10)`. Rows in files cannot be cut by `EqualMass`.
    confidence : float
        Coverage of each interval by itself (Wilson 1927); 0.95 by default.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.

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
    if isinstance(y_true, Sample | Scan) and bins is None:
        y_prob, bins = None, y_prob
    bins = EqualWidth() if bins is None else bins
    if not isinstance(bins, Bins):
        problem = "{argument} must be EqualWidth(10) or EqualMass(10), not {value}"
        raise InputError(problem, argument="bins", value=bins)
    source = rows_to_score(y_true, y_prob, sample_weight, pos_label)
    edges = bins.inner_edges(source)
    none = np.zeros(0)
    parts = (bin_sums(*arrays, edges) for arrays in _arrays(source))
    sums = reduce(add, parts, bin_sums(none, none, none, edges))
    curve = curve_of_bins(sums, confidence)
    if isinstance(source, Scan) or source.design.is_simple:
        return curve
    sizes = _design_sizes(source, np.searchsorted(edges, source.p), sums)
    quantile = float(student_quantile((1 - confidence) / 2, source.design.freedom))
    lower, upper = _wilson(curve.observed, sizes, quantile)
    return replace(curve, lower=lower, upper=upper)


def curve_of_bins(sums: Sums, confidence: float = 0.95) -> ReliabilityCurve:
    """Make the reliability curve of independent rows."""
    _positive(float(sums.weights.sum()))
    sums = sums.at(sums.occupied)
    lower, upper = _wilson(sums.observed, sums.effective, float(ndtri((1 + confidence) / 2)))
    return ReliabilityCurve(
        sums.predicted,
        sums.observed,
        lower,
        upper,
        sums.rows.astype(np.int64),
        sums.weights / sums.weights.sum(),
    )


def _design_sizes(sample: Sample, bins: IntArray, sums: Sums) -> FloatArray:
    """How many independent rows the rate of each bin is worth by the design, (b,).

    Never more than its rows; where all labels are the same, as many as it has clusters.
    """
    w, unit = sample.weights_or_ones, variance_units(sample.design)
    sizes = sums.effective[sums.occupied]
    for k, number in enumerate(sums.occupied):
        inside = w * (bins == number)
        mass = float(inside.sum())
        rate = float(inside @ sample.y) / mass
        variance = design_variance(sample.design, inside * (sample.y - rate) / mass)
        if 0 < rate < 1 and variance > 0:
            sizes[k] = min(sizes[k], rate * (1 - rate) / variance)
        elif unit is not None:
            sizes[k] = mass**2 / float(np.square(np.bincount(unit, inside)).sum())
    return sizes


def _wilson(rate: FloatArray, n: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
    z2 = quantile**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def ece(
    y_true: object,
    y_prob: object = None,
    *,
    bins: Bins | None = None,
    sample_weight: object = None,
    pos_label: object = None,
) -> float:
    """Compute the expected calibration error: the weighted mean of |observed - predicted|.

    It depends on the bins, and is biased upwards when they hold few rows.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample,
        beside which `bins` may stand in this place.
    bins : EqualWidth or EqualMass, optional
        How predictions are binned; default: `EqualWidth(10)`.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.

    Returns
    -------
    float
        0 if every bin is calibrated, at most 1.
    """
    curve = reliability_curve(
        y_true, y_prob, bins=bins, sample_weight=sample_weight, pos_label=pos_label
    )
    return float(np.sum(curve.share * np.abs(curve.gap)))


def mce(
    y_true: object,
    y_prob: object = None,
    *,
    bins: Bins | None = None,
    sample_weight: object = None,
    pos_label: object = None,
) -> float:
    """Compute the maximum calibration error: the largest |observed - predicted| of a bin.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample,
        beside which `bins` may stand in this place.
    bins : EqualWidth or EqualMass, optional
        The bins; default: `EqualWidth(10)`. One that holds few rows may decide alone.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.

    Returns
    -------
    float
        Of the worst bin.
    """
    curve = reliability_curve(
        y_true, y_prob, bins=bins, sample_weight=sample_weight, pos_label=pos_label
    )
    return float(np.abs(curve.gap).max())


def smooth_ece(
    y_true: object, y_prob: object = None, *, sample_weight: object = None, pos_label: object = None
) -> float:
    """Compute a calibration error that needs no bins (Blasiok and Nakkiran 2023).

    Residuals are smoothed over the prediction by a Gaussian of width s reflected at 0 and 1;
    the score is the width s at which the integral of the absolute smoothed residual
    equals s. Predictions are rounded to 1/8192. Cost O(n).

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.

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
    for y, p, w in _arrays(rows_to_score(y_true, y_prob, sample_weight, pos_label)):
        residual += residuals_in_cells(y, p, w)
        total += float(w.sum())
    return smooth_ece_of_cells(residual / _positive(total))


def residuals_in_cells(y: FloatArray, p: FloatArray, w: FloatArray) -> FloatArray:
    """Sum weighted residuals of some rows in 8,192 cells of the prediction, (cells,)."""
    cell = np.minimum((p * SMOOTH_CELLS).astype(int), SMOOTH_CELLS - 1)
    return np.asarray(np.bincount(cell, w * (y - p), minlength=SMOOTH_CELLS), dtype=float)


def smooth_ece_of_cells(residual: FloatArray) -> float:
    """The smooth calibration error, from shares of the cells in the mean residual."""
    # Reflected Gaussians are diagonal in the cosine transform: the heat equation on [0, 1].
    spectrum = np.fft.rfft(np.append(residual, residual[::-1]))
    frequency = np.pi * np.arange(SMOOTH_CELLS + 1)

    def exceeds(width: float) -> bool:
        smoothed = np.fft.irfft(spectrum * np.exp(-0.5 * (frequency * width) ** 2))
        return float(np.abs(smoothed[:SMOOTH_CELLS]).sum()) > width

    low, high = 1e-9, 1.0
    if not exceeds(low):
        return 0.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def klce(
    y_true: object,
    y_prob: object = None,
    *,
    x: object = None,
    sample_weight: object = None,
    pos_label: object = None,
    kernel: LocalKernel | None = None,
) -> float:
    """Compute the kernel local calibration error: how far probabilities are off, given covariates.

    The square root of `itrust.klce2`, an unbiased estimate of the squared error, or 0 where that
    is negative. Cost O(n^2) at most.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample.
    x : frame, mapping or array, optional
        The covariates, as for `Sample`. Default: those of the sample; with arrays there are none,
        so that the score asks about the predictions alone.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.
    kernel : LocalKernel, optional
        Default: `LocalKernel()`, whose widths come from the rows at hand. Pass one with widths to
        compare scores of different rows.

    Returns
    -------
    float
        0 or more; NaN for fewer than two rows, which form no pair.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> round(klce(town), 3)
    0.02
    """
    rows = _rows_with_covariates(y_true, y_prob, x, sample_weight, pos_label)
    return float("nan") if rows is None else max(klce2(rows, kernel), 0.0) ** 0.5


def local_calibration_pvalue(
    y_true: object,
    y_prob: object = None,
    *,
    x: object = None,
    sample_weight: object = None,
    pos_label: object = None,
    draws: int = 999,
    rng: Rng = None,
) -> float:
    """Compute the p-value of `itrust.klce_test` for the covariates x.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample.
    x : frame, mapping or array, optional
        The covariates, as for `Sample`. Default: those of the sample; with arrays there are none.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.
    draws : int
        Number of redraws of the labels; 999 by default.
    rng : int, numpy.random.Generator or None
        The seed. Default: another one in every call.

    Returns
    -------
    float
        Small where the labels contradict the probabilities; NaN for fewer than two rows.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(500, rng=0).sample
    >>> local_calibration_pvalue(town.y, town.p, x={"age": town.column("age").values}, rng=0)
    0.188
    """
    rows = _rows_with_covariates(y_true, y_prob, x, sample_weight, pos_label)
    return float("nan") if rows is None else klce_test(rows, draws=draws, rng=rng).pvalue


def _rows_with_covariates(
    y_true: object, y_prob: object, x: object, sample_weight: object, pos_label: object
) -> Sample | Scan | None:
    """The rows with their covariates; None where there are fewer than two."""
    rows = rows_to_score(y_true, y_prob, sample_weight, pos_label, x)
    if rows is y_true:
        return rows
    with in_their_words():
        weights = rows.weights
        return Sample(rows.y, rows.p, x, weights=weights, missing="level") if rows.n > 1 else None


@dataclass(frozen=True)
class CalibrationScorer:
    """A score of a classifier on its rows, for `scoring=` in scikit-learn; larger is better.

    Made by `scorer`.

    Attributes
    ----------
    score : callable
        A score of this module.
    on : names, positions or None
        The covariates among the columns of X; None: all.
    pos_label : object
        The label that counts as 1; None: the second of the model's classes.
    settings : mapping of str to object
        What the score takes besides.
    weight_request : bool, str or None
        What `set_score_request` was told.
    """

    score: Callable[..., float]
    on: Covariates | None
    pos_label: object
    settings: Mapping[str, Any]
    weight_request: bool | str | None = None

    def __repr__(self) -> str:
        given = {"on": self.on, "pos_label": self.pos_label, **self.settings}
        parts = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        return f"scorer({', '.join([self.score.__name__, *parts])})"

    def set_score_request(self, *, sample_weight: bool | str | None) -> CalibrationScorer:
        """Say whether weights are wanted, where scikit-learn's metadata routing is enabled.

        Parameters
        ----------
        sample_weight : bool, str or None
            Whether `sample_weight` of a search or cross-validation goes to this scorer, or under
            which name it is passed; None, as without this call: it is refused.

        Returns
        -------
        CalibrationScorer
            A copy; this one stays as it is.
        """
        return replace(self, weight_request=sample_weight)

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn what `set_score_request` was told.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
            Of the one thing that can be asked for, `sample_weight`.
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        requested = MetadataRequest(owner=self)
        requested.score.add_request(param="sample_weight", alias=self.weight_request)
        return requested

    def __call__(self, estimator: Any, X: object, y: object, sample_weight: object = None) -> float:
        """Score a fitted classifier.

        Parameters
        ----------
        estimator : classifier with predict_proba
            The model.
        X : frame or (n, d) array
            The features of rows that it was not fitted to.
        y : column of n labels
            Their labels.
        sample_weight : column of n weights, optional
            Default: every row counts alike.

        Returns
        -------
        float
            The score, with a minus where less of it is better.
        """
        settings: dict[str, Any] = {"on": self.on, "pos_label": self.pos_label}
        made = Sample.from_estimator(
            estimator, X, y, weights=sample_weight, missing="level", **settings
        )
        sample = of_two_classes(made)
        value = self.score(sample, **self.settings)
        return value if self.score is local_calibration_pvalue else -value


def scorer(
    score: Callable[..., float],
    *,
    on: Covariates | None = None,
    pos_label: object = None,
    **settings: Any,
) -> CalibrationScorer:
    """Make a scorer for `GridSearchCV` and `cross_val_score`, with covariates from X.

    scikit-learn's `make_scorer` hands labels and probabilities on, but no covariates. This one
    does; a missing value is a level of its own.

    Parameters
    ----------
    score : callable
        A score of this module, such as `klce`, or any function of a Sample of which less is
        better, such as `itrust.klce2`, which unlike its root ties no two models at 0.
    on : names or positions of columns of X, optional
        The covariates; default: all columns.
    pos_label : object, optional
        The label that counts as 1; default: the second of the model's classes.
    **settings : object
        What the score takes besides, such as `kernel`.

    Returns
    -------
    CalibrationScorer
        To be passed as `scoring=`. Its values are negative, as scikit-learn wants the larger one
        to be better; those of `local_calibration_pvalue` are p-values as they are.

    Examples
    --------
    >>> import itrust as it
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.random.default_rng(1).random(300) < 1 / (1 + np.exp(-X[:, 0]))
    >>> scoring = it.scores.scorer(it.scores.klce, on=[0])
    >>> search = GridSearchCV(LogisticRegression(), {"C": [0.001, 1]}, scoring=scoring)
    >>> search.fit(X, y).best_params_
    {'C': 1}
    """
    return CalibrationScorer(score, on, pos_label, settings)


TIE = 1e-12  # probabilities that differ by no more than rounding


def top_label(sample: MulticlassSample) -> Sample:
    """Make a sample of whether the class with the largest probability is right.

    Examples
    --------
    >>> import itrust as it
    >>> undecided = it.Sample(["a"] * 900, [[0.5, 0.5]] * 900, classes=["a", "b"])
    >>> top = top_label(undecided)
    >>> float(top.p.mean()), round(float(top.y.mean()), 1)
    (0.5, 0.5)
    """
    chosen = _largest(sample)
    design = sample.design
    return Sample(
        (sample.codes == chosen).astype(float),
        np.clip(sample.p[np.arange(sample.n), chosen], 0.0, 1.0),
        weights=design.weights,
        cluster=design.cluster,
        strata=design.strata,
        replicate_weights=design.replicate_weights,
        replicate_method=design.replication,
    )


def _largest(sample: MulticlassSample) -> IntArray:
    """Positions of the largest probabilities; of those that tie, one by lot, (n,)."""
    names = [(type(name).__name__, str(name)) for name in sample.classes]
    order = np.array(sorted(range(len(names)), key=names.__getitem__))
    tied = sample.p[:, order] >= sample.p.max(axis=1, keepdims=True) - TIE
    wanted = np.floor(tickets(0, sample.n) * tied.sum(axis=1))
    return np.asarray(order[(np.cumsum(tied, axis=1) > wanted[:, None]).argmax(axis=1)])


def main_scores(rows: Any) -> dict[str, float]:
    """Both losses and two calibration errors; of several classes, these of the top label."""
    if rows.several:
        one, losses = top_label(rows), [mean_loss(rows, own) for own in class_losses(rows)]
    else:
        one, losses = rows, [brier(rows), log_loss(rows)]
    errors = {"ece": ece(one), "smooth_ece": smooth_ece(one)}
    return {"brier": losses[0], "log_loss": losses[1], **errors}


def class_losses(sample: MulticlassSample) -> tuple[FloatArray, FloatArray]:
    """Brier's and the logarithmic loss of every row, (n,) each."""
    own = sample.p[np.arange(sample.n), sample.codes]
    squares = (np.square(sample.p).sum(axis=1) - 2 * own + 1) / 2
    with np.errstate(divide="ignore"):
        return np.asarray(squares), np.asarray(-np.log(own))


def mean_loss(sample: MulticlassSample, losses: FloatArray) -> float:
    """Mean of a loss by the weights of the rows."""
    w = sample.weights_or_ones
    return float(w[w > 0] @ losses[w > 0] / w.sum())
