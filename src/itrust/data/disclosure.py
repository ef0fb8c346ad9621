"""Disclosure control by cell keys: whatever is shown of a set of rows carries a noise of the set.

Every row has a key, a function of a seed and of what the row holds, never of its place. The sum of
the keys of a set's rows decides its noise. So the same set shows the same numbers everywhere, and
no difference of two shown numbers is exact: sets that differ in one row differ in all their noise.
Counts get whole numbers of mean 0, at most 4 in size; sums of terms in [0, 1] at most as much, and
means of 100 rows or more at most .01. P-values and verdicts are those of the exact numbers. It is
no differential privacy: pages with many seeds average out, so a seed belongs to its file. Where
none is given it is made of the labels and predictions themselves.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from itrust._core import AnyArray, BoolArray, FloatArray, checked_count, stirred
from itrust.data.column import Column
from itrust.data.rows import Rows

Words = NDArray[np.uint64]
MOST = 4  # rows that a count, or a sum of terms in [0, 1], is off at most
MOVED = 100  # rows of which a mean is off by 1 / this at most
LABELS, PREDICTIONS = 0.9, 0.1  # of that, so that their difference is not off by more
DIGITS = 3  # of numbers whose noise is not that of a sum


@dataclass(frozen=True)
class Cell:
    """A set of rows that is shown: how many they are, and the key that decides their noise.

    `heaviest` is the largest weight among them over the mean weight.
    """

    rows: int
    key: int
    heaviest: float = 1.0

    @classmethod
    def of(cls, rows: float, *content: object) -> Self:
        """A set whose rows are not at hand, known by exact numbers and words of it."""
        told = [f"{part:.10g}" if isinstance(part, float) else str(part) for part in content]
        return cls(round(rows), _number("|".join([f"{rows:.10g}", *told])))

    def unit(self, what: object) -> float:
        """A number in [-1, 1], none likelier than others: of this set and what is shown of it.

        >>> -1 <= Cell(10, 7).unit("rate") == Cell(10, 7).unit("rate") <= 1
        True
        """
        return _number(f"{self.key} {what}") / 2**63 - 1

    @property
    def count(self) -> int:
        """The number of rows, off by at most 4; 0 only of none."""
        bits = (_number(f"{self.key} rows") & 0xFF).bit_count()
        return max(self.rows + bits - MOST, 1) if self.rows else 0

    @property
    def reach(self) -> float:
        """The most that a mean of terms in [0, 1] is off."""
        few = MOST if self.rows < MOVED else min(MOST, self.rows / MOVED)
        return few * self.heaviest / max(self.rows, 1)

    def moved(self, what: object, share: float = 1.0) -> float:
        """How far a mean of terms in [0, 1] is off."""
        return share * self.reach * self.unit(what)

    def rate(self, value: float, what: object = "") -> float:
        """A rate of labels."""
        return min(max(value + self.moved(f"labels {what}", LABELS), 0.0), 1.0)

    def predicted(self, value: float, what: object = "") -> float:
        """A mean prediction."""
        return min(max(value + self.moved(f"predictions {what}", PREDICTIONS), 0.0), 1.0)

    def score(self, value: float, what: object) -> float:
        """A number that is no mean, such as a score or a slope: noise, three digits, its sign."""
        noise = self.reach * self.unit(what) * min(1.0, max(abs(value), 0.1))
        return short(same_side(value, value + noise, [0.0])) if math.isfinite(value) else value

    def interval(
        self,
        exact: Sequence[float],
        shown: float,
        *,
        slack: float | None = None,
        marks: Sequence[float | None] = (),
        what: object = "",
    ) -> tuple[float, float]:
        """Ends around a value that is shown, of (value, lower, upper) as they are.

        They hold those as they are, and lie on the same side of 0 and of the `marks`, both signs.
        """
        value, *ends = exact
        slack = self.reach if slack is None else slack
        known = [0.0, *(sign * mark for mark in marks if mark for sign in (-1, 1))]
        out = []
        for sign, end in zip((-1, 1), ends, strict=True):
            part = (1 + self.unit(f"end {sign} {what}")) / 2  # of what is added, keyed as well
            moved = shown + (end - value) + sign * slack * (1 + part / 2)
            out.append(same_side(end, moved, known, 0.25 + part / 2))
        return out[0], out[1]


def same_side(exact: float, moved: float, marks: Iterable[float], part: float = 0.5) -> float:
    """A moved number on the same side of all marks as the exact one.

    >>> same_side(0.2, -0.1, [0.0]), same_side(-0.2, -0.1, [0.0])
    (0.1, -0.1)
    """
    if not (math.isfinite(exact) and math.isfinite(moved)):
        return exact if math.isinf(exact) else moved
    for mark in sorted(marks, key=lambda own: -abs(own - exact)):  # the nearest has the last word
        if (exact >= mark) != (moved >= mark) or (exact <= mark) != (moved <= mark):
            moved = mark + (exact - mark) * part
    return moved


def short(value: float, digits: int = DIGITS) -> float:
    """A number with few digits."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value


def short_pvalue(value: float, alpha: float) -> float:
    """A p-value with one digit, on its side of alpha: more would tell the sum it is made of.

    >>> [round(short_pvalue(p, 0.05), 6) for p in (0.0234, 0.0504)], short_pvalue(0.0497, 0.04)
    ([0.02, 0.051], 0.05)
    """
    told = short(value, 1)
    return told if (told <= alpha) == (value <= alpha) else alpha * (1 if value <= alpha else 1.02)


@dataclass(frozen=True, eq=False)
class CellKeys:
    """Keys of rows at hand, of n in all, and the fewest rows of a set that is shown."""

    words: Words
    weights: FloatArray
    n: int
    min_cell: int

    @classmethod
    def of(cls, rows: Rows, min_cell: int, n: int | None = None, seed: int | None = None) -> Self:
        """Keys of some rows, by a seed or by one that is made of their labels and predictions."""
        codes = np.zeros(rows.n) if rows.codes is None else rows.codes
        shown = [("label", codes), *((f"p{k}", own) for k, own in enumerate(rows.predictions.T))]
        if seed is None:
            seed = int(row_words(shown, ()).sum(dtype=np.uint64))
        words = stirred(row_words(shown, rows.columns) ^ _word(f"seed {seed}"))
        weights = rows.weights_or_ones
        return cls(words, weights, n or rows.n, checked_count(min_cell, "min_cell"))

    @property
    def whole(self) -> int:
        """The key of all rows."""
        return int(self.words.sum(dtype=np.uint64))

    @property
    def share(self) -> float:
        """Rows at hand, of all."""
        return len(self.words) / self.n

    def cell(self, inside: BoolArray, rows: float | None = None) -> Cell:
        """The rows that are marked among those at hand; `rows` of them in all, if that is known."""
        here = int(np.count_nonzero(inside))
        count = here if self.share == 1 else round(here / self.share if rows is None else rows)
        key = int(self.words[inside].sum(dtype=np.uint64))
        own = self.weights[inside]
        heaviest = float(own.max() / own.mean()) if own.any() else 1.0
        return Cell(count, key if count == here else _number(f"{key} {count}"), heaviest)


def digest_of(parts: Iterable[Words]) -> str:
    """One text for some rows, whatever their order."""
    words = np.sort(np.concatenate([*parts, np.empty(0, dtype=np.uint64)]))
    return hashlib.sha256(words.astype("<u8").tobytes()).hexdigest()[:32]


def row_words(numbers: Iterable[tuple[str, AnyArray]], columns: Iterable[Column]) -> Words:
    """A number for every row, made of all that the row holds."""
    held = [(f"number {name}", _of_numbers(values)) for name, values in numbers]
    held += [(f"column {column.name}", _of_column(column)) for column in columns]
    total = np.zeros(held[0][1].size, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name, words in held:
            total += stirred(words ^ _word(name))
        return stirred(total)


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


def _number(text: str) -> int:
    raw = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:8]
    return int.from_bytes(raw, "little")


def _word(text: str) -> np.uint64:
    return np.uint64(_number(text))
