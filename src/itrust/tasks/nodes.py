"""What formulas are made of: parts that read covariates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from itrust._core import InputError, checked_finite

MAX_DEPTH = 100  # texts, hashes and copies of formulas go down part by part, within Python's stack


class Node(ABC):
    """A part of a formula; its text is read back to the same part."""

    @cached_property
    def depth(self) -> int:
        """How many parts lie within each other, this one among them."""
        return 1 + max((part.depth for part in self.parts), default=0)

    def _refuse_depth(self) -> None:
        """Refuse a part that others are nested in too deeply."""
        if self.depth > MAX_DEPTH:
            raise InputError(
                "a formula of more than {most} parts within each other, such as a sum of so many "
                "terms, is not taken; take fewer, or a mean of a function of covariates",
                argument="task",
                details={"most": MAX_DEPTH},
            )

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def parts(self) -> tuple[Node, ...]:
        """What it is made of; nothing for the smallest parts."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """Covariates that it reads."""
        return frozenset[str]().union(*(part.names for part in self.parts))


Side = TypeVar("Side", bound=Node)


@dataclass(frozen=True)
class NumberNode(Node):
    """A number in a formula."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checked_finite(self.value, "task"))

    def __str__(self) -> str:
        small = abs(self.value) < 1e15
        return str(int(self.value)) if small and self.value == int(self.value) else repr(self.value)


@dataclass(frozen=True)
class TwoSides(Node, Generic[Side]):
    """Two parts of a formula and the sign between them."""

    left: Side
    sign: str
    right: Side

    def __post_init__(self) -> None:
        self._refuse_depth()

    @property
    def parts(self) -> tuple[Node, ...]:
        """Both sides."""
        return self.left, self.right
