"""The same pass on many machines: partitions map, small matrices merge in a tree (Dask)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

from itrust._core import Advance, InputError, Setting, checked_positive, counted
from itrust.data import (
    Candidates,
    Extract,
    FilePart,
    FileRows,
    Harvest,
    SelectionCounts,
    Source,
    rows_at_hand,
    split_table,
)
from itrust.engines.allocator import memory_kept
from itrust.engines.cluster import Cluster, while_wanted
from itrust.engines.factor import Factor
from itrust.engines.passes import Job, Totals, accumulate_all
from itrust.engines.plan import POINTS, Plan, Purpose, Survey
from itrust.engines.protocol import Engine
from itrust.engines.threads import one_blas_thread
from itrust.kernels import LocalKernel

WINDOW_ROWS = 2**16  # that the first pass reads at once
PART_ROWS = 2**18  # of a partition, about
MAX_PIECES = 16  # of a row group, which can only be read from its beginning
COUNT_BYTES = 2**24  # of files that are counted by one task


@dataclass(frozen=True)
class Dask(Engine):
    """Run scans on a Dask cluster; workers must see the files under the same paths.

    Draws are keyed by the number of the row in the whole, so the p-value is that of one
    machine, to the last digit that the order of summation allows. A lost worker's
    partitions are done again elsewhere. A cluster that cannot do the work is a `ClusterError`.

    Parameters
    ----------
    client : distributed.Client or str
        A client, or the address of a scheduler.
    factor : Factor
        Tolerance, rank and sizes; `threads` is the workers' own affair.
    patience : float
        Seconds to wait for a worker while there is none, and for a scheduler to answer. Workers
        that have to be started first may take longer than the default.
    """

    client: Any
    factor: Factor = field(default_factory=Factor)
    patience: float = 30.0

    def __post_init__(self) -> None:
        checked_positive(self.patience, "patience")

    @contextmanager
    def _cluster(self) -> Iterator[Cluster]:
        """Give tasks to the cluster; those that are not done at the end are taken back."""
        with self._connected() as client, Cluster(client, self.patience) as cluster:
            yield cluster

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Give the client; one made from an address is closed again."""
        given = self.client
        if not isinstance(given, str) and not hasattr(given, "submit"):
            raise InputError(
                "Dask needs a client or a scheduler's address, not {value}",
                argument="client",
                value=given,
            )
        if not isinstance(given, str) and getattr(given, "asynchronous", False):
            raise InputError(
                "Dask needs a client that waits for answers; make it without asynchronous=True",
                argument="client",
                value=given,
            )
        if not isinstance(given, str):
            yield given
            return
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "Dask is not installed; pip install 'itrust[dask]', or use {auto}",
                argument="engine",
                value=self,
                details={"auto": Setting("engine", "auto")},
            ) from None
        try:
            client = Client(given, timeout=self.patience)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(
                "no Dask scheduler answers at {value} ({error})",
                argument="client",
                value=self.client,
                details={"error": error},
            ) from None
        with client:
            yield client

    @property
    def in_memory(self) -> Engine:
        """The factor on one machine."""
        return self.factor

    @property
    def factor_of_all(self) -> Factor | None:
        """None where none was asked for, so that numbers are those of engine="auto"."""
        return None if self.factor == Factor() else self.factor

    def _survey(self, source: Source, min_rows: int) -> Survey:
        # The workers count rows and choose random ones.
        scan = _checked(source)
        size = max(self.factor.pilot, min_rows, POINTS)
        with scan.file_set.same_files(), self._cluster() as cluster:
            parts, counts = _counted_parts(cluster, scan)
            max_ticket = min(1.0, 4 * size / max(counts.kept, 1))  # so that few rows travel
            pieces = [scan.only(*lot) for lot in partitions_of(parts)]
            asked = cluster.map(_candidates, pieces, size=size, max_ticket=max_ticket)
            found = cluster.answers(asked)
        rows = scan.pilot_of(found, size)
        return Survey(scan, rows, rows.first(self.factor.pilot), parts)

    def _extract(self, source: Source, size: int | None, advance: Advance | None) -> Extract:
        scan, size = _checked(source), rows_at_hand(size)
        with scan.file_set.same_files(), self._cluster() as cluster:
            parts, counts = _counted_parts(cluster, scan)
            # So that few rows travel:
            max_ticket = min(1.0, 1.5 * size / max(counts.kept, 1) + 1e-3)
            pieces = pieces_of(scan, parts, WINDOW_ROWS)
            asked = cluster.map(_harvest, pieces, size=size, max_ticket=max_ticket)
            found = cluster.answers(asked, _rows_done(pieces, advance))
        # Neighbours read the rows between them twice, so that these were counted before.
        found = [replace(one, counts=SelectionCounts()) for one in found]
        return scan.extract_of([replace(found[0], counts=counts), *found[1:]], size, parts)

    @property
    def _pilot_rows(self) -> int:
        return self.factor.pilot

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Plan:
        return self.factor.plan(survey, kernel, purpose)

    def _pass(self, survey: Survey, job: Job) -> Totals:
        chunk = self.factor._chunk_rows(survey.n, job.works)
        scan = _checked(survey.source)
        pieces = pieces_of(scan, survey.parts, chunk)
        with scan.file_set.same_files(), self._cluster() as cluster:
            # A task, not scattered data: the scheduler can make it again when a worker is lost.
            (shared,) = cluster.map(_passed_on, [replace(job, advance=None)])
            cluster.spread(shared)
            done = _rows_done(pieces, job.advance)
            total: Totals = cluster.sum(_accumulate, pieces, done, job=shared, chunk=chunk)
        return total

    def _describe(self, survey: Survey, plan: Any) -> str:
        partitions = counted(len(bounds_of(survey.parts)), "Dask partition")
        return f"{plan.describe()} on {partitions}"


def _checked(source: Any) -> FileRows:
    if source.in_memory is not None:
        raise InputError(
            "Dask reads files; pass itrust.scan(...) instead of a Sample in memory",
            argument="sample",
            value=source,
        )
    scan: FileRows = source
    return scan


def _counted_parts(
    cluster: Cluster, scan: FileRows
) -> tuple[tuple[FilePart, ...], SelectionCounts]:
    """All parts of the files with their rows and where they begin, and what became of all rows."""
    parts = list(scan.file_set.parts(PART_ROWS // 4))
    known = [part.rows or 0 for part in parts]
    counts = [SelectionCounts(rows, rows, rows) for rows in known]
    if not scan.selection.is_all or any(part.rows is None for part in parts):
        # Fewer rows than the file says may count.
        sizes = [split_table(part.path)[0].stat().st_size for part in parts]
        pieces = [[scan.only(part) for part in lot] for lot in lots_of(parts, sizes, COUNT_BYTES)]
        counts = [rows for lot in cluster.answers(cluster.map(_count, pieces)) for rows in lot]
    starts = accumulate((own.kept for own in counts), initial=0)
    placed = tuple(
        replace(part, rows=own.kept, start=start)
        for part, own, start in zip(parts, counts, starts, strict=False)
    )
    return placed, reduce(SelectionCounts.plus, counts, SelectionCounts())


def _count(pieces: list[FileRows]) -> list[SelectionCounts]:
    return [seen_here(piece).selected() for piece in while_wanted(pieces)]


def _candidates(piece: FileRows, size: int, max_ticket: float) -> Candidates:
    return seen_here(piece).candidates(size, max_ticket)


def _harvest(piece: FileRows, size: int, max_ticket: float) -> Harvest:
    return seen_here(piece).harvest(size, max_ticket)


def _accumulate(piece: FileRows, job: Job, chunk: int) -> Totals:
    with one_blas_thread(), memory_kept():
        return accumulate_all(job, while_wanted(seen_here(piece).chunks(chunk)))


def pieces_of(scan: FileRows, parts: Sequence[FilePart], chunk: int) -> list[Any]:
    """What one task reads, for every partition: rows up to a multiple of `chunk`.

    A chunk that begins in one partition and ends in the next belongs to the first. So every chunk
    holds the rows that it would hold on one machine, and sums are the same.
    """
    n = _end(parts[-1]) if parts else 0
    bounds = sorted({0, *(min(-(-bound // chunk) * chunk, n) for bound in bounds_of(parts))})
    starts, ends = [part.start for part in parts], [_end(part) for part in parts]
    pieces = []
    for first, last in pairwise(bounds):
        begin = bisect_right(ends, first) if first else 0
        stop = bisect_left(starts, last)
        while stop < len(parts) and ends[stop] == last:  # parts of which no row counts
            stop += 1
        pieces.append(scan.spanning(parts[begin:stop], range(first, last)))
    return pieces or [scan]  # which has no rows


def bounds_of(parts: Sequence[FilePart]) -> list[int]:
    """Where partitions end, if chunks did not matter."""
    bounds = []
    for lot in partitions_of(parts):
        first, rows = lot[0].start, _end(lot[-1]) - lot[0].start
        pieces = min(max(round(rows / PART_ROWS), 1), MAX_PIECES)
        bounds += [first + rows * (k + 1) // pieces for k in range(pieces)]
    return bounds


def _end(part: FilePart) -> int:
    return part.start + (part.rows or 0)


def partitions_of(parts: Sequence[FilePart]) -> list[list[FilePart]]:
    """Neighbours joined until they have enough rows: a small file is not worth a task."""
    return lots_of(parts, [part.rows or 0 for part in parts], PART_ROWS)


def lots_of(parts: Sequence[FilePart], sizes: Sequence[int], enough: int) -> list[list[FilePart]]:
    """Parts in order, in lots of about the same size; those without rows are never alone."""
    total = max(sum(sizes), 1)
    goal = total / math.ceil(total / enough)
    lots: list[list[FilePart]] = [[]]
    before, last = 0, None
    for part, size in zip(parts, sizes, strict=True):
        number = int((before + size / 2) / goal)
        if size and last is not None and number != last:
            lots.append([])
        last = number if size else last
        lots[-1].append(part)
        before += size
    return lots


def _rows_done(pieces: Sequence[FileRows], advance: Advance | None) -> Callable[[int], None]:
    """Tell of the rows of a piece that is done."""

    def done(number: int) -> None:
        if advance:
            advance(len(pieces[number].rows or ()))

    return done


def _passed_on(job: Job) -> Job:
    """The same; as a task it can be made again when a worker is lost."""
    return job


def seen_here(piece: FileRows) -> FileRows:
    """The same rows; raise where this worker does not find their files."""
    for path in {part.path for part in piece.parts or ()}:
        place = split_table(path)[0]
        if not place.exists():
            raise InputError(
                "a Dask worker finds no {file} in {folder}; workers must see the files under the "
                "same paths as this process",
                file=place.name,
                details={"folder": place.parent},
            )
    return piece
