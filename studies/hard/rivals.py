"""What a user would run instead: the statistics of other tests, larger where there is more bias.

None of them knows its own law at these sizes, so the study compares each with itself on labels
that were redrawn from the probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import chi2
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.preprocessing import SplineTransformer

import itrust as it

BINS = 10
STEPS = 50
NEXT_TO_NOTHING = 1e-17  # the penalty of a subset in the scan


def score_test(sample: it.Sample, y: np.ndarray, directions: np.ndarray) -> float:
    """S'J^-1 S along directions that are known, beside the overall level."""
    v = sample.p * (1 - sample.p)
    centred = directions - (v @ directions) / v.sum()
    s = centred.T @ (y - sample.p)
    return float(s @ np.linalg.pinv((centred * v[:, None]).T @ centred, hermitian=True) @ s)


def hosmer_lemeshow(sample: it.Sample, y: np.ndarray) -> float:
    """Minus the log of the smallest p-value over all groups: levels, and fifths of numbers."""
    return max(_one_hosmer_lemeshow(sample.p[rows], y[rows]) for rows in _groups(sample))


def _one_hosmer_lemeshow(p: np.ndarray, y: np.ndarray) -> float:
    order = np.argsort(p, kind="stable")
    bins = [part for part in np.array_split(order, min(BINS, max(p.size // 10, 1))) if part.size]
    value = sum(
        float(y[b].sum() - p[b].sum()) ** 2 / float((p[b] * (1 - p[b])).sum()) for b in bins
    )
    return float(-chi2.logsf(value, len(bins)))


def _groups(sample: it.Sample) -> Iterator[np.ndarray]:
    for column in sample.columns:
        codes = column.values if column.is_category else _ranked(column.values, 5)
        for code in np.unique(codes):
            yield np.flatnonzero(codes == code)


def _ranked(values: np.ndarray, parts: int) -> np.ndarray:
    return (np.argsort(np.argsort(values, kind="stable")) * parts // values.size).astype(int)


def spline_ratio(sample: it.Sample, y: np.ndarray) -> float:
    """Likelihood ratio of y on offset(logit p) with splines of numbers and levels of categories."""
    design = [np.ones((sample.n, 1))]
    for column in sample.columns:
        if column.is_category:
            design.append((column.values[:, None] == np.unique(column.values)[1:]).astype(float))
        else:
            basis = SplineTransformer(n_knots=4, degree=3, knots="quantile", include_bias=False)
            design.append(basis.fit_transform(column.values[:, None]))
    z = np.concatenate(design, axis=1)
    offset, beta = logit(sample.p), np.zeros(z.shape[1])
    start = _log_likelihood(offset, y)
    reached = start
    for _ in range(STEPS):
        q = expit(offset + z @ beta)
        hessian = (z * (q * (1 - q))[:, None]).T @ z + 1e-6 * np.eye(len(beta))
        step = np.linalg.solve(hessian, z.T @ (y - q))
        while _log_likelihood(offset + z @ (beta + step), y) < reached - 1e-9:
            step /= 2
        beta += step
        before, reached = reached, _log_likelihood(offset + z @ beta, y)
        if reached - before < 1e-6:
            break
    return 2 * (reached - start)


def _log_likelihood(score: np.ndarray, y: np.ndarray) -> float:
    return -float(np.logaddexp(0, np.where(y == 1, -score, score)).sum())


def boosted_residuals(sample: it.Sample, y: np.ndarray) -> float:
    """Trees learn residuals on half of the rows; what they foretell of the other half."""
    columns = [np.asarray(c.values, dtype=float) for c in sample.columns]
    table = np.column_stack([*columns, logit(sample.p)])
    kinds = [c.is_category and len(c.levels) < 255 for c in sample.columns]
    learner = HistGradientBoostingRegressor(
        max_iter=60, max_depth=3, learning_rate=0.1, categorical_features=[*kinds, False]
    )
    residuals, half = y - sample.p, np.arange(sample.n) % 2 == 0
    foretold = learner.fit(table[half], residuals[half]).predict(table[~half])
    products = foretold * residuals[~half]
    return float(products.sum() / np.sqrt(np.square(products).sum() + 1e-12))


def bias_scan(sample: it.Sample, y: np.ndarray) -> float:
    """The highest-scoring subset of AIF360's scan, either way; numbers are cut into fifths."""
    from aif360.detectors.mdss.MDSS import MDSS
    from aif360.detectors.mdss.ScoringFunctions import Bernoulli

    table = pd.DataFrame(
        {
            c.name: c.values.astype(int) if c.is_category else _ranked(c.values, 5)
            for c in sample.columns
        }
    )
    outcomes, expected = pd.Series(y.astype(float)), pd.Series(sample.p)
    return max(
        MDSS(Bernoulli(direction=way)).scan(table, expected, outcomes, NEXT_TO_NOTHING, 1)[1]
        for way in ("positive", "negative")
    )
