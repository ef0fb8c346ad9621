"""Tests by grade: binomial and Jeffreys, one-sided and two-sided, adjusted for all grades."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betainc, betaincc

from itrust._core import FloatArray
from itrust.calibration.multiplicity import step_down
from itrust.calibration.validation.results import Grade, Reason
from itrust.calibration.validation.sums import Sums
from itrust.calibration.validation.tally import Tallied


def graded(tallied: Tallied, draws: int, random: np.random.Generator) -> tuple[Grade, ...]:
    """Test every grade by itself, and adjust for all of them.

    Events of a grade are redrawn from the binomial law at its mean prediction, which spreads as
    wide as that of different predictions, or wider.
    """
    sums = tallied.grades
    rows, events = sums.rows, sums.ones
    plain: list[dict[str, Any]] = [
        {
            "name": name,
            "rows": int(rows[k]),
            "events": int(events[k]),
            "predicted": float(sums.predicted[k]),
            "observed": float(sums.observed[k]),
        }
        for k, name in enumerate(tallied.names)
    ]
    if tallied.is_clustered:
        return tuple(Grade(**own, reason=Reason.CLUSTERED_GRADES) for own in plain)
    adjusted, both = _adjusted(sums, draws, random)
    reason = Reason.WEIGHTED_GRADES if tallied.cells.are_weighted else None
    found = []
    for k, own in enumerate(plain):
        tests: dict[str, Any] = (
            {} if reason is not None else grade_tests(rows[k], events[k], sums.predicted[k])
        )
        beside: dict[str, Any] = {
            "adjusted": float(adjusted[k]),
            "adjusted_two_sided": float(both[k]),
        }
        why = reason
        if not 0 < sums.predicted[k] < 1:  # the beta law calls such a prediction impossible
            tests = {name: own_p for name, own_p in tests.items() if "jeffreys" not in name}
            why = reason or Reason.NO_VARIANCE
        found.append(Grade(**own, **tests, **beside, reason=why))
    return tuple(found)


def grade_tests(rows: float, events: float, predicted: float) -> dict[str, float]:
    """P-values of one grade.

    Examples
    --------
    >>> found = grade_tests(100, 5, 0.02)
    >>> round(found["binomial"], 4), round(found["jeffreys"], 4)
    (0.0508, 0.0286)
    """
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
    rows, events, p = np.broadcast_arrays(
        *(np.asarray(own, dtype=float) for own in (rows, events, p))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        many = np.where(events <= 0, 1.0, betainc(np.maximum(events, 1e-300), rows - events + 1, p))
        few = np.where(
            events >= rows,
            1.0,
            betainc(np.maximum(rows - events, 1e-300), events + 1, 1 - p),
        )
        return -np.log(many), -np.log(few)


def _adjusted(sums: Sums, draws: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Step-down p-values: one-sided and two-sided."""
    worth = np.maximum(np.round(sums.effective), 1.0)
    p = np.clip(sums.predicted, 0.0, 1.0)
    drawn = random.binomial(worth.astype(np.int64), p, size=(draws, p.size))
    events = np.column_stack([worth * sums.observed, drawn.T])
    many, few = _tails(worth[:, None], events, p[:, None])
    return step_down(_finite(many)), step_down(_finite(np.maximum(many, few)))


def _finite(scores: FloatArray) -> FloatArray:
    """What cannot happen counts as a score beyond all others."""
    return np.where(np.isfinite(scores), scores, 1e6)
