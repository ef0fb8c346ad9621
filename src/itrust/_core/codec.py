"""What the entries of a file may be: one description that reads, checks and writes.

A shape is given a value as JSON has it and the place where it stands, such as `learned.slope`, and
gives the value that the code works with. Whatever does not fit is refused in a sentence that names
the place and the value; who reads a file adds the cure (`mended_by`). `write` is the way back.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, get_args, get_origin, get_type_hints

import numpy as np

from itrust._core.arrays import AnyArray, FloatArray
from itrust._core.errors import Argument, Code, InputError, Setting
from itrust._core.text import did_you_mean, shown

LARGEST = 1e100  # of what a fit learns: far beyond any, and sums of products stay finite
LARGEST_SUM = 1e150  # of many rows: squares stay finite
LARGEST_FLOAT = float(np.finfo(float).max)  # of values that users bring
MAX_TEXT = 100_000  # characters
MAX_PLAIN = 60  # of a name in a place
WHOLE_LEVELS = 2**64  # beyond those of any file
INFINITE = {"infinite": math.inf, "minus infinite": -math.inf}
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
    is_plain = isinstance(name, str) and name.isidentifier() and len(name) < MAX_PLAIN
    own = name if is_plain else shown(name)
    return f"{place}.{own}" if place else str(own)


class EntryShape(ABC):
    """What a value may be."""

    @abstractmethod
    def read(self, value: Any, place: str) -> Any:
        """Give the value as the code works with it; refuse one that does not fit."""

    def write(self, value: Any) -> Any:
        """Give the value as JSON has it."""
        return value


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
    """A finite number from `low` to `high`; `above` leaves out `low` itself.

    Where it may be `infinite`, a word stands for that, which JSON lacks.
    """

    low: float = -LARGEST
    high: float = LARGEST
    above: bool = False
    infinite: bool = False

    def read(self, value: Any, place: str) -> float:
        """Give a float."""
        if self.infinite and value in [*INFINITE]:
            return INFINITE[value]
        if isinstance(value, bool) or not isinstance(value, int | float):
            _refuse(place, "a number", value)
        number = math.inf if abs(value) > LARGEST_FLOAT else float(value)
        fits = self.low < number if self.above else self.low <= number
        if not (fits and number <= self.high):
            _refuse(place, self.wanted, value)
        return number

    def write(self, value: float) -> float | str:
        """Give the number, or the word for an infinite one."""
        words = INFINITE.items() if self.infinite else ()
        return next((word for word, number in words if value == number), value)

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

    low: int = 0
    high: int = 10**15

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
class Made(EntryShape):
    """What is made of a value of another shape, and how it is turned into it again."""

    shape: EntryShape
    make: Callable[[Any], Any]
    unmake: Callable[[Any], Any]

    def read(self, value: Any, place: str) -> Any:
        """Give what is made."""
        return self.make(self.shape.read(value, place))

    def write(self, value: Any) -> Any:
        """Give what it was made of."""
        return self.shape.write(self.unmake(value))


def member_of(kind: type[Enum]) -> Made:
    """One of the members of an enumeration, by its value."""
    return Made(OneWord(tuple(member.value for member in kind)), kind, lambda own: own.value)


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

    def write(self, value: Any) -> Any:
        """Give the level as JSON can hold it."""
        return packed(value)


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

    def write(self, value: Any) -> Any:
        """Give the value or None."""
        return None if value is None else self.shape.write(value)


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

    def write(self, value: Iterable[Any]) -> list[Any]:
        """Give the list."""
        return [self.shape.write(own) for own in value]


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

    def write(self, value: Iterable[Any]) -> list[Any]:
        """Give the list."""
        return [shape.write(own) for shape, own in zip(self.shapes, value, strict=True)]


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

    def write(self, value: FloatArray) -> Any:
        """Give the list."""
        return value.tolist()


@dataclass(frozen=True)
class Array(EntryShape):
    """An array of finite numbers: its shape, its type and its bytes in base64.

    Of `logs` some may be minus infinity.
    """

    dimensions: int = 1
    logs: bool = False

    def read(self, value: Any, place: str) -> FloatArray:
        """Give an array of float32 or float64."""
        found = ARRAY.read(value, place)
        if len(found["shape"]) != self.dimensions:
            unfit(inside(place, "shape"), f"must have {self.dimensions} entries")
        try:
            raw = base64.b64decode(found["data"].encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            unfit(inside(place, "data"), "must be base64")
        kind = np.dtype(found["type"])
        if len(raw) != math.prod(found["shape"]) * kind.itemsize:
            unfit(inside(place, "data"), "must have the bytes of all numbers, and no more")
        numbers = np.frombuffer(raw, dtype=kind).reshape(found["shape"]).astype(kind.type)
        finite = np.isfinite(numbers)
        possible = finite | np.isneginf(numbers) if self.logs else finite
        if not possible.all() or (np.abs(numbers[finite], dtype=float) > LARGEST_SUM).any():
            unfit(place, "must be an array of finite numbers")
        return numbers

    def write(self, value: AnyArray) -> dict[str, Any]:
        """Give the record."""
        kind = "<f4" if value.dtype == np.float32 else "<f8"
        raw = np.ascontiguousarray(value, dtype=kind).tobytes()
        data = base64.b64encode(raw).decode("ascii")
        return {"type": kind, "shape": list(value.shape), "data": data}


@dataclass(frozen=True)
class Record(EntryShape):
    """Named entries, all of them needed but the `optional` ones, and no others.

    Read into a dict by name, or into what `make` makes of them.
    """

    entries: Mapping[str, EntryShape]
    optional: frozenset[str] = frozenset()
    make: Callable[..., Any] = dict

    @classmethod
    def of(cls, kind: type, **shapes: EntryShape | None) -> Record:
        """Describe a dataclass by the types of its fields, but for some shapes; None: left out.

        >>> from dataclasses import make_dataclass
        >>> Step = make_dataclass("Step", [("size", int), ("name", str | None)])
        >>> Record.of(Step).read({"size": 3, "name": None}, "step")
        Step(size=3, name=None)
        >>> Record.of(Step, size=Whole(1, 2)).write(Step(2, "a"))
        {'size': 2, 'name': 'a'}
        """
        hints = get_type_hints(kind)
        names = [own.name for own in fields(kind) if own.init]
        entries = {
            name: shapes.get(name) or shape_of(hints[name])
            for name in names
            if name not in shapes or shapes[name] is not None
        }
        return cls(entries, make=kind)

    def read(self, value: Any, place: str) -> Any:
        """Give the entries by name, or what is made of them."""
        where = place or "it"
        if not isinstance(value, Mapping):
            _refuse(where, "a record", value)
        for name in value:
            if name not in self.entries:
                guess = did_you_mean(str(name), list(self.entries)) if self.entries else ""
                unfit(where, f"has an unknown entry {shown(name)}{f' ({guess})' if guess else ''}")
        lacking = [n for n in self.entries if n not in value and n not in self.optional]
        if lacking:
            unfit(where, f"lacks the entry {lacking[0]!r}")
        return self.make(
            **{
                name: shape.read(value[name], inside(place, name))
                for name, shape in self.entries.items()
                if name in value
            }
        )

    def write(self, value: Any) -> dict[str, Any]:
        """Give the entries of a mapping, or the attributes of anything else."""
        own = value if isinstance(value, Mapping) else {n: getattr(value, n) for n in self.entries}
        return {name: shape.write(own[name]) for name, shape in self.entries.items() if name in own}


PLAIN: dict[Any, EntryShape] = {
    int: Whole(),
    float: Number(),
    bool: Flag(),
    str: Text(),
    Any: Maybe(SavedLevel()),
}


def shape_of(hint: Any) -> EntryShape:
    """The shape of a type: plain ones, enumerations, dataclasses, tuples of these, and None."""
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return member_of(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return Record.of(hint)
    parts = get_args(hint)
    if get_origin(hint) is tuple and parts[1:] == (...,):
        return tuple_of(shape_of(parts[0]))
    if len(parts) == 2 and parts[1] is type(None):
        return Maybe(shape_of(parts[0]))
    raise TypeError(f"no shape for {hint}")


def tuple_of(shape: EntryShape, at_least: int = 0, at_most: int = 10**9) -> Made:
    """A tuple whose entries are alike."""
    return Made(ListOf(shape, at_least, at_most), tuple, list)


@dataclass(frozen=True)
class OneKind(EntryShape):
    """A record that says of which kind it is: one of some classes."""

    kinds: Mapping[str, Record]

    def read(self, value: Any, place: str) -> Any:
        """Give the value of the kind."""
        if not isinstance(value, Mapping) or "kind" not in value:
            unfit(place, "must be a record with a kind")
        kind = OneWord(tuple(self.kinds)).read(value["kind"], inside(place, "kind"))
        rest = {name: own for name, own in value.items() if name != "kind"}
        return self.kinds[kind].read(rest, place)

    def write(self, value: Any) -> dict[str, Any]:
        """Give the record."""
        for kind, shape in self.kinds.items():
            if type(value) is shape.make:
                return {"kind": kind, **shape.write(value)}
        raise TypeError(f"no kind for a {type(value).__name__}")


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

    def write(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Give the entries by name."""
        return {name: self.shape.write(own) for name, own in value.items()}


@dataclass(frozen=True)
class JSONRecord(EntryShape):
    """Whatever somebody keeps in a record, of at most so many characters."""

    at_most: int

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Give the record."""
        if not isinstance(value, dict) or len(json.dumps(value)) > self.at_most:
            _refuse(place, f"a record of at most {self.at_most:,} characters", value)
        return value


MAX_BYTES_OF_ARRAY = 2**27  # characters in base64
ARRAY = Record(
    {
        "type": OneWord(("<f4", "<f8")),
        "shape": ListOf(Whole(0, 50_000_000), at_most=8),
        "data": Text(MAX_BYTES_OF_ARRAY),
    }
)


MAX_JSON_BYTES = 2**26  # 64 MB; audits and fits of 500,000 rows write less than 1 MB


def json_of(source: Path | BinaryIO, name: str | None = None) -> Any:
    """What a file, or what is open already, says as strict JSON of bounded size."""
    name = name or str(source)
    try:
        with source.open("rb") if isinstance(source, Path) else nullcontext(source) as file:
            raw = file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise InputError(
            "cannot read {file}: {reason}", argument="path", file=name, reason=error.strerror
        ) from None
    try:
        if len(raw) > MAX_JSON_BYTES:
            unfit(name, f"has more than {MAX_JSON_BYTES:,} bytes")
        return strict_json(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        problem = f"is not JSON: it is not UTF-8 text at byte {error.start + 1:,}"
    except InputError as error:
        problem = str(error.details["problem"])
    details = {"place": name, "problem": problem}
    raise InputError("{file} {problem}", argument="path", file=name, details=details)


def strict_json(text: str, place: str = "it") -> Any:
    """What a text at a place says: no entry twice, no NaN, no Infinity, nothing that overflows."""

    def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
            unfit(place, f"is damaged: the entry {shown(name)} stands there twice")
        return entries

    def finite(digits: str) -> str:
        if not math.isfinite(float(digits)):
            start = f"{digits[:30]}{'...' * (len(digits) > 30)}"
            unfit(place, f"is damaged: the number {start} cannot be held")
        return digits

    try:
        return json.loads(
            text,
            object_pairs_hook=once_each,
            parse_constant=lambda word: unfit(place, f"is damaged: {word} is no number"),
            parse_float=lambda digits: float(finite(digits)),
            parse_int=lambda digits: int(finite(digits)),
        )
    except RecursionError:
        unfit(place, "is not JSON: it is nested too deeply")
    except json.JSONDecodeError as error:
        why = f"{error.msg[0].lower()}{error.msg[1:]} in line {error.lineno:,}"
        unfit(place, f"is not JSON: {why}")
