"""What users are told about a recalibration that did less than they may expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from itrust._core import counted

if TYPE_CHECKING:
    from itrust.recalibrate.base import Recalibrator
    from itrust.recalibrate.local import Local


def rows_note(fitted: Recalibrator, name: str = "") -> str:
    """On how many rows (of what is called so) it was fitted, and whether there were more."""
    rows = f"{counted(fitted.n_rows_, 'row')}{f' of {name}' if name else ''}"
    if fitted.n_available_ == fitted.n_rows_:
        return rows
    return f"{rows}, drawn at random from {fitted.n_available_:,} without a look at their labels"


def unchanged_note(fitted: Local) -> str:
    """Why nothing was changed."""
    pvalue = fitted.steps_[0].pvalue
    if fitted.clusters_ is None:
        test, units = "the exact test", counted(fitted.n_rows_, "row")
    else:
        test, units = "the test", counted(fitted.clusters_, "cluster")
    if pvalue is not None and pvalue > fitted.needed_:
        return (
            f"nothing was changed: {test} of the probabilities as given has a p-value of "
            f"{pvalue:.3g}, and with {units} at most {fitted.needed_:.2g} is needed"
        )
    return (
        f"nothing was changed: {test} rejects, but no correction lowers the log loss in "
        f"cross-validation by more than its standard error"
    )


def outside_note(fitted: Local, outside: int, at_edge: int, rows: int) -> str:
    """How many rows got nothing or a part of what a fit that changes something has learned."""
    verb = "lies" if outside == 1 else "lie"
    done = []
    if fitted.corrections_:
        done.append("no local correction is made there")
    if fitted.monotone_ is not None:
        done.append("the map of the prediction fades out from there to twice as far")
    told = (
        f"{outside:,} of {counted(rows, 'row')} {verb} far from the calibration rows: "
        f"{', and '.join(done)}"
    )
    if not (at_edge and fitted.corrections_):
        return told
    verb, get = ("lies", "gets") if at_edge == 1 else ("lie", "get")
    return f"{told}; {at_edge:,} {verb} at their edge and {get} a part of the correction"
