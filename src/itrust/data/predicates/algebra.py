"""The family of row predicates, and how they join: every one, any, none.

A predicate reads predictions and covariates, never labels. `str(predicate)` is in reading words
("region = south and age 30 to 40"), `predicate.formula` in those of the grammar of tasks
(`region == "south" and age >= 30 and age < 41`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from itrust._core import BoolArray, InputError, plain
from itrust.data.predicates.lookup import column_of
from itrust.data.rows import Points

MAX_DEPTH = 60  # texts and marks go down part by part


@dataclass(frozen=True)
class Predicate(ABC):
    """Some of the rows, by what is known without labels. Join predicates with `&`, `|` and `~`."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def names(self) -> frozenset[str]:
        """Columns that the predicate reads."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """The predicate in the grammar's words, as `itrust.tasks.parse` reads conditions."""

    @property
    def negated_formula(self) -> str:
        """The formula of all other rows; in parentheses only what has words between comparisons."""
        return f"not ({self.formula})" if self.is_joined else f"not {self.formula}"

    @property
    def is_joined(self) -> bool:
        """Whether the formula has words between several comparisons."""
        return False

    @property
    def depth(self) -> int:
        """How many predicates lie within each other, this one among them."""
        return 1

    def _refuse_depth(self) -> None:
        """Refuse a predicate that others are nested in too deeply."""
        if self.depth > MAX_DEPTH:
            raise InputError(
                "a condition of more than {most} conditions within each other is not taken",
                argument="where",
                details={"most": MAX_DEPTH},
            )

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
        yield self

    def check(self, points: Points) -> None:
        """Refuse covariates and levels that these rows do not have; `rows` marks none for those.

        Parameters
        ----------
        points : Points
            The rows that the predicate is meant for.
        """
        for leaf in self.leaves():
            leaf._check(points)

    def _check(self, points: Points) -> None:
        """Refuse what this leaf cannot be asked of these rows."""
        for name in self.names:
            column_of(points, name, prediction=False)

    def to_dict(self) -> dict[str, Any]:
        """Give kind and values, ready for JSON.

        Returns
        -------
        dict
            "kind" and what the predicate holds, by name.
        """
        found: dict[str, Any] = {"kind": self.kind}
        found |= {name: _ready(value) for name, value in vars(self).items()}
        return found

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

    @property
    def names(self) -> frozenset[str]:
        """None."""
        return frozenset()

    @property
    def formula(self) -> str:
        """Nothing: the grammar leaves out a condition that always holds."""
        return ""

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

    def __post_init__(self) -> None:
        self._refuse_depth()

    @property
    def depth(self) -> int:
        """One more than that of the deepest part."""
        return 1 + max(part.depth for part in self.parts)

    @property
    def is_joined(self) -> bool:
        """It has."""
        return True

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows that all parts, or any, mark, (n,)."""
        return np.asarray(self._joined.reduce([part.rows(points) for part in self.parts]))

    @property
    def names(self) -> frozenset[str]:
        """Those of all parts."""
        return frozenset[str]().union(*(part.names for part in self.parts))

    @property
    def formula(self) -> str:
        """The parts' formulas with the word between them."""
        return self._between(part.formula for part in self.parts)

    def __str__(self) -> str:
        return self._between(str(part) for part in self.parts)

    def _between(self, told: Iterable[str]) -> str:
        inside = (self._inside(part, text) for part, text in zip(self.parts, told, strict=True))
        return f" {self.kind} ".join(inside)

    def _inside(self, part: Predicate, text: str) -> str:
        """A part among others; "or" binds less than "and"."""
        return f"({text})" if isinstance(part, Or) and self.kind == "and" else text

    def leaves(self) -> Iterator[Predicate]:
        """Those of all parts."""
        for part in self.parts:
            yield from part.leaves()


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
    def names(self) -> frozenset[str]:
        """Those of the part."""
        return self.part.names

    @property
    def formula(self) -> str:
        """Such as `age is not missing`, or `not (age < 30 or age > 60)`."""
        return self.part.negated_formula

    def __post_init__(self) -> None:
        self._refuse_depth()

    @property
    def depth(self) -> int:
        """One more than that of the part."""
        return 1 + self.part.depth

    def __invert__(self) -> Predicate:
        return self.part

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows outside the part, (n,)."""
        return ~self.part.rows(points)

    def leaves(self) -> Iterator[Predicate]:
        """Those of the part."""
        return self.part.leaves()

    def __str__(self) -> str:
        return f"not ({self.part})"


def _parts(predicate: Predicate, joined: type[_Joined]) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, joined) else (predicate,)


def all_of(predicates: Iterable[Predicate]) -> Predicate:
    """Rows inside all of some predicates: none means everywhere, one is left as it is.

    >>> from itrust.data import Compared, Level
    >>> str(all_of([Level("region", "south"), Everywhere(), Compared("age", ">=", 30)]))
    'region = south and age >= 30'
    """
    parts = [part for predicate in predicates for part in _parts(predicate, And)]
    kept = tuple(part for part in parts if not isinstance(part, Everywhere))
    if not kept:
        return Everywhere()
    return kept[0] if len(kept) == 1 else And(kept)
