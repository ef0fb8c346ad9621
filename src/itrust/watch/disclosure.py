"""A watch as it may be shown: noise of its batches, and nothing of sets of few rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from itrust.data import LABELS, PREDICTIONS, Cell, same_side, short
from itrust.watch.results import BatchRecord, LevelSoFar, NumberSoFar, Onset, Segment, WatchFinding
from itrust.watch.watching import Watch

WITHHELD = "withheld"  # in place of the name of a check
SPREAD = 3.0  # standard errors in half of an interval that holds at all times, about


@dataclass(frozen=True, eq=False)
class ShownWatch:
    """What of a watch is shown; rows are known by the fingerprints of their batches."""

    watch: Watch
    min_cell: int

    def is_few(self, rows: int) -> bool:
        """Whether these are some rows, and too few."""
        return 0 < rows < self.min_cell

    def cell(self, rows: int, batches: Iterable[BatchRecord], *content: object) -> Cell:
        """Rows of some batches."""
        return Cell.of(rows, *(record.digest for record in batches), *content)

    def evidence(self, value: float) -> float:
        """The logarithm of evidence in three digits, on its side of an alarm."""
        return same_side(value, short(value), [-math.log(self.watch.alpha)])

    def batch(self, record: BatchRecord) -> BatchRecord:
        """A batch; a small one without means, evidence and impossible labels."""
        if self.is_few(record.rows):
            none = dict.fromkeys(
                ("mean_label", "mean_prediction", "log_evalue", "log_peak"), math.nan
            )
            return replace(record, **none, impossible=0)  # type: ignore[arg-type]
        cell = self.cell(record.rows, [record])
        impossible = record.impossible and self.cell(record.impossible, [record], "no").count
        return replace(
            record,
            mean_label=cell.rate(record.mean_label),
            mean_prediction=cell.predicted(record.mean_prediction),
            log_evalue=self.evidence(record.log_evalue),
            log_peak=self.evidence(record.log_peak),
            impossible=impossible,
        )

    def number(self, own: NumberSoFar) -> NumberSoFar:
        """A number; without values where few rows carry it."""
        if self.is_few(own.smallest_cell):
            none = math.nan
            return replace(own, with_labels=none, with_probabilities=none, lower=none, upper=none)
        cell = self.cell(own.rows, self.watch.present, own.task)
        one_row = (own.upper - own.lower) / (2 * SPREAD * math.sqrt(max(own.rows, 1)))
        if not math.isfinite(one_row):
            one_row = max(abs(own.with_labels), 1.0) / max(own.rows, 1)
        most = 2 * one_row * cell.reach * max(own.rows, 1)
        labels = own.with_labels + LABELS * most * cell.unit("labels")
        predicted = own.with_probabilities + PREDICTIONS * most * cell.unit("predictions")
        exact, marks = (own.bias, own.lower, own.upper), [own.task.tolerance]
        lower, upper = cell.interval(exact, labels - predicted, slack=most, marks=marks)
        told = replace(own, with_labels=labels, with_probabilities=predicted)
        return replace(told, lower=lower, upper=upper)

    def findings(self, found: Iterable[WatchFinding]) -> tuple[WatchFinding, ...]:
        """The findings that enough rows carry."""
        return tuple(
            replace(
                own,
                rows=self.cell(own.rows, self.watch.running, own.where, own.label).count,
                evalue=short(own.evalue),
            )
            for own in found
            if not self.is_few(own.rows)
        )

    def levels(self, levels: Sequence[LevelSoFar]) -> tuple[LevelSoFar, ...]:
        """The levels that enough rows have."""
        return tuple(self._level(own) for own in levels if not self.is_few(own.rows))

    def _level(self, own: LevelSoFar) -> LevelSoFar:
        cell = self.cell(own.rows, self.watch.running, own.where, own.label)
        excess = own.excess + cell.reach * own.rows * cell.unit("excess")
        return replace(own, excess=excess, chance=short(own.chance), rows=cell.count)

    def onset(self, since: Onset | None, known: set[tuple[str, Any]]) -> Onset | None:
        """Since when; without the name of a check that few rows, or none that are known, carry."""
        if since is None or (since.check, since.label) in known:
            return since
        return replace(since, check=WITHHELD)

    def segments(self) -> tuple[Segment, ...]:
        """The models, alarms without evidence where a small batch raised them."""
        few = {record.number for record in self.watch.history if self.is_few(record.rows)}
        last, named = self.watch.segments[-1].number, self.known
        return tuple(
            replace(
                part,
                alarms=tuple(
                    replace(
                        alarm,
                        log_evalue=math.nan
                        if alarm.batch in few
                        else self.evidence(alarm.log_evalue),
                        since=self.onset(alarm.since, named if part.number == last else set()),
                    )
                    for alarm in part.alarms
                ),
            )
            for part in self.watch.segments
        )

    @property
    def known(self) -> set[tuple[str, Any]]:
        """Names and classes of the checks that may be named."""
        found = self.watch.checks()
        return {(own.name, own.label) for own in found if not self.is_few(own.rows)}
