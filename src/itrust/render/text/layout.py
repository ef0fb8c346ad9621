"""Plain text of any width: wrapped lines, titles beside or above them, tables that fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from itrust._core import printable, wrapped

NARROW = 56  # below it what belongs together stands on lines of its own


class Section(NamedTuple):
    """A part of a text: its key, the title and the lines under it."""

    key: str
    title: str
    lines: list[str]


def laid_out(section: Section, width: int) -> list[str]:
    """Put the title above its lines."""
    below = [line for text in section.lines for line in _indented(text, width)]
    return [*wrapped(section.title, width, "  ", "  "), *below]


def _indented(text: str, width: int) -> list[str]:
    indent = "    " + text[: len(text) - len(text.lstrip())]
    deeper = "    " if text.startswith("* ") else "  "  # below what is marked, not the mark
    return wrapped(text.strip(), width, indent, deeper)


def spelt(name: str) -> str:
    """A name for a line: nothing in it can begin another one."""
    return printable(name, lines=False)


def more(number: int) -> Iterable[str]:
    """Say how many entries of a list are not shown, if any."""
    return [f"and {number} more"] if number > 0 else []


def seconds(elapsed: float) -> str:
    """A time for people.

    >>> seconds(0.123), seconds(11.4), seconds(113.2), seconds(7_300)
    ('0.12 s', '11 s', '113 s', '122 min')
    """
    if elapsed >= 600:
        return f"{elapsed / 60:,.0f} min"
    return f"{elapsed:.0f} s" if elapsed >= 10 else f"{elapsed:.2g} s"


def fitted(text: str, width: int) -> str:
    """Make a table fit: long lines go on below, deeper than they began."""
    lines: list[str] = []
    for line in text.splitlines():
        if len(line) <= width:
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        lines.extend(wrapped(line.strip(), width, indent, "    "))
    return "\n".join(lines)
