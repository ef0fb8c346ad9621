"""Ways to a number on a population without labels: recalibrated, prediction-powered, transported.

Recalibrated: the plug-in of p plus the local bias of the labelled rows.

Prediction-powered: means, shares and rates are those of labels plus `lam` times the plug-in on the
population less the plug-in on the labelled rows. Coefficients solve the estimating equation that is
so corrected, with its derivative from all rows (Angelopoulos, Duchi and Zrnic 2024).

Transported, where labelled rows are no random sample: theta = mean over the population of g q, plus
the weighted mean of g (y - q) over the labelled rows. q is a correction of p that was learned from
other labelled rows, and weights make the labelled rows like the population. The error is small if
either q or the weights are good, and it vanishes with the product of their errors. Regressions
solve their estimating equation with labels' sums so carried over: sum of z mean(z'b) = sum of z q,
plus the weighted sum of z (y - q).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, IntArray, smallest_tickets, tickets
from itrust.balance import Balance, RowPair, is_plain
from itrust.bias import Neighbours, neighbour_kernel
from itrust.data import Design, Everywhere, Points, Population, Rows, Sample, Scan, design_variance
from itrust.kernels import LocalKernel
from itrust.recalibrate import untested_correction
from itrust.tasks.expressions import Leaf, Ratio, Task, TaskRows, leaves_of
from itrust.tasks.regressions import (
    Coefficient,
    CoefficientFit,
    curve_at,
    fitted_to,
    frame_of,
    has_regression,
)
from itrust.tasks.uncertainty import ADDED, LabelLaw, LabelledTask, Uncertainty, kish
from itrust.terms import UnitScale

ROUNDS = 2  # of choosing `lam` and solving with it
FOLDS = 2
MIN_TO_LEARN = 15  # labels of either kind in a fold, below which probabilities stay as they are
MAX_TO_LEARN = 25_000
CHUNK = 65_536
MAX_OWN = 40  # features that a task adds to those that are balanced
CHUNK_ROWS, PLACES_AT_ONCE = 8_192, 4_096
# A mean over many points wants little smoothing: noise averages out, smoothing bias does not.
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the usual ones; wider where too few rows are near
MIN_NEIGHBOURS = 4  # effective ones, below which a prediction is left as it is


# --- prediction-powered ---------------------------------------------------------------------------


def prediction_powered(
    task: Task,
    told: LabelledTask,
    labelled: Rows,
    out: TaskRows,
    plugin: float,
    sampling: float,
    share: float = 0.0,
) -> tuple[float, Uncertainty, float]:
    """Estimate a task on a population by labels and probabilities, whose weight is told, too.

    `share` of the rows of the population are the labelled rows themselves.
    """
    law = told.law
    labels, predicted = told.labels.slope, told.predicted.slope
    lam = best_weight(labels, predicted, law.design, sampling)
    if not has_regression(task):
        # Labels, plus what probabilities say about the population less about the labelled rows.
        value = told.labels.value + lam * (plugin - told.predicted.value)
        error = told.less(lam).plus(lam * sampling)
        return value, error.plus(_shared(labels, predicted, lam, share)), lam
    for _ in range(ROUNDS):
        _, (labels, predicted, _), _, there = _of_leaves(task, told, labelled, out, lam)
        lam = best_weight(labels, predicted, law.design, spread(there))
    value, rows, lean, there = _of_leaves(task, told, labelled, out, lam)
    labels, predicted, expected = rows
    moves = None if told.moves is None else told.moves[0] - lam * told.moves[1]
    error = law.uncertainty(labels - lam * predicted, expected - lam * predicted, lean, moves)
    error = error.plus(lam * spread(there))
    return value, error.plus(_shared(labels, predicted, lam, share)), lam


def _shared(labels: FloatArray, predicted: FloatArray, lam: float, share: float) -> float:
    """What rows on both sides add, as a standard error: twice the covariance of the two parts.

    Parts are the plug-in on the population, of which labelled rows are a share, and labels less
    probabilities; 0 where rows are apart.
    """
    both = float((lam * predicted) @ (labels - lam * predicted))
    return math.sqrt(max(2 * share * both, 0.0))


# A number; shares of the labelled rows in it with labels, with probabilities and by the smoothed
# law, (3, n); what their labels move; and the shares of rows without labels.
Shares = tuple[float, FloatArray, FloatArray, FloatArray]


def _of_leaves(task: Task, told: LabelledTask, labelled: Rows, out: TaskRows, lam: float) -> Shares:
    """A task whose leaves are prediction-powered one by one."""
    law, leaves = told.law, leaves_of([task])
    by_law = replace(told.rows, stand_in=law.q, classes=law.classes)
    here = told.rows, TaskRows.predicted(labelled), by_law
    parts = [
        (_coefficient if isinstance(leaf, Coefficient) else _ratio)(leaf, here, out, lam)
        for leaf in leaves
    ]
    joined = task.at(leaves, [value for value, *_ in parts])
    rows, there = np.zeros((3, labelled.n)), np.zeros(len(out.points))
    lean = np.zeros(law.q.shape)
    for slope, leaf, (_, own, moved, own_there) in zip(joined.slope, leaves, parts, strict=True):
        rows += slope * own
        lean[:, law.classes.index(leaf.label)] += slope * moved
        there += slope * own_there
    value = float(joined.value)
    return (value if math.isfinite(value) else math.nan), rows, lean, there


def _ratio(leaf: Leaf, here: tuple[TaskRows, ...], out: TaskRows, lam: float) -> Shares:
    labels, predicted, _ = parts = [leaf.linear(rows) for rows in here]
    there = leaf.linear(out)
    value = labels.value + lam * (there.value - predicted.value)
    lean = leaf.fitted(here[2]).lean(here[2])[:, here[2].classes.index(leaf.label)]
    return value, np.array([part.slope for part in parts]), lean, there.slope


def _coefficient(leaf: Any, here: tuple[TaskRows, ...], out: TaskRows, lam: float) -> Shares:
    """Solve the corrected equation; what all rows say of its derivative gives the shares."""
    rows, n, m = here[0], here[0].weights.size, len(out.points)
    frame, at, z = frame_of(leaf, rows)
    there, z_out = frame.rows_of(out.points, out.weights)
    w, w_out = rows.weights[at], out.weights[there]
    w, w_out = w / float(w.sum()), w_out / float(w_out.sum())
    y, p, q = (own.of(leaf)[at] for own in here)
    p_out, both = out.of(leaf)[there], np.concatenate([z, z_out])
    moment = z.T @ (w * (y - lam * p)) + lam * (z_out.T @ (w_out * p_out))
    size = at.size / (at.size + there.size)
    everyone = np.concatenate([size * w, (1 - size) * w_out])
    weights = np.concatenate([(1 - lam) * w, lam * w_out])
    fit = fitted_to(leaf, frame, rows.points, (both, weights, moment), everyone)
    if fit is None:  # a correction that leaves the range of means: labels alone have a solution
        beta = leaf.fit(rows).beta
        curve = curve_at(frame.link, beta, both, everyone)
        fit = CoefficientFit.at(frame, beta, curve, leaf.position(frame.columns, rows.points))
    lean, mean = w * (z @ fit.direction), frame.link.mean(z @ fit.beta)

    def among(size: int, rows: IntArray, own: FloatArray, weights: FloatArray) -> FloatArray:
        shares = np.zeros(size)
        shares[rows] = own - weights * own.sum()
        return shares

    left_out = w_out * (z_out @ fit.direction) * (p_out - frame.link.mean(z_out @ fit.beta))
    moved = np.zeros(n)
    moved[at] = lean
    return (
        fit.value,
        np.array([among(n, at, lean * (s - mean), w) for s in (y, p, q)]),
        moved,
        among(m, there, left_out, w_out),
    )


def spread(influence: FloatArray) -> float:
    """Standard error of an estimate from independent rows with these shares."""
    n = influence.size
    return math.sqrt(n / max(n - 1, 1) * float(np.square(influence).sum()))


def best_weight(
    labels: FloatArray, predicted: FloatArray, design: Design, sampling: float
) -> float:
    """Give the share of the probabilities that makes the interval shortest, within [0, 1]."""
    own, both, alone = (
        spread(shares) ** 2 if design.is_simple else design_variance(design, shares)
        for shares in (predicted, labels + predicted, labels)
    )
    covariance = (both - own - alone) / 2
    below = own + sampling**2
    return float(np.clip(covariance / below, 0.0, 1.0)) if below > 0 else 0.0


# --- transported ----------------------------------------------------------------------------------


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
        names = "mass", "sums", "moments", "n"
        sums: dict[str, Any] = {name: vars(self)[name] + vars(other)[name] for name in names}
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return replace(self, low=low, high=high, **sums)

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
    population: Population | Scan,
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
        below, moved = h, q - there.p
        if ratio.among_positives:
            below = h * q
        else:  # what is divided by has no labels
            h, hl = np.zeros(h.size), np.zeros(hl.size)
        top, bottom = (omega @ (g * q), omega @ below) if known is None else known
        if known is not None:
            top, bottom = top + omega @ (g * moved), bottom + omega @ (h * moved)
        bottom = float(bottom + hl @ left)
        if not bottom > 0:
            return None
        value = float(top + gl @ left) / bottom
        return (
            value,
            (gl - value * hl) / bottom,
            omega * (g * q - value * below) / bottom,
            omega * (g - value * h) * moved / bottom,
        )

    def _coefficient(self, leaf: Coefficient, left: FloatArray) -> Carried | None:
        """Solve the equation whose sums are carried over; None where it has no solution."""
        omega, q, ones = self._omega, self.there, np.ones(self.labelled.n)
        points, ours = self.compared.population, self.compared.labelled
        frame, at, design = frame_of(leaf, TaskRows(points, omega, q))
        here, design_here = frame.rows_of(ours, ones)
        moment = design.T @ (omega[at] * q[at]) + design_here.T @ left[here]
        fit = fitted_to(leaf, frame, points, (design, omega[at], moment))
        if fit is None:
            return None
        # All sums are of the rows at hand, so corrections have moved nothing else.
        return fit.value, fit.lean(ours, ones), fit.shares(points, omega, q), np.zeros(q.size)


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
    ones = np.column_stack([own.labelled.y for own in transports.values()])
    here = np.column_stack([own.here for own in transports.values()])
    e = ones - here
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
    # What labels of the rows may have done, with the floors of tasks.
    law = LabelLaw.of(labelled, leaves, here).carried_by(np.abs(w * lean).sum(axis=1))
    noise = (w * lean * e).sum(axis=1)
    if transports[classes[0]].selection is not None:  # who is labelled is drawn, too: a ratio
        noise = noise - w[:, 0] * float(noise.sum())
    error = law.uncertainty(noise, np.zeros(labelled.n), w * lean)
    # The population's part: of all rows, and of those at hand among them.
    if totals is None:
        error = error.plus(spread(slopes @ shares))
    else:
        some = slopes @ moved
        left = 1 - min(some.size / totals.n, 1.0)
        at_hand = math.sqrt(left) * spread(some - some.mean())
        error = error.plus(math.hypot(totals.stderr(slopes, values), at_hand))
    for k, (_, _, left_over) in enumerate(weighed.values()):
        error = error.plus(left_over(lean[:, k] * e[:, k]))
    balances = [balance for _, balance, _ in weighed.values()]
    size = min(balance.effective for balance in balances)
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


def _balanced(leaves: Sequence[Leaf], compared: RowPair) -> Balance:
    """Weights that make labelled rows like the population, in what a task reads, too."""
    # Coefficients as the population has them with probabilities say what rows' labels move.
    w = compared.weights / compared.weights.mean()
    rows = TaskRows(compared.population, w, compared.population.p)
    fits: dict[Leaf, CoefficientFit] = {
        leaf: leaf.fit(rows) for leaf in leaves if isinstance(leaf, Coefficient)
    }
    here, there = (
        own_features(leaves, points, compared, fits)
        for points in (compared.labelled, compared.population)
    )
    return compared.balance(here, there) if here.shape[1] else compared.plain_balance


def own_features(
    leaves: Sequence[Leaf], points: Points, compared: RowPair, fits: Mapping[Leaf, CoefficientFit]
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


def _clipped_lean(fit: CoefficientFit, points: Points, population: Points) -> FloatArray:
    """What labels of some rows move a coefficient, (n,), without the outermost thousandths."""
    there, own = (fit.lean(rows, np.ones(len(rows))) for rows in (population, points))
    return np.clip(own, *np.quantile(there, [0.001, 0.999]))


# --- recalibrated ---------------------------------------------------------------------------------


def recalibrated(
    task: Task, labelled: Sample, out: TaskRows, law: LabelLaw
) -> tuple[float, Uncertainty, float]:
    """Plug-in of p plus local bias, its uncertainty, and the share of rows left as they are.

    Smoothing leaves some of the bias; what it leaves at the labelled rows is taken away, too
    (twicing: Stuetzle and Mittal 1979).
    """
    kernel = neighbour_kernel(labelled.points)
    there = _Smooth.of(labelled, out.points, kernel)
    value, leaning, sampling = _linearised(task, _corrected(task, out, there.bias), labelled)
    here = _Smooth.of(labelled, labelled.points, kernel)
    share = there.shares(leaning)  # of every labelled row's residual in the number
    remainder = float(share @ (labelled.residuals - here.bias))
    share = 2 * share - here.shares(share)
    noise = law.uncertainty(share * here.left_over(), np.zeros(labelled.n), share)
    # As much may be left again as was left once.
    error = noise.plus(spread(sampling)).plus(remainder)
    return value + remainder, error, float(np.mean(there.widths == 0))


def _corrected(task: Task, out: TaskRows, bias: FloatArray) -> TaskRows:
    """Probabilities plus bias; only sums count, so rows may leave [0, 1] if sums are positive."""
    moved = replace(out, stand_in=out.stand_in[:, 0] + bias)
    try:
        has_values = not np.isnan([fit.value for fit in task.fitted(moved).fits]).any()
    except InputError:  # a regression without a solution
        has_values = False
    return moved if has_values else replace(out, stand_in=np.clip(moved.stand_in, 0.0, 1.0))


def _linearised(
    task: Task, moved: TaskRows, labelled: Sample
) -> tuple[float, FloatArray, FloatArray]:
    """Value on the population, what its probabilities move, and the shares of its rows.

    Where noise has left next to no positives to divide by, shares are those of half as many as
    the labelled rows let expect.
    """
    fit, labels = task.fitted(moved), TaskRows.labelled(labelled)
    less = [_held_back(leaf, moved, labels) for leaf in fit.leaves]
    value, fit = fit.value, replace(fit, slopes=fit.slopes * less)
    return value, fit.lean(moved)[:, 0], fit.shares(moved)


def _held_back(leaf: Leaf, rows: TaskRows, labelled: TaskRows) -> float:
    """By how much shares are held back where next to nothing is left to divide by."""
    if not isinstance(leaf, Ratio):
        return 1.0
    share, mass = (
        leaf.fit(labelled).mass
        / float(labelled.weights @ leaf.inside_of(labelled.points, labelled.weights)),
        float(rows.weights @ leaf.inside_of(rows.points, rows.weights)),
    )
    return min(1.0, 2 * leaf.fit(rows).mass / (share * mass))


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Local bias of the labelled rows at some places.

    Widths begin at half of the usual ones, and grow where nobody is near.
    """

    labelled: Sample
    points: Points
    kernel: LocalKernel
    bias: FloatArray
    mass: FloatArray
    widths: FloatArray  # 0 where nobody is near at any

    @classmethod
    def of(cls, labelled: Sample, points: Points, kernel: LocalKernel) -> _Smooth:
        bias, mass, widths = (np.zeros(len(points)) for _ in range(3))
        w, still_open = labelled.weights_or_ones, np.arange(len(points))
        for factor in WIDTHS:
            near, lean, squares = (np.zeros(len(points)) for _ in range(3))
            for rows, places, block in _tiles(labelled, points, still_open, factor, kernel):
                near[places] += block @ w[rows]
                lean[places] += block @ (w[rows] * labelled.residuals[rows])
                squares[places] += block**2 @ w[rows] ** 2
            size = np.divide(near**2, squares, out=np.zeros(len(points)), where=squares > 0)
            places = still_open[size[still_open] >= MIN_NEIGHBOURS]
            bias[places], mass[places] = lean[places] / near[places], near[places]
            widths[places] = factor
            still_open = still_open[widths[still_open] == 0]
            if not still_open.size:
                break
        return cls(labelled, points, kernel, bias, mass, widths)

    def shares(self, slope: FloatArray) -> FloatArray:
        """Shares of the labelled rows' residuals in the sum of `slope` times local bias, (n,)."""
        slope = np.divide(slope, self.mass, out=np.zeros(slope.size), where=self.mass > 0)
        w, share = self.labelled.weights_or_ones, np.zeros(self.labelled.n)
        for factor in WIDTHS:
            chosen = np.flatnonzero(self.widths == factor)
            tiles = _tiles(self.labelled, self.points, chosen, factor, self.kernel)
            for rows, places, block in tiles:
                share[rows] += w[rows] * (slope[places] @ block)
        return share

    def left_over(self) -> FloatArray:
        """Residuals less the local bias of the other rows: noise, without what is removed."""
        w, e = self.labelled.weights_or_ones, self.labelled.residuals
        own = np.divide(w, self.mass, out=np.ones(w.size), where=self.mass > 0)
        left = np.divide(e - self.bias, 1 - own, out=e.copy(), where=own < 0.5)
        return np.asarray(left)


def _tiles(
    labelled: Sample, points: Points, places: IntArray, factor: float, kernel: LocalKernel
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Weights of some labelled rows at some places at a time, by a kernel so many times as wide."""
    for at in range(0, places.size, PLACES_AT_ONCE):
        some = places[at : at + PLACES_AT_ONCE]
        weights = Neighbours(points.take(some), kernel.widened(factor))
        for first in range(0, labelled.n, CHUNK_ROWS):
            chunk = slice(first, first + CHUNK_ROWS)
            for near, rows, block in weights.tiles(labelled.points.take(chunk)):
                yield rows + first, some[near], block
