"""Charts without what rests on few rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from itrust.auditing.charts import (
    Charts,
    CurveChart,
    CurveLine,
    HistogramChart,
    MapChart,
    MapSide,
    ReliabilityLine,
)
from itrust.auditing.hiding import Hidden, too_few
from itrust.calibration import ReliabilityCurve


def disclosed_bins(curve: ReliabilityCurve, least: int) -> tuple[ReliabilityCurve, int]:
    """Take out bins of few rows, and those that totals would tell them by."""
    few = too_few(curve.rows.tolist(), least)
    kept = np.array([k for k in range(curve.rows.size) if k not in few], dtype=int)
    return ReliabilityCurve(**{name: part[kept] for name, part in vars(curve).items()}), len(few)


POINTWISE = ("bias", "lower", "upper", "null_lower", "null_upper", "neighbours", "pvalue")


def disclosed_charts(charts: Charts, hidden: Hidden) -> tuple[Charts, int, int]:
    """Take out lines and levels of hidden groups, and points of few neighbours.

    How many neighbours the other points have is told in multiples of the fewest rows: neighbours of
    a pair of levels are counts, and exact ones would tell the cell that is not there.
    """
    curves = [_curve(curve, hidden) for curve in charts.curves]
    maps = [_map(chart, hidden) for chart in charts.maps]
    lines = [_reliability(line, hidden) for line in charts.by_group]
    kept = replace(
        charts,
        curves=tuple(curve for curve, *_ in curves if curve.parts),
        maps=tuple(chart for chart, *_ in maps if chart.bias),
        histogram=_joined(charts, hidden.least),
        by_group=tuple(line for line, *_ in lines if line is not None),
    )
    gone = [numbers for _, *numbers in (*curves, *maps, *lines)]
    return kept, sum(lines for lines, _ in gone), sum(points for _, points in gone)


def _joined(charts: Charts, least: int) -> HistogramChart | None:
    joined = charts.histogram and charts.histogram.joined(least)
    if joined is None:
        return None
    return replace(joined, counts=tuple(int(about_rows(own, least)) for own in joined.counts))


def about_curve(curve: ReliabilityCurve, least: int) -> ReliabilityCurve:
    """A curve beside others of the same rows: two digits of its rates, rows in multiples.

    Bins of one curve less those of another would describe few rows otherwise.
    """
    if least == 1:
        return curve
    rows = np.array([int(about_rows(own, least)) for own in curve.rows], dtype=curve.rows.dtype)
    rates = {
        name: np.array([float(f"{rate:.2g}") for rate in getattr(curve, name)])
        for name in ("predicted", "observed", "lower", "upper", "share")
    }
    return ReliabilityCurve(rows=rows, **rates)


def about_rows(rows: float, least: int) -> float:
    """A number of rows in multiples of the fewest that may be shown, and never fewer; 0 is 0.

    >>> about_rows(106.8, 10), about_rows(12.0, 10), about_rows(106.8, 1), about_rows(0, 10)
    (110, 10, 106.8, 0)
    """
    return rows if least == 1 or rows == 0 else max(1, round(rows / least)) * least


def _about(chart: Any, least: int) -> Any:
    near = tuple(size if size is None else about_rows(size, least) for size in chart.neighbours)
    return replace(chart, neighbours=near)


def _reliability(line: ReliabilityLine, hidden: Hidden) -> tuple[ReliabilityLine | None, int, int]:
    if line.rows < hidden.least or line.where in hidden.places:
        return None, 1, 0
    curve, few = disclosed_bins(line.curve, hidden.least)
    if not curve.rows.size:
        return None, 1, few
    return replace(line, curve=about_curve(curve, hidden.least)), 0, few


def _curve(curve: CurveChart, hidden: Hidden) -> tuple[CurveChart, int, int]:
    kept = [
        part
        for part in curve.parts
        if part.rows >= hidden.least and part.where not in hidden.places
    ]
    lines = [_line(part, hidden.least) for part in kept]
    shown = tuple(line for line, _ in lines if line.at)
    return (
        replace(curve, parts=shown),
        len(curve.parts) - len(shown),
        sum(points for _, points in lines),
    )


def _line(line: CurveLine, least: int) -> tuple[CurveLine, int]:
    """A line without the values of points that have few neighbours; nor its ends without any."""
    few = _few(line.bias, line.neighbours, least)
    line = _about(line, least)
    if not few:
        return line, 0
    blank = _blanked(line, few)
    known = [k for k, value in enumerate(blank.bias) if value is not None]
    inner = slice(known[0], known[-1] + 1) if known else slice(0, 0)
    names = ("at", "x", *POINTWISE, "flagged")
    changes: dict[str, Any] = {name: getattr(blank, name)[inner] for name in names}
    return replace(blank, **changes), len(few)


def _few(bias: Sequence[float | None], near: Sequence[float | None], least: int) -> set[int]:
    pairs = enumerate(zip(bias, near, strict=True))
    return {k for k, (value, size) in pairs if value is not None and (size or 0) < least}


def _blanked(chart: Any, few: set[int]) -> Any:
    """The same with nothing at some points."""
    changes: dict[str, Any] = {
        name: tuple(None if k in few else v for k, v in enumerate(getattr(chart, name)))
        for name in POINTWISE
        if hasattr(chart, name)
    }
    flagged = tuple(flag and k not in few for k, flag in enumerate(chart.flagged))
    return replace(chart, flagged=flagged, **changes)


def _map(chart: MapChart, hidden: Hidden) -> tuple[MapChart, int, int]:
    few = _few(chart.bias, chart.neighbours, hidden.least)
    chart = _about(chart, hidden.least)
    if few:
        chart = _blanked(chart, few)
    columns, rows = _shown_levels(chart.across, hidden), _shown_levels(chart.up, hidden)
    width = len(chart.across.at)
    cells = [row * width + column for row in rows for column in columns]
    if few:  # ends of a number without a value tell its smallest and largest value
        known = {k for k in cells if chart.bias[k] is not None}
        columns = _inner(chart.across, columns, {k % width for k in known})
        rows = _inner(chart.up, rows, {k // width for k in known})
        cells = [row * width + column for row in rows for column in columns]
    gone = sum(len(side.at) for side in (chart.across, chart.up)) - len(columns) - len(rows)
    names = ("bias", "lower", "upper", "neighbours", "pvalue", "flagged")
    changes: dict[str, Any] = {
        name: tuple(getattr(chart, name)[k] for k in cells) for name in names
    }
    across, up = _taken(chart.across, columns), _taken(chart.up, rows)
    return replace(chart, across=across, up=up, **changes), gone, len(few)


def _shown_levels(side: MapSide, hidden: Hidden) -> list[int]:
    if not side.where:
        return list(range(len(side.at)))
    return [k for k, where in enumerate(side.where) if where not in hidden.places]


def _inner(side: MapSide, shown: list[int], known: set[int]) -> list[int]:
    if side.where:
        return [k for k in shown if k in known]
    return [k for k in shown if known and min(known) <= k <= max(known)]


def _taken(side: MapSide, kept: Sequence[int]) -> MapSide:
    edges = side.edges
    if edges and len(kept) < len(side.at):
        edges = edges[kept[0] : kept[-1] + 2] if kept else ()
    return replace(
        side,
        at=tuple(side.at[k] for k in kept),
        edges=edges,
        where=tuple(side.where[k] for k in kept) if side.where else (),
    )
