"""The same pass on many machines: partitions map, small matrices merge in a tree (Dask)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar, runtime_checkable

from itrust._core import Advance, InputError, Setting, checked_positive, counted
from itrust.data import (
    Candidates,
    Chunk,
    Extract,
    FilePart,
    FileRows,
    FileSet,
    Harvest,
    Scan,
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
    def cluster(self) -> Iterator[Cluster]:
        """Give tasks to the cluster; those that are not done at the end are taken back.

        Yields
        ------
        Cluster
            All of whose workers have the same version of the package.
        """
        with self.connected() as client, Cluster(client, self.patience) as cluster:
            yield cluster

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Give the client; one made from an address is closed again.

        Yields
        ------
        dask.distributed.Client
            Connected to its scheduler.
        """
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

    def _survey(self, source: Source, min_rows: int) -> Survey:
        # The workers count rows and choose random ones.
        scan = _checked(source)
        size = max(self.factor.pilot, min_rows, POINTS)
        with scan.file_set.same_files(), self.cluster() as cluster:
            parts = _counted_parts(cluster, scan)
            n = sum(part.rows or 0 for part in parts)
            max_ticket = min(1.0, 4 * size / max(n, 1))  # so that few rows travel
            pieces = [scan.only(*lot) for lot in partitions_of(parts)]
            asked = cluster.map(_candidates, pieces, size=size, max_ticket=max_ticket)
            found = cluster.answers(asked)
        rows = scan.pilot_of(found, size)
        return Survey(scan, rows, rows.first(self.factor.pilot), parts)

    def _extract(self, source: Source, size: int | None, advance: Advance | None) -> Extract:
        scan, size = _checked(source), rows_at_hand(size)
        with scan.file_set.same_files(), self.cluster() as cluster:
            parts = _counted_parts(cluster, scan)
            n = sum(part.rows or 0 for part in parts)
            max_ticket = min(1.0, 1.5 * size / max(n, 1) + 1e-3)  # so that few rows travel
            pieces = pieces_of(scan, parts, WINDOW_ROWS)
            asked = cluster.map(_harvest, pieces, size=size, max_ticket=max_ticket)
            found = cluster.answers(asked, told_rows(pieces, advance))
        return scan.extract_of(found, size, parts)

    @property
    def _pilot_rows(self) -> int:
        return self.factor.pilot

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Plan:
        return self.factor.plan(survey, kernel, purpose)

    def _pass(self, survey: Survey, job: Job) -> Totals:
        chunk = self.factor.chunk_rows(survey.n, job.works)
        source = survey.source
        scan = source if isinstance(source, Divisible) else _checked(source)
        pieces = pieces_of(scan, survey.parts, chunk)
        with scan.file_set.same_files(), self.cluster() as cluster:
            return _summed(cluster, pieces, job, chunk)

    def _describe(self, survey: Survey, plan: Plan) -> str:
        partitions = counted(len(bounds_of(survey.parts)), "Dask partition")
        return f"{plan.describe()} on {partitions}"


def _checked(source: Source) -> Scan:
    if not isinstance(source, Scan):
        raise InputError(
            "Dask reads files; pass itrust.scan(...) instead of a Sample in memory",
            argument="sample",
            value=source,
        )
    return source


def _counted_parts(cluster: Cluster, scan: Scan) -> tuple[FilePart, ...]:
    """All parts of the files, how many rows each has, and with which of the whole it begins."""
    parts = parts_of(scan)
    if any(part.rows is None for part in parts):
        lots = lots_of(parts, [bytes_of(part) for part in parts], COUNT_BYTES)
        pieces = [[scan.only(part) for part in lot] for lot in lots]
        counts = [rows for found in cluster.answers(cluster.map(_count, pieces)) for rows in found]
        parts = [replace(part, rows=rows) for part, rows in zip(parts, counts, strict=True)]
    return placed(parts)


def _summed(cluster: Cluster, pieces: list[Any], job: Job, chunk: int) -> Totals:
    """The sums of all pieces."""
    # A task, not scattered data: the scheduler can make it again when a worker is lost.
    (shared,) = cluster.map(passed_on, [replace(job, advance=None)])
    cluster.spread(shared)
    done = told_rows(pieces, job.advance)
    total: Totals = cluster.sum(_accumulate, pieces, done, job=shared, chunk=chunk)
    return total


def _count(pieces: list[Scan]) -> list[int]:
    return [seen_here(piece).n for piece in while_wanted(pieces)]


def _candidates(piece: Scan, size: int, max_ticket: float) -> Candidates:
    return seen_here(piece).candidates(size, max_ticket)


def _harvest(piece: Scan, size: int, max_ticket: float) -> Harvest:
    return seen_here(piece).harvest(size, max_ticket)


def _accumulate(piece: Piece, job: Job, chunk: int) -> Totals:
    with one_blas_thread(), memory_kept():
        return accumulate_all(job, while_wanted(seen_here(piece).chunks(chunk)))


class Piece(Protocol):
    """Some rows of files that one task reads."""

    @property
    def parts(self) -> tuple[FilePart, ...] | None:
        """The pieces of files that hold them."""

    @property
    def rows(self) -> range | None:
        """Their numbers in the whole."""

    def chunks(self, size: int) -> Iterator[Chunk]:
        """These rows in order."""


@runtime_checkable
class Divisible(Protocol):
    """Rows in files that many machines can share."""

    @property
    def file_set(self) -> FileSet:
        """The files."""

    def spanning(self, parts: Sequence[FilePart], rows: range) -> Piece:
        """Name the rows with some numbers, which lie in some pieces of the files."""


Rows = TypeVar("Rows", bound=Piece)


def placed(parts: Sequence[FilePart]) -> tuple[FilePart, ...]:
    """The same; each knows the number of its first row in the whole."""
    placed, start = [], 0
    for part in parts:
        placed.append(replace(part, start=start))
        start += part.rows or 0
    return tuple(placed)


def parts_of(scan: FileRows) -> list[FilePart]:
    """Parts of all files that can be read alone; rows where they are known."""
    parts = list(scan.file_set.parts(PART_ROWS // 4))
    if scan.roles.where is None and scan.missing != "drop":
        return parts
    return [replace(part, rows=None) for part in parts]  # fewer than the file says may count


def pieces_of(scan: Divisible, parts: Sequence[FilePart], chunk: int) -> list[Any]:
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


def bytes_of(part: FilePart) -> int:
    """Size of the file that a part lies in."""
    return split_table(part.path)[0].stat().st_size


def told_rows(pieces: Sequence[Piece], advance: Advance | None) -> Callable[[int], None]:
    """Tell of the rows of a piece that is done."""

    def done(number: int) -> None:
        if advance:
            advance(len(pieces[number].rows or ()))

    return done


def passed_on(job: Job) -> Job:
    """The same; as a task it can be made again when a worker is lost."""
    return job


def seen_here(piece: Rows) -> Rows:
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
