"""What rows in memory (`Sample`) and rows in files (`Scan`) both promise.

Engines and tests take a `Source`. Whoever needs all rows at once asks `in_memory`, not the type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from itrust._core import Advance, FloatArray, smallest_tickets
from itrust.data.rows import Chunk, Points

if TYPE_CHECKING:
    from itrust.data.extract import Extract
    from itrust.data.sample import Sample


@dataclass(frozen=True, eq=False)
class Pilot:
    """Random rows of the whole, always the same ones, without their labels."""

    points: Points
    variances: FloatArray
    tickets: FloatArray
    n: int

    def first(self, size: int) -> Pilot:
        """The pilot rows that a smaller size would have given.

        Tickets decide who is chosen, so these are among the rows at hand: no second pass is made.
        """
        if self.tickets.size <= size:
            return self
        kept = smallest_tickets(self.tickets, size)
        return Pilot(self.points.take(kept), self.variances[kept], self.tickets[kept], self.n)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that may belong to the pilot rows, from one pass over some files."""

    tickets: FloatArray
    rows: pa.Table
    n: int
    dropped: int = 0


def smallest_of(
    candidates: Sequence[tuple[FloatArray, pa.Table]], size: int
) -> tuple[FloatArray, pa.Table]:
    """The `size` smallest tickets of several lots, in the order of the rows, and their rows."""
    lots = [(drawn, rows) for drawn, rows in candidates if drawn.size]
    if not lots:
        return np.empty(0), pa.table({})
    drawn = np.concatenate([ticket for ticket, _ in lots])
    table = pa.concat_tables([rows for _, rows in lots], promote_options="permissive")
    chosen = smallest_tickets(drawn, size)
    return drawn[chosen], table.take(pa.array(chosen)).combine_chunks()


class Source(Protocol):
    """Labelled rows in memory or in files."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""

    @property
    def weights(self) -> object:
        """The weights or the name of their column; None where rows count alike."""

    @property
    def clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes that are known before the rows are read."""

    @property
    def in_memory(self) -> Sample | None:
        """All rows at once; None where they are in files."""

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, at most `size` at a time."""

    def pilot(self, size: int) -> Pilot:
        """Random rows of the whole, always the same ones; rows in files are read once for it."""

    def extract(self, size: int | None = None, advance: Advance | None = None) -> Extract:
        """Count the rows and keep random ones with their labels, in one pass."""

    def with_names(self, names: Sequence[str]) -> Source:
        """The same rows with some of the covariates."""
