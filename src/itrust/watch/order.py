"""Every row once, and batches in their order."""

from __future__ import annotations

from collections.abc import Sequence

from itrust._core import InputError, Setting
from itrust.watch.batches import TakenBatch
from itrust.watch.results import BatchRecord, Segment


def refuse_repeated(
    history: Sequence[BatchRecord],
    segments: Sequence[Segment],
    batch: TakenBatch,
    name: str | None,
) -> None:
    """Refuse rows, and a name, that were taken in before."""
    for segment in segments:
        if segment.reference_digest == batch.digest:
            raise InputError(
                "these rows are those of the reference; a batch has other ones",
                argument="batch",
            )
    for record in history:
        told = f"batch {record.number}" + (f" ({record.name})" if record.name else "")
        if record.digest == batch.digest:
            raise InputError(
                "these rows were taken in before, as {value}; nothing was counted twice",
                argument="batch",
                value=told,
                hint="if they are other rows that happen to be equal, join them with the next ones",
            )
        if name is not None and record.name == name and record.segment == segments[-1].number:
            raise InputError(
                "there is a batch called {value} already; give the new one another name",
                argument="name",
                value=name,
            )


def refuse_order(
    history: Sequence[BatchRecord], segment: Segment, start: str | None, end: str | None
) -> None:
    """Refuse a batch that begins before the one before it ends."""
    own = [r for r in history if r.segment == segment.number and not r.late]
    if not own:
        return
    before = own[-1].end
    if (before is None) != (end is None):
        raise InputError(
            "{argument} was given for some batches only; give it for all batches of a model, "
            "or for none",
            argument="at",
        )
    if start is not None and before is not None and start < before:
        raise InputError(
            "the batch begins at {value}, before the last one ends ({before}); outcomes that "
            "came late are taken in with {late}",
            argument="at",
            value=start,
            details={"before": before, "late": Setting("late", True)},
        )
