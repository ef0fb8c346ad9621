"""Functions of (p, x) that two sets of rows are compared and balanced on. Never sees a label.

Every number, and the prediction, has a trend, a quadratic and a cubic on a scale between ranks and
values; every category its levels; and there are products of trends and levels of two covariates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError
from itrust.balance.results import FeatureKind
from itrust.data import Column, Points
from itrust.recalibrate import HeightScale

MAX_LEVELS = 40
MIN_LEVEL_ROWS = 5
MAX_PRODUCTS = 300  # that are compared; of those the clearest differences are balanced
BALANCED_PRODUCTS = 60
PREDICTION = "p"
WIDE = math.sqrt(12)  # heights are uniform where ranks are: variance 1


@dataclass(frozen=True)
class Feature:
    """One function of (p, x)."""

    kind: FeatureKind
    parts: tuple[tuple[str | None, Any], ...]

    @property
    def is_product(self) -> bool:
        """Whether it reads two covariates."""
        return self.kind is FeatureKind.PRODUCT

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what it reads, `p` for the prediction."""
        return tuple(PREDICTION if name is None else name for name, _ in self.parts)


@dataclass(frozen=True, eq=False)
class Features:
    """All functions of some rows."""

    scales: dict[str | None, HeightScale]
    singles: tuple[Feature, ...]
    products: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, points: Points) -> Features:
        """Settle the functions from rows of both kinds together."""
        scales: dict[str | None, HeightScale] = {None: HeightScale.of(points.p)}
        found = list(_of_number(None, scales[None]))
        for column in points.columns:
            if column.is_category:
                found += [
                    Feature(FeatureKind.LEVEL, ((column.name, level),))
                    for level in _frequent(column)
                ]
                continue
            values = np.asarray(column.values, dtype=float)
            scales[column.name] = HeightScale.of(values)
            found += _of_number(column.name, scales[column.name])
            if 0 < column.missing.sum() < len(column):
                found.append(Feature(FeatureKind.MISSING, ((column.name, None),)))
        return cls(scales, tuple(found), tuple(_pairs(found)))

    def __len__(self) -> int:
        return len(self.singles) + len(self.products)

    def nearest(self, labelled: Points, population: Points) -> Features:
        """Keep the products that differ most between two sets of rows, to be balanced."""
        if len(self.products) <= BALANCED_PRODUCTS:
            return self
        here, there = (self.matrix(rows)[:, len(self.singles) :] for rows in (labelled, population))
        scale = there.std(axis=0)
        off = np.abs(here.mean(axis=0) - there.mean(axis=0))
        far = np.divide(off, scale, out=np.zeros(off.size), where=scale > 0)
        kept = np.sort(np.argsort(-far, kind="stable")[:BALANCED_PRODUCTS])
        return replace(self, products=tuple(self.products[k] for k in kept))

    @property
    def all(self) -> tuple[Feature, ...]:
        """All functions, those of one covariate first."""
        products = (
            Feature(FeatureKind.PRODUCT, self.singles[a].parts + self.singles[b].parts)
            for a, b in self.products
        )
        return (*self.singles, *products)

    def matrix(self, points: Points) -> FloatArray:
        """The functions of some rows."""
        columns = {column.name: column for column in points.columns}
        heights = {
            name: _height(scale, points.prediction if name is None else columns[name])
            for name, scale in self.scales.items()
        }
        found = np.empty((len(self), len(points)))
        for row, feature in zip(found, self.singles, strict=False):
            ((name, level),) = feature.parts
            match feature.kind:
                case FeatureKind.TREND:
                    row[:] = heights[name]
                case FeatureKind.QUADRATIC:
                    row[:] = np.square(heights[name]) - 1
                case FeatureKind.CUBIC:
                    row[:] = heights[name] * (np.square(heights[name]) - 1.8)
                case FeatureKind.LEVEL:
                    row[:] = has_level(columns[str(name)], level)
                case _:
                    row[:] = columns[str(name)].missing
        for row, (a, b) in zip(found[len(self.singles) :], self.products, strict=True):
            np.multiply(found[a], found[b], out=row)
        return found.T

    def plain(self) -> list[int]:
        """Positions of the trends and levels, which products are made of."""
        return _plain(self.singles)


def _height(scale: HeightScale, column: Column) -> FloatArray:
    """Where a number lies, of mean about 0 and variance about 1; 0 where it is missing."""
    missing = column.missing
    height = scale(np.where(missing, 0.0, column.values))
    return np.where(missing, 0.0, WIDE * (height - 0.5))


def _of_number(name: str | None, scale: HeightScale) -> list[Feature]:
    """As many powers as the number of values can tell apart."""
    kinds = (FeatureKind.TREND, FeatureKind.QUADRATIC, FeatureKind.CUBIC)
    return [Feature(kind, ((name, None),)) for kind in kinds[: scale.knots.size - 1]]


def _frequent(column: Column) -> list[Any]:
    """The levels that have rows enough, the most frequent ones where they are many."""
    codes, counts = np.unique(column.values[~column.missing], return_counts=True)
    enough = codes[counts >= MIN_LEVEL_ROWS], counts[counts >= MIN_LEVEL_ROWS]
    kept = np.sort(enough[0][np.argsort(-enough[1], kind="stable")][:MAX_LEVELS])
    return [column.levels[int(code)] for code in kept] if codes.size > 1 else []


def has_level(column: Column, level: Any) -> BoolArray:
    """Mark the rows of a level; none, where the column does not know it."""
    code = column.levels.index(level) if level in column.levels else -2
    return np.asarray(column.values == code)


def _plain(singles: Sequence[Feature]) -> list[int]:
    kinds = (FeatureKind.TREND, FeatureKind.LEVEL)
    return [k for k, feature in enumerate(singles) if feature.kind in kinds]


def _pairs(singles: Sequence[Feature]) -> list[tuple[int, int]]:
    """Trends with levels first, then trends, then levels, each of two covariates."""

    def rank(pair: tuple[int, int]) -> int:
        levels = sum(singles[k].kind is FeatureKind.LEVEL for k in pair)
        return (1, 0, 2)[levels]

    pairs = [
        (a, b) for a, b in combinations(_plain(singles), 2) if singles[a].names != singles[b].names
    ]
    return sorted(pairs, key=rank)[:MAX_PRODUCTS]


def shared_points(labelled: Points, population: Points) -> tuple[Points, Points]:
    """Both sets of rows with the covariates that they share, and with the same levels."""
    there = {column.name: column for column in population.columns}
    pairs = [(own, there[own.name]) for own in labelled.columns if own.name in there]
    left, right = [], []
    for own, other in pairs:
        if own.is_category != other.is_category:
            kinds = ["a category" if side.is_category else "a number" for side in (own, other)]
            raise InputError(
                "{column} is {own} in the labelled rows and {other} in the population; say what it "
                "is with categories= or numbers= on both sides",
                argument="population",
                column=own.name,
                details={"own": kinds[0], "other": kinds[1]},
            )
        if own.is_category and _are_spelt_apart(own.levels, other.levels):
            raise InputError(
                "levels of {column} are numbers on one side and text on the other ({own} in the "
                "labelled rows, {other} in the population); make them the same on both",
                argument="population",
                column=own.name,
                details={"own": repr(own.levels[0]), "other": repr(other.levels[0])},
            )
        if own.is_category and own.levels != other.levels:
            new = [level for level in other.levels if level not in set(own.levels)]
            levels = (*own.levels, *new)
            own, other = (replace(side.with_levels(levels)) for side in (own, other))
        left.append(own)
        right.append(other)
    return Points(labelled.p, tuple(left)), Points(population.p, tuple(right))


def _are_spelt_apart(own: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether levels agree as text, and none does as it is."""
    if not own or not other or set(own) & set(other):
        return False
    texts = [
        {f"{level:g}" if isinstance(level, float) else str(level) for level in side}
        for side in (own, other)
    ]
    return bool(texts[0] & texts[1])


def pooled(one: Points, other: Points) -> Points:
    """Two sets of rows with the same covariates and levels, one after the other."""
    columns = tuple(
        replace(a, values=np.concatenate([a.values, b.values]))
        for a, b in zip(one.columns, other.columns, strict=True)
    )
    return Points(np.concatenate([one.p, other.p]), columns)
