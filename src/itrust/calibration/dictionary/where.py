"""The rows that a check is about, as predicates."""

from __future__ import annotations

from typing import Any

from itrust.data import Everywhere, Level, Missing, Predicate, all_of

EVERYWHERE = Everywhere()


def level(name: str, value: Any) -> Predicate:
    """Rows with one value of a column."""
    return Level(name, value)


def absent(name: str) -> Predicate:
    """Rows without a value of a column."""
    return Missing(name)


def both(first: Predicate, second: Predicate) -> Predicate:
    """Rows for which both hold."""
    return all_of([first, second])


__all__ = ["EVERYWHERE", "Predicate", "absent", "both", "level"]
