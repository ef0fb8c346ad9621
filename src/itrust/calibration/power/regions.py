"""Regions that power is computed for: single parts of a covariate, and pairs of parts of two.

Everything is counted from predictions and covariates; labels are not looked at. Pairs explode with
the number of covariates, so only the first ones are crossed, numbers by their fifths, and only
pairs with at least 1 % of the rows are kept: at most 100 for two covariates. Where covariates are
very many, only the first ones are cut at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from itrust._core import FloatArray, IntArray
from itrust.calibration.power.results import SMALL_SHARE
from itrust.data import Column, Everywhere, Points, Predicate, cut_of

TENTHS, FIFTHS = 10, 5
MAX_CUT = 60  # covariates that are looked at one by one, the first ones
MAX_CROSSED = 20  # covariates that are crossed with one another, the first ones
NOWHERE = -1
Codes = NDArray[np.integer]  # small ones, for there may be many rows


@dataclass(frozen=True, eq=False)
class Cut:
    """Regions that share no row."""

    parts: tuple[Predicate, ...]
    codes: Codes
    pilot: Codes

    @classmethod
    def of(cls, parts: Sequence[Predicate], points: Points, pilot: Points) -> Cut:
        """Mark the rows of regions that share none."""
        return cls(tuple(parts), _codes(parts, points), _codes(parts, pilot))

    @property
    def shares(self) -> FloatArray:
        """Shares of the rows, (G,)."""
        return _counts(self.codes, len(self.parts)) / max(self.codes.size, 1)

    @property
    def members(self) -> csr_array:
        """1 where a row that stands for others lies inside a region, (G, m)."""
        rows = np.flatnonzero(self.pilot != NOWHERE)
        shape = len(self.parts), self.pilot.size
        return csr_array((np.ones(rows.size), (self.pilot[rows], rows)), shape=shape)

    def only(self, kept: IntArray) -> Cut:
        """Keep some of the regions."""
        parts = tuple(self.parts[k] for k in kept.tolist())
        new = _new_codes(len(self.parts), kept)
        return Cut(parts, new[self.codes], new[self.pilot])

    def crossed(self, other: Cut, min_share: float) -> Cut:
        """Pairs of regions with enough rows, and with one at least that stands for them."""
        wide = len(other.parts)
        number = len(self.parts) * wide
        codes, pilot = (
            np.where((a == NOWHERE) | (b == NOWHERE), NOWHERE, a * np.int64(wide) + b)
            for a, b in ((self.codes, other.codes), (self.pilot, other.pilot))
        )
        enough = _counts(codes, number) >= min_share * codes.size
        kept = np.flatnonzero(enough & (_counts(pilot, number) > 0))
        parts = tuple(self.parts[k // wide] & other.parts[k % wide] for k in kept.tolist())
        new = _new_codes(number, kept)
        return Cut(parts, new[codes], new[pilot])


def _codes(parts: Sequence[Predicate], points: Points) -> Codes:
    codes = np.full(len(points), NOWHERE, dtype=np.int16)
    for code, part in enumerate(parts):
        codes[part.rows(points)] = code
    return codes


def _new_codes(number: int, kept: IntArray) -> Codes:
    """Codes of the kept ones in a row, (number + 1,); the last place is that of -1."""
    new = np.full(number + 1, NOWHERE, dtype=np.int16)
    new[kept] = np.arange(kept.size)
    return new


def _counts(codes: Codes, number: int) -> IntArray:
    """How many rows lie in each region, (number,)."""
    return np.bincount(codes[codes != NOWHERE], minlength=number)


def cuts_of(points: Points, pilot: Points) -> Iterator[Cut]:
    """All rows, then every covariate by itself: levels of a category, tenths of a number."""
    yield Cut.of((Everywhere(),), points, pilot)
    for _, parts in islice(_with_parts(points), MAX_CUT):
        cut = Cut.of(parts, points, pilot)
        yield cut.only(np.flatnonzero(_counts(cut.pilot, len(cut.parts)) > 0))


def pairs_of(points: Points, pilot: Points) -> Iterator[Cut]:
    """Pairs of parts of two covariates with at least 1 % of the rows, numbers in fifths."""
    cuts = []
    for _, parts in islice(_with_parts(points, FIFTHS), MAX_CROSSED):
        cut = Cut.of(parts, points, pilot)
        cuts.append(cut.only(np.flatnonzero(cut.shares >= SMALL_SHARE)))
    for one, other in combinations(cuts, 2):
        yield one.crossed(other, SMALL_SHARE)


def left_out(points: Points) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the covariates of which no part, and no pair of parts, is looked at."""
    uncut = islice(_with_parts(points), MAX_CUT, None)
    uncrossed = islice(_with_parts(points, FIFTHS), MAX_CROSSED, None)
    return tuple(column.name for column, _ in uncut), tuple(column.name for column, _ in uncrossed)


def _with_parts(
    points: Points, parts: int = TENTHS
) -> Iterator[tuple[Column, tuple[Predicate, ...]]]:
    """Covariates that differ between rows, in order, and their parts."""
    for column in points.columns:
        found = cut_of(column, parts)
        if found:
            yield column, tuple(found)
