"""The picture of an audit: reliability, null distribution, and the largest slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes

from itrust.auditing import Audit
from itrust.render.figures.calibration import NullDisplay, ReliabilityDisplay
from itrust.render.figures.forests import SliceDisplay
from itrust.render.figures.style import Display, axes_of, new_figure, short

MAX_SLICES = 6


@dataclass(eq=False)
class AuditDisplay(Display, shows=Audit, made_by="audit"):
    """An audit on one sheet: reliability, null distribution, and the largest slices.

    A new figure has the verdict above its panels, in the verdict's colour.

    Attributes
    ----------
    audit : Audit
        Of `audit`.
    axes_ : list of matplotlib axes
        After `plot`, one for each panel; in given axes the reliability curve only.
    """

    audit: Audit
    axes_: list[Axes] = field(default_factory=list, repr=False)

    def _paint(self, ax: Axes | None) -> None:
        reliability = ReliabilityDisplay(self.audit.overall.curve)
        if ax is not None:
            self.figure_, self.ax_ = axes_of(ax, (0, 0))
            reliability.plot(self.ax_)
            self.axes_ = [self.ax_]
            return
        slices = SliceDisplay(self.audit.diagnosis.slices, MAX_SLICES)
        height = 4.6 + 0.42 * max(min(len(slices.table), MAX_SLICES), 1) + 1.0
        self.figure_ = new_figure((10.4, height))
        halves: Any = self.figure_.subfigures(2, 1, height_ratios=(4.6, height - 4.6))
        above, below = halves
        self.axes_ = [*above.subplots(1, 2), below.subplots()]
        self.ax_ = self.axes_[0]
        reliability.plot(self.ax_)
        if self.audit.test.null_distribution is None:
            self.axes_[1].set_axis_off()
        else:
            NullDisplay(self.audit.test).plot(self.axes_[1])
        slices.plot(self.axes_[2])
        verdict = short(f"Verdict: {self.audit.verdict}", 80)
        self.figure_.suptitle(
            verdict, x=0.01, ha="left", fontweight="bold", color=self.audit.verdict.tone.light
        )
