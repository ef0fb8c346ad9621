"""What validators print, as a part of an audit: from rows at hand, or by sums over a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from itrust._core import FloatArray
from itrust.auditing.disclosed_charts import about_rows
from itrust.auditing.hiding import Hidden, too_few
from itrust.calibration import (
    DecisionPoint,
    Partition,
    TallySums,
    Validation,
    ValidationStatistic,
    ValidationTable,
    edges_of,
    tallied,
    thresholds_of,
    validated,
)
from itrust.data import Chunk, Extract, Sample
from itrust.engines import Outcome, Plan, RowwiseWork


@dataclass(frozen=True, eq=False)
class _Tallying:
    """What some rows contribute."""

    partition: Partition

    def __call__(self, chunk: Chunk, w: FloatArray) -> TallySums:
        return TallySums.of(chunk.y, chunk.p, w, self.partition)


@dataclass(frozen=True, eq=False)
class ValidationPart:
    """What validators print, as a part of a pass over rows that are not all at hand.

    Attributes
    ----------
    extract : Extract
        All rows, and some of them at hand.
    unit : float
        Weights are divided by this.
    """

    extract: Extract
    unit: float

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Nothing is kept for draws."""
        return 0

    @cached_property
    def partition(self) -> Partition:
        """Where predictions are cut: by the rows at hand, as those of the reliability curve."""
        return partition_of(self.extract.some)

    def works(self, block: range) -> list[RowwiseWork]:
        """One piece of work, with the first draws only.

        Parameters
        ----------
        block : range
            Numbers of the draws.

        Returns
        -------
        list of RowwiseWork
            Empty for later batches of draws.
        """
        return [] if block.start else [RowwiseWork(_Tallying(self.partition), self.unit)]

    def reduced(self, outcome: Outcome, block: range) -> TallySums | None:
        """Keep the sums.

        Parameters
        ----------
        outcome : Outcome
            Of the pass.
        block : range
            Numbers of the draws.

        Returns
        -------
        TallySums or None
            None for later batches.
        """
        return None if block.start else outcome.works[0]

    def finished(self, found: Sequence[TallySums | None]) -> TallySums:
        """Take the sums of the first batch.

        Parameters
        ----------
        found : sequence
            From `reduced`.

        Returns
        -------
        TallySums
            Of all rows.
        """
        assert found[0] is not None
        return found[0]

    def validated(self, sums: TallySums, alpha: float, draws: int, seed: int) -> Validation:
        """Make the statistics of the sums.

        Parameters
        ----------
        sums : TallySums
            Of all rows.
        alpha : float
            Error that intervals are allowed.
        draws, seed : int
            Of the audit.

        Returns
        -------
        Validation
            Of all rows.
        """
        weighted = self.extract.some.weights is not None
        found = validated(sums.tallied(self.partition, weighted), 1 - alpha, draws, seed)
        return replace(found, folds=self.extract.some.folds)


def partition_of(some: Sample) -> Partition:
    """Cut predictions into ten groups, and at round thresholds of theirs."""
    return Partition(edges_of(some), thresholds_of(some), np.zeros(0))


def validation_of(sample: Sample, alpha: float, draws: int, seed: int) -> Validation:
    """Make the statistics of rows at hand.

    Parameters
    ----------
    sample : Sample
        All rows.
    alpha : float
        Error that intervals are allowed.
    draws, seed : int
        Of the audit.

    Returns
    -------
    Validation
        By the design, where the rows have one.
    """
    found = validated(tallied(sample, partition_of(sample), None), 1 - alpha, draws, seed)
    return replace(found, folds=sample.folds)


def disclosed_validation(found: Validation | None, hidden: Hidden) -> Validation | None:
    """Take out grades that rest on few rows, and round what else would tell of such.

    Grades are the bins of the reliability curve, are shown where these are, and are counted
    there. Rows that two neighbouring thresholds tell apart are enough, or told as none. True and
    false positives are multiples of the fewest rows, for a threshold and a bin may differ by few.
    The largest distance is that of the most extreme predictions, so it has two digits.

    Parameters
    ----------
    found : Validation or None
        Of all rows.
    hidden : Hidden
        What may not be shown.

    Returns
    -------
    Validation or None
        What may be shown.
    """
    least = hidden.least
    if found is None or least == 1:
        return found
    few = too_few([own.rows for own in found.grades], least)
    grades = () if hidden.bins else found.grades
    certain = found.certain
    if certain:
        certain = int(about_rows(certain, least)) if certain >= least else None
    return replace(
        found,
        grades=ValidationTable(own for k, own in enumerate(grades) if k not in few),
        decision=ValidationTable(disclosed_decision(found.decision, found.n, least)),
        certain=certain,
        statistics=tuple(_about_extremes(own) for own in found.statistics),
    )


def _about_extremes(own: ValidationStatistic) -> ValidationStatistic:
    if own.name != "emax" or own.value is None:
        return own
    return replace(own, value=float(f"{own.value:.2g}"))


def disclosed_decision(
    points: Sequence[DecisionPoint], n: int, least: int
) -> tuple[DecisionPoint, ...]:
    """The decision curve, of sets of rows that differ by enough rows or by none.

    Parameters
    ----------
    points : sequence of DecisionPoint
        By rising thresholds.
    n, least : int
        All rows, and the fewest that may be told apart.

    Returns
    -------
    tuple of DecisionPoint
        As many.
    """
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
