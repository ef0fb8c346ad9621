"""What validators print."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy.special import logit
from sklearn.metrics import roc_auc_score

import itrust as it
from equal.data import Halves
from equal.kit import row

Pair = tuple[Any, Any]
SOLVED = 1e-8
CUTS = (0.2, 0.4, 0.6)


@functools.cache
def told(rows: Halves) -> Any:
    return it.scores.validation(rows.test, cuts=CUTS, draws=19, rng=0)


@row("Calibration intercept and slope, with intervals", "statsmodels", within=SOLVED)
def intercept_and_slope(rows: Halves) -> Pair:
    y, p = rows.pair
    family = sm.families.Binomial()
    large = sm.GLM(y, np.ones_like(y), family=family, offset=logit(p)).fit(tol=1e-14)
    line = sm.GLM(y, sm.add_constant(logit(p)), family=family).fit(tol=1e-14)
    ours = [told(rows)[name] for name in ("intercept", "slope")]
    theirs = [[fit.params[-1], *fit.conf_int()[-1]] for fit in (large, line)]
    return [[own.value, own.lower, own.upper] for own in ours], theirs


@row("Calibration intercept and slope", "probcal", within=SOLVED)
def intercept_and_slope_of_probcal(rows: Halves) -> Pair:
    from probcal import metrics

    ours = [told(rows)[name].value for name in ("intercept", "slope")]
    return ours, [metrics.calibration_intercept(*rows.pair), metrics.calibration_slope(*rows.pair)]


@row(
    "Hosmer-Lemeshow, statistic",
    "probcal",
    within=None,
    note="groups are cut at quantiles that probcal interpolates between rows and ours takes from "
    "them, so single rows change groups",
)
def hosmer_lemeshow(rows: Halves) -> Pair:
    from probcal import metrics

    return told(rows)["hosmer_lemeshow"].value, metrics.hosmer_lemeshow(*rows.pair).statistic


@row("Spiegelhalter's z, and its p-value", "probcal", within=SOLVED)
def spiegelhalter(rows: Halves) -> Pair:
    from probcal import metrics

    own, theirs = told(rows)["spiegelhalter"], metrics.spiegelhalter_z(*rows.pair)
    return [own.value, own.pvalue], [theirs.z, theirs.p_value]


@row("Jeffreys and binomial tests of four grades", "probcal", within=SOLVED)
def grades(rows: Halves) -> Pair:
    from probcal import metrics

    y, p = rows.pair
    grade = np.searchsorted(CUTS, p, side="right")
    jeffreys = metrics.jeffreys_grade_test(y, p, grade).p_value
    binomial = metrics.binomial_grade_test(y, p, grade).p_exact
    ours = told(rows).grades
    return [[own.jeffreys for own in ours], [own.binomial for own in ours]], [jeffreys, binomial]


@row(
    "ICI, E50, E90",
    "probcal",
    within=None,
    note="probcal smooths the labels by LOESS, ours by a restricted cubic spline of the logit",
)
def smooth_curve(rows: Halves) -> Pair:
    from probcal import metrics

    ours = [told(rows)[name].value for name in ("ici", "e50", "e90")]
    return ours, [getattr(metrics, name)(*rows.pair) for name in ("ici", "e50", "e90")]


@row("Area under the ROC curve", "scikit-learn")
def auc(rows: Halves) -> Pair:
    return told(rows)["auc"].value, roc_auc_score(*rows.pair)


@row("Brier score and log loss in three parts (CORP)", "probcal", within=SOLVED)
def corp(rows: Halves) -> Pair:
    from probcal import corp_reliability

    curve = corp_reliability(*rows.pair, bands=None)
    names = ("miscalibration", "discrimination", "uncertainty")
    ours = [told(rows)[before + name].value for before in ("", "log_") for name in names]
    parts = ("mcb", "dsc", "unc")
    return ours, [
        getattr(curve, f"{score}_{part}") for score in ("brier", "log_loss") for part in parts
    ]
