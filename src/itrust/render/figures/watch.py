"""A watch over time: evidence on a log scale with the alarm line, and rates beside predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust._core import FloatArray
from itrust.render.figures.style import (
    FAINT,
    HIGH,
    INK,
    LOW,
    PALE,
    Display,
    axes_of,
    draw,
    panels_of,
    short,
    titled,
)
from itrust.render.showing import as_text
from itrust.render.text.watch import headline
from itrust.render.text.watch_parts import evidence_text, number_words, since_words
from itrust.watch import (
    BatchRecord,
    LevelSoFar,
    NumberSoFar,
    Onset,
    RaisedAlarm,
    Segment,
    WatchedModel,
    WatchFinding,
    WatchReport,
    watch_report,
)

MANY = 60  # batches from which on no markers are drawn
LOWEST = math.log10(0.01)  # evidence below it is drawn there


@dataclass(eq=False)
class WatchReportDisplay(Display, shows=WatchReport, made_by="watch_report"):
    """Evidence over time on a log scale with the alarm line, and rates of every batch."""

    report: WatchReport
    axes_: list[Axes] = field(default_factory=list, repr=False)

    def _paint(self, ax: Axes | None) -> None:
        if ax is None:
            heights = {"gridspec_kw": {"height_ratios": [2, 1]}, "sharex": True}
            self.figure_, self.axes_ = panels_of(2, 1, (8.2, 5.4), **heights)
            _rates(self.axes_[1], self.report.history)
            self.axes_[1].set_xlabel("batch")
        else:
            self.figure_, given = axes_of(ax, (0, 0))
            self.axes_ = [given]
            given.set_xlabel("batch")
        self.ax_ = self.axes_[0]
        _evidence(self.ax_, self.report)
        told = headline(self.report)
        if self.report.since is not None:
            told += f", {since_words(self.report.since)}"
        titled(self.figure_, self.ax_, short(f"Watch: {told}", 90), own=ax is None)


@dataclass(eq=False)
class WatchDisplay(Display, shows=WatchedModel, made_by="Watch.start"):
    """A watch over time, as `WatchReportDisplay` draws it.

    Attributes
    ----------
    watch : Watch
        Of `Watch.start`, after any number of batches.
    axes_ : list of matplotlib axes
        After `plot`: the evidence, and the rates below it; in given axes the evidence only.
    """

    watch: WatchedModel
    axes_: list[Axes] = field(default_factory=list, repr=False)

    def _paint(self, ax: Axes | None) -> None:
        drawn = WatchReportDisplay(watch_report(self.watch)).plot(ax)
        self.figure_, self.ax_, self.axes_ = drawn.figure_, drawn.ax_, drawn.axes_


def _evidence(ax: Axes, report: WatchReport) -> None:
    line = report.log_line / math.log(10)
    values = _in_digits([record.log_evalue for record in report.history])
    finite = values[np.isfinite(values)]
    top = 1.15 * max(line, float(finite.max(initial=0.0)))
    drawn = np.clip(np.where(np.isposinf(values), top, values), LOWEST, top)
    numbers = np.array([record.number for record in report.history], dtype=float)
    ax.axhline(line, color=HIGH, linewidth=1.4, linestyle=(0, (5, 3)), zorder=2)
    ax.annotate(
        f"alarm at {evidence_text(report.log_line)}",
        (0.005, line),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        color=HIGH,
        fontsize="small",
    )
    if report.since is not None:
        ends = report.since.lower - 0.5, report.since.upper + 0.5
        ax.axvspan(*ends, color=PALE, alpha=0.6, zorder=0)
    for number in range(len(report.segments)):
        own = np.array([record.segment == number for record in report.history], dtype=bool)
        if number and own.any():
            ax.axvline(numbers[own][0] - 0.5, color=FAINT, linewidth=0.9, linestyle=":")
        mark = "o" if numbers.size <= MANY else ""
        ax.plot(numbers[own], drawn[own], f"{mark}-", color=INK, linewidth=1.3, markersize=3.5)
    raised = np.array([record.raised for record in report.history], dtype=bool)
    if raised.any():
        ax.plot(numbers[raised], drawn[raised], "^", color=HIGH, markersize=8, zorder=5)
    ax.set_ylim(min(LOWEST, -0.3) if (drawn < -0.3).any() else -0.3, top * 1.05)
    ax.set_ylabel("evidence (log scale)")
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(_power))
    if numbers.size:
        ax.set_xlim(0.5, numbers[-1] + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))


def _in_digits(logs: Sequence[float]) -> FloatArray:
    return np.array(logs, dtype=float) / math.log(10)


def _power(value: float, _: object = None) -> str:
    """A tick of the evidence: 1, 10, 100, then powers of ten."""
    if 0 <= value < 4:
        return f"{10**value:,.0f}"
    return f"1e{value:+.0f}".replace("-", "\N{MINUS SIGN}")


def _rates(ax: Axes, history: Sequence[BatchRecord]) -> None:
    numbers = [record.number for record in history]
    mark = "o" if len(numbers) <= MANY else "."
    ax.plot(numbers, [record.mean_label for record in history], mark, color=LOW, markersize=4)
    ax.plot(numbers, [record.mean_prediction for record in history], "-", color=INK)
    for text, color, x in (("● observed", LOW, 0.0), ("— predicted", INK, 0.14)):
        ax.text(x, 1.02, text, color=color, transform=ax.transAxes, va="bottom", fontsize="small")
    ax.set_ylabel("mean")


@dataclass(eq=False)
class NumberSoFarDisplay(Display, shows=NumberSoFar, made_by="Watch.tasks"):
    """A number so far: the bias with its confidence sequence as it is now."""

    number: NumberSoFar

    def _paint(self, ax: Axes | None) -> None:
        own = self.number
        self.figure_, self.ax_ = axes_of(ax, (7.0, 1.6))
        self.ax_.axvline(0, color=FAINT, linewidth=0.8)
        if math.isfinite(own.lower) and math.isfinite(own.upper):
            self.ax_.plot([own.lower, own.upper], [0, 0], color=INK, linewidth=2)
        if math.isfinite(own.bias):
            self.ax_.plot([own.bias], [0], "o", color=INK)
        self.ax_.set_yticks([0], [number_words(own)])
        self.ax_.set_xlabel("bias: with labels \N{MINUS SIGN} with probabilities")
        titled(self.figure_, self.ax_, short(str(own.task), 76), own=ax is None)


@dataclass(eq=False)
class _WrittenDisplay(Display):
    """What has no scale of its own: one sentence."""

    result: LevelSoFar | Onset | RaisedAlarm | Segment | BatchRecord | WatchFinding

    def __post_init__(self) -> None:
        """Nothing to check: `draw` hands in what is registered below."""

    def _paint(self, ax: Axes | None) -> None:
        self.figure_, self.ax_ = axes_of(ax, (7.0, 1.2))
        self.ax_.set_axis_off()
        text = as_text(self.result)
        self.ax_.text(0.0, 0.5, short(text, 110), transform=self.ax_.transAxes, va="center")


for _kind in (LevelSoFar, Onset, RaisedAlarm, Segment, BatchRecord, WatchFinding):
    draw.register(_kind, _WrittenDisplay._drawn)
