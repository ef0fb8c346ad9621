"""What would overturn the evidence: p-values and intervals over the size of a violation."""

from __future__ import annotations

from dataclasses import dataclass, field

from matplotlib.axes import Axes

from itrust.overturn import NumberRobustness, PrudentResult, Robustness, Tipping
from itrust.render.figures.style import (
    FAINT,
    HIGH,
    INK,
    PALE,
    Display,
    axes_of,
    bias_axis,
    panels_of,
    short,
    titled,
)
from itrust.render.text.overturning import NAMES, prudence_words

SIZES = {"selection": "odds off by a factor of", "tolerance": "bias that is let pass"}
SHARE = "share of labels in error"


@dataclass(eq=False)
class TippingDisplay(Display, shows=Tipping, made_by="robustness"):
    """P-values over the size of one kind of violation, and the size where the evidence ends."""

    tipping: Tipping

    def _paint(self, ax: Axes | None) -> None:
        self.figure_, self.ax_ = axes_of(ax, (5.4, 3.2))
        _curve(self.ax_, self.tipping)
        titled(self.figure_, self.ax_, NAMES[self.tipping.kind].capitalize(), own=ax is None)


@dataclass(eq=False)
class RobustnessDisplay(Display, shows=Robustness, made_by="robustness"):
    """P-values over the size of every kind of violation.

    Attributes
    ----------
    robustness : Robustness
        Of `itrust.robustness`.
    axes_ : list of matplotlib axes
        After `plot`: one for each kind; in given axes the first kind only.
    """

    robustness: Robustness
    axes_: list[Axes] = field(default_factory=list, repr=False)

    def _paint(self, ax: Axes | None) -> None:
        kinds = self.robustness.violations
        if ax is None:
            self.figure_, self.axes_ = panels_of(2, 3, (9.6, 5.0), sharey=True)
        else:
            self.figure_, given = axes_of(ax, (0, 0))
            self.axes_ = [given]
        for own, tipping in zip(self.axes_, kinds, strict=False):
            _curve(own, tipping)
            own.set_title(NAMES[tipping.kind], fontsize="medium")
        for spare in self.axes_[len(kinds) :]:
            spare.set_axis_off()
        self.ax_ = self.axes_[0]
        titled(self.figure_, self.ax_, "What would overturn the evidence", own=ax is None)


@dataclass(eq=False)
class PrudenceDisplay(Display, shows=PrudentResult, made_by="robustness"):
    """Whether probabilities are shown to be too low: one sentence, for there is no size."""

    prudence: PrudentResult

    def _paint(self, ax: Axes | None) -> None:
        self.figure_, self.ax_ = axes_of(ax, (7.0, 1.2))
        self.ax_.set_axis_off()
        told = short(prudence_words(self.prudence), 110)
        self.ax_.text(0.0, 0.5, told, transform=self.ax_.transAxes, va="center")


@dataclass(eq=False)
class NumberRobustnessDisplay(Display, shows=NumberRobustness, made_by="robustness"):
    """The interval of a number's bias over the size of a selection."""

    number: NumberRobustness

    def _paint(self, ax: Axes | None) -> None:
        own = self.number
        self.figure_, self.ax_ = axes_of(ax, (5.4, 3.2))
        self.ax_.axhline(0, color=FAINT, linewidth=0.8)
        for tipping in own.tippings[:1]:
            self.ax_.fill_between(tipping.sizes, tipping.lower, tipping.upper, color=PALE)
            self.ax_.axhline(own.bias, color=INK, linewidth=1.2)
            if tipping.point is not None:
                self.ax_.axvline(tipping.point, color=HIGH, linestyle=(0, (5, 3)))
            _sizes(self.ax_, tipping.kind, float(tipping.sizes[-1]))
        bias_axis(self.ax_)
        self.ax_.set_ylabel("bias of the number")
        titled(self.figure_, self.ax_, short(own.name, 60), own=ax is None)


def _curve(ax: Axes, tipping: Tipping) -> None:
    ax.plot(tipping.sizes, tipping.pvalues, color=INK, marker="o", markersize=3)
    if tipping.point is not None:
        ax.axvline(tipping.point, color=HIGH, linestyle=(0, (5, 3)))
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel("p-value")
    _sizes(ax, tipping.kind, float(tipping.sizes[-1]))


def _sizes(ax: Axes, kind: str, largest: float) -> None:
    ax.set_xlabel(SIZES.get(kind, SHARE))
    if kind == "selection":
        ax.set_xscale("log")
        largest = max(largest, 1.5)
        ticks = [tick for tick in (1, 1.2, 1.5, 2, 3, 5, 10) if tick <= largest]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlim(0.98, 1.03 * largest)
