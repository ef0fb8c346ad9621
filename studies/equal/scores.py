"""Scores and reliability curves."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlearn.metrics import MetricFrame
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss
from statsmodels.stats.proportion import proportion_confint

import itrust as it
from equal.data import SURVEY, Halves
from equal.kit import row
from itrust.calibration import scores
from itrust.kernels import RBF, Constant, LocalKernel

Pair = tuple[Any, Any]
CLIPPED = "scikit-learn clips probabilities of 0 and 1; ours is infinite there"
EDGES = (
    "its bins are closed on the left, ours on the right: the same unless a prediction is an edge"
)


@row("Brier score", "scikit-learn")
def brier(rows: Halves) -> Pair:
    return scores.brier(rows.test), brier_score_loss(*rows.pair)


@row("Brier score, weighted", "scikit-learn", on=(SURVEY,))
def weighted_brier(rows: Halves) -> Pair:
    y, p = rows.pair
    weights = 1 + rows.test.column("age").values
    ours = scores.brier(y, p, sample_weight=weights)
    return ours, brier_score_loss(y, p, sample_weight=weights)


@row("Log loss", "scikit-learn", note=CLIPPED)
def surprise(rows: Halves) -> Pair:
    return scores.log_loss(rows.test), log_loss(*rows.pair)


@row("Log loss", "probcal")
def surprise_of_probcal(rows: Halves) -> Pair:
    from probcal import metrics

    return scores.log_loss(rows.test), metrics.log_loss(*rows.pair)


@row("ECE, 10 bins of equal width", "netcal", note=EDGES)
def ece_of_netcal(rows: Halves) -> Pair:
    from netcal.metrics import ECE

    y, p = rows.pair
    return scores.ece(rows.test, scores.EqualWidth(10)), ECE(10).measure(p, y)


@row("ECE, 10 bins of equal width", "probcal", note=EDGES)
def ece_of_probcal(rows: Halves) -> Pair:
    from probcal import metrics

    theirs = metrics.ece(*rows.pair, n_bins=10, strategy="width")
    return scores.ece(rows.test, scores.EqualWidth(10)), theirs


@row("MCE, 10 bins of equal width", "netcal", note=EDGES)
def mce_of_netcal(rows: Halves) -> Pair:
    from netcal.metrics import MCE

    y, p = rows.pair
    return scores.mce(rows.test, scores.EqualWidth(10)), MCE(10).measure(p, y)


@row(
    "ECE, 10 bins of equal mass",
    "probcal",
    within=None,
    note="edges are quantiles that probcal interpolates between rows and ours takes from them, so "
    "single rows change bins",
)
def mass_of_probcal(rows: Halves) -> Pair:
    from probcal import metrics

    theirs = metrics.ece(*rows.pair, n_bins=10, strategy="mass")
    return scores.ece(rows.test, scores.EqualMass(10)), theirs


@row(
    "ECE, 10 bins of equal mass",
    "uncertainty-calibration",
    within=None,
    note="its bins are equal counts of sorted rows, cut half-way between neighbours",
)
def mass_of_uncertainty_calibration(rows: Halves) -> Pair:
    import calibration

    y, p = rows.pair
    theirs = calibration.get_ece_em(p, y.astype(int), num_bins=10, mode="marginal")
    return scores.ece(rows.test, scores.EqualMass(10)), theirs


@row("Reliability curve, both coordinates", "scikit-learn")
def curve(rows: Halves) -> Pair:
    ours = scores.reliability_curve(rows.test, scores.EqualWidth(10))
    observed, predicted = calibration_curve(*rows.pair, n_bins=10)
    return [ours.observed, ours.predicted], [observed, predicted]


@row("Wilson intervals of the reliability curve", "statsmodels")
def wilson(rows: Halves) -> Pair:
    ours = scores.reliability_curve(rows.test, scores.EqualWidth(10))
    theirs = proportion_confint(ours.observed * ours.rows, ours.rows, method="wilson")
    return [ours.lower, ours.upper], theirs


@row(
    "Smooth ECE",
    "relplot",
    within=2e-2,
    note="relplot stops after ten halvings of the width and sums on a mesh of some hundred points; "
    "ours solves for the width to 1e-10 on 8,192 cells",
)
def smooth(rows: Halves) -> Pair:
    import relplot

    y, p = rows.pair
    return scores.smooth_ece(rows.test), relplot.smECE(p, y)


@row(
    "Smooth ECE",
    "probcal",
    within=None,
    note="probcal smooths over the logit without reflection, the paper and ours over the "
    "probability, reflected at 0 and 1",
)
def smooth_of_probcal(rows: Halves) -> Pair:
    from probcal import metrics

    return scores.smooth_ece(rows.test), metrics.smooth_ece(*rows.pair)


@row(
    "KCE squared, unbiased, Gaussian kernel",
    "probcal",
    note="theirs is divided by 2: it counts both classes of a label, which are the same residual",
)
def kernel_error(rows: Halves) -> Pair:
    from probcal import metrics

    kernel = LocalKernel(RBF(0.1), Constant())
    theirs = metrics.skce(*rows.pair, kernel="gaussian", bandwidth=0.1) / 2
    return it.klce2(rows.test, kernel, engine=it.engines.Tiles()), theirs


@row("Bias of the groups of a category", "fairlearn", on=(SURVEY,))
def by_group(rows: Halves) -> Pair:
    region = rows.test.column("region")
    names = np.array(region.levels)[region.values]
    table = it.bias_groups(rows.test, ["region"], draws=99, rng=0)
    y, p = rows.pair
    frame = MetricFrame(
        metrics=lambda y_true, y_pred: np.mean(y_true - y_pred),
        y_true=y,
        y_pred=p,
        sensitive_features=names,
    )
    ours = [table[f"region = {level}"].bias for level in frame.by_group.index]
    return ours, frame.by_group.to_numpy()


@row(
    "Bias of the groups of a category, and its standard error",
    "model-diagnostics",
    on=(SURVEY,),
    within=2e-3,
    note="its bias has the other sign, which was turned; its variance divides by the rows less "
    "one, ours by the rows",
)
def by_feature(rows: Halves) -> Pair:
    from model_diagnostics.calibration import compute_bias

    region = rows.test.column("region")
    y, p = rows.pair
    told = compute_bias(y, p, np.array(region.levels)[region.values])
    table = it.bias_groups(rows.test, ["region"], draws=99, rng=0)
    ours = [table[f"region = {level}"] for level in told["feature"]]
    values = [[group.bias for group in ours], [group.stderr for group in ours]]
    return values, [-told["bias_mean"].to_numpy(), told["bias_stderr"].to_numpy()]
