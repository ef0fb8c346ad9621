"""A watch over time: evidence on a log scale with the alarm line, and rates beside predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust.render.figures.style import FAINT, HIGH, INK, LOW, PALE, Display, draw, short
from itrust.render.text.watch import evidence_text, headline, since_words
from itrust.watch import BatchRecord, Watch, WatchReport, watch_report

MANY = 60  # batches from which on no markers are drawn
LOWEST = math.log10(0.01)  # evidence below it is drawn there


@dataclass(eq=False)
class WatchDisplay(Display, shows=WatchReport, made_by="Watch.report"):
    """Evidence over time on a log scale with the alarm line, and rates of every batch.

    Attributes
    ----------
    report : WatchReport
        Of a `Watch`, after any number of batches. In given axes the evidence alone is drawn.
    """

    report: WatchReport

    def _paint(self, ax: Axes | None) -> None:
        heights = {"gridspec_kw": {"height_ratios": [2, 1]}, "sharex": True}
        panels = self._panels(ax, (8.2, 5.4), (2, 1), **heights)
        _evidence(panels[0], self.report)
        if ax is None:
            _rates(panels[1], self.report.history)
        panels[-1].set_xlabel("batch")
        words = headline(self.report)
        if self.report.since is not None:
            words += f", {since_words(self.report.since)}"
        self._titled(short(f"Watch: {words}", 90), ax)


@draw.register
def _(result: Watch, ax: Axes | None = None) -> Display:
    return WatchDisplay(watch_report(result)).plot(ax)


def _evidence(ax: Axes, report: WatchReport) -> None:
    line = report.log_line / math.log(10)
    values = np.array([record.log_evalue for record in report.history]) / math.log(10)
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
