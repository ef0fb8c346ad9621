"""Columns that tell clusters, strata and replicate weights: names, patterns, blocks of time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from itrust._core import Argument, Code, InputError, Subject, did_you_mean, listed
from itrust.data.encoding import encode_numbers
from itrust.data.frames import same_length
from itrust.data.time_blocks import AUTO, CALENDAR, Days, auto_length, in_blocks, read_days

BLOCKS = "blocks"
CALL = re.compile(r"\s*(\w+)\s*\(\s*(.+?)\s*(?:,\s*(\d+)\s*)?\)\s*")
OUTER_COMMA = re.compile(r",(?![^()]*\))")
NUMBER = re.compile(r"(\d+)")
MAGIC = re.compile(r"[*?[]")


@dataclass(frozen=True)
class UnitColumn:
    """A column that tells rows of one unit, as it is or by blocks of time."""

    text: str
    column: str
    length: str | int | None = None

    def values(self, columns: Mapping[str, object], argument: str) -> object:
        """The units of the rows; the length of blocks is known."""
        found = columns[self.column]
        if self.length is None:
            return found
        return in_blocks(self._days(columns, argument), self.length)

    def settled(self, columns: Mapping[str, object], argument: str, p: object) -> UnitColumn:
        """The same with the length of blocks found from dates and predictions, as "blocks(d, 9)".

        The name stays as it is where there is nothing to find.
        """
        if self.length != AUTO:
            return self
        days = self._days(columns, argument)
        predictions = encode_numbers(p, Subject("prob"))
        same_length(Subject("prob"), predictions.size, days.size, "dates")
        length = auto_length(days, predictions)
        return UnitColumn(f"{BLOCKS}({self.column}, {length})", self.column, length)

    def _days(self, columns: Mapping[str, object], argument: str) -> Days:
        what = Subject(argument, self.text)
        return read_days(columns[self.column], what, f" of {self.column!r}")


def split_units(text: str, known: Sequence[str]) -> list[str]:
    """Names between commas, as a shell has them; a column whose name has a comma wins.

    >>> split_units("store, blocks(date, 14)", ["store", "date"])
    ['store', 'blocks(date, 14)']
    """
    if text in known:
        return [text]
    return [part.strip() for part in OUTER_COMMA.split(text) if part.strip()]


def unit_columns(
    named: str | Sequence[str] | None, known: Sequence[str], argument: str
) -> tuple[UnitColumn, ...]:
    """The columns that were named, all of them there; a column called "week(date)" wins."""
    if named is None:
        return ()
    texts = _texts(named, argument)
    found = tuple(_unit_column(text, known, argument) for text in texts)
    twice = [unit.text for unit, count in Counter(found).items() if count > 1]
    if twice:
        raise InputError(
            "{argument} names {twice} more than once",
            argument=argument,
            details={"twice": listed(twice)},
        )
    return found


def _texts(named: object, argument: str) -> list[str]:
    """One name or several; anything else is refused."""
    texts: list[str] = []
    for text in named if isinstance(named, list | tuple) else [named]:
        if not isinstance(text, str):
            raise InputError(
                "{argument} takes the name of a column or a list of names, not {value}",
                argument=argument,
                value=text,
            )
        texts.append(text)
    return texts


def column_named(text: str, known: Sequence[str]) -> str:
    """The column that a name is about, there or not: `date` in "week(date)".

    >>> column_named("week(date)", ["date"]), column_named("week(date)", ["week(date)"])
    ('date', 'week(date)')
    """
    call = None if text in known else CALL.fullmatch(text)
    return text if call is None or call[1] not in (*CALENDAR, BLOCKS) else call[2]


def _unit_column(text: str, known: Sequence[str], argument: str) -> UnitColumn:
    if text in known:
        return UnitColumn(text, text)
    call = CALL.fullmatch(text)
    if call is None:
        raise _no_column(text, known, argument)
    word, column, days = call[1], call[2], call[3]
    if word not in (*CALENDAR, BLOCKS) or (days is not None and word != BLOCKS):
        raise InputError(
            "{argument}: there is no column {value}, and no such block of time; blocks are "
            "day(date), week(date), month(date), quarter(date), year(date), blocks(date) and "
            "blocks(date, 14)",
            argument=argument,
            value=text,
        )
    if column not in known:
        raise _no_column(column, known, argument)
    if word == BLOCKS:
        return UnitColumn(text, column, AUTO if days is None else int(days))
    return UnitColumn(text, column, word)


def _no_column(name: str, known: Sequence[str], argument: str) -> InputError:
    return InputError(
        "{argument}: the {frame} has no column {value}; {guess}",
        argument=argument,
        value=name,
        details={
            "frame": Code("frame", "file"),
            "guess": did_you_mean(name, list(known)),
        },
    )


def replicate_columns(
    named: str | Sequence[str] | None, known: Sequence[str], taken: Sequence[tuple[str, str]]
) -> list[str]:
    """Columns by names or patterns such as "REPWT*", those of a pattern in order of their numbers.

    `taken` are roles, and columns that have them already.

    >>> replicate_columns("w*", ["w10", "w2", "w1", "age"], [])
    ['w1', 'w2', 'w10']
    """
    if named is None:
        return []
    found: list[str] = []
    for text in _texts(named, "replicate_weights"):
        matching = [text] if text in known else _matching(text, known)
        found += [name for name in matching if name not in found]
    for role, name in taken:
        if name in found:
            raise InputError(
                "{argument}: {value} is {role} already; name the replicates alone, such as "
                "'REPWT*'",
                argument="replicate_weights",
                value=name,
                details={"role": Argument(role)},
            )
    return found


def _matching(pattern: str, known: Sequence[str]) -> list[str]:
    if not MAGIC.search(pattern):
        raise _no_column(pattern, known, "replicate_weights")
    found = [name for name in known if fnmatchcase(name, pattern)]
    if not found:
        families = _families(known)
        raise InputError(
            "{argument}: no column matches {value}; {guess}",
            argument="replicate_weights",
            value=pattern,
            details={"guess": did_you_mean(pattern, families or list(known))},
        )
    return sorted(found, key=_natural)


def _families(known: Sequence[str]) -> list[str]:
    """Patterns of columns that differ in a number at their end only."""
    stems = Counter(name.rstrip("0123456789") for name in known if name[-1:].isdigit())
    return [f"{stem}*" for stem, count in stems.items() if count > 1]


def _natural(name: str) -> list[tuple[int, str]]:
    """Numbers by size, text by its letters."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in NUMBER.split(name)]
