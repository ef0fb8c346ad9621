"""Rows of several classes as a test reads them: at hand, or some at a time from files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from itrust._core import Advance, FloatArray, IntArray, tickets
from itrust.data import (
    Census,
    Chunk,
    Column,
    Design,
    Extract,
    FilePart,
    FileSet,
    MulticlassSample,
    MulticlassScan,
    Pilot,
    Points,
    Sample,
    Source,
)
from itrust.engines import (
    Additive,
    Dask,
    Scratch,
    available_threads,
    class_survey,
    class_total,
    ordered_map,
)

FACT_ROWS = 65_536  # added up at once, in memory and from files, so that sums are the same
RowsWork = Callable[["CheckedRows", Scratch], Additive]


class RowsOfClasses(ABC):
    """All rows of several classes, wherever they are."""

    @property
    @abstractmethod
    def facts(self) -> Census:
        """Counts of all rows."""

    @property
    @abstractmethod
    def is_weighted(self) -> bool:
        """Whether rows have weights."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.facts.n

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.facts.labels.size)

    @property
    def unit(self) -> float:
        """The size of the weights, by which they are divided."""
        return float(np.sqrt(self.facts.mean_square)) if self.is_weighted else 1.0

    @property
    @abstractmethod
    def at_hand(self) -> CheckedRows | None:
        """All rows; None where they are in files."""

    @abstractmethod
    def spread(self, size: int, first: int = 0) -> CheckedRows:
        """Random rows, always the same ones, after the first so many, in their order."""

    @abstractmethod
    def chunks(self, size: int) -> Iterator[CheckedRows]:
        """All rows in order; chunks end at multiples of the size."""

    def total(self, work: RowsWork, size: int, advance: Advance | None = None) -> Any:
        """Add up what chunks of rows contribute, in their order."""
        scratch = Scratch()
        found = ordered_map(
            lambda rows: work(rows, scratch), self.chunks(size), available_threads()
        )
        total: Additive | None = None
        with closing(found):
            for part in found:
                total = part if total is None else total.absorbed(part)
                if advance:
                    advance(size)
        return total

    @abstractmethod
    def described_by(self, code: int) -> Sample:
        """One class of all rows, or of random ones, against the rest."""

    @abstractmethod
    def one_class(self, code: int) -> Source:
        """One class against the rest, for the binary test's engines."""


@dataclass(frozen=True, eq=False)
class CheckedRows(RowsOfClasses):
    """Rows of several classes in memory: all of them, or some."""

    p: FloatArray
    codes: IntArray
    columns: tuple[Column, ...]
    weights: FloatArray | None
    units: IntArray | None
    first: int = 0
    sample: MulticlassSample | None = None

    @classmethod
    def of(cls, sample: MulticlassSample) -> CheckedRows:
        """Read what a sample of several classes holds."""
        design = sample.design
        units = None if design.rows_are_independent else design.units
        return cls(sample.p, sample.codes, sample.columns, sample.weights, units, 0, sample)

    @classmethod
    def of_chunk(cls, chunk: Chunk) -> CheckedRows:
        """Read some rows of files, which are independent."""
        return cls(chunk.p, chunk.codes, chunk.columns, chunk.weights, None, chunk.first)

    @cached_property
    def facts(self) -> Census:
        """Counts of all rows."""
        parts = [
            Census.of(rows, rows.weights)
            for rows in (
                self._sample().cut(slice(at, at + FACT_ROWS), self.weights)
                for at in range(0, self.n, FACT_ROWS)
            )
        ]
        return reduce(lambda one, other: one.plus(other, ()), parts)

    def _sample(self) -> MulticlassSample:
        design = Design(self.n, self.weights)
        names = tuple(range(self.classes))
        return MulticlassSample.made(
            predictions=self.p, codes=self.codes, classes=names, columns=(), design=design
        )

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.weights is not None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.p)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.p.shape[1])

    @property
    def at_hand(self) -> CheckedRows:
        """These."""
        return self

    @property
    def rows(self) -> range:
        """Numbers of the rows in the whole."""
        return range(self.first, self.first + self.n)

    @property
    def weights_or_ones(self) -> FloatArray:
        """A weight for every row."""
        return np.ones(self.n) if self.weights is None else self.weights

    def points(self, code: int) -> Points:
        """Probabilities of one class, and covariates."""
        return Points(self.p[:, code], self.columns)

    @property
    def predictions(self) -> FloatArray:
        """Probabilities by outcome, (n, K)."""
        return self.p

    left_out = 0
    other_labels = frozenset[Any]()

    @property
    def cluster(self) -> IntArray | None:
        """Clusters of the rows."""
        return self.units

    def outcome(self, k: int) -> Chunk:
        """One class against the rest."""
        return self.chunk(k)

    def chunk(self, code: int) -> Chunk:
        """One class against the rest."""
        return Sample.made(
            predictions=self.p[:, code : code + 1],
            codes=(self.codes == code).astype(np.int8),
            classes=(0, 1),
            columns=self.columns,
            design=Design(self.n, self.weights, self.units),
            first=self.first,
        )

    def take(self, rows: IntArray | slice, first: int = 0) -> CheckedRows:
        """Some of the rows, with a number for the first of them."""
        return CheckedRows(
            self.p[rows],
            self.codes[rows],
            tuple(column.take(rows) for column in self.columns),
            None if self.weights is None else self.weights[rows],
            None if self.units is None else self.units[rows],
            first,
        )

    def spread(self, size: int, first: int = 0) -> CheckedRows:
        """Random rows, as of `RowsOfClasses`."""
        if first == 0 and size >= self.n:
            return self
        return self.take(_by_ticket(tickets(0, self.n), size, first))

    def chunks(self, size: int) -> Iterator[CheckedRows]:
        """All rows in order, as of `RowsOfClasses`."""
        for at in range(0, self.n, size):
            yield self.take(slice(at, min(at + size, self.n)), at)

    def one_class(self, code: int) -> Source:
        """One class against the rest."""
        return self.described_by(code)

    def described_by(self, code: int) -> Sample:
        """One class of all rows."""
        assert self.sample is not None
        sample: Sample = self.sample.outcome(code)
        return sample


@dataclass(frozen=True, eq=False)
class StreamedRows(RowsOfClasses):
    """Rows of several classes in files, of which random ones are at hand."""

    scan: MulticlassScan
    survey: Extract
    machines: Dask | None = None
    parts: tuple[FilePart, ...] = ()

    @classmethod
    def of(
        cls,
        scan: MulticlassScan,
        size: int,
        advance: Advance | None = None,
        machines: Dask | None = None,
    ) -> StreamedRows:
        """Count the rows and keep random ones, in one pass."""
        if machines is None:
            return cls(scan, scan.extract(size, advance))
        survey, parts = class_survey(machines, scan, size, advance)
        return cls(scan, survey, machines, parts)

    @property
    def facts(self) -> Census:
        """Counts of all rows."""
        return self.survey.census

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.scan.weights is not None

    @property
    def at_hand(self) -> None:
        """None: rows are in files."""
        return None

    def spread(self, size: int, first: int = 0) -> CheckedRows:
        """Random rows, as of `RowsOfClasses`."""
        some = CheckedRows.of(self.survey.some)
        return some.take(_by_ticket(self.survey.tickets, size, first))

    def chunks(self, size: int) -> Iterator[CheckedRows]:
        """All rows in order, as of `RowsOfClasses`."""
        return (CheckedRows.of_chunk(chunk) for chunk in self.scan.chunks(size))

    def total(self, work: RowsWork, size: int, advance: Advance | None = None) -> Any:
        """Sums of all rows, as of `RowsOfClasses`; those of workers are added in pairs."""
        if self.machines is None:
            return super().total(work, size, advance)
        sent = _OnChunks(work)
        return class_total(self.machines, self.scan, self.parts, size, sent, advance)

    def one_class(self, code: int) -> Source:
        """One class against the rest."""
        return OneClassRows(self, code)

    def described_by(self, code: int) -> Sample:
        """One class of the rows at hand."""
        some = self.survey.some
        sample: Sample = some.outcome(code)
        return sample


@dataclass(frozen=True, eq=False)
class _OnChunks:
    """Work on rows as they come from files."""

    work: RowsWork

    def __call__(self, chunk: Chunk, scratch: Scratch) -> Additive:
        return self.work(CheckedRows.of_chunk(chunk), scratch)


@dataclass(frozen=True, eq=False)
class OneClassPiece:
    """One class of some rows in files against the rest, as workers read them."""

    scan: MulticlassScan
    code: int

    @property
    def parts(self) -> tuple[FilePart, ...] | None:
        """The pieces of files that hold the rows."""
        return self.scan.parts

    @property
    def rows(self) -> range | None:
        """Numbers of the rows in the whole."""
        return self.scan.rows

    def chunks(self, size: int) -> Iterator[Chunk]:
        """These rows in order."""
        found = (CheckedRows.of_chunk(chunk) for chunk in self.scan.chunks(size))
        return (rows.chunk(self.code) for rows in found)


@dataclass(frozen=True, eq=False)
class OneClassRows:
    """One class of rows in files against the rest, as engines take them."""

    whole: StreamedRows
    code: int
    clusters: None = None
    in_memory: None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return self.whole.scan.names

    @property
    def weights(self) -> object:
        """The name of the column of weights, if there is one."""
        return self.whole.scan.weights

    @property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes."""
        return self.whole.survey.notes

    @property
    def file_set(self) -> FileSet:
        """The files."""
        return self.whole.scan.file_set

    def spanning(self, parts: Sequence[FilePart], rows: range) -> OneClassPiece:
        """Some of the rows, which lie in some pieces of the files."""
        return OneClassPiece(self.whole.scan.spanning(parts, rows), self.code)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order."""
        return (rows.chunk(self.code) for rows in self.whole.chunks(size))

    def pilot(self, size: int) -> Pilot:
        """Random rows, from those at hand: no pass is made."""
        rows = self.whole.spread(size)
        points = rows.points(self.code)
        variances = np.square(rows.weights_or_ones) * points.p * (1 - points.p)
        drawn = np.sort(self.whole.survey.tickets)[: rows.n]
        chosen = self.whole.survey.tickets[self.whole.survey.tickets <= drawn[-1]]
        return Pilot(points, variances, chosen, self.whole.n)

    def extract(self, size: int | None = None, advance: Advance | None = None) -> Extract:
        """Not asked for by the test of several classes."""
        raise NotImplementedError

    def with_names(self, names: Sequence[str]) -> Source:
        """The same rows with some of the covariates."""
        scan = self.whole.scan.with_names(names)
        size, machines = self.whole.survey.tickets.size, self.whole.machines
        return OneClassRows(StreamedRows.of(scan, size, machines=machines), self.code)


def _by_ticket(drawn: FloatArray, size: int, first: int) -> IntArray:
    """Places of the rows with the smallest tickets after the first so many, in order."""
    return np.sort(np.argsort(drawn, kind="stable")[first : first + size])
