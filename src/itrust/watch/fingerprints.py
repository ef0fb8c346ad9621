"""Fingerprints of rows, whatever their order, by which a batch that came before is known again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from itrust._core import AnyArray, FloatArray
from itrust.data import Column

Words = NDArray[np.uint64]


def digest_of(parts: Iterable[Words]) -> str:
    """One text for some rows."""
    words = np.sort(np.concatenate([*parts, np.empty(0, dtype=np.uint64)]))
    return hashlib.sha256(words.astype("<u8").tobytes()).hexdigest()[:32]


def row_words(numbers: Iterable[tuple[str, FloatArray]], columns: Iterable[Column]) -> Words:
    """A number for every row, made of all that the row holds."""
    held = [(f"number {name}", _of_numbers(values)) for name, values in numbers]
    held += [(f"column {column.name}", _of_column(column)) for column in columns]
    total = np.zeros(held[0][1].size, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name, words in held:
            total += _stirred(words ^ _word(name))
        return _stirred(total)


def _of_numbers(values: AnyArray) -> Words:
    same = np.asarray(values, dtype=np.float64) + 0.0  # minus 0 is 0
    return np.where(np.isnan(same), np.nan, same).view(np.uint64)


def _of_column(column: Column) -> Words:
    if not column.is_category:
        return _of_numbers(column.values)
    words = np.array([*(_word(_text(level)) for level in column.levels), 0], dtype=np.uint64)
    return words[column.values]


def _text(level: Any) -> str:
    return f"{type(level).__name__} {level}"


def _word(text: str) -> np.uint64:
    raw = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:8]
    return np.uint64(int.from_bytes(raw, "little"))


def _stirred(words: Words) -> Words:
    """Mix the bits of 64-bit words (the finaliser of SplitMix64)."""
    found = words + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(found ^ (found >> np.uint64(31)), dtype=np.uint64)
