"""Pictures of results (matplotlib): `result.plot()` gives a `Display`, which keeps what it shows.

Colours are told apart by colour-blind people, and signs also by line style or marker, so that a
print in grey can be read. Triangles mark what is shown to be miscalibrated, as on the page.
"""

from itrust.render.figures import curves as curves
from itrust.render.figures import evidence as evidence
from itrust.render.figures import forests as forests
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

__all__ = ["Display"]
__dir__ = __all__.copy  # what tab completion offers
