"""A watch in a notebook."""

from __future__ import annotations

import math

from itrust.render import html
from itrust.render.showing import as_html, as_text
from itrust.render.text.watch import (
    NUMBERS,
    TOP_LABEL,
    action_words,
    headline,
    promise_words,
    unchecked_words,
    watch_sentence,
)
from itrust.render.text.watch_parts import (
    evidence_text,
    finding_words,
    number_values,
    number_words,
    segment_words,
)
from itrust.watch import (
    BatchRecord,
    LevelSoFar,
    NumberSoFar,
    Onset,
    RaisedAlarm,
    Segment,
    Watch,
    WatchFinding,
    WatchReport,
    watch_report,
)

MAX_BATCHES = 20
NUMBER_HEAD = ("number so far", "with labels", "with probabilities", "bias", "interval", "finding")
FINDING_HEAD = ("finding", "evidence", "adjusted p")
BATCH_HEAD = ("batch", "name", "rows", "observed", "predicted", "evidence")


@as_html.register
def _(result: WatchReport) -> str:
    last = result.history[-MAX_BATCHES:]
    notes = [promise_words(result), *([NUMBERS] if result.numbers else [])]
    if result.unchecked:
        notes.append(unchecked_words(result))
    if len(result.history) > len(last):
        notes.append(f"the last {len(last)} of {len(result.history):,} batches are shown")
    if result.classes:
        notes.append(f"observed and predicted are, {TOP_LABEL}")
    if len(result.segments) > 1:
        notes += [segment_words(part) for part in result.segments]
    return html.card(
        f"Watch: {headline(result)}",
        html.sentence(watch_sentence(result)),
        html.sentence(action_words(result)) if result.alarm else "",
        html.table(FINDING_HEAD, [_finding(found) for found in result.findings]),
        html.table(NUMBER_HEAD, [_number(own) for own in result.numbers]),
        html.table(BATCH_HEAD, [_batch(record) for record in last]),
        html.notes(notes),
    )


def _finding(found: WatchFinding) -> tuple[str, ...]:
    own = math.log(found.evalue) if found.evalue > 0 else -math.inf
    return finding_words(found), evidence_text(own), html.number(found.pvalue, ".3g")


def _number(own: NumberSoFar) -> tuple[str, ...]:
    return str(own.task), *number_values(own), number_words(own)


def _batch(record: BatchRecord) -> tuple[str, ...]:
    means = (html.number(value, ".3f") for value in (record.mean_label, record.mean_prediction))
    raised = " ALARM" if record.raised else ""
    name = f"{record.name or ''}{' (late)' if record.late else ''}"
    evidence = f"{evidence_text(record.log_evalue)}{raised}"
    return str(record.number), name, f"{record.rows:,}", *means, evidence


@as_html.register
def _(result: Watch) -> str:
    return as_html(watch_report(result))


@as_html.register
def _(result: WatchFinding) -> str:
    return html.card("A finding of a watch", html.table(FINDING_HEAD, [_finding(result)]))


@as_html.register
def _(result: NumberSoFar) -> str:
    table = html.table(NUMBER_HEAD, [_number(result)])
    return html.card("A number so far", table, html.notes([NUMBERS]))


@as_html.register
def _(result: BatchRecord) -> str:
    return html.card("A batch of a watch", html.table(BATCH_HEAD, [_batch(result)]))


@as_html.register(LevelSoFar)
@as_html.register(Onset)
@as_html.register(RaisedAlarm)
@as_html.register(Segment)
def _(result: LevelSoFar | Onset | RaisedAlarm | Segment) -> str:
    return html.card(as_text(result))
