"""A part of a pass that sums rows once, whatever the number of draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from itrust._core import FloatArray
from itrust.data import Extract, Rows
from itrust.engines import Additive, Outcome, Plan, RowwiseWork

Sums = TypeVar("Sums", bound=Additive)


@dataclass(frozen=True, eq=False)
class SummingPart(ABC, Generic[Sums]):
    """What is known by one sum over all rows, which the first batch of draws takes along."""

    extract: Extract
    unit: float

    @abstractmethod
    def summing(self) -> Callable[[Rows, FloatArray], Sums]:
        """What some rows contribute, given their weights."""

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Nothing is kept for draws."""
        return 0

    def works(self, block: range) -> list[RowwiseWork]:
        """One piece of work, with the first draws only."""
        return [] if block.start else [RowwiseWork(self.summing(), self.unit)]

    def reduced(self, outcome: Outcome, block: range) -> Sums | None:
        """Keep the sums."""
        return None if block.start else outcome.works[0]

    def finished(self, found: Sequence[Sums | None]) -> Sums:
        """Take the sums of the first batch."""
        assert found[0] is not None
        return found[0]
