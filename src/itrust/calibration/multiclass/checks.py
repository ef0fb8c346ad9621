"""Checks for several classes: what can be known before a label is looked at.

Every class has the checks of the default dictionary that are made of features; one kernel on all
probabilities and covariates serves all classes; functions of the covariates serve contrasts between
classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, FloatArray, IntArray
from itrust.calibration.dictionary.bank import Bank, make_bank
from itrust.calibration.dictionary.default import contrast_entries, default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.calibration.multiclass.rows import CheckedRows, RowsOfClasses
from itrust.data import Column, Pilot, Points
from itrust.engines import Factor, LowRankPlan, available_threads, make_plan, ordered_map
from itrust.kernels import RBF, Constant, LocalKernel, Median, default_covariate_kernel
from itrust.terms import Features, Shape

SMALL_WORK = 2e9  # multiply-adds up to which double precision costs nothing
MAX_EXACT_ROWS = 512  # whose kernel is taken as it is
POINTS = 20_000  # rows that dictionaries are chosen from
PILOT_ROWS = 2_048
JOINT_TOLERANCE, JOINT_RANK = 0.05, 128
MAX_DENSE_ROWS, MAX_ROWS_OF_SKEWNESS = 1_500, 512
NO_EIGENVALUE = 1e-14
MAX_PAIRS = 45  # of classes: all pairs of ten
LEFT_OUT = ("full",)  # families whose place the joint form takes


@dataclass(frozen=True, eq=False)
class JointForm:
    """One kernel on all probabilities and covariates, as features that all classes share."""

    kernel: LocalKernel
    plan: LowRankPlan | None
    whole: FloatArray | None
    names: tuple[str, ...]
    sd: float = 0.0
    skewness: float = 0.0

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of features of every block."""
        if self.plan is None:
            return (0 if self.whole is None else len(self.whole),)
        return tuple(block.rank for block in self.plan.blocks)

    @property
    def rank(self) -> int:
        """Number of features of all blocks."""
        return sum(self.ranks)

    def describe(self) -> str:
        """How the kernel is evaluated, in a few words."""
        return "in full" if self.plan is None else f"factor of rank {self.rank}"

    def features(
        self, rows: CheckedRows, dtype: DTypeLike
    ) -> list[tuple[IntArray | slice, int, AnyArray]]:
        """Rows (within these), number of the block and features (r, rows) of every block."""
        if self.plan is None:
            assert self.whole is not None
            return [(slice(None), 0, self.whole[:, rows.rows].astype(dtype))]
        found = self.plan.features(joint_points(rows, self.names))
        return [(own, number, values.astype(dtype)) for own, number, values in found]


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Functions of the covariates that contrasts between classes are summed along."""

    entries: tuple[Entry, ...]
    features: Features
    pairs: IntArray
    left_out: int = 0

    @property
    def is_trend(self) -> AnyArray:
        """Whether a feature is judged beside the overall level, (g,)."""
        return np.array([entry.shape is Shape.TREND for entry in self.entries])

    def some(self, chosen: Sequence[int]) -> Contrasts:
        """Some of the features alone, in this order."""
        entries = tuple(self.entries[g] for g in chosen)
        return replace(self, entries=entries, features=self.features.take(chosen))

    def matrix(self, points: Points, dtype: DTypeLike) -> AnyArray:
        """All features of some rows, (g, n)."""
        return self.features.matrix(points, dtype)


@dataclass(frozen=True, eq=False)
class ClassChecks:
    """All that can be known before a label is looked at."""

    rows: RowsOfClasses
    dictionary: Dictionary
    banks: tuple[Bank, ...]
    weights: tuple[FloatArray, ...]
    joint: JointForm
    contrasts: Contrasts
    unit: float
    dtype: DTypeLike = np.float64

    def for_signs(self) -> ClassChecks:
        """The same where draws keep the size of residuals, which then are divided by it."""
        banks = tuple(replace(bank, is_studentised=True) for bank in self.banks)
        return replace(self, banks=banks)

    def without_rows(self) -> ClassChecks:
        """The same for rows that are given one by one: nothing of the whole goes with them."""
        none = self.rows.spread(1).take(slice(0, 0))
        return replace(self, rows=none)

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j, in units of the weights."""
        return self.rows.facts.pair_weight / self.unit**2

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        own = sum(bank.width for bank in self.banks)
        shared = self.joint.rank + len(self.contrasts.entries) + 1
        return own + self.rows.classes * shared


def prepare_classes(rows: RowsOfClasses, draws: int, engine: Factor | None = None) -> ClassChecks:
    """Choose features and landmarks from probabilities and covariates alone."""
    unit = rows.unit
    some, pilot = rows.spread(POINTS), rows.spread(PILOT_ROWS)
    w2 = np.square(pilot.weights_or_ones)

    # Without kernels, checks are the same for every class: they read probabilities by their ranks.
    dictionary = default_dictionary_for(some.points(0))
    kept = [e for e in dictionary.entries if e.kernel is None and e.family not in LEFT_OUT]
    dictionary = replace(dictionary, entries=tuple(kept))

    def of_class(code: int) -> Bank:
        points = pilot.points(code)
        own = Pilot(points, w2 * points.p * (1 - points.p), np.empty(0), rows.n)
        return make_bank(kept, own, unit)

    banks = tuple(ordered_map(of_class, range(rows.classes), available_threads()))
    work = float(rows.n) * sum(bank.width for bank in banks) * (1 + draws)
    dtype = np.float64 if work <= SMALL_WORK else np.float32
    banks = tuple(replace(bank, dtype=dtype) for bank in banks)
    weights = tuple(
        np.array(replace(dictionary, entries=bank.entries).weights() if bank.entries else ())
        for bank in banks
    )
    joint, contrasts = joint_form(rows, unit, engine), _contrasts(some, pilot)
    return ClassChecks(rows, dictionary, banks, weights, joint, contrasts, unit, dtype)


def joint_kernel(rows: CheckedRows) -> tuple[LocalKernel, tuple[str, ...]]:
    """The default kernel on all probabilities and covariates, and the names of the former."""
    used = {column.name for column in rows.columns}
    names = []
    for k in range(rows.classes):
        name = f"p{k}"
        while name in used:
            name = f"{name}_"
        used.add(name)
        names.append(name)
    on_p = RBF(Median(float(np.sqrt(len(names))))).on(*names)
    x = default_covariate_kernel(rows.columns)
    kernel = LocalKernel(Constant(), on_p * x if rows.columns else on_p)
    return kernel.resolve(joint_points(rows, tuple(names))), tuple(names)


def joint_points(rows: CheckedRows, names: Sequence[str]) -> Points:
    """Rows whose probabilities are columns like the covariates."""
    own = [Column(name, "number", rows.p[:, k].copy()) for k, name in enumerate(names)]
    return Points(np.full(rows.n, 0.5), (*own, *rows.columns))


def joint_form(rows: RowsOfClasses, unit: float, engine: Factor | None = None) -> JointForm:
    """Features of the joint kernel, and moments of its form under the null."""
    kernel, names = joint_kernel(rows.spread(POINTS))
    if rows.n <= MAX_EXACT_ROWS and engine is None:
        gram = kernel.gram(joint_points(rows.spread(MAX_EXACT_ROWS), names))
        values, vectors = np.linalg.eigh(gram.block(slice(None), slice(None)))
        kept = values > NO_EIGENVALUE * values.max()
        whole = np.ascontiguousarray((vectors[:, kept] * np.sqrt(values[kept])).T)
        form = JointForm(kernel, None, whole, names)
    else:
        asked = engine or Factor(tolerance=JOINT_TOLERANCE, max_rank=JOINT_RANK, pilot=PILOT_ROWS)
        pilot = rows.spread(min(asked.pilot, max(MAX_DENSE_ROWS, rows.n // 3)))
        w2 = np.square(pilot.weights_or_ones / unit)
        spread = w2 * (1 - np.square(pilot.p).sum(axis=1))
        points = joint_points(pilot, names)
        plan = make_plan(
            kernel,
            Pilot(points, spread, np.empty(0), rows.n),
            tolerance=asked.tolerance or JOINT_TOLERANCE,
            max_rank=asked.max_rank,
            certified=False,
            rng=np.random.default_rng(0),
        )
        form = JointForm(kernel, plan, None, names)
    sd, skewness = _null_law(rows, form, unit)
    return replace(form, sd=sd, skewness=skewness)


def _null_law(rows: RowsOfClasses, form: JointForm, unit: float) -> tuple[float, float]:
    """Standard deviation (closed form) and skewness of the sum over classes under the null.

    On all rows up to 1,500; beyond that on some, which changes with the root of 1 / pairs.
    """
    # Features fit the rows that landmarks were chosen from better than others.
    seen = PILOT_ROWS if rows.n >= PILOT_ROWS + MAX_DENSE_ROWS else 0
    some = rows.spread(MAX_DENSE_ROWS, seen)
    f, w2 = some.p, np.square(some.weights_or_ones / unit)
    gram = np.zeros((some.n, some.n))
    for own, _, features in form.features(some, np.float64):
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
    pairs = rows.n * (rows.n - 1) / (some.n * (some.n - 1))
    return float(np.sqrt(variance * pairs)), skewness


def trace_of_products(f: FloatArray) -> FloatArray:
    """tr(S_i S_j) for all pairs of rows of f (n, m), with S = diag(f) - ff', (n, n)."""
    inner, squared = f @ f.T, np.square(f) @ f.T
    return np.asarray(inner - squared - squared.T + np.square(inner))


def _contrasts(some: CheckedRows, pilot: CheckedRows) -> Contrasts:
    points = some.points(0)
    entries = contrast_entries(points)
    features = Features.ranked([entry.features[0] for entry in entries], points)
    plain = Contrasts(entries, features, *_confused(pilot))
    means = plain.matrix(pilot.points(0), np.float64).mean(axis=1)
    centres = np.where(plain.is_trend, means, 0.0)
    return replace(plain, features=replace(features, centres=centres))


def _confused(pilot: CheckedRows) -> tuple[IntArray, int]:
    """Pairs of classes that can stand for each other, those that do most first, (m, 2).

    Beside them, how many more there are.
    """
    together = (pilot.p * pilot.weights_or_ones[:, None]).T @ pilot.p
    first, second = np.triu_indices(pilot.classes, 1)
    mass = together[first, second]
    order = np.argsort(-mass, kind="stable")[:MAX_PAIRS]
    order = order[mass[order] > 0]
    left_out = int(np.count_nonzero(mass > 0)) - order.size
    return np.column_stack([first[order], second[order]]), left_out
