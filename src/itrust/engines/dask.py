"""The same pass on many machines: partitions map, small matrices merge in a tree (Dask)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from itrust._core import Advance, InputError, Setting
from itrust.data import (
    Candidates,
    Extract,
    FilePart,
    Harvest,
    Scan,
    Source,
    rows_at_hand,
)
from itrust.engines.factor import Factor
from itrust.engines.passes import Job, Totals, accumulate_all
from itrust.engines.plan import Plan, Purpose
from itrust.engines.protocol import Engine
from itrust.engines.survey import POINTS, Survey
from itrust.engines.threads import one_blas_thread
from itrust.kernels import LocalKernel

PART_ROWS = 250_000


@dataclass(frozen=True)
class Dask(Engine):
    """Run scans on a Dask cluster; workers must see the files under the same paths.

    Draws are keyed by the number of the row in the whole, so the p-value is that of one
    machine, to the last digit that the order of summation allows. A lost worker's
    partitions are done again.

    Parameters
    ----------
    client : distributed.Client or str
        A client, or the address of a scheduler.
    factor : Factor
        Tolerance, rank and sizes; `threads` is the workers' own affair.
    """

    client: Any
    factor: Factor = field(default_factory=Factor)

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Give the client; one made from an address is closed again.

        Yields
        ------
        dask.distributed.Client
            Connected to its scheduler.
        """
        if not isinstance(self.client, str) and not hasattr(self.client, "submit"):
            raise InputError(
                "Dask needs a client or a scheduler's address, not {value}",
                argument="client",
                value=self.client,
            )
        if not isinstance(self.client, str):
            yield self.client
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
            client = Client(self.client)  # type: ignore[no-untyped-call]
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
        # The workers cut the files into partitions, count rows and choose random ones.
        scan = _checked(source)
        size = max(self.factor.pilot, min_rows, POINTS)
        with scan.file_set.same_files(), self.connected() as client:
            parts = _counted_parts(client, scan)
            n = sum(part.rows or 0 for part in parts)
            max_ticket = min(1.0, 4 * size / max(n, 1))  # so that few rows travel
            pieces = [scan.only(part) for part in parts]
            found = client.gather(
                client.map(_candidates, pieces, size=size, max_ticket=max_ticket, pure=False)
            )
        rows = scan.pilot_of(found, size)
        return Survey(scan, rows, rows.first(self.factor.pilot), parts)

    def _extract(self, source: Source, size: int | None, advance: Advance | None) -> Extract:
        scan, size = _checked(source), rows_at_hand(size)
        with scan.file_set.same_files(), self.connected() as client:
            parts = _counted_parts(client, scan)
            n = sum(part.rows or 0 for part in parts)
            max_ticket = min(1.0, 1.5 * size / max(n, 1) + 1e-3)  # so that few rows travel
            pieces = [scan.only(part) for part in parts]
            found = client.gather(
                client.map(_harvest, pieces, size=size, max_ticket=max_ticket, pure=False)
            )
        if advance:
            advance(n)
        return scan.extract_of(found, size, parts)

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Plan:
        return self.factor.plan(survey, kernel, purpose)

    def _pass(self, survey: Survey, job: Job) -> Totals:
        scan = _checked(survey.source)
        chunk = self.factor.chunk_rows(survey.n, job.works)
        pieces = list(_pieces(scan, survey.parts, chunk))
        with scan.file_set.same_files(), self.connected() as client:
            return _merged(client, pieces, job, chunk, survey.n)

    def _describe(self, survey: Survey, plan: Plan) -> str:
        return f"{plan.describe()} on {len(survey.parts)} Dask partitions"


def _checked(source: Source) -> Scan:
    if not isinstance(source, Scan):
        raise InputError(
            "Dask reads files; pass itrust.scan(...) instead of a Sample in memory",
            argument="sample",
            value=source,
        )
    return source


def _counted_parts(client: Any, scan: Scan) -> tuple[FilePart, ...]:
    """The partitions that have rows, and which row of the whole each begins with."""
    parts = _partitions(scan)
    if any(part.rows is None for part in parts):
        pieces = [scan.only(part) for part in parts]
        counts = client.gather(client.map(_count, pieces, pure=False))
        parts = [replace(part, rows=rows) for part, rows in zip(parts, counts, strict=True)]
    placed, start = [], 0
    for part in parts:
        if part.rows:
            placed.append(replace(part, start=start))
            start += part.rows
    return tuple(placed)


def _pieces(scan: Scan, parts: Sequence[FilePart], chunk: int) -> Iterator[Scan]:
    """The rows of every partition up to a multiple of `chunk`, so that chunks are never cut.

    A chunk that begins in one partition and ends in the next belongs to the first. So every chunk
    holds the rows that it would hold on one machine, and sums are the same.
    """
    n = parts[-1].start + (parts[-1].rows or 0)
    for k, part in enumerate(parts):
        stop = part.start + (part.rows or 0)
        first, last = (-(-row // chunk) * chunk for row in (part.start, stop))
        last = min(last, n)
        if first < last:
            upto = k + 1
            while parts[upto - 1].start + (parts[upto - 1].rows or 0) < last:
                upto += 1
            yield scan.spanning(parts[k:upto], range(first, last))


def _merged(client: Any, pieces: Sequence[Scan], job: Job, chunk: int, n: int) -> Totals:
    """The sums of all pieces, merged in pairs on the workers."""
    from distributed import as_completed, wait

    keys = {"pure": False}
    # A task, not scattered data: the scheduler can make it again when a worker is lost.
    shared = client.submit(_pass_on, replace(job, advance=None), **keys)
    wait(shared)  # type: ignore[no-untyped-call]
    client.replicate(shared)  # else all work queues where the job lies
    leaves = [client.submit(_accumulate, piece, shared, chunk, **keys) for piece in pieces]
    level = leaves
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [client.submit(_merge, *pair, **keys) for pair in pairs]
    if job.advance:
        for _ in as_completed(leaves):  # type: ignore[no-untyped-call]
            job.advance(n / len(leaves))
    total: Totals = level[0].result()
    return total


def _partitions(scan: Scan) -> list[FilePart]:
    """Pieces of all files that can be read alone; rows where they are known."""
    parts = list(scan.file_set.parts(PART_ROWS))
    if (
        scan.where is not None or scan.missing == "drop"
    ):  # how many rows count is not what the file says
        parts = [replace(part, rows=None) for part in parts]
    return parts


def _count(piece: Scan) -> int:
    return piece.n


def _candidates(piece: Scan, size: int, max_ticket: float) -> Candidates:
    return piece.candidates(size, max_ticket)


def _harvest(piece: Scan, size: int, max_ticket: float) -> Harvest:
    return piece.harvest(size, max_ticket)


def _accumulate(piece: Scan, job: Job, chunk: int) -> Totals:
    with one_blas_thread():
        return accumulate_all(job, piece.chunks(chunk))


def _pass_on(job: Job) -> Job:
    return job


def _merge(first: Totals, second: Totals | None = None) -> Totals:
    return first if second is None else first + second
