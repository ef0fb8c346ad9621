"""Two sets of rows, the functions of (p, x) they are balanced on, and the weights. No labels here.

Every number, and the prediction, has a trend, a quadratic and a cubic on a scale between ranks and
values; every category its levels; and there are products of trends and levels of two covariates.

Entropy balancing: of all weights that give the labelled rows the population's means of some
features, those nearest to the rows' own in relative entropy (Hainmueller 2012):
w_i = d_i exp(b'f_i) / sum. Newton's steps in b minimise the convex dual,
log sum d_i exp(b'(f_i - m)) + sum r_k b_k^2 / 2. Features with a penalty r_k are balanced up to
r_k b_k.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Result,
    smallest_tickets,
    tickets,
)
from itrust.data import Cell, Pilot, Points, short
from itrust.terms import (
    COLUMN_LEVELS,
    Absent,
    Expansion,
    Features,
    Is,
    Power,
    Product,
    Shape,
    Term,
    UnitScale,
    columns_by_name,
    frequent_values,
    minimised,
    scales_of,
)

MIN_LEVEL_ROWS = 5
MAX_PRODUCTS = 300  # that are compared; of those the clearest differences are balanced
BALANCED_PRODUCTS = 60
SETTLING = 50_000  # rows that settle the scales of numbers
FIRST_ROWS = 10_000  # of very many rows, for a first solution
ENOUGH = 1e-10  # largest imbalance, in standard deviations, where balance is exact
CLOSE = 1e-8
SOFT = 0.5  # penalty of products, over the root of the number of rows: below the noise of means
SOFTER = (0.25, 1.0, 4.0, 16.0, 64.0)  # the same of all features, where balance is out of reach
NOTED = 0.1  # imbalance in standard deviations that is counted
MAX_CUT = 0.02  # mass of weights that may be cut before balance is softened
TINY = 1e-12


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
    rows: Pilot
    features: Features
    here: FloatArray
    there: FloatArray
    base: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, labelled: Points, rows: Pilot, base: FloatArray) -> RowPair:
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
        moments = self._moments
        if here is not None and there is not None:
            ours = np.hstack([ours, here])
            moments = np.hstack([moments, self._moments_of(there)])
            soft = np.concatenate([soft, np.ones(here.shape[1], dtype=bool)])
        return entropy_balance(ours, moments[0], moments[1], self.base, soft)

    @cached_property
    def _moments(self) -> FloatArray:
        """Means and standard deviations of the features in the population, (2, k)."""
        return self._moments_of(self.there)

    def _moments_of(self, there: FloatArray) -> FloatArray:
        w = self.weights / self.weights.sum()
        means = w @ there
        return np.stack([means, np.sqrt(np.maximum(w @ np.square(there) - means**2, 0.0))])

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
                own=kinds[0],
                other=kinds[1],
            )
        if own.is_category and _are_spelt_apart(own.levels, other.levels):
            raise InputError(
                "levels of {column} are numbers on one side and text on the other ({own} in the "
                "labelled rows, {other} in the population); make them the same on both",
                argument="population",
                column=own.name,
                own=repr(own.levels[0]),
                other=repr(other.levels[0]),
            )
        if own.is_category and own.levels != other.levels:
            new = [level for level in other.levels if level not in set(own.levels)]
            levels = (*own.levels, *new)
            own, other = own.with_levels(levels), other.with_levels(levels)
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


@dataclass(frozen=True, eq=False)
class Balance:
    """Weights of the labelled rows, and how well they do.

    Attributes
    ----------
    weights : (n,) array
        Not negative; their sum is 1.
    imbalance : (k,) array
        Weighted mean of every feature less the population's, in standard deviations of the
        population.
    trimmed : int
        How many weights were cut to `largest`.
    largest : float
        The largest share of one row that is allowed: one over the root of the number of rows.
    is_exact : bool
        Whether the features that had to be balanced are.
    soft : (k,) array of bool
        Features that need to be balanced up to noise only, or that no weights can change.
    features : (n, j) array or None
        Those that weights can change, less the population's means, in its standard deviations; None
        where balance is exact.
    """

    weights: FloatArray
    imbalance: FloatArray
    trimmed: int
    largest: float
    is_exact: bool
    soft: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    features: FloatArray | None = None

    @property
    def effective(self) -> float:
        """Effective sample size: how many equal weights have the same sum of squares."""
        return float(1 / np.square(self.weights).sum())

    @property
    def unbalanced(self) -> int:
        """How many features differ by more than a tenth of a standard deviation."""
        return int((np.abs(self.imbalance) > NOTED).sum())

    @property
    def worst(self) -> float:
        """Largest imbalance of a feature that had to be balanced, in standard deviations."""
        return float(np.abs(self.imbalance[~self.soft]).max(initial=0.0))

    def left_over(self, target: FloatArray) -> float:
        """How far the weighted mean of a target may be off because features are not balanced.

        The target is regressed on the features, with a small penalty; what is left of them times
        these slopes is told, together with the noise of the slopes.

        Parameters
        ----------
        target : (n,) array
            Of the rows, such as residuals.

        Returns
        -------
        float
            0 where balance is exact.
        """
        if self.features is None:
            return 0.0
        left, n = self.weights @ self.features, target.size
        centred = self.features - self.features.mean(axis=0)  # rows alike: weights know few of them
        curve = centred.T @ centred / n
        curve[np.diag_indices(curve.shape[0])] += curve.shape[0] / n
        away = target - float(target.mean())
        slopes = np.linalg.solve(curve, centred.T @ away / n)
        lean = centred @ np.linalg.solve(curve, left) / n
        noise = float(np.square(lean * (away - centred @ slopes)).sum())
        return math.sqrt(float(left @ slopes) ** 2 + noise)


def entropy_balance(
    features: FloatArray,
    means: FloatArray,
    spread: FloatArray,
    base: FloatArray | None = None,
    soft: BoolArray | None = None,
) -> Balance:
    """Weights of rows that give features the means of a population.

    Exact balance is tried first. Weights of rows that count more than the root of n rows are cut
    to that. Where exact balance is out of reach, or more than 2 % of the mass would be
    cut, all features are balanced softly, the softest way last.

    Parameters
    ----------
    features : (n, k) array
        Of the rows.
    means, spread : (k,) arrays
        Means and standard deviations in the population.
    base : (n,) array, optional
        Weights that the rows have by themselves; default: all alike.
    soft : (k,) array of bool, optional
        Features that are balanced up to noise; default: none.

    Returns
    -------
    Balance
        Cost O(n k^2) a step.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> found = entropy_balance(x, np.array([1.8]), np.array([1.0]))
    >>> float(np.round(found.weights @ x[:, 0], 9))
    1.8
    """
    n, k = features.shape
    base = np.full(n, 1 / n) if base is None else base / base.sum()
    soft = np.zeros(k, dtype=bool) if soft is None else soft
    kept = (spread > TINY) & (np.ptp(features, axis=0) > TINY) if n > 1 else np.zeros(k, dtype=bool)
    scale = np.where(spread > TINY, spread, 1.0)
    centred = (features - means) / scale
    size = 1 / float(np.square(base).sum())
    largest = max(1 / math.sqrt(size), float(base.max()))
    own, ridge = centred[:, kept], np.where(soft[kept], SOFT / math.sqrt(size), 0.0)
    weights, is_exact = base, False
    few = np.arange(0, n, n // FIRST_ROWS) if n > 2 * FIRST_ROWS else None
    for more in (0.0, *(step / math.sqrt(size) for step in SOFTER)):
        start = np.zeros(own.shape[1])
        if few is not None:  # some of the rows are near enough to begin at
            _, start, is_near = _solved(own[few], base[few] / base[few].sum(), ridge + more, start)
            start = start if is_near else np.zeros(start.size)
        weights, _, is_solved = _solved(own, base, ridge + more, start)
        over = float(np.maximum(weights - largest, 0.0).sum())
        if is_solved and over <= MAX_CUT:
            is_exact = more == 0
            break
    weights, trimmed = _trimmed(weights, largest)
    is_exact = is_exact and not trimmed
    left = None if is_exact else own
    return Balance(weights, weights @ centred, trimmed, largest, is_exact, soft | ~kept, left)


def _solved(
    centred: FloatArray, base: FloatArray, ridge: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray, bool]:
    """Minimise the dual; the weights, their coefficients, and whether they balance."""

    def weighted(b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logs of weights, weights, and derivatives."""
        logs = np.asarray(centred @ b)
        raw = base * np.exp(logs - logs.max())
        weights = np.asarray(raw / raw.sum())
        return logs, weights, np.asarray(weights @ centred + ridge * b)

    def expanded(b: FloatArray) -> Expansion:
        logs, weights, gradient = weighted(b)
        top = float(logs.max())
        loss = math.log(float(base @ np.exp(logs - top))) + top + float(ridge @ np.square(b)) / 2

        def ahead() -> tuple[FloatArray, FloatArray]:
            mean = weights @ centred
            curve = (centred * weights[:, None]).T @ centred - np.outer(mean, mean)
            curve[np.diag_indices(mean.size)] += ridge + TINY * max(1.0, float(np.trace(curve)))
            return gradient, np.asarray(-np.linalg.lstsq(curve, gradient, rcond=TINY)[0], float)

        return loss, ahead

    b, _ = minimised(expanded, start, ENOUGH**2)
    _, weights, gradient = weighted(b)
    return weights, b, bool(np.abs(gradient).max(initial=0.0) < CLOSE)


def _trimmed(weights: FloatArray, largest: float) -> tuple[FloatArray, int]:
    """Cut weights to the largest share that is allowed; the rest share what is left over."""
    cut = np.zeros(weights.size, dtype=bool)
    while (over := (weights > largest * (1 + CLOSE)) & ~cut).any():
        cut |= over
        rest = float(weights[~cut].sum())
        left = 1 - largest * cut.sum()
        weights = np.where(cut, largest, weights * (left / rest if rest > 0 else 0.0))
    return weights, int(cut.sum())


PREDICTION = "p"  # the name of the prediction


class FeatureKind(StrEnum):
    """What a function of a covariate is."""

    TREND = "trend"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"
    LEVEL = "level"
    MISSING = "missing"
    PRODUCT = "product"


@dataclass(frozen=True)
class Gap:
    """A part of the population that no labelled row resembles.

    Attributes
    ----------
    name : str or None
        The covariate, `p` for the prediction; None for rows that only lie far from all others.
    level : object
        The level that no labelled row has; None for numbers.
    side : {"above", "below", "level", "missing", "far"}
        Where it lies.
    bound : float or None
        The largest or smallest value of labelled rows.
    share : float
        Of the population, or of the rows that a task counts, by weights.
    rows : int
        How many of the population's rows that were looked at lie there: it has at least so many.
    """

    name: str | None
    level: Any
    side: str
    bound: float | None
    share: float
    rows: int


@dataclass(frozen=True)
class RowDifference(Result):
    """One way in which labelled rows differ from the population.

    Attributes
    ----------
    name : str
        The covariate; `p` for the prediction.
    kind : FeatureKind
        A trend compares means, a level shares, a quadratic and a cubic how values are spread.
    level : object
        The level, for shares; None for numbers.
    other : str or None
        For a product the second covariate.
    labelled, population : float
        Mean or share on either side; for a product that of the product, in standard units.
    z : float
        Their difference in standard deviations that permuted rows have.
    pvalue : float
        Adjusted for all features of its kind.
    rows : int
        Fewest rows of either side that the means or shares tell of: those with the level and
        those without, or those with another value than most.
    is_date : bool
        Whether the means are days since 1970-01-01.
    """

    name: str
    kind: FeatureKind
    level: Any
    other: str | None
    labelled: float
    population: float
    z: float
    pvalue: float
    rows: int
    is_date: bool = False


@dataclass(frozen=True, eq=False)
class Resemblance(Result):
    """Whether labelled rows are like a population, on the prediction and the covariates.

    Attributes
    ----------
    pvalue : float
        Exact, of "labelled rows are drawn like the population"; NaN within an estimate whose rows
        are too few to be compared.
    differences : tuple of RowDifference
        Covariates that differ at `alpha`, the clearest first; every covariate once.
    compared : tuple of RowDifference
        The clearest comparison of every covariate, whether it differs or not.
    n, size : int
        Number of labelled rows and of rows of the population.
    effective : float
        Effective sample size of the weights that make labelled rows like the population.
    trimmed : int
        How many of these weights were cut.
    unbalanced : int
        How many features the weights leave different by more than a tenth of a standard deviation.
    gaps : tuple of Gap
        Parts of the population that no labelled row resembles.
    alpha : float
        At which labelled rows are said to differ.
    draws : int
        Number of permutations.
    seed : int
        What permutations were drawn by.
    tested : tuple of two int
        How many labelled rows and rows of the population were permuted.
    notes : tuple of str
        How weights and clusters were met.
    """

    _derived = ("differs", "unlike")

    pvalue: float
    differences: tuple[RowDifference, ...]
    compared: tuple[RowDifference, ...]
    n: int
    size: int
    effective: float
    trimmed: int
    unbalanced: int
    gaps: tuple[Gap, ...]
    alpha: float
    draws: int
    seed: int
    tested: tuple[int, int]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        says = "differ" if self.differs else "show no difference"
        return f"<Resemblance: labelled rows {says}, p = {self.pvalue:.3g}>"

    @property
    def differs(self) -> bool:
        """Whether labelled rows are shown to differ from the population."""
        return self.pvalue <= self.alpha

    @property
    def unlike(self) -> float:
        """Share of the population that no labelled row resembles."""
        return shares_of(self.gaps)

    def disclosed(self, min_cell: int, key: int = 0) -> Resemblance:
        """Leave out what rests on few rows, and show nothing else exactly.

        Parameters
        ----------
        min_cell : int
            Fewest rows behind a comparison or a gap that is shown.
        key : int
            Of all labelled rows, which keeps the noise secret.

        Returns
        -------
        Resemblance
            Levels of fewer rows, or that fewer rows lack, and numbers of which fewer rows have
            another value than most, are left out; gaps say no largest or smallest value.
        """
        tables: dict[str, Any] = {
            name: tuple(
                self._shown(one, key) for one in getattr(self, name) if one.rows >= min_cell
            )
            for name in ("differences", "compared")
        }
        return replace(self, **tables, gaps=disclosed_gaps(self.gaps, min_cell, key))

    def _shown(self, one: RowDifference, key: int) -> RowDifference:
        """A comparison of shares with their noise, of means in few digits."""
        cells = (Cell.of(rows, key, one.name, one.level) for rows in (self.n, self.size))
        values = one.labelled, one.population
        if one.kind in (FeatureKind.LEVEL, FeatureKind.MISSING):
            shown = [cell.rate(value) for cell, value in zip(cells, values, strict=True)]
        else:
            shown = [short(value) for value in values]
        rows = Cell.of(one.rows, key, one.name, one.level).count
        return replace(one, labelled=shown[0], population=shown[1], rows=rows)

    def _facts(self) -> Mapping[str, Any]:
        facts = dict(super()._facts())
        facts["population"] = facts.pop("size")
        return facts

    def _rows(self) -> list[Mapping[str, Any]]:
        return [
            {**row, "level": None if row["level"] is None else str(row["level"])}
            for row in (own.to_dict() for own in self.compared)
        ]


def shares_of(gaps: Sequence[Gap]) -> float:
    """Share of the population that some gaps make up."""
    return float(sum(gap.share for gap in gaps))


def disclosed_gaps(gaps: Sequence[Gap], min_cell: int, key: int) -> tuple[Gap, ...]:
    """Take out gaps of few rows, and the values of single rows.

    Rows that were looked at count: a share of random ones would promise rows that may not be.
    """
    shown = []
    for gap in gaps:
        if gap.rows >= min_cell:
            count = Cell.of(gap.rows, key, gap.name, gap.level, gap.side).count
            share = min(gap.share * count / gap.rows, 1.0)
            shown.append(replace(gap, bound=None, rows=count, share=share))
    return tuple(shown)
