"""The dictionary that is used unless another is given: from coarse to fine, one family each.

Shares are stated, not learned. Trends get much of the weight, for they are what most errors of a
model look like and what a long list of other entries would drown; so do sums over all trends, all
quadratics and all levels of a category, for a bias that is spread thinly shows nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from itrust.calibration.dictionary.entries import Dictionary, Entry, Feature, Scaling, Shape
from itrust.calibration.dictionary.terms import (
    Absent,
    ColumnName,
    Curve,
    Inside,
    Is,
    Line,
    Precision,
    Slope,
    Term,
    Wave,
    fading,
)
from itrust.data import Column, Everywhere, Missing, Points, Predicate, is_few, level_of, parts_of
from itrust.kernels import RBF, Constant, Delta, LocalKernel

SHARES = {  # relative to each other; families without entries leave theirs to the others
    "overall": 0.10,
    "prediction": 0.07,
    "linear": 0.38,
    "joint": 0.60,
    "group effects": 0.50,
    "curved": 0.05,
    "parts": 0.06,
    "tails": 0.25,
    "smooth": 0.10,
    "with prediction": 0.02,
    "pairs": 0.10,
    "crossings": 0.06,
    "crossed groups": 0.16,
    "full": 0.04,
}
# One covariate among very many: its trend shares its family's weight with all the others.
SHARES_OF_MANY = {**SHARES, "linear": 1.8, "joint": 0.16, "tails": 0.04}
# Calibration given covariates implies calibration overall, so what speaks against the latter keeps
# these parts of the whole weight, however many covariates are named.
KEPT = {"overall": 0.18, "prediction": 0.14}
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
TENTHS, FIFTHS, QUARTERS, FORTIETHS = 10, 5, 4, 40
MAX_CONTRASTS, MAX_CONTRAST_LEVELS = 60, 20  # checks between classes, and levels of one column
MIN_TAIL = 5  # rows of a fortieth, among the pilot rows
MAX_JOINT = 400  # features of a check of all covariates
MAX_DIRECTIONS = 240  # of a test with an interval null
FEW_COLUMNS = 20  # up to here every smooth entry gets all its waves
FEW_NUMBERS = 10  # up to here pairs of numbers get smooth entries, too
MAX_LEVELS = 100  # of a category that are checked one by one
MAX_PAIR_FEATURES = 3_000
MIN_ROWS = 5  # of a level, among the pilot rows, to be a check of its own


def default_dictionary_for(points: Points) -> Dictionary:
    """Build the default dictionary from rows without labels (all, or a random part).

    Overall level; the prediction alone; per number a trend, a quadratic, a cubic, two smooth
    entries, tenths, both tails and one crossed with the prediction; per category its levels, one
    by one and together; all trends and all quadratics together; pairs; and the default kernel on
    everything at four widths.
    """
    described = [_Described.of(column) for column in points.columns]
    useful = [column for column in described if column.is_useful]
    many = len(useful) > FEW_COLUMNS
    entries = [*_of_the_prediction()]
    for column in useful:
        entries.extend(_of_one(column, many=many))
    together, left_out = _of_all(useful)
    entries.extend(together)
    pairs, notes = _of_pairs(useful)
    entries.extend(pairs)
    entries.extend(_of_everything(points))
    shares = SHARES_OF_MANY if many else SHARES
    # In the order of the entries: that of a set would round sums in another way every time.
    families = dict.fromkeys(entry.family for entry in entries)
    return Dictionary(tuple(_distinct(entries)), _keeping(shares, families), (*left_out, *notes))


def contrast_entries(points: Points) -> tuple[Entry, ...]:
    """Checks of one feature each that read covariates alone, for contrasts between classes.

    The overall level, missing values, levels, trends and, of few numbers, their quarters.
    """
    useful = [c for c in map(_Described.of, points.columns) if c.is_useful]
    numbers = [column for column in useful if column.is_number]
    entries = [_single("overall level", "overall", (), (), Shape.LEVEL)]
    for column in useful:
        entries.extend(_plain_checks(column))
    for column in numbers if len(numbers) <= FEW_NUMBERS else ():
        for part in () if column.levels else parts_of(column.column, QUARTERS):
            feature = (Inside(column.name, part.low, part.high),)
            entries.append(_single(str(part), "parts", (column.name,), feature, Shape.PART, part))
    return tuple(_distinct(entries[:MAX_CONTRASTS]))


def direction_dictionary(points: Points) -> Dictionary:
    """Directions of a test with an interval null, built from rows without labels.

    Sums of labels are compared with the largest that the null allows, so a direction that is never
    negative is better than a centred one: it need not pay for what the null allows elsewhere.
    The overall level, plain and by precision; slope, quadratic and fifths of the prediction;
    missing values, levels, trends, quadratics, quarters and tails of the covariates; levels with
    the slope of the prediction; pairs of levels, of trends and of both.
    """
    useful = [c for c in map(_Described.of, points.columns) if c.is_useful]
    numbers = [column for column in useful if column.is_number]
    categories = [column for column in useful if not column.is_number and len(column.levels) > 1]
    bent = Shape.QUADRATIC
    kinds: list[list[Entry]] = [
        [
            _single("overall level", "overall", (), (), Shape.LEVEL),
            _single("overall level, by precision", "precision", (), (Precision(),), Shape.LEVEL),
            _single("prediction: slope", "prediction", (), (Slope(),), Shape.TREND),
            _single("prediction: quadratic", "prediction", (), (Curve(None, 2),), Shape.QUADRATIC),
            *_cut_prediction(points),
        ],
        [entry for column in useful for entry in _plain_checks(column)],
        [entry for column in numbers for entry in _cut_number(column)],
        [
            _single(f"{c.name}: quadratic", "curved", (c.name,), (Curve(c.name, 2),), bent)
            for c in numbers
        ],
        [
            _single(
                f"prediction: slope where {column.told(value)}",
                "with prediction",
                (column.name,),
                (Is(column.name, value), Slope()),
                Shape.TREND,
                column.where(value),
            )
            for column in categories
            for value in column.levels[:MAX_CONTRAST_LEVELS]
        ],
        [
            entry
            for pair in combinations(categories, 2)
            if pair[0].is_small and pair[1].is_small
            for entry in _crossing(*pair)[1:]
        ],
        [
            entry
            for a in categories
            if a.is_small
            for b in numbers
            for entry in _trends_within(a, b)[1:]
        ],
        [entry for pair in combinations(numbers, 2) for entry in _trend_of_two(*pair)],
    ]
    kept: list[Entry] = []
    for entries in kinds:
        kept.extend(entries[: MAX_DIRECTIONS - len(kept)])
    left_out = sum(map(len, kinds)) - len(kept)
    notes = (f"too many covariates for {left_out:,} of the directions",) if left_out else ()
    return Dictionary(tuple(_distinct(kept)), DIRECTION_SHARES, notes)


def _cut_prediction(points: Points) -> Iterator[Entry]:
    for part in parts_of(replace(points.prediction, name="prediction"), FIFTHS):
        feature = (Inside(None, part.low, part.high),)
        yield _single(str(part), "prediction", (), feature, Shape.PART, part)


def _cut_number(column: _Described) -> Iterator[Entry]:
    """Quarters and tails of a number that has many values."""
    if column.levels:
        return
    for part in parts_of(column.column, QUARTERS):
        feature = (Inside(column.name, part.low, part.high),)
        yield _single(str(part), "parts", (column.name,), feature, Shape.PART, part)
    yield from _of_tails(column)


def _plain_checks(column: _Described) -> Iterator[Entry]:
    """Missing values, the trend of a number, and frequent levels."""
    name, only = column.name, (column.name,)
    if column.has_missing:
        missing = Missing(name)
        yield _single(f"{name} missing", "linear", only, (Absent(name),), Shape.GROUP, missing)
    if column.is_number:
        yield _single(f"{name}: trend", "linear", only, (Line(name),), Shape.TREND)
    for value, rows in zip(column.levels[:MAX_CONTRAST_LEVELS], column.rows, strict=False):
        if rows >= MIN_ROWS:
            feature, where = (Is(name, value),), column.where(value)
            yield _single(column.told(value), "linear", only, feature, Shape.GROUP, where)


def _keeping(shares: Mapping[str, float], families: Collection[str]) -> dict[str, float]:
    """Shares in which the prediction by itself has the parts that are kept for it."""
    others = [family for family in families if family not in (*KEPT, "full")]
    if not others:
        return dict(shares)
    left = sum(shares[family] for family in families if family not in KEPT)
    kept = {family: part * left / (1 - sum(KEPT.values())) for family, part in KEPT.items()}
    return {**shares, **kept}


@dataclass(frozen=True, eq=False)
class _Described:
    """A column, the levels that are checked, and whether values are missing.

    A number with few values, which may be codes, has levels as well.
    """

    name: str
    levels: tuple[Any, ...]  # of the pilot rows, frequent ones first; empty for most numbers
    rows: tuple[int, ...]
    has_missing: bool
    is_number: bool
    column: Column

    @classmethod
    def of(cls, column: Column) -> _Described:
        present = column.values[~column.missing]
        values, counts = np.unique(present, return_counts=True)
        missing = bool(column.missing.any())
        is_number = column.kind in ("number", "date") and values.size > 2
        if is_number and (column.declared or not is_few(column.kind, column.values)):
            return cls(column.name, (), (), missing, True, column)
        order = np.argsort(-counts, kind="stable")
        levels = [column.levels[v] if column.is_category else float(v) for v in values[order]]
        return cls(column.name, tuple(levels), tuple(counts[order]), missing, is_number, column)

    @property
    def is_useful(self) -> bool:
        return self.is_number or len(self.levels) > 1 or self.has_missing

    @property
    def is_small(self) -> bool:
        """Whether all levels can be features."""
        return len(self.levels) <= MAX_LEVELS

    def where(self, value: Any) -> Predicate:
        """The rows with one of the levels."""
        code = self.column.levels.index(value) if self.column.is_category else value
        return level_of(self.column, code)

    @property
    def title(self) -> str:
        """What checks of its levels are called, beside those of the number."""
        return f"values of {self.name}" if self.is_number else self.name

    def told(self, value: Any) -> str:
        text = f"{value:g}" if isinstance(value, float) else str(value)
        return f"{self.name} = {text}"


def _single(
    name: str,
    family: str,
    covariates: tuple[str, ...],
    feature: Feature,
    shape: Shape,
    where: Predicate | None = None,
) -> Entry:
    return Entry(
        name, family, covariates, (feature,), (1.0,), shape=shape, where=where or Everywhere()
    )


def _of_the_prediction() -> Iterator[Entry]:
    yield _single("overall level", "overall", (), (), Shape.LEVEL)
    family = "prediction"
    yield _single("prediction: slope", family, (), (Slope(),), Shape.TREND)
    yield _single("prediction: quadratic", family, (), (Curve(None, 2),), Shape.QUADRATIC)
    yield _smooth("prediction alone", family, (), None, BROAD, 4)
    yield _smooth("prediction alone, fine", family, (), None, FINE, 12)


def _smooth(
    name: str,
    family: str,
    covariates: tuple[str, ...],
    column: ColumnName,
    width: float,
    waves: int,
) -> Entry:
    orders = range(1, waves + 1)
    features = tuple((Wave(column, order),) for order in orders)
    scales = tuple(fading(width, k) for k in orders)
    return Entry(name, family, covariates, features, scales, shape=Shape.SMOOTH)


def _of_one(column: _Described, *, many: bool) -> Iterator[Entry]:
    name, only = column.name, (column.name,)
    if column.has_missing:
        missing = Missing(name)
        yield _single(f"{name} missing", "linear", only, (Absent(name),), Shape.GROUP, missing)
    if column.levels:
        yield from _of_category(column)
    if not column.is_number:
        return
    yield _single(f"{name}: trend", "linear", only, (Line(name),), Shape.TREND)
    yield _single(f"{name}: quadratic", "curved", only, (Curve(name, 2),), Shape.QUADRATIC)
    yield _single(f"{name}: cubic", "curved", only, (Curve(name, 3),), Shape.CUBIC)
    yield _smooth(f"{name} alone", "smooth", only, name, BROAD, 4)
    yield _smooth(f"{name} alone, fine", "smooth", only, name, FINE, 6 if many else 12)
    for part in () if column.levels else parts_of(column.column, FIFTHS if many else TENTHS):
        feature = (Inside(name, part.low, part.high),)
        yield _single(str(part), "parts", only, feature, Shape.PART, part)
    yield from _of_tails(column)
    across, along = (2, 2) if many else (4, 3)
    yield _crossed(
        f"{name} x prediction", "with prediction", only, _waves(name, across), _waves(None, along)
    )


def _of_tails(column: _Described) -> Iterator[Entry]:
    """The lowest and the highest values of a number, where values do not tie too much."""
    present = column.column.values[~column.column.missing]
    if column.levels or present.size < MIN_TAIL * FORTIETHS:
        return
    parts = parts_of(column.column, FORTIETHS)
    for part in (parts[0], parts[-1]):
        rows = np.count_nonzero((present >= part.low) & (present < part.high))
        if MIN_TAIL <= rows <= 2 * present.size / FORTIETHS:
            feature = (Inside(column.name, part.low, part.high),)
            yield _single(str(part), "tails", (column.name,), feature, Shape.PART, part)


def _of_all(columns: Sequence[_Described]) -> tuple[list[Entry], tuple[str, ...]]:
    """Small biases along many covariates that add up, unless there are too many."""
    numbers = [column for column in columns if column.is_number]
    trends = [feature for column in columns for feature in _trends(column)]
    bends: list[Feature] = [(Curve(column.name, 2),) for column in numbers]
    found: list[Entry] = []
    left_out: list[str] = []
    for title, read, features in (
        ("all trends together", columns, trends),
        ("all quadratics together", numbers, bends),
    ):
        if len(read) < 2 or len(features) < 2:
            continue
        if len(features) > MAX_JOINT:
            left_out.append(title)
            continue
        found.append(
            Entry(
                title,
                "joint",
                tuple(column.name for column in read),
                tuple(features),
                (1.0,) * len(features),
                shape=Shape.JOINT,
                scaling=Scaling.WHITENED,
            )
        )
    notes = (f"too many covariates to check {' and '.join(left_out)}",) if left_out else ()
    return found, notes


def _trends(column: _Described) -> Iterator[Feature]:
    if column.has_missing:
        yield (Absent(column.name),)
    if column.is_number:
        yield (Line(column.name),)
    elif column.is_small:
        yield from ((Is(column.name, value),) for value in column.levels)


def _of_category(column: _Described) -> Iterator[Entry]:
    name, only = column.name, (column.name,)
    frequent = [
        value for value, rows in zip(column.levels, column.rows, strict=True) if rows >= MIN_ROWS
    ][:MAX_LEVELS]
    singles = frequent
    if len(frequent) == len(column.levels) == 2 and not column.has_missing:  # one says all
        singles = frequent[-1:] if isinstance(frequent[0], str) else [max(frequent)]
    for value in singles:
        feature, where = (Is(name, value),), column.where(value)
        yield _single(column.told(value), "linear", only, feature, Shape.GROUP, where)
    if len(column.levels) > 2 and column.is_small:
        features = tuple((Is(name, value),) for value in column.levels)
        yield Entry(
            f"{column.title} alone",
            "group effects",
            only,
            features,
            (1.0,) * len(features),
            shape=Shape.SMOOTH,
            scaling=Scaling.STANDARD,
        )
    elif len(column.levels) > 2:
        kernel = LocalKernel(Constant(), Delta().on(name))
        yield Entry(f"{name} alone", "group effects", only, kernel=kernel, shape=Shape.SMOOTH)
    title = f"{column.title} x prediction"
    if column.is_small:
        along = [((Slope(),), 1.0), *_waves(None, 3)]
        yield _crossed(title, "with prediction", only, _levels(column), along)
    else:
        kernel = LocalKernel(RBF(), Delta().on(name))
        yield Entry(title, "with prediction", only, kernel=kernel, shape=Shape.PAIR)


Scaled = tuple[Feature, float]


def _waves(column: ColumnName, number: int) -> list[Scaled]:
    return [((Wave(column, order),), fading(BROAD, order)) for order in range(1, number + 1)]


def _levels(column: _Described) -> list[Scaled]:
    return [((Is(column.name, value),), 1.0) for value in column.levels]


def _crossed(
    name: str,
    family: str,
    covariates: tuple[str, ...],
    first: Sequence[Scaled],
    second: Sequence[Scaled],
) -> Entry:
    """All products of two sets of functions."""
    both = [(a + b, s * t) for a, s in first for b, t in second]
    features, scales = zip(*both, strict=True)
    return Entry(name, family, covariates, features, scales, shape=Shape.PAIR)


def _of_pairs(columns: Sequence[_Described]) -> tuple[list[Entry], tuple[str, ...]]:
    """Pairs of covariates, one kind after the other while there is room."""
    numbers = [column for column in columns if column.is_number]
    categories = [column for column in columns if not column.is_number and len(column.levels) > 1]
    coded = [column for column in numbers if column.levels]
    kinds: list[tuple[str, list[tuple[_Described, _Described]], _Maker]] = [
        ("trends of two numbers", list(combinations(numbers, 2)), _trend_of_two),
        ("crossed categories", list(combinations(categories, 2)), _crossing),
        (
            "trends within categories",
            [(a, b) for a in categories for b in numbers],
            _trends_within,
        ),
    ]
    if len(numbers) <= FEW_NUMBERS:
        kinds.append(("smooth pairs", kinds[0][1], _smooth_pair))
    # After the others, so that numbers with few values take no room from categories.
    kinds += [
        (
            "crossed values of numbers",
            [*((a, b) for a in categories for b in coded), *combinations(coded, 2)],
            _crossing,
        ),
        (
            "trends within values of numbers",
            [(a, b) for a in coded for b in numbers if a is not b],
            _trends_within,
        ),
    ]
    entries: list[Entry] = []
    left_out: list[str] = []
    room = MAX_PAIR_FEATURES
    for title, pairs, make in kinds:
        made = _while_room(pairs, make, room)
        if made is None:
            left_out.append(f"{title} ({len(pairs):,} pairs)")
        else:
            entries.extend(made)
            room -= sum(len(entry.features) for entry in made)
    notes = (
        (f"too many covariates to check {' and '.join(left_out)} one by one",) if left_out else ()
    )
    return entries, notes


def _while_room(
    pairs: Sequence[tuple[_Described, _Described]], make: _Maker, room: int
) -> list[Entry] | None:
    """The entries of all pairs; None if they have more features than there is room for."""
    made: list[Entry] = []
    for pair in pairs:
        own = make(*pair)
        room -= sum(len(entry.features) for entry in own)
        if room < 0:
            return None
        made.extend(own)
    return made


_Maker = Callable[[_Described, _Described], list[Entry]]


def _trend_of_two(a: _Described, b: _Described) -> list[Entry]:
    feature: tuple[Term, ...] = (Line(a.name), Line(b.name))
    title, names = f"{a.name} x {b.name}: trend", (a.name, b.name)
    return [_single(title, "pairs", names, feature, Shape.PRODUCT)]


def _smooth_pair(a: _Described, b: _Described) -> list[Entry]:
    title, names = f"{a.name} x {b.name}", (a.name, b.name)
    return [_crossed(title, "pairs", names, _waves(a.name, 4), _waves(b.name, 4))]


def _crossing(a: _Described, b: _Described) -> list[Entry]:
    title, names = f"{a.title} x {b.title}", (a.name, b.name)
    if not (a.is_small and b.is_small):
        kernel = LocalKernel(Constant(), Delta().on(a.name, b.name))
        return [Entry(title, "pairs", names, kernel=kernel, shape=Shape.PAIR)]
    whole = replace(
        _crossed(title, "crossings", names, _levels(a), _levels(b)), scaling=Scaling.STANDARD
    )
    cells = [
        _single(
            f"{a.told(s)}, {b.told(t)}",
            "crossed groups",
            names,
            (Is(a.name, s), Is(b.name, t)),
            Shape.GROUP,
            a.where(s) & b.where(t),
        )
        for s in a.levels
        for t in b.levels
    ]
    return [whole, *cells]


def _trends_within(a: _Described, b: _Described) -> list[Entry]:
    if not a.is_small:
        return []
    title, names = f"{a.title} x {b.name}", (a.name, b.name)
    trends = [
        _single(
            f"{b.name}: trend where {a.told(value)}",
            "pairs",
            names,
            (Is(a.name, value), Line(b.name)),
            Shape.TREND,
            a.where(value),
        )
        for value in a.levels
    ]
    return [_crossed(title, "pairs", names, _levels(a), _waves(b.name, 4)), *trends]


def _of_everything(points: Points) -> Iterator[Entry]:
    """The default kernel at several widths."""
    names = tuple(column.name for column in points.columns)
    kernel = LocalKernel().resolve(points)
    for width in FULL_WIDTHS:
        what = "everything together" if names else "prediction, by the default kernel"
        title = what if width == 1 else f"{what}, width x {width:g}"
        yield Entry(title, "full", names, kernel=kernel.widened(width), shape=Shape.FULL)


def _distinct(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Tell entries apart whose names a covariate's name made equal."""
    seen: set[str] = set()
    for entry in entries:
        name, number = entry.name, 2
        while name in seen:
            name, number = f"{entry.name} ({number})", number + 1
        seen.add(name)
        yield replace(entry, name=name)
