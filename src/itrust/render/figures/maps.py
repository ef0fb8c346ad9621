"""The picture of the bias over two covariates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust._core import FloatArray
from itrust.bias import BiasMap, bias_map
from itrust.data import Sample
from itrust.render.figures.style import (
    INK,
    OVER,
    SHOWN_HIGH,
    SHOWN_LOW,
    SIZES,
    UNDER,
    Display,
    axes_of,
    short,
    signed,
)

LONG_LABELS = 48  # characters on an axis above which they are turned


@dataclass(eq=False)
class BiasMapDisplay(Display, shows=BiasMap, made_by="bias_map"):
    """Bias over two covariates.

    Triangles stand in cells where the model is shown to be miscalibrated: up where it is too low,
    down where it is too high. Where too few rows are near, the map is blank.

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
            cmap=LinearSegmentedColormap.from_list("bias", SIZES),
            norm=TwoSlopeNorm(0.0, -reach, reach),
            rasterized=True,
        )
        flagged, values = self.map.flagged, self.map.values
        low, high = flagged & (values > 0), flagged & (values < 0)
        dark = np.abs(np.nan_to_num(values)) > 0.55 * reach
        for shown, marker in ((low, SHOWN_LOW), (high, SHOWN_HIGH)):
            for inside, color in ((shown & dark, "white"), (shown & ~dark, INK)):
                rows, columns = np.nonzero(inside)
                x, y = across.positions[columns], up.positions[rows]
                ax.plot(x, y, linestyle="none", marker=marker, markersize=3.4, color=color)
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
            Line2D([], [], linestyle="none", marker=marker, color=INK, label=words)
            for shown, marker, words in ((low, SHOWN_LOW, UNDER), (high, SHOWN_HIGH, OVER))
            if shown.any()
        ]
        told = "▲ ▼ shown to be miscalibrated" if handles else "nowhere shown to be miscalibrated"
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


def _cell_edges(positions: FloatArray) -> FloatArray:
    if positions.size == 1:
        return np.array([positions[0] - 0.5, positions[0] + 0.5])
    middle = (positions[1:] + positions[:-1]) / 2
    return np.concatenate(
        [[2 * positions[0] - middle[0]], middle, [2 * positions[-1] - middle[-1]]]
    )
