"""Pictures of the bias along covariates: curves with bands, and maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from itrust._core import FloatArray
from itrust.bias import ALL_ROWS, BiasCurve, BiasMap, CurvePart, LocalBias
from itrust.render.figures import style
from itrust.render.figures.style import Display, paint

MAX_POINTS = 4_000
LONG_LABELS = 48  # characters on an axis above which they are turned


@paint.register
def _(curve: BiasCurve, display: Display, ax: Axes | None) -> None:
    """Bias along a covariate with its confidence band, one panel for each group."""
    parts, own = curve.parts, ax is None
    if own and len(parts) > 1:
        across = 2 if len(parts) == 4 else min(len(parts), 3)
        down = -(-len(parts) // across)
        size = (3.3 * across + 0.6, 2.7 * down + 0.5)
        panels = style.new_panels(display, None, size, (down, across), sharex=True, sharey=True)
        for panel in panels[len(parts) :]:
            panel.set_visible(False)
        for panel in panels[max(len(parts) - across, 0) : len(parts)]:
            panel.tick_params(labelbottom=True)
            panel.set_xlabel(style.short(curve.axis.name, 40))
        for panel in panels[: len(parts) : across]:
            panel.set_ylabel(style.BIAS)
    else:
        panels = style.new_panels(display, ax, (6.2, 3.8)) * len(parts)
    alone = panels[0] is not panels[-1] or len(parts) == 1
    for k, (part, panel) in enumerate(zip(parts, panels, strict=False)):
        _draw(
            curve,
            panel,
            part,
            style.CYCLE[0 if alone else k % len(style.CYCLE)],
            style.STYLES[k % 4],
            alone,
        )
    _limits(curve, panels[0])
    if panels[0] is panels[-1]:
        panels[0].set(xlabel=style.short(curve.axis.name, 60), ylabel=style.BIAS)
    if curve.axis.column.kind == "date":
        style.date_ticks(panels[0].xaxis, curve.axis.column)
    style.sign_words(panels[0])
    cover = f"{100 * (1 - curve.bias.alpha):g} %"
    title = f"Bias along {style.short(curve.axis.name, 40)}"
    note = f"band: {cover} confidence, all points at once; ▲ ▼ shown to be miscalibrated"
    if alone and len(parts) > 1:
        display.figure_.suptitle(f"{title}   ({note})", x=0.01, ha="left", fontsize=10)
    else:
        panels[0].set_title(f"{title}\n" if own else title, fontsize=11)
        if own:  # it may be wider than axes that were given
            at = panels[0].transAxes
            panels[0].text(0, 1.02, note, transform=at, fontsize=8, color=style.FAINT)
        if len(parts) > 1:
            panels[0].legend(loc="best")
    display.axes_ = list(dict.fromkeys(panels))


def _draw(
    curve: BiasCurve, ax: Axes, part: CurvePart, color: str, dashes: str, alone: bool
) -> None:
    ax.fill_between(
        part.grid, part.band.lower, part.band.upper, color=color, alpha=0.14, linewidth=0
    )
    dashes = "-" if alone else dashes
    if not part.known:
        if alone:
            ax.text(
                0.5, 0.6, "too few rows", transform=ax.transAxes, ha="center", color=style.FAINT
            )
            ax.set_title(f"{style.short(part.group)}\n{part.rows:,} rows", fontsize=9)
        return
    ax.plot(
        part.grid, part.values, color=color, linestyle=dashes, label=style.in_legend(part.group)
    )
    flagged = np.nan_to_num(part.pvalues, nan=1.0) <= curve.bias.alpha
    for sign, tone, marker, _ in style.SIDES:
        told = np.where(flagged & (sign * part.values > 0), part.values, np.nan)
        ax.plot(part.grid, told, marker, color=tone if alone else color, markersize=5.5)
    style.bias_axis(ax)
    if alone and part.group != ALL_ROWS:
        ax.set_title(f"{style.short(part.group)}\n{part.rows:,} rows", fontsize=9)


def _limits(curve: BiasCurve, ax: Axes) -> None:
    """Room for curves and most of the bands; where bands burst, they run out of sight."""
    parts = curve.parts
    values = np.concatenate([part.values for part in parts])
    ends = np.concatenate([np.abs([p.band.lower, p.band.upper]).ravel() for p in parts])
    known = ends[np.isfinite(ends)]
    if known.size:
        reach = max(float(np.nanmax(np.abs(values))), float(np.quantile(known, 0.9)), 0.02)
        ax.set_ylim(-1.15 * reach, 1.15 * reach)


@paint.register
def _(bias: LocalBias, display: Display, ax: Axes | None) -> None:
    """The local bias of all points against their prediction."""
    [ax] = style.new_panels(display, ax, (6.8, 4.4))
    step = -(-len(bias) // MAX_POINTS)
    drawn = np.zeros(len(bias), dtype=bool)
    drawn[::step] = True
    calm = drawn & bias.known & ~bias.flagged
    kinds = [(calm, style.PALE, style.NOT_SHOWN, "not shown to be miscalibrated", 9, 1.0)]
    for (sign, tone, marker, _), words in zip(style.SIDES, ("too low", "too high"), strict=True):
        kinds.append((bias.flagged & (sign * bias.values > 0), tone, marker, words, 16, 0.75))
    for marked, color, marker, words, size, alpha in kinds:
        rows = np.flatnonzero(marked & drawn)
        if rows.size:
            share = marked.mean() if marked is not calm else (bias.known & ~bias.flagged).mean()
            looks: dict[str, Any] = {"s": size, "color": color, "marker": marker}
            looks |= {"alpha": alpha, "linewidths": 0, "rasterized": True}
            label = f"{words} ({100 * share:.0f} % of points)"
            ax.scatter(bias.points.p[rows], bias.values[rows], label=label, **looks)
    style.bias_axis(ax)
    ax.set(xlabel="prediction", ylabel=f"local {style.BIAS}")
    ax.set_title(f"Local bias at {len(bias):,} points")
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, -0.02) * 1.15, max(high, 0.02) * 1.25)
    ax.legend(loc="upper right", markerscale=1.4, handletextpad=0.2)
    style.sign_words(ax)


@paint.register
def _(result: BiasMap, display: Display, ax: Axes | None) -> None:
    """Bias over two covariates; where too few rows are near, the map is blank."""
    [ax] = style.new_panels(display, ax, (6.6, 4.6))
    across, up = result.axes
    reach = max(float(np.nanmax(np.abs(result.values), initial=0.0)), 0.02)
    edges = [_cell_edges(axis.positions) for axis in (across, up)]
    mesh = ax.pcolormesh(
        *edges,
        np.ma.masked_invalid(result.values),
        cmap=LinearSegmentedColormap.from_list("bias", style.SIZES),
        norm=TwoSlopeNorm(0.0, -reach, reach),
        rasterized=True,
    )
    sides = [
        (result.flagged & (sign * result.values > 0), marker, words)
        for sign, _, marker, words in style.SIDES
    ]
    dark = np.abs(np.nan_to_num(result.values)) > 0.55 * reach
    for shown, marker, _ in sides:
        for inside, color in ((shown & dark, "white"), (shown & ~dark, style.INK)):
            rows, columns = np.nonzero(inside)
            x, y = across.positions[columns], up.positions[rows]
            ax.plot(x, y, marker, markersize=3.4, color=color)
    bar = display.figure_.colorbar(mesh, ax=ax, format=FuncFormatter(style.signed), pad=0.02)
    bar.set_label(f"{style.OVER}  ←  bias  →  {style.UNDER}", fontsize="small")
    bar.outline.set_visible(False)
    for axis, one, name in ((ax.xaxis, across, "x"), (ax.yaxis, up, "y")):
        if one.labels:
            axis.set_ticks(one.positions, [style.short(label, 18) for label in one.labels])
        elif one.column.kind == "date":
            style.date_ticks(axis, one.column)
        ax.set(**{f"{name}label": style.short(one.name, 40)})
    if up.labels:
        ax.invert_yaxis()  # the first level on top, as in tables
    if across.labels and sum(map(len, across.labels)) > LONG_LABELS:
        ax.tick_params(axis="x", rotation=35)
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=style.INK, label=words)
        for shown, marker, words in sides
        if shown.any()
    ]
    told = "▲ ▼ shown to be miscalibrated" if handles else "nowhere shown to be miscalibrated"
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=2,
        borderaxespad=0.2,
        title=f"Bias over {style.short(across.name, 24)} and {style.short(up.name, 24)}\n({told}; "
        f"blank: too few rows)",
        alignment="left",
        title_fontsize="small",
    )


def _cell_edges(positions: FloatArray) -> FloatArray:
    if positions.size == 1:
        return np.array([positions[0] - 0.5, positions[0] + 0.5])
    middle = (positions[1:] + positions[:-1]) / 2
    return np.concatenate(
        [[2 * positions[0] - middle[0]], middle, [2 * positions[-1] - middle[-1]]]
    )
