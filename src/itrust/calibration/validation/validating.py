"""`validation`: what validators of models print, computed once from sums over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from itrust._core import InputError, Rng, as_seed, checked_share, did_you_mean
from itrust.calibration.inputs import checked_draws
from itrust.calibration.score_inputs import ScoredRows, rows_to_score
from itrust.calibration.validation.classical import (
    decision_curve,
    decompose,
    discrimination,
    hosmer_lemeshow,
    spiegelhalter,
)
from itrust.calibration.validation.grades import graded
from itrust.calibration.validation.recalibrating import intercept_and_slope
from itrust.calibration.validation.redraws import redrawn
from itrust.calibration.validation.results import (
    Reason,
    Validation,
    ValidationStatistic,
    ValidationTable,
)
from itrust.calibration.validation.smooth import quantile_of, smooth_curves
from itrust.calibration.validation.tally import (
    GradeColumn,
    Partition,
    Tallied,
    checked_cuts,
    edges_of,
    tallied,
    thresholds_of,
)
from itrust.data import Sample, Scan


def validation(
    y_true: object,
    y_prob: object = None,
    *,
    grades: object = None,
    cuts: Sequence[float] | None = None,
    thresholds: Sequence[float] | None = None,
    confidence: float = 0.95,
    draws: int = 999,
    rng: Rng = None,
    sample_weight: object = None,
    pos_label: object = None,
) -> Validation:
    """Compute what validators of credit and clinical models print about the predictions alone.

    Calibration intercept and slope with intervals; the integrated calibration index (ICI, E50, E90,
    Emax); Hosmer-Lemeshow for new rows; Spiegelhalter's z; binomial and Jeffreys tests by grade;
    the Brier score and the log loss split into miscalibration, discrimination and uncertainty
    (CORP); AUC with DeLong's interval; and the decision curve. None of it looks at covariates: a
    model that is too high for the young and too low for the old by as much passes all of it.

    Statistics have two p-values: that of the textbooks, equal to what other packages print, and an
    exact one, by labels that are redrawn from the probabilities. Rely on the second where they
    differ: laws of many rows mislead where events are rare. None is adjusted for the others.

    Rows of clusters, strata and replicate weights get intervals and p-values by the design where
    these exist; where they do not, `reason` says why. Predictions of exactly 0 or 1 have no logit.
    None is moved: where the label agrees they do not change a likelihood, so the fits of
    intercept, slope and curve leave them out; where it does not, no finite coefficient fits, and
    there is none. `certain` and `contrary` count them.

    Rows in files are read twice, 65,536 at a time; memory does not grow with their number. More
    than 100,000 rows are gathered in cells of predictions that differ by 0.05 % at most in their
    distance from 0 or 1, which moves statistics by less than 1e-4, Spiegelhalter's z by less
    than 0.01 (most where all predictions are near 1/2); groups of Hosmer and Lemeshow are then cut
    by 100,000 random rows.

    With weights, p-values by redraws, and those of Hosmer-Lemeshow, Spiegelhalter's z and grades,
    hold if weights tell nothing of the label beyond the prediction. They do where events and other
    rows were drawn at different rates: then rely on the intervals of intercept, slope and AUC.

    Parameters
    ----------
    y_true : column of n labels, Sample or Scan
        The labels; or rows that were read already, which hold everything else as well.
    y_prob : column of n probabilities or (n, 2) matrix, optional
        Of the positive label, or of both labels as `predict_proba` gives them. Default: those of
        the sample.
    grades : name of a covariate, or column of n values, optional
        Rating classes of the rows, 50 at most: told as numbers rise, as ordered categories are
        ordered, or by the alphabet, and rows without one last. Default: ten groups of the
        prediction of the same weight, those of Hosmer and Lemeshow.
    cuts : sequence of float, optional
        Cut points of the prediction that make grades; default: see `grades`. A prediction at a cut
        point belongs to the grade above.
    thresholds : sequence of float, optional
        Of the decision curve; by default up to eleven round numbers from the bulk of the
        predictions, where deciding by them differs from acting on all or on nobody.
    confidence : float
        Coverage of each interval by itself; 0.95 by default.
    draws : int
        How often labels are redrawn; 999 by default.
    rng : int, numpy.random.Generator or None
        The seed. Default: another one in every call.
    sample_weight : column of n weights, optional
        Default: those of the sample; of arrays, every row counts alike.
    pos_label : object, optional
        The value of the label that counts as 1. Default: 1, where labels are 0 and 1, or -1 and 1.

    Returns
    -------
    Validation
        A table of statistics, with `grades` and the `decision` curve; `found["slope"]` is one.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> found = it.scores.validation(town, draws=199, rng=0)
    >>> round(found["slope"].value, 2), found["hosmer_lemeshow"].freedom
    (0.93, 10)
    >>> [own.name for own in found.rejected(0.05)]
    ['emax']
    """
    checked_share(confidence, "confidence")
    draws, seed = checked_draws(draws), as_seed(rng)
    source = rows_to_score(y_true, y_prob, sample_weight, pos_label)
    if isinstance(source, Scan) and not source.is_simple:
        source = source.load()
    if grades is not None and cuts is not None:
        raise InputError("give {argument} or cuts, not both", argument="grades")
    column = _column(source, grades)
    levels = checked_cuts(thresholds, "thresholds")
    partition = Partition(
        edges_of(source),
        thresholds_of(source) if thresholds is None else levels,
        checked_cuts(cuts, "cuts"),
    )
    found = validated(tallied(source, partition, column), confidence, draws, seed)
    return replace(
        found,
        graded_by=None if column is None else column.name,
        folds=source.folds if isinstance(source, Sample) else 0,
    )


def _column(source: Sample | Scan | ScoredRows, grades: object) -> GradeColumn | None:
    if grades is None:
        return None
    if isinstance(grades, str):
        if isinstance(source, ScoredRows):
            raise InputError(
                "{argument} {value}: arrays have no covariates; give a column of n values",
                argument="grades",
                value=grades,
            )
        if grades not in source.names:
            raise InputError(
                "{argument}: there is no covariate {value}; {guess}",
                argument="grades",
                value=grades,
                details={"guess": did_you_mean(grades, source.names)},
            )
        return GradeColumn(grades)
    if isinstance(source, Scan):
        raise InputError(
            "{argument} of rows in files is the name of a covariate, or use cuts=",
            argument="grades",
        )
    return GradeColumn.read(grades, source.n)


def validated(found: Tallied, confidence: float, draws: int, seed: int) -> Validation:
    """Make all statistics of sums over rows."""
    # Apart from the test's draws, which have the same seed, so that p-values are not tied to them.
    random = np.random.default_rng([23, seed])
    cells = found.cells
    smooth, knots = _smooth(found)
    statistics = [
        *intercept_and_slope(found, confidence),
        *smooth,
        hosmer_lemeshow(found),
        spiegelhalter(found),
        *_decomposed(found),
        *discrimination(found, confidence),
    ]
    if found.is_clustered:
        told = [
            replace(own, reason=Reason.CLUSTERED_REDRAWS)
            if own.name in ("ici", "e50", "e90", "emax", "miscalibration") and own.reason is None
            else own
            for own in statistics
        ]
    else:
        drawn = redrawn(found, draws, random)
        told = [
            replace(own, exact_pvalue=drawn[own.name].pvalue, expected=drawn[own.name].expected)
            if own.name in drawn and own.value is not None
            else own
            for own in statistics
        ]
    return Validation(
        n=int(cells.sums.rows.sum()),
        events=int(cells.sums.ones.sum()),
        confidence=float(confidence),
        draws=draws,
        seed=seed,
        certain=cells.certain,
        contrary=cells.contrary,
        knots=knots,
        gathered=found.gathered,
        weighted=cells.are_weighted,
        clustered=found.is_clustered,
        statistics=tuple(told),
        grades=ValidationTable(graded(found, draws, random)),
        decision=ValidationTable(decision_curve(found)),
    )


def _smooth(found: Tallied) -> tuple[list[ValidationStatistic], int]:
    """The distance of the smooth curve: its mean, median, ninth decile and largest value."""
    names = ("ici", "e50", "e90", "emax")
    cells = found.cells
    curve = smooth_curves(cells, cells.sums.weights1[None])
    errors, weights = curve.errors[0], cells.sums.weights
    values = (
        float(errors @ weights / weights.sum()),
        quantile_of(errors, cells, 0.5),
        quantile_of(errors, cells, 0.9),
        float(errors.max()),
    )
    return [
        ValidationStatistic(name, value) for name, value in zip(names, values, strict=True)
    ], curve.knots


def _decomposed(found: Tallied) -> list[ValidationStatistic]:
    """Brier score and log loss with their parts."""
    brier, surprise = decompose(found.cells)
    values = {
        "brier": brier.score,
        "miscalibration": brier.miscalibration,
        "discrimination": brier.discrimination,
        "uncertainty": brier.uncertainty,
        "log_loss": surprise.score,
        "log_miscalibration": surprise.miscalibration,
        "log_discrimination": surprise.discrimination,
        "log_uncertainty": surprise.uncertainty,
    }
    return [
        ValidationStatistic(name, value)
        if np.isfinite(value)
        else ValidationStatistic(name, reason=Reason.CONTRARY)
        for name, value in values.items()
    ]
