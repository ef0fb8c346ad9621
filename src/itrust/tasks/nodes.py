"""What formulas are made of: parts that read covariates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar


class Node(ABC):
    """A part of a formula; its text is read back to the same part."""

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
    """A number in a formula.

    Parameters
    ----------
    value : float
        The number itself; its text has all digits.
    """

    value: float

    def __str__(self) -> str:
        small = abs(self.value) < 1e15
        return str(int(self.value)) if small and self.value == int(self.value) else repr(self.value)


@dataclass(frozen=True)
class TwoSides(Node, Generic[Side]):
    """Two parts of a formula and the sign between them.

    Parameters
    ----------
    left, right : Node
        On both sides of the sign.
    sign : {"+", "-", "*", "/", "**"}
        What is done with them.
    """

    left: Side
    sign: str
    right: Side

    @property
    def parts(self) -> tuple[Node, ...]:
        """Both sides."""
        return self.left, self.right
