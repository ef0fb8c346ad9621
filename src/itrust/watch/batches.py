"""Rows of a reference and of batches as a watch takes them in, and what it refuses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from itrust._core import AnyArray, Code, FloatArray, InputError, Setting, listed
from itrust.data import (
    Column,
    Design,
    MulticlassSample,
    MulticlassScan,
    Points,
    Sample,
    Scan,
    a_kind,
    called_impossible,
    checked_sample,
)
from itrust.watch.bets import BatchRows
from itrust.watch.components import CheckPanel
from itrust.watch.results import BatchRecord, Segment
from itrust.watch.sequences import TaskBatch

CHUNK = 65_536  # rows of a reference at a time
IN_HAND = 4_096  # rows of a batch at a time: their functions stay in the cache
Rows = Sample | MulticlassSample


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


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference that was taken in."""

    rows: Rows | Scan
    schema: BatchSchema
    n: int
    digest: str

    def one(self, label: Any) -> Sample | Scan:
        """The rows of one class against the rest; all of them for two classes."""
        return self.rows.one_class(label) if isinstance(self.rows, MulticlassSample) else self.rows

    def parts(self, label: Any) -> Iterator[tuple[Points, BatchRows, TaskBatch]]:
        """The rows of one class, some at a time; whole where there are clusters."""
        source = self.one(label)
        size = source.n if isinstance(source, Sample) and self.schema.clustered else CHUNK
        for chunk in source.chunks(size):
            weights = np.ones(chunk.y.size) if chunk.weights is None else chunk.weights
            if isinstance(source, Sample):
                weights = _weights(source)[chunk.first : chunk.first + chunk.y.size]
            share = None if chunk.cluster is None else _shares(chunk.cluster)
            yield (
                chunk.points,
                BatchRows(chunk.y, chunk.p, share),
                TaskBatch(chunk.points, chunk.y, chunk.p, weights, chunk.cluster),
            )


def taken_reference(reference: object) -> Reference:
    """Take in a reference; refuse what cannot be one."""
    if isinstance(reference, MulticlassScan):
        reference = reference.load()
    if isinstance(reference, Scan):
        return _of_files(reference)
    rows = _checked_rows(reference)
    _refuse_design(rows.design)
    heaviest = float(_weights(rows).max())
    schema = BatchSchema(
        tuple((column.name, column.kind) for column in rows.columns),
        rows.classes if isinstance(rows, MulticlassSample) else (),
        None if isinstance(rows, MulticlassSample) else rows.values[1],
        rows.weights is not None,
        rows.cluster is not None,
        heaviest,
    )
    return Reference(rows, schema, rows.n, digest_of([_words(rows)]))


def _of_files(reference: Scan) -> Reference:
    if reference.clusters is not None:
        raise InputError(
            "clusters in files cannot be watched, since those of one cluster may lie apart; read "
            "the reference into memory first, with scan(...).load()",
            argument="reference",
        )
    words, n, heaviest, columns = [], 0, 0.0, None
    for chunk in reference.chunks(CHUNK):
        weights = [] if chunk.weights is None else [("weights", chunk.weights)]
        words.append(row_words([("y", chunk.y), ("p", chunk.p), *weights], chunk.points.columns))
        n += chunk.y.size
        heaviest = max(heaviest, 1.0 if chunk.weights is None else float(chunk.weights.max()))
        columns = columns or tuple((column.name, column.kind) for column in chunk.points.columns)
    positive = getattr(reference, "positive", None)
    schema = BatchSchema(
        columns or (),
        (),
        1 if positive is None else positive,
        reference.weights is not None,
        False,
        heaviest,
    )
    return Reference(reference, schema, n, digest_of(words))


def _checked_rows(rows: object) -> Rows:
    return rows if isinstance(rows, MulticlassSample) else checked_sample(rows)


def _refuse_design(design: Design) -> None:
    if design.strata is not None or design.replicate_weights is not None:
        raise InputError(
            "a watch takes rows by themselves or in clusters, and weights; strata and replicate "
            "weights are for a finished sample, whose variance they give, and bets need none; make "
            "the sample without them",
            argument="reference",
        )


def _words(rows: Rows) -> Any:
    if isinstance(rows, MulticlassSample):
        numbers = [("y", rows.codes.astype(float))]
        numbers += [(f"p {name}", rows.p[:, k]) for k, name in enumerate(rows.classes)]
    else:
        numbers = [("y", rows.y), ("p", rows.p)]
    if rows.weights is not None:
        numbers.append(("weights", rows.weights))
    return row_words(numbers, rows.columns)


@dataclass(frozen=True, eq=False)
class TakenBatch:
    """A batch that fits the schema."""

    rows: Rows
    schema: BatchSchema
    digest: str

    @property
    def worth(self) -> FloatArray | None:
        """Weights over the largest of the reference, at most 1; None where rows count alike."""
        weights = self.rows.weights
        return None if weights is None else np.minimum(weights / self.schema.largest_weight, 1.0)

    def of(self, label: Any) -> tuple[Points, BatchRows, TaskBatch]:
        """The rows of one class against the rest; all of them for two classes."""
        rows = self.rows
        own = rows.one_class(label) if isinstance(rows, MulticlassSample) else rows
        share = None if own.cluster is None else _shares(own.cluster)
        return (
            own.points,
            BatchRows(own.y, own.p, share),
            TaskBatch(own.points, own.y, own.p, _weights(own), _numbered(own.cluster)),
        )

    def parts(self, panel: CheckPanel) -> Iterator[tuple[FloatArray, BatchRows]]:
        """Functions of a panel's checks and labels, some rows at a time."""
        points, rows, _ = self.of(panel.label)
        worth = self.worth
        for first in range(0, len(points), IN_HAND):
            some = slice(first, first + IN_HAND)
            matrix = panel.matrix(points.take(some))
            if worth is not None:
                matrix *= worth[some]
            yield matrix, rows.take(some)

    @property
    def impossible(self) -> int:
        """Number of labels that the model gave probability 0; rows of weight 0 count nothing."""
        rows, counts = self.rows, _weights(self.rows) > 0
        if isinstance(rows, MulticlassSample):
            chosen = rows.p[np.arange(rows.n), rows.codes]
            return int(np.count_nonzero((chosen == 0) & counts))
        return int(np.count_nonzero(called_impossible(rows.y, rows.p) & counts))

    @property
    def means(self) -> tuple[float, float]:
        """Mean label and mean prediction, as `BatchRecord` has them."""
        rows, w = self.rows, _weights(self.rows)
        if isinstance(rows, MulticlassSample):
            top = rows.p.argmax(axis=1)
            label, predicted = (rows.codes == top).astype(float), rows.p.max(axis=1)
        else:
            label, predicted = rows.y, rows.p
        total = float(w.sum())
        # A weighted mean of ones may exceed 1 by rounding.
        found = [min(max(float(w @ own) / total, 0.0), 1.0) for own in (label, predicted)]
        return found[0], found[1]


def _weights(rows: Rows) -> FloatArray:
    """Weights as they were given: batches are added up, so their scale counts."""
    return np.ones(rows.n) if rows.weights is None else rows.weights


def _numbered(cluster: Any) -> Any:
    return None if cluster is None else np.unique(cluster, return_inverse=True)[1]


def _shares(cluster: Any) -> FloatArray:
    codes = _numbered(cluster)
    return np.asarray(1 / np.bincount(codes)[codes])


def taken_batch(batch: object, schema: BatchSchema) -> TakenBatch:
    """Take in a batch; refuse one that does not have what the reference has."""
    if isinstance(batch, Scan | MulticlassScan):
        batch = batch.load()
    rows = _checked_rows(batch)
    _refuse_design(rows.design)
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
    for has, held, what in (
        (rows.weights is not None, schema.weighted, "weights"),
        (rows.cluster is not None, schema.clustered, "clusters"),
    ):
        if has != held:
            raise InputError(
                "the batch has {found} and the reference has {kept}; give both the same",
                argument="batch",
                found=what if has else f"no {what}",
                kept=what if held else f"no {what}",
            )
    if rows.names != schema.names:
        rows = rows.only(*schema.names) if schema.names else rows.with_columns(())
    return TakenBatch(rows, schema, digest_of([_words(rows)]))


def _family(kind: str) -> str:
    """Booleans are numbers; days since 1970 are not."""
    return kind if kind in ("category", "date") else "number"


def _refuse_labels(rows: Rows, schema: BatchSchema) -> None:
    several = isinstance(rows, MulticlassSample)
    if several != bool(schema.classes):
        raise InputError(
            "the batch is {found} and the reference is {kept}",
            argument="batch",
            found=a_kind(rows),
            kept="a MulticlassSample" if schema.classes else "a Sample of two classes",
        )
    if isinstance(rows, MulticlassSample):
        if rows.classes != schema.classes:
            raise InputError(
                "the batch has the classes {found} and the reference {kept}; give the same ones in "
                "the same order",
                argument="batch",
                found=listed(rows.classes),
                kept=listed(schema.classes),
            )
    elif rows.values[1] != schema.positive:
        raise InputError(
            "in the batch {value} counts as positive, in the reference {kept}",
            argument="batch",
            value=rows.values[1],
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


def _moment(value: object, at: object) -> str:
    found: datetime | None = None
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            found = None
    elif isinstance(value, datetime):
        found = value
    elif isinstance(value, date):
        found = datetime.combine(value, time())
    if found is None:
        raise InputError(
            "{argument} is a date such as '2026-03-31', or a pair of them, not {value}",
            argument="at",
            value=at,
        )
    if found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    return found.isoformat()


Words = NDArray[np.uint64]


def digest_of(parts: Iterable[Words]) -> str:
    """One text for some rows."""
    words = np.sort(np.concatenate([*parts, np.empty(0, dtype=np.uint64)]))
    return hashlib.sha256(words.astype("<u8").tobytes()).hexdigest()[:32]


def row_words(numbers: Iterable[tuple[str, FloatArray]], columns: Iterable[Column]) -> Words:
    """A number for every row, made of all that the row holds."""
    held = [(f"number {name}", _of_numbers(values)) for name, values in numbers]
    held += [(f"column {column.name}", _of_column(column)) for column in columns]
    total = np.zeros(held[0][1].size, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name, words in held:
            total += _stirred(words ^ _word(name))
        return _stirred(total)


def _of_numbers(values: AnyArray) -> Words:
    same = np.asarray(values, dtype=np.float64) + 0.0  # minus 0 is 0
    return np.where(np.isnan(same), np.nan, same).view(np.uint64)


def _of_column(column: Column) -> Words:
    if not column.is_category:
        return _of_numbers(column.values)
    words = np.array([*(_word(_text(level)) for level in column.levels), 0], dtype=np.uint64)
    return words[column.values]


def _text(level: Any) -> str:
    return f"{type(level).__name__} {level}"


def _word(text: str) -> np.uint64:
    raw = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:8]
    return np.uint64(int.from_bytes(raw, "little"))


def _stirred(words: Words) -> Words:
    """Mix the bits of 64-bit words (the finaliser of SplitMix64)."""
    found = words + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(found ^ (found >> np.uint64(31)), dtype=np.uint64)


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
            before=before,
            late=Setting("late", True),
        )
