"""Statistics of cells of the prediction: intercept, slope, smooth curve, groups, grades, AUC.

Intercept and slope are those of Cox (1958): logistic regression of the label on the logit of the
prediction. The intercept is that of a model with the logit as an offset (calibration in the large):
0 if the mean is right. The slope is 1 if predictions are as spread as they should be, below 1 if
they are too extreme.

The smooth curve is logistic regression on a restricted cubic spline of the logit. Knots are at
fixed quantiles of the prediction (Harrell 2015, section 2.4.6), so the curve costs as much for a
million rows as for a thousand, stays between 0 and 1, and is a line in the logit beyond its last
knots. How many knots there are depends on the events that the model expects, never on labels.

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
from typing import Any

import numpy as np
from scipy.special import betainc, betaincc, expit, gammaincc, xlog1py, xlogy

from itrust._core import BoolArray, FloatArray, InputError, IntArray, Rng, as_seed, checked_share
from itrust.calibration.adaptive import checked_draws
from itrust.calibration.bins import PredictionCells, Sums, rows_to_score
from itrust.calibration.tails import step_down, student_quantile, student_tail, unadjusted_pvalues
from itrust.calibration.validation.results import (
    DecisionPoint,
    Grade,
    Reason,
    Validation,
    ValidationStatistic,
    ValidationTable,
)
from itrust.calibration.validation.tally import Partition, Tallied, tallied, with_grades
from itrust.data import Sample, Scan

STEPS = 40
HALVINGS = 12
CLOSE = 1e-11  # a step of this size in every fitted logit ends the search
FARTHEST = 1e4  # beyond the logit of every double; separated labels go there
KNOTS = {5: (0.05, 0.275, 0.5, 0.725, 0.95), 4: (0.05, 0.35, 0.65, 0.95), 3: (0.1, 0.5, 0.9)}
EVENTS = {5: 100.0, 4: 50.0, 3: 20.0}  # expected of the rarer label, for as many knots
SAME = 1e-9  # knots closer than this share of their range are one
ROOM = 1e-7  # of the smallest singular value in the largest
BEYOND_ALL = 1e6  # score of events that cannot happen


def logistic_fits(
    features: FloatArray,
    start: FloatArray,
    offset: FloatArray,
    weights: FloatArray,
    ones: FloatArray,
) -> tuple[FloatArray, BoolArray]:
    """Maximise the likelihood of logistic regressions, by Newton's steps, halved if need be.

    One fit for each row of `ones`, the weights of label 1 by cell; which have converged.
    """
    b, k = len(ones), features.shape[1]
    coefficients = np.tile(np.asarray(start, dtype=float), (b, 1))
    products = (features[:, :, None] * features[:, None, :]).reshape(len(features), k * k)
    converged = np.zeros(b, dtype=bool)

    def logits(coefficients: FloatArray) -> FloatArray:
        return np.clip(coefficients @ features.T + offset, -FARTHEST, FARTHEST)

    def likelihood(at: FloatArray) -> FloatArray:
        return np.asarray((ones * at).sum(axis=1) - np.logaddexp(0.0, at) @ weights)

    at = logits(coefficients)
    value = likelihood(at)
    farthest = max(10.0, float(np.abs(at).max(initial=0.0)) / 4)  # of one step, in logits
    for _ in range(STEPS):
        mean = expit(at)
        gradient = (ones - weights * mean) @ features
        curvature = ((weights * mean * (1 - mean)) @ products).reshape(b, k, k)
        step = _newton_steps(curvature, gradient)
        step[converged] = 0.0
        reach = np.abs(step @ features.T).max(axis=1, initial=0.0)
        step *= np.minimum(1.0, farthest / np.maximum(reach, 1e-300))[:, None]
        for halved in range(HALVINGS + 1):
            moved = logits(coefficients + step)
            new = likelihood(moved)
            worse = new < value - 1e-12 * np.abs(value) - 1e-300
            if not worse.any():
                break
            step[worse] *= 0.5 if halved < HALVINGS - 1 else 0.0  # at last it stays where it is
        coefficients, at, value = coefficients + step, moved, new
        converged |= reach < CLOSE
        if converged.all():
            break
    return coefficients, converged


def _newton_steps(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
    """Newton's steps, with next to no ridge, so that what is flat stays where it is."""
    scale = np.sqrt(np.maximum(np.einsum("bii->bi", curvature), 1e-300))
    scaled = curvature / scale[:, :, None] / scale[:, None, :] + 1e-14 * np.eye(scale.shape[1])
    try:
        step = np.linalg.solve(scaled, (gradient / scale)[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        step = (np.linalg.pinv(scaled) @ (gradient / scale)[:, :, None])[:, :, 0]
    return np.asarray(np.where(np.isfinite(step), step, 0.0) / scale)


def intercept_and_slope(
    tallied: Tallied, confidence: float
) -> tuple[ValidationStatistic, ValidationStatistic]:
    """Fit both models, with Wald intervals and p-values.

    Rows whose prediction is exactly 0 or 1 and whose label agrees have a likelihood of 1 whatever
    the coefficients are, so the fit leaves them out; with the other label no finite
    coefficients fit.
    """
    cells = tallied.cells
    inside: IntArray = np.flatnonzero(~cells.is_certain)
    zeros, ones = (np.flatnonzero(part[inside]) for part in (cells.sums.zeros, cells.sums.ones))
    if cells.contrary or not (zeros.size and ones.size):
        reason = Reason.ONE_LABEL if inside.size else Reason.CERTAIN
        reason = Reason.CONTRARY if cells.contrary else reason
        return _missing("intercept", reason), _missing("slope", reason)
    constant, x = np.ones((inside.size, 1)), cells.logit[inside]
    intercept = _fit(tallied, "intercept", inside, constant, x, confidence)
    if inside.size == 1:
        return intercept, _missing("slope", Reason.ONE_PREDICTION)
    if zeros[-1] <= ones[0] or ones[-1] <= zeros[0]:
        return intercept, _missing("slope", Reason.SEPARATED)
    both = np.column_stack([constant, x])
    return intercept, _fit(tallied, "slope", inside, both, np.zeros(x.size), confidence)


def _missing(name: str, reason: Reason) -> ValidationStatistic:
    return ValidationStatistic(name, reason=reason)


def _fit(
    tallied: Tallied,
    name: str,
    inside: IntArray,
    features: FloatArray,
    offset: FloatArray,
    confidence: float,
) -> ValidationStatistic:
    """The last coefficient, with its interval and the p-value for its value under calibration."""
    sums = tallied.cells.sums.at(inside)
    start = np.arange(features.shape[1], dtype=float)  # of a calibrated model: a slope of 1
    (fitted,), (converged,) = logistic_fits(
        features, start, offset, sums.weights, sums.weights1[None]
    )
    if not converged:
        return _missing(name, Reason.SEPARATED)
    value = float(fitted[-1])
    mean = expit(np.asarray(fitted @ features.T + offset))
    information = features.T @ ((sums.weights * mean * (1 - mean))[:, None] * features)
    inverse = np.linalg.inv(information)
    variance = float(inverse[-1, -1])  # of independent rows that count alike
    if tallied.design is not None or tallied.cells.are_weighted:  # the sandwich
        share = features @ inverse[:, -1]
        zero, one = np.zeros((2, tallied.cells.p.size))
        zero[inside], one[inside] = -mean * share, (1 - mean) * share
        variance = tallied.variance(zero, one)
    error = float(np.sqrt(variance))
    half = float(student_quantile((1 - confidence) / 2, tallied.freedom)) * error
    pvalue = _two_sided((value - start[-1]) / error, tallied.freedom) if error > 0 else None
    return ValidationStatistic(name, value, value - half, value + half, pvalue)


def _two_sided(z: float, freedom: float) -> float:
    return min(2 * float(student_tail(abs(z), freedom)), 1.0)


def smooth_errors(cells: PredictionCells, ones: FloatArray) -> tuple[FloatArray, int]:
    """Distances of smooth curves, one for each set of labels, and the number of knots.

    Predictions of 0 and 1 have their own observed rate. Where labels are separated, coefficients
    grow without end, but the curve has a limit, which forty steps reach to the last digit that
    counts.
    """
    curve, knots = ones / cells.sums.weights, 0
    inside = ~cells.is_certain
    if inside.any():
        some = cells.some(inside)
        features, knots = _spline(some)
        start = np.zeros(features.shape[1])
        start[1:2] = 1.0  # of the logit, where there is more than a constant
        coefficients, _ = logistic_fits(
            features, start, np.zeros(some.p.size), some.sums.weights, ones[:, inside]
        )
        curve[:, inside] = expit(coefficients @ features.T)
    return np.abs(curve - cells.p), knots


def _spline(cells: PredictionCells) -> tuple[FloatArray, int]:
    """Choose knots and make the basis, from predictions alone; their number."""
    expected = float(cells.sums.rows @ cells.p)
    rarer = min(expected, float(cells.sums.rows.sum()) - expected)
    share = np.cumsum(cells.sums.weights)
    share = share / share[-1]
    for number, least in EVENTS.items():
        if rarer >= least:
            at = np.searchsorted(share, np.array(KNOTS[number]) - 1e-12)
            knots = cells.logit[np.minimum(at, share.size - 1)]
            knots = knots[np.diff(knots, prepend=-np.inf) > SAME * max(np.ptp(knots), 1e-300)]
            if knots.size >= 3:
                features = restricted_cubic(cells.logit, knots)
                if _has_room(features, cells.sums.weights):
                    return features, knots.size
    line = np.column_stack([np.ones(cells.p.size), cells.logit])
    if cells.p.size > 1 and _has_room(line, cells.sums.weights):
        return line, 0
    return line[:, :1], 0


def _has_room(features: FloatArray, weights: FloatArray) -> bool:
    """Whether the columns are told apart by rows of some weight."""
    weighted = features * np.sqrt(weights / weights.sum())[:, None]
    size = np.linalg.norm(weighted, axis=0)
    columns = features.shape[1]
    return bool(size.all() and np.linalg.matrix_rank(weighted / size, rtol=ROOM) == columns)


def restricted_cubic(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Harrell's basis: a constant, x, and cubic terms that are linear beyond the last knots."""
    first, last, before = knots[0], knots[-1], knots[-2]
    above = np.maximum(x[:, None] - knots, 0.0) ** 3
    cubics = (
        above[:, :-2]
        - above[:, [-2]] * (last - knots[:-2]) / (last - before)
        + above[:, [-1]] * (before - knots[:-2]) / (last - before)
    ) / (last - first) ** 2
    return np.column_stack([np.ones(x.size), x, cubics])


def distances(errors: FloatArray, cells: PredictionCells) -> dict[str, FloatArray]:
    """Mean, median, ninth decile and largest distance of smooth curves, (b,) each."""
    weights = cells.sums.weights
    return {
        "ici": errors @ weights / weights.sum(),
        "e50": np.array([quantile_of(values, cells, 0.5) for values in errors]),
        "e90": np.array([quantile_of(values, cells, 0.9) for values in errors]),
        "emax": errors.max(axis=1),
    }


def quantile_of(values: FloatArray, cells: PredictionCells, level: float) -> float:
    """Quantile of a value of the rows: interpolated between rows that count alike."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    if cells.are_weighted:
        share = np.cumsum(cells.sums.weights[order])
        at = np.searchsorted(share, level * share[-1] * (1 - 1e-12))
        return float(ranked[min(int(at), ranked.size - 1)])
    ends = np.cumsum(cells.sums.rows[order])
    position = level * (ends[-1] - 1)
    below, above = np.searchsorted(ends, [np.floor(position), np.ceil(position)], side="right")
    return float(ranked[below] + (position - np.floor(position)) * (ranked[above] - ranked[below]))


def hosmer_lemeshow(tallied: Tallied) -> ValidationStatistic:
    """Sum over groups of (events - expected)^2 / variance (Hosmer and Lemeshow 1980).

    The rows are new to the model, so the law has as many degrees of freedom as groups, and not two
    fewer, which is for rows that a logistic model was fitted to.
    """
    name, groups = "hosmer_lemeshow", tallied.groups
    variance = group_variance(groups)
    freedom = int(np.count_nonzero(variance > 0))
    if not freedom:
        return _missing(name, Reason.NO_VARIANCE)
    residual = groups.weights1 - groups.weights * groups.predicted
    value = float(hosmer_lemeshow_of(residual, variance))
    if np.isinf(value):
        return ValidationStatistic(name, freedom=freedom, reason=Reason.CONTRARY)
    if tallied.is_clustered:
        return ValidationStatistic(name, value, freedom=freedom, reason=Reason.CLUSTERED_GROUPS)
    chance = float(gammaincc(freedom / 2, value / 2))
    return ValidationStatistic(name, value, pvalue=chance, freedom=freedom)


def group_variance(groups: Sums) -> FloatArray:
    """Variance of the weight of label 1 in each group, at its mean prediction, (g,)."""
    return groups.squares * groups.predicted * (1 - groups.predicted)


def hosmer_lemeshow_of(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """The statistic; infinite where a group that cannot vary is off."""
    varies = variance > 0
    total = (np.square(residual[..., varies]) / variance[varies]).sum(axis=-1)
    off = (np.abs(residual[..., ~varies]) > 1e-9).any(axis=-1)
    return np.where(off, np.inf, total)


def spiegelhalter(tallied: Tallied) -> ValidationStatistic:
    """Spiegelhalter's z (1986): the Brier score less its mean under calibration, standardised.

    Shown with the sign of the Brier score: positive is worse than a calibrated model.
    """
    name, cells = "spiegelhalter", tallied.cells
    tilt = 1 - 2 * cells.p
    total = float((cells.sums.weights1 - cells.sums.weights * cells.p) @ tilt)
    if tallied.design is None:
        variance = float((cells.sums.squares * cells.p * (1 - cells.p)) @ np.square(tilt))
    else:
        variance = tallied.variance(-cells.p * tilt, (1 - cells.p) * tilt)
    if variance <= 0:
        reason = Reason.NO_VARIANCE if cells.is_certain.all() else Reason.TOSSED
        return _missing(name, Reason.CONTRARY if cells.contrary else reason)
    z = total / float(np.sqrt(variance))
    return ValidationStatistic(name, z, pvalue=_two_sided(z, tallied.freedom))


def isotonic(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Give the rising values nearest to these in squares."""
    from scipy.optimize import isotonic_regression  # a quarter of a second, so not before

    return np.array([isotonic_regression(row, weights=weights).x for row in values])


def decomposed(cells: PredictionCells) -> list[ValidationStatistic]:
    """Split the Brier score and the log loss by isotonic recalibration (CORP).

    Score = miscalibration - discrimination + uncertainty: Dimitriadis, Gneiting and Jordan (2021).
    """
    sums, total = cells.sums, float(cells.sums.weights.sum())
    recalibrated = isotonic(sums.observed[None], sums.weights)[0]
    rate = np.full(cells.p.size, float(sums.weights1.sum()) / total)

    def brier(p: FloatArray) -> float:
        return float(sums.weights0 @ np.square(p) + sums.weights1 @ np.square(1 - p)) / total

    def surprise(p: FloatArray) -> float:
        return -float(np.sum(xlog1py(sums.weights0, -p) + xlogy(sums.weights1, p))) / total

    values: dict[str, float] = {}
    for score, name, prefix in ((brier, "brier", ""), (surprise, "log_loss", "log_")):
        value, best, least = score(cells.p), score(recalibrated), score(rate)
        values |= {name: value, f"{prefix}miscalibration": value - best}
        values |= {f"{prefix}discrimination": least - best, f"{prefix}uncertainty": least}
    return [
        ValidationStatistic(name, v) if np.isfinite(v) else _missing(name, Reason.CONTRARY)
        for name, v in values.items()
    ]


def discrimination(tallied: Tallied, confidence: float) -> list[ValidationStatistic]:
    """Area under the ROC curve with DeLong's interval (1988), and Gini's coefficient."""
    sums = tallied.cells.sums
    zeros, ones = sums.weights0, sums.weights1
    if not (zeros.any() and ones.any()):
        return [_missing(name, Reason.ONE_LABEL) for name in ("auc", "gini")]
    below = (np.cumsum(zeros) - zeros / 2) / zeros.sum()  # of each positive: negatives below it
    above = 1 - (np.cumsum(ones) - ones / 2) / ones.sum()
    area = float(ones @ below) / float(ones.sum())
    zero, one = (above - area) / zeros.sum(), (below - area) / ones.sum()
    if tallied.design is None:
        rows = np.array([sums.zeros.sum(), sums.ones.sum()])
        spread = [sums.squares0 @ np.square(zero), sums.squares1 @ np.square(one)]
        more = np.divide(rows, rows - 1, out=np.full(2, np.nan), where=rows > 1)
        variance = float(spread @ more)
    else:
        variance = tallied.variance(zero, one)
    half = float(student_quantile((1 - confidence) / 2, tallied.freedom)) * float(np.sqrt(variance))
    if np.isnan(half):
        values = {"auc": area, "gini": 2 * area - 1}.items()
        return [ValidationStatistic(name, v, reason=Reason.ONE_ROW) for name, v in values]
    lower, upper = max(area - half, 0.0), min(area + half, 1.0)
    gini = ValidationStatistic("gini", 2 * area - 1, 2 * lower - 1, 2 * upper - 1)
    return [ValidationStatistic("auc", area, lower, upper), gini]


def decision_curve(tallied: Tallied) -> tuple[DecisionPoint, ...]:
    """Net benefit at every threshold (Vickers and Elkin 2006)."""
    between = tallied.between(np.nextafter(tallied.partition.thresholds, 0.0))
    total = float(between.weights.sum())
    above = [np.cumsum(part[::-1])[::-1] for part in (between.weights1, between.weights0)]
    ones, zeros = (part / total for part in above)
    rows = np.cumsum(between.rows[::-1])[::-1]
    return tuple(
        DecisionPoint(float(threshold), float(one), float(zero), float(ones[0]), int(count))
        for threshold, one, zero, count in zip(
            tallied.partition.thresholds, ones[1:], zeros[1:], rows[1:], strict=True
        )
    )


def graded(tallied: Tallied, draws: int, random: np.random.Generator) -> tuple[Grade, ...]:
    """Test every grade by itself, and adjust for all of them.

    Events of a grade are redrawn from the binomial law at its mean prediction, which spreads as
    wide as that of different predictions, or wider.
    """
    (names, sums), grades = tallied.grades(), []
    if not tallied.is_clustered:
        adjusted, both = _adjusted(sums, draws, random)
    for k, name in enumerate(names):
        rows, events, mean = int(sums.rows[k]), int(sums.ones[k]), float(sums.predicted[k])
        tests: dict[str, Any] = {}
        if tallied.is_clustered:
            tests["reason"] = Reason.CLUSTERED_GRADES
        else:
            tests = {"adjusted": float(adjusted[k]), "adjusted_two_sided": float(both[k])}
            if not 0 < mean < 1:  # the beta law calls such a prediction impossible
                tests["reason"] = Reason.NO_VARIANCE
            if tallied.cells.are_weighted:
                tests["reason"] = Reason.WEIGHTED_GRADES
            else:
                by_law = grade_tests(rows, events, mean)
                tests |= {n: p for n, p in by_law.items() if 0 < mean < 1 or "jeffreys" not in n}
        grades.append(Grade(name, rows, events, mean, float(sums.observed[k]), **tests))
    return tuple(grades)


def grade_tests(rows: float, events: float, predicted: float) -> dict[str, float]:
    """P-values of one grade."""
    many, few = (float(np.exp(-tail)) for tail in _tails(rows, events, predicted))
    low, high = (
        float(tail(events + 0.5, rows - events + 0.5, predicted)) for tail in (betainc, betaincc)
    )
    return {
        "binomial": many,
        "jeffreys": low,
        "binomial_two_sided": min(2 * min(many, few), 1.0),
        "jeffreys_two_sided": min(2 * min(low, high), 1.0),
    }


def _tails(
    rows: FloatArray | float, events: FloatArray | float, p: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Minus the logs of P(X >= events) and P(X <= events), also between whole numbers."""
    others = np.subtract(rows, events)
    with np.errstate(divide="ignore"):
        many = -np.log(betainc(np.maximum(events, 1e-300), others + 1, p))
        few = -np.log(betainc(np.maximum(others, 1e-300), np.add(events, 1), 1 - p))
    return np.where(np.less_equal(events, 0), 0.0, many), np.where(others <= 0, 0.0, few)


def _adjusted(sums: Sums, draws: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Step-down p-values: one-sided and two-sided."""
    worth = np.maximum(np.round(sums.effective), 1.0)
    p = np.clip(sums.predicted, 0.0, 1.0)
    drawn = random.binomial(worth.astype(np.int64), p, size=(draws, p.size))
    events = np.column_stack([worth * sums.observed, drawn.T])
    many, few = (
        np.where(np.isfinite(tail), tail, BEYOND_ALL)
        for tail in _tails(worth[:, None], events, p[:, None])
    )
    return step_down(many), step_down(np.maximum(many, few))


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
    errors, knots = smooth_errors(cells, cells.sums.weights1[None])
    every = [
        *intercept_and_slope(tallied, confidence),
        *(ValidationStatistic(name, float(v[0])) for name, v in distances(errors, cells).items()),
        hosmer_lemeshow(tallied),
        spiegelhalter(tallied),
        *decomposed(cells),
        *discrimination(tallied, confidence),
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
        grades=ValidationTable(graded(tallied, draws, random)),
        decision=ValidationTable(decision_curve(tallied)),
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
    errors, _ = smooth_errors(smoothed, np.add.reduceat(ones, starts, axis=1))
    return {
        "intercept": np.abs(residual.sum(axis=1)),
        "slope": np.abs(residual @ centred),
        **distances(errors, smoothed),
        "hosmer_lemeshow": hosmer_lemeshow_of(by_group, group_variance(cells.merged(groups).sums)),
        "spiegelhalter": np.abs(residual @ (1 - 2 * cells.p)),
        "miscalibration": _miscalibration(cells, ones),
    }


def _miscalibration(cells: PredictionCells, ones: FloatArray) -> FloatArray:
    """Of the Brier score; what the labels alone add to it cancels."""
    weights = cells.sums.weights
    rates = ones / weights
    lost = np.square(rates - cells.p) - np.square(rates - isotonic(rates, weights))
    return np.asarray(lost @ weights / weights.sum())
