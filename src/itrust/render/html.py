"""Small pieces of HTML for notebooks: escaped, no scripts, readable on light and dark ground."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from itrust._core import printable, signed

MAX_ROWS, LONG = 60, 300
# Greys that show on both grounds; inline, because notebooks that are cleaned lose style sheets.
BOX = "max-width:60rem;line-height:1.45;font-variant-numeric:tabular-nums;overflow-wrap:break-word"
LINE = "border-bottom:1px solid rgba(128,128,128,.35);padding:.25em .8em;vertical-align:top"
QUIET = "opacity:.75;font-size:.92em;margin:.35em 0"


def card(title: str, *parts: str, colour: str | None = None) -> str:
    """Put a title above pieces of HTML that other functions here have made.

    `colour` marks the left edge, which shows on light and dark ground alike.

    >>> card("<b>")
    '<div style="max-width...<strong>&lt;b&gt;</strong>...'
    """
    head = f'<div style="font-size:1.08em;margin:.2em 0"><strong>{text(title)}</strong></div>'
    edge = "" if colour is None else f";border-left:.35em solid {colour};padding-left:.9em"
    return f'<div style="{BOX}{edge}">{head}{"".join(parts)}</div>'


def text(value: object) -> str:
    """Any value as escaped text, control characters spelt out, cut where it is very long."""
    told = printable(str(value))
    shown = told if len(told) <= LONG else f"{told[: LONG - 1]}…"
    return escape(shown)


def sentence(value: object) -> str:
    """A paragraph."""
    return f'<p style="margin:.35em 0"><bdi>{text(value)}</bdi></p>'


def notes(values: Iterable[object]) -> str:
    """Quiet lines below."""
    return "".join(f'<p style="{QUIET}"><bdi>{text(value)}</bdi></p>' for value in values)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Names of columns and cells; numbers, and texts that begin like one, go to the right."""
    if not rows:
        return ""
    right = [all(_is_number(row[k]) for row in rows) for k in range(len(head))]
    titles = "".join(_cell("th", name, right[k]) for k, name in enumerate(head))
    lines = (
        "".join(_cell("td", value, right[k]) for k, value in enumerate(row))
        for row in rows[:MAX_ROWS]
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = len(rows) - MAX_ROWS
    rest = notes([f"and {more:,} more"]) if more > 0 else ""
    return (
        f'<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:.4em 0">'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>{rest}"
    )


def number(value: object, form: str = ".4g") -> str:
    """A number for people; nothing where there is none.

    >>> number(0.25, "+.3f"), number(float("nan")), number(None)
    ('+0.250', '–', '–')
    """  # noqa: RUF002
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"  # noqa: RUF001
    return format(value, form)


def interval(lower: float, upper: float, form: str | None = None) -> str:
    """Both ends; by default as biases, none of which is taken for 0.

    >>> interval(-0.1, 0.2), interval(0.0002, 0.2)
    ('-0.100 to +0.200', '+0.0002 to +0.200')
    """
    ends = (lower, upper)
    if form is None and all(map(math.isfinite, ends)):
        return " to ".join(map(signed, ends))
    return " to ".join(number(end, form or "+.3f") for end in ends)


def _is_number(value: object) -> bool:
    told = str(value)
    return bool(told) and (told[0].isdigit() or told[0] in "+-–")  # noqa: RUF001


def _cell(tag: str, value: object, right: bool) -> str:
    side = "right;white-space:nowrap" if right else "left"
    return f'<{tag} style="{LINE};text-align:{side}"><bdi>{text(value)}</bdi></{tag}>'
