"""Levels that a batch has and the reference lacks: checks of single levels do not see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from itrust._core import counted, printable

MAX_KEPT = 1_000  # levels of a category; one with more is not looked at
MAX_NAMED = 5
Levels = Mapping[str, tuple[str, ...]]


def levels_of(rows: Any) -> dict[str, tuple[str, ...]]:
    """The levels of every category that occur in some rows, as text."""
    found = {own.name: tuple(_counts(own)) for own in rows.columns if own.is_category}
    return {name: levels for name, levels in found.items() if len(levels) <= MAX_KEPT}


def new_level_notes(rows: Any, known: Levels) -> list[str]:
    """Say which levels of a batch the reference lacks, and who sees them; one note a column."""
    notes = []
    for column in rows.columns:
        if not column.is_category or column.name not in known:
            continue
        reference = set(known[column.name])
        new = {text: n for text, n in _counts(column).items() if text not in reference}
        if not new:
            continue
        some = sorted(new, key=lambda text: (-new[text], text))
        told = [
            f"{printable(text[:60], lines=False)} ({counted(new[text], 'row')})"
            for text in some[:MAX_NAMED]
        ]
        if len(some) > MAX_NAMED:
            told.append(f"and {len(some) - MAX_NAMED:,} more")
        one = len(new) == 1
        notes.append(
            f"{printable(column.name, lines=False)} has {'a value' if one else 'values'} that the "
            f"reference lacks: {', '.join(told)}; only checks that do not name its levels see "
            f"{'it' if one else 'them'}"
        )
    return notes


def _counts(column: Any) -> dict[str, int]:
    """How many rows have each level that occurs."""
    present = column.values[column.values >= 0]
    sizes = np.bincount(present, minlength=len(column.levels))
    return {str(level): int(n) for level, n in zip(column.levels, sizes, strict=True) if n}
