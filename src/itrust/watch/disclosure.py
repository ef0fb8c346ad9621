"""What of a watch tells of too few rows, and is not shown.

A part is withheld where it would tell of fewer than `min_cell` rows, by itself or as the difference
of two others that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from itrust.watch.results import BatchRecord, LevelSoFar, NumberSoFar, Onset, Segment, WatchFinding

if TYPE_CHECKING:
    from itrust.watch.watching import Watch

WITHHELD = "withheld"  # in place of the name of a check


@dataclass(frozen=True)
class FewRows:
    """A rule for what of a watch may be shown."""

    min_cell: int

    def is_few(self, rows: int) -> bool:
        """Whether these are some rows, and too few."""
        return 0 < rows < self.min_cell

    def batch(self, record: BatchRecord) -> BatchRecord:
        """A batch; a small one without means, evidence and impossible labels."""
        if not self.is_few(record.rows):
            return record
        none = math.nan
        return replace(
            record,
            mean_label=none,
            mean_prediction=none,
            log_evalue=none,
            log_peak=none,
            impossible=0,
        )

    def hidden_rows(self, history: Iterable[BatchRecord]) -> int:
        """Rows of all small batches together: what others leave when they are subtracted."""
        return sum(record.rows for record in history if self.is_few(record.rows))

    def number(self, own: NumberSoFar, hidden: int) -> NumberSoFar:
        """A number; without values where it would tell of few rows."""
        sums = any(not leaf.among_positives for leaf in own.task.leaves())
        if not self.is_few(own.smallest_cell) and not (sums and self.is_few(hidden)):
            return own
        none = math.nan
        return replace(own, with_labels=none, with_probabilities=none, lower=none, upper=none)

    def findings(self, found: Iterable[WatchFinding]) -> tuple[WatchFinding, ...]:
        """The findings that enough rows carry."""
        return tuple(own for own in found if not self.is_few(own.rows))

    def levels(self, levels: Sequence[LevelSoFar], hidden: int) -> tuple[LevelSoFar, ...]:
        """The levels that can be shown beside each other."""
        if not levels or self.is_few(levels[0].rows) or self.is_few(hidden):
            return ()
        total, cells = levels[0].rows, dict[tuple[Any, frozenset[str]], list[int]]()
        for own in levels:
            cells.setdefault((own.label, own.where.names), []).append(own.rows)
        told = set()
        for key, rows in cells.items():
            rest = total - sum(rows)
            if not self.is_few(sum(cell for cell in (*rows, rest) if self.is_few(cell))):
                told.add(key)
        return tuple(
            own
            for own in levels
            if (own.label, own.where.names) in told and not self.is_few(own.rows)
        )

    def onset(self, since: Onset | None, known: set[tuple[str, Any]]) -> Onset | None:
        """Since when; without the name of a check that few rows, or none that are known, carry."""
        if since is None or self.min_cell == 1 or (since.check, since.label) in known:
            return since
        return replace(since, check=WITHHELD)

    def segments(self, watch: Watch) -> tuple[Segment, ...]:
        """The models, alarms without evidence where a small batch raised them."""
        few = {record.number for record in watch.history if self.is_few(record.rows)}
        last, named = watch.segments[-1].number, self.known(watch)
        return tuple(
            replace(
                part,
                alarms=tuple(
                    replace(
                        alarm,
                        log_evalue=math.nan if alarm.batch in few else alarm.log_evalue,
                        since=self.onset(alarm.since, named if part.number == last else set()),
                    )
                    for alarm in part.alarms
                ),
            )
            for part in watch.segments
        )

    def known(self, watch: Watch) -> set[tuple[str, Any]]:
        """Names and classes of the checks that may be named."""
        return {(own.name, own.label) for own in self.findings(watch.checks())}
