"""Pictures of evidence: reliability, redrawn labels, decisions, violations, and a watch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust._core import InputError
from itrust.calibration import CalibrationResult, ReliabilityCurve, Validation
from itrust.data import Sample
from itrust.overturn import Robustness, Tipping
from itrust.render.figures import style
from itrust.render.figures.style import Display, paint
from itrust.render.text.overturning import NAMES
from itrust.render.text.watch import evidence_text, headline, since_words
from itrust.watch import BatchRecord, Watch, WatchReport, watch_report

HISTOGRAM_BARS = 40
SIZES = {"selection": "odds off by a factor of", "tolerance": "bias that is let pass"}
MANY = 60  # batches from which on no markers are drawn
LOWEST = math.log10(0.01)  # evidence below it is drawn there


@paint.register
def _(
    curve: ReliabilityCurve,
    display: Display,
    ax: Axes | None,
    *,
    sample: Sample | None = None,
    name: str = "model",
) -> None:
    """Observed rate against prediction; above a histogram of the predictions of a sample."""
    below: Axes | None = None
    if ax is None and sample is not None:
        heights: dict[str, Any] = {"height_ratios": (5, 1), "sharex": True}
        ax, below = style.new_panels(display, None, (5.2, 5.8), (2, 1), **heights)
    else:
        [ax] = style.new_panels(display, ax, (5.2, 4.9))
        if sample is not None:
            below = ax.inset_axes((0, 0, 1, 0.14), sharex=ax, zorder=0)
            below.set_axis_off()
    ax.plot([0, 1], [0, 1], color=style.FAINT, linewidth=0.9, linestyle="--", label="calibrated")
    errors = np.stack([curve.observed - curve.lower, curve.upper - curve.observed]).clip(min=0)
    label = f"{style.in_legend(name)}, 95 % interval of each"
    looks: dict[str, Any] = {
        "color": style.INK,
        "markersize": 4.5,
        "linewidth": 1.2,
        "capsize": 2.5,
    }
    ax.errorbar(curve.predicted, curve.observed, yerr=errors, fmt="o-", label=label, **looks)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), ylabel="observed rate")
    ax.set_title("Reliability")
    ax.text(0.03, 0.97, style.UNDER, va="top", color=style.FAINT, fontsize="small")
    ax.text(0.97, 0.03, style.OVER, ha="right", color=style.FAINT, fontsize="small")
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0.93))
    if below is not None and sample is not None:
        counts, edges = np.histogram(
            sample.p, bins=HISTOGRAM_BARS, range=(0, 1), weights=sample.weights_or_ones
        )
        below.stairs(counts, edges, fill=True, color=style.PALE, edgecolor=style.FAINT)
        below.set(ylabel="rows", ylim=(0, None))
        below.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    last = ax if below is None or not below.axison else below
    last.set_xlabel("predicted probability")


@paint.register
def _(result: CalibrationResult, display: Display, ax: Axes | None) -> None:
    """What redrawn labels give, and what the data gave."""
    drawn = result.null_distribution
    if drawn is None:
        raise InputError(f"{type(result.null).__name__} has a formula and no draws to show")
    [ax] = style.new_panels(display, ax, (6.2, 3.4))
    ax.hist(drawn, bins=min(60, max(10, drawn.size // 12)), color=style.PALE, edgecolor="white")
    observed, low, high = result.score, float(drawn.min()), float(drawn.max())
    reach = max(high - low, 1e-12)
    off = observed > high + 1.5 * reach
    at = high + 0.8 * reach if off else observed
    ax.axvline(at, color=style.INK, linewidth=2, linestyle=":" if off else "-")
    told = f"observed {observed:.4g}, far off →" if off else "observed"
    left = not off and observed < (low + high) / 2
    ax.annotate(
        f" {told} \n p = {result.pvalue:.3g} ",
        (at, 0.97),
        xycoords=("data", "axes fraction"),
        ha="left" if left else "right",
        va="top",
        color=style.INK,
        fontweight="bold",
    )
    if off:
        ax.set_xlim(low - 0.05 * reach, at + 0.05 * reach)
    what = "largest score" if result.score != result.statistic else "KLCE²"
    ax.set(xlabel=what, ylabel="draws")
    ax.set_title(f"If the model were calibrated: {result.draws:,} draws")


@paint.register
def _(validation: Validation, display: Display, ax: Axes | None, *, name: str = "model") -> None:
    """Net benefit of the model, of acting on every row and of acting on none, by threshold."""
    [ax] = style.new_panels(display, ax, (5.6, 4.0))
    points = validation.decision
    at = [own.threshold for own in points]
    worth = [own.net_benefit for own in points]
    ax.axhline(0.0, color=style.FAINT, linewidth=0.9, label="act on none")
    ax.plot(at, [own.treat_all for own in points], "--", color=style.FAINT, label="act on all")
    ax.plot(at, worth, "o-", color=style.INK, markersize=4, label=name)
    top = max([*worth, *(own.treat_all for own in points), 0.01])
    ax.set_ylim(-0.35 * top, 1.1 * top)
    ax.set(xlabel="threshold", ylabel="net benefit by row")
    ax.set_title("Decision curve")
    ax.legend(loc="upper right")


@paint.register
def _(robustness: Robustness, display: Display, ax: Axes | None) -> None:
    """P-values over the size of every kind of violation."""
    kinds = robustness.violations
    panels = style.new_panels(display, ax, (9.6, 5.0), (2, 3), sharey=True)
    for panel, tipping in zip(panels, kinds, strict=False):
        panel.plot(tipping.sizes, tipping.pvalues, color=style.INK, marker="o", markersize=3)
        panel.set(ylim=(-0.02, 1.02), ylabel="p-value")
        _sizes(panel, tipping)
        panel.set_title(NAMES[tipping.kind], fontsize="medium")
    for spare in panels[len(kinds) :]:
        spare.set_axis_off()
    style.titled(display, "What would overturn the evidence", ax)


def _sizes(ax: Axes, tipping: Tipping) -> None:
    if tipping.point is not None:
        ax.axvline(tipping.point, color=style.HIGH, linestyle=(0, (5, 3)))
    ax.set_xlabel(SIZES.get(tipping.kind, "share of labels in error"))
    if tipping.kind == "selection":
        ax.set_xscale("log")
        largest = max(float(tipping.sizes[-1]), 1.5)
        ticks = [tick for tick in (1, 1.2, 1.5, 2, 3, 5, 10) if tick <= largest]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlim(0.98, 1.03 * largest)


@paint.register
def _(report: WatchReport, display: Display, ax: Axes | None) -> None:
    """Evidence on a log scale with the alarm line, and rates; in given axes the evidence alone."""
    heights = {"gridspec_kw": {"height_ratios": [2, 1]}, "sharex": True}
    panels = style.new_panels(display, ax, (8.2, 5.4), (2, 1), **heights)
    _evidence(panels[0], report)
    if ax is None:
        _rates(panels[1], report.history)
    panels[-1].set_xlabel("batch")
    words = headline(report)
    if report.since is not None:
        words += f", {since_words(report.since)}"
    style.titled(display, style.short(f"Watch: {words}", 90), ax)


@paint.register
def _(watch: Watch, display: Display, ax: Axes | None) -> None:
    paint(watch_report(watch), display, ax)


def _evidence(ax: Axes, report: WatchReport) -> None:
    line = report.log_line / math.log(10)
    values = np.array([record.log_evalue for record in report.history]) / math.log(10)
    finite = values[np.isfinite(values)]
    top = 1.15 * max(line, float(finite.max(initial=0.0)))
    drawn = np.clip(np.where(np.isposinf(values), top, values), LOWEST, top)
    numbers = np.array([record.number for record in report.history], dtype=float)
    ax.axhline(line, color=style.HIGH, linewidth=1.4, linestyle=(0, (5, 3)), zorder=2)
    ax.annotate(
        f"alarm at {evidence_text(report.log_line)}",
        (0.005, line),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        color=style.HIGH,
        fontsize="small",
    )
    if report.since is not None:
        ends = report.since.lower - 0.5, report.since.upper + 0.5
        ax.axvspan(*ends, color=style.PALE, alpha=0.6, zorder=0)
    for number in range(len(report.segments)):
        own = np.array([record.segment == number for record in report.history], dtype=bool)
        if number and own.any():
            ax.axvline(numbers[own][0] - 0.5, color=style.FAINT, linewidth=0.9, linestyle=":")
        mark = "o" if numbers.size <= MANY else ""
        ax.plot(
            numbers[own], drawn[own], f"{mark}-", color=style.INK, linewidth=1.3, markersize=3.5
        )
    raised = np.array([record.raised for record in report.history], dtype=bool)
    if raised.any():
        ax.plot(numbers[raised], drawn[raised], "^", color=style.HIGH, markersize=8, zorder=5)
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
    ax.plot(numbers, [record.mean_label for record in history], mark, color=style.LOW, markersize=4)
    ax.plot(numbers, [record.mean_prediction for record in history], "-", color=style.INK)
    for text, color, x in (("● observed", style.LOW, 0.0), ("— predicted", style.INK, 0.14)):
        ax.text(x, 1.02, text, color=color, transform=ax.transAxes, va="bottom", fontsize="small")
    ax.set_ylabel("mean")
