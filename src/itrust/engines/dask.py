"""The same pass on many machines: partitions map, small matrices merge in a tree (Dask)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from itrust._core import Advance, FloatArray, InputError
from itrust.data import Part, Scan
from itrust.engines.factor import Factor
from itrust.engines.passes import Redraw, Totals, Work, accumulate_all
from itrust.engines.threads import one_blas_thread

PART_ROWS = 250_000


@dataclass(frozen=True)
class Dask:
    """Run scans on a Dask cluster; workers must see the files under the same paths.

    Draws are keyed by the number of the row in the whole, so the p-value is that of one
    machine, to the last digit that the order of summation allows. A lost worker's
    partitions are done again.

    Parameters
    ----------
    client : distributed.Client or address of a scheduler
    factor : Factor
        Tolerance, rank and sizes; `threads` is the workers' own affair.
    """

    client: Any
    factor: Factor = field(default_factory=Factor)

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """The client; one made from an address is closed again."""
        if not isinstance(self.client, str) and not hasattr(self.client, "submit"):
            raise InputError(f"Dask needs a client or a scheduler's address, not {self.client!r}")
        if not isinstance(self.client, str):
            yield self.client
            return
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "Dask is not installed; pip install 'itrust[dask]', or use engine='auto'"
            ) from None
        try:
            client = Client(self.client)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {self.client!r} ({error})") from None
        with client:
            yield client

    def survey(self, scan: Scan) -> tuple[Part, ...]:
        """Cut the files into partitions, count rows and sample the pilot rows, on the workers."""
        size = self.factor.pilot
        if size not in scan.surveys:
            with self.connected() as client:
                scan.surveys[size] = _survey(client, scan, size)
        return scan.surveys[size]

    def run(
        self,
        scan: Scan,
        parts: Sequence[Part],
        works: Sequence[Work],
        redraw: Redraw | None,
        draws: int,
        seed: int,
        advance: Advance | None = None,
    ) -> Totals:
        """One pass over all partitions: the data and `draws` draws."""
        with self.connected() as client:
            return _run(
                client,
                scan,
                parts,
                (works, redraw),
                (draws, seed, self.factor.chunk_rows(scan.n)),
                advance,
            )


def _survey(client: Any, scan: Scan, size: int) -> tuple[Part, ...]:
    parts = _partitions(scan)
    keys = {"pure": False}
    if any(part.rows is None for part in parts):
        counts = client.gather(client.map(_count, [_only(scan, part) for part in parts], **keys))
        parts = [replace(part, rows=rows) for part, rows in zip(parts, counts, strict=True)]
    placed, start = [], 0
    for part in parts:
        if part.rows:
            placed.append(replace(part, start=start))
            start += part.rows
    most = min(1.0, 4 * size / max(start, 1))  # so that few rows travel
    pieces = [_only(scan, part) for part in placed]
    found = client.gather(client.map(_candidates, pieces, size=size, most=most, **keys))
    scan.remember(start, size, scan.pilot_of(found, size))
    return tuple(placed)


def _run(
    client: Any,
    scan: Scan,
    parts: Sequence[Part],
    shared: tuple[Sequence[Work], Redraw | None],
    settings: tuple[int, int, int],
    advance: Advance | None,
) -> Totals:
    from distributed import as_completed, wait

    keys = {"pure": False}
    # A task, not scattered data: the scheduler can make it again when a worker is lost.
    plan = client.submit(_pass_on, *shared, **keys)
    wait(plan)  # type: ignore[no-untyped-call]
    client.replicate(plan)  # else all work queues where the plan lies
    leaves = [
        client.submit(_accumulate, _only(scan, part), plan, *settings, **keys) for part in parts
    ]
    level = leaves
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [client.submit(_merge, *pair, **keys) for pair in pairs]
    if advance:
        for _ in as_completed(leaves):  # type: ignore[no-untyped-call]
            advance(scan.n / len(leaves))
    total: Totals = level[0].result()
    return total


def _partitions(scan: Scan) -> list[Part]:
    """Whole files, and of Parquet files some row groups at a time; rows where they are known."""
    parts: list[Part] = []
    for path in scan.files:
        if path.suffix.lower() != ".parquet":
            parts.append(Part(path))
            continue
        metadata = pa.parquet.read_metadata(path)
        group: list[int] = []
        offset = rows = 0
        for number in range(metadata.num_row_groups):
            group.append(number)
            rows += metadata.row_group(number).num_rows
            if rows >= PART_ROWS or number == metadata.num_row_groups - 1:
                known = None if scan.missing == "drop" else rows
                parts.append(Part(path, tuple(group), offset, rows=known))
                offset, rows, group = offset + rows, 0, []
    return parts


def _only(scan: Scan, part: Part) -> Scan:
    """A piece of a scan that was checked when it was made."""
    piece = object.__new__(Scan)
    own = {f.name: getattr(scan, f.name) for f in fields(Scan)}
    piece.__dict__.update(own | {"files": (part.path,), "parts": (part,)})
    return piece


def _count(piece: Scan) -> int:
    return piece.n


def _candidates(piece: Scan, size: int, most: float) -> tuple[FloatArray, pa.Table]:
    return piece.best_candidates(size, most)


def _accumulate(
    piece: Scan, shared: tuple[Sequence[Work], Redraw | None], draws: int, seed: int, chunk: int
) -> Totals:
    works, redraw = shared
    with one_blas_thread():
        return accumulate_all(works, piece.chunks(chunk), redraw, draws, seed)


def _pass_on(works: Sequence[Work], redraw: Redraw | None) -> tuple[Sequence[Work], Redraw | None]:
    return works, redraw


def _merge(first: Totals, second: Totals | None = None) -> Totals:
    return first if second is None else first + second
