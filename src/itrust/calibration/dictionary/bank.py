"""All entries of a dictionary that are made of features, through one matrix product.

Every entry's kernel is F F' with few features F, and entries share features, so S = F'We for the
data and all draws serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from itrust._core import AnyArray, BoolArray, FloatArray, IntArray
from itrust.calibration.dictionary.default import direction_dictionary
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.calibration.dictionary.scan import CellsPartial, CellSums, Grid, make_grids
from itrust.data import Pilot, Points, Rows
from itrust.engines import Drawn, NullMoments, Products, Summing, Survey, Work, third_moments
from itrust.terms import Features

ROWS_FOR_PAIRS = 256
NO_VARIANCE = 1e-18
NO_CORRELATION = 1e-8  # share of the largest eigenvalue
RIDGE = 0.05  # added to null correlations before they are taken out
FEW_EVENTS = 1.0  # added to the null variance of a group, in labels: the tiniest groups count less
CHUNK_BYTES, MIN_CHUNK = 2**26, 256

# S (R + Q, 1 + draws), the diagonals (E, 1 + draws), 0 where they were not asked for, their means
# (E,), and sums over the cells of the scan, if there are any; the data come first.
BankSums = tuple[FloatArray, FloatArray, FloatArray, CellSums | tuple[()]]


def rows_within_memory(size: int) -> int:
    """Most rows in hand at a time that have so many bytes each."""
    return max(MIN_CHUNK, CHUNK_BYTES // size)


@dataclass(frozen=True, eq=False)
class Bank(Work):
    """Entries made of features, ready for a pass over the rows."""

    entries: tuple[Entry, ...]
    features: Features
    mixtures: tuple[tuple[IntArray, FloatArray], ...]  # features, and what mixes them, (q, r)
    selector: csr_array  # which features and mixtures an entry sums over, with squared scales
    single: IntArray
    moments: NullMoments
    unit: float
    grids: tuple[Grid, ...] = ()
    dtype: DTypeLike = np.float64
    is_studentised: bool = False
    outcome: int = 0

    @property
    def diagonal_entries(self) -> IntArray:
        """Numbers of the entries whose diagonals are added up."""
        return np.flatnonzero((self.single < 0) | self.is_studentised)

    @cached_property
    def diagonal_selector(self) -> csr_array:
        """The rows of `selector` for these entries, of the type of the features."""
        return csr_array(self.selector[self.diagonal_entries].astype(self.dtype))

    @property
    def max_rows(self) -> int:
        """Most rows in hand at a time, so that their features fit into memory."""
        return rows_within_memory(8 * max(self.width, 1))

    @property
    def width(self) -> int:
        """Numbers that a row has in all: its features, their mixtures and a diagonal per entry."""
        return self.selector.shape[1] + len(self.entries)

    @property
    def kept(self) -> int:
        """Numbers that are kept for each draw; those of cells are half as precise."""
        return self.width + sum(grid.cells for grid in self.grids) // 2

    def features_of(self, k: int) -> tuple[IntArray, FloatArray]:
        """Numbers of the features, or mixtures, that an entry sums over, and their scales."""
        own = slice(self.selector.indptr[k], self.selector.indptr[k + 1])
        return self.selector.indices[own].astype(np.int64), np.sqrt(self.selector.data[own])

    def matrix(self, points: Points) -> AnyArray:
        """All features of some rows and their mixtures, (R + Q, n)."""
        matrix = np.empty((self.selector.shape[1], len(points)), dtype=self.dtype)
        plain, first = matrix[: len(self.features)], len(self.features)
        self.features.fill(plain, points)
        for columns, mixing in self.mixtures:
            last = first + len(mixing)
            matrix[first:last] = mixing.astype(self.dtype) @ plain[columns]
            first = last
        return matrix

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> Summing:
        """Start on a chunk, whose weights are divided by the unit."""
        matrix = self.matrix(chunk.points)
        squares, variances = np.square(matrix), chunk.p * (1 - chunk.p)
        if chunk.weights is not None:
            w = weights.astype(self.dtype)
            matrix *= w
            squares *= np.square(w)
        expected = self.selector @ (squares @ variances.astype(self.dtype)).astype(np.float64)
        wanted, by_row = self.diagonal_entries, self.diagonal_selector @ squares
        forms, diagonals = np.zeros((len(matrix), columns)), np.zeros((wanted.size, columns))
        cells = CellsPartial(self.grids, chunk, weights, columns) if self.grids else None

        def finished() -> BankSums:
            whole = np.zeros((len(self.entries), columns))
            whole[wanted] = diagonals
            return forms, whole, expected, () if cells is None else cells.finished()

        target = Products(matrix.T, by_row.T, chunk.p), forms, diagonals
        return WithCells([target], finished, cells)


@dataclass(frozen=True, eq=False)
class WithCells(Summing):
    """Products with features, and sums over cells."""

    cells: CellsPartial | None

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        super().add(drawn)
        if self.cells is not None:
            self.cells.add(drawn)


def make_bank(entries: Sequence[Entry], pilot: Pilot, unit: float) -> Bank:
    """Number the features, centre them, and work out the null moments on the pilot rows.

    Entries without null variance are left out.
    """
    points, variances = pilot.points, pilot.variances / unit**2
    scans = [entry for entry in entries if entry.crossed] if variances.any() else []
    grids, entries = tuple(make_grids(scans, pilot)), [e for e in entries if not e.crossed]
    products = tuple(dict.fromkeys(product for entry in entries for product in entry.features))
    number = {product: k for k, product in enumerate(products)}
    index = [np.array([number[own] for own in entry.features], dtype=int) for entry in entries]
    features = Features.ranked(products, points).centred(points, variances)
    matrix = features.matrix(points)
    weighed = [
        _weighed(entry, matrix[rows], variances, pilot.n)
        for entry, rows in zip(entries, index, strict=True)
    ]
    moments = _null_moments(weighed, index, matrix, points.p, variances)
    total = float(variances.sum())
    is_one = np.array([rows.size == 1 for rows in index], dtype=bool)
    varies = moments.expected > NO_VARIANCE * total
    varies &= is_one | (moments.variance > NO_VARIANCE * total**2)
    alive = np.flatnonzero(varies).tolist()
    used = np.unique(np.concatenate([*(index[k] for k in alive), np.empty(0, dtype=int)]))
    index = [np.searchsorted(used, index[k]) for k in alive]
    mixtures, selector = _combined([weighed[k] for k in alive], index, used.size)
    return Bank(
        entries=tuple(entries[k] for k in alive),
        features=features.take(used),
        mixtures=mixtures,
        selector=selector,
        single=np.array([rows[0] if rows.size == 1 else -1 for rows in index], dtype=int),
        moments=moments.take(np.array(alive, dtype=int)),
        unit=unit,
        grids=grids,
    )


def _weighed(entry: Entry, f: FloatArray, variances: FloatArray, n: int) -> FloatArray:
    """Scales of an entry's features, (r,), or a matrix that mixes them, (q, r)."""
    if entry.scaling == "stated" or len(entry.features) == 1:
        return np.array(entry.scales)
    squares = np.square(f) @ variances
    if entry.scaling == "standard":
        few = FEW_EVENTS * variances.size / n
        return np.array(entry.scales) / np.sqrt(squares + few)
    varies = squares > NO_VARIANCE * max(float(squares.max()), 1.0)
    sd = np.sqrt(squares[varies])
    standard = f[varies] / sd[:, None]
    return whitened((standard * variances) @ standard.T, sd, varies)


def whitened(correlation: FloatArray, sd: FloatArray, varies: BoolArray) -> FloatArray:
    """What makes the features that vary uncorrelated, (q, all features)."""
    values, vectors = np.linalg.eigh(correlation)
    there = values > NO_CORRELATION * values.max(initial=0.0)
    mixing = np.zeros((int(there.sum()), varies.size))
    mixing[:, varies] = vectors[:, there].T / np.sqrt(values[there] + RIDGE)[:, None] / sd
    return mixing


def _combined(
    weighed: Sequence[FloatArray], index: Sequence[IntArray], width: int
) -> tuple[tuple[tuple[IntArray, FloatArray], ...], csr_array]:
    """The mixtures of all entries, and which features and mixtures each entry sums over."""
    mixtures, columns, squares = [], [np.empty(0, dtype=int)], [np.empty(0)]
    for weights, rows in zip(weighed, index, strict=True):
        if weights.ndim == 2:
            mixtures.append((rows, weights))
            rows, weights = np.arange(width, width + len(weights)), np.ones(len(weights))
            width += len(weights)
        columns.append(rows)
        squares.append(np.square(weights))
    of_entry = np.repeat(np.arange(len(weighed)), [own.size for own in columns[1:]])
    where = of_entry, np.concatenate(columns)
    return tuple(mixtures), csr_array((np.concatenate(squares), where), (len(weighed), width))


def _null_moments(
    weighed: Sequence[FloatArray],
    index: Sequence[IntArray],
    matrix: FloatArray,
    p: FloatArray,
    variances: FloatArray,
) -> NullMoments:
    thirds, squares = third_moments(p, variances), np.square(matrix)
    squares, cubes = squares @ variances, (squares * matrix) @ thirds
    moments = np.zeros((len(weighed), 5))
    for k, (weights, rows) in enumerate(zip(weighed, index, strict=True)):
        if rows.size == 1:
            only, scale = rows[0], float(weights[0])
            moments[k] = squares[only] * scale**2, 0, 0, 0, cubes[only] * scale**3
        else:
            mixed = weights @ matrix[rows] if weights.ndim == 2 else matrix[rows] * weights[:, None]
            moments[k, :4] = _moments(mixed, variances, thirds)
    return NullMoments(*moments.T)


def _moments(f: FloatArray, v: FloatArray, m: FloatArray) -> tuple[float, float, float, float]:
    """Expected diagonal, variance, triangles and pairs of the kernel f'f, f (r, rows)."""
    c = (f * v) @ f.T
    diagonal = v * np.square(f).sum(axis=0)  # of A = V^(1/2) P V^(1/2)
    diagonal_of_square = v * np.einsum("ri,ri->i", f, c @ f)
    variance = 2 * (np.square(c).sum() - np.square(diagonal).sum())
    triangles = 8 * (
        np.trace(c @ c @ c) - 3 * diagonal @ diagonal_of_square + 2 * (diagonal**3).sum()
    )
    few = slice(0, ROWS_FOR_PAIRS)
    p = f[:, few].T @ f[:, few]
    np.fill_diagonal(p, 0.0)
    times = v.size * (v.size - 1) / max(len(p) * (len(p) - 1), 1)  # as many pairs
    pairs = 4 * m[few] @ (p * p * p) @ m[few] * times
    return float(diagonal.sum()), float(max(variance, 0.0)), float(triangles), float(pairs)


@dataclass(frozen=True, eq=False)
class Directions:
    """Weights of rows along which labels are summed, compared with the largest sums a null allows.

    Each is taken with both signs. Those that are never negative (levels, parts, the overall level)
    stay as they are; others are centred, and cut into their positive and their negative part.
    """

    dictionary: Dictionary
    weights: FloatArray
    features: Features
    is_signed: BoolArray

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What the directions are called."""
        return self.dictionary.entries

    @property
    def overall(self) -> int | None:
        """The direction that is 1 in all rows; None if it is not among them."""
        return next((k for k, own in enumerate(self.features.products) if not own), None)

    @property
    def width(self) -> int:
        """Numbers that a row has: positive parts of all directions, negative parts of some."""
        return len(self.features) + int(self.is_signed.sum())

    def parts(self, points: Points, dtype: DTypeLike) -> AnyArray:
        """Positive parts of all directions, then negative parts of the signed ones, (width, n)."""
        whole = self.features.matrix(points, dtype)
        negative = np.maximum(-whole[self.is_signed], 0)
        return np.concatenate([np.maximum(whole, 0, out=whole), negative])

    def both_signs(self, high: AnyArray, low: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Put sums of the parts together, with labels at their highest and lowest."""
        k = len(self.features)
        up, down = high[:k].copy(), -low[:k]
        up[self.is_signed] -= low[k:]
        down[self.is_signed] += high[k:]
        return up, down


def make_directions(survey: Survey, checks: Dictionary | None) -> Directions:
    """Choose the directions from predictions and covariates alone."""
    points = survey.pilot.points
    dictionary = direction_dictionary(survey.points) if checks is None else _of_one_feature(checks)
    products = [entry.features[0] for entry in dictionary.entries]
    is_signed = np.array([not all(term.is_positive for term in own) for own in products])
    features = Features.ranked(products, points)
    features = features.centred(points, survey.pilot.variances, is_signed)
    return Directions(dictionary, np.array(dictionary.weights()), features, is_signed)


def _of_one_feature(checks: Dictionary) -> Dictionary:
    """The checks that are sums along one feature; others are not monotone in the labels."""
    entries = tuple(entry for entry in checks.entries if len(entry.features) == 1)
    if len(entries) == len(checks.entries):
        return checks
    words = "checks of several features and kernels take no part with an interval null"
    return Dictionary(entries, checks.shares, (*checks.notes, words))
