"""Pictures of calibration: reliability, what redrawn labels give, the decision curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from itrust._core import FloatArray, InputError
from itrust.calibration import (
    Bins,
    CalibrationResult,
    EqualMass,
    ReliabilityCurve,
    Validation,
    klce_test,
    reliability_curve,
)
from itrust.data import Sample
from itrust.render.figures.style import (
    FAINT,
    INK,
    OVER,
    PALE,
    UNDER,
    Display,
    in_legend,
)

HISTOGRAM_BARS = 40


@dataclass(eq=False)
class ReliabilityDisplay(Display, shows=ReliabilityCurve, made_by="scores.reliability_curve"):
    """Observed rate against prediction, with intervals, above a histogram of the predictions.

    Attributes
    ----------
    curve : ReliabilityCurve
        Rates and intervals, bin by bin.
    counts, edges : arrays or None
        The histogram; None leaves it out.
    name : str
        Of the model, for the legend.
    histogram_ax_ : matplotlib axes or None
        After `plot`.
    """

    curve: ReliabilityCurve
    counts: FloatArray | None = None
    edges: FloatArray | None = None
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
        """Compute the reliability curve and draw it.

        Parameters
        ----------
        sample : Sample
            Labels and probabilities.
        bins : Bins, optional
            Default: ten of equal mass.
        name : str
            Of the model, for the legend.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        ReliabilityDisplay
            Drawn.
        """
        curve = reliability_curve(sample, EqualMass(10) if bins is None else bins)
        counts, edges = np.histogram(
            sample.p, bins=HISTOGRAM_BARS, range=(0, 1), weights=sample.weights_or_ones
        )
        return cls(curve, counts.astype(float), edges, name).plot(ax)

    def _paint(self, ax: Axes | None) -> None:
        self.histogram_ax_: Axes | None = None
        if ax is None and self.counts is not None:
            heights: dict[str, Any] = {"height_ratios": (5, 1), "sharex": True}
            ax, self.histogram_ax_ = self._panels(None, (5.2, 5.8), (2, 1), **heights)
        else:
            [ax] = self._panels(ax, (5.2, 4.9))
            if self.counts is not None:
                self.histogram_ax_ = ax.inset_axes((0, 0, 1, 0.14), sharex=ax, zorder=0)
                self.histogram_ax_.set_axis_off()
        c = self.curve
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.9, linestyle="--", label="calibrated")
        errors = np.stack([c.observed - c.lower, c.upper - c.observed]).clip(min=0)
        label = f"{in_legend(self.name)}, 95 % interval of each"
        looks: dict[str, Any] = {"color": INK, "markersize": 4.5, "linewidth": 1.2, "capsize": 2.5}
        ax.errorbar(c.predicted, c.observed, yerr=errors, fmt="o-", label=label, **looks)
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), ylabel="observed rate")
        ax.set_title("Reliability")
        ax.text(0.03, 0.97, UNDER, va="top", color=FAINT, fontsize="small")
        ax.text(0.97, 0.03, OVER, ha="right", color=FAINT, fontsize="small")
        ax.legend(loc="upper left", bbox_to_anchor=(0, 0.93))
        self._histogram(ax)

    def _histogram(self, ax: Axes) -> None:
        below = self.histogram_ax_
        if below is not None and self.counts is not None and self.edges is not None:
            below.stairs(self.counts, self.edges, fill=True, color=PALE, edgecolor=FAINT)
            below.set(ylabel="rows", ylim=(0, None))
            below.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        last = ax if below is None or not below.axison else below
        last.set_xlabel("predicted probability")


@dataclass(eq=False)
class NullDisplay(Display, shows=CalibrationResult, made_by="klce_test"):
    """What redrawn labels give, and what the data gave.

    Attributes
    ----------
    result : CalibrationResult
        Of a null that draws.
    """

    result: CalibrationResult

    @classmethod
    def from_sample(cls, sample: Sample, *, ax: Axes | None = None, **settings: Any) -> Self:
        """Run `klce_test` and draw its null distribution.

        A null that is a formula has no draws, and so no picture.

        Parameters
        ----------
        sample : Sample
            Labels, probabilities and covariates.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        **settings : dict
            Those of `klce_test`.

        Returns
        -------
        NullDisplay
            Drawn.
        """
        return cls(klce_test(sample, **settings)).plot(ax)

    def _paint(self, ax: Axes | None) -> None:
        drawn = self.result.null_distribution
        if drawn is None:
            raise InputError(
                f"{type(self.result.null).__name__} has a formula and no draws to show"
            )
        [ax] = self._panels(ax, (6.2, 3.4))
        ax.hist(drawn, bins=min(60, max(10, drawn.size // 12)), color=PALE, edgecolor="white")
        observed, low, high = self.result.score, float(drawn.min()), float(drawn.max())
        reach = max(high - low, 1e-12)
        off = observed > high + 1.5 * reach
        at = high + 0.8 * reach if off else observed
        ax.axvline(at, color=INK, linewidth=2, linestyle=":" if off else "-")
        told = f"observed {observed:.4g}, far off →" if off else "observed"
        left = not off and observed < (low + high) / 2
        ax.annotate(
            f" {told} \n p = {self.result.pvalue:.3g} ",
            (at, 0.97),
            xycoords=("data", "axes fraction"),
            ha="left" if left else "right",
            va="top",
            color=INK,
            fontweight="bold",
        )
        if off:
            ax.set_xlim(low - 0.05 * reach, at + 0.05 * reach)
        what = "largest score" if self.result.score != self.result.statistic else "KLCE²"
        ax.set(xlabel=what, ylabel="draws")
        ax.set_title(f"If the model were calibrated: {self.result.draws:,} draws")


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
        [ax] = self._panels(ax, (5.6, 4.0))
        points = self.found.decision
        at = [own.threshold for own in points]
        worth = [own.net_benefit for own in points]
        ax.axhline(0.0, color=FAINT, linewidth=0.9, label="act on none")
        ax.plot(at, [own.treat_all for own in points], "--", color=FAINT, label="act on all")
        ax.plot(at, worth, "o-", color=INK, markersize=4, label=self.name)
        top = max([*worth, *(own.treat_all for own in points), 0.01])
        ax.set_ylim(-0.35 * top, 1.1 * top)
        ax.set(xlabel="threshold", ylabel="net benefit by row")
        ax.set_title("Decision curve")
        ax.legend(loc="upper right")
