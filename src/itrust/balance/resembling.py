"""`resemblance`: is the labelled sample like the population? No label is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
from itrust.balance.features import (
    PREDICTION,
    Feature,
    Features,
    has_level,
    pooled,
    shared_points,
)
from itrust.balance.permutation import Permuted, permutation_test
from itrust.balance.results import FeatureKind, Gap, Resemblance, RowDifference
from itrust.balance.support import LabelledSupport
from itrust.balance.weights import Balance, entropy_balance
from itrust.data import (
    Column,
    Design,
    Everywhere,
    Points,
    Population,
    PopulationScan,
    Predicate,
    RowsAtHand,
    Sample,
    Scan,
    checked_sample,
    without_label,
)
from itrust.engines import one_blas_thread

AT_HAND = 400_000  # rows of a population that are kept in memory; of smaller ones all are
TESTED_LABELLED, TESTED_POPULATION = 8_000, 16_000
LOOKED_AT = 10_000  # rows of the population that are compared with labelled ones for support
SETTLING = 50_000  # rows that settle the scales of numbers
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
        some = smallest_tickets(tickets(0, len(theirs)), SETTLING)
        few = smallest_tickets(tickets(0, len(ours)), SETTLING)
        one, other = ours.take(few), theirs.take(some)
        features = Features.of(pooled(one, other)).nearest(one, other)
        w = np.ones(len(theirs)) if rows.weights is None else rows.weights
        here, there = features.matrix(ours), features.matrix(theirs)
        return cls(ours, theirs, rows, features, here, there, base, w)

    @property
    def is_product(self) -> BoolArray:
        """Which features read two covariates, (k,)."""
        return np.arange(len(self.features)) >= len(self.features.singles)

    def balance(self, here: FloatArray | None = None, there: FloatArray | None = None) -> Balance:
        """Weights that make the labelled rows like the population."""
        soft, ours = self.is_product, self.here
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


def resemblance(
    labelled: Sample,
    population: Population | PopulationScan | Scan,
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
    population : Population, PopulationScan or Scan
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


def at_hand(population: object, names: Sequence[str]) -> RowsAtHand:
    """Rows of a population in memory: all, or random ones of very many."""
    if isinstance(population, Scan):
        population = without_label(population)
    if isinstance(population, PopulationScan):
        shared = [name for name in names if name in population.names]
        return population.with_names(shared).at_hand(AT_HAND)
    if not isinstance(population, Population):
        raise InputError(
            "{argument} must be a Population(p, x), not a {kind}",
            argument="population",
            value=population,
            details={"kind": type(population).__name__},
        )
    points, w = population.points, population.weights
    if population.n > AT_HAND:
        kept = smallest_tickets(tickets(0, population.n), AT_HAND)
        points, w = points.take(kept), None if w is None else w[kept]
    return RowsAtHand(points, w, population.n)


def compare_rows(
    compared: RowPair,
    design: Design,
    *,
    alpha: float,
    draws: int,
    rng: Rng,
    looked: LookedAt | None = None,
    is_needed: bool = True,
) -> Resemblance:
    """Test and describe rows whose features are known: see `resemblance`.

    Too few rows are refused if the test is needed; else the p-value is NaN, and a note says why.
    """
    seed = as_seed(rng)
    random = as_generator(seed)
    n, m = len(compared.labelled), len(compared.population)
    ours, notes = _independent(design, random)
    theirs = _thinned(compared.rows.weights, np.arange(m), random)
    if (design.weights is not None) or compared.rows.weights is not None:
        notes.append(WEIGHTS_NOTE)
    ours, theirs = _some(ours, TESTED_LABELLED, random), _some(theirs, TESTED_POPULATION, random)
    few = min(ours.size, theirs.size)
    pvalue, told = float("nan"), list[RowDifference]()
    if few >= MIN_ROWS:
        # Scales come from the rows that are permuted and no others, or they would tell who is who.
        both = pooled(compared.labelled.take(ours), compared.population.take(theirs))
        features = Features.of(both)
        is_product = np.arange(len(features)) >= len(features.singles)
        matrix = features.matrix(both)
        found = permutation_test(matrix, ours.size, is_product, draws, random)
        pvalue, told = found.pvalue, _differences(compared, features, matrix, ours.size, found)
    else:
        side = "the labelled rows" if ours.size < MIN_ROWS else "the population"
        if is_needed:
            raise InputError(
                "{few} of {side} can be compared with the others; at least {least} are needed",
                argument="labelled" if ours.size < MIN_ROWS else "population",
                count=int(few),
                details={"few": counted(int(few), "row"), "side": side, "least": MIN_ROWS},
            )
        notes.append(FEW_NOTE.format(side=side, few=counted(int(few), "row")))
    balance = compared.plain_balance
    looked = looked_for_support(compared) if looked is None else looked
    return Resemblance(
        pvalue=pvalue,
        differences=tuple(one for one in told if one.pvalue <= alpha) if pvalue <= alpha else (),
        compared=tuple(told),
        n=n,
        size=compared.rows.n,
        effective=balance.effective,
        trimmed=balance.trimmed,
        unbalanced=balance.unbalanced,
        gaps=looked.found,
        alpha=float(alpha),
        draws=draws,
        seed=seed,
        tested=(int(ours.size), int(theirs.size)),
        notes=tuple(notes),
    )


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
        return tuple(sorted(found, key=_by_share))


def _by_share(gap: Gap) -> float:
    return -gap.share


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


def _independent(design: Design, random: np.random.Generator) -> tuple[IntArray, list[str]]:
    """Labelled rows that are independent and stand for all without weights.

    A row of a large cluster is as likely to be taken as one of a small cluster: clusters are kept
    by their weight, and of each one row by its own.
    """
    if design.rows_are_independent:
        return _thinned(design.weights, np.arange(design.n), random), []
    w = np.ones(design.n) if design.weights is None else design.weights
    unit = design.drawn_together
    with np.errstate(divide="ignore"):
        clock = random.exponential(size=design.n) / w  # the first to ring is a row by its weight
    order = np.lexsort((clock, unit))
    rows = order[np.unique(unit[order], return_index=True)[1]]
    total = np.bincount(unit, w)[unit[rows]]
    kept = random.random(rows.size) * total.max() < total
    return np.sort(rows[kept]), [CLUSTER_NOTE]


def _thinned(weights: FloatArray | None, rows: IntArray, random: np.random.Generator) -> IntArray:
    """Keep every row with a probability that its weight gives: what is left has none."""
    if weights is None:
        return rows
    own = weights[rows]
    return np.asarray(rows[random.random(rows.size) * own.max() < own])


def _some(rows: IntArray, size: int, random: np.random.Generator) -> IntArray:
    return rows if rows.size <= size else np.sort(random.permutation(rows)[:size])


def _differences(
    compared: RowPair, features: Features, matrix: FloatArray, labelled: int, found: Permuted
) -> list[RowDifference]:
    """The clearest comparison of every covariate, the clearest first, then one of products."""
    best: dict[str, int] = {}
    order = np.argsort(-np.abs(found.z), kind="stable")
    for k in order.tolist():
        feature = features.all[k]
        if not feature.is_product:
            best.setdefault(feature.names[0], k)
    told = [_single(compared, features.all[k], found, k) for k in best.values()]
    products = [k for k in order.tolist() if features.all[k].is_product]
    clear = (
        any(found.adjusted[k] <= found.adjusted[products[0]] for k in best.values())
        if products
        else True
    )
    if products and not clear:
        k = products[0]
        one, other = features.all[k].names
        values = matrix[:labelled, k].mean(), matrix[labelled:, k].mean()
        told.append(
            RowDifference(
                one,
                FeatureKind.PRODUCT,
                next((level for _, level in features.all[k].parts if level is not None), None),
                other,
                float(values[0]),
                float(values[1]),
                float(found.z[k]),
                float(found.adjusted[k]),
                min(_fewest(matrix[:labelled, k]), _fewest(matrix[labelled:, k])),
            )
        )
    return sorted(told, key=lambda one: -abs(one.z))


def _single(compared: RowPair, feature: Feature, found: Permuted, k: int) -> RowDifference:
    ((name, level),) = feature.parts
    sides, rows = [], []
    for points, w in (
        (compared.labelled, compared.base),
        (compared.population, compared.weights),
    ):
        column = points.prediction if name is None else _named(points, name)
        sides.append(_told(column, feature, w))
        rows.append(_fewest(_compared_values(column, feature)))
    is_date = name is not None and _named(compared.labelled, name).kind == "date"
    return RowDifference(
        PREDICTION if name is None else name,
        feature.kind,
        level,
        None,
        sides[0],
        sides[1],
        float(found.z[k]),
        float(found.adjusted[k]),
        min(rows),
        is_date and feature.kind is FeatureKind.TREND,
    )


def _named(points: Points, name: str) -> Column:
    return next(column for column in points.columns if column.name == name)


def _compared_values(column: Column, feature: Feature) -> FloatArray:
    """What means are taken of: 0 and 1 for levels and what is missing, (n,)."""
    if feature.kind is FeatureKind.LEVEL:
        return has_level(column, feature.parts[0][1]).astype(float)
    if feature.kind is FeatureKind.MISSING:
        return column.missing.astype(float)
    return np.where(column.missing, np.nan, column.values)


def _fewest(values: FloatArray) -> int:
    """Fewest rows that a mean tells of: where most have one value, it tells how many have not."""
    most = int(np.unique(values, return_counts=True)[1].max(initial=0))
    others = values.size - most
    return others if 0 < others <= most else values.size


def _told(column: Column, feature: Feature, w: FloatArray) -> float:
    """What people are shown of a feature: a mean, a share, or a standard deviation."""
    values = _compared_values(column, feature)
    known = ~np.isnan(values)
    values, own = values[known], w[known]
    if not values.size or not own.sum() > 0:
        return float("nan")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(values, weights=own))
        if feature.kind not in (FeatureKind.QUADRATIC, FeatureKind.CUBIC):
            return mean
        return float(np.sqrt(np.average(np.square(values - mean), weights=own)))
