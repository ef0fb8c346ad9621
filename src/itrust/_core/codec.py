"""What the entries of a file may be: a description that reads and checks at once.

A shape is given a value as JSON has it and the place where it stands, such as `learned.slope`, and
gives the value that the code works with. Whatever does not fit is refused in a sentence that names
the place and the value; who reads a file adds the cure (`mended_by`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NoReturn

import numpy as np

from itrust._core.arrays import FloatArray
from itrust._core.errors import Argument, Code, InputError, Setting
from itrust._core.text import did_you_mean, shown

LARGEST = 1e100  # of what a fit learns: far beyond any, and sums of products stay finite
LARGEST_FLOAT = float(np.finfo(float).max)  # of values that users bring
MAX_TEXT = 100_000  # characters
WHOLE_LEVELS = 2**64  # beyond those of any file
MOMENTS: dict[str, Any] = {"datetime": datetime, "date": date}


def unfit(place: str, problem: str) -> NoReturn:
    """Refuse an entry that does not fit the others."""
    details = {"place": place, "problem": problem}
    raise InputError("{place} {problem}", argument="facts", details=details)


@contextmanager
def mended_by(hint: str, *settings: Setting | Argument | Code) -> Iterator[None]:
    """Add a cure to what does not fit."""
    try:
        yield
    except InputError as error:
        if error.hint is not None or "place" not in error.details:
            raise
        raise error.at(hint=hint, settings=settings) from None


def same_size(place: str, size: int, other: str, wanted: int) -> None:
    """Refuse a list that is not as long as another one."""
    if size != wanted:
        unfit(place, f"must be as long as {other}, which has {wanted:,}, not {size:,}")


def inside(place: str, name: object) -> str:
    """The place of an entry of a record or list.

    >>> inside("", "learned"), inside("learned", "slope"), inside("learned.knots", 3)
    ('learned', 'learned.slope', 'learned.knots[3]')
    """
    if isinstance(name, int):
        return f"{place}[{name}]"
    own = name if isinstance(name, str) and name.isidentifier() else shown(name)
    return f"{place}.{own}" if place else str(own)


class EntryShape(ABC):
    """What a value may be."""

    @abstractmethod
    def read(self, value: Any, place: str) -> Any:
        """Give the value as the method works with it; refuse one that does not fit."""


def _refuse(place: str, wanted: str, value: Any) -> NoReturn:
    unfit(place, f"must be {wanted}, not {_found(value)}")


def _found(value: Any) -> str:
    """A value for a sentence; of what is long, the kind and the size."""
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, Mapping):
        return f"a record of {len(value):,}"
    if isinstance(value, int) and abs(value) > WHOLE_LEVELS:
        return "a whole number of very many digits"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return shown(value)


@dataclass(frozen=True)
class Number(EntryShape):
    """A finite number from `low` to `high`; `above` leaves out `low` itself."""

    low: float = -LARGEST
    high: float = LARGEST
    above: bool = False

    def read(self, value: Any, place: str) -> float:
        """Give a float."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            _refuse(place, "a number", value)
        number = math.inf if abs(value) > LARGEST_FLOAT else float(value)
        fits = self.low < number if self.above else self.low <= number
        if not (fits and number <= self.high):
            _refuse(place, self.wanted, value)
        return number

    @property
    def wanted(self) -> str:
        """What it must be, in words."""
        if self.high < LARGEST:
            after = "above" if self.above else "from"
            joint = "and at most" if self.above else "to"
            return f"a number {after} {self.low:g} {joint} {self.high:g}"
        if self.low > -LARGEST:
            return f"a finite number {'above' if self.above else 'of at least'} {self.low:g}"
        return "a finite number"


@dataclass(frozen=True)
class Whole(EntryShape):
    """A whole number from `low` to `high`."""

    low: int
    high: int

    def read(self, value: Any, place: str) -> int:
        """Give an int."""
        if isinstance(value, bool) or not isinstance(value, int):
            _refuse(place, "a whole number", value)
        if not self.low <= value <= self.high:
            _refuse(place, f"a whole number from {self.low:,} to {self.high:,}", value)
        return int(value)


@dataclass(frozen=True)
class Flag(EntryShape):
    """True or false."""

    def read(self, value: Any, place: str) -> bool:
        """Give a bool."""
        if not isinstance(value, bool):
            _refuse(place, "true or false", value)
        return value


@dataclass(frozen=True)
class Text(EntryShape):
    """Text of at most so many characters, all of them whole ones."""

    at_most: int = MAX_TEXT

    def read(self, value: Any, place: str) -> str:
        """Give the text."""
        if not isinstance(value, str):
            _refuse(place, "text", value)
        if len(value) > self.at_most:
            unfit(place, f"has {len(value):,} characters, and at most {self.at_most:,} are read")
        try:
            value.encode()
        except UnicodeEncodeError:
            _refuse(place, "text of whole characters", value)
        return str(value)


@dataclass(frozen=True)
class OneWord(EntryShape):
    """One of some words."""

    words: tuple[str, ...]

    def read(self, value: Any, place: str) -> str:
        """Give the word."""
        if not isinstance(value, str) or value not in self.words:
            guess = did_you_mean(value, self.words) if isinstance(value, str) else ""
            names = " or ".join(map(repr, self.words))
            unfit(place, f"must be {names}, not {_found(value)}{f' ({guess})' if guess else ''}")
        return value


@dataclass(frozen=True)
class SavedLevel(EntryShape):
    """A level of a category, as `packed` makes it."""

    def read(self, value: Any, place: str) -> Any:
        """Give the level."""
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return Whole(-WHOLE_LEVELS, WHOLE_LEVELS).read(value, place)
        if isinstance(value, float):
            return Number(-LARGEST_FLOAT, LARGEST_FLOAT).read(value, place)
        if isinstance(value, str):
            return Text().read(value, place)
        if isinstance(value, Mapping) and len(value) == 1 and set(value) <= set(MOMENTS):
            ((kind, text),) = value.items()
            try:
                return MOMENTS[kind].fromisoformat(Text().read(text, inside(place, kind)))
            except ValueError:
                _refuse(inside(place, kind), "a date such as '2026-01-31'", text)
        return _refuse(place, "a level: text, a number, true, false or a date", value)


def packed(level: Any) -> Any:
    """A level as JSON can hold it."""
    if level is None or isinstance(level, str | bool | int | float):
        return level
    for kind, type_ in MOMENTS.items():
        if type(level) is type_:
            return {kind: level.isoformat()}
    raise InputError(
        "the level {value} is a {kind}, which JSON cannot hold; turn the column into text before "
        "the fit",
        argument="x",
        value=level,
        details={"kind": type(level).__name__},
    )


@dataclass(frozen=True)
class Maybe(EntryShape):
    """A value, or null where there is none."""

    shape: EntryShape

    def read(self, value: Any, place: str) -> Any:
        """Give the value or None."""
        return None if value is None else self.shape.read(value, place)


@dataclass(frozen=True)
class ListOf(EntryShape):
    """A list whose entries are alike."""

    shape: EntryShape
    at_least: int = 0
    at_most: int = 10**9  # the size of a file is bounded as well

    def read(self, value: Any, place: str) -> list[Any]:
        """Give the list of the entries."""
        if not isinstance(value, list | tuple):
            _refuse(place, "a list", value)
        if len(value) < self.at_least:
            unfit(place, f"must have {self.at_least} or more entries, not {len(value)}")
        if len(value) > self.at_most:
            unfit(place, f"has {len(value):,} entries, and at most {self.at_most:,} are read")
        return [self.shape.read(own, inside(place, at)) for at, own in enumerate(value)]


@dataclass(frozen=True)
class ListWith(EntryShape):
    """A list with one entry of each of some shapes."""

    shapes: tuple[EntryShape, ...]

    def read(self, value: Any, place: str) -> tuple[Any, ...]:
        """Give the entries."""
        if not isinstance(value, list | tuple) or len(value) != len(self.shapes):
            _refuse(place, f"a list of {len(self.shapes)}", value)
        parts = enumerate(zip(self.shapes, value, strict=True))
        return tuple(shape.read(own, inside(place, at)) for at, (shape, own) in parts)


@dataclass(frozen=True)
class Numbers(EntryShape):
    """A list of numbers.

    With `rising` each is at least as large as the one before, with `apart` larger.
    """

    each: Number = field(default_factory=Number)
    at_least: int = 0
    at_most: int = 10**9
    rising: bool = False
    apart: bool = False

    def read(self, value: Any, place: str) -> FloatArray:
        """Give a one-dimensional array of float."""
        found = np.array(ListOf(self.each, self.at_least, self.at_most).read(value, place), float)
        if self.rising or self.apart:
            before, after = found[:-1], found[1:]
            wrong = before >= after if self.apart else before > after
            if wrong.any():
                at = int(np.argmax(wrong))
                unfit(
                    inside(place, at + 1),
                    f"must be {'above' if self.apart else 'at least'} the entry before it: "
                    f"{after[at]!r} follows {before[at]!r}",
                )
        return found


@dataclass(frozen=True)
class Record(EntryShape):
    """Named entries, all of them needed but the `optional` ones, and no others."""

    entries: Mapping[str, EntryShape]
    optional: frozenset[str] = frozenset()

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Give the entries by name."""
        where = place or "the record"
        if not isinstance(value, Mapping):
            _refuse(where, "a record", value)
        for name in value:
            if name not in self.entries:
                guess = did_you_mean(str(name), list(self.entries)) if self.entries else ""
                unfit(where, f"has an unknown entry {shown(name)}{f' ({guess})' if guess else ''}")
        lacking = [n for n in self.entries if n not in value and n not in self.optional]
        if lacking:
            unfit(where, f"lacks the entry {lacking[0]!r}")
        return {
            name: shape.read(value[name], inside(place, name))
            for name, shape in self.entries.items()
            if name in value
        }


@dataclass(frozen=True)
class ByName(EntryShape):
    """Entries that are alike, by the names of columns."""

    shape: EntryShape

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Give the entries by name."""
        if not isinstance(value, Mapping):
            _refuse(place, "a record", value)
        names = ((Text().read(name, f"a name in {place}"), own) for name, own in value.items())
        return {name: self.shape.read(own, inside(place, name)) for name, own in names}
