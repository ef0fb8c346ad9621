"""Two sets of rows, and the functions of (p, x) they are compared and balanced on. No labels here.

Every number, and the prediction, has a trend, a quadratic and a cubic on a scale between ranks and
values; every category its levels; and there are products of trends and levels of two covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, IntArray, smallest_tickets, tickets
from itrust.balance.weights import Balance, entropy_balance
from itrust.data import Points, RowsAtHand
from itrust.terms import (
    COLUMN_LEVELS,
    Absent,
    Features,
    Is,
    Power,
    Product,
    Shape,
    Term,
    UnitScale,
    columns_by_name,
    frequent_values,
    scales_of,
)

MIN_LEVEL_ROWS = 5
MAX_PRODUCTS = 300  # that are compared; of those the clearest differences are balanced
BALANCED_PRODUCTS = 60
SETTLING = 50_000  # rows that settle the scales of numbers


def balance_features(points: Points) -> Features:
    """Settle the functions from rows of both kinds together: of one covariate first, then two."""
    scales = scales_of(points, UnitScale.of_heights)
    terms: list[Term] = []
    for name, column in columns_by_name(points).items():
        if column.is_category:
            codes, counts = frequent_values(column)
            frequent = np.sort(codes[counts >= MIN_LEVEL_ROWS][:COLUMN_LEVELS])
            if codes.size > 1:
                terms += [Is(name, column.levels[int(code)]) for code in frequent]
            continue
        # As many powers as the number of values can tell apart.
        terms += [Power(name, order) for order in range(1, min(scales[name].knots.size, 4))]
        if 0 < column.missing.sum() < len(column):
            terms.append(Absent(name))
    singles = tuple((term,) for term in terms)
    pairs = combinations([product for product in singles if is_plain(product)], 2)
    products = [a + b for a, b in pairs if a[0].column != b[0].column]
    # Trends with levels first, then trends, then levels.
    products.sort(key=lambda both: (1, 0, 2)[sum(term.is_group for term in both)])
    return Features((*singles, *products[:MAX_PRODUCTS]), scales)


def is_plain(product: Product) -> bool:
    """Whether it is a trend or a level, which products are made of."""
    return len(product) == 1 and (product[0].shape is Shape.TREND or isinstance(product[0], Is))


def are_products(features: Features) -> BoolArray:
    """Which features read two covariates, (k,)."""
    return np.array([len(product) > 1 for product in features.products], dtype=bool)


def _with_farthest(features: Features, one: Points, other: Points) -> Features:
    """Keep the products that differ most between two sets of rows, to be balanced."""
    first = int(np.count_nonzero(~are_products(features)))
    if len(features) - first <= BALANCED_PRODUCTS:
        return features
    products = features.take(range(first, len(features)))
    here, there = products.matrix(one), products.matrix(other)
    scale, off = there.std(axis=1), np.abs(here.mean(axis=1) - there.mean(axis=1))
    far = np.divide(off, scale, out=np.zeros(off.size), where=scale > 0)
    chosen = np.sort(np.argsort(-far, kind="stable")[:BALANCED_PRODUCTS])
    return features.take([*range(first), *(first + chosen).tolist()])


@dataclass(frozen=True, eq=False)
class RowPair:
    """Labelled rows and rows of a population, ready to be balanced."""

    labelled: Points
    population: Points
    rows: RowsAtHand
    features: Features
    here: FloatArray
    there: FloatArray
    base: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, labelled: Points, rows: RowsAtHand, base: FloatArray) -> RowPair:
        """Settle and compute the features of both."""
        ours, theirs = shared_points(labelled, rows.points)
        one, other = (
            points.take(smallest_tickets(tickets(0, len(points)), SETTLING))
            for points in (ours, theirs)
        )
        features = _with_farthest(balance_features(pooled(one, other)), one, other)
        w = np.ones(len(theirs)) if rows.weights is None else rows.weights
        here, there = features.matrix(ours).T, features.matrix(theirs).T
        return cls(ours, theirs, rows, features, here, there, base, w)

    @property
    def singles(self) -> tuple[Product, ...]:
        """Features that read one covariate; they come first."""
        return tuple(product for product in self.features.products if len(product) == 1)

    def balance(self, here: FloatArray | None = None, there: FloatArray | None = None) -> Balance:
        """Weights that make the labelled rows like the population."""
        soft, ours = are_products(self.features), self.here
        means, spread = self.moments
        if here is not None and there is not None:
            ours = np.hstack([ours, here])
            more = self._moments_of(there)
            means, spread = (np.concatenate(pair) for pair in zip(self.moments, more, strict=True))
            soft = np.concatenate([soft, np.ones(here.shape[1], dtype=bool)])
        return entropy_balance(ours, means, spread, self.base, soft)

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the features in the population, (k,) each."""
        return self._moments_of(self.there)

    def _moments_of(self, there: FloatArray) -> tuple[FloatArray, FloatArray]:
        w = self.weights / self.weights.sum()
        means = w @ there
        return means, np.sqrt(np.maximum(w @ np.square(there) - means**2, 0.0))

    def take(self, here: IntArray, there: IntArray) -> RowPair:
        """Some of the labelled rows and some of those of the population."""
        return replace(
            self,
            labelled=self.labelled.take(here),
            population=self.population.take(there),
            here=self.here[here],
            there=self.there[there],
            base=self.base[here],
            weights=self.weights[there],
        )

    @cached_property
    def plain_balance(self) -> Balance:
        """Weights without features of a task."""
        return self.balance()


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
