"""What validators print, as a part of an audit: from rows at hand, or by sums over a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from itrust.auditing.disclosed_charts import about_rows
from itrust.auditing.hiding import Hidden, too_few
from itrust.calibration import (
    DecisionPoint,
    Validation,
    ValidationStatistic,
    ValidationTable,
    validation,
)


def disclosed_validation(
    found: Validation | None, hidden: Hidden, some_bins_hidden: bool = False
) -> Validation | None:
    """Take out grades that rest on few rows, and round what else would tell of such.

    Grades that are the bins of the reliability curve are shown where these are, and are counted
    there; those of a column are hidden one by one. Where some are left out, or some bins,
    Hosmer-Lemeshow less what the others add to it would tell their events, so that it goes, too.
    Rows that two neighbouring thresholds tell apart are enough, or told as none. True and false
    positives are multiples of the fewest rows, for a threshold and a bin may differ by few. The
    largest distance is that of the most extreme predictions, so it has two digits.
    """
    least = hidden.least
    if found is None or least == 1:
        return found
    if found.graded_by is None:
        few = too_few([own.rows for own in found.grades], least)
        grades = () if hidden.bins else found.grades
        shown = tuple(own for k, own in enumerate(grades) if k not in few)
    else:
        shown = tuple(own for own in found.grades if own.name not in hidden.grades)
    statistics = tuple(_about_extremes(own) for own in found.statistics)
    if some_bins_hidden or 0 < len(shown) < len(found.grades):
        statistics = tuple(_without_sum_of_grades(own) for own in statistics)
    return replace(
        found,
        grades=ValidationTable(shown),
        decision=ValidationTable(disclosed_decision(found.decision, found.n, least)),
        certain=_about_count(found.certain, least),
        contrary=_about_count(found.contrary, least),
        statistics=statistics,
    )


def _about_count(rows: int | None, least: int) -> int | None:
    """A number of rows in multiples of the fewest; None where they are fewer, and not 0."""
    if not rows:
        return rows
    return int(about_rows(rows, least)) if rows >= least else None


def _without_sum_of_grades(own: ValidationStatistic) -> ValidationStatistic:
    if own.name != "hosmer_lemeshow":
        return own
    return ValidationStatistic(own.name, reason=validation.Reason.WITHHELD)


def _about_extremes(own: ValidationStatistic) -> ValidationStatistic:
    if own.name != "emax" or own.value is None:
        return own
    return replace(own, value=float(f"{own.value:.2g}"))


def disclosed_decision(
    points: Sequence[DecisionPoint], n: int, least: int
) -> tuple[DecisionPoint, ...]:
    """The decision curve, of sets of rows that differ by enough rows or by none."""
    told: list[DecisionPoint] = []
    for own in points:
        everyone = replace(own, true_positives=own.rate, false_positives=1 - own.rate, rows=n)
        before = replace(told[-1], threshold=own.threshold) if told else everyone
        if before.rows - own.rows < least:
            told.append(before)
        elif own.rows < least:
            told.append(replace(own, true_positives=0.0, false_positives=0.0, rows=0))
        else:
            told.append(own)
    return tuple(_about_decision(own, n, least) for own in told)


def _about_decision(own: DecisionPoint, n: int, least: int) -> DecisionPoint:
    if own.rows in (0, n):
        return own
    unit = least / n
    return replace(
        own,
        true_positives=round(own.true_positives / unit) * unit,
        false_positives=round(own.false_positives / unit) * unit,
        rows=int(about_rows(own.rows, least)),
    )
