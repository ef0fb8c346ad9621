"""Pictures of what was found (matplotlib), in scikit-learn's Display convention.

Each display keeps its data: make one with `from_sample`, or hand the result in, then `.plot(ax=)`;
`result.plot()` does the same. Nothing is computed while drawing. Colours are told apart by
colour-blind people, and signs also by hatching, line style or marker, so that a print in grey can
be read.
"""

from itrust.render.figures.auditing import AuditDisplay
from itrust.render.figures.calibration import NullDisplay, ReliabilityDisplay
from itrust.render.figures.curves import BiasCurveDisplay, CubicDisplay
from itrust.render.figures.forests import ComparisonDisplay, GroupDisplay, SliceDisplay
from itrust.render.figures.maps import BiasMapDisplay
from itrust.render.figures.style import (
    BIAS,
    CYCLE,
    FAINT,
    HIGH,
    INK,
    LOW,
    MARKERS,
    OVER,
    PALE,
    STYLE,
    STYLES,
    UNDER,
    Display,
    draw,
)

__all__ = [
    "BIAS",
    "CYCLE",
    "FAINT",
    "HIGH",
    "INK",
    "LOW",
    "MARKERS",
    "OVER",
    "PALE",
    "STYLE",
    "STYLES",
    "UNDER",
    "AuditDisplay",
    "BiasCurveDisplay",
    "BiasMapDisplay",
    "ComparisonDisplay",
    "CubicDisplay",
    "Display",
    "GroupDisplay",
    "NullDisplay",
    "ReliabilityDisplay",
    "SliceDisplay",
    "draw",
]


def __dir__() -> list[str]:
    return __all__
