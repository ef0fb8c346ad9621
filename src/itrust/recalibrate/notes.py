"""What users are told about a recalibration that did less than they may expect."""

from __future__ import annotations

from itrust._core import counted
from itrust.recalibrate.local import Local


def unchanged_note(fitted: Local) -> str:
    """Why nothing was changed."""
    pvalue = fitted.steps_[0].pvalue
    if pvalue is not None and pvalue > fitted.gate:
        return (
            f"nothing was changed: the exact test of the probabilities as given has a p-value of "
            f"{pvalue:.3g}, and at most {fitted.gate:g} is needed"
        )
    return (
        "nothing was changed: the exact test rejects, but no correction lowers the log loss in "
        "cross-validation by more than its standard error"
    )


def outside_note(count: int, rows: int) -> str:
    """How many rows got nothing."""
    verb = "lies" if count == 1 else "lie"
    return (
        f"{count:,} of {counted(rows, 'row')} {verb} outside the calibration rows: little or "
        f"nothing of the recalibration is applied there"
    )
