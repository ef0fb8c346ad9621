"""`validation`: what validators of models print, computed once from sums over the rows.

P-values without a law come from labels redrawn from the probabilities, for every statistic at once.
If the model is calibrated, labels of independent rows behave as if they were drawn from the
predictions. So the share of redraws that look at least as bad as the data is a p-value that holds
at any number of rows. Of more than 2,048 different predictions, neighbouring rows are redrawn
together, at their mean prediction; with weights, as so many rows as they are worth. Steps of an
isotonic fit depend on every cell, so their redraws are of all cells, where these are not too many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, Rng, as_seed, checked_share
from itrust.calibration.bins import PredictionCells
from itrust.calibration.inputs import checked_draws
from itrust.calibration.multiplicity import unadjusted_pvalues
from itrust.calibration.score_inputs import rows_to_score
from itrust.calibration.validation import statistics
from itrust.calibration.validation.results import (
    Reason,
    Validation,
    ValidationStatistic,
    ValidationTable,
)
from itrust.calibration.validation.tally import Partition, Tallied, tallied, with_grades
from itrust.data import Sample, Scan

COARSE = 2_048
SMOOTH_CELLS = 256
LEAST_DRAWS = 10
AT_ONCE = 1_500_000  # numbers of one batch of draws
ALL_CELLS = 30_000_000  # redrawn labels: a second of work
DISTANCES = ("ici", "e50", "e90", "emax", "miscalibration")  # never 0, so that their mean is told


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
        Of the positive label, or of both as of `predict_proba`. Default: those of the sample.
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
    if grades is not None and cuts is not None:
        raise InputError("give {argument} or cuts, not both", argument="grades")
    if isinstance(source, Scan) and not source.is_simple:
        source = source.load()
    source, name = with_grades(source, grades)
    some = source
    if isinstance(source, Scan):
        extract = source.extract()
        some, source = extract.some, extract.some if extract.is_all else source
    partition = Partition.of(some, name, thresholds, cuts)
    folds = source.folds if isinstance(source, Sample) else 0
    return validated(tallied(source, partition), confidence, draws, seed, folds)


def validated(
    tallied: Tallied, confidence: float, draws: int, seed: int, folds: int = 0
) -> Validation:
    """Make all statistics of sums over rows."""
    # Apart from the test's draws, which have the same seed, so that p-values are not tied to them.
    random = np.random.default_rng([23, seed])
    cells = tallied.cells
    errors, knots = statistics.smooth_errors(cells, cells.sums.weights1[None])
    every = [
        *statistics.intercept_and_slope(tallied, confidence),
        *(
            ValidationStatistic(name, float(v[0]))
            for name, v in statistics.distances(errors, cells).items()
        ),
        statistics.hosmer_lemeshow(tallied),
        statistics.spiegelhalter(tallied),
        *statistics.decomposed(cells),
        *statistics.discrimination(tallied, confidence),
    ]
    drawn = {} if tallied.is_clustered else _redrawn(tallied, draws, random)
    for k, one in enumerate(every):
        if tallied.is_clustered and one.name in DISTANCES and one.reason is None:
            every[k] = replace(one, reason=Reason.CLUSTERED_REDRAWS)
        elif one.name in drawn and one.value is not None:
            pvalue, expected = drawn[one.name]
            every[k] = replace(one, exact_pvalue=pvalue, expected=expected)
    return Validation(
        n=int(cells.sums.rows.sum()),
        events=int(cells.sums.ones.sum()),
        confidence=float(confidence),
        draws=draws,
        seed=seed,
        certain=int(cells.sums.rows[cells.is_certain].sum()),
        contrary=cells.contrary,
        knots=knots,
        gathered=tallied.gathered,
        weighted=cells.are_weighted,
        clustered=tallied.is_clustered,
        statistics=tuple(every),
        grades=ValidationTable(statistics.graded(tallied, draws, random)),
        decision=ValidationTable(statistics.decision_curve(tallied)),
        folds=folds,
        graded_by=tallied.partition.grades,
    )


Scoring = Callable[[FloatArray], dict[str, FloatArray]]


def _redrawn(
    tallied: Tallied, draws: int, random: np.random.Generator
) -> dict[str, tuple[float, float | None]]:
    """P-value by redraws, and for distances their mean, of every statistic.

    Miscalibration is that of all cells; of very many only its mean, which moves with their number.
    """
    cells, edges = tallied.cells, tallied.partition.edges
    coarse = cells.merged(_starts(cells, COARSE, np.searchsorted(edges, cells.p)))
    drawn = _compared(coarse, lambda ones: _scores(coarse, ones, edges), draws, random)
    if coarse.p.size == cells.p.size:
        return drawn

    def steps(ones: FloatArray) -> dict[str, FloatArray]:
        return {"miscalibration": _miscalibration(cells, ones)}

    is_whole = cells.p.size * draws <= ALL_CELLS
    few = min(draws, max(AT_ONCE // cells.p.size, LEAST_DRAWS))
    pvalue, mean = _compared(cells, steps, draws if is_whole else few, random)["miscalibration"]
    return drawn | {"miscalibration": (pvalue if is_whole else drawn["miscalibration"][0], mean)}


def _compared(
    cells: PredictionCells, scoring: Scoring, draws: int, random: np.random.Generator
) -> dict[str, tuple[float, float | None]]:
    """Score the data and as many redraws of their labels, some at a time."""
    size = max(1, AT_ONCE // cells.p.size)
    parts = [scoring(cells.sums.weights1[None])]
    numbers = (min(size, draws - at) for at in range(0, draws, size))
    parts += [scoring(_labels(cells, number, random)) for number in numbers]
    compared = {}
    for name in parts[0]:
        scores = np.concatenate([part[name] for part in parts])
        known = np.isfinite(scores)
        beyond = 2 * float(np.abs(scores[known]).max(initial=0.0)) + 1  # what cannot happen
        pvalue = float(unadjusted_pvalues(np.where(known, scores, beyond)[None])[0])
        some = name in DISTANCES and known[1:].any()
        compared[name] = pvalue, float(scores[1:][known[1:]].mean()) if some else None
    return compared


def _labels(cells: PredictionCells, draws: int, random: np.random.Generator) -> FloatArray:
    """Weights of label 1 in every cell, redrawn as so many rows as they are worth, (draws, m)."""
    p, sums, shape = cells.p, cells.sums, (draws, cells.p.size)
    number = np.maximum(np.round(sums.effective), 1).astype(np.int64)
    alone = (number == 1).all()
    drawn = random.random(shape) < p if alone else random.binomial(number, p, size=shape)
    ones = drawn.astype(float)
    if not cells.are_weighted:
        return ones
    scale = np.sqrt(sums.squares / number)  # so that the variance is that of the weights
    return np.clip(sums.weights * p + (ones - number * p) * scale, 0.0, sums.weights)


def _starts(cells: PredictionCells, number: int, group: IntArray | int = 0) -> IntArray:
    """Where about so many cells of the same weight begin, within groups; 0 and 1 stay apart."""
    if cells.p.size <= number:
        return np.arange(cells.p.size)
    share = np.cumsum(cells.sums.weights)
    part = np.minimum(share / share[-1] * number, number - 1).astype(np.int64)
    side = np.select([cells.p == 0, cells.p == 1], [0, 2], 1)
    return np.flatnonzero(np.diff((group * (number + 1) + part) * 3 + side, prepend=-1))


def _scores(cells: PredictionCells, ones: FloatArray, edges: FloatArray) -> dict[str, FloatArray]:
    """Every statistic of sets of labels as a number that is large where the model looks bad."""
    residual = ones - cells.sums.weights * cells.p
    varies = cells.sums.weights * cells.p * (1 - cells.p)
    total = float(varies.sum())
    logit = np.where(cells.is_certain, 0.0, cells.logit)
    centred = logit - (float(varies @ logit) / total if total > 0 else 0.0)
    centred[cells.is_certain] = 0.0
    groups = np.flatnonzero(np.diff(np.searchsorted(edges, cells.p), prepend=-1))
    by_group = np.add.reduceat(residual, groups, axis=1)
    starts = _starts(cells, SMOOTH_CELLS)  # some hundred cells tell distances as well as more
    smoothed = cells.merged(starts)
    errors, _ = statistics.smooth_errors(smoothed, np.add.reduceat(ones, starts, axis=1))
    return {
        "intercept": np.abs(residual.sum(axis=1)),
        "slope": np.abs(residual @ centred),
        **statistics.distances(errors, smoothed),
        "hosmer_lemeshow": statistics.hosmer_lemeshow_of(
            by_group, statistics.group_variance(cells.merged(groups).sums)
        ),
        "spiegelhalter": np.abs(residual @ (1 - 2 * cells.p)),
        "miscalibration": _miscalibration(cells, ones),
    }


def _miscalibration(cells: PredictionCells, ones: FloatArray) -> FloatArray:
    """Of the Brier score; what the labels alone add to it cancels."""
    weights = cells.sums.weights
    rates = ones / weights
    lost = np.square(rates - cells.p) - np.square(rates - statistics.isotonic(rates, weights))
    return np.asarray(lost @ weights / weights.sum())
