"""Rows cut into parts: every level of a category, about equal parts of a number."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from itrust._core import AnyArray
from itrust.data.column import Column
from itrust.data.predicates.algebra import Predicate
from itrust.data.predicates.leaves import Between, Level, Missing
from itrust.data.predicates.lookup import is_missing_level, value_of

TENTHS = 10
MAX_LEVELS = 40
FREQUENT = 0.01  # levels with this share of the rows are never left out
ALL_DIGITS = 17
FEW_DIGITS = 3
MOST_PLACES = 16  # behind the point


def cut_of(column: Column, parts: int = TENTHS) -> tuple[Predicate, ...]:
    """Cut one covariate: levels of a category or of few numbers, parts of other numbers."""
    return tuple(_of_column(column, parts))


def _of_column(column: Column, parts: int) -> Iterator[Predicate]:
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    if column.kind in ("number", "date") and values.size > TENTHS:
        yield from parts_of(column, parts)
    elif values.size > 1:
        number = max(MAX_LEVELS, int(np.sum(counts >= FREQUENT * len(column))))
        frequent = values[np.argsort(-counts, kind="stable")][:number]
        yield from (level_of(column, value) for value in frequent)
    if column.missing.any():
        yield Missing(column.name)


def level_of(column: Column, code: float) -> Predicate:
    """The rows of a column with one value."""
    if is_missing_level(column, int(code)):
        return Missing(column.name)
    return Level(column.name, value_of(column, code))


def parts_of(column: Column, parts: int) -> list[Between]:
    """Cut a number into parts of about equal size that share no value; fewer where values tie."""
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / max(int(counts.sum()), 1)
    part = np.minimum((middle * parts).astype(int), parts - 1)
    first = np.flatnonzero(np.diff(part, prepend=-1))
    last = np.append(first[1:], values.size) - 1
    cuts = [_cut(column, float(values[k - 1]), float(values[k])) for k in first[1:]]
    ends = _ends(column, values, first, last, cuts)
    found = []
    for number, (start, stop) in enumerate(zip(first, last, strict=True)):
        low, high = ends[number]
        if start == stop:
            low = column.shown(float(values[start]), ALL_DIGITS)
        begin = -np.inf if number == 0 else cuts[number - 1]
        end = np.inf if number == first.size - 1 else cuts[number]
        text = f"= {low}" if start == stop else f"{low} to {high}"
        found.append(Between(column.name, begin, end, text, column.kind))
    return found


def _ends(
    column: Column, values: AnyArray, first: AnyArray, last: AnyArray, cuts: list[float]
) -> list[tuple[str, str]]:
    """Both ends of every part for people: values of whole numbers and dates, else the cuts."""
    whole = column.kind == "date" or bool(np.all(values == np.round(values)))
    if not whole and cuts:
        least = _outer(column, float(values[0]), at_most=cuts[0])
        most = _outer(column, float(values[-1]), at_least=cuts[-1])
        inner = [column.shown(cut, ALL_DIGITS) for cut in cuts]
        return list(zip([least, *inner], [*inner, most], strict=True))
    digits = next(
        d
        for d in (4, 6, 9, ALL_DIGITS)
        if d == ALL_DIGITS or _distinct(column, values[first], values[last], d)
    )
    return [
        (column.shown(float(values[k]), digits), column.shown(float(values[m]), digits))
        for k, m in zip(first, last, strict=True)
    ]


def _outer(
    column: Column, value: float, *, at_most: float = np.inf, at_least: float = -np.inf
) -> str:
    """The smallest or largest value in as few digits as keep it on its side of the next cut."""
    texts = (column.shown(value, digits) for digits in range(FEW_DIGITS, ALL_DIGITS + 1))
    return next(
        (text for text in texts if at_least <= _number(text) <= at_most),
        column.shown(value, ALL_DIGITS),
    )


def _number(text: str) -> float:
    """The number that a text shows.

    >>> _number("1,234.5")
    1234.5
    """
    return float(text.replace(",", ""))


def _cut(column: Column, below: float, value: float) -> float:
    """The shortest number that tells a value from the one below it: above that, not above this."""
    if column.kind == "date":
        return value
    for places in range(MOST_PLACES):
        short = math.floor(value * 10.0**places) / 10.0**places
        if below < short <= value:
            return short
    return value


def _distinct(column: Column, first: AnyArray, last: AnyArray, digits: int) -> bool:
    """Whether so many digits tell all ends apart."""
    ends = np.unique(np.concatenate([first, last]))
    return len({column.shown(float(end), digits) for end in ends}) == ends.size
