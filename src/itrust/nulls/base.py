"""What the data would look like if the model were calibrated: the two kinds of null."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from itrust._core import AnyArray, FloatArray
from itrust.data import Chunk, Sample, Source

DRAWS_AT_ONCE = 128  # random bits held at once


class Null(ABC):
    """A way to judge the statistic: how it behaves when the model is calibrated.

    Attributes
    ----------
    exact : bool
        Whether the p-value is valid at every sample size, not only in the limit.
    meaning : str
        What the null does, in a few words.
    is_local_calibration : bool
        Whether its hypothesis is local calibration; that of the paper's code is another one.
    keeps_clusters : bool
        Whether draws keep the dependence within clusters; others take rows as independent.
    keeps_residuals : bool
        Whether draws are the observed residuals times random numbers, so that they keep their size.
    has_known_moments : bool
        Whether labels are independent in its draws, so that moments of a check are closed forms.
    """

    exact: ClassVar[bool]
    meaning: ClassVar[str]
    is_local_calibration: ClassVar[bool] = True
    keeps_clusters: ClassVar[bool] = False
    keeps_residuals: ClassVar[bool] = False
    has_known_moments: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any]:
        """Give the name, the settings and whether it is exact, ready for JSON.

        Returns
        -------
        dict
            The name under "null", then "exact", then the settings.
        """
        settings = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"null": type(self).__name__, "exact": self.exact, **settings}


class SimulatedNull(Null):
    """A null that makes residuals again; draw b of row i depends on (seed, i, b) alone."""

    @abstractmethod
    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        """Write unweighted residuals under the null into an array.

        Parameters
        ----------
        out : (n, len(draws)) array of float
            Where to write: one row for each row of the sample, one column for each draw.
        sample : Sample
            The rows.
        draws : range
            Numbers of the draws.
        seed : int
            What the randomness comes from.
        """


class RowwiseNull(SimulatedNull):
    """A null that can draw rows apart from each other, so that a stream of chunks suffices."""

    def laws(self, source: Source, seed: int) -> tuple[RowwiseNull, ...]:  # noqa: ARG002
        """Give the laws that a calibrated model may follow; a p-value is the largest of theirs.

        Parameters
        ----------
        source : Source
            The rows, with their labels.
        seed : int
            What the randomness comes from.

        Returns
        -------
        tuple of RowwiseNull
            One, itself, unless the null leaves something open.
        """
        return (self,)

    @abstractmethod
    def draw(self, chunk: Chunk, draws: range, seed: int) -> AnyArray:
        """Draw for the rows of one chunk.

        Parameters
        ----------
        chunk : Chunk
            Consecutive rows, n of them.
        draws : range
            Numbers of the draws.
        seed : int
            What the randomness comes from.

        Returns
        -------
        (n, len(draws)) array
            Labels if it is boolean, residuals if it is float.
        """

    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
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
    """What a formula may ask about the sample and its statistic.

    Attributes
    ----------
    statistic : float
        KLCE^2 of the data.
    over_pairs : float
        The statistic times the sum of the weights of all pairs.
    n : int
        Number of rows.
    weighted : bool
        Whether the rows have weights.
    supremum : float
        The largest value of the kernel.
    spectrum : callable without arguments
        Gives the eigenvalues l_j of the limit law.
    offset : callable without arguments
        Gives what is subtracted: the limit law is that of sum l_j z_j^2 minus the offset.
    """

    statistic: float
    over_pairs: float
    n: int
    weighted: bool
    supremum: float
    spectrum: Callable[[], FloatArray]
    offset: Callable[[], float]


class AnalyticNull(Null):
    """A null whose tail is a formula.

    Attributes
    ----------
    depth : float
        P-values below this are reported as "below", not as a number.
    """

    depth: ClassVar[float]

    @abstractmethod
    def tail(self, facts: Facts) -> float:
        """Compute the probability, or a bound on it, of a KLCE^2 at least as large.

        Parameters
        ----------
        facts : Facts
            The statistic and what is known about the sample.

        Returns
        -------
        float
            The p-value.
        """
