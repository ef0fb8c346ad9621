"""Values with intervals: groups, slices, tasks, comparisons, changes, and an audit on one sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from itrust._core import rounded
from itrust.auditing import Audit, Change, ComparedValue, Comparison, Drift, ModelReport
from itrust.bias import GroupTable, SliceTable, bias_groups, bias_slices
from itrust.calibration import Finding
from itrust.data import Sample
from itrust.render.figures.calibration import NullDisplay, ReliabilityDisplay
from itrust.render.figures.dots import DotsDisplay
from itrust.render.figures.style import (
    BIAS,
    FAINT,
    HIGH,
    INK,
    LOW,
    NOT_SHOWN,
    OVER,
    PALE,
    SHOWN_HIGH,
    SHOWN_LOW,
    UNDER,
    Display,
    beside_axes,
    in_two_lines,
    new_figure,
    rows_of_names,
    short,
    signed,
)
from itrust.render.text.bias import rows_of
from itrust.render.text.comparisons import change_title
from itrust.render.text.tasks import task_title
from itrust.tasks import TaskResult

MAX_PARTS = 6


class Bar(NamedTuple):
    """One line of a forest: a value with its interval and p-value."""

    label: str
    value: float
    lower: float
    upper: float
    pvalue: float


def biases(labels: Iterable[str], parts: Iterable[Any]) -> list[Bar]:
    """Lines of whatever has a bias with an interval and a p-value."""
    return [
        Bar(label, part.bias, part.lower, part.upper, part.pvalue)
        for label, part in zip(labels, parts, strict=True)
    ]


def forest(ax: Axes, bars: Sequence[Bar], alpha: float, unit: str = BIAS) -> None:
    """Draw values with intervals, the first on top; what is shown is a filled triangle."""
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    for row, (_, value, low, high, p) in enumerate(bars):
        shown = p <= alpha
        color = FAINT if not shown else LOW if value > 0 else HIGH
        marker = NOT_SHOWN if not shown else SHOWN_LOW if value > 0 else SHOWN_HIGH
        ax.plot([low, high], [row, row], color=color, linewidth=2.2 if shown else 1.1)
        face = color if shown else "white"
        ax.plot([value], [row], marker, color=color, markersize=6, markerfacecolor=face)
        text = f"{rounded(value, low, high, '+')}  p {p:.3f}".replace("-", "\N{MINUS SIGN}")
        beside_axes(ax, row, text, INK if shown else FAINT)
    rows_of_names(ax, [bar.label for bar in bars])
    reach = 1.1 * float(np.nanmax(np.abs([bar[2:4] for bar in bars]), initial=0.02))
    ax.set_xlim(-reach, reach)
    ax.set_xlabel(unit)
    ax.xaxis.set_major_formatter(FuncFormatter(signed))
    if unit == BIAS:
        place: dict[str, Any] = {"transform": ax.transAxes, "va": "bottom", "fontsize": "small"}
        ax.text(0.49, 1.01, f"◀ {OVER}", ha="right", color=HIGH, **place)
        ax.text(0.51, 1.01, f"{UNDER} ▶", ha="left", color=LOW, **place)


@dataclass(eq=False)
class GroupDisplay(Display, shows=GroupTable, made_by="bias_groups"):
    """Bias of groups with intervals: a forest plot.

    A marker is a filled triangle where the p-value is at most `alpha`: up if the model is too low,
    down if it is too high.

    Attributes
    ----------
    table : GroupTable
        Of `bias_groups`.
    max_groups : int
        Groups that are drawn; a note counts the others.
    """

    table: GroupTable
    max_groups: int = 40

    @classmethod
    def from_sample(
        cls, sample: Sample, *names: str, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Compute the bias by group and draw it.

        Parameters
        ----------
        sample : Sample
            Labels, probabilities and covariates.
        *names : str
            Covariates that make the groups.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        **settings : dict
            Others of `bias_groups`.

        Returns
        -------
        GroupDisplay
            Drawn.
        """
        return cls(bias_groups(sample, *names, **settings)).plot(ax)

    def _paint(self, ax: Axes | None) -> None:
        groups = self.table.groups[: self.max_groups]
        labels = [
            f"{in_two_lines(g.name)}  ({g.rows:,}{', few' if g.small else ''})" for g in groups
        ]
        lines = len(labels) + 0.6 * sum("\n" in label for label in labels)
        [panel] = self._panels(ax, (7.6, 1.3 + 0.29 * lines))
        forest(panel, biases(labels, groups), self.table.alpha)
        together = "for all groups at once" if self.table.simultaneous else "each alone"
        cover = f"{100 * (1 - self.table.alpha):g} %"
        left = len(self.table.groups) - len(groups)
        more = f"; {left:,} more groups not drawn" if left else ""
        self._titled(f"Bias by group, {cover} intervals ({together}{more})", ax)


@dataclass(eq=False)
class SliceDisplay(Display, shows=SliceTable, made_by="bias_slices"):
    """Slices with their bias, intervals and p-values; filled ones are confirmed.

    Attributes
    ----------
    table : SliceTable
        Of `bias_slices`.
    max_slices : int
        Slices that are drawn.
    """

    table: SliceTable
    max_slices: int = 12

    @classmethod
    def from_sample(cls, sample: Sample, *, ax: Axes | None = None, **settings: Any) -> Self:
        """Search for slices and draw them, those that were not confirmed with open markers.

        Intervals and p-values are those of the half that judged, not of the half that was searched.

        Parameters
        ----------
        sample : Sample
            One half of its rows is searched, the other judges.
        ax : matplotlib axes, optional
            The axes to draw into; default: new ones, as high as the slices need.
        **settings : dict
            Those of `bias_slices`.

        Returns
        -------
        SliceDisplay
            Drawn.
        """
        return cls(bias_slices(sample, **settings)).plot(ax)

    def _paint(self, ax: Axes | None) -> None:
        slices = self.table.slices[: self.max_slices]
        [panel] = self._panels(ax, (8.2, 1.4 + 0.42 * max(len(slices), 1)))
        if slices:
            labels = [f"{in_two_lines(part.rule)}  ({part.rows:,})" for part in slices]
            forest(panel, biases(labels, slices), self.table.alpha)
        else:
            _words_alone(panel, "no rule stands out")
        confirmed = f"{len(self.table.confirmed)} of {len(self.table)} confirmed on other rows"
        self._titled(f"Slices: {confirmed}", ax)


def _words_alone(ax: Axes, words: str) -> None:
    ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes)
    ax.set_axis_off()


@dataclass(eq=False)
class ComparisonDisplay(Display, shows=Comparison, made_by="compare"):
    """What several models do to the user's numbers: bias with interval, a panel for each task.

    Attributes
    ----------
    comparison : Comparison
        Of `compare`. Without tasks, scores and p-values are shown.
    """

    comparison: Comparison

    def _paint(self, ax: Axes | None) -> None:
        models = self.comparison.models
        if not models[0].tasks:
            scores = DotsDisplay(self.comparison).plot(ax)
            self.figure_, self.ax_, self.axes_ = scores.figure_, scores.ax_, scores.axes_
            return
        count = len(models[0].tasks)
        size = (7.6, (1.2 + 0.5 * len(models)) * count)
        for k, panel in enumerate(self._panels(ax, size, (count, 1))):
            results = [model.tasks[k] for model in models]
            bars = biases(map(_scored, models), results)
            forest(panel, bars, self.comparison.alpha)
            panel.annotate(
                short(results[0].name, 76),
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
    name = short(model.name, 30)
    return f"{name}\naccuracy {model.accuracy:.3f}, Brier {model.brier:.3f}, ECE {model.ece:.3f}"


@dataclass(eq=False)
class TaskDisplay(Display, shows=TaskResult, made_by="Task.evaluate or audit"):
    """What a model does to one number: the bias with its interval, and the tolerance.

    Attributes
    ----------
    task : TaskResult
        Of `Task.evaluate`, or one of `audit.tasks`.
    """

    task: TaskResult

    def _paint(self, ax: Axes | None) -> None:
        task = self.task
        [panel] = self._panels(ax, (7.0, 1.9))
        forest(panel, biases([str(task.finding)], [task]), task.alpha)
        if task.tolerance is not None:
            reach = 1.1 * max(task.tolerance, *map(abs, panel.get_xlim()))
            panel.set_xlim(-reach, reach)
            panel.axvspan(-task.tolerance, task.tolerance, color=PALE, alpha=0.5, zorder=0)
        ends = task.lower, task.upper
        sides = (
            f"{rounded(task.from_labels, *ends)} with labels",
            f"{rounded(task.plugin, *ends)} with probabilities",
        )
        told = " \N{MINUS SIGN} ".join(sides)
        within = "" if task.tolerance is None else f"; grey: tolerance {task.tolerance:g}"
        panel.set_xlabel(f"bias: {told}{within}")
        self._titled(short(task_title(task), 76), ax)


@dataclass(eq=False)
class DriftDisplay(Display, shows=Drift, made_by="drift"):
    """Differences of two audits with intervals: one panel for all rows and groups, one a number.

    A marker is a filled triangle where the interval excludes 0.

    Attributes
    ----------
    drift : Drift
        Of `drift`.
    max_rows : int
        Groups that are drawn, those with the smallest p-values; a note counts the others.
    """

    drift: Drift
    max_rows: int = 30

    def _paint(self, ax: Axes | None) -> None:
        tables = self._tables()
        heights = [1.3 + 0.36 * len(rows) for rows in tables]
        shape = {"gridspec_kw": {"height_ratios": heights}}
        panels = self._panels(ax, (8.2, sum(heights)), (len(tables), 1), **shape)
        for rows, panel in zip(tables, panels, strict=False):
            bars = [
                Bar(in_two_lines(change_title(one)), one.difference, *_ends(one)) for one in rows
            ]
            forest(panel, bars, self.drift.alpha, "difference: second \N{MINUS SIGN} first")
        first, second = (short(name, 20) for name in self.drift.names)
        self._titled(f"Change from {first} to {second}: two fixed samples, no monitor", ax)

    def _tables(self) -> list[list[Change]]:
        """All rows and groups, then every number in its own unit."""
        judged = [part for part in self.drift.changes if part.reason is None]
        groups = [part for part in judged if part.compared is ComparedValue.GROUP_BIAS]
        told = set(map(id, sorted(groups, key=lambda part: part.pvalue)[: self.max_rows]))
        first = [
            part
            for part in judged
            if part.task is None and (part.where is None or id(part) in told)
        ]
        numbers: dict[str, list[Change]] = {}
        for part in judged:
            if part.task is not None:
                numbers.setdefault(part.name, []).append(part)
        return [first, *numbers.values()]


def _ends(change: Change) -> tuple[float, float, float]:
    return change.lower, change.upper, change.pvalue


@dataclass(eq=False)
class AuditDisplay(Display, shows=Audit, made_by="audit"):
    """An audit on one sheet: reliability, null distribution, and groups and slices that are off.

    A new figure has the verdict above its panels, in the verdict's colour.

    Attributes
    ----------
    audit : Audit
        Of `audit`.
    """

    audit: Audit

    def _paint(self, ax: Axes | None) -> None:
        reliability = ReliabilityDisplay(self.audit.overall.curve)
        if ax is not None:
            reliability.plot(*self._panels(ax, (0, 0)))
            return
        shown = self.audit.diagnosis.shown
        height = 4.6 + 0.42 * max(min(len(shown), MAX_PARTS), 1) + 1.0
        self.figure_ = new_figure((10.4, height))
        halves: Any = self.figure_.subfigures(2, 1, height_ratios=(4.6, height - 4.6))
        above, below = halves
        self.axes_ = [*above.subplots(1, 2), below.subplots()]
        self.ax_ = self.axes_[0]
        reliability.plot(self.ax_)
        if self.audit.test.null_distribution is None:
            self.axes_[1].set_axis_off()
        else:
            NullDisplay(self.audit.test).plot(self.axes_[1])
        self._paint_parts(self.axes_[2])
        verdict = short(f"Verdict: {self.audit.verdict}", 80)
        self.figure_.suptitle(
            verdict, x=0.01, ha="left", fontweight="bold", color=self.audit.verdict.tone.light
        )

    def _paint_parts(self, ax: Axes) -> None:
        """Draw groups and slices that are shown to be miscalibrated, the largest bias first."""
        shown = self.audit.diagnosis.shown
        parts = shown[:MAX_PARTS]
        if parts:
            labels = [f"{in_two_lines(str(part.where))}  ({rows_of(part)})" for part in parts]
            forest(ax, biases(labels, parts), self.audit.alpha)
        else:
            named = [str(item) for item in self.audit.evidence if isinstance(item, Finding)][:1]
            _words_alone(ax, "\n".join(["no group or slice by itself", *map(in_two_lines, named)]))
        more = f", {len(parts)} of {len(shown)}" if len(parts) < len(shown) else ""
        ax.set_title(f"Shown to be miscalibrated{more}", pad=20)
