"""What validators print, as a part of an audit: from rows at hand, or by sums over a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from itrust._core import FloatArray
from itrust.auditing.disclosed_charts import about_rows
from itrust.auditing.hiding import Hidden, too_few
from itrust.auditing.summing import SummingPart
from itrust.calibration import (
    DecisionPoint,
    GradeColumn,
    GradeSums,
    Partition,
    Reason,
    TallySums,
    Validation,
    ValidationStatistic,
    ValidationTable,
    edges_of,
    tallied,
    thresholds_of,
    validated,
)
from itrust.data import Chunk, Sample
from itrust.engines import Additive


@dataclass(frozen=True, eq=False)
class ValidationSums(Additive):
    """Sums over rows, by prediction and by grade."""

    sums: TallySums
    graded: GradeSums


@dataclass(frozen=True, eq=False)
class _Tallying:
    """What some rows contribute."""

    partition: Partition
    grades: GradeColumn | None

    def __call__(self, chunk: Chunk, w: FloatArray) -> ValidationSums:
        graded = GradeSums()
        if self.grades is not None:
            column = self.grades.of(chunk.y.size, chunk.first, chunk.points)
            graded = GradeSums.of(column, chunk.y, chunk.p, w)
        return ValidationSums(TallySums.of(chunk.y, chunk.p, w, self.partition), graded)


@dataclass(frozen=True, eq=False)
class ValidationPart(SummingPart[ValidationSums]):
    """What validators print, as a part of a pass over rows that are not all at hand."""

    grades: GradeColumn | None = None

    @cached_property
    def partition(self) -> Partition:
        """Where predictions are cut: by the rows at hand, as those of the reliability curve."""
        return partition_of(self.extract.some)

    def summing(self) -> _Tallying:
        """What some rows contribute."""
        return _Tallying(self.partition, self.grades)

    def validated(self, sums: ValidationSums, alpha: float, draws: int, seed: int) -> Validation:
        """Make the statistics of the sums."""
        weighted = self.extract.some.weights is not None
        graded = None if self.grades is None else sums.graded
        found = sums.sums.tallied(self.partition, weighted, graded)
        some = self.extract.some
        return _named(validated(found, 1 - alpha, draws, seed), self.grades, some.folds)


def partition_of(some: Sample) -> Partition:
    """Cut predictions into ten groups, and at round thresholds of theirs."""
    return Partition(edges_of(some), thresholds_of(some), np.zeros(0))


def _named(found: Validation, grades: GradeColumn | None, folds: int) -> Validation:
    return replace(found, graded_by=None if grades is None else grades.name, folds=folds)


def validation_of(
    sample: Sample, alpha: float, draws: int, seed: int, grades: GradeColumn | None = None
) -> Validation:
    """Make the statistics of rows at hand."""
    found = tallied(sample, partition_of(sample), grades)
    return _named(validated(found, 1 - alpha, draws, seed), grades, sample.folds)


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
    return ValidationStatistic(own.name, reason=Reason.WITHHELD)


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
