"""Recalibration methods: what they make of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from equal.data import Halves
from equal.kit import row
from itrust import recalibrate

Pair = tuple[Any, Any]
SOLVED = 1e-4  # maximum likelihood by two solvers


def ours(method: recalibrate.Recalibrator, rows: Halves) -> np.ndarray:
    return method.fit(rows.few).apply(rows.test).p


@row("Platt, on the logit", "statsmodels", within=SOLVED)
def platt(rows: Halves) -> Pair:
    few, test = (sm.add_constant(logit(part.p)) for part in (rows.few, rows.test))
    fit = sm.GLM(rows.few.y, few, sm.families.Binomial()).fit(tol=1e-12)
    return ours(recalibrate.Platt(), rows), fit.predict(test)


@row("Platt, on the probability with a penalty (`raw=True`)", "scikit-learn", within=SOLVED)
def raw_platt(rows: Halves) -> Pair:
    fit = LogisticRegression(tol=1e-8).fit(rows.few.p[:, None], rows.few.y)
    return ours(recalibrate.Platt(raw=True), rows), fit.predict_proba(rows.test.p[:, None])[:, 1]


@row(
    "Platt",
    "probcal",
    within=None,
    note="probcal shrinks the labels towards 1/2 by Platt's prior counts; ours takes them as they "
    "are",
)
def platt_of_probcal(rows: Halves) -> Pair:
    from probcal import PlattCalibrator

    fit = PlattCalibrator().fit(rows.few.p, rows.few.y)
    return ours(recalibrate.Platt(), rows), fit.predict_proba(rows.test.p)


@row("Temperature", "probcal", within=SOLVED)
def temperature(rows: Halves) -> Pair:
    from probcal import TemperatureCalibrator

    fit = TemperatureCalibrator().fit(rows.few.p, rows.few.y)
    return ours(recalibrate.Temperature(), rows), fit.predict_proba(rows.test.p)


@row("Temperature", "statsmodels", within=SOLVED)
def slope_alone(rows: Halves) -> Pair:
    fit = sm.GLM(rows.few.y, logit(rows.few.p), sm.families.Binomial()).fit(tol=1e-12)
    return ours(recalibrate.Temperature(), rows), expit(fit.params[0] * logit(rows.test.p))


@row("Isotonic", "scikit-learn")
def isotonic(rows: Halves) -> Pair:
    fit = IsotonicRegression(out_of_bounds="clip").fit(rows.few.p, rows.few.y)
    return ours(recalibrate.Isotonic(), rows), fit.predict(rows.test.p)


@row("Isotonic, on the rows it was learned from", "probcal")
def isotonic_of_probcal(rows: Halves) -> Pair:
    """Steps and straight lines between them agree where there were rows."""
    from probcal import IsotonicCalibrator

    fit = IsotonicCalibrator().fit(rows.few.p, rows.few.y)
    method = recalibrate.Isotonic().fit(rows.few)
    return method.predict(rows.few.p), fit.predict_proba(rows.few.p)


@row("Beta", "betacal", within=2e-2, note="betacal stops at scikit-learn's default tolerance")
def beta(rows: Halves) -> Pair:
    from betacal import BetaCalibration

    fit = BetaCalibration("abm").fit(rows.few.p, rows.few.y)
    return ours(recalibrate.Beta(), rows), fit.predict(rows.test.p)


@row("Beta", "probcal", within=1e-8)
def beta_of_probcal(rows: Halves) -> Pair:
    from probcal import BetaCalibrator

    fit = BetaCalibrator().fit(rows.few.p, rows.few.y)
    return ours(recalibrate.Beta(), rows), fit.predict_proba(rows.test.p)


@row("Beta, where both slopes are positive", "statsmodels", within=1e-8)
def beta_of_statsmodels(rows: Halves) -> Pair:
    few, test = (
        np.column_stack([np.log(p), -np.log1p(-p), np.ones_like(p)])
        for p in (rows.few.p, rows.test.p)
    )
    fit = sm.GLM(rows.few.y, few, sm.families.Binomial()).fit(tol=1e-12)
    return ours(recalibrate.Beta(), rows), fit.predict(test)


@row(
    "Histogram binning, 10 bins of equal mass, without shrinkage",
    "probcal",
    within=None,
    note="edges are quantiles that probcal interpolates between rows and ours takes from them, so "
    "single rows change bins; by default probcal shrinks rates, too",
)
def histogram(rows: Halves) -> Pair:
    from probcal import HistogramBinningCalibrator

    fit = HistogramBinningCalibrator(10, "mass", None).fit(rows.few.p, rows.few.y)
    return ours(recalibrate.HistogramBinning(10), rows), fit.predict_proba(rows.test.p)


@row(
    "BBQ",
    "probcal",
    within=None,
    note="the prior of a bin is Beta(1/2, 1/2) with probcal, and with us that of the paper, two "
    "rows over all bins; other numbers of bins by default",
)
def bbq_of_probcal(rows: Halves) -> Pair:
    from probcal import BBQCalibrator

    fit = BBQCalibrator(2, 40).fit(rows.few.p, rows.few.y)
    return ours(recalibrate.BBQ(2, 40), rows), fit.predict_proba(rows.test.p)


@row(
    "BBQ",
    "netcal",
    within=None,
    note="netcal weighs binnings of equal width by BIC (bins of equal mass are not implemented in "
    "1.4.0); ours weighs bins of equal mass by the Bayesian score of the paper",
)
def bbq_of_netcal(rows: Halves) -> Pair:
    from netcal.binning import BBQ

    fit = BBQ()
    fit.fit(rows.few.p, rows.few.y)
    return ours(recalibrate.BBQ(), rows), fit.transform(rows.test.p)
