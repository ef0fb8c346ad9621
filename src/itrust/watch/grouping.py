"""Ranks and parts of the reference's numbers, of groups of ten rows or more.

A watch is kept in a file for years, so its scales and parts hold no value of a single row: knots
are rounded means of groups without their extremes, cuts are short numbers between two groups, and
the smallest and the largest value are told nowhere. Bets need a fixed monotone map and fixed parts,
whatever they are, so the promise does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from itrust._core import FloatArray
from itrust.data import Between, Column
from itrust.terms import UnitScale

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
