"""The picture of the bias over two covariates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust._core import BoolArray, FloatArray
from itrust.bias import BiasMap, bias_map
from itrust.data import Sample
from itrust.render.figures.style import INK, OVER, UNDER, Display, axes_of, short, signed

LONG_LABELS = 48  # characters on an axis above which they are turned


@dataclass(eq=False)
class BiasMapDisplay(Display, shows=BiasMap, made_by="bias_map"):
    """Bias over two covariates.

    Regions where the model is shown to be miscalibrated are outlined and hatched; where too few
    rows are near, the map is blank.

    Attributes
    ----------
    map : BiasMap
        Of `bias_map`.
    """

    map: BiasMap

    @classmethod
    def from_sample(
        cls, sample: Sample, first: str, second: str, *, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Compute the bias over two covariates and draw it.

        Parameters
        ----------
        sample : Sample
            Labels, probabilities and covariates.
        first, second : str
            The covariates across and up, or "prediction".
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        **settings : dict
            Others of `bias_map`.

        Returns
        -------
        BiasMapDisplay
            Drawn.
        """
        return cls(bias_map(sample, first, second, **settings)).plot(ax)

    def _paint(self, ax: Axes | None) -> None:
        self.figure_, ax = axes_of(ax, (6.6, 4.6))
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
        bar = self.figure_.colorbar(mesh, ax=ax, format=FuncFormatter(signed), pad=0.02)
        bar.set_label(f"{OVER}  ←  bias  →  {UNDER}", fontsize="small")
        bar.outline.set_visible(False)
        for axis, one, name in ((ax.xaxis, across, "x"), (ax.yaxis, up, "y")):
            if one.labels:
                axis.set_ticks(one.positions, [short(label, 18) for label in one.labels])
            elif one.column.kind == "date":
                axis.set_major_locator(MaxNLocator(4))
                axis.set_major_formatter(FuncFormatter(lambda v, _, o=one: o.column.shown(v)))
            ax.set(**{f"{name}label": short(one.name, 40)})
        if up.labels:
            ax.invert_yaxis()  # the first level on top, as in tables
        if across.labels and sum(map(len, across.labels)) > LONG_LABELS:
            ax.tick_params(axis="x", rotation=35)
        handles = [
            Patch(facecolor="white", edgecolor=INK, hatch=hatch, label=words)
            for shown, hatch, words in ((low, "///", UNDER), (high, "...", OVER))
            if shown.any()
        ]
        told = (
            "outlined: shown to be miscalibrated"
            if handles
            else "nowhere shown to be miscalibrated"
        )
        ax.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=2,
            borderaxespad=0.2,
            title=f"Bias over {short(across.name, 24)} and {short(up.name, 24)}\n({told}; "
            f"blank: too few rows)",
            alignment="left",
            title_fontsize="small",
        )
        self.ax_ = ax

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
