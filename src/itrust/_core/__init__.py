"""What every package needs: errors, text, checks, seeds, progress, files written whole.

Errors and text come at once; what needs NumPy, Arrow or rich is loaded when it is first asked for,
so that the command can say what is wrong with an option without waiting for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from itrust._core import html
from itrust._core.atomic import Write, write_all, write_whole
from itrust._core.checks import (
    checked_choice,
    checked_count,
    checked_positive,
    checked_share,
)
from itrust._core.errors import (
    PYTHON,
    ApproximationWarning,
    Argument,
    AssumptionWarning,
    Code,
    DatasetError,
    Door,
    InputError,
    Row,
    Setting,
    Subject,
    in_door_words,
    sentence,
    speaking,
)
from itrust._core.text import (
    closest,
    counted,
    did_you_mean,
    listed,
    printable,
    rounded,
    rounded_up,
    shown,
    shown_name,
    signed,
    signed_in,
    two_digits,
    wrapped,
)

if TYPE_CHECKING:
    from itrust._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
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
    from itrust._core.values import plain

__all__ = [
    "PYTHON",
    "Advance",
    "AnyArray",
    "ApproximationWarning",
    "Argument",
    "AssumptionWarning",
    "BoolArray",
    "Code",
    "DatasetError",
    "Door",
    "FloatArray",
    "InputError",
    "IntArray",
    "Result",
    "Rng",
    "Row",
    "Setting",
    "Subject",
    "Write",
    "as_generator",
    "as_seed",
    "checked_choice",
    "checked_count",
    "checked_positive",
    "checked_share",
    "closest",
    "counted",
    "did_you_mean",
    "html",
    "in_door_words",
    "keyed_bits",
    "keyed_fractions",
    "listed",
    "plain",
    "printable",
    "progress_bar",
    "rounded",
    "rounded_up",
    "sentence",
    "shown",
    "shown_name",
    "signed",
    "signed_in",
    "smallest_tickets",
    "speaking",
    "tickets",
    "two_digits",
    "wrapped",
    "write_all",
    "write_whole",
]

# Modules that load something heavy; names that are not here yet stand in one of them.
_LATER = ("arrays", "values", "progress", "result", "seeds")


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for."""
    if name in __all__:
        for module in _LATER:
            found = vars(import_module(f"itrust._core.{module}")).get(name)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module 'itrust._core' has no attribute {name!r}")
