"""Parts of a watch as plain text: evidence, findings, numbers, batches, models."""

from __future__ import annotations

import math

from itrust._core import counted, rounded
from itrust.calibration import Shape
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.layout import spelt
from itrust.render.text.tasks import pvalue_words
from itrust.tasks import TaskFinding
from itrust.watch import (
    BatchRecord,
    LevelSoFar,
    NumberSoFar,
    Onset,
    RaisedAlarm,
    Segment,
    WatchFinding,
    WatchReport,
    number_finding,
)

MAX_PLACES = 12  # behind the point
LARGEST_EXPONENT = 7  # digits of an evidence that are written out


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
    told = _found(found)
    return told if found.label is None else f"{spelt(str(found.label))}: {told}"


def _found(found: WatchFinding) -> str:
    up, names = found.direction > 0, [spelt(name) for name in found.covariates]
    way, side = ("low", "higher") if up else ("high", "lower")
    what = names[-1] if names else "the prediction"
    if found.shape is Shape.LEVEL:
        return f"the predictions are too {way} overall"
    if found.shape in (Shape.GROUP, Shape.PART):
        return f"the predictions are too {way} where {spelt(str(found.where))}"
    if found.shape is Shape.TREND:
        bias = f"the bias {'rises' if up else 'falls'} with {what}"
        extreme = "not extreme enough" if up else "too extreme"
        return bias if names else f"the predictions are {extreme}: {bias}"
    if found.shape is Shape.QUADRATIC:
        return f"the bias is {side} at both ends of {what} than between"
    if found.shape is Shape.IMPOSSIBLE:
        return "labels occurred that the model gave probability 0"
    if found.shape is Shape.PRODUCT and len(names) > 1:
        return f"the bias along {names[0]} differs with {names[1]} ({spelt(found.name)})"
    return f"the bias varies with {' and '.join(names) or 'the prediction'} ({spelt(found.name)})"


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


def segment_words(part: Segment) -> str:
    """The time of one model in words."""
    named = "" if part.name is None else f" {spelt(part.name)!r}"
    alarms = [str(own.batch) for own in part.alarms]
    raised = f", alarm at batch {', '.join(alarms)}" if alarms else ", no alarm"
    return (
        f"model{named}: {counted(part.batches, 'batch')} from batch {part.first}{raised}, "
        f"reference of {part.reference_rows:,} rows"
    )


@as_text.register
def _(result: Onset, width: int = WIDTH) -> str:  # noqa: ARG001
    label = "" if result.label is None else f" of {spelt(str(result.label))}"
    return f"{since_words(result)}, by the check {spelt(result.check)!r}{label}"


@as_text.register
def _(result: RaisedAlarm, width: int = WIDTH) -> str:  # noqa: ARG001
    when = "" if result.since is None else f", {since_words(result.since)}"
    evidence = evidence_text(result.log_evalue)
    return f"alarm at batch {result.batch}: evidence {evidence}{when}"


@as_text.register
def _(result: WatchFinding, width: int = WIDTH) -> str:  # noqa: ARG001
    return finding_line(result)


@as_text.register
def _(result: NumberSoFar, width: int = WIDTH) -> str:  # noqa: ARG001
    return number_line(result)


@as_text.register
def _(result: BatchRecord, width: int = WIDTH) -> str:  # noqa: ARG001
    return batch_line(result)


@as_text.register
def _(result: LevelSoFar, width: int = WIDTH) -> str:  # noqa: ARG001
    label = "" if result.label is None else f"{spelt(str(result.label))}: "
    told = f"{result.excess:+,.1f} labels beyond what the model predicted"
    return f"{label}{spelt(str(result.where))}: {told} (by chance {result.chance:,.1f})"


@as_text.register
def _(result: Segment, width: int = WIDTH) -> str:  # noqa: ARG001
    return segment_words(result)
