"""Names and numbers, one a row: forests of biases, dots of others, and an audit on one sheet."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust._core import InputError, rounded
from itrust.auditing import Audit, Change, ClassMatrix, Comparison, Drift, ModelReport
from itrust.balance import Resemblance
from itrust.bias import GroupTable, SliceTable
from itrust.calibration import Finding
from itrust.render.document import LIGHT, number
from itrust.render.figures import style
from itrust.render.figures.style import Display, paint
from itrust.render.text.balance import difference_words
from itrust.render.text.comparisons import change_title
from itrust.render.text.tasks import WAYS, task_title
from itrust.tasks import Estimate, TaskEstimate, TaskResult

MAX_PARTS = 6
CHANGE = "difference: second \N{MINUS SIGN} first"
ROOM = 0.3  # inches a row
MAX_PAIRS = 10  # pairs of groups, those where the least is seen
STEM, DOT, GUIDE = style.CYCLE[4], style.CYCLE[1], "#ececec"


@paint.register
def _(result: TaskEstimate, display: Display, ax: Axes | None) -> None:
    """Every way to estimate a number, with its interval and what it assumes."""
    ways = [*result.ways.values()]
    some = f"{result.size - result.excluded:,} of " if result.excluded else ""
    title = f"{result.task}: {some}{result.size:,} rows without labels, {result.n:,} with"
    names = [
        f"{WAYS[name]}{' (recommended)' * (name == result.best_way)}\n{_assumed(way)}"
        for name, way in result.ways.items()
    ]
    ends = [(way.lower, way.upper) for way in ways]
    # All of them with the digits of the widest interval, so that they can be compared.
    widest = max(ends, key=lambda pair: pair[1] - pair[0])
    panel = _dots(display, ax, names, [w.value for w in ways], ends, lambda v: rounded(v, *widest))
    panel.set_xlabel(f"estimate, {100 * (1 - result.alpha):g} % interval")
    style.titled(display, style.short(str(result.task) if len(title) > 70 else title, 80), ax)


def _assumed(way: Estimate) -> str:
    return textwrap.fill(f"if {way.assumes.value}", 36)


@paint.register
def _(result: Resemblance, display: Display, ax: Axes | None) -> None:
    """Differences in standard deviations that permuted rows have."""
    names = [textwrap.fill(difference_words(one), 44) for one in result.compared]
    sizes = [one.z for one in result.compared]
    ends = [(min(size, 0.0), max(size, 0.0)) for size in sizes]
    panel = _dots(display, ax, names, sizes, ends, "{:+.1f}".format)
    panel.set_xlabel("labelled rows less population, in standard errors")
    verdict = "differ" if result.differs else "show no difference"
    title = f"Labelled rows and population {verdict}, p = {result.pvalue:.3g}"
    style.titled(display, style.short(title, 80), ax)


def _dots(
    display: Display,
    ax: Axes | None,
    names: Sequence[str],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    written: Callable[[float], str],
) -> Axes:
    """Names and numbers with intervals, one a row."""
    lines = len(names) + 0.55 * sum(name.count("\n") for name in names)
    [panel] = style.new_panels(display, ax, (6.6, 1.15 + ROOM * lines))
    known = [
        own for own in (*values, *(end for pair in ends for end in pair)) if math.isfinite(own)
    ]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    panel.set_xlim(low - room, high + room)
    panel.xaxis.set_major_locator(MaxNLocator(4))
    for k, (value, pair) in enumerate(zip(values, ends, strict=True)):
        finite = math.isfinite(value)
        panel.axhline(k, color=GUIDE, linewidth=0.8, zorder=0)
        panel.plot(pair, [k, k], color=STEM, linewidth=2.2, solid_capstyle="butt")
        panel.plot([value], [k], "o", color=DOT, markersize=6, zorder=3)
        text = written(value) if finite else number(value)
        style.beside_axes(panel, k, text, style.INK if finite else style.FAINT)
    style.rows_of_names(panel, ["\n".join(map(style.short, name.split("\n"))) for name in names])
    return panel


@paint.register
def _(result: ClassMatrix, display: Display, ax: Axes | None) -> None:
    """The pairs of classes that stand out most."""
    pairs = sorted(result.pairs, key=lambda pair: (pair.pvalue, -abs(pair.bias)))[:MAX_PAIRS]
    names = [f"rows of {pair.label} give {pair.taken_for}" for pair in pairs]
    [panel] = style.new_panels(display, ax, (7.6, 1.15 + ROOM * len(names)))
    forest(panel, names, pairs, result.alpha, "probability given less expected")
    style.titled(display, "Which class is taken for which", ax)


def forest(
    ax: Axes,
    labels: Sequence[str],
    parts: Sequence[Any],
    alpha: float,
    unit: str = style.BIAS,
    of: str = "bias",
) -> None:
    """Draw values with intervals, the first on top; what is shown is a filled triangle."""
    ax.axvline(0, color=style.FAINT, linewidth=0.8, zorder=1)
    for row, part in enumerate(parts):
        value, low, high, p = getattr(part, of), part.lower, part.upper, part.pvalue
        shown = p <= alpha
        color, marker = style.SIDES[value <= 0][1:3] if shown else (style.FAINT, style.NOT_SHOWN)
        ax.plot([low, high], [row, row], color=color, linewidth=2.2 if shown else 1.1)
        face = color if shown else "white"
        ax.plot([value], [row], marker, color=color, markersize=6, markerfacecolor=face)
        text = f"{rounded(value, low, high, '+')}  p {p:.3f}".replace("-", "\N{MINUS SIGN}")
        style.beside_axes(ax, row, text, style.INK if shown else style.FAINT)
    style.rows_of_names(ax, labels)
    ends = [(part.lower, part.upper) for part in parts]
    reach = 1.1 * float(np.nanmax(np.abs(ends), initial=0.02))
    ax.set_xlim(-reach, reach)
    ax.set_xlabel(unit)
    ax.xaxis.set_major_formatter(FuncFormatter(style.signed))
    if unit == style.BIAS:
        place: dict[str, Any] = {"transform": ax.transAxes, "va": "bottom", "fontsize": "small"}
        ax.text(0.49, 1.01, f"◀ {style.OVER}", ha="right", color=style.HIGH, **place)
        ax.text(0.51, 1.01, f"{style.UNDER} ▶", ha="left", color=style.LOW, **place)


@paint.register
def _(table: GroupTable, display: Display, ax: Axes | None, *, max_groups: int = 40) -> None:
    """Bias of groups with intervals; filled triangles: the interval excludes 0."""
    groups = table.groups[:max_groups]
    labels = [
        f"{style.in_two_lines(g.name)}  ({g.rows:,}{', few' if g.small else ''})" for g in groups
    ]
    lines = len(labels) + 0.6 * sum("\n" in label for label in labels)
    [panel] = style.new_panels(display, ax, (7.6, 1.3 + 0.29 * lines))
    forest(panel, labels, groups, table.alpha)
    together = "for all groups at once" if table.simultaneous else "each alone"
    cover = f"{100 * (1 - table.alpha):g} %"
    left = len(table.groups) - len(groups)
    more = f"; {left:,} more groups not drawn" if left else ""
    style.titled(display, f"Bias by group, {cover} intervals ({together}{more})", ax)


@paint.register
def _(table: SliceTable, display: Display, ax: Axes | None, *, max_slices: int = 12) -> None:
    """Slices with their bias, intervals and p-values; filled ones are confirmed."""
    slices = table.slices[:max_slices]
    [panel] = style.new_panels(display, ax, (8.2, 1.4 + 0.42 * max(len(slices), 1)))
    if slices:
        labels = [f"{style.in_two_lines(part.rule)}  ({part.rows:,})" for part in slices]
        forest(panel, labels, slices, table.alpha)
    else:
        _words_alone(panel, "no rule stands out")
    confirmed = f"{len(table.confirmed)} of {len(table)} confirmed on other rows"
    style.titled(display, f"Slices: {confirmed}", ax)


def _words_alone(ax: Axes, words: str) -> None:
    ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes)
    ax.set_axis_off()


@paint.register
def _(comparison: Comparison, display: Display, ax: Axes | None) -> None:
    """What models do to the user's numbers, a panel for each task."""
    models = comparison.models
    if not models[0].tasks:
        raise InputError("a comparison without tasks has no picture; to_dict() has its numbers")
    count = len(models[0].tasks)
    size = (7.6, (1.2 + 0.5 * len(models)) * count)
    for k, panel in enumerate(style.new_panels(display, ax, size, (count, 1))):
        results = [model.tasks[k] for model in models]
        forest(panel, list(map(_scored, models)), results, comparison.alpha)
        panel.annotate(
            style.short(results[0].name, 76),
            (0.01, 1.0),
            xytext=(0, 20),
            xycoords=("figure fraction", "axes fraction"),
            textcoords="offset points",
            fontweight="bold",
            fontsize=9,
            annotation_clip=False,
        )
        told = f"{results[0].from_labels:.4g} with labels"
        panel.set_xlabel(f"bias: {told} \N{MINUS SIGN} with probabilities")


def _scored(model: ModelReport) -> str:
    name = style.short(model.name, 30)
    return f"{name}\naccuracy {model.accuracy:.3f}, Brier {model.brier:.3f}, ECE {model.ece:.3f}"


@paint.register
def _(task: TaskResult, display: Display, ax: Axes | None) -> None:
    """What a model does to one number: the bias with its interval, and the tolerance."""
    [panel] = style.new_panels(display, ax, (7.0, 1.9))
    forest(panel, [str(task.finding)], [task], task.alpha)
    if task.tolerance is not None:
        reach = 1.1 * max(task.tolerance, *map(abs, panel.get_xlim()))
        panel.set_xlim(-reach, reach)
        panel.axvspan(-task.tolerance, task.tolerance, color=style.PALE, alpha=0.5, zorder=0)
    ends = task.lower, task.upper
    sides = (
        f"{rounded(task.from_labels, *ends)} with labels",
        f"{rounded(task.plugin, *ends)} with probabilities",
    )
    told = " \N{MINUS SIGN} ".join(sides)
    within = "" if task.tolerance is None else f"; grey: tolerance {task.tolerance:g}"
    panel.set_xlabel(f"bias: {told}{within}")
    style.titled(display, style.short(task_title(task), 76), ax)


@paint.register
def _(drift: Drift, display: Display, ax: Axes | None, *, max_rows: int = 30) -> None:
    """Differences of two audits: one panel for all rows and groups, one for each number."""
    tables = _tables(drift, max_rows)
    heights = [1.3 + 0.36 * len(rows) for rows in tables]
    shape = {"gridspec_kw": {"height_ratios": heights}}
    panels = style.new_panels(display, ax, (8.2, sum(heights)), (len(tables), 1), **shape)
    for rows, panel in zip(tables, panels, strict=False):
        labels = [style.in_two_lines(change_title(one)) for one in rows]
        forest(panel, labels, rows, drift.alpha, CHANGE, "difference")
    first, second = (style.short(name, 20) for name in drift.names)
    style.titled(display, f"Change from {first} to {second}: two fixed samples, no monitor", ax)


def _tables(drift: Drift, max_rows: int) -> list[list[Change]]:
    """All rows and groups, then every number in its own unit."""
    judged = [part for part in drift.changes if part.reason is None]
    groups = [part for part in judged if part.compared == "group_bias"]
    left = sorted(groups, key=lambda part: part.pvalue)[max_rows:]
    first = [part for part in judged if part.task is None and part not in left]
    numbers: dict[str, list[Change]] = {}
    for part in judged:
        if part.task is not None:
            numbers.setdefault(part.name, []).append(part)
    return [first, *numbers.values()]


@paint.register
def _(audit: Audit, display: Display, ax: Axes | None) -> None:
    """An audit on one sheet; of several classes, the mean bias of each."""
    if audit.classes:
        names, means = [str(part.name) for part in audit.parts], [p.mean for p in audit.parts]
        [panel] = style.new_panels(display, ax, (7.6, 1.3 + ROOM * len(names)))
        forest(panel, names, means, audit.alpha)
        style.titled(display, f"{audit.verdict}: {audit.n:,} rows, {len(names)} classes", ax)
        return
    reliability = Display(audit.overall.curve)
    if ax is not None:
        reliability.plot(*style.new_panels(display, ax, (0, 0)))
        return
    shown = audit.diagnosis.shown
    height = 4.6 + 0.42 * max(min(len(shown), MAX_PARTS), 1) + 1.0
    display.figure_ = style.new_figure((10.4, height))
    halves: Any = display.figure_.subfigures(2, 1, height_ratios=(4.6, height - 4.6))
    above, below = halves
    display.axes_ = [*above.subplots(1, 2), below.subplots()]
    display.ax_ = display.axes_[0]
    reliability.plot(display.ax_)
    if audit.test.null_distribution is None:
        display.axes_[1].set_axis_off()
    else:
        Display(audit.test).plot(display.axes_[1])
    _paint_parts(audit, display.axes_[2])
    verdict = style.short(f"Verdict: {audit.verdict}", 80)
    display.figure_.suptitle(
        verdict, x=0.01, ha="left", fontweight="bold", color=LIGHT[audit.verdict.tone]
    )


def _paint_parts(audit: Audit, ax: Axes) -> None:
    """Draw groups and slices that are shown to be miscalibrated, the largest bias first."""
    shown = audit.diagnosis.shown
    parts = shown[:MAX_PARTS]
    if parts:
        labels = [f"{style.in_two_lines(str(part.where))}  ({part.rows:,})" for part in parts]
        forest(ax, labels, parts, audit.alpha)
    else:
        named = [str(item) for item in audit.evidence if isinstance(item, Finding)][:1]
        _words_alone(
            ax, "\n".join(["no group or slice by itself", *map(style.in_two_lines, named)])
        )
    more = f", {len(parts)} of {len(shown)}" if len(parts) < len(shown) else ""
    ax.set_title(f"Shown to be miscalibrated{more}", pad=20)
