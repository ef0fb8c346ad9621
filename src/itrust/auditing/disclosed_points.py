"""Points of the evidence as they may be shown: by values that enough rows have."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from itrust._core import FloatArray
from itrust.auditing.disclosed_charts import about_rows
from itrust.auditing.hiding import Hidden
from itrust.auditing.verdict import PointBias, PointCoordinate
from itrust.data import Between, Column, Points

STEPS = (1, 2, 5)  # times powers of ten


def disclosed_point(point: PointBias, hidden: Hidden) -> PointBias:
    """Describe a point without rare groups, and by values that enough rows have."""
    universe = hidden.universe
    points = universe.points.take(slice(universe.real))
    kept = [own for own in point.coordinates if own.where not in hidden.rare]
    step = shared_step(points.p, point.prediction, universe.least)
    return replace(
        point,
        coordinates=tuple(_coordinate(own, points, universe.least) for own in kept),
        prediction=_at(point.prediction, step),
        neighbours=about_rows(point.neighbours, hidden.least),
    )


def _coordinate(own: PointCoordinate, points: Points, least: int) -> PointCoordinate:
    column = next(column for column in points.columns if column.name == own.name)
    if column.kind not in ("number", "date") or own.value is None:
        return own
    value = float(_number(own, column))
    step = shared_step(column.values, value, least)
    if step == 0:
        return own
    about = _at(value, step)
    shown = column.shown(about, 4)
    where = Between(own.name, about - step / 2, about + step / 2, f"about {shown}", column.kind)
    is_number = isinstance(own.value, float | int)
    return PointCoordinate(own.name, about if is_number else shown, shown, where)


def _number(own: PointCoordinate, column: Column) -> float:
    """The coordinate as the column holds it: a date is a number of days."""
    if isinstance(own.value, float | int):
        return own.value
    return float(column.values[np.argmax(own.where.rows(Points(column.values, (column,))))])


def shared_step(values: FloatArray, value: float, least: int) -> float:
    """The smallest round step to whose multiples enough values are rounded like one of them.

    0 where enough values are equal to it as it is.

    >>> shared_step(np.array([3.0, 3.0, 4.1, 4.2, 9.0]), 3.0, 2)
    0.0
    >>> shared_step(np.array([3.0, 3.0, 4.1, 4.2, 9.0]), 4.1, 2)
    0.5
    """
    known = values[np.isfinite(values)]
    if (known == value).sum() >= least:
        return 0.0
    smallest, largest = np.finfo(float).minexp // 4, np.finfo(float).maxexp // 4
    spread = float(known.max(initial=value) / 2 - known.min(initial=value) / 2) or 1.0
    first = min(max(math.floor(math.log10(spread)), smallest), largest) - 6
    for power in range(first, first + 9):
        for factor in STEPS:
            step = factor * 10.0**power
            if (np.round(known / step) == round(value / step)).sum() >= least:
                return step
    return 10.0 ** (first + 9)


def _at(value: float, step: float) -> float:
    """A value rounded to multiples of a step, without digits that rounding leaves behind."""
    return value if step == 0 else float(f"{round(value / step) * step:.12g}")
