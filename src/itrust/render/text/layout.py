"""Plain text of any width: wrapped lines, titles beside or above them, tables that fit."""

from __future__ import annotations

from typing import NamedTuple

from itrust._core import wrapped
from itrust.render.document import NARROW as NARROW
from itrust.render.document import more as more
from itrust.render.document import seconds as seconds
from itrust.render.document import spelt as spelt


class TextPart(NamedTuple):
    """A part of a text: its key, the title and the lines under it."""

    key: str
    title: str
    lines: list[str]


def laid_out(section: TextPart, width: int) -> list[str]:
    """Put the title above its lines."""
    below = [line for text in section.lines for line in _indented(text, width)]
    return [*wrapped(section.title, width, "  ", "  "), *below]


def _indented(text: str, width: int) -> list[str]:
    indent = "    " + text[: len(text) - len(text.lstrip())]
    deeper = "    " if text.startswith("* ") else "  "  # below what is marked, not the mark
    return wrapped(text.strip(), width, indent, deeper)


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
