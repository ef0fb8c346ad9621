"""Rows of a reference and of batches as a watch takes them in, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from itrust._core import Code, FloatArray, InputError, Setting, listed
from itrust.data import (
    Rows,
    Sample,
    Scan,
    Source,
    Words,
    a_kind,
    checked_sample,
    clusters_in_files,
    digest_of,
    row_words,
)
from itrust.watch.bets import BatchRows
from itrust.watch.components import CheckPanel
from itrust.watch.results import BatchRecord, Segment
from itrust.watch.sequences import given_weights

CHUNK = 65_536  # rows of a reference at a time
IN_HAND = 4_096  # rows of a batch at a time: their functions stay in the cache


@dataclass(frozen=True)
class BatchSchema:
    """What the rows of every batch must have."""

    columns: tuple[tuple[str, str], ...]
    classes: tuple[Any, ...]
    positive: Any
    weighted: bool
    clustered: bool
    largest_weight: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return tuple(name for name, _ in self.columns)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that are watched one by one; None for two classes."""
        return self.classes or (None,)


def chunks_of(rows: Source) -> Iterator[Rows]:
    """Some rows at a time, with weights as they were given; whole where there are clusters."""
    if isinstance(rows, Scan):
        yield from rows.chunks(CHUNK)
        return
    size = CHUNK if rows.cluster is None else rows.n
    for first in range(0, rows.n, size):
        yield rows.cut(slice(first, first + size), rows.weights)


def taken_reference(reference: object) -> tuple[Source, BatchSchema, int, str]:
    """Take in a reference: its rows, their schema, number and digest; refuse what cannot be one."""
    rows = _checked_rows(reference)
    n, heaviest, words = 0, 0.0, []
    for chunk in chunks_of(rows):
        words.append(_words(chunk))
        n, heaviest = n + chunk.n, max(heaviest, float(given_weights(chunk).max()))
    schema = BatchSchema(
        tuple((column.name, column.kind) for column in chunk.columns),
        chunk.classes if rows.several else (),
        None if rows.several else chunk.classes[1],
        chunk.weights is not None,
        chunk.cluster is not None,
        heaviest,
    )
    return rows, schema, n, digest_of(words)


def _checked_rows(given: Any) -> Source:
    """Pass labelled rows on, whose design a watch can take."""
    if isinstance(given, Scan) and given.label is not None:
        if not given.is_simple:
            raise clusters_in_files()
        return given
    several = isinstance(given, Rows) and given.several and given.labelled
    rows: Rows = given if several else checked_sample(given)
    if rows.design.strata is not None or rows.design.replicate_weights is not None:
        raise InputError(
            "a watch takes rows by themselves or in clusters, and weights; strata and replicate "
            "weights are for a finished sample, whose variance they give, and bets need none; make "
            "the sample without them",
            argument="reference",
        )
    return rows


def _words(rows: Rows) -> Words:
    """A number for every row, made of all that it holds."""
    numbers = {"y": rows.codes, **{f"p {k}": own for k, own in enumerate(rows.predictions.T)}}
    if rows.weights is not None:
        numbers["weights"] = rows.weights
    return row_words(numbers.items(), rows.columns)


def bet_rows(outcome: Rows) -> BatchRows:
    """One outcome as bets see it; those of a cluster share one row's stake."""
    if outcome.cluster is None:
        return outcome.y, outcome.p, None
    return outcome.y, outcome.p, 1 / np.bincount(outcome.cluster)[outcome.cluster]


def matrix_parts(
    outcome: Rows, panel: CheckPanel, largest_weight: float
) -> Iterator[tuple[FloatArray, BatchRows]]:
    """Functions of a panel's checks and labels, some rows at a time.

    Weights count over the largest of the reference, at most 1.
    """
    y, p, share = bet_rows(outcome)
    for first in range(0, outcome.n, IN_HAND):
        some = slice(first, first + IN_HAND)
        matrix = panel.matrix(outcome.points.take(some))
        if outcome.weights is not None:
            matrix *= np.minimum(outcome.weights[some] / largest_weight, 1.0)
        yield matrix, (y[some], p[some], None if share is None else share[some])


def means_of(rows: Rows) -> tuple[float, float]:
    """Mean label and mean prediction, as `BatchRecord` has them."""
    label, predicted = rows.codes == 1, rows.predictions[:, 0]
    if rows.several:
        label, predicted = rows.codes == rows.p.argmax(axis=1), rows.p.max(axis=1)
    w = given_weights(rows)
    # A weighted mean of ones may exceed 1 by rounding.
    found = [min(max(float(w @ own) / float(w.sum()), 0.0), 1.0) for own in (label, predicted)]
    return found[0], found[1]


def taken_batch(batch: object, schema: BatchSchema) -> tuple[Sample, str]:
    """Take in a batch, and its digest; refuse one that does not have what the reference has."""
    rows: Any = _checked_rows(batch.load() if isinstance(batch, Scan) else batch)
    _refuse_labels(rows, schema)
    lacking = [name for name in schema.names if name not in rows.names]
    if lacking:
        raise InputError(
            "the batch lacks the covariate {value} that the reference has; it has {known}",
            argument="batch",
            value=lacking[0],
            hint="a model with other inputs begins a new segment: {}",
            settings=[Code("watch.new_model(reference)", "itrust watch start")],
            known=listed(rows.names) or "none",
        )
    for name, kind in schema.columns:
        found = rows.column(name).kind
        if _family(found) != _family(kind):
            raise InputError(
                "{column} is a {found} in the batch and a {kind} in the reference; make it the "
                "same, with categories= or numbers= where values do not tell",
                argument="batch",
                column=name,
                found=found,
                kind=kind,
            )
    for has, wanted, what in (
        (rows.weights is not None, schema.weighted, "weights"),
        (rows.cluster is not None, schema.clustered, "clusters"),
    ):
        if has != wanted:
            raise InputError(
                "the batch has {found} and the reference has {kept}; give both the same",
                argument="batch",
                found=what if has else f"no {what}",
                kept=what if wanted else f"no {what}",
            )
    if rows.names != schema.names:
        rows = rows.only(*schema.names) if schema.names else rows.with_columns(())
    return rows, digest_of([_words(rows)])


def _family(kind: str) -> str:
    """Booleans are numbers; days since 1970 are not."""
    return kind if kind in ("category", "date") else "number"


def _refuse_labels(rows: Rows, schema: BatchSchema) -> None:
    if rows.several != bool(schema.classes):
        raise InputError(
            "the batch is {found} and the reference is {kept}",
            argument="batch",
            found=a_kind(rows),
            kept="a MulticlassSample" if schema.classes else "a Sample of two classes",
        )
    if rows.several:
        if rows.classes != schema.classes:
            raise InputError(
                "the batch has the classes {found} and the reference {kept}; give the same ones in "
                "the same order",
                argument="batch",
                found=listed(rows.classes),
                kept=listed(schema.classes),
            )
    elif rows.classes[1] != schema.positive:
        raise InputError(
            "in the batch {value} counts as positive, in the reference {kept}",
            argument="batch",
            value=rows.classes[1],
            kept=repr(schema.positive),
        )


def time_range(at: object) -> tuple[str | None, str | None]:
    """From when to when rows are, as texts that sort."""
    if at is None:
        return None, None
    both: Sequence[object] = list(at) if isinstance(at, tuple | list) else [at, at]
    if len(both) != 2:
        raise InputError(
            "{argument} is a moment or a pair of them, such as ('2026-03-01', '2026-03-31'), not "
            "{value}",
            argument="at",
            value=at,
        )
    start, end = (_moment(one, at) for one in both)
    if end < start:
        raise InputError(
            "{argument} ends before it begins: {value}", argument="at", value=f"{start} to {end}"
        )
    return start, end


def _moment(value: Any, at: object) -> str:
    try:
        found = datetime.fromisoformat(value if isinstance(value, str) else value.isoformat())
    except (AttributeError, ValueError):
        raise InputError(
            "{argument} is a date such as '2026-03-31', or a pair of them, not {value}",
            argument="at",
            value=at,
        ) from None
    if found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    return found.isoformat()


def refuse_repeated(
    history: Sequence[BatchRecord], segments: Sequence[Segment], digest: str, name: str | None
) -> None:
    """Refuse rows, and a name, that were taken in before."""
    for segment in segments:
        if segment.reference_digest == digest:
            raise InputError(
                "these rows are those of the reference; a batch has other ones", argument="batch"
            )
    for record in history:
        told = f"batch {record.number}" + (f" ({record.name})" if record.name else "")
        if record.digest == digest:
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
            before=before,
            late=Setting("late", True),
        )
