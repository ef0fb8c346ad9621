"""What `itrust recalibrate` says of rows that the fit did not know, of two labels or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from itrust import recalibrate
from itrust._core import counted
from itrust.cli.options import Options
from itrust.data import MissingRule

if TYPE_CHECKING:
    Applied = recalibrate.Application | recalibrate.ClassApplication


def missing_rule(options: Options) -> MissingRule:
    """Whether missing covariates of rows to recalibrate are refused; none of them is left out."""
    return "level" if options.missing == "level" else "error"


def unseen_notes(made: Applied, name: str) -> list[str]:
    """How many rows have a level that the fit has not seen."""
    is_local = isinstance(made.learned, recalibrate.Local)
    done = "" if is_local else ": recalibrated as rows of no category are"
    return [
        f"{counted(count, 'row')} of {name} with a level of {column!r} that the fit has not seen"
        f"{done}"
        for column, count in made.unseen.items()
    ]


def outside_notes(made: Applied) -> list[str]:
    """How many rows lie too far from those of the fit to be corrected."""
    local = made.learned
    if not isinstance(local, recalibrate.Local) or not made.outside or local.unchanged_:
        return []
    return [recalibrate.outside_note(local, made.outside, made.at_edge, made.rows)]
