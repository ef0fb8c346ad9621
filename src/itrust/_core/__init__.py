"""What every package needs: errors, text, seeds, progress, files written whole."""

from itrust._core import html
from itrust._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from itrust._core.atomic import write_whole
from itrust._core.checks import (
    checked_choice,
    checked_count,
    checked_positive,
    checked_share,
)
from itrust._core.errors import (
    PYTHON,
    ApproximationWarning,
    AssumptionWarning,
    DatasetError,
    Door,
    InputError,
    Setting,
    sentence,
)
from itrust._core.progress import Advance, progress_bar
from itrust._core.result import Result
from itrust._core.seeds import (
    Rng,
    as_generator,
    as_seed,
    keyed_bits,
    keyed_fractions,
    smallest_tickets,
    tickets,
)
from itrust._core.text import counted, did_you_mean, listed, printable, shown
from itrust._core.values import plain

__all__ = [
    "PYTHON",
    "Advance",
    "AnyArray",
    "ApproximationWarning",
    "AssumptionWarning",
    "BoolArray",
    "DatasetError",
    "Door",
    "FloatArray",
    "InputError",
    "IntArray",
    "Result",
    "Rng",
    "Setting",
    "as_generator",
    "as_seed",
    "checked_choice",
    "checked_count",
    "checked_positive",
    "checked_share",
    "counted",
    "did_you_mean",
    "html",
    "keyed_bits",
    "keyed_fractions",
    "listed",
    "plain",
    "printable",
    "progress_bar",
    "sentence",
    "shown",
    "smallest_tickets",
    "tickets",
    "write_whole",
]
