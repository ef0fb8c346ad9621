"""Fenced blocks of Markdown, and whether a text is what was printed; needs Python alone."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass

FENCE = re.compile(
    r"^[ \t]*(?P<ticks>`{3,}|~{3,})(?P<info>[^\n]*)\n(?P<body>.*?)^[ \t]*(?P=ticks)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
LAST_NUMBER = re.compile(r"\s+(\d[\d.]*|\.\.\.)\s*$")
TIME = re.compile(r"\b\d[\d.]* (s|seconds)\b")
RUN, DATA = ("python", "sh", "console"), ("toml", "yaml", "json")


@dataclass(frozen=True)
class Block:
    """One fenced block, the line it starts at, and whether only blanks part it from the last."""

    language: str
    title: str
    body: str
    line: int
    follows: bool

    @property
    def is_doctest(self) -> bool:
        return self.language == "python" and bool(re.search(r"^\s*>>> ", self.body, re.MULTILINE))

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.is_doctest


def blocks_of(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found, end = [], None
    for fence in FENCE.finditer(text):
        words = fence["info"].strip()
        title = re.search(r'title="([^"]*)"', words)
        language = words.split()[0] if words else ""
        follows = end is not None and not text[end : fence.start()].strip()
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(language, title[1] if title else "", fence["body"], line, follows))
        end = fence.end()
    return found


def without_times(text: str) -> str:
    """The text with a word for every time, also in the last column of a table of seconds.

    >>> print(without_times("took 2.3 s\\n      p  seconds\\na  0.05      1.6\\nb  0.01     12.0"))
    took (time)
          p  seconds
    a  0.05 (time)
    b  0.01 (time)
    """
    lines, is_table = [], False
    for line in TIME.sub("(time)", text).splitlines():
        ends_with_number = LAST_NUMBER.search(line) is not None
        is_table = line.rstrip().endswith(" seconds") or (is_table and ends_with_number)
        lines.append(LAST_NUMBER.sub(" (time)", line) if is_table else line)
    return "\n".join([*lines, ""])


def says(wanted: str, got: str) -> bool:
    """Whether a text is what was printed: times aside, with `...` for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    wanted, got = (without_times(text) for text in (wanted, got))
    return doctest.OutputChecker().check_output(wanted, got, flags)
