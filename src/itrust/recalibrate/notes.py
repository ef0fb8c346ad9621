"""What users are told about a recalibration that did less than they may expect."""

from __future__ import annotations

from itrust._core import counted
from itrust.recalibrate.local import Local


def unchanged_note(fitted: Local) -> str:
    """Why nothing was changed."""
    pvalue = fitted.steps_[0].pvalue
    if pvalue is not None and pvalue > fitted.needed_:
        return (
            f"nothing was changed: the exact test of the probabilities as given has a p-value of "
            f"{pvalue:.3g}, and with {counted(fitted.n_rows_, 'row')} at most {fitted.needed_:.2g} "
            f"is needed"
        )
    return (
        "nothing was changed: the exact test rejects, but no correction lowers the log loss in "
        "cross-validation by more than its standard error"
    )


def outside_note(count: int, rows: int) -> str:
    """How many rows got no local correction."""
    verb = "lies" if count == 1 else "lie"
    return (
        f"{count:,} of {counted(rows, 'row')} {verb} outside the calibration rows: no local "
        f"correction is made there, and far out probabilities are left as they are"
    )
