"""Checks for several classes: what can be known before a label is looked at, and what is summed.

Every class has the checks of the default dictionary that are made of features; one kernel on all
probabilities and covariates serves all classes; functions of the covariates serve contrasts between
classes. A pass over the rows adds up one bank for each class and two works that all classes share.

All checks, of each class, of all together and between pairs, are brought to one scale. They share
their draws, so the largest of them has an exact p-value, and step-down adjusts every one for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import ndtr

from itrust._core import AnyArray, BoolArray, FloatArray, IntArray
from itrust.calibration.dictionary.bank import FEW_EVENTS, Bank, make_bank, whitened
from itrust.calibration.dictionary.default import contrast_entries, default_dictionary_for
from itrust.calibration.dictionary.entries import Entry
from itrust.calibration.pipeline import (
    SMALL_WORK,
    Batch,
    Prepared,
    Scores,
    joined,
    log_tails_of,
    on_one_scale,
)
from itrust.calibration.results import TakenFor
from itrust.data import Column, Extract, Pilot, Points, Rows
from itrust.engines import (
    Engine,
    Factor,
    LowRankPlan,
    Outcome,
    Plan,
    Products,
    Summing,
    Survey,
    Work,
    available_threads,
    make_plan,
    ordered_map,
    rowwise_work,
)
from itrust.kernels import RBF, Constant, LocalKernel, Median, default_covariate_kernel
from itrust.nulls import Null
from itrust.terms import Features, Shape

MAX_EXACT_ROWS = 512  # whose kernel is taken as it is
POINTS = 20_000  # rows that dictionaries are chosen from
PILOT_ROWS = 2_048
JOINT = Factor(tolerance=0.05, max_rank=128, pilot=PILOT_ROWS)
MAX_DENSE_ROWS, MAX_ROWS_OF_SKEWNESS = 1_500, 512
NO_EIGENVALUE = 1e-14
MAX_PAIRS = 45  # of classes: all pairs of ten
LEFT_OUT = ("full",)  # families whose place the joint form takes
MIN_VARIANCE = 1.0  # of a contrast, in labels: below that hardly anything can be drawn

# What the null law of contrasts is made of: covariances of the sums of classes, (g, K, K), those
# with the level, sums of phi^3 p, p^2 and p^3, (g, K, 3), and of phi^3 p_k^2 p_l, (g, K, K).
Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
Block = tuple[IntArray | slice, int, AnyArray]  # rows, number of the block, features (r, rows)


Target = tuple[Products, AnyArray, AnyArray]


@dataclass(frozen=True, eq=False)
class JointForm(Work):
    """One kernel on all probabilities and covariates, as features that all classes share."""

    kernel: LocalKernel
    plan: LowRankPlan | None
    whole: FloatArray | None
    names: tuple[str, ...]
    unit: float
    dtype: DTypeLike = np.float64
    sd: float = 0.0
    skewness: float = 0.0
    outcome = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of features of each block."""
        if self.plan is None:
            return (0 if self.whole is None else len(self.whole),)
        return tuple(self.plan.ranks)

    @property
    def rank(self) -> int:
        """Number of features of all blocks."""
        return sum(self.ranks)

    def describe(self) -> str:
        return "in full" if self.plan is None else f"factor of rank {self.rank}"

    def blocks(self, rows: Rows) -> list[Block]:
        if self.plan is None:
            assert self.whole is not None
            own = self.whole[:, rows.first : rows.first + rows.n]
            return [(slice(None), 0, own.astype(self.dtype))]
        found = self.plan.features(joint_points(rows, self.names))
        return [(own, number, values.astype(self.dtype)) for own, number, values in found]

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> Summing:
        """Start on a chunk, for forms (K, r, columns) and diagonals (K, columns)."""
        ends, classes = np.cumsum([0, *self.ranks]), chunk.predictions.shape[1]
        forms, diagonals = np.zeros((classes, ends[-1], columns)), np.zeros((classes, columns))
        blocks = []
        for rows, number, features in self.blocks(chunk):
            weighted = features * weights[rows].astype(features.dtype)
            squares = np.einsum("ri,ri->i", weighted, weighted)[:, None]
            blocks.append((rows, slice(ends[number], ends[number + 1]), weighted, squares))

        def targets(k: int, outcome: Rows) -> list[Target]:
            """Where what a class adds belongs; features are computed once for all."""
            return [
                (
                    Products(features.T, squares, outcome.p[own], own),
                    forms[k, place],
                    diagonals[k : k + 1],
                )
                for own, place, features, squares in blocks
            ]

        return Summing(targets, lambda: (forms, diagonals))


@dataclass(frozen=True, eq=False)
class Contrasts(Work):
    """Functions of the covariates that contrasts between classes are summed along."""

    entries: tuple[Entry, ...]
    features: Features
    pairs: IntArray
    left_out: int
    unit: float
    dtype: DTypeLike = np.float64
    outcome = None

    @property
    def is_trend(self) -> AnyArray:
        """Whether a feature is judged beside the overall level, (g,)."""
        return np.array([entry.shape is Shape.TREND for entry in self.entries])

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> Summing:
        """Start on a chunk, for forms (K, g, columns)."""
        features = self.features.matrix(chunk.points, self.dtype)
        weighted = features * weights.astype(features.dtype)
        forms = np.zeros((chunk.predictions.shape[1], len(features), columns))
        none = np.empty((chunk.n, 0), dtype=features.dtype)

        def targets(k: int, outcome: Rows) -> list[Target]:
            """Where what a class adds belongs."""
            return [(Products(weighted.T, none, outcome.p), forms[k], forms[k, :0])]

        return Summing(targets, lambda: forms)

    def moments(self, rows: Rows, w: FloatArray) -> Moments:
        """What some rows add to the null law of contrasts."""
        p, phi = rows.predictions, self.features.matrix(rows.points) * w
        cubed, classes = phi**3, p.shape[1]
        covariance, with_level, mixed = (np.empty((len(phi), classes, classes)) for _ in range(3))
        for g in range(len(phi)):
            covariance[g] = _covariance(np.square(phi[g]), p)
            with_level[g] = _covariance(phi[g] * w, p)
            mixed[g] = (np.square(p) * cubed[g][:, None]).T @ p
        cubes = np.stack([cubed @ p**power for power in (1, 2, 3)], axis=-1)
        return covariance, with_level, cubes, mixed


def _covariance(weights: FloatArray, p: FloatArray) -> FloatArray:
    """Sum of weights times diag(p) - pp', (K, K)."""
    weighed = p * weights[:, None]
    return np.asarray(np.diag(weighed.sum(axis=0)) - weighed.T @ p)


@dataclass(frozen=True, eq=False)
class ContrastLaw:
    """The null law of contrasts between classes; no label is looked at."""

    vectors: IntArray
    mixing: Sequence[FloatArray]
    means: FloatArray
    sds: FloatArray
    skews: FloatArray
    pairs: IntArray
    level: FloatArray
    sd: FloatArray
    skewness: FloatArray


@dataclass(frozen=True, eq=False)
class ClassChecks:
    """All that is known before a label is looked at, as a part of a pass; `prepared` by class."""

    survey: Survey
    engine: Engine
    prepared: tuple[Prepared, ...]
    joint: JointForm
    contrasts: Contrasts
    law: ContrastLaw
    even: BoolArray | None = None  # classes whose sums over clusters are nearly symmetric
    null: Null | None = None
    plans: Sequence[Plan] = ()

    def for_null(self, null: Null | None) -> ClassChecks:
        """The same checks, brought to one scale as this null needs."""
        return replace(self, null=null, prepared=tuple(own.for_null(null) for own in self.prepared))

    @property
    def draws_give_scale(self) -> bool:
        """Whether scores take their scale from further draws: the null keeps clusters whole."""
        return self.null is not None and self.null.keeps_clusters

    def works(self, block: range) -> list[Work]:  # noqa: ARG002
        return [*(own.bank for own in self.prepared), self.joint, self.contrasts]

    @property
    def width(self) -> int:
        shared = self.joint.rank + len(self.contrasts.entries) + 1
        return sum(own.bank.kept + shared for own in self.prepared)

    @property
    def vectors(self) -> slice:
        """Numbers of the checks that are functions of the covariates, all classes together."""
        return slice(1, 1 + self.law.vectors.size)

    @property
    def classes(self) -> list[slice]:
        """Numbers of the checks of every class."""
        ends = self.vectors.stop + np.cumsum([0, *(own.weights.size for own in self.prepared)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def pairs(self) -> slice:
        """Numbers of the contrasts between two classes."""
        first = self.classes[-1].stop
        return slice(first, first + len(self.law.pairs))

    @property
    def weights(self) -> FloatArray:
        """Of all checks: the form, vectors, those of every class, pairs."""
        of_classes = [own.weights for own in self.prepared]
        lively = max(sum(w.size > 0 for w in of_classes), 1)
        vectors, pairs = self.law.vectors.size, len(self.law.pairs)
        parts = [
            np.array([SHARES["form"]]),
            np.full(vectors, SHARES["vectors"] / max(vectors, 1)),
            *(w * (SHARES["classes"] / lively) for w in of_classes),
            np.full(pairs, SHARES["pairs"] / max(pairs, 1)),
        ]
        weights = np.concatenate(parts)
        return np.asarray(weights / weights.sum())

    @property
    def symmetric(self) -> BoolArray:
        """Marks of the checks whose sums over clusters are nearly symmetric."""
        law, even = self.law, np.ones(len(self.prepared), dtype=bool)
        even = even if self.even is None else self.even
        of_vectors = np.full(law.vectors.size, bool(even.all()))
        of_classes = [own.symmetric for own in self.prepared]
        return np.concatenate(
            [[False], of_vectors, *of_classes, even[law.pairs[:, :2]].all(axis=1)]
        )

    def reduced(self, outcome: Outcome, block: range) -> Scores | Batch:
        scaled = self.scaled(outcome)
        if block.start:
            return scaled
        singles = [own.is_single for own in self.prepared]
        together = np.zeros(1 + self.law.vectors.size, dtype=bool)
        is_single = np.concatenate([together, *singles, np.ones(len(self.law.pairs), dtype=bool)])
        pairs = zip(self.prepared, outcome.works, strict=False)
        located = [entry for own, sums in pairs for entry in own.located(sums)]
        entries = (*[None] * together.size, *located, *[None] * len(self.law.pairs))
        return Scores(
            *scaled, entries=entries, weights=self.weights, is_single=is_single, tally=outcome.tally
        )

    def finished(self, batches: Sequence[Any]) -> Scores:
        return joined(batches)

    def scaled(self, outcome: Outcome, *, precise: bool = True) -> Batch:  # noqa: ARG002
        """One batch on the scale of independent rows: the form, vectors, classes, pairs."""
        law, (*banks, (forms, diagonals), sums) = self.law, outcome.works
        over_pairs = np.square(forms).sum(axis=1) - diagonals
        total, sd = over_pairs.sum(axis=0), np.array([self.joint.sd])
        form = np.divide(total, sd, out=np.zeros_like(total), where=sd > 0)[None]
        vectors = np.array(
            [
                np.square(mixing @ sums[:, g]).sum(axis=0)
                for g, mixing in zip(law.vectors, law.mixing, strict=True)
            ]
        ).reshape(law.vectors.size, total.size)
        vectors = (vectors - law.means[:, None]) / law.sds[:, None]
        a, b, g = law.pairs.T
        pairs = sums[a, g] - sums[b, g]
        trends = np.flatnonzero(law.level)
        pairs[trends] -= law.level[trends, None] * (sums[a[trends], 0] - sums[b[trends], 0])
        parts = [
            _with_tails(form, sd, np.array([self.joint.skewness])),
            _with_tails(vectors, law.sds, law.skews),
            *(on_one_scale(own.bank, some) for own, some in zip(self.prepared, banks, strict=True)),
            _with_tails(pairs / law.sd[:, None], law.sd, law.skewness, single=True),
        ]
        tails, standardised, *laws = (np.concatenate(own) for own in zip(*parts, strict=True))
        return tails, standardised, over_pairs / outcome.pair_weight, *laws


def _contrast_law(engine: Engine, survey: Survey, contrasts: Contrasts) -> ContrastLaw:
    """The null law of contrasts, from sums over all rows."""
    work = rowwise_work(contrasts.moments, contrasts.unit, None)
    moments: Moments = engine.run(survey, [], None, [work]).works[0]
    vectors, mixing, laws = [], [], []
    for g, covariance in enumerate(moments[0]):
        mixed = _whitening(covariance)
        if len(mixed):
            spread = mixed @ covariance @ mixed.T
            variance = 2 * float(np.sum(spread * spread))
            third = 8 * float(np.trace(spread @ spread @ spread))
            vectors.append(g)
            mixing.append(mixed)
            laws.append((float(np.trace(spread)), np.sqrt(variance), third / variance**1.5))
    numbers = np.array(vectors, dtype=np.int64)
    means, sds, skews = np.array(laws).reshape(-1, 3).T
    return ContrastLaw(numbers, mixing, means, sds, skews, *_pair_law(contrasts, moments))


def _whitening(covariance: FloatArray) -> FloatArray:
    """What makes the sums of all classes uncorrelated, (q, K); rare classes count less."""
    variance = np.diag(covariance)
    varies = variance > 1e-12 * max(float(variance.max()), 1.0)
    if np.count_nonzero(varies) < 2:
        return np.empty((0, len(covariance)))
    sd = np.sqrt(variance[varies] + FEW_EVENTS)
    return whitened(covariance[np.ix_(varies, varies)] / np.outer(sd, sd), sd, varies)


def _pair_law(
    contrasts: Contrasts, moments: Moments
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Contrasts that can vary, what is taken off for the level, their sd and skewness."""
    a, b = contrasts.pairs.T
    covariance, with_level, cubes, mixed = moments
    variance, with_level = (
        part[:, a, a] + part[:, b, b] - part[:, a, b] - part[:, b, a]
        for part in (covariance, with_level)
    )  # (g, m)
    one, two, three = np.moveaxis(cubes, -1, 0)
    third = one[:, a] - one[:, b] - 3 * (two[:, a] - two[:, b])
    third = third + 2 * (three[:, a] - three[:, b] - 3 * (mixed[:, a, b] - mixed[:, b, a]))
    safe = np.maximum(variance[0], 1e-300)
    level = np.where(contrasts.is_trend[:, None], with_level / safe, 0.0)
    variance = variance - np.where(contrasts.is_trend[:, None], with_level * level, 0.0)
    g, m = np.nonzero(variance >= MIN_VARIANCE)
    sd = np.sqrt(variance[g, m])
    return np.column_stack([a[m], b[m], g]), level[g, m], sd, third[g, m] / sd**3


def by_ticket(extract: Extract, size: int, first: int = 0) -> Rows:
    """Random rows, after the first so many, in their order, with the weights of a pass."""
    some: Rows = extract.some.cut(slice(0, extract.some.n), extract.weights)
    if first == 0 and size >= some.n:
        return some
    order = np.argsort(extract.tickets, kind="stable")
    return some.take(np.sort(order[first : first + size]))


def prepare_classes(extract: Extract, engine: Engine, draws: int) -> ClassChecks:
    """Choose features and landmarks from probabilities and covariates alone."""
    some, pilot = by_ticket(extract, POINTS), by_ticket(extract, PILOT_ROWS)
    w = some.weights
    unit = 1.0 if w is None else float(np.sqrt(np.mean(np.square(w))))

    # Without kernels, checks are the same for every class: they read probabilities by their ranks.
    dictionary = default_dictionary_for(some.outcome(0).points)
    kept = [e for e in dictionary.entries if e.kernel is None and e.family not in LEFT_OUT]
    dictionary = replace(dictionary, entries=tuple(kept))

    def bank_of(k: int) -> Bank:
        points = pilot.outcome(k).points
        rows = Pilot(points, pilot.weights, extract.n)
        return replace(make_bank(kept, rows, unit), outcome=k)

    classes = range(some.predictions.shape[1])
    banks = list(ordered_map(bank_of, classes, available_threads()))
    work = float(extract.n) * sum(bank.width for bank in banks) * (1 + draws)
    dtype = np.float64 if work <= SMALL_WORK else np.float32
    survey, contrasts = (
        engine.survey_of(extract),
        replace(_contrasts(some, pilot, unit), dtype=dtype),
    )
    return ClassChecks(
        survey,
        engine,
        tuple(Prepared(survey, engine, dictionary, replace(own, dtype=dtype)) for own in banks),
        replace(joint_form(extract, unit, engine.factor_of_all), dtype=dtype),
        contrasts,
        _contrast_law(engine, survey, contrasts),
    )


def joint_kernel(rows: Rows) -> tuple[LocalKernel, tuple[str, ...]]:
    """The default kernel on all probabilities and covariates, and the names of the former."""
    used = {column.name for column in rows.columns}
    names = []
    for k in range(rows.predictions.shape[1]):
        name = f"p{k}"
        while name in used:
            name = f"{name}_"
        used.add(name)
        names.append(name)
    on_p = RBF(Median(float(np.sqrt(len(names))))).on(*names)
    x = default_covariate_kernel(rows.columns)
    kernel = LocalKernel(Constant(), on_p * x if rows.columns else on_p)
    return kernel.resolve(joint_points(rows, names)), tuple(names)


def joint_points(rows: Rows, names: Sequence[str]) -> Points:
    """Rows whose probabilities are columns like the covariates."""
    own = [Column(name, "number", rows.predictions[:, k].copy()) for k, name in enumerate(names)]
    return Points(np.full(rows.n, 0.5), (*own, *rows.columns))


def joint_form(extract: Extract, unit: float, factor: Factor | None = None) -> JointForm:
    """Features of the joint kernel, and moments of its form under the null."""
    n, (kernel, names) = extract.n, joint_kernel(by_ticket(extract, POINTS))
    if n <= MAX_EXACT_ROWS and factor is None:
        gram = kernel.gram(joint_points(extract.some, names))
        values, vectors = np.linalg.eigh(gram.block(slice(None), slice(None)))
        kept = values > NO_EIGENVALUE * values.max()
        whole = np.ascontiguousarray((vectors[:, kept] * np.sqrt(values[kept])).T)
        form = JointForm(kernel, None, whole, names, unit)
    else:
        asked = factor or JOINT
        pilot = by_ticket(extract, min(asked.pilot, max(MAX_DENSE_ROWS, n // 3)))
        spread = _squared(pilot, unit) * (1 - np.square(pilot.predictions).sum(axis=1))
        plan = make_plan(
            kernel,
            Pilot(joint_points(pilot, names), None, n, joint=spread),
            tolerance=asked.tolerance or JOINT.tolerance or 0.0,
            max_rank=asked.max_rank,
            certified=False,
        )
        form = JointForm(kernel, plan, None, names, unit)
    sd, skewness = _null_law(extract, form)
    return replace(form, sd=sd, skewness=skewness)


def _squared(rows: Rows, unit: float) -> FloatArray:
    """Squared weights in their unit."""
    return np.ones(rows.n) if rows.weights is None else np.square(rows.weights / unit)


def _null_law(extract: Extract, form: JointForm) -> tuple[float, float]:
    """Standard deviation (closed form) and skewness of the sum over classes under the null.

    On all rows up to 1,500; beyond that on some, which changes with the root of 1 / pairs.
    """
    # Features fit the rows that landmarks were chosen from better than others.
    seen = PILOT_ROWS if extract.n >= PILOT_ROWS + MAX_DENSE_ROWS else 0
    some = by_ticket(extract, MAX_DENSE_ROWS, seen)
    f, w2 = some.predictions, _squared(some, form.unit)
    gram = np.zeros((some.n, some.n))
    for own, _, features in form.blocks(some):
        inside = np.arange(some.n)[own]
        gram[np.ix_(inside, inside)] = features.T @ features
    np.fill_diagonal(gram, 0.0)
    variance = 2 * float((np.square(gram) * trace_of_products(f) * w2 * w2[:, None]).sum())
    few = slice(0, MAX_ROWS_OF_SKEWNESS)
    triangles = 0.0
    for v in (f * (1 - f))[few].T:  # classes apart: enough for the length of a tail
        root = np.sqrt(v * w2[few])
        a = gram[few, few] * root * root[:, None]
        triangles += 8 * float(np.sum(a * (a @ a)))
    share = (some.n / len(gram[few])) ** 3
    skewness = max(triangles * share / variance**1.5, 0.0) if variance > 0 else 0.0
    pairs = extract.n * (extract.n - 1) / (some.n * (some.n - 1))
    return float(np.sqrt(variance * pairs)), skewness


def trace_of_products(f: FloatArray) -> FloatArray:
    """tr(S_i S_j) for all pairs of rows of f (n, m), with S = diag(f) - ff', (n, n)."""
    inner, squared = f @ f.T, np.square(f) @ f.T
    return np.asarray(inner - squared - squared.T + np.square(inner))


def _contrasts(some: Rows, pilot: Rows, unit: float) -> Contrasts:
    points = some.outcome(0).points
    entries = contrast_entries(points)
    features = Features.ranked([entry.features[0] for entry in entries], points)
    plain = Contrasts(entries, features, *_confused(pilot), unit)
    means = features.matrix(pilot.points).mean(axis=1)
    centres = np.where(plain.is_trend, means, 0.0)
    return replace(plain, features=replace(features, centres=centres))


def _confused(pilot: Rows) -> tuple[IntArray, int]:
    """Pairs of classes that can stand for each other, those that do most first, (m, 2).

    Beside them, how many more there are.
    """
    p = pilot.predictions
    together = (p if pilot.weights is None else p * pilot.weights[:, None]).T @ p
    first, second = np.triu_indices(p.shape[1], 1)
    mass = together[first, second]
    order = np.argsort(-mass, kind="stable")[:MAX_PAIRS]
    order = order[mass[order] > 0]
    left_out = int(np.count_nonzero(mass > 0)) - order.size
    return np.column_stack([first[order], second[order]]), left_out


# Shares of the weight, from a small power study; classes and pairs share theirs equally.
SHARES = {"form": 0.05, "vectors": 0.20, "classes": 0.45, "pairs": 0.30}
JUDGED = 0.2  # contrasts with larger p-values keep these
MAX_JUDGED = 60
CLEAR = 2.58  # null standard deviations by which each class has to be off


def _with_tails(
    standardised: FloatArray, sd: FloatArray, skewness: FloatArray, *, single: bool = False
) -> tuple[FloatArray, AnyArray, FloatArray, FloatArray]:
    tails = log_tails_of(standardised, skewness[:, None], np.full((len(sd), 1), single))
    return tails, standardised, sd, skewness


def taken_for(
    checks: ClassChecks,
    table: Scores,
    classes: Sequence[Any],
    adjusted: FloatArray,
    alone: FloatArray,
) -> tuple[TakenFor, ...]:
    """What every contrast between two classes shows, the largest scores first."""
    law, first, scores = checks.law, checks.pairs.start, table.observed[checks.pairs]
    sides = law.pairs[:, :2].copy()  # the class that is too low, and the one too high
    swapped = table.standardised[checks.pairs, 0] < 0
    sides[swapped] = sides[swapped, ::-1]
    order = np.argsort(-scores, kind="stable").tolist()
    judged = [number for number in order[:MAX_JUDGED] if adjusted[first + number] <= JUDGED]
    facts = _observed(checks, judged, sides[judged]) if judged else []
    contrasts: list[TakenFor] = []
    for at, number in enumerate(order):
        entry = checks.contrasts.entries[law.pairs[number, 2]]
        is_trend = entry.shape is Shape.TREND
        pvalue, moved, both = float(adjusted[first + number]), float("nan"), False
        if at < len(facts):  # those that are judged come first
            low, high, z, gone = facts[at]
            both = low >= CLEAR and high <= -CLEAR
            pvalue = max(pvalue, 2 * float(ndtr(-abs(z))))
            moved = moved if is_trend else gone
        actual, predicted = (classes[k] for k in sides[number])
        contrasts.append(
            TakenFor(
                actual=actual,
                predicted=predicted,
                **entry.about,
                direction=int(is_trend),
                moved=moved,
                both_sides=both,
                score=float(scores[number]),
                unadjusted_pvalue=float(alone[first + number]),
                pvalue=pvalue,
            )
        )
    return tuple(contrasts)


def _observed(checks: ClassChecks, judged: Sequence[int], sides: IntArray) -> list[list[float]]:
    """What the observed residuals of some contrasts show, in one pass over the rows, (m, 4).

    Both classes in null standard deviations, the contrast in observed ones, and the mean
    probability that should have gone to the actual class.
    """
    functions, places = np.unique(checks.law.pairs[judged, 2], return_inverse=True)
    whole = checks.survey.source.in_memory
    clusters = None if whole is None or whole.cluster is None else int(whole.cluster.max()) + 1
    features, levels = checks.contrasts.features.take(functions.tolist()), checks.law.level[judged]
    summing = partial(_pair_sums, features, sides, places, levels, clusters)
    work = rowwise_work(summing, checks.joint.unit, None)
    sums: tuple[FloatArray, ...] = checks.engine.run(checks.survey, [], None, [work]).works[0]
    of_sides, variances, contrast, squares, mass, plain = sums
    spread = np.square(squares).sum(axis=1) if squares.shape[1] > 1 else squares[:, 0]
    lacks, extra = plain.T
    numbers = (
        *_ratio(of_sides, np.sqrt(variances)).T,
        _ratio(contrast, np.sqrt(spread)),
        _ratio(np.maximum(np.minimum(lacks, -extra), 0.0), mass),
    )
    facts: list[list[float]] = np.column_stack(numbers).tolist()
    return facts


def _ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _pair_sums(
    features: Features,
    sides: IntArray,
    places: IntArray,
    levels: FloatArray,
    clusters: int | None,
    rows: Rows,
    w: FloatArray,
) -> tuple[FloatArray, ...]:
    """What some rows add along the functions of m contrasts, less what their levels take off.

    Sums of `phi e` and `phi^2 p (1 - p)` for both classes, (m, 2), of the contrast and its squares,
    by clusters where there are any; and of the function as it is, alone and times both residuals.
    """
    plain = (features.matrix(rows.points) * w)[places]  # (m, n)
    phi = plain - levels[:, None] * w
    e, p = rows.residuals[:, sides], rows.predictions[:, sides]  # (n, m, 2)
    parts = phi * (e[..., 0] - e[..., 1]).T
    squares = np.square(parts).sum(axis=1, keepdims=True)
    if rows.cluster is not None:
        squares = np.array([np.bincount(rows.cluster, own, clusters or 0) for own in parts])
    return (
        np.einsum("mn,nms->ms", phi, e),
        np.einsum("mn,nms->ms", np.square(phi), p * (1 - p)),
        parts.sum(axis=1),
        squares,
        plain.sum(axis=1),
        np.einsum("mn,nms->ms", plain, e),
    )
