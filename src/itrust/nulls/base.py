"""What the data would look like if the model were right: the two kinds of null distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from itrust._core import AnyArray, FloatArray
from itrust.data import Chunk, Sample

DRAWS_AT_ONCE = 128  # random bits held at once


class Null(ABC):
    """A way to judge the statistic. `exact`: valid at every sample size, not only in the limit."""

    exact: ClassVar[bool]
    meaning: ClassVar[str]
    is_local_calibration: ClassVar[bool] = True  # the nulls of the paper's code are another's

    def to_dict(self) -> dict[str, Any]:
        """Name, settings and whether it is exact, ready for JSON."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"null": type(self).__name__, "exact": self.exact, **settings}


class SimulatedNull(Null):
    """A null that makes residuals again; draw b of row i depends on (seed, i, b) alone."""

    @abstractmethod
    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        """Write unweighted residuals under the null into `out`, shape (n, len(draws))."""


class RowwiseNull(SimulatedNull):
    """A null that can draw rows apart from each other, so that a stream of chunks suffices."""

    @abstractmethod
    def draw(self, chunk: Chunk, draws: range, seed: int) -> AnyArray:
        """Labels (boolean) or residuals (float) of a chunk's rows, (n, len(draws))."""

    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        """Residuals of all rows."""
        (whole,) = sample.chunks(sample.n)
        for block, part in column_blocks(out, draws):
            drawn = self.draw(whole, block, seed)
            if drawn.dtype == bool:
                np.subtract(drawn, sample.p[:, None], out=part)
            else:
                part[...] = drawn


def column_blocks(out: FloatArray, draws: range) -> Iterator[tuple[range, FloatArray]]:
    """Some draws at a time, with the columns they belong to."""
    for at in range(0, len(draws), DRAWS_AT_ONCE):
        yield draws[at : at + DRAWS_AT_ONCE], out[:, at : at + DRAWS_AT_ONCE]


@dataclass(frozen=True, eq=False)
class Facts:
    """What a formula may ask about the sample and its statistic."""

    statistic: float
    over_pairs: float  # the statistic times the sum of pair weights
    n: int
    weighted: bool
    supremum: float
    spectrum: Callable[[], FloatArray]
    offset: Callable[[], float]  # the law is that of sum l_j z_j^2 minus this


class AnalyticNull(Null):
    """A null whose tail is a formula."""

    depth: ClassVar[float]  # p-values below this are reported as "below", not as a number

    @abstractmethod
    def tail(self, facts: Facts) -> float:
        """Probability, or a bound on it, of a KLCE^2 at least as large."""
