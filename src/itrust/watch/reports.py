"""What of a watch may be shown, as values: renderings and files read nothing else.

Fingerprints stay behind: whoever knows most of a small batch could find its labels by trying.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from itrust import __version__
from itrust._core import Result, checked_count
from itrust.tasks import TaskFinding
from itrust.watch.disclosure import ShownWatch
from itrust.watch.results import (
    BatchRecord,
    LevelSoFar,
    NumberSoFar,
    Onset,
    Promise,
    Segment,
    WatchFinding,
    levels_so_far,
    running_batches,
)

if TYPE_CHECKING:
    from itrust.watch.watching import Watch

REPORT_SCHEMA = "itrust-watch-report/1"


@dataclass(frozen=True)
class WatchProvenance:
    """How a report was made.

    Attributes
    ----------
    command : str
        The command line.
    state : str or None
        Name of the file that keeps the watch.
    file : str or None
        Name of the file with the last batch.
    sha256 : str or None
        Its checksum.
    title, model, date : str or None
        What is to stand on the page.
    """

    command: str
    state: str | None = None
    file: str | None = None
    sha256: str | None = None
    title: str | None = None
    model: str | None = None
    date: str | None = None


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
class WatchReport(Result):
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
    levels : tuple of LevelSoFar
        Labels beyond what the model predicted, by level, since bets began.
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
    provenance : WatchProvenance or None
        How it was made.
    """

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
    levels: tuple[LevelSoFar, ...]
    numbers: tuple[NumberSoFar, ...]
    history: tuple[BatchRecord, ...]
    segments: tuple[Segment, ...]
    waiting: tuple[Waiting, ...] = ()
    min_cell: int | None = None
    withheld: int = 0
    provenance: WatchProvenance | None = None

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

    @property
    def present(self) -> tuple[BatchRecord, ...]:
        """The batches of the present segment."""
        last = len(self.segments) - 1
        return tuple(record for record in self.history if record.segment == last)

    @property
    def running(self) -> tuple[BatchRecord, ...]:
        """The batches that the evidence is about: those since bets began."""
        return tuple(running_batches(self.present, self.promise))

    @property
    def impossible(self) -> int:
        """Labels that the model had given probability 0, since bets began."""
        return sum(record.impossible for record in self.running)

    def __repr__(self) -> str:
        told = "alarm" if self.alarm else "no alarm"
        return f"<WatchReport: {told}, batches {self.batches}>"

    def _facts(self) -> Mapping[str, Any]:
        from itrust.render import watch_words

        computed = ("batches", "rows", "impossible", "log_line")
        return {
            "schema": REPORT_SCHEMA,
            "version": __version__,
            **super()._facts(),
            **{name: getattr(self, name) for name in computed},
            **{name: _number(getattr(self, name)) for name in ("log_evalue", "log_peak")},
            "numbers": [{**own.to_dict(), "finding": number_finding(own)} for own in self.numbers],
            "history": self._rows(),
            "segments": [_segment(part) for part in self.segments],
            "words": watch_words(self),
        }

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [_record(record) for record in self.history]


def _number(value: float) -> float | str | None:
    """A logarithm for JSON, which has no word for infinity; None where there is no evidence."""
    return "infinite" if value == math.inf else value if math.isfinite(value) else None


def _record(record: BatchRecord) -> dict[str, Any]:
    facts = record.to_dict()
    facts.pop("digest", None)
    return {**facts, "log_evalue": _number(record.log_evalue), "log_peak": _number(record.log_peak)}


def _segment(part: Segment) -> dict[str, Any]:
    facts = part.to_dict()
    facts.pop("reference_digest", None)
    alarms = [{**own.to_dict(), "log_evalue": _number(own.log_evalue)} for own in part.alarms]
    return {**facts, "alarms": alarms}


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
    provenance: WatchProvenance | None = None,
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
    provenance : WatchProvenance, optional
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
        promise=Promise(watch.promise),
        checks=sum(len(own.panel.checks) for own in watch.wealth),
        unchecked=watch.unchecked,
        alarm=watch.alarm,
        log_evalue=watch.log_evalue,
        log_peak=own[-1].log_peak if own else watch.log_evalue,
        pvalue=watch.pvalue,
        since=watch.since,
        findings=watch.findings(),
        levels=levels_so_far(watch),
        numbers=watch.tasks,
        history=watch.history,
        segments=watch.segments,
        waiting=tuple(waiting),
        provenance=provenance,
    )
    if min_cell is None:
        return report
    return _disclosed(report, ShownWatch(watch, checked_count(min_cell, "min_cell")))


def _disclosed(report: WatchReport, rule: ShownWatch) -> WatchReport:
    """A report with the noise of its batches, and without what few rows carry."""
    is_few = bool(rule.watch.present) and rule.is_few(rule.watch.present[-1].rows)
    numbers = tuple(map(rule.number, report.numbers))
    findings, levels = rule.findings(report.findings), rule.levels(report.levels)
    withheld = sum(rule.is_few(record.rows) for record in report.history)
    withheld += sum(number_finding(one) is TaskFinding.WITHHELD for one in numbers)
    withheld += len(report.findings) - len(findings) + len(report.levels) - len(levels)
    return replace(
        report,
        log_evalue=math.nan if is_few else rule.evidence(report.log_evalue),
        log_peak=math.nan if is_few else rule.evidence(report.log_peak),
        pvalue=None if is_few else report.pvalue,
        since=rule.onset(report.since, rule.known),
        findings=findings,
        levels=levels,
        numbers=numbers,
        history=tuple(map(rule.batch, report.history)),
        segments=rule.segments(),
        min_cell=rule.min_cell,
        withheld=withheld,
    )
