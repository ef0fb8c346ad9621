"""Sums over rows that no redrawn label takes part in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from itrust._core import FloatArray
from itrust.data import Chunk
from itrust.engines.passes import Additive
from itrust.engines.products import Drawn


@dataclass(frozen=True, eq=False)
class RowwiseWork:
    """What a function of a chunk gives, summed over all rows; no labels are redrawn."""

    function: Callable[[Chunk, FloatArray], Additive]
    unit: float

    @property
    def max_rows(self) -> None:
        """As many rows at once as the engine likes."""
        return None

    def begin(self, chunk: Chunk, weights: FloatArray, columns: int) -> RowwisePartial:  # noqa: ARG002
        """Compute the share of a chunk."""
        return RowwisePartial(self.function(chunk, weights))


@dataclass(frozen=True, eq=False)
class RowwisePartial:
    """The share of one chunk, which is finished when it begins."""

    share: Additive

    def add(self, drawn: Drawn) -> None:
        """Nothing depends on draws."""

    def finished(self) -> Additive:
        """The share."""
        return self.share
