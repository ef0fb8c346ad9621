"""Pictures of what was found (matplotlib), in scikit-learn's Display convention.

Each display keeps its data: make one with `from_sample`, or hand the result in, then `.plot(ax=)`.
Nothing is computed while drawing. Colours are told apart by colour-blind people, and signs also by
hatching, line style or marker, so that a print in grey can be read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, Literal, Self

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust._core import BoolArray, FloatArray, InputError
from itrust.auditing import Comparison, ModelReport
from itrust.bias import (
    ALL_ROWS,
    Axis,
    BiasCurve,
    BiasMap,
    CubicFit,
    CurvePart,
    GroupTable,
    LocalBias,
    SliceTable,
    bias_curve,
    bias_groups,
    bias_map,
    bias_slices,
    local_bias,
)
from itrust.calibration import (
    Bins,
    CalibrationResult,
    EqualMass,
    ReliabilityCurve,
    klce_test,
    reliability_curve,
)
from itrust.data import Sample

__all__ = [
    "BiasCurveDisplay",
    "BiasMapDisplay",
    "ComparisonDisplay",
    "CubicDisplay",
    "GroupDisplay",
    "NullDisplay",
    "ReliabilityDisplay",
    "SliceDisplay",
]

LOW, HIGH = "#b35806", "#542788"  # the model is too low, too high: the ends of PuOr
LONG_LABELS = 48  # characters on an axis above which they are turned
INK, FAINT, PALE = "#222222", "#767676", "#d9d9d9"
CYCLE = ("#222222", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#8c6d31", "#7f7f7f")  # no sign's
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
UNDER, OVER = "model underestimates", "model overestimates"
BIAS = "bias (observed \N{MINUS SIGN} predicted)"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # a column name may hold a dollar sign
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": "small",
    "font.size": 10,
}


@singledispatch
def draw(result: object, ax: Axes | None = None, **settings: Any) -> Any:
    """Draw a result; displays register what they draw."""
    raise TypeError(f"a {type(result).__name__} has no picture (asked for {ax!r}, {settings!r})")


def _checked(result: object, kind: type, made_by: str) -> None:
    if not isinstance(result, kind):
        raise InputError(
            f"this display shows a {kind.__name__}, as {made_by} gives it, not a "
            f"{type(result).__name__}"
        )


def _axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    if ax is None:
        return plt.subplots(figsize=size, layout="constrained")
    if not isinstance(ax, Axes):
        raise InputError(f"ax must be matplotlib Axes, such as plt.subplots()[1], not a {type(ax)}")
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure, ax


def _title(figure: Figure, ax: Axes, text: str, *, own: bool) -> None:
    """At the left of a figure of our own, where long labels leave the axes little room."""
    if own:
        figure.suptitle(text, x=0.01, ha="left", fontsize="medium", fontweight="bold")
    else:
        ax.set_title(text, pad=20)


def _signed(value: float, _: object = None) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:+.3g}".replace("-", "\N{MINUS SIGN}")


def _bias_axis(ax: Axes, which: str = "y") -> None:
    axis = ax.yaxis if which == "y" else ax.xaxis
    axis.set_major_formatter(FuncFormatter(_signed))
    (ax.axhline if which == "y" else ax.axvline)(0, color=FAINT, linewidth=0.8, zorder=1)


def _sign_words(ax: Axes, side: Literal["left", "right"] = "left") -> None:
    """Say at the ends of a vertical bias axis what its signs mean."""
    x = 0.01 if side == "left" else 0.99
    for y, words, place in ((0.99, f"↑ {UNDER}", "top"), (0.01, f"↓ {OVER}", "bottom")):
        ax.text(
            x,
            y,
            words,
            transform=ax.transAxes,
            ha=side,
            va=place,
            color=FAINT,
            fontsize="small",
            zorder=5,
        )


def _short(text: str, width: int = 44) -> str:
    if len(text) <= width:
        return text
    short = textwrap.shorten(text, width, placeholder=" …")
    return short if len(short) > width // 2 else f"{text[: width - 2]} …"


@dataclass(eq=False)
class ReliabilityDisplay:
    """Observed rate against prediction, with intervals, above a histogram of the predictions.

    Attributes
    ----------
    curve : ReliabilityCurve
    counts, edges : arrays
        The histogram.
    ax_, histogram_ax_, figure_
        After `plot`.
    """

    curve: ReliabilityCurve
    counts: FloatArray
    edges: FloatArray
    name: str = "model"

    @classmethod
    def from_sample(
        cls,
        sample: Sample,
        bins: Bins | None = None,
        *,
        name: str = "model",
        ax: Axes | None = None,
    ) -> Self:
        """Compute and draw; default bins: ten of equal mass."""
        curve = reliability_curve(sample, EqualMass(10) if bins is None else bins)
        counts, edges = np.histogram(
            sample.p, bins=40, range=(0, 1), weights=sample.weights_or_ones
        )
        return cls(curve, counts.astype(float), edges, name).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw."""
        with mpl.rc_context(STYLE):
            if ax is None:
                self.figure_, (ax, below) = plt.subplots(
                    2,
                    1,
                    figsize=(5.2, 5.8),
                    height_ratios=(5, 1),
                    sharex=True,
                    layout="constrained",
                )
            else:
                self.figure_, ax = _axes(ax, (0, 0))
                below = ax.inset_axes((0, 0, 1, 0.14), sharex=ax, zorder=0)
                below.set_axis_off()
            c = self.curve
            ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.9, linestyle="--", label="right")
            errors = np.stack([c.observed - c.lower, c.upper - c.observed]).clip(min=0)
            ax.errorbar(
                c.predicted,
                c.observed,
                yerr=errors,
                fmt="o-",
                color=INK,
                markersize=4.5,
                linewidth=1.2,
                elinewidth=1.2,
                capsize=2.5,
                label=f"{self.name}, 95 % interval of each",
            )
            ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), ylabel="observed rate")
            ax.set_title("Reliability")
            ax.text(0.03, 0.97, UNDER, va="top", color=FAINT, fontsize="small")
            ax.text(0.97, 0.03, OVER, ha="right", color=FAINT, fontsize="small")
            ax.legend(loc="upper left", bbox_to_anchor=(0, 0.93))
            below.stairs(self.counts, self.edges, fill=True, color=PALE, edgecolor=FAINT)
            below.set(ylabel="rows", ylim=(0, None))
            below.yaxis.set_major_locator(MaxNLocator(2, integer=True))
            (below if below.axison else ax).set_xlabel("predicted probability")
            self.ax_, self.histogram_ax_ = ax, below
        return self


@dataclass(eq=False)
class NullDisplay:
    """What redrawn labels give, and what the data gave."""

    result: CalibrationResult

    def __post_init__(self) -> None:
        _checked(self.result, CalibrationResult, "klce_test")

    @classmethod
    def from_sample(cls, sample: Sample, *, ax: Axes | None = None, **settings: Any) -> Self:
        """Run `klce_test` with these settings and draw."""
        return cls(klce_test(sample, **settings)).plot(ax)

    @classmethod
    def from_result(cls, result: CalibrationResult, *, ax: Axes | None = None) -> Self:
        """Draw a result at hand."""
        return cls(result).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw."""
        drawn = self.result.null_distribution
        if drawn is None:
            raise InputError(
                f"{type(self.result.null).__name__} has a formula and no draws to show"
            )
        with mpl.rc_context(STYLE):
            self.figure_, ax = _axes(ax, (6.2, 3.4))
            ax.hist(drawn, bins=min(60, max(10, drawn.size // 12)), color=PALE, edgecolor="white")
            observed, low, high = self.result.score, float(drawn.min()), float(drawn.max())
            reach = max(high - low, 1e-12)
            off = observed > high + 1.5 * reach
            at = high + 0.8 * reach if off else observed
            ax.axvline(at, color=LOW, linewidth=2, linestyle=":" if off else "-")
            told = f"observed {observed:.4g}, far off →" if off else "observed"
            left = not off and observed < (low + high) / 2
            ax.annotate(
                f" {told} \n p = {self.result.pvalue:.3g} ",
                (at, 0.97),
                xycoords=("data", "axes fraction"),
                ha="left" if left else "right",
                va="top",
                color=LOW,
                fontweight="bold",
            )
            if off:
                ax.set_xlim(low - 0.05 * reach, at + 0.05 * reach)
            what = "largest score" if self.result.score != self.result.statistic else "KLCE²"
            ax.set(xlabel=what, ylabel="draws")
            ax.set_title(f"If the model were right: {self.result.draws:,} draws")
            self.ax_ = ax
        return self


@dataclass(eq=False)
class BiasCurveDisplay:
    """Bias along a covariate with its confidence band, one panel a group.

    Where the curve is drawn thick, the model is shown to be wrong (adjusted p-values).
    """

    curve: BiasCurve
    axes_: list[Axes] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        _checked(self.curve, BiasCurve, "bias_curve")

    @classmethod
    def from_sample(
        cls,
        sample: Sample,
        name: str,
        by: str | Sequence[str] = (),
        *,
        ax: Axes | None = None,
        **settings: Any,
    ) -> Self:
        """Compute the curve with these settings of `bias_curve` and draw it."""
        return cls(bias_curve(sample, name, by, **settings)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; with `ax`, all groups in one panel."""
        parts = self.curve.parts
        with mpl.rc_context(STYLE):
            if ax is None and len(parts) > 1:
                across = 2 if len(parts) == 4 else min(len(parts), 3)
                down = -(-len(parts) // across)
                self.figure_, grid = plt.subplots(
                    down,
                    across,
                    figsize=(3.3 * across + 0.6, 2.7 * down + 0.5),
                    sharex=True,
                    sharey=True,
                    squeeze=False,
                    layout="constrained",
                )
                panels = list(grid.flat)
                for panel in panels[len(parts) :]:
                    panel.set_visible(False)
                for panel in panels[max(len(parts) - across, 0) : len(parts)]:
                    panel.tick_params(labelbottom=True)
                    panel.set_xlabel(_short(self.curve.axis.name, 40))
                for panel in panels[: len(parts) : across]:
                    panel.set_ylabel(BIAS)
            else:
                self.figure_, ax = _axes(ax, (6.2, 3.8))
                panels = [ax] * len(parts)
            alone = panels[0] is not panels[-1] or len(parts) == 1
            for k, (part, panel) in enumerate(zip(parts, panels, strict=False)):
                self._draw(panel, part, CYCLE[0 if alone else k % len(CYCLE)], STYLES[k % 4], alone)
            self._limits(panels[0])
            if panels[0] is panels[-1]:
                panels[0].set(xlabel=_short(self.curve.axis.name, 60), ylabel=BIAS)
            _date_ticks(panels[0], self.curve.axis)
            _sign_words(panels[0])
            cover = f"{100 * (1 - self.curve.bias.alpha):g} %"
            title = f"Bias along {_short(self.curve.axis.name, 40)}"
            note = f"band: {cover} confidence, all points at once; thick: shown to be wrong"
            if alone and len(parts) > 1:
                self.figure_.suptitle(f"{title}   ({note})", x=0.01, ha="left", fontsize=10)
            else:
                panels[0].set_title(f"{title}\n", fontsize=11)
                panels[0].text(
                    0, 1.02, note, transform=panels[0].transAxes, fontsize=8, color=FAINT
                )
                if len(parts) > 1:
                    panels[0].legend(loc="best")
            self.axes_ = list(dict.fromkeys(panels))
            self.ax_ = self.axes_[0]
        return self

    def _draw(self, ax: Axes, part: CurvePart, color: str, style: str, alone: bool) -> None:
        ax.fill_between(
            part.grid, part.band.lower, part.band.upper, color=color, alpha=0.14, linewidth=0
        )
        style = "-" if alone else style
        if not part.known:
            if alone:
                ax.text(0.5, 0.6, "too few rows", transform=ax.transAxes, ha="center", color=FAINT)
                ax.set_title(f"{_short(part.group)}\n{part.rows:,} rows", fontsize=9)
            return
        ax.plot(part.grid, part.values, color=color, linestyle=style, label=_short(part.group))
        wrong = np.nan_to_num(part.pvalues, nan=1.0) <= self.curve.bias.alpha
        for sign, tone in ((1, LOW), (-1, HIGH)):
            told = np.where(wrong & (sign * part.values > 0), part.values, np.nan)
            ax.plot(
                part.grid,
                told,
                color=tone if alone else color,
                linewidth=3.4,
                solid_capstyle="round",
                linestyle=style,
                marker="o",  # a single point has no line
                markersize=2.6,
            )
        _bias_axis(ax)
        if alone and part.group != ALL_ROWS:
            ax.set_title(f"{_short(part.group)}\n{part.rows:,} rows", fontsize=9)

    def _limits(self, ax: Axes) -> None:
        """Room for curves and most of the bands; where bands burst, they run out of sight."""
        parts = self.curve.parts
        values = np.concatenate([part.values for part in parts])
        ends = np.concatenate([np.abs([p.band.lower, p.band.upper]).ravel() for p in parts])
        known = ends[np.isfinite(ends)]
        if known.size:
            reach = max(float(np.nanmax(np.abs(values))), float(np.quantile(known, 0.9)), 0.02)
            ax.set_ylim(-1.15 * reach, 1.15 * reach)


def _date_ticks(ax: Axes, axis: Axis) -> None:
    if axis.column.kind == "date":
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: axis.column.shown(value)))


@dataclass(eq=False)
class CubicDisplay:
    """The paper's picture: cubic fits of the local bias against a covariate, by group."""

    fit: CubicFit

    def __post_init__(self) -> None:
        _checked(self.fit, CubicFit, "LocalBias.cubic")

    @classmethod
    def from_sample(
        cls,
        sample: Sample,
        name: str,
        by: str | Sequence[str] = (),
        *,
        ax: Axes | None = None,
        **settings: Any,
    ) -> Self:
        """Estimate the local bias with these settings of `local_bias`, fit and draw."""
        return cls(local_bias(sample, **settings).cubic(name, by)).plot(ax)

    @classmethod
    def from_bias(
        cls, bias: LocalBias, name: str, by: str | Sequence[str] = (), *, ax: Axes | None = None
    ) -> Self:
        """Fit and draw."""
        _checked(bias, LocalBias, "local_bias")
        return cls(bias.cubic(name, by)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw points and cubics."""
        with mpl.rc_context(STYLE):
            self.figure_, ax = _axes(ax, (6.8, 4.4))
            order = sorted([group.group for group in self.fit.groups] + [*self.fit.left_out])
            for group in self.fit.groups:
                k = order.index(group.group)  # as in the curves, whoever is left out
                color, grid = CYCLE[k % len(CYCLE)], np.linspace(*_extent(group.covariate), 200)
                ax.scatter(
                    group.covariate,
                    group.values,
                    s=9,
                    color=color,
                    alpha=0.25,
                    linewidths=0,
                    marker=MARKERS[k % len(MARKERS)],
                )
                ax.plot(
                    grid,
                    group.at(grid),
                    color=color,
                    linestyle=STYLES[k % 4],
                    linewidth=2,
                    label=_short(group.group),
                )
            _bias_axis(ax)
            ax.set(xlabel=_short(self.fit.name, 60), ylabel=BIAS)
            ax.set_title(
                f"Local bias against {_short(self.fit.name, 30)}: cubic fits, no error control"
            )
            ax.legend(loc="lower left")
            _sign_words(ax, "right")
            self.ax_ = ax
        return self


def _extent(values: FloatArray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


@dataclass(eq=False)
class BiasMapDisplay:
    """Bias over two covariates: wrong regions outlined and hatched, empty ones blank."""

    map: BiasMap

    def __post_init__(self) -> None:
        _checked(self.map, BiasMap, "bias_map")

    @classmethod
    def from_sample(
        cls, sample: Sample, first: str, second: str, *, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Compute the map with these settings of `bias_map` and draw it."""
        return cls(bias_map(sample, first, second, **settings)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw."""
        with mpl.rc_context(STYLE):
            self.figure_, ax = _axes(ax, (6.6, 4.6))
            across, up = self.map.axes
            reach = max(float(np.nanmax(np.abs(self.map.values), initial=0.0)), 0.02)
            edges = [_cell_edges(axis.positions) for axis in (across, up)]
            mesh = ax.pcolormesh(
                *edges,
                np.ma.masked_invalid(self.map.values),
                cmap="PuOr_r",
                norm=TwoSlopeNorm(0.0, -reach, reach),
                rasterized=True,
            )
            flagged, values = self.map.flagged, self.map.values
            low, high = flagged & (values > 0), flagged & (values < 0)
            dark = np.abs(np.nan_to_num(values)) > 0.55 * reach
            for shown, hatch, style in ((low, "///", "solid"), (high, "...", "dashed")):
                self._hatch(ax, edges, shown & dark, hatch, "white")
                self._hatch(ax, edges, shown & ~dark, hatch, INK)
                self._outline(ax, edges, shown, style)
            bar = self.figure_.colorbar(mesh, ax=ax, format=FuncFormatter(_signed), pad=0.02)
            bar.set_label(f"{OVER}  ←  bias  →  {UNDER}", fontsize="small")
            bar.outline.set_visible(False)
            for axis, one, name in ((ax.xaxis, across, "x"), (ax.yaxis, up, "y")):
                if one.labels:
                    axis.set_ticks(one.positions, [_short(label, 18) for label in one.labels])
                elif one.column.kind == "date":
                    axis.set_major_locator(MaxNLocator(4))
                    axis.set_major_formatter(FuncFormatter(lambda v, _, o=one: o.column.shown(v)))
                ax.set(**{f"{name}label": _short(one.name, 40)})
            if up.labels:
                ax.invert_yaxis()  # the first level on top, as in tables
            if across.labels and sum(map(len, across.labels)) > LONG_LABELS:
                ax.tick_params(axis="x", rotation=35)
            handles = [
                Patch(facecolor="white", edgecolor=INK, hatch=hatch, label=words)
                for shown, hatch, words in ((low, "///", UNDER), (high, "...", OVER))
                if shown.any()
            ]
            told = "outlined: shown to be wrong" if handles else "nowhere shown to be wrong"
            ax.legend(
                handles=handles,
                loc="lower left",
                bbox_to_anchor=(0, 1.0),
                ncols=2,
                borderaxespad=0.2,
                title=f"Bias over {_short(across.name, 24)} and {_short(up.name, 24)}   ({told}; "
                f"blank: too few rows)",
                alignment="left",
                title_fontsize="small",
            )
            self.ax_ = ax
        return self

    def _hatch(
        self, ax: Axes, edges: list[FloatArray], inside: BoolArray, hatch: str, color: str
    ) -> None:
        x, y = edges
        for row in range(inside.shape[0]):
            runs = np.flatnonzero(np.diff(inside[row].astype(int), prepend=0, append=0))
            for start, stop in zip(runs[::2], runs[1::2], strict=True):
                size = x[stop] - x[start], y[row + 1] - y[row]
                ax.add_patch(
                    Rectangle(
                        (x[start], y[row]),
                        *size,
                        facecolor="none",
                        edgecolor=color,
                        hatch=hatch,
                        linewidth=0,
                        alpha=0.6,
                    )
                )

    def _outline(self, ax: Axes, edges: list[FloatArray], inside: BoolArray, style: str) -> None:
        """Draw the border between inside and outside, black on white."""
        x, y = edges
        padded = np.pad(inside, 1)
        lines: list[list[tuple[float, float]]] = []
        for row, column in zip(*np.nonzero(padded[:, 1:] != padded[:, :-1]), strict=True):
            if 1 <= row <= inside.shape[0]:
                lines.append([(x[column], y[row - 1]), (x[column], y[row])])
        for row, column in zip(*np.nonzero(padded[1:] != padded[:-1]), strict=True):
            if 1 <= column <= inside.shape[1]:
                lines.append([(x[column - 1], y[row]), (x[column], y[row])])
        for color, width in (("white", 2.6), (INK, 1.3)):
            below = style if color == INK else "solid"
            ax.add_collection(
                LineCollection(lines, colors=color, linewidths=width, linestyles=below)
            )


def _cell_edges(positions: FloatArray) -> FloatArray:
    if positions.size == 1:
        return np.array([positions[0] - 0.5, positions[0] + 0.5])
    middle = (positions[1:] + positions[:-1]) / 2
    return np.concatenate(
        [[2 * positions[0] - middle[0]], middle, [2 * positions[-1] - middle[-1]]]
    )


@dataclass(eq=False)
class GroupDisplay:
    """Bias of groups with intervals: a forest plot."""

    table: GroupTable
    most: int = 40

    def __post_init__(self) -> None:
        _checked(self.table, GroupTable, "bias_groups")

    @classmethod
    def from_sample(
        cls, sample: Sample, *names: str, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Compute with these settings of `bias_groups` and draw."""
        return cls(bias_groups(sample, *names, **settings)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw."""
        groups = self.table.groups[: self.most]
        with mpl.rc_context(STYLE):
            own = ax is None
            labels = [
                f"{_wrapped(g.name)}  ({g.rows:,}{', few' if g.small else ''})" for g in groups
            ]
            lines = len(labels) + 0.6 * sum("\n" in label for label in labels)
            self.figure_, ax = _axes(ax, (7.6, 1.3 + 0.29 * lines))
            _forest(
                ax,
                labels,
                np.array([g.bias for g in groups]),
                np.array([[g.lower, g.upper] for g in groups]),
                np.array([g.pvalue for g in groups]),
                self.table.alpha,
            )
            together = "for all groups at once" if self.table.simultaneous else "each alone"
            cover = f"{100 * (1 - self.table.alpha):g} %"
            left = len(self.table.groups) - len(groups)
            more = f"; {left:,} more groups not drawn" if left else ""
            title = f"Bias by group, {cover} intervals ({together}{more})"
            _title(self.figure_, ax, title, own=own)
            self.ax_ = ax
        return self


def _forest(
    ax: Axes,
    labels: list[str],
    values: FloatArray,
    ends: FloatArray,
    pvalues: FloatArray,
    alpha: float,
) -> None:
    """Values with intervals, one a row, filled where the adjusted p-value reaches the level."""
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    for row, (value, (low, high), p) in enumerate(zip(values, ends, pvalues, strict=True)):
        wrong = p <= alpha
        color = FAINT if not wrong else LOW if value > 0 else HIGH
        ax.plot([low, high], [row, row], color=color, linewidth=2.2 if wrong else 1.1)
        marker = "o" if not wrong else ">" if value > 0 else "<"
        ax.plot(
            [value],
            [row],
            marker,
            color=color,
            markersize=6,
            markerfacecolor=color if wrong else "white",
        )
        ax.annotate(
            f"{value:+.3f}  p {p:.3f}".replace("-", "\N{MINUS SIGN}"),
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize="small",
            color=INK if wrong else FAINT,
        )
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    reach = 1.1 * float(np.nanmax(np.abs(ends), initial=0.02))
    ax.set_xlim(-reach, reach)
    ax.set_xlabel(BIAS)
    ax.xaxis.set_major_formatter(FuncFormatter(_signed))
    ax.text(
        0.49,
        1.01,
        f"◀ {OVER}",
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        color=HIGH,
        fontsize="small",
    )
    ax.text(
        0.51,
        1.01,
        f"{UNDER} ▶",
        transform=ax.transAxes,
        ha="left",
        va="bottom",
        color=LOW,
        fontsize="small",
    )


@dataclass(eq=False)
class SliceDisplay:
    """Slices with their bias, intervals and p-values; filled ones are confirmed."""

    table: SliceTable
    most: int = 12

    def __post_init__(self) -> None:
        _checked(self.table, SliceTable, "bias_slices")

    @classmethod
    def from_sample(cls, sample: Sample, *, ax: Axes | None = None, **settings: Any) -> Self:
        """Search with these settings of `bias_slices` and draw."""
        return cls(bias_slices(sample, **settings)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw."""
        slices = self.table.slices[: self.most]
        with mpl.rc_context(STYLE):
            own = ax is None
            self.figure_, ax = _axes(ax, (8.2, 1.4 + 0.42 * max(len(slices), 1)))
            if slices:
                labels = [f"{_wrapped(part.rule)}  ({part.rows:,})" for part in slices]
                _forest(
                    ax,
                    labels,
                    np.array([part.bias for part in slices]),
                    np.array([[part.lower, part.upper] for part in slices]),
                    np.array([part.pvalue for part in slices]),
                    self.table.alpha,
                )
            else:
                ax.text(0.5, 0.5, "no rule stands out", ha="center", transform=ax.transAxes)
                ax.set_axis_off()
            told = f"{len(self.table.confirmed)} of {len(self.table)} confirmed on the other half"
            _title(self.figure_, ax, f"Slices: {told}", own=own)
            self.ax_ = ax
        return self


@dataclass(eq=False)
class ComparisonDisplay:
    """What several models do to the user's numbers: bias with interval, one panel a task."""

    comparison: Comparison
    axes_: list[Axes] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        _checked(self.comparison, Comparison, "compare")
        if not self.comparison.models[0].tasks:
            raise InputError("this comparison has no tasks to show; pass tasks to compare")

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Axes | None = None) -> Self:
        """Draw a comparison at hand."""
        return cls(comparison).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; with `ax`, the first task only."""
        models = self.comparison.models
        count = len(models[0].tasks) if ax is None else 1
        with mpl.rc_context(STYLE):
            if ax is None:
                height = (1.2 + 0.5 * len(models)) * count
                self.figure_, grid = plt.subplots(
                    count, 1, figsize=(7.6, height), squeeze=False, layout="constrained"
                )
                self.axes_ = list(grid[:, 0])
            else:
                self.figure_, ax = _axes(ax, (0, 0))
                self.axes_ = [ax]
            for k, panel in enumerate(self.axes_):
                results = [model.tasks[k] for model in models]
                _forest(
                    panel,
                    [_scored(model) for model in models],
                    np.array([result.bias for result in results]),
                    np.array([[result.lower, result.upper] for result in results]),
                    np.array([result.pvalue for result in results]),
                    self.comparison.alpha,
                )
                panel.annotate(
                    _short(results[0].name, 76),
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
        return self


def _scored(model: ModelReport) -> str:
    name = _short(model.name, 30)
    return f"{name}\naccuracy {model.accuracy:.3f}, Brier {model.brier:.3f}, ECE {model.ece:.3f}"


def _wrapped(rule: str) -> str:
    lines = textwrap.wrap(rule, 46, max_lines=2, placeholder=" …")
    return "\n".join(lines)
