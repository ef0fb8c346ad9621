"""The picture of an audit: reliability, null distribution, groups and slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes

from itrust.auditing import Audit
from itrust.calibration import Finding
from itrust.render.figures.calibration import NullDisplay, ReliabilityDisplay
from itrust.render.figures.forests import forest
from itrust.render.figures.style import Display, axes_of, in_two_lines, new_figure, short, titled
from itrust.render.text import rows_of

MAX_PARTS = 6


@dataclass(eq=False)
class AuditDisplay(Display, shows=Audit, made_by="audit"):
    """An audit on one sheet: reliability, null distribution, and groups and slices that are off.

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
        shown = self.audit.diagnosis.shown
        height = 4.6 + 0.42 * max(min(len(shown), MAX_PARTS), 1) + 1.0
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
        self._paint_parts(self.axes_[2])
        verdict = short(f"Verdict: {self.audit.verdict}", 80)
        self.figure_.suptitle(
            verdict, x=0.01, ha="left", fontweight="bold", color=self.audit.verdict.tone.light
        )

    def _paint_parts(self, ax: Axes) -> None:
        """Draw groups and slices that are shown to be miscalibrated, the largest bias first."""
        shown = self.audit.diagnosis.shown
        parts = shown[:MAX_PARTS]
        if parts:
            labels = [f"{in_two_lines(str(part.where))}  ({rows_of(part)})" for part in parts]
            forest(ax, labels, parts, self.audit.alpha)
        else:
            found = [str(item) for item in self.audit.evidence if isinstance(item, Finding)][:1]
            words = "\n".join(["no group or slice by itself", *map(in_two_lines, found)])
            ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes)
            ax.set_axis_off()
        more = f", {len(parts)} of {len(shown)}" if len(parts) < len(shown) else ""
        titled(self.figure_, ax, f"Shown to be miscalibrated{more}", own=False)
