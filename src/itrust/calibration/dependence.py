"""Do labels of different rows go together, beyond what p and the covariates explain?

Residuals are looked at three ways: in the order of the file, within the values of columns that may
name units, and within rows that are nearly alike. Each time what a smooth function of (p, x) explains
is taken off first, and what stays is compared with rows that should share the bias of a miscalibrated
model, but no unit: rows some way off in the file, or the units next to it in p and x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.spatial import KDTree

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.data import Column, Sample, Units, share_codes

MIN_ROWS, MAX_ROWS = 50, 20_000
MIN_VARIANCE = 0.05  # of labels: residuals of rarer events are not blown up any further

# Rows that stand next to each other.
BLOCK = range(25, 51)  # rows among which the order is permuted
LAG_WEIGHTS = (1.0, 0.35, 0.1)
PERMUTATIONS, MAX_PVALUE, MIN_LAG_CORRELATION = 999, 0.009, 0.10
SORTED_BY_LABEL = 0.1  # changes of the label for each row with the rarer one

# Rows of one unit.
MIN_UNITS, FEW_UNITS, SMALL_UNIT = 20, 8, 20
MODERATE, STRONG, VERY_STRONG = 0.12, 0.4, 0.5  # correlations; of small, large and few units
CLEAR, CLEAR_OF_OWN, CLEAR_EXCESS = 5.0, 2.5, 3.0  # standard errors
MAX_PAIRED = 8
GRID = 64
NEAR = 0.05  # on the rank scale

MAX_FEATURES, ROWS_PER_FEATURE, UNITS_PER_FEATURE, ROWS_PER_CELL = 80, 8, 5, 5
WAVES, MAX_LEVELS = 5, 40


@dataclass(frozen=True)
class Dependence:
    """Rows whose labels go together.

    Attributes
    ----------
    kind : {"column", "pair", "alike", "order"}
        How the rows were found: by a column, by two, by their p and covariates, or by their place.
    names : tuple of str
        The columns, if any.
    correlation : float
        Of the residuals of two such rows, less that of rows which only share their bias.
    rows, units : int
        How many rows were looked at, and how many units they fall into; 0 units for an order.
    """

    kind: str
    names: tuple[str, ...]
    correlation: float
    rows: int
    units: int = 0


def dependence(sample: Sample) -> Dependence | None:
    """The clearest sign of dependence; None without one, or where clusters are named."""
    if sample.cluster is not None or sample.n < MIN_ROWS or np.ptp(sample.y) == 0:
        return None
    whole = _Rows(sample, _spread(sample.n))
    by_column = [found for units in _columns(sample) if (found := _agreement(whole, units))]
    if by_column:
        return _coarsest(by_column)
    for units in (*_pairs(sample), *_alike(whole)):
        found = _agreement(whole, units)
        if found is not None:
            return found
    return _in_order(sample)


def _spread(n: int) -> IntArray:
    return np.unique(np.linspace(0, n - 1, MAX_ROWS).astype(np.int64))


def _coarsest(found: list[Dependence]) -> Dependence:
    """Of columns that show about as much, the one with the fewest units, which holds the others."""
    most = max(one.correlation for one in found)
    return min((one for one in found if one.correlation >= 0.8 * most), key=lambda one: one.units)


class _Rows:
    """Some rows of a sample: their residuals, and features of (p, x) to take off them."""

    def __init__(self, sample: Sample, rows: IntArray) -> None:
        self.sample, self.rows = sample, rows
        p, y = sample.p[rows], sample.y[rows]
        self.variances = p * (1 - p)
        self.scale = np.sqrt(np.maximum(self.variances, MIN_VARIANCE))
        self.residuals = (y - p) / self.scale

    def at(self, rows: IntArray) -> _Rows:
        """Other rows of the same sample; itself if they are the same ones."""
        same = rows.size == self.rows.size and bool((rows == self.rows).all())
        return self if same else _Rows(self.sample, rows)

    @cached_property
    def columns(self) -> list[Column]:
        """Predictions and covariates of these rows."""
        points = self.sample.points
        return [column.take(self.rows) for column in (points.prediction, *points.columns)]

    @cached_property
    def cells(self) -> IntArray:
        """Numbers of the distinct (p, x)."""
        return _shared(self.columns)

    @cached_property
    def places(self) -> FloatArray:
        """Where the rows lie, (m, d): ranks of numbers between 0 and 1, and levels far apart."""
        return np.column_stack(
            [c.values.astype(float) if c.is_category else _ranks(c.values) for c in self.columns]
        )

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal features of (p, x), coarse ones first."""
        room = min(MAX_FEATURES, self.rows.size // ROWS_PER_FEATURE)
        return np.linalg.qr(_features(self.columns, max(room, 1)))[0]

    def unexplained(self, max_features: int = MAX_FEATURES) -> FloatArray:
        """Residuals less what the first features of (p, x) explain."""
        basis = self.basis[:, : max(max_features, 1)]
        left: FloatArray = self.residuals - basis @ (basis.T @ self.residuals)
        return left


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks between 0 and 1, the same for equal values; missing values together at the end."""
    distinct, codes = np.unique(values, return_inverse=True)
    count = np.bincount(codes, minlength=distinct.size)
    middle: FloatArray = (np.cumsum(count) - count / 2) / values.size
    return middle[codes]


def _features(columns: list[Column], room: int) -> FloatArray:
    """Smooth functions of every column, coarse ones first, then the levels of coarse columns."""
    ranks = {k: _ranks(c.values) for k, c in enumerate(columns) if not c.is_category}
    found = [np.ones(len(columns[0]))]
    found += [np.cos(np.pi * wave * ranks[0]) for wave in (1, 2, 3)]  # of p
    for wave in range(1, WAVES):
        found += [np.cos(np.pi * wave * rank) for k, rank in ranks.items() if k > 0]
        if len(found) >= room:
            return np.column_stack(found[:room])
    for column in columns:
        _, codes = np.unique(column.values, return_inverse=True)
        size = np.bincount(codes)
        if 1 < size.size <= MAX_LEVELS:
            found += [(codes == level).astype(float) for level in np.flatnonzero(size >= 5)[1:]]
    return np.column_stack(found[:room])


# ---- units -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Grouping:
    """Rows and their units, and how strong an agreement must be to be told."""

    kind: str
    names: tuple[str, ...]
    rows: IntArray
    codes: IntArray
    is_date: bool = False
    in_x: bool = False  # units that are values of (p, x): their bias is what the test is about


def _columns(sample: Sample) -> Iterator[_Grouping]:
    for units in sample.units:
        yield _Grouping("column", (units.name,), units.rows, units.codes, units.is_date)
    rows = _spread(sample.n)
    for column in sample.columns:
        if column.kind != "boolean":
            codes = np.unique(column.values[rows], return_inverse=True)[1]
            yield _Grouping("column", (column.name,), rows, codes, in_x=True)


def _pairs(sample: Sample) -> Iterator[_Grouping]:
    """Every two columns, where all rows are kept: a state and a year may name an election."""
    whole = [units for units in sample.units if units.rows.size == sample.n][:MAX_PAIRED]
    for one, other in combinations(whole, 2):
        both = one.codes.astype(np.int64) * (int(other.codes.max()) + 1) + other.codes
        codes = np.unique(both, return_inverse=True)[1]
        if codes.max() > max(int(one.codes.max()), int(other.codes.max())):
            yield _Grouping("pair", (one.name, other.name), one.rows, codes)


def _alike(whole: _Rows) -> Iterator[_Grouping]:
    """Rows with the same (p, x), the same x, the same cell of a grid, or next to each other so."""
    columns, covariates = whole.columns, whole.columns[1:]
    crossing = _is_crossing(covariates, whole.cells)
    yield _Grouping("alike", (), whole.rows, whole.cells, in_x=crossing)
    if covariates:
        yield _Grouping("alike", (), whole.rows, _shared(covariates), in_x=True)
    places = whole.places
    cells = [replace(c, values=_cells(c, place)) for c, place in zip(columns, places.T, strict=True)]
    yield _Grouping("alike", (), whole.rows, _shared(cells), in_x=True)
    if whole.rows.size == whole.sample.n:
        far = (np.abs(np.diff(places, axis=0)) > NEAR).any(axis=1)
        yield _Grouping("alike", (), whole.rows, np.cumsum(np.r_[0, far]), in_x=True)


def _cells(column: Column, place: FloatArray) -> FloatArray:
    return column.values if column.is_category else np.floor(place * GRID)


def _shared(columns: list[Column]) -> IntArray:
    """Numbers of distinct rows; neighbours share categories and are next in p, then in the rest."""
    ordered = sorted(columns, key=lambda column: not column.is_category)
    codes: IntArray = np.unique(share_codes(ordered, ordered)[0], return_inverse=True)[1]
    return codes


def _is_crossing(covariates: list[Column], codes: IntArray) -> bool:
    """Whether units are cells of a crossing of coarse columns, whose bias the test is about."""
    if not covariates:
        return False
    finest = max(
        0 if c.is_category else np.unique(c.values).size for c in covariates
    )
    return bool(finest <= (codes.max() + 1) / 2)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the rows of every unit with at least two of them."""

    size: FloatArray
    sums: FloatArray
    squares: FloatArray
    variances: FloatArray

    @property
    def products(self) -> FloatArray:
        """Of all pairs of a unit, per row: their mean is the correlation times `squares`."""
        return (self.sums**2 - self.squares) / (self.size - 1)

    @property
    def correlation(self) -> float:
        return float(self.products.sum() / self.squares.sum())

    @property
    def z(self) -> float:
        """Against labels that are independent, as the model or as the residuals vary."""
        by_model = self.variances**2 / (self.size * (self.size - 1))
        by_residuals = self.squares**2 / (self.size * (self.size - 1))
        spread = np.sqrt(2 * max(by_model.sum(), by_residuals.sum()))
        return float(self.products.sum() / spread)

    @property
    def own_z(self) -> float:
        """Against the products' own spread: a few large ones are not enough."""
        return float(self.products.sum() / np.sqrt((self.products**2).sum() or 1.0))


def _sums(rows: _Rows, residuals: FloatArray, codes: IntArray) -> tuple[_Sums, BoolArray]:
    size = np.bincount(codes)
    several = size >= 2
    variances = rows.variances / rows.scale**2
    sums = [np.bincount(codes, values) for values in (residuals, residuals**2, variances)]
    return _Sums(*(values[several].astype(float) for values in (size, *sums))), several


def _agreement(whole: _Rows, units: _Grouping) -> Dependence | None:
    """What rows of one unit have in common, if it is clear and more than neighbours have."""
    size = np.bincount(units.codes)
    count = int(np.count_nonzero(size >= 2))
    if count < FEW_UNITS or size.max() == size.size == 1:
        return None
    rows = whole.at(units.rows)
    codes = np.unique(units.codes, return_inverse=True)[1]
    raw, _ = _sums(rows, rows.residuals, codes)
    if not _is_clear(raw) or raw.correlation < MODERATE:
        return None  # what is explained can only take away
    left = rows.unexplained(count // UNITS_PER_FEATURE)
    sums, several = _sums(rows, left, codes)
    if not _is_clear(sums):
        return None
    excess = sums.correlation
    for pairs in (_next_values(several), _nearest(rows, codes, several)):
        excess = min(excess, _excess(sums, *pairs))
    if excess < _needed(sums, units):
        return None
    told = int(sums.size.sum())
    return Dependence(units.kind, units.names, excess, told, count)


def _is_clear(sums: _Sums) -> bool:
    return sums.squares.sum() > 0 and sums.z > CLEAR and sums.own_z > CLEAR_OF_OWN


def _needed(sums: _Sums, units: _Grouping) -> float:
    """The correlation from which on units are told; groups with a bias of their own are below."""
    if sums.size.size < MIN_UNITS:
        return VERY_STRONG
    small = np.median(sums.size) <= SMALL_UNIT
    return MODERATE if (small or units.is_date) and not units.in_x else STRONG


def _next_values(several: BoolArray) -> tuple[IntArray, IntArray]:
    """Units next to each other in the order of the column's values."""
    places = np.arange(np.count_nonzero(several))
    return places[:-1], places[1:]


def _nearest(rows: _Rows, codes: IntArray, several: BoolArray) -> tuple[IntArray, IntArray]:
    """Every unit, 2,000 at most, and the one nearest to it in p and the covariates."""
    centres = np.column_stack(
        [np.bincount(codes, place) / np.bincount(codes) for place in rows.places.T]
    )[several]
    some = np.unique(np.linspace(0, len(centres) - 1, 2_000).astype(np.int64))
    nearest = KDTree(centres).query(centres[some], k=2)[1]
    return some, np.where(nearest[:, 0] == some, nearest[:, 1], nearest[:, 0])


def _excess(sums: _Sums, one: IntArray, other: IntArray) -> float:
    """How much more rows of a unit agree than those of two neighbours; 0 unless that is clear."""
    roots = np.sqrt(sums.squares)
    products = sums.sums[one] * sums.sums[other] / np.sqrt(sums.size[one] * sums.size[other])
    scale = roots[one] * roots[other]
    between = float(products.sum() / scale.sum())
    within = sums.correlation
    errors = (
        np.sqrt(((products - between * scale) ** 2).sum()) / scale.sum(),
        np.sqrt(((sums.products - within * sums.squares) ** 2).sum()) / sums.squares.sum(),
    )
    excess = within - max(between, 0.0)
    return excess if excess > CLEAR_EXCESS * float(np.hypot(*errors)) else 0.0


# ---- order -------------------------------------------------------------------------------------


def _in_order(sample: Sample) -> Dependence | None:
    """Rows next to each other agree more than rows of the same stretch do.

    Stretches of 25 to 50 rows are put below each other, and their columns permuted: if rows are
    independent, and a bias changes slowly along the file, the order within a stretch means
    nothing, so the p-value is that of a permutation test.
    """
    if _is_sorted_by_label(sample.y):
        return None
    block = min(BLOCK, key=lambda size: (sample.n % size, -size))
    starts = np.arange(sample.n // block) * block
    starts = starts[np.unique(np.linspace(0, starts.size - 1, MAX_ROWS // block).astype(np.int64))]
    rows = _Rows(sample, (starts[:, None] + np.arange(block)).ravel())
    order = _ties_shuffled(rows) if _ties_are_sorted(rows) else np.arange(rows.rows.size)
    left, taken_off = _centred(rows, order, block) or _smoothed(rows, order, block)
    lined = left.reshape(-1, block)
    products = lined.T @ lined + np.mean(left**2) * taken_off
    statistic = _lagged(products, np.arange(block)[None])[0]
    drawn = np.random.default_rng(0).permuted(
        np.tile(np.arange(block), (PERMUTATIONS, 1)), axis=1
    )
    at_least = np.count_nonzero(_lagged(products, drawn) >= statistic)
    pairs = block * (block - 1)
    usual = (products.sum() - np.trace(products)) / pairs
    correlation = (np.diagonal(products, 1).mean() - usual) / (np.trace(products) / block)
    if (1 + at_least) / (1 + PERMUTATIONS) > MAX_PVALUE or correlation < MIN_LAG_CORRELATION:
        return None
    return Dependence("order", (), float(correlation), rows.rows.size)


def _smoothed(rows: _Rows, order: IntArray, block: int) -> tuple[FloatArray, FloatArray]:
    """Residuals less smooth functions, and what that takes from independent products, (m, m)."""
    lined = rows.basis[order].reshape(-1, block, rows.basis.shape[1])
    lined = lined.transpose(1, 0, 2).reshape(block, -1)
    return rows.unexplained()[order], lined @ lined.T


def _centred(rows: _Rows, order: IntArray, block: int) -> tuple[FloatArray, FloatArray] | None:
    """The same where most rows share (p, x) with others: the means of such rows explain all."""
    cells = rows.cells[order]
    size = np.bincount(cells)
    large = size[cells] >= ROWS_PER_CELL
    if large.mean() < 0.5:
        return None
    cells = np.where(large, cells, cells.max() + 1)
    size = np.maximum(np.bincount(cells), 1)
    means = np.bincount(cells, rows.residuals[order]) / size
    lined, share = cells.reshape(-1, block), (1 / size[cells]).reshape(-1, block)
    same = lined[:, :, None] == lined[:, None, :]
    return rows.residuals[order] - means[cells], (same * share[:, :, None]).sum(axis=0)


def _lagged(products: FloatArray, orders: IntArray) -> FloatArray:
    """Sums of products of rows that are one, two or three apart, for every order (B, m)."""
    total = np.zeros(len(orders))
    for lag, weight in enumerate(LAG_WEIGHTS, start=1):
        total += weight * products[orders[:, :-lag], orders[:, lag:]].sum(axis=1)
    return total


def _is_sorted_by_label(y: FloatArray) -> bool:
    changes = np.count_nonzero(np.diff(y))
    return bool(changes < SORTED_BY_LABEL * min(y.sum(), y.size - y.sum()))


def _ties(rows: _Rows) -> IntArray:
    """Numbers of the runs of rows with the same p and covariates."""
    return np.cumsum(np.r_[0, np.diff(rows.cells) != 0])


def _ties_are_sorted(rows: _Rows) -> bool:
    """Whether labels only rise, or only fall, among rows that are otherwise the same."""
    steps = np.diff(rows.sample.y[rows.rows])[np.diff(_ties(rows)) == 0]
    return bool(steps.any()) and bool((steps >= 0).all() or (steps <= 0).all())


def _ties_shuffled(rows: _Rows) -> IntArray:
    ties = _ties(rows)
    return np.lexsort((np.random.default_rng(0).random(ties.size), ties))
