"""Which rows: predicates on covariates, how they join, and their words.

A predicate reads predictions and covariates, never labels. `str(predicate)` is in reading words
("region = south and age 30 to 40"), `predicate.formula` in those of the grammar of tasks
(`region == "south" and age >= 30 and age < 41`).
"""

from __future__ import annotations

import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import Any, ClassVar

import numpy as np

from itrust._core import BoolArray, InputError, checked_choice, did_you_mean, is_blank, plain
from itrust.data.column import MICROSECONDS_PER_DAY, Column, Kind, Points

LARGEST = sys.float_info.max
MAX_DEPTH = 60  # texts and marks go down part by part
MAX_NAMED = 3  # values of `OneOf` that are named one by one
NO_POSITION = -2  # of a level that a category does not have
PREDICTION = "prediction"  # as if it were a covariate; one that is called so goes before
OTHER_NAME = "p (the model's)"  # of the prediction then
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
RESERVED = frozenset({"and", "or", "not", "in", "is", "missing", "true", "false"})
OPERATORS = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
TENTHS = 10
CUT_LEVELS = 40  # of a category that are parts of it
FREQUENT = 0.01  # levels with this share of the rows are never left out
FEW_DIGITS, ALL_DIGITS = 3, 17
MOST_PLACES = 16  # behind the point


class WrittenNumber(float):
    """A number that remembers how it was written: 007 may be a level."""

    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """Read a number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def quoted(name: str) -> str:
    """A column name as the grammar reads it: in backticks unless it is a plain word."""
    is_plain = name.isidentifier() and name not in RESERVED
    return name if is_plain else "`" + name.replace("`", "``") + "`"


def written(value: object) -> str:
    """A value as the grammar reads it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, int | float | np.number):
        return repr(plain(value))
    return '"' + str(value).replace('"', '""') + '"'


def in_backticks(name: str, known: Sequence[str]) -> str:
    """What to do where a formula has cut a name at a hyphen or a blank.

    >>> in_backticks("hours", ["age", "hours-per-week"])
    ' In formulas it stands in backticks: `hours-per-week`'
    """
    cut = [other for other in known if other.startswith((f"{name}-", f"{name} "))]
    return f" In formulas it stands in backticks: `{cut[0]}`" if cut else ""


@dataclass(frozen=True)
class Predicate(ABC):
    """Some of the rows, by what is known without labels. Join predicates with `&`, `|` and `~`."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if self.depth > MAX_DEPTH:
            raise InputError(
                f"a condition of more than {MAX_DEPTH} conditions within each other is not taken",
                argument="where",
            )

    @property
    def _inside(self) -> tuple[Predicate, ...]:
        """The predicates that this one is made of."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """Columns that the predicate reads."""
        return frozenset[str]().union(*(part.names for part in self._inside))

    @property
    def depth(self) -> int:
        """How many predicates lie within each other, this one among them."""
        return 1 + max((part.depth for part in self._inside), default=0)

    @property
    @abstractmethod
    def formula(self) -> str:
        """The predicate in the grammar's words, as `itrust.tasks.parse` reads conditions."""

    @abstractmethod
    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside.

        Parameters
        ----------
        points : Points
            Rows of any sample, as `sample.points`.

        Returns
        -------
        (n,) array of bool
            True inside.
        """

    @abstractmethod
    def __str__(self) -> str: ...

    def leaves(self) -> Iterator[Predicate]:
        """Give the predicates on single columns that this one is made of.

        Returns
        -------
        iterator of Predicate
            In the order in which they are written; this one, if it has no parts.
        """
        if not self._inside:
            yield self
        for part in self._inside:
            yield from part.leaves()

    def check(self, points: Points) -> None:
        """Refuse covariates and levels that these rows do not have; `rows` marks none for those.

        Parameters
        ----------
        points : Points
            The rows that the predicate is meant for.
        """
        for leaf in self._inside:
            leaf.check(points)

    def to_dict(self) -> dict[str, Any]:
        """Give kind and values, ready for JSON.

        Returns
        -------
        dict
            "kind" and what the predicate holds, by name.
        """
        return {"kind": self.kind} | {name: _ready(value) for name, value in vars(self).items()}

    def __and__(self, other: Predicate) -> Predicate:
        return all_of([self, other])

    def __or__(self, other: Predicate) -> Predicate:
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> Predicate:
        return Not(self)


def _ready(value: object) -> object:
    if isinstance(value, Predicate):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_ready(part) for part in value]
    ready = plain(value)
    return ready if isinstance(ready, str | int | float | bool | None) else str(ready)


@dataclass(frozen=True)
class Everywhere(Predicate):
    """All rows."""

    kind = "everywhere"

    formula = ""  # the grammar leaves out a condition that always holds

    def rows(self, points: Points) -> BoolArray:
        """Mark every row, (n,)."""
        return np.ones(len(points), dtype=bool)

    def __str__(self) -> str:
        return "everywhere"


@dataclass(frozen=True)
class _Joined(Predicate):
    """Several predicates joined by a word."""

    _joined: ClassVar[np.ufunc]
    parts: tuple[Predicate, ...]

    @property
    def _inside(self) -> tuple[Predicate, ...]:
        return self.parts

    def rows(self, points: Points) -> BoolArray:
        return np.asarray(self._joined.reduce([part.rows(points) for part in self.parts]))

    @property
    def formula(self) -> str:
        return self._between(part.formula for part in self.parts)

    def __str__(self) -> str:
        return self._between(str(part) for part in self.parts)

    def _between(self, texts: Iterable[str]) -> str:
        """The word between the parts; "or" binds less than "and"."""
        parts = (
            f"({text})" if isinstance(part, Or) and self.kind == "and" else text
            for part, text in zip(self.parts, texts, strict=True)
        )
        return f" {self.kind} ".join(parts)


class And(_Joined):
    """Rows that are in every one of several predicates."""

    kind = "and"
    _joined = np.logical_and


class Or(_Joined):
    """Rows that are in one or more of several predicates."""

    kind = "or"
    _joined = np.logical_or


@dataclass(frozen=True)
class Not(Predicate):
    """All other rows; those whose covariate is missing are among them.

    So "not age < 30" has rows without an age, and "age >= 30" has none of them.
    """

    kind = "not"
    part: Predicate

    @property
    def _inside(self) -> tuple[Predicate, ...]:
        return (self.part,)

    @property
    def formula(self) -> str:
        """Such as `age is not missing`, or `not (age < 30 or age > 60)`."""
        part = self.part
        if isinstance(part, Missing):
            return f"{quoted(part.name)} is not missing"
        has_two_ends = isinstance(part, Between) and math.isfinite(part.high - part.low)
        joined = has_two_ends or isinstance(part, _Joined)
        return f"not ({part.formula})" if joined else f"not {part.formula}"

    def __invert__(self) -> Predicate:
        return self.part

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows outside the part, (n,)."""
        return ~self.part.rows(points)

    def __str__(self) -> str:
        return f"not ({self.part})"


def _parts(predicate: Predicate, joined: type[_Joined]) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, joined) else (predicate,)


def all_of(predicates: Iterable[Predicate]) -> Predicate:
    """Rows inside all of some predicates: none means everywhere, one is left as it is."""
    parts = [part for predicate in predicates for part in _parts(predicate, And)]
    parts = [part for part in parts if not isinstance(part, Everywhere)]
    if not parts:
        return Everywhere()
    return parts[0] if len(parts) == 1 else And(tuple(parts))


@dataclass(frozen=True)
class _OfOneColumn(Predicate):
    """A predicate that reads one column: how it compares, and what with."""

    name: str

    def __post_init__(self) -> None:
        for value in self._compared[1]:
            _refuse_no_value(value)

    @property
    def _compared(self) -> tuple[str, tuple[Any, ...]]:
        """The sign, and the values that the column is compared with."""
        return "==", ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset([self.name])

    @property
    def formula(self) -> str:
        return f"{quoted(self.name)} {self._asked()}"

    def __str__(self) -> str:
        return f"{self.name} {self._in_words()}"

    def rows(self, points: Points) -> BoolArray:
        column = column_of(points, self.name)
        sign, values = self._compared
        if column.is_category and sign in ("==", "!="):
            # Some rows of a file need not have every level of a category.
            places = [position_of(column, value) for value in values]
            codes: list[float] = [NO_POSITION if place is None else place for place in places]
        else:
            codes = [code_of(column, value, sign) for value in values]
        return np.asarray(self._marked(column, codes))

    def check(self, points: Points) -> None:
        column = column_of(points, self.name, prediction=False)
        sign, values = self._compared
        for value in values:
            code_of(column, value, sign)

    def _asked(self) -> str:
        """What follows the name in a formula."""
        sign, values = self._compared
        return f"{sign} {written(values[0])}"

    def _in_words(self) -> str:
        """What follows the name in reading words."""
        sign, values = self._compared
        return f"{'=' if sign == '==' else sign} {_read(values[0])}"

    def _marked(self, column: Column, codes: list[float]) -> Any:
        """Mark the rows inside, (n,)."""
        return np.isin(column.values, codes)


@dataclass(frozen=True)
class Level(_OfOneColumn):
    """Rows with one value, none where a category lacks it; `Missing` has those without a value."""

    kind = "level"
    level: Any

    @property
    def _compared(self) -> tuple[str, tuple[Any, ...]]:
        return "==", (self.level,)


@dataclass(frozen=True)
class OneOf(_OfOneColumn):
    """Rows with one of several values; in reading words, at most three are named."""

    kind = "one of"
    levels: tuple[Any, ...]

    @property
    def _compared(self) -> tuple[str, tuple[Any, ...]]:
        return "==", self.levels

    def _asked(self) -> str:
        return f"in ({', '.join(map(written, self.levels))})"

    def _in_words(self) -> str:
        some = ", ".join(_read(level) for level in self.levels[:MAX_NAMED])
        more = len(self.levels) - MAX_NAMED
        return f"= any of {some}{f' and {more} more' if more > 0 else ''}"


@dataclass(frozen=True)
class Compared(_OfOneColumn):
    """A covariate against a value; a missing value satisfies no comparison."""

    kind = "compared"
    sign: str
    value: Any

    def __post_init__(self) -> None:
        checked_choice(self.sign, "sign", tuple(OPERATORS))
        super().__post_init__()

    @property
    def _compared(self) -> tuple[str, tuple[Any, ...]]:
        return self.sign, (self.value,)

    def _marked(self, column: Column, codes: list[float]) -> Any:
        return OPERATORS[self.sign](column.values, codes[0]) & ~_missing_rows(column)


@dataclass(frozen=True)
class Missing(_OfOneColumn):
    """Rows without a value, also where missing values are a level; predictions have none such."""

    kind = "missing"

    def _asked(self) -> str:
        return "is missing"

    def _in_words(self) -> str:
        return "missing"

    def _marked(self, column: Column, codes: list[float]) -> Any:  # noqa: ARG002
        return _missing_rows(column)


@dataclass(frozen=True)
class Between(_OfOneColumn):
    """Rows whose number is at least `low` and below `high`."""

    kind = "between"
    low: float
    high: float
    text: str
    holds: Kind = "number"

    def _asked(self) -> str:
        """One comparison for each end that there is."""
        ends = ((">=", self.low), ("<", self.high))
        asked = [f"{sign} {self._end(end)}" for sign, end in ends if math.isfinite(end)]
        return f" and {quoted(self.name)} ".join(asked) or "is not missing"

    def _end(self, end: float) -> str:
        if self.holds == "date":
            return written(date_text(end))
        return str(int(end)) if end == int(end) and abs(end) < 1e15 else repr(float(end))

    def _in_words(self) -> str:
        return self.text

    def _marked(self, column: Column, codes: list[float]) -> Any:  # noqa: ARG002
        return (column.values >= self.low) & (column.values < self.high)


def _refuse_no_value(value: Any) -> None:
    """Refuse what no cell of a file holds: a list, an array, or a number that is not finite."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None:
        raise InputError("a level is a value; Missing(name) stands for rows without one")
    if not isinstance(value, Hashable):
        kind = f"text, a number, true, false or a date, not a {type(value).__name__}"
        raise InputError(f"a value to compare with is {kind}", argument="where", value=value)
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        hint = "None stands for missing values" if value != value else None
        problem = "a value to compare with must be finite, not {value}"
        raise InputError(problem, argument="where", value=value, hint=hint)


def _read(value: object) -> str:
    """A value for people; in quotes where nothing of it can be seen."""
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    return written(text) if is_blank(text) else text


def as_predicate(where: object) -> Predicate:
    """A mapping of covariates to values (a list: any of them; None: missing) as a predicate."""
    if where is None:
        return Everywhere()
    if isinstance(where, Predicate):
        return where
    if not isinstance(where, Mapping):
        what = "text such as 'age >= 65' or a mapping such as {'race': 'Black'}"
        problem = f"a condition is {what}, not a {type(where).__name__}"
        raise InputError(problem, argument="where", value=where)
    return all_of(_of_covariate(str(name), value) for name, value in where.items())


def _of_covariate(name: str, value: object) -> Predicate:
    if value is None:
        return Missing(name)
    if isinstance(value, tuple) and len(value) == 2:
        raise InputError(
            "{name}={value} could be a range or two values; write a list for any of them, or text "
            "such as 'age >= 65 and age < 85'",
            argument="where",
            value=value,
            name=name,
        )
    several = isinstance(value, list | tuple | set | frozenset)
    return OneOf(name, tuple(value)) if several else Level(name, value)  # type: ignore[arg-type]


def column_of(points: Points, name: object, *, prediction: bool = True) -> Column:
    """Find a covariate, or the prediction, by name; refuse a name that neither has."""
    known = [column.name for column in points.columns]
    if not isinstance(name, str):
        problem, example = "a covariate is named by text, not {value}", (known or ["age"])[0]
        raise InputError(problem, argument="name", value=name, hint=f"such as {example!r}")
    if name in known:
        return points.columns[known.index(name)]
    if prediction and name in (PREDICTION, OTHER_NAME):
        return Column(PREDICTION, "number", points.p)
    offered = [*known, PREDICTION] if prediction else known
    hint = did_you_mean(name, offered) if offered else "there are none"
    hint += in_backticks(name, known)
    raise InputError("there is no covariate {value}", value=name, hint=hint)


def _missing_rows(column: Column) -> BoolArray:
    """Mark the rows without a value, also where missing values are a level of their own, (n,)."""
    last = len(column.levels) - 1
    missing = column.missing
    return missing | (column.values == last) if is_missing_level(column, last) else missing


def is_missing_level(column: Column, code: int) -> bool:
    """Whether a category's level stands for missing values; such a level is put last."""
    if not column.is_category or not 0 <= code == len(column.levels) - 1:
        return False
    last = str(column.levels[code])
    return last.startswith("(") and last.strip("()") == "missing"


def position_of(column: Column, value: object) -> int | None:
    """The position of a category's level, by value, text or code; None if it has none.

    >>> codes = Column("code", "category", np.array([0, 1]), ("007", "7"))
    >>> position_of(codes, 7), position_of(codes, WrittenNumber("007")), position_of(codes, 8)
    (1, 0, None)
    """
    text = value.text if isinstance(value, WrittenNumber) else str(value)
    by_value = [k for k, level in enumerate(column.levels) if level == value]
    by_text = [k for k, level in enumerate(column.levels) if str(level) == text]
    by_code = [k for k, code in enumerate(column.codes) if code == value or str(code) == text]
    # 007 is not 7 where both are levels: a number in a formula is taken as it was written.
    by_level = by_text + by_value if isinstance(value, WrittenNumber) else by_value + by_text
    return next(iter(by_level + by_code), None)


def code_of(column: Column, value: Any, sign: str = "==") -> float:
    """A value as the column holds it; refuses what cannot be compared with the column."""
    if column.is_category:
        if sign not in ("==", "!="):
            raise InputError(
                f"{{column}} is a category, so it has no {sign}; use == or !=", column=column.name
            )
        position = position_of(column, value)
        if position is None:
            hint = did_you_mean(str(value), [str(level) for level in column.levels])
            problem = "{column} has no level {value}"
            raise InputError(problem, column=column.name, value=value, hint=hint)
        return position
    if column.kind == "date":
        return _days(column, value)
    if isinstance(value, str) or not isinstance(value, int | float | np.number | np.bool_):
        problem = f"{{column}} is a {column.kind}; compare it with one, not {{value}}"
        raise InputError(problem, column=column.name, value=value)
    return float(value)


def _days(column: Column, value: Any) -> float:
    """A date or time as days since 1970-01-01."""
    text = str(value) if isinstance(value, date | np.datetime64) else value
    if isinstance(text, str) and ISO.fullmatch(text.strip()):
        try:
            instant = np.datetime64(text.strip().replace(" ", "T"), "us").astype(int)
        except ValueError:
            pass  # such as the 31st of February
        else:
            return float(instant) / MICROSECONDS_PER_DAY
    problem = "{column} is a date; compare it with one, as in '2026-01-31', not {value}"
    raise InputError(problem, column=column.name, value=value)


def value_of(column: Column, code: float) -> object:
    """What a column holds, as it is written: a level, a number, or a date as text."""
    if column.is_category:
        return column.levels[int(code)]
    return date_text(float(code)) if column.kind == "date" else float(code)


def date_text(days: float) -> str:
    """Days since 1970-01-01 as text that is read back to the same number.

    >>> date_text(20_484.0), date_text(20_484.25)
    ('2026-01-31', '2026-01-31T06:00:00')
    """
    instant = str(np.datetime64(round(days * MICROSECONDS_PER_DAY), "us"))
    return instant.removesuffix(".000000").removesuffix("T00:00:00")


def cut_of(column: Column, parts: int = TENTHS) -> tuple[Predicate, ...]:
    """Cut one covariate: levels of a category or of few numbers, parts of other numbers."""
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    cut: list[Predicate] = []
    if column.kind in ("number", "date") and values.size > TENTHS:
        cut += parts_of(column, parts)
    elif values.size > 1:
        number = max(CUT_LEVELS, int(np.sum(counts >= FREQUENT * len(column))))
        frequent = values[np.argsort(-counts, kind="stable")][:number]
        cut += [level_of(column, value) for value in frequent]
    return (*cut, Missing(column.name)) if column.missing.any() else tuple(cut)


def level_of(column: Column, code: float) -> Predicate:
    """The rows of a column with one value."""
    if is_missing_level(column, int(code)):
        return Missing(column.name)
    return Level(column.name, value_of(column, code))


def parts_of(column: Column, parts: int) -> list[Between]:
    """Cut a number into parts of about equal size that share no value; fewer where values tie."""
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / max(int(counts.sum()), 1)
    part = np.minimum((middle * parts).astype(int), parts - 1)
    first = np.flatnonzero(np.diff(part, prepend=-1))
    last = np.append(first[1:], values.size) - 1
    cuts = [_cut(column, float(values[k - 1]), float(values[k])) for k in first[1:]]
    if column.kind == "date" or not cuts or bool(np.all(values == np.round(values))):
        shown = _shown_apart(column, np.unique(values[[*first, *last]]).tolist())
        ends = [(shown[values[k]], shown[values[m]]) for k, m in zip(first, last, strict=True)]
    else:
        least, most = float(values[0]), float(values[-1])
        low = next(text for text in _shorter(column, least) if float(text) <= cuts[0])
        high = next(text for text in _shorter(column, most) if float(text) >= cuts[-1])
        ends = list(pairwise([low, *(column.shown(cut, ALL_DIGITS) for cut in cuts), high]))
    texts = [
        f"{low} to {high}" if start < stop else f"= {column.shown(values[start], ALL_DIGITS)}"
        for start, stop, (low, high) in zip(first, last, ends, strict=True)
    ]
    bounds = pairwise([-np.inf, *cuts, np.inf])
    parted = zip(bounds, texts, strict=False)
    return [Between(column.name, *ends, text, column.kind) for ends, text in parted]


def _shown_apart(column: Column, values: list[float]) -> dict[float, str]:
    """Values in as few digits as tell them all apart."""
    for digits in (4, 6, 9, ALL_DIGITS):
        texts = {value: column.shown(value, digits) for value in values}
        if len(set(texts.values())) == len(values):
            break
    return texts


def _shorter(column: Column, value: float) -> Iterator[str]:
    """A value in ever more digits; the last text is the value itself."""
    return (column.shown(value, digits) for digits in range(FEW_DIGITS, ALL_DIGITS + 1))


def _cut(column: Column, below: float, value: float) -> float:
    """The shortest number that tells a value from the one below it: above that, not above this."""
    if column.kind == "date":
        return value
    for places in range(MOST_PLACES):
        short = math.floor(value * 10.0**places) / 10.0**places
        if below < short <= value:
            return short
    return value
