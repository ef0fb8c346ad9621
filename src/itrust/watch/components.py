"""The checks of a watch, settled on the reference without a label and frozen from then on.

Every check is a function phi of a row with |phi| <= 1: a product of functions of single columns,
each less a number, divided by a span and cut off at 1. What a row is worth to a bet is known
before its label, so any bet on phi (y - p) is fair while the model is calibrated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from itrust._core import FloatArray
from itrust.calibration import (
    Absent,
    ColumnName,
    Curve,
    Inside,
    Is,
    Line,
    RankScale,
    Shape,
    Slope,
    Term,
    read,
)
from itrust.data import (
    Column,
    Everywhere,
    Missing,
    Pilot,
    Points,
    Predicate,
    is_few,
    level_of,
)
from itrust.watch.grouping import even_parts, rank_scale

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
MAX_LEVELS = 30  # of a category that are checks of their own
MAX_CROSSED = 8  # levels of a category that are crossed with others
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
    scales: Mapping[ColumnName, RankScale]
    joint: tuple[int, ...]

    def matrix(self, points: Points) -> FloatArray:
        """The functions of some rows, (K, n), between -1 and 1."""
        return functions_of(self.checks, self.scales, points)


def functions_of(
    checks: Sequence[WatchCheck], scales: Mapping[ColumnName, RankScale], points: Points
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
    described = [_ColumnLevels.of(column, len(points)) for column in points.columns]
    proposed = list(_proposed([column for column in described if column.is_useful]))
    chosen = _fewer(proposed, most)
    scales = _scales(_read_points(chosen, points))
    settled = _Settler(points, pilot.variances, scales)
    checks = [check for check in (settled(check) for check in chosen) if check]
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
    ranked = sorted(range(len(checks)), key=lambda k: _place(families, checks[k].family))
    fit = [k for k in ranked if checks[k].family in families and checks[k].shape != Shape.CUBIC]
    return tuple(sorted(fit[: max(4, round(40 * (most / MAX_CHECKS) ** 0.5))]))


def _place(families: Sequence[str], family: str) -> int:
    return families.index(family) if family in families else len(families)


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


def _scales(points: Points) -> dict[ColumnName, RankScale]:
    numbers = {c.name: c.values[~c.missing] for c in points.columns if not c.is_category}
    found: dict[ColumnName, RankScale] = {None: rank_scale(points.p)}
    return found | {name: rank_scale(values) for name, values in numbers.items()}


@dataclass(frozen=True, eq=False)
class _Settler:
    """Centres and spans, from rows without labels."""

    points: Points
    variances: FloatArray
    scales: Mapping[ColumnName, RankScale]

    def __call__(self, check: WatchCheck) -> WatchCheck | None:
        """The check as it is used; None where it tells rows apart in no way."""
        if not check.parts:
            return check
        is_group = all(isinstance(t, Is | Inside | Absent) for t, _ in check.parts)
        if not (is_group and check.family != "contrasts"):
            check = replace(check, parts=self._centred(check))
        bare = functions_of([replace(check, span=1.0)], self.scales, self.points)[0]
        size = np.abs(bare)
        if float(self.variances @ np.square(bare)) <= ROUNDING * float(self.variances.sum()):
            return None
        span = 1.0 if is_group and check.family != "contrasts" else _span(size)
        return replace(check, span=span)

    def _centred(self, check: WatchCheck) -> tuple[Part, ...]:
        """Centred within the group where there is one, else each part by itself."""
        readings = read(_read_points([check], self.points), self.scales)
        values = [term.of(readings[term.column]) for term, _ in check.parts]
        mass = self.variances
        if check.family != "contrasts":
            for (term, _), value in zip(check.parts, values, strict=True):
                mass = mass * value if isinstance(term, Is) else mass
        total = float(mass.sum())
        return tuple(
            (term, 0.0)
            if total <= 0 or (isinstance(term, Is) and check.family != "contrasts")
            else (term, float(mass @ value) / total)
            for (term, _), value in zip(check.parts, values, strict=True)
        )


def _span(size: FloatArray) -> float:
    present = size[size > 0]
    return float(np.quantile(present, SPAN_SHARE)) if present.size else 1.0


@dataclass(frozen=True, eq=False)
class _ColumnLevels:
    """A column with the levels that are checks."""

    column: Column
    is_number: bool
    levels: tuple[Any, ...]  # frequent ones first
    has_missing: bool

    @classmethod
    def of(cls, column: Column, rows: int) -> _ColumnLevels:
        present = column.values[~column.missing]
        values, counts = np.unique(present, return_counts=True)
        is_number = column.kind in ("number", "date") and values.size > 2
        missing = int(column.missing.sum())
        enough = max(MIN_ROWS, MIN_SHARE * rows)
        plain_number = is_number and (column.declared or not is_few(column.kind, column.values))
        levels: list[Any] = []
        if not plain_number and values.size > 1:
            order = np.argsort(-counts, kind="stable")
            levels = [v for v in values[order][:MAX_LEVELS] if counts[values == v][0] >= enough]
        return cls(column, is_number, tuple(levels), missing >= enough)

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def is_useful(self) -> bool:
        return self.is_number or bool(self.levels) or self.has_missing

    def term(self, value: Any) -> Is:
        return Is(self.name, self.level(value))

    def level(self, value: Any) -> Any:
        return self.column.levels[int(value)] if self.column.is_category else float(value)

    def told(self, value: Any) -> str:
        level = self.level(value)
        return f"{self.name} = {f'{level:g}' if isinstance(level, float) else level}"

    def where(self, value: Any) -> Predicate:
        return level_of(self.column, int(value) if self.column.is_category else value)


def _proposed(columns: Sequence[_ColumnLevels]) -> Iterator[WatchCheck]:
    anywhere = Everywhere()
    yield WatchCheck("overall level", "overall", (), Shape.LEVEL, anywhere)
    slope, bend = ((Slope(), 0.0),), ((Curve(None, 2), 0.0),)
    yield WatchCheck("prediction: slope", "prediction", (), Shape.TREND, anywhere, slope)
    yield WatchCheck("prediction: quadratic", "prediction", (), Shape.QUADRATIC, anywhere, bend)
    for column in columns:
        yield from _of_one(column)
    for a, b in combinations(columns[:MAX_PAIRED], 2):
        yield from _of_two(a, b)


def _of_one(column: _ColumnLevels) -> Iterator[WatchCheck]:
    name, only = column.name, (column.name,)
    if column.has_missing:
        parts: tuple[Part, ...] = ((Absent(name), 0.0),)
        yield WatchCheck(f"{name} missing", "levels", only, Shape.GROUP, Missing(name), parts)
    for value in column.levels:
        group = ((column.term(value), 0.0),)
        yield WatchCheck(
            column.told(value), "levels", only, Shape.GROUP, column.where(value), group
        )
    if not column.is_number:
        return
    everywhere = Everywhere()
    yield WatchCheck(
        f"{name}: trend", "trends", only, Shape.TREND, everywhere, ((Line(name), 0.0),)
    )
    for title, shape, order in (("quadratic", Shape.QUADRATIC, 2), ("cubic", Shape.CUBIC, 3)):
        curve = ((Curve(name, order), 0.0),)
        yield WatchCheck(f"{name}: {title}", "curved", only, shape, everywhere, curve)
    for part in () if column.levels else even_parts(column.column, TENTHS):
        inside = ((Inside(name, part.low, part.high), 0.0),)
        yield WatchCheck(str(part), "parts", only, Shape.PART, part, inside)


def _of_two(a: _ColumnLevels, b: _ColumnLevels) -> Iterator[WatchCheck]:
    """Cells of two columns, and functions of the one that differ along the other."""
    names = (a.name, b.name)
    if a.is_number and not a.levels and (not b.is_number or b.levels):
        a, b = b, a
    for (left, where), (right, other) in (
        (one, two) for one in _pieces(a, cells=True) for two in _pieces(b, cells=True)
    ):
        if a.is_number and b.is_number and not (a.levels or b.levels):
            break  # sixteen cells for every two numbers would be too many
        inside = where & other
        yield WatchCheck(
            str(inside), "cells", names, Shape.GROUP, inside, ((left, 0.0), (right, 0.0))
        )
    for one, title in _directions(a):
        for two, other_title in _directions(b):
            yield WatchCheck(
                f"{title} x {other_title}",
                "contrasts",
                names,
                Shape.PRODUCT,
                Everywhere(),
                ((one, 0.0), (two, 0.0)),
            )


def _pieces(column: _ColumnLevels, *, cells: bool) -> list[tuple[Term, Predicate]]:
    """Levels, or quarters of a number."""
    if column.levels:
        return [(column.term(v), column.where(v)) for v in column.levels[:MAX_CROSSED]]
    if not column.is_number or not cells:
        return []
    quarters = even_parts(column.column, QUARTERS)
    return [(Inside(column.name, part.low, part.high), part) for part in quarters]


def _directions(column: _ColumnLevels) -> list[tuple[Term, str]]:
    """A number's trend and its upper half; the levels of a category, of two the one."""
    if column.is_number:
        halves = even_parts(column.column, 2)
        upper: list[tuple[Term, str]] = [
            (Inside(column.name, part.low, part.high), f"({part})") for part in halves[1:2]
        ]
        return [(Line(column.name), column.name), *upper]
    chosen = column.levels[:1] if len(column.levels) == 2 else column.levels[:MAX_CROSSED]
    return [(column.term(value), f"({column.told(value)})") for value in chosen]
