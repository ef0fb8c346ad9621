"""What of a watch may be shown, as values: renderings and files read nothing else.

Fingerprints stay behind: whoever knows most of a small batch could find its labels by trying.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from itrust import __version__
from itrust._core import Provenance, checked_count
from itrust.data import LABELS, PREDICTIONS, Cell, same_side, short
from itrust.tasks import TaskFinding
from itrust.watch.results import (
    BatchRecord,
    NumberSoFar,
    OfBatches,
    Onset,
    Promise,
    Segment,
    WatchFinding,
)

if TYPE_CHECKING:
    from itrust.watch.watching import Watch

REPORT_SCHEMA = "itrust-watch-report/1"


@dataclass(frozen=True)
class Waiting:
    """Rows of a batch whose outcome window had not closed when the others were counted.

    Attributes
    ----------
    name : str
        Of the batch.
    rows : int
        How many.
    closed_before : str
        The date that they had to be before, as it was given.
    segment : int
        Number of the segment whose model predicted them; they enter into no other.
    """

    name: str
    rows: int
    closed_before: str
    segment: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class WatchReport(OfBatches):
    """A watch as it may be shown.

    Attributes
    ----------
    on : tuple of str
        Covariates that it judges on.
    classes : tuple
        Of the present model; empty for two classes.
    alpha : float
        Error that is allowed.
    tolerance : float or None
        Bias that is let pass; None: any bias counts.
    promise : Promise
        What is promised of a model that stays calibrated.
    checks : int
        How many checks are bet on.
    unchecked : tuple of str
        Covariates without a check of their own.
    alarm : bool
        Whether the model has been shown to be miscalibrated.
    log_evalue, log_peak : float
        Logarithms of the evidence now, and of its largest value in this segment; NaN where the last
        batch is a small one.
    pvalue : float or None
        One over the largest evidence, at most 1; None where the promise is a run length, or the
        last batch is a small one.
    since : Onset or None
        Since when, as it was known at the alarm.
    findings : tuple of WatchFinding
        Checks that carry the evidence by themselves.
    levels : tuple of WatchFinding
        The checks of all rows and of levels, for their labels beyond prediction, since bets began;
        without evidence where small groups of rows are not shown.
    numbers : tuple of NumberSoFar
        The user's numbers so far.
    history : tuple of BatchRecord
        Every batch, without fingerprints; means and evidence of small ones are NaN, and labels of
        theirs that the model had given probability 0 are not counted.
    segments : tuple of Segment
        The models, one after the other.
    waiting : tuple of Waiting
        Rows that are to enter later.
    min_cell : int or None
        Fewest rows behind what is shown; None: everything is shown as it is.
    withheld : int
        How many batches, numbers, findings and levels are not shown, because they would tell of
        fewer.
    provenance : Provenance or None
        How it was made.
    """

    _derived = ("batches", "rows", "impossible", "log_line")

    on: tuple[str, ...]
    classes: tuple[Any, ...]
    alpha: float
    tolerance: float | None
    promise: Promise
    checks: int
    unchecked: tuple[str, ...]
    alarm: bool
    log_evalue: float
    log_peak: float
    pvalue: float | None
    since: Onset | None
    findings: tuple[WatchFinding, ...]
    levels: tuple[WatchFinding, ...]
    numbers: tuple[NumberSoFar, ...]
    history: tuple[BatchRecord, ...]
    segments: tuple[Segment, ...]
    waiting: tuple[Waiting, ...] = ()
    min_cell: int | None = None
    withheld: int = 0
    provenance: Provenance | None = None

    @property
    def log_line(self) -> float:
        """Logarithm of the evidence that raises an alarm."""
        return -math.log(self.alpha)

    @property
    def batches(self) -> int:
        """How many batches there have been, of all segments."""
        return len(self.history)

    @property
    def rows(self) -> int:
        """How many rows there have been, of all segments."""
        return sum(record.rows for record in self.history)

    def __repr__(self) -> str:
        told = "alarm" if self.alarm else "no alarm"
        return f"<WatchReport: {told}, batches {self.batches}>"

    def _facts(self) -> Mapping[str, Any]:
        from itrust.render import watch_words

        return {
            "schema": REPORT_SCHEMA,
            "version": __version__,
            **super()._facts(),
            **{name: _number(getattr(self, name)) for name in ("log_evalue", "log_peak")},
            "numbers": [{**own.to_dict(), "finding": number_finding(own)} for own in self.numbers],
            "history": self._rows(),
            "segments": [_without_digest(part) for part in self.segments],
            "words": watch_words(self),
        }

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [_record(record) for record in self.history]


def _number(value: float) -> float | str | None:
    """A logarithm for JSON, which has no word for infinity; None where there is no evidence."""
    return "infinite" if value == math.inf else value if math.isfinite(value) else None


def _record(record: BatchRecord) -> dict[str, Any]:
    logs = {name: _number(getattr(record, name)) for name in ("log_evalue", "log_peak")}
    return {**_without_digest(record), **logs}


def _without_digest(part: BatchRecord | Segment) -> dict[str, Any]:
    return {name: fact for name, fact in part.to_dict().items() if not name.endswith("digest")}


def number_finding(own: NumberSoFar) -> TaskFinding:
    """What interval and tolerance of a number so far come to.

    Parameters
    ----------
    own : NumberSoFar
        A number of the user.

    Returns
    -------
    TaskFinding
        Biased where the interval excludes 0 and, if the number has a tolerance, shows at least
        that; safe where it lies within the tolerance; otherwise undecided.
    """
    size = own.task.tolerance
    if math.isnan(own.lower) or math.isnan(own.upper):
        return TaskFinding.WITHHELD
    if size is not None and max(-own.lower, own.upper) <= size:
        return TaskFinding.SAFE
    least = max(own.lower, -own.upper)
    return TaskFinding.BIASED if least > 0 and least >= (size or 0.0) else TaskFinding.UNDECIDED


def watch_report(
    watch: Watch,
    *,
    min_cell: int | None = None,
    waiting: Sequence[Waiting] = (),
    provenance: Provenance | None = None,
) -> WatchReport:
    """Take of a watch what may be shown.

    With `min_cell`, whatever rests on fewer rows is left out, and all else carries a noise that
    belongs to its batches, as `Audit.disclosed` says. An alarm is told in any case.

    Parameters
    ----------
    watch : Watch
        Not changed.
    min_cell : int or None
        Fewest rows behind what is shown; None: everything is shown as it is.
    waiting : sequence of Waiting
        Rows that are to enter later.
    provenance : Provenance, optional
        How it was made.

    Returns
    -------
    WatchReport
        For text, page and files.
    """
    own = watch.present
    report = WatchReport(
        on=tuple(name for name, *_ in watch.schema.columns),
        classes=watch.schema.classes,
        alpha=watch.alpha,
        tolerance=watch.tolerance,
        promise=watch.promise,
        checks=sum(len(own.panel.checks) for own in watch.wealth),
        unchecked=watch.unchecked,
        alarm=watch.alarm,
        log_evalue=watch.log_evalue,
        log_peak=own[-1].log_peak if own else watch.log_evalue,
        pvalue=watch.pvalue,
        since=watch.since,
        findings=watch.findings(),
        levels=watch.levels(),
        numbers=watch.tasks,
        history=watch.history,
        segments=watch.segments,
        waiting=tuple(waiting),
        provenance=provenance,
    )
    if min_cell is None:
        return report
    return ShownWatch(watch, checked_count(min_cell, "min_cell")).report(report)


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
        present = record.segment == self.watch.segments[-1].number
        record = replace(record, since=self.onset(record.since, present=present))
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
        """The checks that enough rows carry."""
        return tuple(self._finding(own) for own in found if not self.is_few(own.rows))

    def _finding(self, own: WatchFinding) -> WatchFinding:
        cell = self.cell(own.rows, self.watch.running, own.where, own.label)
        excess = own.excess + cell.reach * own.rows * cell.unit("excess")
        chance, evalue = short(own.chance), short(own.evalue)
        return replace(own, rows=cell.count, excess=excess, chance=chance, evalue=evalue)

    def levels(self, found: Iterable[WatchFinding]) -> tuple[WatchFinding, ...]:
        """The levels that enough rows have, without their evidence."""
        return tuple(replace(own, evalue=math.nan, pvalue=None) for own in self.findings(found))

    def onset(self, since: Onset | None, *, present: bool = True) -> Onset | None:
        """Since when; without the name of a check that few rows, or none that are known, carry."""
        if since is None or (present and (since.check, since.label) in self.known):
            return since
        return replace(since, check=WITHHELD)

    @property
    def known(self) -> set[tuple[str, Any]]:
        """Names and classes of the checks that may be named."""
        found = self.watch.checks()
        return {(own.name, own.label) for own in found if not self.is_few(own.rows)}

    def report(self, report: WatchReport) -> WatchReport:
        """A report with the noise of its batches, and without what few rows carry."""
        is_few = bool(self.watch.present) and self.is_few(self.watch.present[-1].rows)
        numbers = tuple(map(self.number, report.numbers))
        findings, levels = self.findings(report.findings), self.levels(report.levels)
        withheld = sum(self.is_few(record.rows) for record in report.history)
        withheld += sum(number_finding(one) is TaskFinding.WITHHELD for one in numbers)
        withheld += len(report.findings) - len(findings) + len(report.levels) - len(levels)
        return replace(
            report,
            log_evalue=math.nan if is_few else self.evidence(report.log_evalue),
            log_peak=math.nan if is_few else self.evidence(report.log_peak),
            pvalue=None if is_few else report.pvalue,
            since=self.onset(report.since),
            findings=findings,
            levels=levels,
            numbers=numbers,
            history=tuple(map(self.batch, report.history)),
            min_cell=self.min_cell,
            withheld=withheld,
        )
