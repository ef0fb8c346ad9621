"""What an exact p-value rests on, and what of it the data can contradict.

Rows independent given (x, f); labels unseen by the model; weights that carry no information on y
beyond (x, f); covariates that were known before the labels. All but the second can leave traces,
which are looked for here; each is told in a sentence, which is also a Python warning.

Residuals are looked at within the values of columns that may name units, within rows that are
nearly alike, and in the order of the file. What a smooth function of (p, x) explains is taken off
first. What stays is compared with rows that would share the bias of a miscalibrated model but
belong to another unit: the nearest units in p and x, or rows some way off in the file.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from itrust._core import (
    AnyArray,
    AssumptionWarning,
    FloatArray,
    InputError,
    IntArray,
    Setting,
    Subject,
    checked_count,
    counted,
    in_door_words,
)
from itrust.data import WITHOUT_IT, Column, Sample, Source, is_index, is_prediction, read_times
from itrust.terms import COLUMN_LEVELS

MAX_ROWS = 20_000
MIN_ROWS, MIN_ORDERED = 50, 100
# What a smooth function of (p, x) explains.
MIN_VARIANCE = 0.05  # of labels: residuals of rarer events are not blown up any further
MAX_FEATURES, ROWS_PER_FEATURE = 80, 8
WAVES_OF_P, MIN_WAVES, MAX_WAVES, WAVES_OF_ALL = 5, 4, 8, 32
ROWS_PER_LEVEL = 5
# Units: correlations of small and of large ones, of values of p and x, of few units.
MIN_UNITS, FEW_UNITS, SMALL_UNIT = 20, 8, 20
MODERATE, LARGER, STRONG, VERY_STRONG = 0.12, 0.15, 0.4, 0.5
CLEAR, CLEAR_OF_UNITS, CLEAR_EXCESS = 4.0, 2.5, 3.0  # standard errors
UNITS_PER_FEATURE = 5
NEIGHBOURS, MAX_CENTRES, MAX_PAIRED = 3, 2_000, 8
GRID, NEAR = 64, 0.05  # on the rank scale
AS_MUCH = 0.8  # of the largest correlation, from which on the coarser column is told
# The order of rows.
BLOCK = range(25, 51)  # rows among which the order is permuted
LAG_WEIGHTS = (1.0, 0.35, 0.1)
PERMUTATIONS, MAX_PVALUE, MIN_CORRELATION = 999, 0.008, 0.10
SORTED_BY_LABEL = 0.1  # changes of the label for each row with the rarer one
ROWS_PER_CELL = 5
MOSTLY_THE_SAME = 0.5  # of the changes from row to row that a category would have in random order
FEW_VALUES = 20
SMALL_STEP = 0.02  # of all ranks: the usual step from row to row where a file is sorted by a number
# Leaks and weights.
MIN_SQUARES = 5.0
MANY_ROWS, LEFT, LEFT_OF_FEW = 200, 0.1, 0.05  # of the squares, where a column tells labels
WINDOW = 2  # rows on each side
STRONG_WEIGHTS = 0.12  # correlation that miscalibration alone seldom reaches
MIN_PAIRS = 2  # of times


TAKES_ROWS = "the p-value takes rows as independent"
WEIGHTED = (
    "the weights go with the labels (correlation {:.2f} with y - p beyond p and the covariates); "
    "if they were built from the outcome, the p-value is not valid"
)

_known: WeakKeyDictionary[Sample, tuple[str, ...]] = WeakKeyDictionary()
_warned: WeakValueDictionary[tuple[int, object], AnyArray] = WeakValueDictionary()


def assumption_notes(source: Source, runs: Sample | None = None) -> tuple[str, ...]:
    """One sentence for each assumption that rows at hand contradict: all rows, or random ones.

    Each is a Python warning once for the same labels, for an audit asks several times, also with
    fewer covariates. Nothing is said of rows in files, of which random ones are to be given. Where
    rows are random ones of many, `runs` are rows that follow each other.
    """
    sample = source.in_memory
    if sample is None:
        return ()
    if sample in _known:
        return _known[sample]
    notes, labels = list(_notes(sample, runs)), sample.y if sample.codes is None else sample.codes
    _known[sample] = tuple(note for _, note in notes)
    for what, note in notes:
        if (id(labels), what) not in _warned:
            _warned[id(labels), what] = labels
            warnings.warn(note, AssumptionWarning, stacklevel=4)
    return _known[sample]


def _notes(sample: Sample, runs: Sample | None) -> Iterator[tuple[object, str]]:
    """What was seen, without its size, and its sentence."""
    weighted = outcome_in_weights(sample)
    if weighted is not None:
        yield "weights", WEIGHTED.format(weighted)
    whole = ResidualRows(sample)
    together = dependence(whole, None if runs is None else ResidualRows(runs, np.arange(runs.n)))
    if together is not None:
        yield (together.kind, together.names), dependence_in_words(together)
    repeated = together is not None or sample.cluster is not None
    yield from _leaks(whole, repeated=repeated)


def dependence_in_words(seen: Dependence) -> str:
    """What goes together, and the column to name as the cluster."""
    agree = f"go together (correlation {seen.correlation:.2f}"
    names = seen.names[0] if len(seen.names) == 1 else list(seen.names) or None
    cluster = in_door_words(Setting("cluster", names))
    if seen.kind == "column":
        columns = " and ".join(repr(name) for name in seen.names)
        joined = "name it" if len(seen.names) == 1 else "name both"
        return (
            f"residuals of rows with the same {columns} {agree}, {counted(seen.units, 'value')}): "
            f"if these are repeated units, {joined} with {cluster}, for {TAKES_ROWS}"
        )
    if seen.kind == "alike":
        return (
            f"{counted(seen.rows, 'row')} have nearly the same p and covariates as another row, "
            f"and their residuals {agree} beyond that of neighbours): if they are repeated units, "
            f"name these with {cluster}, for {TAKES_ROWS}"
        )
    return (
        f"residuals of rows next to each other {agree} beyond that of rows farther off), and no "
        f"column tells why: if their order is time, or neighbours share a unit, name weeks, months "
        f"or units with {cluster}, for {TAKES_ROWS}"
    )


def spread_rows(n: int, most: int = MAX_ROWS) -> IntArray:
    """All of n rows, or some of them at equal distances."""
    return np.unique(np.linspace(0, n - 1, most).astype(np.int64))


class ResidualRows:
    """Some rows of a sample; `numbers` says which.

    `residuals` (m,) are y - p over the standard deviation of the label, `variances` their variances
    if p is right: 1, but less for rare events.
    """

    def __init__(self, sample: Sample, numbers: IntArray | None = None) -> None:
        self.sample = sample
        self.numbers = spread_rows(sample.n) if numbers is None else numbers
        p = sample.p[self.numbers]
        scale = np.maximum(p * (1 - p), MIN_VARIANCE)
        self.residuals = (sample.y[self.numbers] - p) / np.sqrt(scale)
        self.variances = p * (1 - p) / scale

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Predictions and covariates of these rows."""
        points = self.sample.points.take(self.numbers)
        return points.prediction, *points.columns

    @cached_property
    def codes(self) -> tuple[IntArray, ...]:
        """For every column the place of each row's value among the distinct ones."""
        return tuple(np.unique(c.values, return_inverse=True)[1] for c in self.columns)

    @cached_property
    def cells(self) -> IntArray:
        """Numbers of the distinct (p, x), (m,)."""
        return self.crossed(self.codes)

    def crossed(self, codes: tuple[IntArray, ...]) -> IntArray:
        """Numbers of the distinct combinations; those that share categories and p are close."""
        first = sorted(
            range(len(codes)), key=lambda k: not self.columns[-len(codes) + k].is_category
        )
        cells = np.zeros(self.numbers.size, dtype=np.int64)
        for k in first:
            cells = cells * (int(codes[k].max()) + 1) + codes[k]
            cells = np.unique(cells, return_inverse=True)[1]
        return cells

    @cached_property
    def places(self) -> FloatArray:
        """Where the rows lie, (m, d): ranks of numbers between 0 and 1; levels are 1 apart."""
        places = []
        for column, codes in zip(self.columns, self.codes, strict=True):
            count = np.bincount(codes)  # equal values have the same rank; missing ones are the last
            ranks = (np.cumsum(count) - count / 2) / codes.size
            places.append(codes.astype(float) if column.is_category else ranks[codes])
        return np.column_stack(places)

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal features of (p, x): waves of every number, then levels, (m, k)."""
        room = max(min(MAX_FEATURES, self.numbers.size // ROWS_PER_FEATURE), 1)
        numbers = [k for k, column in enumerate(self.columns) if not column.is_category]
        features = [np.ones(self.numbers.size)]
        features += [np.cos(np.pi * wave * self.places[:, 0]) for wave in range(1, 1 + WAVES_OF_P)]
        waves = np.clip(WAVES_OF_ALL // len(numbers), MIN_WAVES, MAX_WAVES)
        for wave in range(1, 1 + waves):
            if len(features) < room:
                features += [np.cos(np.pi * wave * self.places[:, k]) for k in numbers[1:]]
        for codes in self.codes:
            size = np.bincount(codes)
            if len(features) < room and 1 < size.size <= COLUMN_LEVELS:
                frequent = np.flatnonzero(size >= ROWS_PER_LEVEL)[1:]
                features += [(codes == level).astype(float) for level in frequent]
        return np.linalg.qr(np.column_stack(features[:room]))[0]

    def unexplained(self, max_features: int = MAX_FEATURES) -> FloatArray:
        """Residuals less what the first features of (p, x) explain, (m,)."""
        basis = self.basis[:, : max(max_features, 1)]
        return np.asarray(self.residuals - basis @ (basis.T @ self.residuals))


@dataclass(frozen=True)
class Dependence:
    """Rows whose labels go together: of units that columns name, alike, or next to each other."""

    kind: str
    correlation: float
    rows: int = 0
    units: int = 0
    names: tuple[str, ...] = ()


def dependence(whole: ResidualRows, runs: ResidualRows | None = None) -> Dependence | None:
    """The plainest sign of dependence; None without one, or if clusters are known.

    Rows that are random ones of many tell nothing by their order; `runs` are others that do.
    """
    sample, design = whole.sample, whole.sample.design
    known = design.cluster is not None or design.replicate_weights is not None
    if known or sample.n < MIN_ROWS or np.ptp(sample.y) == 0:
        return None
    columns = [seen for units in _by_column(whole) if (seen := _agreement(whole, units))]
    if columns:  # of those that show about as much, the one with the fewest units holds the others
        most = max(seen.correlation for seen in columns)
        close = [seen for seen in columns if seen.correlation >= AS_MUCH * most]
        return min(close, key=lambda seen: seen.units)
    for units in chain(_by_pair(sample), _by_likeness(whole)):
        if (seen := _agreement(whole, units)) is not None:
            return seen
    correlation = neighbour_correlation(whole if runs is None else runs)
    return None if correlation is None else Dependence("order", correlation)


# Rows and the number of their units, the columns that name these, and the correlation that it takes
# to be one of units; None where it depends on their size. A value of (p, x) may have a bias of its
# own, which the test is about, so more must agree before it is taken for a unit.
_Grouping = tuple[IntArray, IntArray, tuple[str, ...], float | None]


def _by_column(whole: ResidualRows) -> Iterator[_Grouping]:
    """Columns without a role, then covariates."""
    for units in whole.sample.units:
        yield units.rows, units.codes, (units.name,), MODERATE if units.is_date else None
    for column, codes in zip(whole.columns[1:], whole.codes[1:], strict=True):
        yield whole.numbers, codes, (column.name,), STRONG


def _by_pair(sample: Sample) -> Iterator[_Grouping]:
    """Two columns without a role, where all rows are kept: a state and a year name an election."""
    whole = [units for units in sample.units if units.rows.size == sample.n][:MAX_PAIRED]
    for one, other in combinations(whole, 2):
        both = one.codes.astype(np.int64) * (int(other.codes.max()) + 1) + other.codes
        codes = np.unique(both, return_inverse=True)[1]
        yield one.rows, codes, (one.name, other.name), None


def _by_likeness(whole: ResidualRows) -> Iterator[_Grouping]:
    """The same (p, x); the same x; one cell of a grid; a stretch of the file with similar p."""
    numbers = [c for x, c in zip(whole.columns, whole.codes, strict=True) if not x.is_category][1:]
    finest = max((int(codes.max()) + 1 for codes in numbers), default=0)
    by_levels = len(whole.codes) > 1 and finest <= (whole.cells.max() + 1) / 2  # few values each
    yield whole.numbers, whole.cells, (), STRONG if by_levels else None
    if len(whole.codes) > 1:
        yield whole.numbers, whole.crossed(whole.codes[1:]), (), STRONG
    grid = tuple(
        codes if column.is_category else np.floor(place * GRID).astype(np.int64)
        for column, codes, place in zip(whole.columns, whole.codes, whole.places.T, strict=True)
    )
    yield whole.numbers, whole.crossed(grid), (), STRONG
    if whole.numbers.size == whole.sample.n:
        jumps = np.abs(np.diff(whole.places[:, 0])) > NEAR
        yield whole.numbers, np.cumsum(np.r_[0, jumps]), (), STRONG


def _agreement(whole: ResidualRows, units: _Grouping) -> Dependence | None:
    """What rows of one unit have in common, if it is clear and more than neighbours have."""
    numbers, codes, names, needed = units
    same = np.array_equal(numbers, whole.numbers)
    count = int(np.count_nonzero(np.bincount(codes) >= 2))
    if count < FEW_UNITS:
        return None
    rows = whole if same else ResidualRows(whole.sample, numbers)
    before = UnitSums(rows.residuals - rows.residuals.mean(), codes, rows.variances)
    if not before.is_clear or before.correlation < MODERATE:
        return None  # a bias that is taken off would only have added to it
    sums = UnitSums(rows.unexplained(count // UNITS_PER_FEATURE), codes, rows.variances)
    if not sums.is_clear:
        return None
    # Units that are at most three apart in the order of the column's values, or near in p and x.
    one = np.repeat(np.arange(count), NEIGHBOURS)
    other = one + np.tile(np.arange(1, 1 + NEIGHBOURS), count)
    next_ones = one[other < count], other[other < count]
    excess = min(sums.excess(*next_ones), sums.excess(*_nearest(rows, codes)))
    if needed is None:  # groups with a bias of their own are below
        needed = MODERATE if np.median(sums.size) <= SMALL_UNIT else LARGER
    if excess < (VERY_STRONG if count < MIN_UNITS else needed):
        return None
    kind = "column" if names else "alike"
    return Dependence(kind, excess, int(sums.size.sum()), count, names)


class UnitSums:
    """Sums over the rows of every unit with at least two of them, (g,) each.

    `products` are those of all pairs of a unit, over its size less 1: the correlation times the
    squares.
    """

    def __init__(self, residuals: FloatArray, codes: IntArray, variances: FloatArray) -> None:
        size = np.bincount(codes)
        sums = (np.bincount(codes, values) for values in (residuals, residuals**2, variances))
        self.size, self.sums, self.squares, self.variances = (
            values[size >= 2].astype(float) for values in (size, *sums)
        )
        self.products = (self.sums**2 - self.squares) / (self.size - 1)

    @property
    def correlation(self) -> float:
        """Of two rows of one unit, on average."""
        return float(self.products.sum() / self.squares.sum())

    @property
    def is_clear(self) -> bool:
        """More than independent labels show, and not owed to a few large products."""
        total, pairs = self.products.sum(), self.size * (self.size - 1)
        variance = max((v**2 / pairs).sum() for v in (self.variances, self.squares))
        spread = np.sqrt((self.products**2).sum())
        return bool(total > CLEAR * np.sqrt(2 * variance) and total > CLEAR_OF_UNITS * spread)

    def excess(self, one: IntArray, other: IntArray) -> float:
        """How much more rows of a unit agree than those of neighbours; 0 unless that is clear."""
        roots = np.sqrt(self.squares)
        products = self.sums[one] * self.sums[other] / np.sqrt(self.size[one] * self.size[other])
        scale = roots[one] * roots[other]
        between = float(products.sum() / scale.sum())
        errors = (
            np.linalg.norm(values - share * unit) / unit.sum()
            for values, share, unit in (
                (products, between, scale),
                (self.products, self.correlation, self.squares),
            )
        )
        more = self.correlation - max(between, 0.0)
        return more if more > CLEAR_EXCESS * float(np.hypot(*errors)) else 0.0


def _nearest(rows: ResidualRows, codes: IntArray) -> tuple[IntArray, IntArray]:
    """Units, 2,000 at most, and for each the three nearest to it in p and the covariates."""
    from scipy.spatial import KDTree  # slow to load, and needed by few

    size = np.bincount(codes)
    sums = np.column_stack([np.bincount(codes, place) for place in rows.places.T])
    centres = sums[size >= 2] / size[size >= 2, None]
    some = spread_rows(len(centres), MAX_CENTRES)
    nearest = KDTree(centres).query(centres[some], k=1 + NEIGHBOURS)[1].ravel()
    one = np.repeat(some, 1 + NEIGHBOURS)
    return one[nearest != one], nearest[nearest != one]


def neighbour_correlation(whole: ResidualRows) -> float | None:
    """How much more rows next to each other agree than rows of one stretch do; None: not clearly.

    Stretches of 25 to 50 rows are put below each other and their columns permuted. If rows are
    independent, and what (p, x) does not explain of the bias changes slowly along the file, the
    order within a stretch means nothing: a permutation test, of size .008. In a file that is sorted
    by p or a covariate, neighbours agree where the model is biased, too: nothing is said then.
    """
    n, y = whole.sample.n, whole.sample.y
    changes = np.count_nonzero(np.diff(y))
    if n < MIN_ORDERED or changes < SORTED_BY_LABEL * min(y.sum(), n - y.sum()):
        return None
    block = min(BLOCK, key=lambda size: (n % size, -size))
    rows, chosen = whole, np.arange(n // block * block)
    if whole.numbers.size < n:  # as many stretches as there is room for
        some = spread_rows(n // block, MAX_ROWS // block)
        rows = ResidualRows(whole.sample, (some[:, None] * block + np.arange(block)).ravel())
        chosen = np.arange(rows.numbers.size)
    if any(_is_sorted_by(column) for column in rows.columns):
        return None
    lined = _beyond_cells(rows)[_ties_shuffled(rows, chosen)].reshape(-1, block)
    products = lined.T @ lined
    in_place = np.arange(block)
    drawn = np.random.default_rng(0).permuted(np.tile(in_place, (PERMUTATIONS, 1)), axis=1)
    at_least = np.count_nonzero(_lagged(products, drawn) >= _lagged(products, in_place[None]))
    variance = np.trace(products) / block
    usual = (products.sum() - np.trace(products)) / (block * (block - 1))
    correlation = float((np.diagonal(products, 1).mean() - usual) / (variance or 1.0))
    is_clear = (1 + at_least) / (1 + PERMUTATIONS) <= MAX_PVALUE
    return correlation if is_clear and correlation >= MIN_CORRELATION else None


def _is_sorted_by(column: Column) -> bool:
    """Whether rows next to each other nearly share a category or a number."""
    codes = np.unique(column.values, return_inverse=True)[1]
    if column.is_category or codes.max() < FEW_VALUES:
        usual = 1 - float(np.square(np.bincount(codes) / codes.size).sum())
        return bool(np.mean(np.diff(codes) != 0) < MOSTLY_THE_SAME * usual)
    steps = np.abs(np.diff(np.argsort(np.argsort(column.values, kind="stable"))))
    return bool(np.median(steps) < SMALL_STEP * codes.size)


def _ties_shuffled(rows: ResidualRows, chosen: IntArray) -> IntArray:
    """Rows in order; if labels are sorted among rows with the same (p, x), these shuffled.

    A table that was sorted by all its columns says nothing by the order of its labels.
    """
    ties = np.cumsum(np.r_[0, np.diff(rows.cells[chosen]) != 0])
    steps = np.diff(rows.sample.y[rows.numbers[chosen]])[np.diff(ties) == 0]
    if not steps.any() or ((steps < 0).any() and (steps > 0).any()):
        return chosen
    return chosen[np.lexsort((np.random.default_rng(0).random(ties.size), ties))]


def _beyond_cells(rows: ResidualRows) -> FloatArray:
    """Residuals less smooth functions of (p, x); if most rows share theirs with others, less means.

    The means of rows with the same (p, x) explain all that (p, x) can.
    """
    large = np.bincount(rows.cells)[rows.cells] >= ROWS_PER_CELL
    if large.mean() < 0.5:
        return rows.unexplained()
    cells = np.where(large, rows.cells, rows.cells.max() + 1)
    means = np.bincount(cells, rows.residuals) / np.maximum(np.bincount(cells), 1)
    return np.asarray(rows.residuals - means[cells])


def _lagged(products: FloatArray, orders: IntArray) -> FloatArray:
    """Sums of products of rows that are one, two or three apart, for every order (B, m)."""
    total = np.zeros(len(orders))
    for lag, weight in enumerate(LAG_WEIGHTS, start=1):
        total += weight * products[orders[:, :-lag], orders[:, lag:]].sum(axis=1)
    return total


def _leaks(whole: ResidualRows, *, repeated: bool) -> Iterator[tuple[object, str]]:
    """Covariates that are p, 1 - p or the number of the row, or that foretell the label.

    `repeated` if rows share units, which then foretell labels, too.
    """
    out = in_door_words(WITHOUT_IT)
    for column, codes in zip(whole.columns[1:], whole.codes[1:], strict=True):
        values, name = whole.sample.column(column.name), column.name
        title = repr(name) if name.strip() else "the column without a name"
        copy = is_prediction(values, whole.sample.p)
        if copy is not None:
            words = f"is {copy}, which the test is given anyway: {out}, for it adds nothing"
            yield (name, copy), f"{title} {words}"
        elif is_index(values):
            yield (name, "index"), f"{title} counts the rows: unless their order is time, {out}"
        elif _foretells_labels(whole, codes, column.is_category or repeated):
            words = (
                f"tells nearly every label: if it was made from the label, or after it, {out}, for "
                "given the label no probability but 0 and 1 is calibrated"
            )
            yield (name, "label"), f"{title} {words}"


def _foretells_labels(rows: ResidualRows, codes: IntArray, by_value: bool) -> bool:
    """Whether rows with the same value, or with the next ones, tell a row's label nearly surely."""
    y = rows.sample.y[rows.numbers]
    if y.min() == y.max():  # nothing foretells what is always the same
        return False
    squares = float(((y - rows.sample.p[rows.numbers]) ** 2).sum())
    few = int(codes.max()) + 1 <= FEW_VALUES
    if y.size < MIN_ROWS or squares < MIN_SQUARES or (by_value and not few):
        return False
    if few:  # the mean label of the other rows with the same value; of all where there are none
        size, sums = np.bincount(codes)[codes], np.bincount(codes, y)[codes]
        off = y - np.where(size > 1, (sums - y) / np.maximum(size - 1, 1), y.mean())
    else:  # that of the two rows before and the two behind in the order of the values
        y = y[np.argsort(codes, kind="stable")]
        around = np.convolve(np.pad(y, WINDOW, mode="reflect"), np.ones(2 * WINDOW + 1), "valid")
        off = y - (around - y) / (2 * WINDOW)
    left = LEFT if y.size >= MANY_ROWS else LEFT_OF_FEW
    return bool((off**2).sum() < left * squares)


def outcome_in_weights(sample: Sample) -> float | None:
    """Correlation of weights with labels beyond what p and x explain; None unless it is clear.

    A regression tree takes out of the weights what is a function of (p, x); it never sees a
    label. Uses 20,000 rows at most.
    """
    if sample.weights is None or np.ptp(sample.weights) == 0 or sample.n < MIN_ROWS:
        return None
    from sklearn.tree import DecisionTreeRegressor  # slow to load, and few samples have weights

    rows = spread_rows(sample.n)
    weights, residuals = sample.weights_or_ones[rows], sample.residuals[rows]
    columns = (sample.points.prediction, *sample.columns)
    table = np.column_stack([np.nan_to_num(c.values[rows], nan=-1e30) for c in columns])
    tree = DecisionTreeRegressor(min_samples_leaf=5, max_leaf_nodes=512, random_state=0)
    unexplained = weights - tree.fit(table, weights).predict(table)
    products = unexplained * residuals
    scale = np.sqrt((unexplained**2).sum() * (residuals**2).sum())
    if np.abs(unexplained).max() < 1e-9 or scale == 0:
        return None
    z = products.sum() / np.sqrt((products**2).sum())
    correlation = float(products.sum() / scale)
    return correlation if abs(z) >= CLEAR and abs(correlation) >= STRONG_WEIGHTS else None


@dataclass(frozen=True)
class Autocorrelation:
    """How residuals of one time go with those of a later one."""

    lag: int
    correlation: float
    stderr: float
    pairs: int


def residual_autocorrelation(sample: Sample, order: object, lag: int = 1) -> Autocorrelation:
    """Correlate the mean residuals of times that follow each other.

    Residuals (y - p) / sqrt(p (1 - p)), less their mean over all rows, are averaged over the n_t
    rows of every time and multiplied by sqrt(n_t), which gives z_t of about the same variance.
    With m pairs of T times, the correlation is (sum of z_t z_(t + lag) / m) / (sum of z_t^2 / T),
    and its standard error sqrt(sum of z_t^2 z_(t + lag)^2) / m over the same: products of
    independent times have the mean 0, whatever their variances are. Costs O(n log n).
    """
    what = Subject("order")
    checked_count(lag, "lag")
    times = read_times(order, what, sample.n)
    variances = sample.p * (1 - sample.p)
    varies = variances > 0
    residuals = sample.residuals[varies] / np.sqrt(variances[varies])
    z = residuals
    if residuals.size:
        codes = np.unique(times[varies], return_inverse=True)[1]
        z = np.bincount(codes, residuals - residuals.mean()) / np.sqrt(np.bincount(codes))
    pairs = max(z.size - lag, 0)
    if pairs < MIN_PAIRS:
        raise InputError(
            f"{{argument}} has {counted(z.size, 'time')} with p between 0 and 1, too few for lag "
            f"{lag}; at least {lag + MIN_PAIRS} are needed",
            count=int(z.size),
            **what.fields,
        )
    products, variance = z[lag:] * z[:-lag], float(np.square(z).mean())
    scale = pairs * variance or 1.0
    error = float(np.sqrt(np.square(products).sum())) / scale
    return Autocorrelation(lag, float(products.sum()) / scale, error, pairs)
