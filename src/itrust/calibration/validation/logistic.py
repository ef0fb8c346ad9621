"""Logistic regression on sums over cells, for one set of labels or for many at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itrust._core import BoolArray, FloatArray

STEPS = 40
HALVINGS = 12
CLOSE = 1e-11  # a step of this size in every fitted logit ends the search
FARTHEST = 1e4  # beyond the logit of every double; separated labels go there


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of several fits."""

    coefficients: FloatArray
    converged: BoolArray


def fitted(
    features: FloatArray,
    start: FloatArray,
    offset: FloatArray,
    weights: FloatArray,
    ones: FloatArray,
) -> LogisticFit:
    """Maximise the likelihood of logistic regressions, by Newton's steps, halved if need be."""
    b, k = len(ones), features.shape[1]
    found = np.tile(np.asarray(start, dtype=float), (b, 1))
    products = (features[:, :, None] * features[:, None, :]).reshape(len(features), k * k)
    converged = np.zeros(b, dtype=bool)
    at = _logits(found, features, offset)
    value = _likelihood(at, weights, ones)
    farthest = max(10.0, float(np.abs(at).max(initial=0.0)) / 4)  # of one step, in logits
    for _ in range(STEPS):
        mean = expit(at)
        gradient = (ones - weights * mean) @ features
        curvature = ((weights * mean * (1 - mean)) @ products).reshape(b, k, k)
        step = _solved(curvature, gradient)
        step[converged] = 0.0
        reach = np.abs(step @ features.T).max(axis=1, initial=0.0)
        step *= np.minimum(1.0, farthest / np.maximum(reach, 1e-300))[:, None]
        for halved in range(HALVINGS + 1):
            moved = _logits(found + step, features, offset)
            new = _likelihood(moved, weights, ones)
            worse = new < value - 1e-12 * np.abs(value) - 1e-300
            if not worse.any():
                break
            step[worse] *= 0.5 if halved < HALVINGS - 1 else 0.0  # at last it stays where it is
        found, at, value = found + step, moved, new
        converged |= reach < CLOSE
        if converged.all():
            break
    return LogisticFit(found, converged)


def _logits(coefficients: FloatArray, features: FloatArray, offset: FloatArray) -> FloatArray:
    return np.clip(coefficients @ features.T + offset, -FARTHEST, FARTHEST)


def _likelihood(at: FloatArray, weights: FloatArray, ones: FloatArray) -> FloatArray:
    return np.asarray((ones * at).sum(axis=1) - np.logaddexp(0.0, at) @ weights)


def _solved(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
    """Newton's steps, with next to no ridge, so that what is flat stays where it is."""
    k = gradient.shape[1]
    scale = np.sqrt(np.maximum(np.einsum("bii->bi", curvature), 1e-300))
    scaled = curvature / scale[:, :, None] / scale[:, None, :]
    scaled = scaled + 1e-14 * np.eye(k)
    try:
        step = np.linalg.solve(scaled, (gradient / scale)[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        step = (np.linalg.pinv(scaled) @ (gradient / scale)[:, :, None])[:, :, 0]
    step = step / scale
    return np.where(np.isfinite(step), step, 0.0)


def information(features: FloatArray, weights: FloatArray, mean: FloatArray) -> FloatArray:
    """Fisher's information of one fit."""
    return np.asarray(features.T @ ((weights * mean * (1 - mean))[:, None] * features))
