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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    """Where labelled rows lie: some of them as places, and the ends of their heights."""

    features: Features
    labelled: Points
    places: FloatArray
    limit: float
    ends: dict[ColumnName, tuple[float, float]]

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
        limit = max(LEAST, FAR * (usual if np.isfinite(usual) else 0.0))
        farther = math.log(BEYOND * max(len(features.scales), 1))
        margin = max(EDGE, farther / max(len(labelled), 1))
        heights = {name: own[~np.isnan(own)] for name, own in _heights(features, labelled).items()}
        ends = {
            n: (own.min() - margin, own.max() + margin) for n, own in heights.items() if own.size
        }
        return cls(features, labelled, places, limit, ends)

    def lacks(self, points: Points) -> BoolArray:
        """Mark the rows that no labelled row resembles."""
        marked = np.asarray(_nearest(_numbers(self.features, points), self.places) > self.limit)
        for own, seen in zip(points.columns, self.labelled.columns, strict=True):
            if own.is_category:
                known = np.isin(np.arange(-1, len(own.levels)), seen.values)
                marked |= ~known[own.values + 1]
            elif not seen.missing.any():
                marked |= own.missing
        heights = _heights(self.features, points)
        for name, (low, high) in self.ends.items():
            marked |= (heights[name] > high) | (heights[name] < low)
        return marked

    def gaps(self, points: Points) -> Iterator[tuple[Place, BoolArray]]:
        """Name the parts that no labelled row resembles, and mark their rows; each row once."""
        left = self.lacks(points)
        for (name, level, side, bound), rows in self._reasons(points, left.copy()):
            if (left & rows).any():
                yield (name, level, side, bound), left & rows
                left = left & ~rows

    def _reasons(self, points: Points, marked: BoolArray) -> Iterator[tuple[Place, BoolArray]]:
        pairs = list(zip(points.columns, self.labelled.columns, strict=True))
        for own, seen in pairs:
            if own.is_category:
                for code in np.setdiff1d(own.values[marked], seen.values):
                    place = ("missing", None) if code < 0 else ("level", own.levels[int(code)])
                    yield (own.name, place[1], place[0], None), own.values == code
            elif not seen.missing.any():
                yield (own.name, None, "missing", None), own.missing
        numbers = [(a.name, a.values, b.values) for a, b in pairs if not a.is_category]
        for name, values, ours in [*numbers, (PREDICTION, points.p, self.labelled.p)]:
            present = ours[~np.isnan(ours)]
            if present.size:
                low, high = float(present.min()), float(present.max())
                yield (name, None, "above", high), values > high
                yield (name, None, "below", low), values < low
        yield (None, None, "far", None), marked


Place = tuple[str | None, Any, str, float | None]  # name, level, side and bound of a gap


def _heights(features: Features, points: Points) -> dict[ColumnName, FloatArray]:
    """Where numbers lie between 0 and 1, (n,) each; NaN where they are missing."""
    readings = read(points, features.scales)
    numbers = {name: readings[name] for name in features.scales}
    return {name: np.where(own.missing, np.nan, own.height) for name, own in numbers.items()}


def _numbers(features: Features, points: Points) -> FloatArray:
    """Rows as numbers whose Euclidean distances count, (n, d)."""
    heights, readings = _heights(features, points).values(), read(points, {})
    numbers = [np.where(np.isnan(height), 0.5, height) for height in heights]
    levels = [own[0] for own in features.products if len(own) == 1 and isinstance(own[0], Is)]
    numbers += [level.of(readings[level.column]) / np.sqrt(2) for level in levels]
    return np.column_stack(numbers)


def _nearest(rows: FloatArray, places: FloatArray, *, apart: bool = False) -> FloatArray:
    """Distance of every row to the nearest place; `apart`: to the nearest other one, (n,)."""
    nearest = np.empty(rows.shape[0])
    places = places.astype(np.float32)  # distances below a thousandth are near either way
    squares = np.square(places).sum(axis=1)
    for first in range(0, rows.shape[0], AT_ONCE):
        some = rows[first : first + AT_ONCE].astype(np.float32)
        distances = np.square(some).sum(axis=1)[:, None] - 2 * some @ places.T + squares
        if apart:
            own = np.arange(some.shape[0])
            distances[own, first + own] = np.inf
        nearest[first : first + AT_ONCE] = distances.min(axis=1, initial=np.inf)
    return np.sqrt(np.maximum(nearest, 0.0))


@dataclass(frozen=True, eq=False)
class LookedAt:
    """Where labelled rows lie, and what of a population no labelled row resembles."""

    parts: tuple[tuple[Predicate, LabelledSupport], ...]
    points: Points
    weights: FloatArray

    @classmethod
    def of(cls, compared: RowPair, parts: Sequence[Predicate] = (Everywhere(),)) -> LookedAt:
        """Look among random rows of the population, for the rows that each part counts."""
        w = compared.plain_balance.weights
        supports = []
        for where in dict.fromkeys(parts):
            own = np.flatnonzero(where.rows(compared.labelled))
            some = compared.labelled.take(own)
            supports.append((where, LabelledSupport.of(compared.features, some, w[own])))
        rows = smallest_tickets(tickets(0, len(compared.population)), LOOKED_AT)
        return cls(tuple(supports), compared.population.take(rows), compared.weights[rows])

    def lacks(self, points: Points) -> BoolArray:
        """Mark rows that a part counts and that no labelled row of that part resembles."""
        marked = np.zeros(len(points), dtype=bool)
        for where, support in self.parts:
            rows = np.flatnonzero(where.rows(points) & ~marked)
            marked[rows] = support.lacks(points.take(rows))
        return marked

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """The parts of the population that no labelled row resembles, the largest first."""
        left = np.logical_or.reduce([where.rows(self.points) for where, _ in self.parts])
        total = float(self.weights[left].sum())
        sums: dict[Place, tuple[float, int]] = {}
        for where, support in self.parts:
            rows = np.flatnonzero(where.rows(self.points) & left)
            left[rows] = False
            for place, marked in support.gaps(self.points.take(rows)):
                mass, count = sums.get(place, (0.0, 0))
                mass += float(self.weights[rows][marked].sum())
                sums[place] = mass, count + int(marked.sum())
        gaps = [Gap(*place, mass / total, count) for place, (mass, count) in sums.items()]
        return tuple(sorted(gaps, key=lambda gap: -gap.share))
