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

from itrust._core import AnyArray, FloatArray, IntArray
from itrust.calibration.dictionary.entries import Entry, Scaling
from itrust.data import Chunk, Pilot, Points
from itrust.engines import Additive, Drawn, NullMoments, Products, Work, third_moments
from itrust.terms import Features, Product

ROWS_FOR_PAIRS = 256
NO_VARIANCE = 1e-18
NO_CORRELATION = 1e-8  # share of the largest eigenvalue
RIDGE = 0.05  # added to null correlations before they are taken out
FEW_EVENTS = 1.0  # added to the null variance of a group, in labels: the tiniest groups count less
CHUNK_BYTES, MIN_CHUNK = 2**26, 256


@dataclass(frozen=True, eq=False)
class Bank(Work):
    """Entries made of features, ready for a pass over the rows."""

    entries: tuple[Entry, ...]
    features: Features
    mixtures: tuple[Mixture, ...]
    selector: csr_array
    single: IntArray
    moments: NullMoments
    unit: float
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
        return max(MIN_CHUNK, CHUNK_BYTES // (8 * max(self.width, 1)))

    @property
    def width(self) -> int:
        """Numbers that a row has in all: its features, their mixtures and a diagonal per entry."""
        return self.selector.shape[1] + len(self.entries)

    def features_of(self, k: int) -> tuple[IntArray, FloatArray]:
        """Numbers of the features, or mixtures, that an entry sums over, and their scales."""
        own = slice(self.selector.indptr[k], self.selector.indptr[k + 1])
        return self.selector.indices[own].astype(np.int64), np.sqrt(self.selector.data[own])

    def matrix(self, points: Points) -> AnyArray:
        """All features of some rows and their mixtures, (R + Q, n)."""
        matrix = np.empty((self.selector.shape[1], len(points)), dtype=self.dtype)
        plain, first = matrix[: len(self.features)], len(self.features)
        self.features.fill(plain, points)
        for mixture in self.mixtures:
            last = first + len(mixture.matrix)
            matrix[first:last] = mixture.of(plain)
            first = last
        return matrix

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> _BankPart:
        """Start on a chunk."""
        return _BankPart(self, chunk, weights, columns)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Features that are uncorrelated under the null, made of features that need not be."""

    columns: IntArray
    matrix: FloatArray

    def of(self, features: AnyArray) -> AnyArray:
        """The mixed features of some rows, (q, n), from all features, (R, n)."""
        return self.matrix.astype(features.dtype) @ features[self.columns]


@dataclass(frozen=True, eq=False)
class BankSums(Additive):
    """S (R + Q, 1 + draws), the diagonals (E, 1 + draws) and their means (E,), data first.

    Diagonals that were not asked for are 0.
    """

    forms: FloatArray
    diagonals: FloatArray
    expected: FloatArray


class _BankPart:
    """What one chunk contributes, being made."""

    def __init__(self, bank: Bank, chunk: Chunk, w: FloatArray, columns: int) -> None:
        matrix = bank.matrix(chunk.points)
        squares, variances = np.square(matrix), chunk.p * (1 - chunk.p)
        if chunk.weights is not None:
            weights = w.astype(bank.dtype)
            matrix *= weights
            squares *= np.square(weights)
        self.expected = bank.selector @ (squares @ variances.astype(bank.dtype)).astype(np.float64)
        self.wanted = bank.diagonal_entries
        diagonals = bank.diagonal_selector @ squares
        self.products = [Products(matrix.T, diagonals.T, chunk.p)]
        self.forms = np.zeros((len(matrix), columns))
        self.diagonals = np.zeros((len(bank.entries), columns))

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        forms, diagonals = self.products[0].of(drawn)
        self.forms[:, drawn.columns] = forms
        self.diagonals[self.wanted, drawn.columns] = diagonals

    def finished(self) -> BankSums:
        """The sums of the chunk."""
        return BankSums(self.forms, self.diagonals, self.expected)


def make_bank(entries: Sequence[Entry], pilot: Pilot, unit: float) -> Bank:
    """Number the features, centre them, and work out the null moments on the pilot rows.

    Entries without null variance are left out.
    """
    points, variances = pilot.points, pilot.variances / unit**2
    products, index = numbered(entries)
    features = Features.ranked(products, points).centred(points, variances)
    matrix = features.matrix(points)
    weighed = [
        _weighed(entry, matrix[rows], variances, pilot.n)
        for entry, rows in zip(entries, index, strict=True)
    ]
    thirds = third_moments(points.p, variances)
    moments = _null_moments(weighed, index, matrix, variances, thirds)
    total = float(variances.sum())
    is_one = np.array([rows.size == 1 for rows in index], dtype=bool)
    varies = moments.expected > NO_VARIANCE * total
    varies &= is_one | (moments.variance > NO_VARIANCE * total**2)
    alive = np.flatnonzero(varies)
    entries = [entries[k] for k in alive.tolist()]
    number = {product: k for k, product in enumerate(products)}
    products, index = numbered(entries)
    mixtures, selector = _combined([weighed[k] for k in alive], index, len(products))
    return Bank(
        entries=tuple(entries),
        features=features.take([number[product] for product in products]),
        mixtures=mixtures,
        selector=selector,
        single=np.array([rows[0] if rows.size == 1 else -1 for rows in index], dtype=np.int64),
        moments=moments.take(alive),
        unit=unit,
    )


def _weighed(entry: Entry, f: FloatArray, variances: FloatArray, n: int) -> FloatArray:
    """Scales of an entry's features, (r,), or a matrix that mixes them, (q, r)."""
    if entry.scaling is Scaling.STATED or len(entry.features) == 1:
        return np.array(entry.scales)
    squares = np.square(f) @ variances
    if entry.scaling is Scaling.STANDARD:
        few = FEW_EVENTS * variances.size / n
        return np.array(entry.scales) / np.sqrt(squares + few)
    varies = squares > NO_VARIANCE * max(float(squares.max()), 1.0)
    sd = np.sqrt(squares[varies])
    standard = f[varies] / sd[:, None]
    values, vectors = np.linalg.eigh((standard * variances) @ standard.T)
    there = values > NO_CORRELATION * values.max(initial=0.0)
    mixing = np.zeros((int(there.sum()), squares.size))
    mixing[:, varies] = vectors[:, there].T / np.sqrt(values[there] + RIDGE)[:, None] / sd
    return mixing


def _combined(
    weighed: Sequence[FloatArray], index: Sequence[IntArray], features: int
) -> tuple[tuple[Mixture, ...], csr_array]:
    """The mixtures of all entries, and which features and mixtures each entry sums over."""
    mixtures, columns, squares, width = [], [], [], features
    for weights, rows in zip(weighed, index, strict=True):
        if weights.ndim == 1:
            columns.append(rows)
            squares.append(np.square(weights))
        else:
            mixtures.append(Mixture(rows, weights))
            columns.append(np.arange(width, width + len(weights)))
            squares.append(np.ones(len(weights)))
            width += len(weights)
    counts = [own.size for own in columns]
    of_entry = np.repeat(np.arange(len(columns)), counts)
    where = of_entry, np.concatenate([*columns, np.empty(0, dtype=np.int64)]).astype(np.int64)
    data = np.concatenate([*squares, np.empty(0)])
    return tuple(mixtures), csr_array((data, where), shape=(len(columns), width))


def numbered(entries: Sequence[Entry]) -> tuple[tuple[Product, ...], list[IntArray]]:
    """The distinct features of some entries, and where each entry finds its own."""
    products = tuple(dict.fromkeys(product for e in entries for product in e.features))
    number = {product: k for k, product in enumerate(products)}
    return products, [np.array([number[f] for f in e.features], dtype=np.int64) for e in entries]


def _null_moments(
    weighed: Sequence[FloatArray],
    index: Sequence[IntArray],
    matrix: FloatArray,
    variances: FloatArray,
    thirds: FloatArray,
) -> NullMoments:
    squares = np.square(matrix)
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
    pairs = 4 * m[few] @ (p * p * p) @ m[few] * _as_many_pairs(v.size, len(p))
    return float(diagonal.sum()), float(max(variance, 0.0)), float(triangles), float(pairs)


def _as_many_pairs(n: int, m: int) -> float:
    return n * (n - 1) / max(m * (m - 1), 1)
