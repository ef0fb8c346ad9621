"""A Markdown summary for a pull request. Names and values of the user's file are hostile here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from itrust._core import printable
from itrust.auditing import Audit
from itrust.bias import SIGN
from itrust.render.gate import checks, is_closed

SPECIAL = re.compile(r"[^\w\s,.:;?^=%+()/'\"-]|_|(?<=www)\.|:(?=\S)", re.ASCII | re.IGNORECASE)
CALLING = "@#"  # a mark of width zero behind them keeps them from calling people and issues
MOST = 200  # characters of a name
MAX_SLICES = 5


def escaped(text: str) -> str:
    """Text without power over Markdown, HTML, tables, links or people's names.

    >>> escaped("a|b `c` <d> @e")
    'a&#124;b &#96;c&#96; &#60;d&#62; &#64;&#8203;e'
    """
    short = text if len(text) <= MOST else f"{text[: MOST - 3]}..."
    flat = " ".join(printable(short).split())
    return SPECIAL.sub(lambda found: _entity(found[0]), flat)


def _entity(character: str) -> str:
    if not character.isascii():
        return character
    return f"&#{ord(character)};" + ("&#8203;" if character in CALLING else "")


def summary_markdown(
    audit: Audit, name: str, facts: Mapping[str, Any], words: Callable[[str], str]
) -> str:
    """Verdict, conditions, tasks and slices; `words` and `facts` know no small groups."""
    gate = "closed" if is_closed(audit.verdict) else "open"
    rows = [
        f"| {escaped(check.name)} | {check.outcome} | {_in_cell(words(check.says))} |"
        for check in checks(audit)[1:]
    ]
    on = ", ".join(audit.competency.names) or "the prediction alone"
    bias = f"{SIGN[0].upper()}{SIGN[1:]}."
    made = f"tolerance {audit.tolerance:g}, {audit.draws:,} draws, seed {audit.seed}."
    return "\n".join(
        [
            f"### itrust: {escaped(audit.verdict.name)} (gate {gate})",
            "",
            escaped_words(words(audit.verdict.sentence)),
            "",
            f"{audit.n:,} rows of {escaped(name)}, judged on {escaped_words(on)}.",
            "",
            "| check | outcome | found |",
            "|---|---|---|",
            *rows,
            *_slices(facts),
            "",
            f"{bias} Level {audit.alpha:g}, {made}",
            "",
        ]
    )


def escaped_words(text: str) -> str:
    """Text of any length: only single words are cut."""
    return " ".join(escaped(word) for word in text.split(" "))


def _in_cell(text: str) -> str:
    return "<br>".join(escaped_words(line) for line in text.split("\n"))


def _slices(facts: Mapping[str, Any]) -> list[str]:
    """Confirmed slices of the dict that small groups were left out of."""
    table = facts["diagnosis"]["slices"]
    shown = [
        part
        for part in table["slices"]
        if part["pvalue"] is not None and part["pvalue"] <= table["alpha"]
    ]
    lines = [
        f"| {escaped(part['rule'])} | {part['rows']:,} | {part['bias']:+.3f} | "
        f"{part['lower']:+.3f} to {part['upper']:+.3f} |"
        for part in shown[:MAX_SLICES]
    ]
    head = ["", "| confirmed slice | rows | bias | interval |", "|---|---|---|---|"]
    hidden, least = table["withheld"], facts["suppressed"]["min_cell"]
    note = ["", f"{hidden} withheld: they tell of fewer than {least} rows."] if hidden else []
    return [*(head if lines else []), *lines, *note]
