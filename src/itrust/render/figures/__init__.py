"""Pictures of what was found (matplotlib), in scikit-learn's Display convention.

Each display keeps its data: make one with `from_sample`, or hand the result in, then `.plot(ax=)`;
`result.plot()` does the same. Nothing is computed while drawing. Colours are told apart by
colour-blind people, and signs also by line style or marker, so that a print in grey can be read.
Triangles mark what is shown to be miscalibrated, as on the page.
"""

from itrust.render.figures.calibration import DecisionDisplay, NullDisplay, ReliabilityDisplay
from itrust.render.figures.curves import (
    BiasCurveDisplay,
    BiasMapDisplay,
    CubicDisplay,
    LocalBiasDisplay,
)
from itrust.render.figures.dots import DotsDisplay
from itrust.render.figures.forests import (
    AuditDisplay,
    ComparisonDisplay,
    DriftDisplay,
    GroupDisplay,
    SliceDisplay,
    TaskDisplay,
)
from itrust.render.figures.overturn import RobustnessDisplay
from itrust.render.figures.style import BIAS as BIAS
from itrust.render.figures.style import CYCLE as CYCLE
from itrust.render.figures.style import FAINT as FAINT
from itrust.render.figures.style import HIGH as HIGH
from itrust.render.figures.style import INK as INK
from itrust.render.figures.style import LOW as LOW
from itrust.render.figures.style import MARKERS as MARKERS
from itrust.render.figures.style import OVER as OVER
from itrust.render.figures.style import PALE as PALE
from itrust.render.figures.style import STYLE as STYLE
from itrust.render.figures.style import STYLES as STYLES
from itrust.render.figures.style import UNDER as UNDER
from itrust.render.figures.style import Display
from itrust.render.figures.style import detached as detached
from itrust.render.figures.style import draw as draw
from itrust.render.figures.watch import WatchDisplay

__all__ = [
    "AuditDisplay",
    "BiasCurveDisplay",
    "BiasMapDisplay",
    "ComparisonDisplay",
    "CubicDisplay",
    "DecisionDisplay",
    "Display",
    "DotsDisplay",
    "DriftDisplay",
    "GroupDisplay",
    "LocalBiasDisplay",
    "NullDisplay",
    "ReliabilityDisplay",
    "RobustnessDisplay",
    "SliceDisplay",
    "TaskDisplay",
    "WatchDisplay",
]
__dir__ = __all__.copy  # what tab completion offers
