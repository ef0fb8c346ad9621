"""Dots with intervals: the picture of results that are a list of names and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from itrust._core import Result
from itrust.calibration import Detectable, MulticlassResult, SampleSize, WitnessResult
from itrust.recalibrate import RecalibrationTable
from itrust.render.figures.style import FAINT, INK, Display, axes_of, draw, short
from itrust.render.text.tasks import WAYS
from itrust.tasks import TaskEstimate, TaskResult

ROOM = 0.34  # inches a row
MAX_PAIRS = 10  # pairs of groups, those where the least is seen


class Dot(NamedTuple):
    """One row: a name, a number, and the ends of its interval, if it has one."""

    name: str
    value: float
    lower: float = math.nan
    upper: float = math.nan


class Dots(NamedTuple):
    """All rows, what their numbers are, and a number that they are compared with."""

    label: str
    rows: tuple[Dot, ...]
    mark: float | None = None


@singledispatch
def dots_of(result: Any) -> Dots:
    """Take names and numbers out of a result."""
    raise TypeError(f"nothing says which numbers of a {type(result).__name__} are drawn")


@dots_of.register
def _(result: Detectable) -> Dots:
    shown = (*result.regions, *result.worst_pairs[:MAX_PAIRS])
    rows = (Dot(str(region.where), region.shift) for region in shown)
    return Dots(f"smallest bias seen with power {result.power:g}", tuple(rows))


@dots_of.register
def _(result: SampleSize) -> Dots:
    rows = (Dot(where, needed) for where, needed in result.by_region.items())
    return Dots(f"rows that show a bias of {result.bias:g}", tuple(rows))


@dots_of.register
def _(result: MulticlassResult) -> Dots:
    parts = (result.together, *result.classes)
    return Dots("adjusted p-value", tuple(Dot(str(part.name), part.pvalue) for part in parts))


@dots_of.register
def _(result: WitnessResult) -> Dots:
    rows = [Dot(f"fold {k + 1}", part.pvalue) for k, part in enumerate(result.parts)]
    return Dots("p-value", (Dot("all folds", result.pvalue), *rows))


@dots_of.register
def _(result: TaskResult) -> Dots:
    row = Dot(result.name, result.bias, result.lower, result.upper)
    return Dots("bias (with labels \N{MINUS SIGN} with probabilities)", (row,), 0.0)


@dots_of.register
def _(result: TaskEstimate) -> Dots:
    ways = (Dot(WAYS[name], way.value, way.lower, way.upper) for name, way in result.ways.items())
    return Dots(str(result.task), tuple(ways))


@dots_of.register
def _(result: RecalibrationTable) -> Dots:
    return Dots("Brier score", tuple(Dot(row.name, row.brier) for row in result))


@dataclass(eq=False)
class DotsDisplay(Display):
    """Names and numbers, one a row, with intervals where there are any.

    It shows what could have been missed, sample sizes, results by class or fold, tasks and
    comparisons of recalibrations: `result.plot()` makes it.

    Attributes
    ----------
    result : Result
        Of `detectable`, `sample_size`, `multiclass_test`, `witness_test`, of a task, or of
        `recalibrate.compare`.
    """

    result: Result

    def __post_init__(self) -> None:
        self._dots = dots_of(self.result)

    def _paint(self, ax: Axes | None) -> None:
        label, rows, mark = self._dots
        self.figure_, self.ax_ = axes_of(ax, (6.4, 1.2 + ROOM * len(rows)))
        if mark is not None:
            self.ax_.axvline(mark, color=FAINT, linewidth=1.0)
        for k, row in enumerate(rows):
            self.ax_.plot([row.lower, row.upper], [k, k], color=INK, linewidth=1.2)
            self.ax_.plot(
                [row.value if math.isfinite(row.value) else math.nan], [k], "o", color=INK
            )
        self.ax_.set_yticks(range(len(rows)), [short(row.name) for row in rows])
        self.ax_.set_ylim(len(rows) - 0.5, -0.5)  # the first on top, as in tables
        self.ax_.grid(axis="y", color="#ececec")
        self.ax_.set_axisbelow(True)
        self.ax_.set_xlabel(label)


for _kind in dots_of.registry:
    if _kind is not object:
        draw.register(_kind, DotsDisplay._drawn)
