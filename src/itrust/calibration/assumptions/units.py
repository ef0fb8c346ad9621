"""Labels of rows of one unit that go together, more than a bias shared with neighbours explains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.calibration.assumptions.rows import Rows
from itrust.data import Sample

MIN_UNITS, FEW_UNITS, SMALL_UNIT = 20, 8, 20
# Correlations: of small and of large units, of units that are values of p and x, of few units.
MODERATE, LARGER, STRONG, VERY_STRONG = 0.12, 0.15, 0.4, 0.5
CLEAR, CLEAR_OF_OWN, CLEAR_EXCESS = 4.0, 2.5, 3.0  # standard errors
UNITS_PER_FEATURE = 5
NEIGHBOURS, MAX_CENTRES = 3, 2_000
MAX_PAIRED = 8
GRID, NEAR = 64, 0.05  # on the rank scale


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows and the number of their units.

    `names` are the columns that name the units. A unit that is a value of (p, x) (`in_x`) may have
    a bias of its own, which the test is about, so more must agree before it is taken for one.
    """

    numbers: IntArray
    codes: IntArray
    names: tuple[str, ...] = ()
    is_date: bool = False
    in_x: bool = False


@dataclass(frozen=True)
class Agreement:
    """Rows of one unit agree: the columns that name it, and the correlation of residuals.

    The correlation is what exceeds that of neighbouring units.
    """

    names: tuple[str, ...]
    correlation: float
    rows: int
    units: int


def by_column(whole: Rows) -> Iterator[Grouping]:
    """Columns without a role, then covariates."""
    for units in whole.sample.units:
        yield Grouping(units.rows, units.codes, (units.name,), is_date=units.is_date)
    for column, codes in zip(whole.columns[1:], whole.codes[1:], strict=True):
        yield Grouping(whole.numbers, codes, (column.name,), in_x=True)


def by_pair(sample: Sample) -> Iterator[Grouping]:
    """Two columns without a role, where all rows are kept: a state and a year name an election."""
    whole = [units for units in sample.units if units.rows.size == sample.n][:MAX_PAIRED]
    for one, other in combinations(whole, 2):
        both = one.codes.astype(np.int64) * (int(other.codes.max()) + 1) + other.codes
        codes = np.unique(both, return_inverse=True)[1]
        yield Grouping(one.rows, codes, (one.name, other.name))


def by_likeness(whole: Rows) -> Iterator[Grouping]:
    """The same (p, x); the same x; one cell of a grid; a stretch of the file with similar p."""
    yield Grouping(whole.numbers, whole.cells, in_x=_are_cells_of_levels(whole))
    if len(whole.codes) > 1:
        yield Grouping(whole.numbers, whole.crossed(whole.codes[1:]), in_x=True)
    grid = tuple(
        codes if column.is_category else np.floor(place * GRID).astype(np.int64)
        for column, codes, place in zip(whole.columns, whole.codes, whole.places.T, strict=True)
    )
    yield Grouping(whole.numbers, whole.crossed(grid), in_x=True)
    if whole.numbers.size == whole.sample.n:
        jumps = np.abs(np.diff(whole.places[:, 0])) > NEAR
        yield Grouping(whole.numbers, np.cumsum(np.r_[0, jumps]), in_x=True)


def _are_cells_of_levels(whole: Rows) -> bool:
    """Whether the distinct (p, x) come from covariates with few values each."""
    numbers = [c for x, c in zip(whole.columns, whole.codes, strict=True) if not x.is_category][1:]
    finest = max((int(codes.max()) + 1 for codes in numbers), default=0)
    return len(whole.codes) > 1 and finest <= (whole.cells.max() + 1) / 2


def agreement(whole: Rows, units: Grouping) -> Agreement | None:
    """What rows of one unit have in common, if it is clear and more than neighbours have."""
    codes = units.codes
    several = np.bincount(codes) >= 2
    count = int(np.count_nonzero(several))
    if count < FEW_UNITS:
        return None
    rows = whole.at(units.numbers)
    before = _UnitSums.of(rows, rows.residuals - rows.residuals.mean(), codes)
    if not before.is_clear or before.correlation < MODERATE:
        return None  # a bias that is taken off would only have added to it
    sums = _UnitSums.of(rows, rows.unexplained(count // UNITS_PER_FEATURE), codes)
    if not sums.is_clear:
        return None
    excess = min(sums.excess(*pairs) for pairs in (_next(count), _nearest(rows, codes, several)))
    if excess < _needed(sums, units):
        return None
    return Agreement(units.names, excess, int(sums.size.sum()), count)


def _needed(sums: _UnitSums, units: Grouping) -> float:
    """The correlation from which on units are told; groups with a bias of their own are below."""
    if sums.size.size < MIN_UNITS:
        return VERY_STRONG
    if units.in_x:
        return STRONG
    small = np.median(sums.size) <= SMALL_UNIT
    return MODERATE if small or units.is_date else LARGER


@dataclass(frozen=True, eq=False)
class _UnitSums:
    """Sums over the rows of every unit with at least two of them, (g,) each."""

    size: FloatArray
    sums: FloatArray
    squares: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, rows: Rows, residuals: FloatArray, codes: IntArray) -> _UnitSums:
        size = np.bincount(codes)
        summed = [np.bincount(codes, v) for v in (residuals, residuals**2, rows.variances)]
        return cls(*(values[size >= 2].astype(float) for values in (size, *summed)))

    @property
    def products(self) -> FloatArray:
        """Of all pairs of a unit, over its size less 1: the correlation times `squares`."""
        return (self.sums**2 - self.squares) / (self.size - 1)

    @property
    def correlation(self) -> float:
        return float(self.products.sum() / self.squares.sum())

    @property
    def is_clear(self) -> bool:
        """More than independent labels show, and not owed to a few large products."""
        if not self.squares.any():
            return False
        total, pairs = self.products.sum(), self.size * (self.size - 1)
        variance = max((v**2 / pairs).sum() for v in (self.variances, self.squares))
        own = np.sqrt((self.products**2).sum())
        return bool(total > CLEAR * np.sqrt(2 * variance) and total > CLEAR_OF_OWN * own)

    def excess(self, one: IntArray, other: IntArray) -> float:
        """How much more rows of a unit agree than those of neighbours; 0 unless that is clear."""
        roots = np.sqrt(self.squares)
        products = self.sums[one] * self.sums[other] / np.sqrt(self.size[one] * self.size[other])
        scale = roots[one] * roots[other]
        between = float(products.sum() / scale.sum())
        errors = (
            np.sqrt(((products - between * scale) ** 2).sum()) / scale.sum(),
            np.sqrt(((self.products - self.correlation * self.squares) ** 2).sum())
            / self.squares.sum(),
        )
        found = self.correlation - max(between, 0.0)
        return found if found > CLEAR_EXCESS * float(np.hypot(*errors)) else 0.0


def _next(count: int) -> tuple[IntArray, IntArray]:
    """Units that are at most three apart in the order of the column's values."""
    one = np.repeat(np.arange(count), NEIGHBOURS)
    other = one + np.tile(np.arange(1, 1 + NEIGHBOURS), count)
    return one[other < count], other[other < count]


def _nearest(rows: Rows, codes: IntArray, several: BoolArray) -> tuple[IntArray, IntArray]:
    """Units, 2,000 at most, and for each the three nearest to it in p and the covariates."""
    from scipy.spatial import KDTree  # slow to load, and needed by few

    size = np.maximum(np.bincount(codes), 1)
    centres = np.column_stack([np.bincount(codes, place) / size for place in rows.places.T])
    centres = centres[several]
    some = np.unique(np.linspace(0, len(centres) - 1, MAX_CENTRES).astype(np.int64))
    nearest = KDTree(centres).query(centres[some], k=1 + NEIGHBOURS)[1]
    one = np.repeat(some, 1 + NEIGHBOURS)
    others = nearest.ravel() != one
    return one[others], nearest.ravel()[others]
