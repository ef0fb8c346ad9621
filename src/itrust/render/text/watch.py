"""A watch as plain text: alarm or none, since when, findings, numbers so far, the last batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from itrust._core import counted, listed, wrapped
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.layout import TextPart, laid_out, more, spelt
from itrust.render.text.tasks import pvalue_words
from itrust.render.text.watch_parts import (
    batch_line,
    batch_named,
    evidence_text,
    finding_line,
    finding_words,
    number_line,
    number_words,
    segment_words,
    since_words,
)
from itrust.watch import (
    BatchRecord,
    Promise,
    Waiting,
    Watch,
    WatchCondition,
    WatchGate,
    WatchReport,
    watch_report,
)

MAX_FINDINGS, MAX_BATCHES = 5, 8
NO_PROOF = "no alarm is no proof that the model is calibrated"
NOTHING = "nothing has been watched yet"
NUMBERS = (
    "each interval holds at all times together, and under drift: it is about what the true "
    "probabilities of the very rows that were counted give; each number has an error of its own"
)
ACTION = (
    "look at the findings, audit the rows{since}, and recalibrate or replace the model; then begin "
    "a new segment, which keeps this history"
)
TOP_LABEL = (
    "of several classes: how often the label is the class with the largest probability, and the "
    "mean of that probability"
)
TITLES = {
    "findings": "WHAT CARRIES THE EVIDENCE",
    "numbers": "YOUR NUMBERS SO FAR",
    "batches": "LAST BATCHES",
    "promise": "WHAT IS PROMISED",
    "waiting": "ROWS THAT WAIT",
}


def promise_words(report: WatchReport) -> str:
    """Say what is promised of a model that stays calibrated."""
    stays = "stays calibrated given the covariates"
    if report.tolerance:
        stays = f"never has a local bias above {report.tolerance:g}"
    if report.promise is Promise.RUN_LENGTH:
        length = f"{1 / report.alpha:,.4g}"
        return (
            f"as long as the model {stays}, it takes {length} batches or more on average until a "
            "false alarm; after each alarm the watch begins anew"
        )
    return (
        f"if the model {stays}, the probability that this watch ever raises an alarm, however "
        f"often one looks, is at most {report.alpha:g}"
    )


def unchecked_words(report: WatchReport) -> str:
    """Say how many covariates have no check of their own, and which come first."""
    return (
        "covariates without a check of their own, because there are too many or they vary too "
        f"little in the reference: {len(report.unchecked):,} of {len(report.on):,} "
        f"({listed(map(spelt, report.unchecked))})"
    )


def action_words(report: WatchReport) -> str:
    """What to do after an alarm, with the batches to look at.

    They end with the last batch while the evidence stands at the line of the alarm or above, else
    with the alarm: later batches may be those of a calibrated model.
    """
    if report.since is None:
        return ACTION.format(since="")
    since, raised = report.since, report.segments[-1].alarms[-1].batch
    stands = report.log_evalue >= report.log_line
    last = report.history[-1 if stands else raised - 1]
    told = f" of {batch_named(since.batch, since.name)}"
    if last.number != since.batch:
        told += f" to {batch_named(last.number, last.name)}"
    if not stands:
        fallen = f"; the evidence has fallen below {evidence_text(report.log_line)} since then"
        told += f" (which raised the alarm{'' if math.isnan(report.log_evalue) else fallen})"
    return ACTION.format(since=told)


def headline(report: WatchReport) -> str:
    """Whether there is an alarm, in a few words."""
    if report.alarm:
        return "alarm: the model is miscalibrated"
    if not report.present:
        return f"{'started' if len(report.segments) == 1 else 'new model'}: no batch yet"
    return "no alarm"


def watch_sentence(report: WatchReport) -> str:
    """Say how things stand, to be quoted."""
    line, now, peak = (
        evidence_text(own) for own in (report.log_line, report.log_evalue, report.log_peak)
    )
    if not report.present:
        what = f"no batch of this model yet{_before(report)}" if report.batches else NOTHING
        return f"{what}; an alarm is raised when the evidence reaches {line}"
    seen = f"{_seen(report.running)}{_before(report)}"
    if report.impossible:
        times = counted(report.impossible, "label")
        return f"after {seen}: {times} occurred that the model had given probability 0"
    told = f"after {seen} the evidence against calibration is {now}"
    if math.isnan(report.log_evalue):
        told += f", since the last batch has fewer than {report.min_cell} rows"
    elif peak != now:
        told += f" (largest so far: {peak})"
    if report.pvalue is not None:
        told += f", p {pvalue_words(report.pvalue)} at any time"
    if report.alarm:
        when = "" if report.since is None else f"; {since_words(report.since)}"
        return f"{told}; the alarm is raised at {line}{when}"
    return f"{told}; an alarm is raised at {line}; {NO_PROOF}"


def _seen(records: Sequence[BatchRecord]) -> str:
    rows = sum(record.rows for record in records)
    return f"{counted(len(records), 'batch')} with {counted(rows, 'row')}"


def _before(report: WatchReport) -> str:
    """How much is not behind the evidence: earlier models, and what an earlier alarm was about."""
    told, running = [], report.running
    earlier = report.history[: len(report.history) - len(report.present)]
    if len(running) < len(report.present):
        before = report.present[: len(report.present) - len(running)]
        told.append(f"since the alarm at batch {before[-1].number}")
    if earlier:
        told.append(f"earlier models had {_seen(earlier)}")
    return f" ({'; '.join(told)})" if told else ""


def withheld_words(report: WatchReport) -> str:
    """Say how much is not shown, and why."""
    return (
        f"withheld: {report.withheld:,} of the batches, numbers, findings and levels, which would "
        f"tell of fewer than {report.min_cell} rows"
    )


def waiting_words(own: Waiting, report: WatchReport) -> str:
    """What becomes of rows that wait."""
    if own.segment < len(report.segments) - 1:
        return "an earlier model predicted them, so they are not counted"
    return "they enter later, as late outcomes"


def watch_sections(report: WatchReport) -> list[TextPart]:
    """The parts of the text, in order."""
    found = report.findings
    findings = [finding_line(own) for own in found[:MAX_FINDINGS]]
    if report.alarm and not findings and not report.impossible:
        findings = ["no check by itself: many small biases, or a recalibration, carry it together"]
        if report.withheld:
            findings = ["no check of enough rows by itself"]
    parts = {
        "findings": [*findings, *more(len(found) - MAX_FINDINGS)],
        "numbers": [number_line(own) for own in report.numbers],
        "waiting": [
            f"{counted(own.rows, 'row')} of {spelt(own.name)}: not closed before "
            f"{spelt(own.closed_before)}; {waiting_words(own, report)}"
            for own in report.waiting
        ],
        "batches": [batch_line(own, report) for own in report.history[-MAX_BATCHES:]],
        "promise": [
            promise_words(report),
            *([unchecked_words(report)] if report.unchecked else []),
        ],
    }
    if report.numbers:
        parts["numbers"].append(NUMBERS)
    hidden = report.batches - MAX_BATCHES
    if hidden > 0:
        parts["batches"].append(f"and {hidden:,} before these")
    if len(report.segments) > 1:
        parts["batches"] += [segment_words(own) for own in report.segments]
    return [TextPart(key, TITLES[key], lines) for key, lines in parts.items() if lines]


def watch_told(report: WatchReport, width: int = WIDTH) -> str:
    """A watch as text for a terminal."""
    lines = wrapped(watch_headline(report), width, "", "  ")
    lines += wrapped(watch_sentence(report), width, "  ", "  ")
    if report.alarm:
        lines += wrapped(action_words(report), width, "  ", "  ")
    for part in watch_sections(report):
        lines += ["", *laid_out(part, width)]
    if report.withheld:
        lines += ["", *wrapped(withheld_words(report), width, "  ", "  ")]
    return "\n".join(lines)


def watch_headline(report: WatchReport) -> str:
    """The first line of the text."""
    return f"WATCH: {headline(report)}"


def watch_words(report: WatchReport) -> dict[str, Any]:
    """All sentences of a report, for JSON and page."""
    return {
        "headline": headline(report),
        "sentence": watch_sentence(report),
        "action": action_words(report) if report.alarm else None,
        "promise": promise_words(report),
        "unchecked": unchecked_words(report) if report.unchecked else None,
        "since": None if report.since is None else since_words(report.since),
        "withheld": withheld_words(report) if report.withheld else None,
        "findings": [finding_words(own) for own in report.findings],
        "numbers": [number_words(own) for own in report.numbers],
        "segments": [segment_words(own) for own in report.segments],
        "waiting": [waiting_words(own, report) for own in report.waiting],
    }


def watch_gate_words(found: WatchGate) -> str:
    """Say whether the gate of a watch is closed, and by what."""
    failed = [check for check in found.checks if check.outcome == "failed"]
    biased = [str(check.number.task) for check in failed if check.number is not None]
    why = ["the watch has raised an alarm"] if any(own.key == "alarm" for own in failed) else []
    if biased:
        why.append(f"biased so far: {', '.join(map(spelt, biased))}")
    if not why:
        why = ["no number is shown to be biased"] if found.asked == "tasks" else [NO_PROOF]
    return f"gate {'closed' if found.closed else 'open'}: {'; '.join(why)}"


def watch_check_lines(check: WatchCondition, report: WatchReport) -> list[str]:
    """What a check of the gate found."""
    if check.number is not None:
        return [number_line(check.number)]
    return [watch_sentence(report), *(finding_line(own) for own in report.findings)]


@as_text.register
def _(result: WatchReport, width: int = WIDTH) -> str:
    return watch_told(result, width)


@as_text.register
def _(result: Watch, width: int = WIDTH) -> str:
    return watch_told(watch_report(result), width)
