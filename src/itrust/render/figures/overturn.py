"""What would overturn the evidence: p-values and intervals over the size of a violation."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from itrust.overturn import NumberRobustness, NumberTipping, Robustness, Tipping
from itrust.render.figures.style import HIGH, INK, PALE, Display, bias_axis, short
from itrust.render.text.overturning import NAMES

SIZES = {"selection": "odds off by a factor of", "tolerance": "bias that is let pass"}


@dataclass(eq=False)
class RobustnessDisplay(Display, shows=Robustness, made_by="robustness"):
    """P-values over the size of every kind of violation.

    Attributes
    ----------
    robustness : Robustness
        Of `itrust.robustness`.
    """

    robustness: Robustness

    def _paint(self, ax: Axes | None) -> None:
        kinds = self.robustness.violations
        panels = self._panels(ax, (9.6, 5.0), (2, 3), sharey=True)
        for panel, tipping in zip(panels, kinds, strict=False):
            panel.plot(tipping.sizes, tipping.pvalues, color=INK, marker="o", markersize=3)
            panel.set(ylim=(-0.02, 1.02), ylabel="p-value")
            _sizes(panel, tipping)
            panel.set_title(NAMES[tipping.kind], fontsize="medium")
        for spare in panels[len(kinds) :]:
            spare.set_axis_off()
        self._titled("What would overturn the evidence", ax)


@dataclass(eq=False)
class NumberRobustnessDisplay(Display, shows=NumberRobustness, made_by="robustness"):
    """The interval of a number's bias over the size of a selection."""

    number: NumberRobustness

    def _paint(self, ax: Axes | None) -> None:
        [panel] = self._panels(ax, (5.4, 3.2))
        for tipping in self.number.tippings[:1]:
            panel.fill_between(tipping.sizes, tipping.lower, tipping.upper, color=PALE)
            panel.axhline(self.number.bias, color=INK, linewidth=1.2)
            _sizes(panel, tipping)
        bias_axis(panel)
        panel.set_ylabel("bias of the number")
        self._titled(short(self.number.name, 60), ax)


def _sizes(ax: Axes, tipping: Tipping | NumberTipping) -> None:
    if tipping.point is not None:
        ax.axvline(tipping.point, color=HIGH, linestyle=(0, (5, 3)))
    ax.set_xlabel(SIZES.get(tipping.kind, "share of labels in error"))
    if tipping.kind == "selection":
        ax.set_xscale("log")
        largest = max(float(tipping.sizes[-1]), 1.5)
        ticks = [tick for tick in (1, 1.2, 1.5, 2, 3, 5, 10) if tick <= largest]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlim(0.98, 1.03 * largest)
