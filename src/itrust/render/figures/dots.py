"""Dots with intervals: the picture of results that are a list of names and numbers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from itrust._core import Result, rounded
from itrust.auditing import Audit, ClassMatrix, Comparison
from itrust.balance import Resemblance
from itrust.calibration import Detectable, MulticlassResult, SampleSize
from itrust.recalibrate import RecalibrationTable
from itrust.render import html
from itrust.render.figures.style import (
    CYCLE,
    FAINT,
    INK,
    PALE,
    Display,
    beside_axes,
    draw,
    rows_of_names,
    short,
)
from itrust.render.text.balance import difference_words
from itrust.render.text.tasks import WAYS
from itrust.tasks import Estimate, TaskEstimate, TaskEstimates

ROOM = 0.3  # inches a row
MAX_PAIRS = 10  # pairs of groups, those where the least is seen
USUAL_ALPHA = 0.05  # marked among p-values, for orientation
P_TICKS = (1e-4, 0.001, 0.01, 0.05, 0.2, 1.0)
STEM, DOT, GUIDE = CYCLE[4], CYCLE[1], "#ececec"


class Panel(NamedTuple):
    """Numbers of all rows, and how they are drawn."""

    label: str
    values: Sequence[float]
    ends: Sequence[tuple[float, float]] | None = None
    written: Callable[[float], str] = "{:.4g}".format
    from_zero: bool = False
    scale: str = "linear"


class Dots(NamedTuple):
    """A title, the names of the rows, the numbers, and where a new family of rows begins."""

    title: str
    names: Sequence[str]
    panels: Sequence[Panel]
    breaks: Sequence[int] = ()


@singledispatch
def dots_of(result: Any) -> Dots:
    """Take names and numbers out of a result."""
    raise TypeError(f"nothing says which numbers of a {type(result).__name__} are drawn")


@dots_of.register
def _(result: Detectable) -> Dots:
    shown = (*result.regions, *result.worst_pairs[:MAX_PAIRS])
    shifts = Panel(
        f"smallest bias seen, with power {result.power:g} at alpha {result.alpha:g}",
        [region.shift for region in shown],
        written=_size,
        from_zero=True,
    )
    title = f"What {result.n:,} rows would show"
    names = [str(region.where) for region in shown]
    return Dots(title, names, [shifts], _families(region.where.names for region in shown))


@dots_of.register
def _(result: SampleSize) -> Dots:
    rows = Panel(
        f"rows that show a bias of {result.bias:g}, with power {result.power:g} "
        f"at alpha {result.alpha:g}",
        [*result.by_region.values()],
        written=lambda value: f"{math.ceil(value):,}",
        scale="log",
    )
    return Dots(f"{result.rows:,} labelled rows are needed", [*result.by_region], [rows])


@dots_of.register
def _(result: MulticlassResult) -> Dots:
    parts = (result.together, *result.classes)
    panel = _pvalues("adjusted p-value", [part.pvalue for part in parts])
    return Dots("Calibration by class", [str(part.name) for part in parts], [panel], [1])


@dots_of.register
def _(result: TaskEstimate) -> Dots:
    ways = result.ways
    some = f"{result.size - result.excluded:,} of " if result.excluded else ""
    title = f"{result.task}: {some}{result.size:,} rows without labels, {result.n:,} with"
    label = f"estimate, {100 * (1 - result.alpha):g} % interval"
    return Dots(
        str(result.task) if len(title) > 70 else title,
        [
            f"{WAYS[name]}{' (recommended)' * (name == result.best_way)}\n{_assumed(way)}"
            for name, way in ways.items()
        ],
        [_estimates(label, [*ways.values()])],
    )


@dots_of.register
def _(result: TaskEstimates) -> Dots:
    """What to report over the plug-in, so that numbers of any size stand on one axis."""
    told = [(own, own.best) for own in result.estimates if own.best is not None]
    panel = Panel(
        "to report less plug-in, in standard errors",
        [_over_plugin(own, best, best.value) for own, best in told],
        [
            (_over_plugin(own, best, best.lower), _over_plugin(own, best, best.upper))
            for own, best in told
        ],
        "{:+.1f}".format,
    )
    names = [textwrap.fill(f"{own.task}", 44) for own, _ in told]
    return Dots(f"{len(told)} of {len(result)} numbers can be reported", names, [panel])


def _over_plugin(own: TaskEstimate, best: Estimate, value: float) -> float:
    return (value - own.plugin.value) / best.stderr if best.stderr > 0 else 0.0


@dots_of.register
def _(result: Resemblance) -> Dots:
    """Differences in standard deviations that permuted rows have."""
    told = result.compared
    panel = Panel(
        "labelled rows less population, in standard errors",
        [one.z for one in told],
        [(min(one.z, 0.0), max(one.z, 0.0)) for one in told],
        "{:+.1f}".format,
    )
    verdict = "differ" if result.differs else "show no difference"
    title = f"Labelled rows and population {verdict}, p = {result.pvalue:.3g}"
    return Dots(title, [textwrap.fill(difference_words(one), 44) for one in told], [panel])


@dots_of.register
def _(result: RecalibrationTable) -> Dots:
    title = f"Recalibration, judged on {result.test_rows:,} other rows"
    return _scores(title, [*result], _errors([*result]), [1])


@dots_of.register
def _(result: Comparison) -> Dots:
    title = f"{len(result.models)} models on the same {result.n:,} rows"
    return _scores(title, result.models, _errors(result.models))


def _errors(rows: Sequence[Any]) -> Panel:
    return Panel("ECE", [row.ece for row in rows], written="{:.3f}".format, from_zero=True)


def _scores(title: str, rows: Sequence[Any], second: Panel, breaks: Sequence[int] = ()) -> Dots:
    brier = Panel("Brier score", [row.brier for row in rows], written="{:.4f}".format)
    pvalues = _pvalues("p given the covariates", [row.test.pvalue for row in rows])
    return Dots(title, [row.name for row in rows], [brier, second, pvalues], breaks)


@dots_of.register
def _(result: Audit) -> Dots:
    means = [part.mean for part in result.parts]
    panel = Panel(
        f"observed - predicted, {100 * (1 - result.alpha):g} % for all classes at once",
        [own.observed - own.predicted for own in means],
        [(own.lower, own.upper) for own in means],
        "{:+.3f}".format,
    )
    title = f"{result.verdict}: {result.n:,} rows, {len(result.classes)} classes"
    return Dots(title, [str(part.name) for part in result.parts], [panel])


@dots_of.register
def _(result: ClassMatrix) -> Dots:
    """The pairs that stand out most."""
    order = sorted(result.pairs, key=lambda pair: (pair.pvalue, -abs(pair.given - pair.expected)))
    told = order[:MAX_PAIRS]
    panel = Panel(
        "probability given less expected",
        [pair.given - pair.expected for pair in told],
        [(pair.lower, pair.upper) for pair in told],
        "{:+.3f}".format,
    )
    names = [f"rows of {pair.label} give {pair.taken_for}" for pair in told]
    return Dots("Which class is taken for which", names, [panel])


def _assumed(way: Estimate) -> str:
    return textwrap.fill(f"if {way.assumes.value}", 36)


def _pvalues(label: str, values: Sequence[float]) -> Panel:
    return Panel(label, values, written="{:.3g}".format, scale="p")


def _estimates(label: str, ways: Sequence[Estimate]) -> Panel:
    ends = [(w.lower, w.upper) for w in ways]
    # All of them with the digits of the widest interval, so that they can be compared.
    widest = max(ends, key=lambda pair: pair[1] - pair[0])
    return Panel(label, [w.value for w in ways], ends, lambda value: rounded(value, *widest))


def _size(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "not seen"


def _families(names: Iterable[frozenset[str]]) -> list[int]:
    """Rows where what they are about changes: all rows, each covariate, pairs."""
    kinds = [tuple(sorted(found)) if len(found) < 2 else ("pair", "of groups") for found in names]
    return [k for k in range(1, len(kinds)) if kinds[k] != kinds[k - 1]]


@dataclass(eq=False)
class DotsDisplay(Display):
    """Names and numbers, one a row, with intervals where there are any.

    It shows what could have been missed, sample sizes, p-values by class or fold, estimates and
    comparisons of recalibrations and models: `result.plot()` makes it.

    Attributes
    ----------
    result : Result
        Of `detectable`, `sample_size`, `multiclass_test`, of `Task.estimate`, of
        `resemblance`, of `recalibrate.compare`, or of `compare` without tasks.
    """

    result: Result

    def __post_init__(self) -> None:
        self._dots = dots_of(self.result)

    def _paint(self, ax: Axes | None) -> None:
        title, names, panels, breaks = self._dots
        lines = len(names) + 0.55 * sum(name.count("\n") for name in names)
        width = 6.6 if len(panels) == 1 else 3.0 + 2.4 * len(panels)
        size = (width, 1.15 + ROOM * lines)
        for axes, panel in zip(
            self._panels(ax, size, (1, len(panels)), sharey=True), panels, strict=False
        ):
            _paint_panel(axes, panel, breaks)
        rows_of_names(self.ax_, ["\n".join(map(short, name.split("\n"))) for name in names])
        self._titled(short(title, 80), ax)


def _paint_panel(ax: Axes, panel: Panel, breaks: Sequence[int]) -> None:
    finite = [value for value in panel.values if math.isfinite(value)]
    _scaled(ax, panel, finite)
    left = ax.get_xlim()[0]
    for k, value in enumerate(panel.values):
        known = math.isfinite(value)
        if not panel.from_zero:
            ax.axhline(k, color=GUIDE, linewidth=0.8, zorder=0)
        elif known:
            ax.plot([left, value], [k, k], color=STEM, linewidth=2.2, solid_capstyle="butt")
        if panel.ends is not None:
            ax.plot(panel.ends[k], [k, k], color=STEM, linewidth=2.2, solid_capstyle="butt")
        ax.plot([value if known else math.nan], [k], "o", color=DOT, markersize=6, zorder=3)
        text = panel.written(value) if known or panel.written is _size else html.number(value)
        beside_axes(ax, k, text, INK if known else FAINT)
    for row in breaks:
        ax.axhline(row - 0.5, color=PALE, linewidth=0.8, zorder=0)
    ax.set_xlabel(panel.label)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _scaled(ax: Axes, panel: Panel, finite: list[float]) -> None:
    """Set limits and ticks before anything is drawn."""
    if panel.scale == "p":
        ax.set_xscale("log")
        ax.set_xlim(min([P_TICKS[1], *finite]) * 0.7, 1.3)
        ax.set_xticks(P_TICKS, map("{:g}".format, P_TICKS))
        ax.minorticks_off()
        ax.axvline(USUAL_ALPHA, color=FAINT, linewidth=0.8, linestyle="--", zorder=1)
    elif panel.scale == "log":
        ax.set_xscale("log")
        ax.set_xlim(min(finite, default=1.0) / 2, max(finite, default=10.0) * 1.5)
        ax.xaxis.set_major_locator(LogLocator(10, numticks=6))
        ax.minorticks_off()
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    else:
        ends = [end for pair in panel.ends or () for end in pair if math.isfinite(end)]
        reach = [*finite, *ends, *([0.0] if panel.from_zero else [])]
        low, high = min(reach, default=0.0), max(reach, default=1.0)
        room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
        ax.set_xlim(low - (0.0 if panel.from_zero else room), high + room)
        ax.xaxis.set_major_locator(MaxNLocator(4))


for _kind in dots_of.registry:
    if _kind not in (object, Comparison):  # a comparison with tasks has a display of its own
        draw.register(_kind, DotsDisplay._drawn)
