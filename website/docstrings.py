"""Docstrings for the site: doctests that stand in the text become code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A doctest lasts until a blank line; griffe itself finds those in a numpydoc section.
DOCTEST = re.compile(r"(?:^|(?<=\n\n))(?P<body>>>> .*?)(?=\n\n|\Z)", re.DOTALL)
SECTION = re.compile(r"^Examples\n-+$", re.MULTILINE)


def fenced(text: str) -> str:
    r"""The text with its bare doctests in fences.

    >>> fenced("Adds.\n\n>>> 1 + 1\n2")
    'Adds.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    if SECTION.search(text):
        return text
    return DOCTEST.sub(r"```pycon\n\g<body>\n```", text)


class Doctests(griffe.Extension):
    """Applies `fenced` to every docstring that griffe reads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
