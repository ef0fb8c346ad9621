"""Forest plots: bias with intervals, one row for each group, slice or model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from itrust._core import rounded
from itrust.auditing import Comparison, ModelReport
from itrust.bias import GroupTable, PartBias, SliceTable, bias_groups, bias_slices
from itrust.data import Sample
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
    axes_of,
    in_two_lines,
    panels_of,
    short,
    signed,
    titled,
)
from itrust.render.text.tasks import task_title
from itrust.tasks import TaskResult


def forest(ax: Axes, labels: Sequence[str], rows: Sequence[Any], alpha: float) -> None:
    """Draw what has bias, lower, upper and pvalue, one in a row; filled: p at most alpha."""
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    for row, part in enumerate(rows):
        value, low, high, p = part.bias, part.lower, part.upper, part.pvalue
        shown = p <= alpha
        color = FAINT if not shown else LOW if value > 0 else HIGH
        ax.plot([low, high], [row, row], color=color, linewidth=2.2 if shown else 1.1)
        marker = NOT_SHOWN if not shown else SHOWN_LOW if value > 0 else SHOWN_HIGH
        ax.plot(
            [value],
            [row],
            marker,
            color=color,
            markersize=6,
            markerfacecolor=color if shown else "white",
        )
        ax.annotate(
            f"{rounded(value, low, high, '+')}  p {p:.3f}".replace("-", "\N{MINUS SIGN}"),
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize="small",
            color=INK if shown else FAINT,
        )
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    reach = 1.1 * float(np.nanmax(np.abs([[r.lower, r.upper] for r in rows]), initial=0.02))
    ax.set_xlim(-reach, reach)
    ax.set_xlabel(BIAS)
    ax.xaxis.set_major_formatter(FuncFormatter(signed))
    sides: tuple[tuple[float, Literal["left", "right"], str, str], ...] = (
        (0.49, "right", f"◀ {OVER}", HIGH),
        (0.51, "left", f"{UNDER} ▶", LOW),
    )
    for x, side, words, color in sides:
        place: dict[str, Any] = {"transform": ax.transAxes, "va": "bottom", "fontsize": "small"}
        ax.text(x, 1.01, words, ha=side, color=color, **place)


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
        groups, own = self.table.groups[: self.max_groups], ax is None
        labels = [
            f"{in_two_lines(g.name)}  ({g.rows:,}{', few' if g.small else ''})" for g in groups
        ]
        lines = len(labels) + 0.6 * sum("\n" in label for label in labels)
        self.figure_, self.ax_ = axes_of(ax, (7.6, 1.3 + 0.29 * lines))
        forest(self.ax_, labels, groups, self.table.alpha)
        together = "for all groups at once" if self.table.simultaneous else "each alone"
        cover = f"{100 * (1 - self.table.alpha):g} %"
        left = len(self.table.groups) - len(groups)
        more = f"; {left:,} more groups not drawn" if left else ""
        title = f"Bias by group, {cover} intervals ({together}{more})"
        titled(self.figure_, self.ax_, title, own=own)


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
        slices, own = self.table.slices[: self.max_slices], ax is None
        self.figure_, self.ax_ = axes_of(ax, (8.2, 1.4 + 0.42 * max(len(slices), 1)))
        if slices:
            labels = [f"{in_two_lines(part.rule)}  ({part.rows:,})" for part in slices]
            forest(self.ax_, labels, slices, self.table.alpha)
        else:
            words = "no rule stands out"
            self.ax_.text(0.5, 0.5, words, ha="center", transform=self.ax_.transAxes)
            self.ax_.set_axis_off()
        told = f"{len(self.table.confirmed)} of {len(self.table)} confirmed on other rows"
        titled(self.figure_, self.ax_, f"Slices: {told}", own=own)


@dataclass(eq=False)
class ComparisonDisplay(Display, shows=Comparison, made_by="compare"):
    """What several models do to the user's numbers: bias with interval, a panel for each task.

    Attributes
    ----------
    comparison : Comparison
        Of `compare`. Without tasks, scores and p-values are shown.
    axes_ : list of matplotlib axes
        After `plot`, one for each task or score; in given axes the first only.
    """

    comparison: Comparison
    axes_: list[Axes] = field(default_factory=list, repr=False)

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Axes | None = None) -> Self:
        """Draw a comparison at hand.

        Parameters
        ----------
        comparison : Comparison
            Of `compare`, with tasks.
        ax : matplotlib axes, optional
            Where to draw the first task; default: a new figure with a panel for each task.

        Returns
        -------
        ComparisonDisplay
            Drawn; `axes_` has a panel for each task, with all models in it one below the other, or
            the given axes alone.
        """
        return cls(comparison).plot(ax)

    def _paint(self, ax: Axes | None) -> None:
        models = self.comparison.models
        if not models[0].tasks:
            scores = DotsDisplay(self.comparison).plot(ax)
            self.figure_, self.ax_, self.axes_ = scores.figure_, scores.ax_, scores.axes_
            return
        count = len(models[0].tasks) if ax is None else 1
        if ax is None:
            height = (1.2 + 0.5 * len(models)) * count
            self.figure_, self.axes_ = panels_of(count, 1, (7.6, height))
        else:
            self.figure_, ax = axes_of(ax, (0, 0))
            self.axes_ = [ax]
        for k, panel in enumerate(self.axes_):
            results = [model.tasks[k] for model in models]
            forest(panel, [_scored(model) for model in models], results, self.comparison.alpha)
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
        self.ax_ = self.axes_[0]


def _scored(model: ModelReport) -> str:
    name = short(model.name, 30)
    return f"{name}\naccuracy {model.accuracy:.3f}, Brier {model.brier:.3f}, ECE {model.ece:.3f}"


@dataclass(eq=False)
class PartDisplay(Display, shows=PartBias, made_by="bias_groups or bias_slices"):
    """The bias of one group or slice with its interval.

    Attributes
    ----------
    part : GroupBias or Slice
        One of a table.
    alpha : float
        The marker is filled where the p-value is at most this; 0.05 by default.
    """

    part: PartBias
    alpha: float = 0.05

    def _paint(self, ax: Axes | None) -> None:
        own = ax is None
        self.figure_, self.ax_ = axes_of(ax, (7.0, 1.75))
        where = f"{in_two_lines(str(self.part.where))}  ({self.part.rows:,})"
        forest(self.ax_, [where], [self.part], self.alpha)
        rates = f"predicted {self.part.predicted:.3f}, observed {self.part.observed:.3f}"
        titled(self.figure_, self.ax_, rates, own=own)


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
        own, task = ax is None, self.task
        self.figure_, self.ax_ = axes_of(ax, (7.0, 1.9))
        forest(self.ax_, [str(task.finding)], [task], task.alpha)
        if task.tolerance is not None:
            reach = 1.1 * max(task.tolerance, *(abs(end) for end in self.ax_.get_xlim()))
            self.ax_.set_xlim(-reach, reach)
            self.ax_.axvspan(-task.tolerance, task.tolerance, color=PALE, alpha=0.5, zorder=0)
        ends = task.lower, task.upper
        sides = (
            f"{rounded(task.from_labels, *ends)} with labels",
            f"{rounded(task.plugin, *ends)} with probabilities",
        )
        told = " \N{MINUS SIGN} ".join(sides)
        within = "" if task.tolerance is None else f"; grey: tolerance {task.tolerance:g}"
        self.ax_.set_xlabel(f"bias: {told}{within}")
        titled(self.figure_, self.ax_, short(task_title(task), 76), own=own)
