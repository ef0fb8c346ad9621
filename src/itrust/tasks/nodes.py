"""What formulas are made of: parts that read covariates."""

from __future__ import annotations

from abc import ABC, abstractmethod


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


def number_text(value: float) -> str:
    """All digits, and no more.

    >>> number_text(2.0), number_text(0.123456789), number_text(1234567.891)
    ('2', '0.123456789', '1234567.891')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
