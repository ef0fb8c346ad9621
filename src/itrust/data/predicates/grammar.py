"""Names and values as the grammar of tasks writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESERVED = frozenset({"and", "or", "not", "in", "is", "missing", "true", "false"})


class WrittenNumber(float):
    """A number that remembers how it was written: 007 may be a level."""

    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """Read a number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def quoted(name: str) -> str:
    """A column name as the grammar reads it: in backticks unless it is a plain word.

    >>> quoted("age"), quoted("hours per week")
    ('age', '`hours per week`')
    """
    plain_word = name.isidentifier() and name not in RESERVED
    return name if plain_word else "`" + name.replace("`", "``") + "`"


def written(value: object) -> str:
    """A value as the grammar reads it.

    >>> written("a"), written(True), written(0.5), written(WrittenNumber("007"))
    ('"a"', 'true', '0.5', '007')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, int | float | np.number):
        return repr(value.item() if isinstance(value, np.number) else value)
    return '"' + str(value).replace('"', '""') + '"'


def in_backticks(name: str, known: Sequence[str]) -> str:
    """What to do where a formula has cut a name at a hyphen or a blank.

    >>> in_backticks("hours", ["age", "hours-per-week"])
    ' In formulas it stands in backticks: `hours-per-week`'
    """
    cut = [other for other in known if other.startswith((f"{name}-", f"{name} "))]
    return f" In formulas it stands in backticks: `{cut[0]}`" if cut else ""
