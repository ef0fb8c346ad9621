"""The dictionary that is used unless another is given: from coarse to fine, one family each.

Shares are stated, not learned. Trends get much of the weight, for they are what most errors of a
model look like and what a long list of other entries would drown; so do sums over all trends, all
quadratics and all levels of a category, for a bias that is spread thinly shows nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from itrust.calibration.dictionary.entries import Dictionary, Entry, Scaling
from itrust.data import Points, parts_of
from itrust.kernels import RBF, Constant, Delta, LocalKernel
from itrust.terms import (
    CHECKED_LEVELS,
    DIRECTION_LEVELS,
    ColumnName,
    Curve,
    Described,
    Inside,
    Precision,
    Product,
    Shape,
    Slope,
    Term,
    Wave,
    fading,
    product_facts,
)

SHARES = {  # relative to each other; families without entries leave theirs to the others
    "overall": 0.10,
    "prediction": 0.07,
    "linear": 2.00,
    "joint": 0.95,
    "group effects": 2.00,
    "curved": 0.30,
    "smooth": 0.10,
    "with prediction": 0.02,
    "pairs": 0.05,
    "crossings": 0.06,
    "crossed groups": 0.40,
    "full": 0.04,
    "ranges": 0.25,
    "regions": 0.80,
    "triples": 0.10,
}
SCANNED = "ranges", "regions", "triples"  # families whose regions are scanned
# Calibration given covariates implies calibration overall, so what speaks against the latter keeps
# these parts of the whole weight, however many covariates are named.
KEPT = {"overall": 0.10, "prediction": 0.07}
# Directions of a test with an interval null: a violation is everywhere first of all.
DIRECTION_SHARES = {
    "overall": 0.60,
    "precision": 0.07,
    "prediction": 0.08,
    "linear": 0.11,
    "curved": 0.015,
    "parts": 0.04,
    "tails": 0.015,
    "with prediction": 0.025,
    "pairs": 0.015,
    "crossed groups": 0.03,
}
BROAD, FINE = 0.25, 0.08  # widths of smooth entries on the scale of ranks
FULL_WIDTHS = (1.0, 2.0, 0.5, 0.25)  # times the default widths
FIFTHS, QUARTERS, FORTIETHS = 5, 4, 40
MAX_CONTRASTS = 60  # checks between classes
MAX_SCANNED = 128  # pairs of columns whose regions are scanned
MAX_TRIPLES = 12  # of columns
MIN_TAIL = 5  # rows of a fortieth, among the pilot rows
MAX_JOINT = 400  # features of a check of all covariates
MAX_DIRECTIONS = 240  # of a test with an interval null
FEW_COLUMNS = 20  # up to here every smooth entry gets all its waves
FEW_NUMBERS = 10  # up to here pairs of numbers get smooth entries, too
MAX_PAIR_FEATURES = 3_000
MIN_ROWS = 5  # of a level, among the pilot rows, to be a check of its own

Scaled = tuple[Product, float]


def default_dictionary_for(points: Points) -> Dictionary:
    """Build the default dictionary from rows without labels (all, or a random part).

    Overall level; the prediction alone; per number a trend, a quadratic, a cubic, two smooth
    entries and one crossed with the prediction; per category its levels, one by one and together;
    all trends and all quadratics together; pairs; regions of one column and of several; and the
    default kernel on everything at four widths.
    """
    columns = _useful(points)
    many = len(columns) > FEW_COLUMNS
    entries = [
        _check("overall"),
        _check("prediction", Slope()),
        _check("prediction", Curve(None, 2)),
        _smooth("prediction alone", "prediction", None, BROAD, 4),
        _smooth("prediction alone, fine", "prediction", None, FINE, 12),
    ]
    for column in columns:
        entries += _of_one(column, many=many)
    notes: list[str] = []
    entries += _of_all(columns, notes)
    entries += _of_pairs(columns, notes)
    entries += _scans(columns, notes)
    entries += _of_everything(points)
    shares = _keeping(SHARES, [entry.family for entry in entries])
    return Dictionary(tuple(_distinct(entries)), shares, tuple(notes))


def contrast_entries(points: Points) -> tuple[Entry, ...]:
    """Checks of one feature each that read covariates alone, for contrasts between classes.

    The overall level, missing values, levels, trends and, of few numbers, their quarters.
    """
    columns = _useful(points)
    entries = [_check("overall"), *(entry for column in columns for entry in _plain(column))]
    numbers = [column for column in columns if column.is_number]
    if len(numbers) <= FEW_NUMBERS:
        entries += [entry for column in numbers for entry in _parts(column, QUARTERS)]
    return tuple(_distinct(entries[:MAX_CONTRASTS]))


def direction_dictionary(points: Points) -> Dictionary:
    """Directions of a test with an interval null, built from rows without labels.

    Sums of labels are compared with the largest that the null allows, so a direction that is never
    negative is better than a centred one: it need not pay for what the null allows elsewhere.
    The overall level, plain and by precision; slope, quadratic and fifths of the prediction;
    missing values, levels, trends, quadratics, quarters and tails of the covariates; levels with
    the slope of the prediction; pairs of levels, of trends and of both.
    """
    columns = _useful(points)
    numbers, categories = _kinds(columns)
    small = [column for column in categories if _is_small(column)]
    fifths = parts_of(replace(points.prediction, name="prediction"), FIFTHS)
    kinds: list[Iterable[Entry]] = [
        [_check("overall"), _check("precision", Precision()), _check("prediction", Slope())],
        [_check("prediction", Curve(None, 2))],
        (_check("prediction", Inside.part(part, of_prediction=True)) for part in fifths),
        (entry for column in columns for entry in _plain(column)),
        (e for column in numbers for e in (*_parts(column, QUARTERS), *_tails(column))),
        (_check("curved", Curve(column.name, 2)) for column in numbers),
        (
            _check("with prediction", level, Slope())
            for column in categories
            for level in column.levels[:DIRECTION_LEVELS]
        ),
        (entry for pair in combinations(small, 2) for entry in _crossing(*pair)[1:]),
        (entry for a in small for b in numbers for entry in _trends_within(a, b)[1:]),
        (entry for pair in combinations(numbers, 2) for entry in _trend_of_two(*pair)),
    ]
    entries = [entry for kind in kinds for entry in kind]
    left_out = len(entries) - MAX_DIRECTIONS
    notes = (f"too many covariates for {left_out:,} of the directions",) if left_out > 0 else ()
    return Dictionary(tuple(_distinct(entries[:MAX_DIRECTIONS])), DIRECTION_SHARES, notes)


def _useful(points: Points) -> list[Described]:
    """The columns that tell rows apart."""
    columns = [Described.of(column, CHECKED_LEVELS) for column in points.columns]
    return [c for c in columns if c.is_number or c.distinct > 1 or c.has_missing]


def _kinds(columns: Sequence[Described]) -> tuple[list[Described], list[Described]]:
    """Numbers, and categories of several levels."""
    numbers = [column for column in columns if column.is_number]
    return numbers, [c for c in columns if not c.is_number and c.distinct > 1]


def _is_small(column: Described) -> bool:
    """Whether all levels can be features."""
    return column.distinct <= CHECKED_LEVELS


def _title(column: Described) -> str:
    """What checks of levels are called, beside those of a number."""
    return f"values of {column.name}" if column.is_number else column.name


def _check(family: str, *terms: Term) -> Entry:
    """A check of one feature, which says itself what it is called and whom it is about."""
    return Entry(family=family, features=(terms,), scales=(1.0,), **product_facts(terms))


def _several(
    name: str, family: str, features: Sequence[Scaled], shape: Shape, scaling: Scaling = "stated"
) -> Entry:
    """A check that sums over features."""
    products, scales = zip(*features, strict=True)
    together = tuple(term for product in products for term in product)
    covariates = product_facts(together)["covariates"]
    return Entry(name, family, covariates, products, scales, shape=shape, scaling=scaling)


def _smooth(name: str, family: str, column: ColumnName, width: float, waves: int) -> Entry:
    return _several(name, family, _waves(column, waves, width), Shape.SMOOTH)


def _waves(column: ColumnName, number: int, width: float = BROAD) -> list[Scaled]:
    return [((Wave(column, order),), fading(width, order)) for order in range(1, number + 1)]


def _levels(column: Described) -> list[Scaled]:
    return [((level,), 1.0) for level in column.levels]


def _crossed(first: Sequence[Scaled], second: Sequence[Scaled]) -> list[Scaled]:
    """All products of two sets of functions."""
    return [(a + b, s * t) for a, s in first for b, t in second]


def _plain(column: Described) -> Iterator[Entry]:
    """Missing values, the trend of a number, and frequent levels."""
    yield from (_check("linear", absent) for absent in column.absent)
    if column.is_number:
        yield _check("linear", Curve(column.name, 1))
    yield from (_check("linear", level) for level in column.frequent(MIN_ROWS, DIRECTION_LEVELS))


def _of_one(column: Described, *, many: bool) -> Iterator[Entry]:
    name = column.name
    yield from (_check("linear", absent) for absent in column.absent)
    if column.levels:
        yield from _of_category(column)
    if not column.is_number:
        return
    yield _check("linear", Curve(name, 1))
    yield _check("curved", Curve(name, 2))
    yield _check("curved", Curve(name, 3))
    yield _smooth(f"{name} alone", "smooth", name, BROAD, 4)
    yield _smooth(f"{name} alone, fine", "smooth", name, FINE, 6 if many else 12)
    across, along = (2, 2) if many else (4, 3)
    crossed = _crossed(_waves(name, across), _waves(None, along))
    yield _several(f"{name} x prediction", "with prediction", crossed, Shape.PAIR)


def _parts(column: Described, parts: int) -> Iterator[Entry]:
    """Parts of a number that has many values."""
    for part in () if column.levels else parts_of(column.column, parts):
        yield _check("parts", Inside.part(part))


def _tails(column: Described) -> Iterator[Entry]:
    """The lowest and the highest values of a number, where values do not tie too much."""
    present = column.column.values[~column.column.missing]
    if column.levels or present.size < MIN_TAIL * FORTIETHS:
        return
    parts = parts_of(column.column, FORTIETHS)
    for part in (parts[0], parts[-1]):
        rows = np.count_nonzero((present >= part.low) & (present < part.high))
        if MIN_TAIL <= rows <= 2 * present.size / FORTIETHS:
            yield _check("tails", Inside.part(part))


def _of_category(column: Described) -> Iterator[Entry]:
    levels = column.frequent(MIN_ROWS)
    if len(levels) == column.distinct == 2 and not column.has_missing:  # one says all
        is_text = isinstance(levels[0].level, str)
        levels = levels[-1:] if is_text else [max(levels, key=lambda own: own.level)]
    yield from (_check("linear", level) for level in levels)
    alone, crossed = f"{_title(column)} alone", f"{_title(column)} x prediction"
    if _is_small(column):
        if column.distinct > 2:
            yield _several(alone, "group effects", _levels(column), Shape.SMOOTH, "standard")
        along = [((Slope(),), 1.0), *_waves(None, 3)]
        features = _crossed(_levels(column), along)
        yield _several(crossed, "with prediction", features, Shape.PAIR)
        return
    only, same = (column.name,), Delta().on(column.name)
    level, slope = LocalKernel(Constant(), same), LocalKernel(RBF(), same)
    yield Entry(alone, "group effects", only, kernel=level, shape=Shape.SMOOTH)
    yield Entry(crossed, "with prediction", only, kernel=slope, shape=Shape.PAIR)


def _of_all(columns: Sequence[Described], notes: list[str]) -> Iterator[Entry]:
    """Small biases along many covariates that add up, unless there are too many."""
    numbers = [column for column in columns if column.is_number]
    trends = [term for column in columns for term in _trends(column)]
    bends: list[Term] = [Curve(column.name, 2) for column in numbers]
    left_out = []
    for title, read, terms in (
        ("all trends together", columns, trends),
        ("all quadratics together", numbers, bends),
    ):
        if len(read) < 2 or len(terms) < 2:
            continue
        if len(terms) > MAX_JOINT:
            left_out.append(title)
            continue
        features = [((term,), 1.0) for term in terms]
        entry = _several(title, "joint", features, Shape.JOINT, "whitened")
        yield replace(entry, covariates=tuple(column.name for column in read))
    if left_out:
        notes.append(f"too many covariates to check {' and '.join(left_out)}")


def _trends(column: Described) -> Iterator[Term]:
    yield from column.absent
    if column.is_number:
        yield Curve(column.name, 1)
    elif _is_small(column):
        yield from column.levels


_Maker = Callable[[Described, Described], list[Entry]]


def _of_pairs(columns: Sequence[Described], notes: list[str]) -> list[Entry]:
    """Pairs of covariates, one kind after the other while there is room."""
    numbers, categories = _kinds(columns)
    coded = [column for column in numbers if column.levels]
    two_numbers = list(combinations(numbers, 2))
    within = [(a, b) for a in categories for b in numbers]
    # Values of numbers after the others, so that they take no room from categories.
    values = [*((a, b) for a in categories for b in coded), *combinations(coded, 2)]
    within_values = [(a, b) for a in coded for b in numbers if a is not b]
    kinds: list[tuple[str, list[tuple[Described, Described]], _Maker]] = [
        ("trends of two numbers", two_numbers, _trend_of_two),
        ("crossed categories", list(combinations(categories, 2)), _crossing),
        ("trends within categories", within, _trends_within),
        ("smooth pairs", two_numbers if len(numbers) <= FEW_NUMBERS else [], _smooth_pair),
        ("crossed values of numbers", values, _crossing),
        ("trends within values of numbers", within_values, _trends_within),
    ]
    entries: list[Entry] = []
    left_out: list[str] = []
    room = MAX_PAIR_FEATURES
    for title, pairs, make in kinds:
        made, left = [], room
        for pair in pairs:
            own = make(*pair)
            left -= sum(len(entry.features) for entry in own)
            if left < 0:
                left_out.append(f"{title} ({len(pairs):,} pairs)")
                break
            made += own
        else:
            entries += made
            room = left
    if left_out:
        notes.append(f"too many covariates to check {' and '.join(left_out)} one by one")
    return entries


def _trend_of_two(a: Described, b: Described) -> list[Entry]:
    return [_check("pairs", Curve(a.name, 1), Curve(b.name, 1))]


def _smooth_pair(a: Described, b: Described) -> list[Entry]:
    features = _crossed(_waves(a.name, 4), _waves(b.name, 4))
    return [_several(f"{a.name} x {b.name}", "pairs", features, Shape.PAIR)]


def _crossing(a: Described, b: Described) -> list[Entry]:
    title = f"{_title(a)} x {_title(b)}"
    if not (_is_small(a) and _is_small(b)):
        kernel = LocalKernel(Constant(), Delta().on(a.name, b.name))
        return [Entry(title, "pairs", (a.name, b.name), kernel=kernel, shape=Shape.PAIR)]
    features = _crossed(_levels(a), _levels(b))
    whole = _several(title, "crossings", features, Shape.PAIR, "standard")
    return [whole, *(_check("crossed groups", *product) for product, _ in features)]


def _trends_within(a: Described, b: Described) -> list[Entry]:
    if not _is_small(a):
        return []
    features = _crossed(_levels(a), _waves(b.name, 4))
    whole = _several(f"{_title(a)} x {b.name}", "pairs", features, Shape.PAIR)
    return [whole, *(_check("pairs", level, Curve(b.name, 1)) for level in a.levels)]


def _scans(columns: Sequence[Described], notes: list[str]) -> Iterator[Entry]:
    """Regions of one column, of two, the prediction among them; of three with a category."""
    names: list[ColumnName] = [None, *(column.name for column in columns)]
    pairs = list(combinations(names, 2))
    few = {column.name for column in columns if column.levels and _is_small(column)}
    triples = [some for some in combinations(names[1:], 3) if 1 <= len(few.intersection(some)) <= 2]
    if len(pairs) > MAX_SCANNED:
        notes.append(f"too many covariates to scan {len(pairs) - MAX_SCANNED:,} of the pairs")
    ordered = (tuple(sorted(some, key=lambda name: name not in few)) for some in triples)
    scans = [*((name,) for name in names), *pairs[:MAX_SCANNED], *islice(ordered, MAX_TRIPLES)]
    for crossed in scans:
        family = SCANNED[len(crossed) - 1]
        title = " x ".join("prediction" if name is None else name for name in crossed)
        read = tuple(name for name in crossed if name is not None)
        yield Entry(f"{title}: {family}", family, read, crossed=crossed, shape=Shape.REGION)


def _of_everything(points: Points) -> Iterator[Entry]:
    """The default kernel at several widths."""
    names = tuple(column.name for column in points.columns)
    kernel = LocalKernel().resolve(points)
    what = "everything together" if names else "prediction, by the default kernel"
    for width in FULL_WIDTHS:
        title = what if width == 1 else f"{what}, width x {width:g}"
        yield Entry(title, "full", names, kernel=kernel.widened(width), shape=Shape.FULL)


def _keeping(shares: Mapping[str, float], of_entries: Sequence[str]) -> dict[str, float]:
    """Shares in which the prediction by itself has the parts that are kept for it."""
    # In the order of the entries: that of a set would round sums in another way every time.
    families = dict.fromkeys(of_entries)
    if families.keys() <= {*KEPT, "full"}:
        return dict(shares)
    left = sum(shares[family] for family in families if family not in KEPT)
    kept = {family: part * left / (1 - sum(KEPT.values())) for family, part in KEPT.items()}
    return {**shares, **kept}


def _distinct(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Tell entries apart whose names a covariate's name made equal."""
    seen: set[str] = set()
    for entry in entries:
        name, number = entry.name, 2
        while name in seen:
            name, number = f"{entry.name} ({number})", number + 1
        seen.add(name)
        yield replace(entry, name=name)
