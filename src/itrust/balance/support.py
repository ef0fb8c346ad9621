"""Which rows of a population does no labelled row resemble? Never sees a label.

A row is near its nearest labelled row if it is no farther from it than labelled rows are from each
other. Distances are Euclidean, numbers and predictions by their height between 0 and 1, and another
level is a distance of 1. What is usual among labelled rows counts by the weights that make them
like the population, so that a part where labelled rows are few but present is no gap. A number
beyond all those of labelled rows is far sooner: random rows would reach beyond by little.

A number about some rows is asked of those rows: what is far among 20,000 rows of everywhere is
usual among the fifty labelled rows of an island.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, smallest_tickets, tickets
from itrust.balance.pairs import RowPair
from itrust.balance.results import PREDICTION, Gap
from itrust.data import Everywhere, Points, Predicate
from itrust.terms import ColumnName, Features, Is, read

LOOKED_AT = 10_000  # rows of the population that are compared with labelled ones
PLACES = 2_000  # labelled rows that others are compared with, at most
AT_ONCE = 2_048
USUAL, FAR = 0.99, 1.5  # share of labelled rows, by weight, and times what is usual there
LEAST = 0.1  # of a covariate's range: as near as that is never far
# Beyond the labelled rows' own range of a number: so much of its height, or so far that one in
# so many random rows would be farther out, whichever number and end.
EDGE, BEYOND = 0.02, 200


@dataclass(frozen=True, eq=False)
class LabelledSupport:
    """Where labelled rows lie."""

    features: Features
    places: FloatArray
    limit: float
    margin: float
    labelled: Points

    @classmethod
    def of(cls, features: Features, labelled: Points, weights: FloatArray) -> LabelledSupport:
        """Settle how far is far."""
        rows = np.arange(len(labelled))
        if rows.size > PLACES:
            rows = np.sort(np.random.default_rng(0).permutation(rows.size)[:PLACES])
        places = _numbers(features, labelled.take(rows))
        nearest = _nearest(places, places, apart=True)
        order = np.argsort(nearest)
        mass = np.cumsum(weights[rows][order])
        usual = float(nearest[order][np.searchsorted(mass, USUAL * mass[-1])]) if rows.size else 0.0
        usual = usual if np.isfinite(usual) else 0.0
        farther = math.log(BEYOND * max(len(features.scales), 1))
        margin = max(EDGE, farther / max(len(labelled), 1))
        return cls(features, places, max(LEAST, FAR * usual), margin, labelled)

    def lacks(self, points: Points) -> BoolArray:
        """Mark the rows that no labelled row resembles."""
        marked = np.asarray(_nearest(_numbers(self.features, points), self.places) > self.limit)
        for own, seen in zip(points.columns, self.labelled.columns, strict=True):
            if own.is_category:
                known = np.isin(np.arange(-1, len(own.levels)), seen.values)
                marked |= ~known[own.values + 1]
            elif not seen.missing.any():
                marked |= own.missing
        here, there = (_heights(self.features, some) for some in (self.labelled, points))
        for name, height in there.items():
            seen_heights = here[name][~np.isnan(here[name])]
            if seen_heights.size:
                low, high = seen_heights.min() - self.margin, seen_heights.max() + self.margin
                marked |= (height > high) | (height < low)
        return marked

    def gaps(self, points: Points, marked: BoolArray, weights: FloatArray) -> tuple[Gap, ...]:
        """Name the parts that no labelled row resembles, the largest first."""
        total, left = float(weights.sum()), marked.copy()
        found: list[Gap] = []

        def told(name: str | None, level: Any, side: str, bound: float | None, own: Any) -> None:
            rows = left & own
            if rows.any():
                share = float(weights[rows].sum()) / total
                found.append(Gap(name, level, side, bound, share, int(rows.sum())))
                left[rows] = False

        pairs = list(zip(points.columns, self.labelled.columns, strict=True))
        for own, seen in pairs:
            if own.is_category:
                for code in np.setdiff1d(own.values[left], seen.values):
                    level = None if code < 0 else own.levels[int(code)]
                    side = "missing" if code < 0 else "level"
                    told(own.name, level, side, None, own.values == code)
            elif not seen.missing.any():
                told(own.name, None, "missing", None, own.missing)
        numbers = [(a.name, a.values, b.values) for a, b in pairs if not a.is_category]
        for name, values, ours in [*numbers, (PREDICTION, points.p, self.labelled.p)]:
            present = ours[~np.isnan(ours)]
            if present.size:
                low, high = float(present.min()), float(present.max())
                told(name, None, "above", high, values > high)
                told(name, None, "below", low, values < low)
        told(None, None, "far", None, left)
        return tuple(sorted(found, key=lambda gap: -gap.share))


def _heights(features: Features, points: Points) -> dict[ColumnName, FloatArray]:
    """Where numbers lie between 0 and 1, (n,) each; NaN where they are missing."""
    readings = read(points, features.scales)
    return {
        name: np.where(readings[name].missing, np.nan, readings[name].height)
        for name in features.scales
    }


def _numbers(features: Features, points: Points) -> FloatArray:
    """Rows as numbers whose Euclidean distances count, (n, d)."""
    heights, readings = _heights(features, points).values(), read(points, {})
    numbers = [np.where(np.isnan(height), 0.5, height) for height in heights]
    levels = [own[0] for own in features.products if len(own) == 1 and isinstance(own[0], Is)]
    numbers += [level.of(readings[level.column]) / np.sqrt(2) for level in levels]
    return np.column_stack(numbers)


def _nearest(rows: FloatArray, places: FloatArray, *, apart: bool = False) -> FloatArray:
    """Distance of every row to the nearest place; `apart`: to the nearest other one, (n,)."""
    found = np.empty(rows.shape[0])
    places = places.astype(np.float32)  # distances below a thousandth are near either way
    squares = np.square(places).sum(axis=1)
    for first in range(0, rows.shape[0], AT_ONCE):
        some = rows[first : first + AT_ONCE].astype(np.float32)
        distances = np.square(some).sum(axis=1)[:, None] - 2 * some @ places.T + squares
        if apart:
            own = np.arange(some.shape[0])
            distances[own, first + own] = np.inf
        found[first : first + AT_ONCE] = distances.min(axis=1, initial=np.inf)
    return np.sqrt(np.maximum(found, 0.0))


@dataclass(frozen=True, eq=False)
class LookedAt:
    """Where labelled rows lie, and what of a population no labelled row resembles."""

    parts: tuple[tuple[Predicate, LabelledSupport], ...]
    points: Points
    weights: FloatArray

    def lacks(self, points: Points) -> BoolArray:
        """Mark rows that a part counts and that no labelled row of that part resembles."""
        marked = np.zeros(len(points), dtype=bool)
        for where, support in self.parts:
            rows = np.flatnonzero(where.rows(points) & ~marked)
            marked[rows] = support.lacks(points.take(rows))
        return marked

    @cached_property
    def found(self) -> tuple[Gap, ...]:
        """The parts of the population that no labelled row resembles, the largest first."""
        counts = np.zeros(len(self.points), dtype=bool)
        for where, _ in self.parts:
            counts |= where.rows(self.points)
        total, left = float(self.weights[counts].sum()), counts
        told: dict[Gap, tuple[float, int]] = {}
        for where, support in self.parts:
            rows = np.flatnonzero(where.rows(self.points) & left)
            left = left.copy()
            left[rows] = False
            points, w = self.points.take(rows), self.weights[rows]
            lacks = support.lacks(points)
            for gap in support.gaps(points, lacks, w) if lacks.any() else ():
                same = replace(gap, share=0.0, rows=0)
                share, seen = told.get(same, (0.0, 0))
                told[same] = share + gap.share * float(w.sum()) / total, seen + gap.rows
        found = (replace(gap, share=share, rows=seen) for gap, (share, seen) in told.items())
        return tuple(sorted(found, key=lambda gap: -gap.share))


def looked_for_support(compared: RowPair, parts: Sequence[Predicate] = (Everywhere(),)) -> LookedAt:
    """Look for rows of the population that no labelled row resembles."""
    w = compared.plain_balance.weights
    supports = []
    for where in dict.fromkeys(parts):
        own = np.flatnonzero(where.rows(compared.labelled))
        some = compared.labelled if own.size == w.size else compared.labelled.take(own)
        supports.append((where, LabelledSupport.of(compared.features, some, w[own])))
    rows = smallest_tickets(tickets(0, len(compared.population)), LOOKED_AT)
    return LookedAt(tuple(supports), compared.population.take(rows), compared.weights[rows])
