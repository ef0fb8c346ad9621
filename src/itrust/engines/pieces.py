"""Pieces of files that the workers of a cluster share: how rows are cut, counted and placed."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar, runtime_checkable

from itrust._core import Advance, InputError
from itrust.data import Chunk, FilePart, FileSet, Scan, split_table
from itrust.engines.passes import Job

PART_ROWS = 2**18  # of a partition, about
MAX_PIECES = 16  # of a row group, which can only be read from its beginning
COUNT_BYTES = 2**24  # of files that are counted by one task


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


def parts_of(scan: Scan) -> list[FilePart]:
    """Parts of all files that can be read alone; rows where they are known."""
    parts = list(scan.file_set.parts(PART_ROWS // 4))
    if scan.where is None and scan.missing != "drop":
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
