"""Whom a finding is about: the rows where the model is most too low, and most too high.

A check of a smooth function, of two covariates or of everything says that the bias varies, and not
where. The rows are cut into coarse parts along what the check reads; the two parts that stand out
most are named, from 20,000 rows at most. They describe these rows, and carry no p-value of their
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from itrust._core import BoolArray
from itrust.calibration.assumptions import spread_rows
from itrust.calibration.dictionary.entries import Shape
from itrust.calibration.results import Finding
from itrust.data import Predicate, Sample, all_of, column_of, cut_of

ALONE, CROSSED = 5, 3  # parts of a number that is cut by itself, and together with another
MAX_DESCRIBED = 12  # findings
MAX_PVALUE = 0.2
MIN_ROWS = 20
CLEAR = 1.0  # standard errors
PLAIN = (Shape.LEVEL, Shape.GROUP, Shape.PART, Shape.IMPOSSIBLE, Shape.KERNEL)


def described(findings: Sequence[Finding], sample: Sample | None) -> tuple[Finding, ...]:
    """Name the extremes of findings that do not name their rows by themselves."""
    if sample is None:
        return tuple(findings)
    told = [f.name for f in findings if f.pvalue <= MAX_PVALUE and f.shape not in PLAIN]
    chosen = {*told[:MAX_DESCRIBED]}
    if not chosen:
        return tuple(findings)
    weighted = np.flatnonzero(sample.weights_or_ones > 0)
    some = sample.take(weighted[spread_rows(weighted.size)])
    return tuple(_described(f, some) if f.name in chosen else f for f in findings)


def _described(finding: Finding, sample: Sample) -> Finding:
    inside = finding.where.rows(sample.points)
    z = {part: _z(sample, inside & part.rows(sample.points)) for part in _parts(finding, sample)}
    high, low = max(z, key=lambda k: z[k], default=None), min(z, key=lambda k: z[k], default=None)
    return replace(
        finding,
        too_low=high if high is not None and z[high] > CLEAR else None,
        too_high=low if low is not None and z[low] < -CLEAR else None,
    )


def _parts(finding: Finding, sample: Sample) -> list[Predicate]:
    """Coarse parts along what the check reads: of one column, of two crossed, or of any column."""
    names = finding.covariates or ("prediction",)
    if finding.shape in (Shape.FULL, Shape.JOINT):
        return [part for name in names for part in cut_of(column_of(sample.points, name), ALONE)]
    if finding.shape in (Shape.PAIR, Shape.PRODUCT):
        both = names if len(names) > 1 else (*names, "prediction")
        cuts = [cut_of(column_of(sample.points, name), CROSSED) for name in both[:2]]
        return [all_of(cell) for cell in product(*cuts)]
    return list(cut_of(column_of(sample.points, names[-1]), ALONE))


def _z(sample: Sample, rows: BoolArray) -> float:
    """The sum of residuals in units of its standard deviation; 0 where there are few rows."""
    if np.count_nonzero(rows) < MIN_ROWS:
        return 0.0
    w, p = sample.weights_or_ones[rows], sample.p[rows]
    variance = float(np.sum(w**2 * p * (1 - p)))
    return float(w @ sample.residuals[rows]) / variance**0.5 if variance > 0 else 0.0
