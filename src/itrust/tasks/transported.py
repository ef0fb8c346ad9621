"""A task where labelled rows are no random sample: corrected probabilities and balanced rows.

theta = mean over the population of g q, plus the weighted mean of g (y - q) over the labelled rows:
q is a correction of p that was learned from other labelled rows, and weights make the labelled rows
like the population. The error is small if either q or the weights are good, and it vanishes
with the product of their errors. Regressions solve their estimating equation with labels'
sums so carried over: sum of z mean(z'b) = sum of z q, plus the weighted sum of z (y - q).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from itrust._core import BoolArray, FloatArray, IntArray, smallest_tickets, tickets
from itrust.balance import Balance, RowPair, is_plain
from itrust.data import Everywhere, Points, Population, PopulationScan, Rows, Sample, Scan
from itrust.recalibrate import untested_correction
from itrust.tasks.expressions import Leaf, LeafFit, Ratio, Task, TaskRows, leaves_of
from itrust.tasks.powering import spread
from itrust.tasks.regressions import Coefficient, fitted_to, frame_of, has_regression
from itrust.tasks.uncertainty import ADDED, LabelLaw, Uncertainty, kish
from itrust.terms import UnitScale

FOLDS = 2
MIN_TO_LEARN = 15  # labels of either kind in a fold, below which probabilities stay as they are
MAX_TO_LEARN = 25_000
CHUNK = 65_536
MAX_OWN = 40  # features that a task adds to those that are balanced


def cross_fitted(labelled: Sample, population: Points, seed: int) -> tuple[FloatArray, FloatArray]:
    """Correct probabilities smoothly in (p, x), as learned on the other half of the rows.

    Those of the labelled rows, and those of the population.
    """
    units = labelled.design.drawn_together
    fold = (np.random.default_rng(seed).permutation(int(units.max()) + 1) % FOLDS)[units]
    here, there = np.array(labelled.p), np.zeros(len(population))
    for number in range(FOLDS):
        learn, out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        method = _learned(labelled, learn)
        if method is None:
            there += population.p / FOLDS
            continue
        here[out] = method(labelled.points.take(out))
        there += method(population) / FOLDS
    return here, there


def _learned(labelled: Sample, rows: IntArray) -> Callable[[Points], FloatArray] | None:
    if rows.size > MAX_TO_LEARN:
        rows = rows[smallest_tickets(tickets(0, rows.size), MAX_TO_LEARN)]
    if min(labelled.y[rows].sum(), (1 - labelled.y[rows]).sum()) < MIN_TO_LEARN:
        return None
    return untested_correction(labelled.take(rows))


@dataclass(frozen=True, eq=False)
class PopulationTotals:
    """Sums over all rows of a population for k ratios, with probabilities."""

    ratios: tuple[Ratio, ...]
    mass: float
    sums: FloatArray
    moments: FloatArray
    low: FloatArray
    high: FloatArray
    n: int

    def __add__(self, other: PopulationTotals) -> PopulationTotals:
        return PopulationTotals(
            self.ratios,
            self.mass + other.mass,
            self.sums + other.sums,
            self.moments + other.moments,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.n + other.n,
        )

    @classmethod
    def of(
        cls, ratios: Sequence[Ratio], points: Points, weights: FloatArray, first: int = 0
    ) -> PopulationTotals:
        """Sum over some rows."""
        terms = [ratio.terms_of(points, weights, first) for ratio in ratios]
        above = [g * points.p for g, _ in terms]
        below = [
            h * points.p if ratio.among_positives else h
            for ratio, (_, h) in zip(ratios, terms, strict=True)
        ]
        both = weights * np.array([*above, *below])
        return cls(
            ratios=tuple(ratios),
            mass=float(weights.sum()),
            sums=both.sum(axis=1),
            moments=both @ both.T,
            low=np.array([np.where(h > 0, g, np.inf).min() for g, h in terms]),
            high=np.array([np.where(h > 0, g, -np.inf).max() for g, h in terms]),
            n=len(points),
        )

    def only(self, task: Task) -> PopulationTotals | None:
        """The sums of the ratios of a task; regressions have none."""
        if has_regression(task):
            return None
        own = tuple(dict.fromkeys(task.ratios()))
        at = np.array([self.ratios.index(ratio) for ratio in own], dtype=int)
        both = np.concatenate([at, at + len(self.ratios)])
        moments, low, high = self.moments[np.ix_(both, both)], self.low[at], self.high[at]
        return replace(self, ratios=own, sums=self.sums[both], moments=moments, low=low, high=high)

    def means(self) -> FloatArray:
        """Both sums of every ratio over that of the weights, (2, k)."""
        return (self.sums / self.mass).reshape(2, -1)

    def values(self) -> FloatArray:
        """The ratios, (k,); NaN over nothing."""
        above, below = np.split(self.sums, 2)
        unknown = np.full(above.size, np.nan)
        return np.asarray(np.divide(above, below, out=unknown, where=below > 0))

    def stderr(self, slopes: FloatArray, values: FloatArray) -> float:
        """Of a number with these derivatives in the ratios: sampling of the rows alone."""
        below = np.split(self.sums, 2)[1]
        lean = np.concatenate([slopes / below, -slopes * values / below])
        scale = self.n / max(self.n - 1, 1)
        return math.sqrt(max(scale * float(lean @ self.moments @ lean), 0.0))


def population_totals(
    ratios: Sequence[Ratio],
    population: Population | PopulationScan | Scan,
    counts: Callable[[Points], BoolArray] | None = None,
) -> PopulationTotals:
    """Sums over all rows of a population, some rows at a time."""
    if isinstance(population, Scan):
        population = population.without_label()
    total: PopulationTotals | None = None
    for chunk in population.chunks(CHUNK):
        points, w = chunk.points, np.ones(chunk.n) if chunk.weights is None else chunk.weights
        if counts is not None:
            kept = counts(points)
            if not kept.any():
                continue
            points, w = points.take(kept), w[kept]
        part = PopulationTotals.of(ratios, points, w, chunk.first)
        total = part if total is None else total + part
    assert total is not None  # a population has rows, and some are kept
    return total


Imbalance = Callable[[FloatArray], float]  # how far a weighted sum may be off for lack of balance


class TransportedValue(NamedTuple):
    """A number carried over to a population, and how far it may be off."""

    value: float
    error: Uncertainty
    effective: float
    trimmed: int
    unbalanced: int
    worst: float
    labels: float
    smoothed: float


# A mean, a rate or a coefficient carried over: its value, what labels of labelled rows move (n,),
# shares of the population's rows in it (m,), and what of these corrections of p have moved.
Carried = tuple[float, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Transport:
    """Labelled rows of one outcome and a population, ready for any task.

    `here` and `there` are corrected probabilities of both.
    """

    labelled: Sample
    compared: RowPair
    here: FloatArray
    there: FloatArray
    selection: FloatArray | None = None

    def weights(self, leaves: Sequence[Leaf]) -> tuple[FloatArray, Balance, Imbalance]:
        """Weights of the labelled rows for a task made of these leaves, (n,), and what is left.

        All rows are balanced first. Where that cannot be, those that the task counts are, alone.
        """
        compared, n = self.compared, self.labelled.n
        if self.selection is not None:
            raw, nothing = self.labelled.weights_or_ones / self.selection, np.zeros(0)
            balance = Balance(raw / raw.sum(), nothing, 0, 1.0, True, nothing.astype(bool))
            return balance.weights, balance, balance.left_over
        balance = _balanced(leaves, compared)
        here, there = (
            np.flatnonzero(np.logical_or.reduce([leaf.where.rows(points) for leaf in leaves]))
            for points in (compared.labelled, compared.population)
        )
        is_whole = there.size == len(compared.population) or not min(here.size, there.size)
        if balance.is_exact or is_whole:
            return balance.weights, balance, balance.left_over
        share = float(compared.weights[there].sum() / compared.weights.sum())
        part, weights = _balanced(leaves, compared.take(here, there)), np.zeros(n)
        weights[here] = share * part.weights
        return weights, part, lambda target: share * part.left_over(target[here])

    @property
    def residuals(self) -> FloatArray:
        """Labels less corrected probabilities, (n,)."""
        return self.labelled.y - self.here

    def carried(
        self, leaf: Leaf, left: FloatArray, known: FloatArray | None = None
    ) -> Carried | None:
        """Carry one mean, rate or coefficient over; None where it has no value."""
        if isinstance(leaf, Coefficient):
            return self._coefficient(leaf, left)
        return self._ratio(leaf, left, known)

    @property
    def _omega(self) -> FloatArray:
        """Shares of the rows of the population, (m,)."""
        return np.asarray(self.compared.weights / self.compared.weights.sum())

    def _ratio(self, ratio: Leaf, left: FloatArray, known: FloatArray | None) -> Carried | None:
        """Carry both sums of a ratio over; None where nothing is left to divide by."""
        there, omega, q = self.compared.population, self._omega, self.there
        g, h = ratio.terms_of(there, self.compared.weights)
        gl, hl = ratio.terms_of(self.compared.labelled, np.ones(self.labelled.n))
        positive = ratio.among_positives
        if known is None:
            above = float(omega @ (g * q))
            below = float(omega @ (h * q if positive else h))
        else:
            above = float(known[0] + omega @ (g * (q - there.p)))
            below = float(known[1] + (omega @ (h * (q - there.p)) if positive else 0.0))
        above += float(gl @ left)
        below += float(hl @ left) if positive else 0.0
        if not below > 0:
            return None
        value = above / below
        return (
            value,
            (gl - (value * hl if positive else 0.0)) / below,
            omega * (g * q - value * (h * q if positive else h)) / below,
            omega * (g - (value * h if positive else 0.0)) * (q - there.p) / below,
        )

    def _coefficient(self, leaf: Coefficient, left: FloatArray) -> Carried | None:
        """Solve the equation whose sums are carried over; None where it has no solution."""
        omega, q = self._omega, self.there
        rows = TaskRows(self.compared.population, omega, q)
        frame, at, design = frame_of(leaf, rows)
        here, design_here = frame.rows_of(self.compared.labelled, np.ones(self.labelled.n))
        moment = design.T @ (omega[at] * q[at]) + design_here.T @ left[here]
        fit = fitted_to(leaf, frame, rows.points, (design, omega[at], moment))
        if fit is None:
            return None
        lean = fit.lean((here, design_here), np.ones(self.labelled.n))
        # All sums are of the rows at hand, so corrections have moved nothing else.
        return fit.value, lean, fit.shares((at, design), omega, q), np.zeros(q.size)


def transported(
    task: Task,
    labelled: Rows,
    transports: Mapping[Any, Transport],
    totals: PopulationTotals | None = None,
) -> TransportedValue | None:
    """Carry a task over: every leaf by the weights and corrections of its class."""
    leaves, classes = leaves_of([task]), list(transports)
    weighed = {
        name: own.weights([leaf.bare for leaf in leaves if leaf.label == name])
        for name, own in transports.items()
    }
    w = np.column_stack([weights for weights, _, _ in weighed.values()])
    e = np.column_stack([own.residuals for own in transports.values()])
    columns = [classes.index(leaf.label) for leaf in leaves]
    known = [None] * len(leaves) if totals is None else list(totals.means().T)
    parts: list[Carried] = []
    for leaf, column, sums in zip(leaves, columns, known, strict=True):
        part = transports[leaf.label].carried(leaf.bare, (w * e)[:, column], sums)
        if part is None:
            return None
        parts.append(part)
    values, leans, shares, moved = (np.array(own) for own in zip(*parts, strict=True))
    joined = task.at(leaves, values)
    value, slopes = float(joined.value), joined.slope
    if not math.isfinite(value) or not np.isfinite(slopes).all():
        return None
    lean = np.column_stack(
        [slopes[own] @ leans[own] for own in (np.equal(columns, k) for k in range(len(classes)))]
    )
    sampling = _sampling(slopes, values, shares, moved, totals)
    error = _noise(leaves, labelled, transports, w, lean).plus(sampling)
    for k, (_, _, left_over) in enumerate(weighed.values()):
        error = error.plus(left_over(lean[:, k] * e[:, k]))
    balances = [balance for _, balance, _ in weighed.values()]
    size = min(balance.effective for balance in balances)
    ones = np.column_stack([own.labelled.y for own in transports.values()])
    return TransportedValue(
        value=value,
        error=replace(error, units=error.freedom + 1),
        effective=size,
        trimmed=max(balance.trimmed for balance in balances),
        unbalanced=max(balance.unbalanced for balance in balances),
        worst=max(balance.worst for balance in balances),
        labels=min(kish(column) for kind in (ones, 1 - ones) for column in (w * kind).T),
        smoothed=(size * min(max(value, 0.0), 1.0) + ADDED) / (size + 2 * ADDED),
    )


def _noise(
    leaves: Sequence[Leaf],
    labelled: Rows,
    transports: Mapping[Any, Transport],
    w: FloatArray,
    lean: FloatArray,
) -> Uncertainty:
    """What labels of the rows may have done, with the floors of tasks."""
    first = next(iter(transports.values()))
    here = np.column_stack([own.here for own in transports.values()])
    left = np.column_stack([own.residuals for own in transports.values()])
    law = LabelLaw.of(labelled, leaves, here).carried_by(np.abs(w * lean).sum(axis=1))
    shares = (w * lean * left).sum(axis=1)
    if first.selection is not None:  # who is labelled is drawn, too: a ratio of two sums
        shares = shares - w[:, 0] * float(shares.sum())
    return law.uncertainty(shares, np.zeros(labelled.n), w * lean)


def _sampling(
    slopes: FloatArray,
    values: FloatArray,
    shares: FloatArray,
    moved: FloatArray,
    totals: PopulationTotals | None,
) -> float:
    """Standard error of the population's part: of all rows, and of those at hand among them."""
    if totals is None:
        return spread(slopes @ shares)
    some = slopes @ moved
    left = 1 - min(some.size / totals.n, 1.0)
    return math.hypot(totals.stderr(slopes, values), math.sqrt(left) * spread(some - some.mean()))


def _balanced(leaves: Sequence[Leaf], compared: RowPair) -> Balance:
    """Weights that make labelled rows like the population, in what a task reads, too."""
    fits = gradients_of(leaves, compared)
    here, there = (
        own_features(leaves, points, compared, fits)
        for points in (compared.labelled, compared.population)
    )
    return compared.balance(here, there) if here.shape[1] else compared.plain_balance


def gradients_of(leaves: Sequence[Leaf], compared: RowPair) -> dict[Leaf, LeafFit]:
    """Coefficients as the population has them with probabilities, for what rows' labels move."""
    w = compared.weights / compared.weights.mean()
    rows = TaskRows(compared.population, w, compared.population.p)
    return {leaf: leaf.fit(rows) for leaf in leaves if isinstance(leaf, Coefficient)}


def own_features(
    leaves: Sequence[Leaf], points: Points, compared: RowPair, fits: Mapping[Leaf, LeafFit]
) -> FloatArray:
    """What a task reads, alone and times every trend, (n, j): its own rows are to be balanced.

    Of a coefficient that is how far the label of a row moves it, a sum of its columns; levels
    count as trends there.
    """
    plain = [k for k, own in enumerate(compared.singles) if is_plain(own)]
    trends = [k for k in plain if not compared.singles[k][0].is_group]
    matrix = compared.here if points is compared.labelled else compared.there
    every: list[list[FloatArray]] = []
    seen: set[Any] = set()
    ones, there_ones = np.ones(len(points)), np.ones(len(compared.population))
    for leaf in leaves:
        found: list[FloatArray] = []
        every.append(found)
        g, h = leaf.terms_of(points, ones)
        if not isinstance(leaf.where, Everywhere) and leaf.where not in seen:
            seen.add(leaf.where)
            found += [h, *(h * matrix[:, k] for k in trends)]
        if leaf in fits:
            lean = _clipped_lean(fits[leaf], points, compared.population)
            found += [lean, *(lean * matrix[:, k] for k in plain)]
            continue
        assert isinstance(leaf, Ratio)
        if not leaf.is_rate and (leaf.quantity, leaf.where) not in seen:
            seen.add((leaf.quantity, leaf.where))
            g_there, h_there = leaf.terms_of(compared.population, there_ones)
            scale = UnitScale.of_heights(g_there[h_there > 0])
            height = np.where(h > 0, scale(g) - 0.5, 0.0)
            found += [height, *(height * matrix[:, k] for k in trends)]
        elif leaf.is_rate and leaf.among_positives and (leaf.quantity, leaf.where) not in seen:
            seen.add((leaf.quantity, leaf.where))
            found += [g, *(g * matrix[:, k] for k in trends)]
    # Leaves take turns, so that both sides of a gap are balanced alike where columns are many.
    turns = [own for turn in zip_longest(*every) for own in turn if own is not None][:MAX_OWN]
    return np.column_stack(turns) if turns else np.zeros((len(points), 0))


def _clipped_lean(fit: LeafFit, points: Points, population: Points) -> FloatArray:
    """What labels of some rows move a coefficient, (n,), without the outermost thousandths."""
    there = fit.lean(fit.read(population, np.ones(len(population))), np.ones(len(population)))
    own = there
    if points is not population:
        own = fit.lean(fit.read(points, np.ones(len(points))), np.ones(len(points)))
    return np.clip(own, *np.quantile(there, [0.001, 0.999]))
