"""Checks for several classes: what can be known before a label is looked at.

Every class has its own dictionary of features; one kernel on all probabilities and covariates
serves all classes; functions of the covariates serve contrasts between classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, FloatArray, IntArray, tickets
from itrust.calibration.dictionary.bank import Bank, feature_matrix, make_bank
from itrust.calibration.dictionary.default import contrast_entries, default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary, Entry, Shape
from itrust.calibration.dictionary.terms import ColumnName, RankScale
from itrust.data import Chunk, Column, MulticlassSample, Pilot, Points
from itrust.engines import Factor, LowRankPlan, available_threads, make_plan, ordered_map
from itrust.kernels import RBF, Constant, LocalKernel, Median, default_covariate_kernel

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
class ClassRows:
    """The rows of several classes, as a pass reads them.

    Attributes
    ----------
    p : (n, K) array
        Probabilities.
    codes : (n,) array of int
        Positions of the labels' classes.
    columns : tuple of Column
        The covariates.
    weights : (n,) array or None
        None if all rows count alike.
    units : (n,) array of int or None
        Clusters; None where rows are independent.
    """

    p: FloatArray
    codes: IntArray
    columns: tuple[Column, ...]
    weights: FloatArray | None
    units: IntArray | None

    @classmethod
    def of(cls, sample: MulticlassSample) -> ClassRows:
        """Read what a sample of several classes holds."""
        first = sample.one_class(sample.classes[0])
        together = not first.design.rows_are_independent
        units = first.design.units if together else None
        return cls(sample.p, sample.codes, first.columns, first.weights, units)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.p)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.p.shape[1])

    @property
    def weights_or_ones(self) -> FloatArray:
        """A weight for every row."""
        return np.ones(self.n) if self.weights is None else self.weights

    @property
    def unit(self) -> float:
        """The size of the weights, by which they are divided."""
        if self.weights is None:
            return 1.0
        return float(np.sqrt(np.mean(np.square(self.weights))))

    def points(self, code: int, rows: IntArray | slice = slice(None)) -> Points:
        """Probabilities of one class, and covariates."""
        return Points(self.p[rows, code], tuple(column.take(rows) for column in self.columns))

    def chunk(self, code: int, rows: range) -> Chunk:
        """Some rows of one class against the rest."""
        some = slice(rows.start, rows.stop)
        weights = None if self.weights is None else self.weights[some]
        points = self.points(code, some)
        return Chunk(rows.start, (self.codes[some] == code) * 1.0, points.p, points, weights)

    def spread(self, size: int, first: int = 0) -> IntArray:
        """Numbers of random rows, always the same ones, after the first so many."""
        order = np.argsort(tickets(0, self.n), kind="stable")[first : first + size]
        return np.sort(order)


@dataclass(frozen=True, eq=False)
class JointForm:
    """One kernel on all probabilities and covariates, as features that all classes share.

    Attributes
    ----------
    kernel : LocalKernel
        With its widths.
    plan : LowRankPlan or None
        Landmarks; None where the kernel is taken as it is.
    whole : (r, n) array or None
        Features of all rows, where the kernel is taken as it is.
    sd, skewness : float
        Of the sum over classes under the null, in units of the weights.
    names : tuple of str
        The columns that stand for the probabilities.
    """

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
        self, rows: ClassRows, some: IntArray | slice, dtype: DTypeLike
    ) -> list[tuple[IntArray | slice, int, AnyArray]]:
        """Rows (within `some`), number of the block and features (r, rows) of every block."""
        if self.plan is None:
            assert self.whole is not None
            return [(slice(None), 0, self.whole[:, some].astype(dtype))]
        found = self.plan.features(joint_points(rows, self.names, some))
        return [(own, number, values.astype(dtype)) for own, number, values in found]


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Functions of the covariates that contrasts between classes are summed along.

    Attributes
    ----------
    entries : tuple of Entry
        One feature each; the overall level is the first.
    scales : mapping
        How numbers are put on the scale of their ranks.
    centres : (g,) array
        Taken off trends; groups are taken as they are.
    pairs : (m, 2) array of int
        Classes that are contrasted: those that the model confuses most.
    """

    entries: tuple[Entry, ...]
    scales: dict[ColumnName, RankScale]
    centres: FloatArray
    pairs: IntArray

    @property
    def is_trend(self) -> AnyArray:
        """Whether a feature is judged beside the overall level, (g,)."""
        return np.array([entry.shape is Shape.TREND for entry in self.entries])

    def one(self, g: int) -> Contrasts:
        """One of the features alone."""
        return replace(self, entries=self.entries[g : g + 1], centres=self.centres[g : g + 1])

    def matrix(self, points: Points, dtype: DTypeLike) -> AnyArray:
        """All features of some rows, (g, n)."""
        features = [entry.features[0] for entry in self.entries]
        return feature_matrix(features, self.scales, self.centres, points, dtype)


@dataclass(frozen=True, eq=False)
class ClassChecks:
    """All that can be known before a label is looked at.

    Attributes
    ----------
    rows : ClassRows
        The rows.
    dictionaries : tuple of Dictionary
        The checks of every class.
    banks : tuple of Bank
        Those of them that can vary, ready for a pass.
    weights : tuple of arrays
        Of the checks of a class; they sum to 1.
    joint : JointForm
        Of all classes together.
    contrasts : Contrasts
        Between classes.
    unit : float
        Weights are divided by this.
    dtype : numpy type
        Of features.
    """

    rows: ClassRows
    dictionaries: tuple[Dictionary, ...]
    banks: tuple[Bank, ...]
    weights: tuple[FloatArray, ...]
    joint: JointForm
    contrasts: Contrasts
    unit: float
    dtype: DTypeLike = np.float64

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        own = sum(bank.width for bank in self.banks)
        shared = self.joint.rank + len(self.contrasts.entries) + 1
        return own + self.rows.classes * shared


def prepare_classes(rows: ClassRows, draws: int, engine: Factor | None = None) -> ClassChecks:
    """Choose features and landmarks from probabilities and covariates alone.

    Parameters
    ----------
    rows : ClassRows
        Labels are not looked at.
    draws : int
        How many will be made.
    engine : Factor, optional
        Whose tolerance and rank the joint form keeps.

    Returns
    -------
    ClassChecks
        Ready for a pass.
    """
    unit = rows.unit
    some, pilot = rows.spread(POINTS), rows.spread(PILOT_ROWS)
    w2 = np.square(rows.weights_or_ones[pilot])

    def of_class(code: int) -> tuple[Dictionary, Bank]:
        dictionary = default_dictionary_for(rows.points(code, some))
        kept = [e for e in dictionary.entries if e.kernel is None and e.family not in LEFT_OUT]
        points = rows.points(code, pilot)
        own = Pilot(points, w2 * points.p * (1 - points.p), np.empty(0), rows.n)
        return replace(dictionary, entries=tuple(kept)), make_bank(kept, own, unit)

    found = list(ordered_map(of_class, range(rows.classes), available_threads()))
    dictionaries, banks = (tuple(part) for part in zip(*found, strict=True))
    work = float(rows.n) * sum(bank.width for bank in banks) * (1 + draws)
    dtype = np.float64 if work <= SMALL_WORK else np.float32
    banks = tuple(replace(bank, dtype=dtype) for bank in banks)
    weights = tuple(
        np.array(replace(d, entries=bank.entries).weights() if bank.entries else ())
        for d, bank in zip(dictionaries, banks, strict=True)
    )
    joint, contrasts = joint_form(rows, unit, engine), _contrasts(rows, some, pilot)
    return ClassChecks(rows, dictionaries, banks, weights, joint, contrasts, unit, dtype)


def joint_kernel(rows: ClassRows, some: IntArray) -> tuple[LocalKernel, tuple[str, ...]]:
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
    return kernel.resolve(joint_points(rows, tuple(names), some)), tuple(names)


def joint_points(rows: ClassRows, names: Sequence[str], some: IntArray | slice) -> Points:
    """Rows whose probabilities are columns like the covariates."""
    p = rows.p[some]
    own = [Column(name, "number", p[:, k].copy()) for k, name in enumerate(names)]
    return Points(np.full(len(p), 0.5), (*own, *(column.take(some) for column in rows.columns)))


def joint_form(rows: ClassRows, unit: float, engine: Factor | None = None) -> JointForm:
    """Features of the joint kernel, and moments of its form under the null."""
    kernel, names = joint_kernel(rows, rows.spread(POINTS))
    if rows.n <= MAX_EXACT_ROWS and engine is None:
        gram = kernel.gram(joint_points(rows, names, slice(None)))
        values, vectors = np.linalg.eigh(gram.block(slice(None), slice(None)))
        kept = values > NO_EIGENVALUE * values.max()
        whole = np.ascontiguousarray((vectors[:, kept] * np.sqrt(values[kept])).T)
        form = JointForm(kernel, None, whole, names)
    else:
        asked = engine or Factor(tolerance=JOINT_TOLERANCE, max_rank=JOINT_RANK, pilot=PILOT_ROWS)
        pilot = rows.spread(min(asked.pilot, max(MAX_DENSE_ROWS, rows.n // 3)))
        w2 = np.square(rows.weights_or_ones[pilot] / unit)
        spread = w2 * (1 - np.square(rows.p[pilot]).sum(axis=1))
        points = joint_points(rows, names, pilot)
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


def _null_law(rows: ClassRows, form: JointForm, unit: float) -> tuple[float, float]:
    """Standard deviation (closed form) and skewness of the sum over classes under the null.

    On all rows up to 1,500; beyond that on some, which changes with the root of 1 / pairs.
    """
    # Features fit the rows that landmarks were chosen from better than others.
    seen = PILOT_ROWS if rows.n >= PILOT_ROWS + MAX_DENSE_ROWS else 0
    some = rows.spread(MAX_DENSE_ROWS, seen)
    f, w2 = rows.p[some], np.square(rows.weights_or_ones[some] / unit)
    gram = np.zeros((some.size, some.size))
    for own, _, features in form.features(rows, some, np.float64):
        inside = np.arange(some.size)[own]
        gram[np.ix_(inside, inside)] = features.T @ features
    np.fill_diagonal(gram, 0.0)
    variance = 2 * float((np.square(gram) * trace_of_products(f) * w2 * w2[:, None]).sum())
    few = slice(0, MAX_ROWS_OF_SKEWNESS)
    triangles = 0.0
    for v in (f * (1 - f))[few].T:  # classes apart: enough for the length of a tail
        root = np.sqrt(v * w2[few])
        a = gram[few, few] * root * root[:, None]
        triangles += 8 * float(np.sum(a * (a @ a)))
    share = (some.size / len(gram[few])) ** 3
    skewness = max(triangles * share / variance**1.5, 0.0) if variance > 0 else 0.0
    pairs = rows.n * (rows.n - 1) / (some.size * (some.size - 1))
    return float(np.sqrt(variance * pairs)), skewness


def trace_of_products(f: FloatArray) -> FloatArray:
    """tr(S_i S_j) for all pairs of rows of f (n, m), with S = diag(f) - ff', (n, n)."""
    inner, squared = f @ f.T, np.square(f) @ f.T
    return np.asarray(inner - squared - squared.T + np.square(inner))


def _contrasts(rows: ClassRows, some: IntArray, pilot: IntArray) -> Contrasts:
    points = rows.points(0, some)
    entries = contrast_entries(points)
    numbers = {column.name: column for column in points.columns if not column.is_category}
    read = {term.column for entry in entries for term in entry.features[0]}
    scales: dict[ColumnName, RankScale] = {
        name: RankScale.of(column.values[~column.missing])
        for name, column in numbers.items()
        if name in read
    }
    zero = np.zeros(len(entries))
    plain = Contrasts(entries, scales, zero, _confused(rows, pilot))
    means = plain.matrix(rows.points(0, pilot), np.float64).mean(axis=1)
    return replace(plain, centres=np.where(plain.is_trend, means, 0.0))


def _confused(rows: ClassRows, pilot: IntArray) -> IntArray:
    """Pairs of classes that can stand for each other, those that do most first, (m, 2)."""
    p = rows.p[pilot] * rows.weights_or_ones[pilot][:, None]
    together = p.T @ rows.p[pilot]
    first, second = np.triu_indices(rows.classes, 1)
    mass = together[first, second]
    order = np.argsort(-mass, kind="stable")[:MAX_PAIRS]
    order = order[mass[order] > 0]
    return np.column_stack([first[order], second[order]])
