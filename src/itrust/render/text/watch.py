"""A watch in words: alarm or none, since when, findings, numbers so far, the last batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from itrust._core import counted, listed, rounded
from itrust.auditing import Check
from itrust.calibration import Shape
from itrust.render.document import (
    Document,
    Notes,
    Section,
    Sentence,
    document_of,
    in_one_line,
    more,
    spelt,
)
from itrust.render.text.calibration import shape_words
from itrust.render.text.tasks import pvalue_words
from itrust.tasks import TaskFinding
from itrust.watch import (
    BatchRecord,
    NumberSoFar,
    Onset,
    Segment,
    Waiting,
    Watch,
    WatchFinding,
    WatchReport,
    number_finding,
    watch_report,
)

MAX_PLACES = 12  # behind the point
LARGEST_EXPONENT = 7  # digits of an evidence that are written out
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
TITLES = {
    "findings": "WHAT CARRIES THE EVIDENCE",
    "numbers": "YOUR NUMBERS SO FAR",
    "batches": "LAST BATCHES",
    "promise": "WHAT IS PROMISED",
    "waiting": "ROWS THAT WAIT",
}


def evidence_text(log_evalue: float) -> str:
    """Evidence for people, from its logarithm.

    Examples
    --------
    >>> evidence_text(0.0), evidence_text(math.log(34.56)), evidence_text(100.0)
    ('1', '34.6', '2.7e+43')
    >>> evidence_text(math.inf), evidence_text(math.log(0.0001))
    ('infinite', 'below 0.01')
    """
    if math.isnan(log_evalue):
        return "withheld"
    if log_evalue == math.inf:
        return "infinite"
    if log_evalue < math.log(0.01):
        return "below 0.01"
    digits = log_evalue / math.log(10)
    if digits < LARGEST_EXPONENT:
        value = math.exp(log_evalue)
        return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
    exponent = math.floor(digits)
    return f"{10 ** (digits - exponent):.1f}e+{exponent}"


def since_words(since: Onset) -> str:
    """Since when, in words."""
    told = f"since {batch_named(since.batch, since.name)}"
    if since.lower == since.upper:
        return told
    return f"{told} (between batch {since.lower} and batch {since.upper})"


def batch_named(number: int, name: str | None) -> str:
    """A batch by its number, and its name where it has one."""
    return f"batch {number}" + ("" if name is None else f" {spelt(name)!r}")


def finding_words(found: WatchFinding) -> str:
    """What a check found, in words."""
    label = "" if found.label is None else f"{spelt(str(found.label))}: "
    return label + _found(found)


def _found(found: WatchFinding) -> str:
    up, names = found.direction > 0, [spelt(name) for name in found.covariates]
    if found.shape in (Shape.GROUP, Shape.PART):
        return f"the predictions are too {'low' if up else 'high'} where {spelt(str(found.where))}"
    what = names[-1] if names else "the prediction"
    told = shape_words(found.shape, up, what, bool(names))
    if found.shape is Shape.PRODUCT and len(names) > 1:
        told = f"the bias along {names[0]} differs with {names[1]} ({spelt(found.name)})"
    all_names = " and ".join(names) or "the prediction"
    return told or f"the bias varies with {all_names} ({spelt(found.name)})"


def finding_line(found: WatchFinding) -> str:
    """A finding with its evidence and adjusted p-value."""
    own = math.log(found.evalue) if found.evalue > 0 else -math.inf
    pvalue = "" if found.pvalue is None else f", adjusted p {pvalue_words(found.pvalue)}"
    return f"{finding_words(found)} (evidence {evidence_text(own)} by itself{pvalue})"


def number_values(own: NumberSoFar) -> tuple[str, str, str, str]:
    """With labels, with probabilities, bias and its interval, for people."""
    ends = own.lower, own.upper
    size = own.task.tolerance
    known = all(math.isfinite(end) for end in ends)
    told = [
        "-" if math.isnan(value) else rounded(value, *ends)
        for value in (own.with_labels, own.with_probabilities)
    ]
    bias = "-" if math.isnan(own.bias) else rounded(own.bias, *ends, "+")
    interval = " to ".join(ends_text(*ends, size)) if known else "nothing yet"
    if math.isnan(own.lower) and own.rows:
        interval = "withheld"
    return told[0], told[1], bias, interval


def ends_text(lower: float, upper: float, tolerance: float | None) -> tuple[str, str]:
    """Both ends of an interval of a bias, which stand to its tolerance as the numbers do.

    Examples
    --------
    >>> ends_text(0.0481, 0.18, None), ends_text(0.0481, 0.18, 0.05)
    (('+0.05', '+0.18'), ('+0.048', '+0.180'))
    """
    ends = lower, upper
    told = [rounded(end, *ends, "+") for end in ends]
    places = max(len(text.partition(".")[2]) for text in told)
    while tolerance is not None and places < MAX_PLACES:
        written = [float(text.replace(",", "")) for text in told]
        if [_side(end, tolerance) for end in ends] == [_side(end, tolerance) for end in written]:
            break
        places += 1
        told = [f"{end:+,.{places}f}" for end in ends]
    return told[0], told[1]


def _side(bias: float, tolerance: float) -> int:
    """Whether a bias lies within, at or beyond a tolerance."""
    return (abs(bias) > tolerance) - (abs(bias) < tolerance)


def number_words(own: NumberSoFar) -> str:
    """Whether a number may be relied on so far."""
    found = number_finding(own)
    if not own.rows:
        return "no rows yet"
    if found is TaskFinding.BIASED:
        way = "understates" if own.bias > 0 else "overstates"
        return f"biased: the model {way} it"
    size = own.task.tolerance
    if found is TaskFinding.UNDECIDED and (own.lower > 0 or own.upper < 0):
        return f"undecided: a bias is shown, but not that it reaches {size:g}"
    if found is TaskFinding.UNDECIDED:
        told = "no bias is shown"
        return told if size is None else f"undecided: {told}, nor that it stays within {size:g}"
    return str(found)


def number_line(own: NumberSoFar) -> str:
    """A number so far as a line."""
    if not own.rows:
        return f"{spelt(str(own.task))}: no rows yet"
    if number_finding(own) is TaskFinding.WITHHELD:
        return f"{spelt(str(own.task))}: withheld"
    labels, predicted, bias, interval = number_values(own)
    values = f"{labels} with labels, {predicted} with probabilities"
    return f"{spelt(str(own.task))}: {number_words(own)} ({values}: bias {bias}, {interval})"


def batch_line(record: BatchRecord, report: WatchReport | None = None) -> str:
    """A batch as a line."""
    named = "" if record.name is None else f" {spelt(record.name)}"
    late = ", late" if record.late else ""
    rows = counted(record.rows, "row")
    if math.isnan(record.log_evalue):
        return f"batch {record.number}{named}{late}: {rows}, too few to be shown"
    several = (  # of the present model; those before may have had two
        report is not None and bool(report.classes) and record.segment == report.segments[-1].number
    )
    what = ("top label right", "mean top probability") if several else ("observed", "predicted")
    means = f"{what[0]} {record.mean_label:.3f}, {what[1]} {record.mean_prediction:.3f}"
    raised = ", ALARM" if record.raised else ""
    evidence = evidence_text(record.log_evalue)
    return f"batch {record.number}{named}{late}: {rows}, {means}, evidence {evidence}{raised}"


def segment_words(part: Segment, history: Sequence[BatchRecord] = ()) -> str:
    """The time of one model in words."""
    named = "" if part.name is None else f" {spelt(part.name)!r}"
    alarms = [str(own.number) for own in history if own.segment == part.number and own.raised]
    raised = f", alarm at batch {', '.join(alarms)}" if alarms else ", no alarm"
    return (
        f"model{named}: {counted(part.batches, 'batch')} from batch {part.first}{raised}, "
        f"reference of {part.reference_rows:,} rows"
    )


def promise_words(report: WatchReport) -> str:
    """Say what is promised of a model that stays calibrated."""
    stays = "stays calibrated given the covariates"
    if report.tolerance:
        stays = f"never has a local bias above {report.tolerance:g}"
    if report.promise == "run length":
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
    since, raised = report.since, [own.number for own in report.present if own.raised][-1]
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
        f"withheld: {report.withheld:,} of the batches, numbers, findings and levels, which "
        f"rest on fewer than {report.min_cell} rows"
    )


def waiting_words(own: Waiting, report: WatchReport) -> str:
    """What becomes of rows that wait."""
    if own.segment < len(report.segments) - 1:
        return "an earlier model predicted them, so they are not counted"
    return "they enter later, as late outcomes"


@document_of.register
def _(report: WatchReport) -> Document:
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
        parts["batches"] += [segment_words(own, report.history) for own in report.segments]
    return Document(
        watch_headline(report),
        [
            Sentence(watch_sentence(report)),
            *([Sentence(action_words(report))] if report.alarm else []),
            *(Section(key, TITLES[key], [Notes(lines)]) for key, lines in parts.items() if lines),
            *([Notes([withheld_words(report)])] if report.withheld else []),
        ],
    )


document_of.register(Watch, lambda watch: document_of(watch_report(watch)))


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
        "values": [number_values(own) for own in report.numbers],
        "segments": [segment_words(own, report.history) for own in report.segments],
        "waiting": [waiting_words(own, report) for own in report.waiting],
    }


def watch_gate_words(checks: Sequence[Check]) -> str:
    """Say whether the gate of a watch is closed, and by what."""
    failed = [check for check in checks if check.outcome == "failed"]
    biased = [str(check.value.task) for check in failed if check.key == "task"]
    why = ["the watch has raised an alarm"] if any(own.key == "alarm" for own in failed) else []
    if biased:
        why.append(f"biased so far: {', '.join(map(spelt, biased))}")
    if not why:
        why = [NO_PROOF if checks[0].is_asked else "no number is shown to be biased"]
    return f"gate {'closed' if failed else 'open'}: {'; '.join(why)}"


def watch_check_lines(check: Check, report: WatchReport) -> list[str]:
    """What a check of the gate found."""
    if check.key == "task":
        return [number_line(check.value)]
    return [watch_sentence(report), *(finding_line(own) for own in report.findings)]


@document_of.register
def _(result: Onset) -> Document:
    label = "" if result.label is None else f" of {spelt(str(result.label))}"
    return Document(f"{since_words(result)}, by the check {spelt(result.check)!r}{label}")


in_one_line(WatchFinding, finding_line)
in_one_line(NumberSoFar, number_line)
in_one_line(BatchRecord, batch_line)
in_one_line(Segment, segment_words)
