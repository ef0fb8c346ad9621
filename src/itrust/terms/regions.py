"""Regions that are fixed without labels: windows of neighbouring cells of a column, and levels.

A column is cut into cells of about equally many rows, at round numbers where there is room. Windows
of cells, of sizes that halve and overlap by three quarters, and single levels of categories are its
regions; those of several columns are crossed. What is summed over rows are cells, however many
regions are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from itrust._core import AnyArray, FloatArray, IntArray
from itrust.data import (
    MAX_VALUES,
    OTHER_NAME,
    PREDICTION,
    Between,
    Column,
    Missing,
    Points,
    Predicate,
    all_of,
    level_of,
)
from itrust.terms.functions import SEARCHED_LEVELS, ColumnName, columns_by_name, frequent_values

ROOM = 0.1  # of a cell, in which a cut may be moved to a round number
OVERLAP = 4  # windows begin at every fourth of their size


@dataclass(frozen=True, eq=False)
class WindowAxis:
    """One column, or two crossed, in cells, and windows of them; the smallest windows come last."""

    columns: tuple[ColumnName, ...]
    cuts: tuple[tuple[FloatArray, tuple[object, ...] | None], ...]  # inner edges, or levels
    windows: AnyArray  # (windows, cells): 1 inside
    depths: IntArray  # (windows,): how often rows are halved to get as few
    conditions: tuple[Predicate, ...]

    @classmethod
    def of(
        cls, name: ColumnName, points: Points, parts: int, least: float, *, alone: bool
    ) -> WindowAxis | None:
        """Cut a column; windows hold at least this share of the rows. None if there are none.

        A column that is alone has windows of three quarters of those sizes, too.
        """
        column = replace(columns_by_name(points)[name], name=_name_of(name, points))
        values, counts = np.unique(column.values[~column.missing], return_counts=True)
        ranges: list[tuple[range, Predicate]] = []
        # Few values may be codes: levels say the same whether or not they are declared as such.
        if column.kind in ("number", "date") and values.size > MAX_VALUES:
            edges, levels = _edges(column, values, counts, parts), None
            known = len(edges) + 1
            ranges = list(_ranges(column, edges, alone=alone))
        else:
            frequent = frequent_values(column)[0][:SEARCHED_LEVELS]
            edges, known = np.sort(frequent.astype(float)), frequent.size
            if column.is_category:
                levels = tuple(column.levels[int(code)] for code in edges)
            else:
                levels = tuple(edges.tolist())
            ranges = [(range(k, k + 1), level_of(column, edges[k])) for k in range(known)]
        if column.missing.any():
            ranges.append((range(known, known + 1), Missing(column.name)))
        windows = np.zeros((len(ranges), known + 2), dtype=np.float32)  # missing; rare levels
        for row, (inside, _) in zip(windows, ranges, strict=True):
            row[inside] = 1
        bare = cls((name,), ((edges, levels),), windows, np.zeros(len(ranges), int), ())
        shares = windows @ np.bincount(bare.codes(points), minlength=known + 2) / len(points)
        some = [k for k in np.argsort(-shares, kind="stable") if least <= shares[k] < 1]
        if not some:
            return None
        depths = np.rint(-np.log2(shares[some])).astype(int)
        conditions = tuple(ranges[k][1] for k in some)
        return cls(bare.columns, bare.cuts, windows[some], depths, conditions)

    @classmethod
    def everything(cls) -> WindowAxis:
        """The axis of one cell and one window, to be crossed with another."""
        return cls((), (), np.ones((1, 1), np.float32), np.zeros(1, int), (all_of(()),))

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.windows.shape[1])

    def crossed(self, other: WindowAxis) -> WindowAxis:
        """All windows of this one within all of another, as one axis."""
        depths = np.add.outer(self.depths, other.depths).ravel()
        order = np.argsort(depths, kind="stable")
        both = [all_of((a, b)) for a in self.conditions for b in other.conditions]
        return WindowAxis(
            (*self.columns, *other.columns),
            (*self.cuts, *other.cuts),
            np.kron(self.windows, other.windows)[order],
            depths[order],
            tuple(both[k] for k in order),
        )

    def codes(self, points: Points) -> IntArray:
        """The cell of every row, (n,)."""
        by_name = columns_by_name(points)
        codes = np.zeros(len(points), dtype=np.int64)
        for name, (edges, levels) in zip(self.columns, self.cuts, strict=True):
            column = by_name[name]
            if levels is None:
                own, cells = np.searchsorted(edges, column.values, side="right"), edges.size + 3
                own[column.missing] = edges.size + 1
            else:
                cells, own = len(levels) + 2, _level_cells(column, levels)
            codes = codes * cells + own
        return codes


def _level_cells(column: Column, levels: tuple[object, ...]) -> IntArray:
    """The place of every value among some levels; after them missing values, then all others."""
    places = {level: k for k, level in enumerate(levels)}
    if column.is_category:
        found = [places.get(level, len(levels) + 1) for level in column.levels]
        return np.array([*found, len(levels)], dtype=np.int64)[column.values]  # -1: missing
    values, where = np.unique(column.values, return_inverse=True)
    found = [len(levels) if v != v else places.get(v, len(levels) + 1) for v in values.tolist()]
    return np.array(found, dtype=np.int64)[where]


def _name_of(name: ColumnName, points: Points) -> str:
    """What predicates call a column."""
    if name is not None:
        return name
    return OTHER_NAME if PREDICTION in [own.name for own in points.columns] else PREDICTION


def _edges(column: Column, values: FloatArray, counts: IntArray, parts: int) -> FloatArray:
    """Inner ends of cells with about equally many rows, at round numbers where there is room."""
    if values.size <= parts:
        return np.asarray(values[1:], dtype=float)
    ranks = np.cumsum(counts) / counts.sum()
    around = [[(k - ROOM) / parts, (k + ROOM) / parts] for k in range(1, parts)]
    ends = values[np.searchsorted(ranks, np.array(around) - 1e-12)]
    if column.kind == "date":  # midnight before a cut, where that keeps the order
        midnight = np.floor(ends[:, 1])
        cuts = set(np.where(midnight > ends[:, 0], midnight, ends[:, 1]).tolist())
    else:
        cuts = {roundest(low, high) for low, high in ends}
    inner = sorted(cut for cut in cuts if values[0] < cut <= values[-1])
    # Where nearly all rows have the least value, the others are the one part.
    return np.array(inner or values[1:2], dtype=float)


def roundest(low: float, high: float) -> float:
    """The number with the fewest digits above `low`, up to `high`.

    >>> roundest(0.3169, 0.3272), roundest(24_706.5, 31_059.7), roundest(2.0, 2.0)
    (0.32, 30000.0, 2.0)
    """
    if not low < high:
        return float(high)
    largest = math.floor(math.log10(max(abs(low), abs(high))))
    for power in range(largest, largest - 17, -1):
        step = 10.0**power
        if step == 0:
            break
        # 2.3 / 0.1 is a little below 23; what is that close counts as equal.
        candidate = float(f"{(math.floor(low / step + 1e-6) + 1) * step:.12g}")
        if low < candidate <= high:
            return candidate
    return float(high)


def _ranges(column: Column, edges: FloatArray, *, alone: bool) -> Iterator[tuple[range, Predicate]]:
    """Windows of neighbouring cells."""
    cells = edges.size + 1
    ends = [-math.inf, *edges.tolist(), math.inf]
    texts = [_exactly(column, end) if math.isfinite(end) else "" for end in ends]
    for low, high in _windows(cells, alone=alone):
        if high - low == cells:
            continue
        text = f"from {texts[low]} to below {texts[high]}"
        text = f"< {texts[high]}" if low == 0 else f">= {texts[low]}" if high == cells else text
        yield range(low, high), Between(column.name, ends[low], ends[high], text, column.kind)


def _windows(cells: int, *, alone: bool) -> Iterator[tuple[int, int]]:
    """Windows whose sizes halve; the last of each size reaches the end."""
    largest = 2 ** int(math.log2(cells - 1))
    sizes = [largest >> k for k in range(largest.bit_length())]
    if alone:
        sizes = sorted({*sizes, *(3 * size // 4 for size in sizes if size >= 4)}, reverse=True)
    for size in sizes:
        starts = {*range(0, cells - size + 1, max(size // OVERLAP, 1)), cells - size}
        yield from ((start, start + size) for start in sorted(starts))


def _exactly(column: Column, end: float) -> str:
    """A cut with as many digits as it takes to be the cut."""
    if column.kind == "date":
        return column.shown(end, 17)
    return next(
        text
        for digits in (6, 9, 12, 17)
        if float(text := column.shown(end, digits)) == end or digits == 17
    )
