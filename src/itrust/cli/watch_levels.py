"""Levels that a batch has and the reference lacks: checks of single levels do not see them.

The state keeps no level as text, only eight digits of a hash that differs from watch to watch:
enough to tell whether a level is new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from itrust._core import counted, printable
from itrust.watch import Watch

DIGITS = 8  # of a level
MAX_DIGITS = 40_000  # of all categories; the widest ones are not looked at where there are more
MAX_NAMED = 5
Levels = Mapping[str, str]  # by category, the digits of all its levels


def salt_of(watch: Watch) -> bytes:
    """What the hashes of a segment begin with; no two references share it."""
    text = f"{watch.seed} {watch.segments[-1].reference_digest}"
    return hashlib.sha256(text.encode()).digest()


def levels_of(rows: Any, salt: bytes) -> dict[str, str]:
    """The levels that occur in some rows, by category, as far as there is room for them."""
    found = {
        own.name: "".join(sorted(_digits(own.name, text, salt) for text in _counts(own)))
        for own in rows.columns
        if own.is_category
    }
    kept, room = {}, MAX_DIGITS
    for name in sorted(found, key=lambda name: len(found[name])):
        room -= len(found[name])
        if room < 0:
            break
        kept[name] = found[name]
    return kept


def is_levels(found: Any) -> bool:
    """Whether something is what `levels_of` gives."""
    return isinstance(found, dict) and all(
        isinstance(own, str) and len(own) % DIGITS == 0 and set(own) <= set("0123456789abcdef")
        for own in found.values()
    )


def new_level_notes(rows: Any, known: Levels, salt: bytes, min_cell: int) -> list[str]:
    """Say which levels of a batch the reference lacks, and who sees them; one note a column.

    Those of fewer than `min_cell` rows are counted and not named.
    """
    notes = []
    for column in rows.columns:
        if not column.is_category or column.name not in known:
            continue
        digits = known[column.name]
        reference = {digits[k : k + DIGITS] for k in range(0, len(digits), DIGITS)}
        new = {
            text: n
            for text, n in _counts(column).items()
            if _digits(column.name, text, salt) not in reference
        }
        if new:
            notes.append(_note(printable(column.name, lines=False), new, min_cell))
    return notes


def _note(column: str, new: Mapping[str, int], min_cell: int) -> str:
    one, least = len(new) == 1, counted(min_cell, "row")
    large = sorted((text for text in new if new[text] >= min_cell), key=lambda t: (-new[t], t))
    told = [
        f"{printable(text[:60], lines=False)} ({counted(new[text], 'row')})"
        for text in large[:MAX_NAMED]
    ]
    if len(large) > MAX_NAMED:
        told.append(f"and {len(large) - MAX_NAMED:,} more")
    if 0 < len(large) < len(new):
        told.append(f"and {counted(len(new) - len(large), 'other')} of fewer than {least}")
    which = f": {', '.join(told)}" if large else f", {'' if one else 'each '}in fewer than {least}"
    return (
        f"{column} has {'a value' if one else f'{len(new):,} values'} that the reference lacks"
        f"{which}; only checks that do not name its levels see {'it' if one else 'them'}"
    )


def _digits(column: str, level: str, salt: bytes) -> str:
    text = f"{column}\0{level}".encode("utf-8", "backslashreplace")
    return hashlib.blake2b(text, digest_size=DIGITS // 2, key=salt).hexdigest()


def _counts(column: Any) -> dict[str, int]:
    """How many rows have each level that occurs."""
    present = column.values[column.values >= 0]
    sizes = np.bincount(present, minlength=len(column.levels))
    return {str(level): int(n) for level, n in zip(column.levels, sizes, strict=True) if n}
