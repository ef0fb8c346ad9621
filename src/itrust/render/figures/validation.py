"""The decision curve: what deciding by the prediction is worth, threshold by threshold."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from itrust.calibration import Validation
from itrust.render.figures.style import FAINT, INK, Display, axes_of


@dataclass(eq=False)
class DecisionDisplay(Display, shows=Validation, made_by="scores.validation"):
    """Net benefit of the model, of acting on every row and of acting on none, by threshold.

    Attributes
    ----------
    found : Validation
        What was computed.
    name : str
        Of the model, for the legend.
    """

    found: Validation
    name: str = "model"

    def _paint(self, ax: Axes | None) -> None:
        self.figure_, ax = axes_of(ax, (5.6, 4.0))
        self.ax_ = ax
        points = self.found.decision
        at = [own.threshold for own in points]
        worth = [own.net_benefit for own in points]
        ax.axhline(0.0, color=FAINT, linewidth=0.9, label="act on none")
        ax.plot(at, [own.treat_all for own in points], "--", color=FAINT, label="act on all")
        ax.plot(at, worth, "o-", color=INK, markersize=4, label=self.name)
        top = max([*worth, *(own.treat_all for own in points), 0.01])
        ax.set_ylim(-0.35 * top, 1.1 * top)
        ax.set_xlabel("threshold")
        ax.set_ylabel("net benefit by row")
        ax.set_title("Decision curve")
        ax.legend(loc="upper right")
