"""From scores to findings: p-values of every check, which checks show the same, and whom about.

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

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.calibration.assumptions import spread_rows
from itrust.calibration.dictionary.entries import Entry, Shape
from itrust.calibration.pipeline import Scores, correlation_of_draws, pvalues_of
from itrust.calibration.results import JOINT_FAMILIES, Finding
from itrust.data import Everywhere, Predicate, Sample, all_of, column_of, cut_of

MAX_COMPARED = 80  # checks, from the top, that are compared with each other
ALIKE = 0.5  # correlation of draws
ALIKE_ON_THE_SAME = 0.1  # of checks on the same covariates
SHOWS = 0.2  # p-value up to which a check counts among those that show the same
NEARLY = 0.5  # of the largest score: a plainer check that reaches it stands for the others
ALONE, CROSSED = 5, 3  # parts of a number that is cut by itself, and together with another
MAX_DESCRIBED = 12  # findings
MIN_ROWS = 20
CLEAR = 1.0  # standard errors
PLAIN = (Shape.LEVEL, Shape.GROUP, Shape.PART, Shape.IMPOSSIBLE, Shape.KERNEL)


def findings_of(
    scores: Scores, pvalues: tuple[FloatArray, FloatArray] | None = None
) -> tuple[Finding, ...]:
    """What every check shows, the largest score first; p-values are those of `pvalues_of`."""
    adjusted, alone = pvalues_of([scores]) if pvalues is None else pvalues
    order = np.argsort(-scores.observed, kind="stable")
    shows = order.size > 0 and float(adjusted.min()) <= SHOWS
    alike = _alike(scores, order[:MAX_COMPARED], adjusted) if shows else {}
    return tuple(
        finding_of(scores, k, float(alone[k]), float(adjusted[k]), alike.get(k, ()))
        for k in order.tolist()
    )


def finding_of(
    scores: Scores, k: int, alone: float, adjusted: float, alike: tuple[str, ...] = ()
) -> Finding:
    """What one check shows."""
    return Finding.of(
        scores.entries[k],
        direction=int(np.sign(scores.standardised[k, 0])) if scores.is_single[k] else 0,
        weight=float(scores.weights[k]),
        score=float(scores.observed[k]),
        unadjusted_pvalue=alone,
        pvalue=adjusted,
        alike=alike,
    )


def impossible_labels(score: float, draws: int) -> Finding:
    """Labels that the model gave probability 0, which refute it whatever else is found."""
    return Finding(
        name="impossible labels",
        family="impossible",
        covariates=(),
        where=Everywhere(),
        shape=Shape.IMPOSSIBLE,
        direction=0,
        weight=0.0,
        score=score,
        unadjusted_pvalue=1 / (1 + draws),
        pvalue=1 / (1 + draws),
    )


def _alike(scores: Scores, order: IntArray, adjusted: FloatArray) -> dict[int, tuple[str, ...]]:
    """For the check that stands for its group, the others whose draws go with the group's.

    Groups form around the checks with the largest scores; of each group the plainest check
    stands for all that is nearly as striking as its first. Checks of everything together form
    groups among themselves, so that they hide nothing plainer; checks without a common covariate
    do not group: whether the one says anything beside the other is judged by `attributed`.
    """
    entries = [scores.entries[k] for k in order]
    correlation = correlation_of_draws(scores, order)
    needed = np.array([[_needed(a, b) for b in entries] for a in entries])
    free = np.ones(order.size, dtype=bool)
    speakers = {}
    for first, lead in enumerate(order):
        if not free[first]:
            continue
        together = free & (correlation[first] >= needed[first])
        together[first] = True
        able = [
            at
            for at in np.flatnonzero(together).tolist()
            if scores.log_tails[order[at], 0] >= NEARLY * scores.log_tails[lead, 0]
            and adjusted[order[at]] <= adjusted[lead]
        ]
        speaker = min(able, key=lambda at: entries[at].rank or np.inf)
        # What has nothing in common with this check stands for itself, later.
        together &= correlation[speaker] >= needed[speaker]
        together[[first, speaker]] = True
        free &= ~together
        others = [
            at
            for at in np.flatnonzero(together).tolist()
            if at != speaker and adjusted[order[at]] <= SHOWS
        ]
        speakers[int(order[speaker])] = tuple(entries[at].name for at in others)
    return speakers


def _needed(a: Entry, b: Entry) -> float:
    """Correlation of draws at which two checks are taken to show the same."""
    if (a.family in JOINT_FAMILIES) != (b.family in JOINT_FAMILIES):
        return np.inf
    first, second = set(a.covariates), set(b.covariates)
    if (first or second) and not first & second:
        return np.inf
    same = bool(first) and first == second
    return ALIKE_ON_THE_SAME if same else ALIKE


def described(findings: Sequence[Finding], sample: Sample | None) -> tuple[Finding, ...]:
    """Name the extremes of findings that do not name their rows by themselves."""
    if sample is None:
        return tuple(findings)
    told = [f.name for f in findings if f.pvalue <= SHOWS and f.shape not in PLAIN]
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
