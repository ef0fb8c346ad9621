"""The checks of a watch, settled on the reference without a label and frozen from then on.

Every check is a function phi of a row with |phi| <= 1: a product of functions of single columns,
each less a number, divided by a span and cut off at 1. What a row is worth to a bet is known
before its label, so any bet on phi (y - p) is fair while the model is calibrated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from itrust._core import FloatArray
from itrust.data import Between, Column, Everywhere, Pilot, Points, Predicate
from itrust.terms import (
    WATCHED_CROSSED,
    WATCHED_LEVELS,
    ColumnName,
    Curve,
    Described,
    Inside,
    Shape,
    Slope,
    Term,
    UnitScale,
    product_facts,
    read,
    scales_of,
)

SHARES = {  # relative to each other; families without checks leave theirs to the others
    "prediction": 0.10,
    "levels": 0.16,
    "trends": 0.14,
    "curved": 0.05,
    "parts": 0.10,
    "cells": 0.25,
    "contrasts": 0.20,
}
CONSTANT = 0.2  # share of the overall level in the stake of a panel
MAX_CHECKS = 400  # of all classes together
MAX_PAIRED = 12  # columns that are taken in pairs
MIN_SHARE = 0.004  # of the reference's rows that a level has, to be a check
MIN_ROWS = 5
TENTHS, QUARTERS = 10, 4
ROUNDING = 1e-18  # mean square of a function that is 0 but for rounding
SPAN_SHARE = 0.99  # of the rows of a check have |phi| below 1

Part = tuple[Term, float]  # a function of one column, less a number


@dataclass(frozen=True)
class WatchCheck:
    """One function of a row that is bet on."""

    name: str
    family: str
    covariates: tuple[str, ...]
    shape: Shape
    where: Predicate
    parts: tuple[Part, ...] = ()
    span: float = 1.0


@dataclass(frozen=True, eq=False)
class CheckPanel:
    """All checks of one probability."""

    label: Any
    checks: tuple[WatchCheck, ...]
    weights: FloatArray
    scales: Mapping[ColumnName, UnitScale]
    joint: tuple[int, ...]

    def matrix(self, points: Points) -> FloatArray:
        """The functions of some rows, (K, n), between -1 and 1."""
        return functions_of(self.checks, self.scales, points)


def functions_of(
    checks: Sequence[WatchCheck], scales: Mapping[ColumnName, UnitScale], points: Points
) -> FloatArray:
    """Give the functions of checks, (K, n), between -1 and 1."""
    readings = read(_read_points(checks, points), scales)
    known: dict[Term, FloatArray] = {}
    found = np.ones((len(checks), len(points)))
    for row, check in zip(found, checks, strict=True):
        for term, centre in check.parts:
            if term not in known:
                known[term] = term.of(readings[term.column])
            row *= known[term] - centre if centre else known[term]
        if check.span != 1.0:
            row /= check.span
            np.minimum(row, 1.0, out=row)
            np.maximum(row, -1.0, out=row)
    return found


def _read_points(checks: Sequence[WatchCheck], points: Points) -> Points:
    """The rows with the columns that checks read."""
    names = {term.column for check in checks for term, _ in check.parts}
    return Points(points.p, tuple(column for column in points.columns if column.name in names))


def settled_panel(pilot: Pilot, label: Any = None, *, most: int = MAX_CHECKS) -> CheckPanel:
    """Choose the checks of one probability, from rows without labels."""
    points = pilot.points
    chosen = _fewer(list(_proposed(_useful(points))), most)
    scales = scales_of(_read_points(chosen, points), rank_scale)
    settled = (_settled(check, points, pilot.variances, scales) for check in chosen)
    checks = [check for check in settled if check]
    family = {check.family for check in checks[1:]}
    total = sum(SHARES[name] for name in family)
    count = {name: sum(check.family == name for check in checks) for name in family}
    level = CONSTANT if family else 1.0
    weights = [level] + [
        (1 - level) * SHARES[check.family] / total / count[check.family] for check in checks[1:]
    ]
    return CheckPanel(label, tuple(checks), np.array(weights), scales, _joint(checks, most))


def _joint(checks: Sequence[WatchCheck], most: int) -> tuple[int, ...]:
    """The checks that a recalibration is made of: levels, trends and quadratics."""
    families = ("overall", "prediction", "trends", "levels", "curved")
    fit = [k for k, own in enumerate(checks) if own.family in families and own.shape != Shape.CUBIC]
    fit.sort(key=lambda k: families.index(checks[k].family))
    return tuple(sorted(fit[: max(4, round(40 * (most / MAX_CHECKS) ** 0.5))]))


def _fewer(checks: Sequence[WatchCheck], most: int) -> list[WatchCheck]:
    """At most so many checks: one of every covariate first, then families up to the same number.

    What is left out are the last checks of the largest families, and covariates beyond `most`.
    """
    first = _first_checks(checks)[:most]
    sizes = Counter(check.family for check in checks)
    least = Counter(checks[k].family for k in first)

    def room(family: str, cap: int) -> int:
        return min(sizes[family], max(cap, least[family]))

    def total(cap: int) -> int:
        return sum(room(family, cap) for family in sizes)

    cap = max((cap for cap in range(most + 1) if total(cap) <= most), default=0)
    rooms = {family: room(family, cap) for family in sizes}
    for family in sorted(sizes, reverse=True):
        more = room(family, cap + 1) - rooms[family]
        rooms[family] += more if sum(rooms.values()) + more <= most else 0
    kept = set(first)
    rest = Counter(rooms) - least
    for k, check in enumerate(checks):
        if k not in kept and rest[check.family]:
            rest[check.family] -= 1
            kept.add(k)
    return [checks[k] for k in sorted(kept)]


def _first_checks(checks: Sequence[WatchCheck]) -> list[int]:
    """Numbers of the checks that come first: those of no covariate, then one of each."""
    found: dict[tuple[str, ...], int] = {}
    for k, check in enumerate(checks):
        if len(check.covariates) == 1 and (
            check.covariates not in found or check.family == "trends"
        ):
            found[check.covariates] = k
    return [k for k, check in enumerate(checks) if not check.covariates] + list(found.values())


def _settled(
    check: WatchCheck, points: Points, variances: FloatArray, scales: Mapping[ColumnName, UnitScale]
) -> WatchCheck | None:
    """The check as it is used, centred and cut off; None where it tells rows apart in no way."""
    if not check.parts:
        return check
    is_group = check.family != "contrasts" and all(term.is_group for term, _ in check.parts)
    total = float(variances.sum())
    if not is_group:
        readings = read(_read_points([check], points), scales)
        values = [term.of(readings[term.column]) for term, _ in check.parts]
        centres = [float(variances @ own) / total if total > 0 else 0.0 for own in values]
        terms = [term for term, _ in check.parts]
        check = replace(check, parts=tuple(zip(terms, centres, strict=True)))
    bare = functions_of([check], scales, points)[0]
    if float(variances @ np.square(bare)) <= ROUNDING * total:
        return None
    size = np.abs(bare[bare != 0])
    return check if is_group else replace(check, span=float(np.quantile(size, SPAN_SHARE)))


def _useful(points: Points) -> list[Described]:
    """The columns that tell rows apart, with levels that are frequent enough."""
    least = max(MIN_ROWS, MIN_SHARE * len(points))
    columns = [Described.of(column, WATCHED_LEVELS, least) for column in points.columns]
    columns = [own if own.distinct > 1 else replace(own, levels=(), rows=()) for own in columns]
    return [own for own in columns if own.is_number or own.levels or own.has_missing]


def _check(family: str, *terms: Term) -> WatchCheck:
    """A check of a product, which says itself what it is called and whom it is about."""
    parts = tuple((term, 0.0) for term in terms)
    return WatchCheck(family=family, parts=parts, **product_facts(terms))


def _proposed(columns: Sequence[Described]) -> Iterator[WatchCheck]:
    yield _check("overall")
    yield _check("prediction", Slope())
    yield _check("prediction", Curve(None, 2))
    for column in columns:
        yield from _of_one(column)
    for a, b in combinations(columns[:MAX_PAIRED], 2):
        for check in _of_two(a, b):
            yield replace(check, covariates=(a.name, b.name))


def _of_one(column: Described) -> Iterator[WatchCheck]:
    yield from (_check("levels", term) for term in (*column.absent, *column.levels))
    if not column.is_number:
        return
    yield _check("trends", Curve(column.name, 1))
    yield _check("curved", Curve(column.name, 2))
    yield _check("curved", Curve(column.name, 3))
    for part in () if column.levels else even_parts(column.column, TENTHS):
        yield _check("parts", Inside.part(part))


def _of_two(a: Described, b: Described) -> Iterator[WatchCheck]:
    """Cells of two columns, and functions of the one that differ along the other."""
    if a.is_number and not a.levels and (not b.is_number or b.levels):
        a, b = b, a
    if not (a.is_number and b.is_number) or a.levels or b.levels:  # of two numbers: too many
        for cell in product(_pieces(a), _pieces(b)):
            check = _check("cells", *cell)
            yield replace(check, name=str(check.where))
    for pair in product(_directions(a), _directions(b)):
        name = " x ".join(str(t.column) if t.shape is Shape.TREND else f"({t.name})" for t in pair)
        yield replace(
            _check("contrasts", *pair), name=name, shape=Shape.PRODUCT, where=Everywhere()
        )


def _pieces(column: Described) -> Sequence[Term]:
    """Levels, or quarters of a number."""
    if column.levels or not column.is_number:
        return column.levels[:WATCHED_CROSSED]
    return [Inside.part(part) for part in even_parts(column.column, QUARTERS)]


def _directions(column: Described) -> Sequence[Term]:
    """A number's trend and its upper half; the levels of a category, of two the one."""
    if column.is_number:
        upper = even_parts(column.column, 2)[1:2]
        return [Curve(column.name, 1), *(Inside.part(part) for part in upper)]
    return column.levels[:1] if len(column.levels) == 2 else column.levels[:WATCHED_CROSSED]


MIN_GROUP = 10  # rows behind every number that is kept
MAX_KNOTS = 128  # of a rank scale
MAX_PLACES, ALL_DIGITS = 12, 17  # behind the point, of ends in words; of a whole number
TINY = 1e-300  # between knots: what is less has no finite slope
LARGEST = 1e150  # what lies beyond is taken to lie there


def rank_scale(values: FloatArray) -> UnitScale:
    """Where numbers stand among those of the reference.

    Examples
    --------
    >>> rank_scale(np.arange(40.0) ** 2).knots.tolist()
    [26.0, 220.0, 610.0, 1200.0]
    """
    rows = np.clip(np.sort(values[~np.isnan(values)]), -LARGEST, LARGEST)
    if rows.size < MIN_GROUP:
        return UnitScale(np.zeros(1), np.full(1, 0.5))
    ends = [*_starts(rows, MAX_KNOTS), rows.size]
    knots = np.array([_middle(rows[a:b]) for a, b in pairwise(ends)])
    heights = np.array([(a + b) / 2 / rows.size for a, b in pairwise(ends)])
    rises = np.diff(np.maximum.accumulate(knots), prepend=-math.inf) > TINY
    return UnitScale(knots[rises], heights[rises])


def _starts(rows: FloatArray, most: int) -> list[int]:
    """Where groups begin among sorted rows; equal values lie in one group."""
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    group = np.minimum((first + counts / 2) / rows.size * most, most - 1).astype(int)
    starts = [0]
    for start in first[np.flatnonzero(np.diff(group)) + 1]:
        if start - starts[-1] >= MIN_GROUP:
            starts.append(int(start))
    if len(starts) > 1 and rows.size - starts[-1] < MIN_GROUP:
        starts.pop()
    return starts


def _middle(rows: FloatArray) -> float:
    """The mean of a group without its smallest and largest row, to a tenth of its width or so."""
    width = float(rows[-1] - rows[0])
    if width == 0:
        return float(rows[0])
    return round(float(rows[1:-1].sum()) / (rows.size - 2), 1 - math.floor(math.log10(width)))


def even_parts(column: Column, parts: int) -> list[Between]:
    """Cut a number into parts of about equal size; fewer where rows are few or values tie."""
    rows = np.clip(np.sort(column.values[~column.missing]), -LARGEST, LARGEST)
    starts = _starts(rows, parts) if rows.size else []
    if len(starts) < 2:
        return []
    cuts = [_cut(column, float(rows[k - 1]), float(rows[k])) for k in starts[1:]]
    told = _words(column, rows, cuts)
    ends = [*starts, rows.size]
    for k, (start, end) in enumerate(pairwise(ends)):
        if rows[start] == rows[end - 1]:
            told[k] = f"= {column.shown(float(rows[start]), ALL_DIGITS)}"
    limits = pairwise([-math.inf, *cuts, math.inf])
    return [
        Between(column.name, low, high, text, column.kind)
        for (low, high), text in zip(limits, told, strict=True)
    ]


def _cut(column: Column, below: float, value: float) -> float:
    """The number of the fewest digits above the one and at most the other; of dates the middle."""
    if column.kind == "date":
        middle = below + (value - below) / 2
        later = math.ceil(middle)
        return float(later) if below < later <= value else value
    highest = math.floor(math.log10(max(abs(below), abs(value)))) + 1
    for places in range(-highest, MAX_PLACES + ALL_DIGITS):
        scale = 10.0 ** abs(places)
        short = (
            math.floor(value / scale) * scale if places < 0 else math.floor(value * scale) / scale
        )
        if below < short <= value:
            return short
    return value


def _words(column: Column, rows: FloatArray, cuts: Sequence[float]) -> list[str]:
    """Parts in words: below the first cut, from cut to cut, and from the last one on."""
    if column.kind == "date" or bool((rows == np.round(rows)).all()):
        lows = [column.shown(cut, ALL_DIGITS) for cut in cuts]
        highs = [column.shown(math.ceil(cut) - 1, ALL_DIGITS) for cut in cuts]
    else:
        lows = highs = _same_digits(column, cuts)
    between = [f"{low} to {high}" for low, high in zip(lows[:-1], highs[1:], strict=True)]
    if column.kind == "date":
        return [f"before {lows[0]}", *between, f"from {lows[-1]} on"]
    return [f"below {lows[0]}", *between, f"{lows[-1]} or more"]


def _same_digits(column: Column, cuts: Sequence[float]) -> list[str]:
    """Two digits of the narrowest part, where these tell ends apart."""
    narrowest = min((b - a for a, b in pairwise(cuts)), default=0.0)
    if narrowest > 0:
        places = min(max(1 - math.floor(math.log10(narrowest)), 0), MAX_PLACES)
        texts = [f"{cut:,.{places}f}" for cut in cuts]
        if len(set(texts)) == len(texts):
            return texts
    return [column.shown(cut, ALL_DIGITS) for cut in cuts]
