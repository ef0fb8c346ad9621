"""Smooth functions of (p, x) as columns of a matrix: lines, waves, levels and their products.

The features of a kernel that is a product over the prediction and the covariates of 1 + k: k is a
straight line plus a Gaussian on the scale below for a number, an exact match for a category. They
are the kernel's own factor in closed form, sorted by how much of it they carry, and cut to the
largest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from itrust._core import (
    LARGEST_FLOAT,
    FloatArray,
    ListWith,
    Maybe,
    Number,
    Numbers,
    Record,
    SavedLevel,
    inside,
    same_size,
    tuple_of,
    unfit,
)
from itrust.data import Column, Points
from itrust.recalibrate.saved import POSITION, SHARE
from itrust.terms import (
    COLUMN_LEVELS,
    Absent,
    Features,
    Is,
    Power,
    Term,
    UnitScale,
    Wave,
    fading,
    frequent_values,
)

MAX_FEATURES = 10_000
MAX_WAVES = 24
FEW_LEVELS = 6
FEW_COORDINATES = 6  # up to here products of three
SMALLEST = 1e-2
WAVE_SIZE = 0.5  # of a wave against a level: curves vary less than groups differ

Letter = tuple[int, int]  # coordinate and wave or level
PREDICTION = None

VALUE = Number(-LARGEST_FLOAT, LARGEST_FLOAT)
SCALE = Record.of(
    UnitScale,
    knots=Numbers(VALUE, at_least=1, rising=True),
    heights=Numbers(Number(0, 1), rising=True),
)


def refuse_misfits(coordinates: Sequence[Any], place: str, kinds: Mapping[str, str]) -> None:
    """Refuse coordinates that are not those of the prediction and of columns of these kinds."""
    if [own.name for own in coordinates] != [PREDICTION, *kinds]:
        unfit(place, "must be null and the names of columns, in their order")
    for at, own in enumerate(coordinates):
        own.refuse_misfit(inside(place, at), kinds.get(own.name or ""))


def refuse_odd_scale(scale: UnitScale | None, place: str, kind: str | None) -> None:
    """Refuse a number without a scale, a category with one, and heights that miss their knots."""
    if (scale is None) != (kind == "category"):
        unfit(place, f"must be {'a record' if scale is None else 'null: the column is a category'}")
    if scale is not None:
        size = scale.knots.size
        same_size(f"{place}.heights", scale.heights.size, f"{place}.knots", size)


@dataclass(frozen=True, eq=False)
class BasisCoordinate:
    """A covariate, or the prediction, and the functions it is read by.

    A row that none of the levels fits, or whose number is missing, has 0 in all features of the
    coordinate; missing values get a level of their own if there were any.
    """

    name: str | None  # None: the prediction
    scale: UnitScale | None
    levels: tuple[Any, ...]  # for a number: a level for missing values, or none
    sizes: tuple[float, ...]  # of the line and the waves, or of the levels

    @classmethod
    def of(cls, column: Column, name: str | None, width: float) -> BasisCoordinate:
        """Read the rows of a column, labels unseen."""
        if column.is_category:
            codes = np.sort(frequent_values(column)[0][:COLUMN_LEVELS])
            levels = tuple(column.levels[code] for code in codes)
            share = math.sqrt(FEW_LEVELS / max(len(levels), FEW_LEVELS))  # many have less each
            return cls(name, None, levels, (share,) * len(levels))
        values = np.asarray(column.values, dtype=float)
        waves = [fading(width, order) for order in range(1, MAX_WAVES + 1)]
        waves = [size for size in waves if size > SMALLEST]
        absent = (None,) if column.missing.any() else ()
        sizes = (WAVE_SIZE, *(WAVE_SIZE * size for size in waves), *(1.0 for _ in absent))
        return cls(name, UnitScale.of_heights(values), absent, sizes)

    def refuse_misfit(self, place: str, kind: str | None) -> None:
        """Refuse what cannot be of a column of this kind, None for the prediction."""
        refuse_odd_scale(self.scale, f"{place}.scale", kind)
        if self.scale is None:
            if None in self.levels:
                unfit(f"{place}.levels", "must be levels: the column is a category")
            same_size(f"{place}.sizes", len(self.sizes), f"{place}.levels", len(self.levels))
        elif self.levels not in ((), (None,)) or len(self.sizes) <= len(self.levels):
            unfit(place, "must have null or nothing as levels, and more sizes than levels")

    @property
    def terms(self) -> tuple[Term, ...]:
        """All functions of the coordinate, one for each of its sizes."""
        if self.scale is None:
            return tuple(Is(self.name, level) for level in self.levels)
        waves = range(1, len(self.sizes) - len(self.levels))
        absent = [Absent(self.name) for _ in self.levels]
        return (Power(self.name, 1), *(Wave(self.name, order) for order in waves), *absent)


@dataclass(frozen=True, eq=False)
class Basis:
    """The features of some coordinates: products of up to three of their functions."""

    coordinates: tuple[BasisCoordinate, ...]
    terms: tuple[tuple[Letter, ...], ...]
    sizes: FloatArray

    @classmethod
    def of(cls, points: Points, width: float, max_terms: int) -> Basis:
        """The largest features of the kernel with this width, at most `max_terms`; no labels."""
        coordinates = (
            BasisCoordinate.of(points.prediction, PREDICTION, width),
            *(BasisCoordinate.of(column, column.name, width) for column in points.columns),
        )

        def rank(term: tuple[tuple[Letter, ...], float]) -> tuple[bool, float, int]:
            """Lines and first waves come first, or crossed levels would drown all numbers."""
            (coordinate, function), *others = term[0]
            is_plain = not others and coordinates[coordinate].scale is not None and function < 2
            return not is_plain, -term[1], len(term[0])

        found = sorted(_terms(coordinates, max_terms), key=rank)[:max_terms]
        return cls(
            coordinates,
            tuple(letters for letters, _ in found),
            np.array([size for _, size in found]),
        )

    def __len__(self) -> int:
        return len(self.terms)

    @cached_property
    def _features(self) -> Features:
        functions = [coordinate.terms for coordinate in self.coordinates]
        products = tuple(tuple(functions[c][k] for c, k in letters) for letters in self.terms)
        scales = {c.name: c.scale for c in self.coordinates if c.scale is not None}
        return Features((*products, ()), scales)

    def design(self, points: Points) -> FloatArray:
        """The features of some rows and, last, a constant, (n, k + 1)."""
        matrix = self._features.matrix(points)
        matrix[:-1] *= self.sizes[:, None]
        return matrix.T

    def refuse_misfit(self, place: str, kinds: Mapping[str, str]) -> None:
        """Refuse what cannot be of columns of these kinds."""
        refuse_misfits(self.coordinates, f"{place}.coordinates", kinds)
        for at, letters in enumerate(self.terms):
            for number, (coordinate, function) in enumerate(letters):
                known = len(self.coordinates)
                if coordinate >= known or function >= len(self.coordinates[coordinate].sizes):
                    unfit(
                        inside(inside(f"{place}.terms", at), number),
                        f"names a function that the coordinates do not have: {coordinate}, "
                        f"{function}",
                    )
        same_size(f"{place}.sizes", self.sizes.size, f"{place}.terms", len(self.terms))


COORDINATE = Record.of(
    BasisCoordinate,
    scale=Maybe(SCALE),
    levels=tuple_of(Maybe(SavedLevel())),
    sizes=tuple_of(Number(0, 1), at_most=max(MAX_WAVES + 2, COLUMN_LEVELS)),
)
TERM = tuple_of(ListWith((POSITION, POSITION)), at_least=1, at_most=3)
BASIS = Record.of(
    Basis,
    coordinates=tuple_of(COORDINATE, at_least=1),
    terms=tuple_of(TERM, at_most=MAX_FEATURES),
    sizes=Numbers(SHARE),
)


def _terms(
    coordinates: Sequence[BasisCoordinate], max_terms: int
) -> list[tuple[tuple[Letter, ...], float]]:
    """Products of functions of different coordinates with their sizes, all that may count."""
    singles = [
        [((number, k), size) for k, size in enumerate(c.sizes) if size > SMALLEST]
        for number, c in enumerate(coordinates)
    ]
    found: list[tuple[tuple[Letter, ...], float]] = [
        ((letter,), size) for own in singles for letter, size in own
    ]
    for order in (2, 3) if len(coordinates) <= FEW_COORDINATES else (2,):
        floor = SMALLEST
        if len(found) > max_terms:
            floor = max(floor, sorted(size for _, size in found)[-max_terms])
        for chosen in combinations(singles, order):
            for combination in product(*([s for s in own if s[1] >= floor] for own in chosen)):
                size = float(math.prod(size for _, size in combination))
                if size >= floor:
                    found.append((tuple(letter for letter, _ in combination), size))
    return found
