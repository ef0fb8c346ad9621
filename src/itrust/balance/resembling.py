"""`resemblance`: is the labelled sample like the population? No label is used.

An exact test: which rows are labelled is permuted. If the labelled rows are drawn like the others,
every choice of n of all rows was equally likely to be the labelled ones. So the p-value is exact at
every size, for whatever functions of (p, x) are compared, as long as they were settled from all
rows together.

Which rows of a population does no labelled row resemble? A row is near its nearest labelled row if
it is no farther from it than labelled rows are from each other. Distances are Euclidean, numbers
and predictions by their height between 0 and 1, and another level is a distance of 1. What is usual
among labelled rows counts by the weights that make them like the population, so that a part where
labelled rows are few but present is no gap. A number beyond all those of labelled rows is far
sooner: random rows would reach beyond by little. A number about some rows is asked of those rows:
what is far among 20,000 rows of everywhere is usual among the fifty labelled rows of an island.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    as_generator,
    as_seed,
    checked_alpha,
    checked_count,
    counted,
    smallest_tickets,
    tickets,
)
from itrust.balance.weights import (
    PREDICTION,
    FeatureKind,
    Gap,
    Resemblance,
    RowDifference,
    RowPair,
    are_products,
    balance_features,
    pooled,
)
from itrust.data import (
    Design,
    Everywhere,
    Pilot,
    Points,
    Population,
    Predicate,
    Sample,
    Scan,
    checked_sample,
)
from itrust.engines import one_blas_thread
from itrust.terms import ColumnName, Features, Is, Product, Reading, columns_by_name, read

AT_HAND = 400_000  # rows of a population that are kept in memory; of smaller ones all are
TESTED_LABELLED, TESTED_POPULATION = 8_000, 16_000
MIN_ROWS = 10
WEIGHTS_NOTE = (
    "rows count by their weights: the test takes a random part of them that stands for all "
    "without weights"
)
CLUSTER_NOTE = (
    "the test takes one random row of each of some random clusters of the labelled rows, the "
    "larger the likelier, so that every row had the same chance"
)
FEW_NOTE = (
    "whether labelled rows are like the population could not be tested: of {side} only {few} can "
    "be compared, because of clusters and weights"
)
BATCH = 2**21  # marks of permuted rows at a time
TIE = 1e-9
TINY = 1e-12
RIDGE = 1e-6
LOOKED_AT = 10_000  # rows of the population that are compared with labelled ones
PLACES = 2_000  # labelled rows that others are compared with, at most
AT_ONCE = 2_048
USUAL, FAR = 0.99, 1.5  # share of labelled rows, by weight, and times what is usual there
LEAST = 0.1  # of a covariate's range: as near as that is never far
# Beyond the labelled rows' own range of a number: so much of its height, or so far that one in
# so many random rows would be farther out, whichever number and end.
EDGE, BEYOND = 0.02, 200


def resemblance(
    labelled: Sample,
    population: Population | Scan,
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> Resemblance:
    """Test whether labelled rows are like a population, on the prediction and the covariates.

    Exact: which rows are labelled is permuted, and the means of trends, quadratics, cubics, levels
    and products of all shared covariates are compared. No label is used, so the answer costs an
    estimate nothing. Of very many rows random ones are permuted, which keeps the p-value exact.

    Parameters
    ----------
    labelled : Sample
        Rows with labels, which are not looked at. Of clusters, the larger the likelier, one random
        row is tested; of rows with weights a random part that stands for all without them.
    population : Population or Scan
        The rows that a number is wanted for; those of files are read once. Where it contains the
        labelled rows, the test is somewhat conservative.
    alpha : float
        At which labelled rows are said to differ.
    draws : int
        Number of permutations.
    rng : int, Generator or None
        Seed to permute by; None takes a new one.

    Returns
    -------
    Resemblance
        P-value, differences in words, effective sample size of balancing weights, and parts of the
        population that no labelled row resembles.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(4_000, rng=0).sample
    >>> young = town.take((town.column("age").values < 40).nonzero()[0])
    >>> everyone = it.Population(town.p, {"age": town.column("age").values})
    >>> found = it.resemblance(young, everyone, rng=0)
    >>> found.differs, found.differences[0].name
    (True, 'age')
    """
    checked_sample(labelled)
    checked_alpha(alpha)
    checked_count(draws, "draws")
    rows = at_hand(population, labelled.names)
    with one_blas_thread():  # many small products: threads would wait for each other
        compared = RowPair.of(labelled.points, rows, labelled.weights_or_ones)
        return compare_rows(compared, labelled.design, alpha=alpha, draws=draws, rng=rng)


def at_hand(population: object, names: Sequence[str]) -> Pilot:
    """Rows of a population in memory: all, or random ones of very many."""
    if isinstance(population, Scan) and not population.several:
        shared = [name for name in names if name in population.names]
        return population.without_label().with_names(shared).pilot(AT_HAND)
    if not isinstance(population, Population) or population.several:
        problem = f"{{argument}} must be a Population(p, x), not a {type(population).__name__}"
        raise InputError(problem, argument="population", value=population)
    n = population.n
    return Pilot(population.points, population.weights, n, tickets(0, n)).first(AT_HAND)


def compare_rows(
    compared: RowPair, design: Design, *, alpha: float, draws: int, rng: Rng, is_needed: bool = True
) -> Resemblance:
    """Test and describe rows whose features are known: see `resemblance`.

    Too few rows are refused if the test is needed; else the p-value is NaN, and a note says why.
    """
    seed = as_seed(rng)
    random = as_generator(seed)
    notes = [] if design.rows_are_independent else [CLUSTER_NOTE]
    if design.weights is not None or compared.rows.weights is not None:
        notes.append(WEIGHTS_NOTE)
    ours = _independent(design, random)
    theirs = _thinned(compared.rows.weights, len(compared.population), random)
    ours, theirs = _some(ours, TESTED_LABELLED, random), _some(theirs, TESTED_POPULATION, random)
    few, pvalue = min(int(ours.size), int(theirs.size)), math.nan
    differences: list[RowDifference] = []
    if few >= MIN_ROWS:
        # Scales come from the rows that are permuted and no others, or they would tell who is who.
        both = pooled(compared.labelled.take(ours), compared.population.take(theirs))
        features = balance_features(both)
        matrix = features.matrix(both).T
        pvalue, *test = permutation_test(matrix, ours.size, are_products(features), draws, random)
        differences = _differences(compared, features, matrix, ours.size, test)
    else:
        is_ours, rows = ours.size < MIN_ROWS, counted(few, "row")
        side = "the labelled rows" if is_ours else "the population"
        if is_needed:
            problem = f"{rows} of {side} can be compared with the others; at least {MIN_ROWS}"
            argument = "labelled" if is_ours else "population"
            raise InputError(f"{problem} are needed", argument=argument, count=few)
        notes.append(FEW_NOTE.format(side=side, few=rows))
    balance = compared.plain_balance
    return Resemblance(
        pvalue=pvalue,
        differences=tuple(own for own in differences if max(own.pvalue, pvalue) <= alpha),
        compared=tuple(differences),
        n=len(compared.labelled),
        size=compared.rows.n,
        effective=balance.effective,
        trimmed=balance.trimmed,
        unbalanced=balance.unbalanced,
        gaps=LookedAt.of(compared).gaps,
        alpha=float(alpha),
        draws=draws,
        seed=seed,
        tested=(int(ours.size), int(theirs.size)),
        notes=tuple(notes),
    )


def _independent(design: Design, random: np.random.Generator) -> IntArray:
    """Labelled rows that are independent and stand for all without weights.

    A row of a large cluster is as likely to be taken as one of a small cluster: clusters are kept
    by their weight, and of each one row by its own.
    """
    if design.rows_are_independent:
        return _thinned(design.weights, design.n, random)
    w = np.ones(design.n) if design.weights is None else design.weights
    unit = design.drawn_together
    with np.errstate(divide="ignore"):
        clock = random.exponential(size=design.n) / w  # the first to ring is a row by its weight
    order = np.lexsort((clock, unit))
    rows = order[np.unique(unit[order], return_index=True)[1]]
    total = np.bincount(unit, w)[unit[rows]]
    return np.sort(rows[random.random(rows.size) * total.max() < total])


def _thinned(weights: FloatArray | None, n: int, random: np.random.Generator) -> IntArray:
    """Keep every row with a probability that its weight gives: what is left has none."""
    if weights is None:
        return np.arange(n)
    return np.flatnonzero(random.random(n) * weights.max() < weights)


def _some(rows: IntArray, size: int, random: np.random.Generator) -> IntArray:
    return rows if rows.size <= size else np.sort(random.permutation(rows)[:size])


def _differences(
    compared: RowPair, features: Features, matrix: FloatArray, labelled: int, test: list[FloatArray]
) -> list[RowDifference]:
    """The clearest comparison of every covariate, the clearest first, then one of products."""
    z, adjusted = test
    order = np.argsort(-np.abs(z), kind="stable").tolist()
    best: dict[ColumnName, int] = {}
    for k in order:
        if len(features.products[k]) == 1:
            best.setdefault(features.products[k][0].column, k)
    shown = list(best.values())
    product = next((k for k in order if len(features.products[k]) > 1), None)
    if product is not None and all(adjusted[k] > adjusted[product] for k in shown):
        shown.append(product)
    tested = {k: [matrix[:labelled, k], matrix[labelled:, k]] for k in shown}
    differences = [
        _difference(compared, features.products[k], tested[k], z[k], adjusted[k]) for k in shown
    ]
    return sorted(differences, key=lambda one: -abs(one.z))


def _difference(
    compared: RowPair, product: Product, tested: list[FloatArray], z: float, adjusted: float
) -> RowDifference:
    """What people are told of a feature; of a product, of the rows that were tested."""
    (term, *others), is_date = product, False
    if others:
        kind, sides, means = FeatureKind.PRODUCT, tested, [float(own.mean()) for own in tested]
    else:
        kind = FeatureKind.LEVEL if isinstance(term, Is) else FeatureKind.MISSING
        kind = kind if term.is_group else FeatureKind(term.shape.value)
        points = compared.labelled, compared.population
        columns = [columns_by_name(own)[term.column] for own in points]
        # What means are taken of: 0 and 1 for groups, a number as it is, NaN where missing.
        sides = [
            term.of(Reading(own, None))
            if term.is_group
            else np.where(own.missing, np.nan, own.values)
            for own in columns
        ]
        is_spread = kind in (FeatureKind.QUADRATIC, FeatureKind.CUBIC)
        weights = compared.base, compared.weights
        means = [_shown(own, w, is_spread) for own, w in zip(sides, weights, strict=True)]
        is_date = kind is FeatureKind.TREND and columns[0].kind == "date"
    return RowDifference(
        name=term.column or PREDICTION,
        kind=kind,
        level=next((term.level for term in product if isinstance(term, Is)), None),
        other=others[0].column or PREDICTION if others else None,
        labelled=means[0],
        population=means[1],
        z=float(z),
        pvalue=float(adjusted),
        rows=min(_fewest(own) for own in sides),
        is_date=is_date,
    )


def _fewest(values: FloatArray) -> int:
    """Fewest rows that a mean tells of: where most have one value, it tells how many have not."""
    most = int(np.unique(values, return_counts=True)[1].max(initial=0))
    others = values.size - most
    return others if 0 < others <= most else values.size


def _shown(values: FloatArray, weights: FloatArray, is_spread: bool) -> float:
    """What people are shown of a feature: a mean or share, or a standard deviation."""
    known = ~np.isnan(values)
    values, weights = values[known], weights[known]
    if not values.size or not weights.sum() > 0:
        return float("nan")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(values, weights=weights))
        if not is_spread:
            return mean
        return float(np.sqrt(np.average(np.square(values - mean), weights=weights)))


def permutation_test(
    features: FloatArray, labelled: int, is_product: BoolArray, draws: int, rng: np.random.Generator
) -> tuple[float, FloatArray, FloatArray]:
    """Permute which rows are labelled.

    Four statistics count: the largest difference of a feature of one covariate and of a product,
    and the sum of squares of all whitened differences of either kind. Each is turned into the rank
    it has among its own permutations, and the best rank is ranked again, ties by how far out it is:
    no correction is needed.
    """
    whole = features.shape[0]
    centred = features - features.mean(axis=0)
    spread = np.sqrt(np.square(centred).sum(axis=0) / max(whole - 1, 1))
    kept = spread > TINY * np.maximum(1.0, np.abs(features).max(axis=0))
    scale = np.where(kept, spread, 1.0)
    centred = np.where(kept, centred / scale, 0.0)
    # Means of n of N rows without replacement have variance (1 / n - 1 / N) S^2.
    error = np.sqrt(max(1 / labelled - 1 / whole, TINY))
    sums = _sums(centred, labelled, draws, rng)  # (1 + draws, k), data first
    z = sums / (labelled * error)
    kinds = [own for own in (kept & ~is_product, kept & is_product) if own.any()]
    if not kinds:
        return 1.0, z[0], np.ones(z.shape[1])
    scores, adjusted = [], np.ones(z.shape[1])
    for own in kinds:
        largest = np.abs(z[:, own]).max(axis=1)
        scores += [largest, _whitened(z[:, own], centred[:, own])]
        adjusted[own] = _tails(largest, np.abs(z[0, own]))
    best = np.min([_tails(score, score) for score in scores], axis=0)
    # Several statistics have a largest value each: of those the farthest out goes first.
    far = np.max([(score - score.mean()) / (score.std() or 1.0) for score in scores], axis=0)
    far = np.maximum(far, 0.0)
    order = best * (1 + draws) - far / (1 + far) / 2
    pvalue = float((order <= order[0] + TIE * (1 + draws)).mean())
    return pvalue, z[0], adjusted


def _sums(centred: FloatArray, labelled: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Sums over the labelled rows, and over as many chosen ones, (1 + draws, k)."""
    whole, k = centred.shape
    found = np.empty((1 + draws, k))
    at_once = max(1, BATCH // whole)
    first = np.zeros(whole, dtype=bool)
    first[:labelled] = True
    for start in range(0, 1 + draws, at_once):
        count = min(at_once, 1 + draws - start)
        marks = np.tile(first, (count, 1))
        chosen = marks[1:] if start == 0 else marks
        rng.permuted(chosen, axis=1, out=chosen)
        found[start : start + count] = marks.astype(float) @ centred
    return found


def _whitened(z: FloatArray, centred: FloatArray) -> FloatArray:
    """Sums of squares without the covariance of the features, a ridge where it is singular."""
    covariance = centred.T @ centred / centred.shape[0]
    values, vectors = np.linalg.eigh(covariance)
    turned = (z @ vectors) / np.sqrt(np.maximum(values, 0.0) + RIDGE * values.max() + 0.01)
    return np.asarray(np.square(turned).sum(axis=1))


def _tails(among: FloatArray, values: FloatArray) -> FloatArray:
    """Share of entries of `among` that reach each value."""
    ordered = np.sort(among)
    slack = TIE * max(1.0, float(np.abs(ordered[-1])))
    below = np.searchsorted(ordered, values - slack, side="left")
    return np.asarray((ordered.size - below) / ordered.size)


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
        for place, rows in self._reasons(points, left.copy()):
            if (left & rows).any():
                yield place, left & rows
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
