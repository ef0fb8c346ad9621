"""What changed between two audits: differences with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from itrust._core import rounded
from itrust.auditing import Change, ComparedValue, Drift
from itrust.render.figures.style import (
    FAINT,
    HIGH,
    INK,
    LOW,
    NOT_SHOWN,
    SHOWN_HIGH,
    SHOWN_LOW,
    Display,
    axes_of,
    in_two_lines,
    panels_of,
    short,
    signed,
    titled,
)
from itrust.render.text.drift import change_title


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
    axes_ : list of matplotlib axes
        After `plot`; in given axes the first only.
    """

    drift: Drift
    max_rows: int = 30
    axes_: list[Axes] = field(default_factory=list, repr=False)

    def _paint(self, ax: Axes | None) -> None:
        panels = self._panels()
        if ax is None:
            heights = [1.3 + 0.36 * len(rows) for rows in panels]
            settings = {"gridspec_kw": {"height_ratios": heights}}
            self.figure_, self.axes_ = panels_of(len(panels), 1, (8.2, sum(heights)), **settings)
        else:
            self.figure_, given = axes_of(ax, (0, 0))
            self.axes_ = [given]
        for rows, panel in zip(panels, self.axes_, strict=False):
            _differences(panel, rows, self.drift.alpha)
        self.ax_ = self.axes_[0]
        first, second = (short(name, 20) for name in self.drift.names)
        told = f"Change from {first} to {second}: two fixed samples, no monitor"
        titled(self.figure_, self.ax_, told, own=ax is None)

    def _panels(self) -> list[list[Change]]:
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


def _differences(ax: Axes, rows: list[Change], alpha: float) -> None:
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    for row, part in enumerate(rows):
        value, low, high = part.difference, part.lower, part.upper
        is_shown = part.pvalue <= alpha
        color = FAINT if not is_shown else LOW if value > 0 else HIGH
        marker = NOT_SHOWN if not is_shown else SHOWN_LOW if value > 0 else SHOWN_HIGH
        ax.plot([low, high], [row, row], color=color, linewidth=2.2 if is_shown else 1.1)
        face = color if is_shown else "white"
        ax.plot([value], [row], marker, color=color, markersize=6, markerfacecolor=face)
        told = f"{rounded(value, low, high, '+')}  p {part.pvalue:.3f}"
        ax.annotate(
            told.replace("-", "\N{MINUS SIGN}"),
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize="small",
            color=INK if is_shown else FAINT,
        )
    ax.set_yticks(range(len(rows)), [in_two_lines(change_title(part)) for part in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ends = np.abs([[part.lower, part.upper] for part in rows])
    reach = 1.1 * float(np.nanmax(ends, initial=0.0) or 0.02)
    ax.set_xlim(-reach, reach)
    ax.set_xlabel("difference: second \N{MINUS SIGN} first")
    ax.xaxis.set_major_formatter(FuncFormatter(signed))
