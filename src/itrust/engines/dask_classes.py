"""Rows of several classes on a Dask cluster: the pieces that rows of two classes are cut into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

from itrust._core import Advance
from itrust.data import (
    Chunk,
    Extract,
    FilePart,
    Harvest,
    MulticlassScan,
    SelectionCounts,
)
from itrust.engines.allocator import memory_kept
from itrust.engines.cluster import Cluster, while_wanted
from itrust.engines.dask import (
    COUNT_BYTES,
    Dask,
    bounds_of,
    bytes_of,
    lots_of,
    parts_of,
    passed_on,
    pieces_of,
    placed,
    seen_here,
    told_rows,
)
from itrust.engines.passes import Additive
from itrust.engines.products import Scratch
from itrust.engines.threads import one_blas_thread

FACT_ROWS = 65_536  # added up at once, as in memory
ClassWork = Callable[[Chunk, Scratch], Additive]


def class_survey(
    engine: Dask, scan: MulticlassScan, size: int, advance: Advance | None = None
) -> tuple[Extract, tuple[FilePart, ...]]:
    """Count rows of several classes and choose random ones, on the workers."""
    with scan.file_set.same_files(), engine.cluster() as cluster:
        parts, counts = _counted_parts(cluster, scan)
        if counts.kept < 2:
            return scan.extract_of((), size), parts  # which refuses them
        max_ticket = min(1.0, 1.5 * size / counts.kept + 1e-3)  # so that few rows travel
        pieces = pieces_of(scan, parts, FACT_ROWS)
        how = {"size": size, "max_ticket": max_ticket}
        asked = cluster.map(_harvest, pieces, **how)
        found = cluster.answers(asked, told_rows(pieces, advance))
    return scan.extract_of(found, size, parts), parts


def class_total(
    engine: Dask,
    scan: MulticlassScan,
    parts: tuple[FilePart, ...],
    size: int,
    work: ClassWork,
    advance: Advance | None = None,
) -> Any:
    """Add up what chunks of rows contribute, on the workers."""
    pieces = pieces_of(scan, parts, size)
    with scan.file_set.same_files(), engine.cluster() as cluster:
        (shared,) = cluster.map(passed_on, [work])
        cluster.spread(shared)
        own = pieces
        done = told_rows(pieces, advance)
        return cluster.sum(_summed, own, done, work=shared, chunk=size)


def partitions_of(parts: tuple[FilePart, ...]) -> int:
    """Into how many partitions workers divide the rows."""
    return len(bounds_of(parts))


def _counted_parts(
    cluster: Cluster, scan: MulticlassScan
) -> tuple[tuple[FilePart, ...], SelectionCounts]:
    """All parts of the files with the rows that count, and what became of the others."""
    parts = parts_of(scan)
    if scan.selection.is_all and all(part.rows is not None for part in parts):
        n = sum(part.rows or 0 for part in parts)
        return placed(parts), SelectionCounts(n, n, n)
    lots = lots_of(parts, [bytes_of(part) for part in parts], COUNT_BYTES)
    pieces = [[scan.only(part) for part in lot] for lot in lots]
    found = [own for lot in cluster.answers(cluster.map(_counts, pieces)) for own in lot]
    counted = [replace(part, rows=own.kept) for part, own in zip(parts, found, strict=True)]
    total = reduce(lambda one, other: one.plus(other), found, SelectionCounts())
    return placed(counted), total


def _counts(pieces: list[MulticlassScan]) -> list[SelectionCounts]:
    return [_found(piece).selected() for piece in while_wanted(pieces)]


def _harvest(piece: MulticlassScan, size: int, max_ticket: float) -> Harvest:
    return _found(piece).harvest(size, max_ticket)


def _summed(piece: MulticlassScan, work: ClassWork, chunk: int) -> Additive:
    scratch = Scratch()
    with one_blas_thread(), memory_kept():
        parts = (work(rows, scratch) for rows in while_wanted(_found(piece).chunks(chunk)))
        total = next(parts)
        for part in parts:
            total = total.absorbed(part)
    return total


def _found(piece: MulticlassScan) -> MulticlassScan:
    seen_here(piece)
    return piece
