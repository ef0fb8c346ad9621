"""A Markdown summary for a pull request. Names and values of the user's file are hostile here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from itrust._core import printable
from itrust.auditing import Asked, Audit, gate
from itrust.bias import SIGN, PartBias
from itrust.render.text import (
    by_cluster,
    check_lines,
    class_words,
    classes_judged_on,
    gate_words,
    judged_on,
    numbers_of,
    watch_check_lines,
)
from itrust.render.text.bias import bias_and_interval, rows_of
from itrust.render.text.watch import headline, promise_words, watch_sentence
from itrust.render.text.watch_parts import batch_line
from itrust.watch import WatchReport, watch_gate

SPECIAL = re.compile(r"[^\w\s,.:;?^=%+()/'\"-]|_|(?<=www)\.|:(?=\S)", re.ASCII | re.IGNORECASE)
CALLING = "@#"  # a mark of width zero behind them keeps them from calling people and issues
MAX_NAME = 200  # characters
MAX_PARTS = 5


def escaped(text: str) -> str:
    """Text without power over Markdown, HTML, tables, links or people's names.

    >>> escaped("a|b `c` <d> @e")
    'a&#124;b &#96;c&#96; &#60;d&#62; &#64;&#8203;e'
    """
    short = text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 3]}..."
    flat = " ".join(printable(short, lines=False).split())
    return SPECIAL.sub(lambda found: _entity(found[0]), flat)


def _entity(character: str) -> str:
    if not character.isascii():
        return character
    return f"&#{ord(character)};" + ("&#8203;" if character in CALLING else "")


def summary_markdown(
    audit: Audit,
    name: str,
    asked: Asked = "any",
    robust_to: Mapping[str, float] | None = None,
) -> str:
    """Summarise an audit for a pull request: verdict, conditions, tasks, groups and slices."""
    found = gate(audit, asked, robust_to)
    rows = [
        f"| {escaped(check.name)} | {check.outcome} | {_in_cell(check_lines(check, audit))} |"
        for check in found.checks[1:]
    ]
    if audit.classes:
        on, clusters = classes_judged_on(audit), ""
    else:
        on, clusters = judged_on(audit), by_cluster(audit)
    bias = f"{SIGN[0].upper()}{SIGN[1:]}."
    made = f"tolerance {audit.tolerance:g}, {audit.draws:,} draws, seed {audit.seed}."
    return "\n".join(
        [
            f"### itrust: {escaped(audit.verdict)} (gate {'closed' if found.closed else 'open'})",
            "",
            f"{escaped_words(audit.summary)}.",
            "",
            escaped_words(f"{audit.sentence} {audit.action}"),
            *(["", escaped_words(_as_sentence(gate_words(found)))] if found.margins else []),
            *([] if not audit.tasks else ["", escaped_words(numbers_of(audit.tasks))]),
            "",
            f"{audit.n:,} rows of {escaped(name)}{clusters}, judged on {escaped_words(on)}.",
            "",
            "| check | outcome | found |",
            "|---|---|---|",
            *rows,
            *_shown(audit),
            "",
            f"{bias} Alpha {audit.alpha:g}, {made}",
            "",
        ]
    )


def watch_markdown(report: WatchReport, name: str, asked: Asked = "any") -> str:
    """Summarise a watch for a pull request or the page of a job."""
    found = watch_gate(report, asked)
    told = [_in_cell(watch_check_lines(check, report)) for check in found.checks]
    rows = [
        f"| {escaped(check.name)} | {check.outcome} | {text} |"
        for check, text in zip(found.checks, told, strict=True)
    ]
    closed = "closed" if found.closed else "open"
    return "\n".join(
        [
            f"### itrust watch: {escaped_words(headline(report))} (gate {closed})",
            "",
            f"{escaped_words(watch_sentence(report))}.",
            "",
            f"Last: {escaped_words(batch_line(report.history[-1], report))}, from {escaped(name)}."
            if report.history
            else f"No batch yet in {escaped(name)}.",
            "",
            "| check | outcome | found |",
            "|---|---|---|",
            *rows,
            "",
            f"What is promised: {escaped_words(promise_words(report))}.",
            "",
        ]
    )


def escaped_words(text: str) -> str:
    """Text of any length: only single words are cut."""
    return " ".join(escaped(word) for word in text.split(" "))


def _as_sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _in_cell(lines: list[str]) -> str:
    return "<br>".join(escaped_words(line) for line in lines)


def _parts(audit: Audit) -> list[tuple[str, PartBias]]:
    """Groups and slices that are shown to be miscalibrated; of several classes with the class."""
    if not audit.classes:
        return [(str(part.where), part) for part in audit.diagnosis.shown]
    found = [
        (f"{class_words(own.name)} where {part.where}", part)
        for own in audit.parts
        for part in own.diagnosis.shown
    ]
    return sorted(found, key=lambda own: -abs(own[1].at_least))


def _shown(audit: Audit) -> list[str]:
    """Groups and slices that are shown to be miscalibrated."""
    parts = _parts(audit)
    lines = [
        f"| {escaped(name)} | {rows_of(part)} | {' | '.join(bias_and_interval(part))} |"
        for name, part in parts[:MAX_PARTS]
    ]
    head = ["", "| shown to be miscalibrated | rows | bias | interval |", "|---|---|---|---|"]
    rest = len(parts) - MAX_PARTS
    note = ["", f"And {rest:,} more."] if rest > 0 else []
    hidden = audit.withheld
    if hidden is not None and hidden.shown:
        few = f"would tell of fewer than {hidden.min_cell} rows."
        note += ["", f"Withheld: {hidden.shown:,} more that {few}"]
    return [*(head if lines else []), *lines, *note]
