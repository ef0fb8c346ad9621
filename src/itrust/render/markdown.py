"""Documents as Markdown, and summaries for a pull request. Names of the user's file are hostile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from itrust._core import printable
from itrust.auditing import Asked, Audit, Check, gate, watch_checks
from itrust.bias import SIGN
from itrust.render.document import Block, Document, Notes, Section, Sentence, Table, more, spelt
from itrust.render.text.auditing import (
    by_cluster,
    check_lines,
    gate_words,
    judged_on,
    numbers_of,
    shown_parts,
)
from itrust.render.text.bias import bias_and_interval
from itrust.render.text.watch import (
    batch_line,
    headline,
    promise_words,
    watch_check_lines,
    watch_sentence,
)
from itrust.watch import WatchReport

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


def escaped_words(text: str) -> str:
    """Text of any length: only single words are cut."""
    return " ".join(escaped(word) for word in text.split(" "))


def as_markdown(document: Document) -> str:
    """Write a document as Markdown, a title of the third level above it."""
    blocks = [Sentence(document.lead), *document.blocks]
    parts = [f"### {escaped_words(document.title)}", *_paragraphs(blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _paragraphs(blocks: Iterable[Block]) -> Iterable[str]:
    for block in blocks:
        match block:
            case Sentence(text):
                yield escaped_words(text)
            case Notes(lines):
                yield "\n".join(f"- {escaped_words(text)}" for text in lines)
            case Table(head, rows, caption):
                yield escaped_words(caption)
                yield "\n".join(_row(row) for row in (head, ["---"] * len(head), *rows) if rows)
            case Section(title=title, blocks=inside):
                yield f"**{escaped_words(title)}**"
                yield from _paragraphs(inside)


def _row(cells: Sequence[str]) -> str:
    """A row of a table; lines of a cell stay lines."""
    made = ("<br>".join(map(escaped_words, cell.split("\n"))) for cell in cells)
    return f"| {' | '.join(made)} |"


def summary_markdown(
    audit: Audit, name: str, asked: Asked = "any", robust_to: Mapping[str, float] | None = None
) -> str:
    """Summarise an audit for a pull request: verdict, conditions, tasks, groups and slices."""
    found = gate(audit, asked, robust_to)
    checks = [(check, check_lines(check, audit)) for check in found.checks[1:]]
    parts = shown_parts(audit)
    shown = [(spelt(where), f"{own.rows:,}", *bias_and_interval(own)) for where, own in parts]
    notes = list(more(len(parts) - MAX_PARTS))
    hidden = audit.withheld
    if hidden is not None and hidden.shown:
        few = f"are about fewer than {hidden.min_cell} rows."
        notes.append(f"Withheld: {hidden.shown:,} more that {few}")
    made = f"tolerance {audit.tolerance:g}, {audit.draws:,} draws, seed {audit.seed}."
    margins = [Sentence(_as_sentence(gate_words(found)))] if found.margins else []
    return as_markdown(
        Document(
            f"itrust: {audit.verdict} (gate {'closed' if found.closed else 'open'})",
            [
                Sentence(f"{audit.summary}."),
                Sentence(f"{audit.sentence} {audit.action}"),
                *margins,
                Sentence(numbers_of(audit.tasks)),
                Sentence(
                    f"{audit.n:,} rows of {name}{by_cluster(audit)}, judged on {judged_on(audit)}."
                ),
                _checks(checks),
                Table(("shown to be miscalibrated", "rows", "bias", "interval"), shown[:MAX_PARTS]),
                *map(Sentence, notes),
                Sentence(f"{_as_sentence(SIGN)} Alpha {audit.alpha:g}, {made}"),
            ],
        )
    )


def watch_markdown(report: WatchReport, name: str, asked: Asked = "any") -> str:
    """Summarise a watch for a pull request or a job: alarm, checks of the gate, last batch."""
    found = watch_checks(report, asked)
    closed = any(check.outcome == "failed" for check in found)
    checks = [(check, watch_check_lines(check, report)) for check in found]
    last = f"No batch yet in {name}."
    if report.history:
        last = f"Last: {batch_line(report.history[-1], report)}, from {name}."
    return as_markdown(
        Document(
            f"itrust watch: {headline(report)} (gate {'closed' if closed else 'open'})",
            [
                Sentence(f"{watch_sentence(report)}."),
                Sentence(last),
                _checks(checks),
                Sentence(f"What is promised: {promise_words(report)}."),
            ],
        )
    )


def _checks(found: Iterable[tuple[Check, Sequence[str]]]) -> Table:
    rows = [(spelt(own.name), own.outcome, "\n".join(map(spelt, lines))) for own, lines in found]
    return Table(("check", "outcome", "found"), rows)


def _as_sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
