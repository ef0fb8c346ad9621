"""What a whole pass has seen of rows in files: what to refuse and what to note."""

from __future__ import annotations

from itrust._core import InputError, counted, listed
from itrust.engines.passes import Tally


def checked_tally(tally: Tally, pair_weight: float) -> Tally:
    """Refuse rows in files that a `Sample` would have refused."""
    if tally.positives == 0 and len(tally.other_labels) > 1:
        raise InputError(
            "{argument}: no label is the positive one; the labels are {others}",
            argument="positive",
            details={"others": listed(sorted(tally.other_labels, key=str))},
        )
    if pair_weight <= 0:
        raise InputError(
            "{argument} are zero in all rows but at most one; two rows must count",
            argument="weights",
        )
    return tally


def tally_notes(tally: Tally) -> tuple[str, ...]:
    """Make the data-quality notes that need a whole pass over rows in files."""
    said = (
        [f"left out {counted(tally.dropped, 'row')} with missing values"] if tally.dropped else []
    )
    if len(tally.other_labels) > 1:
        others = listed(sorted(tally.other_labels, key=str))
        said.append(f"all labels but the positive one ({others}) count as 0")
    if tally.positives in (0, tally.rows):
        said.append(f"one class only: every label counts as {int(tally.positives > 0)}")
    if tally.certain == tally.rows:
        said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
    return tuple(said)
