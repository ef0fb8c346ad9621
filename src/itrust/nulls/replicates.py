"""Draws from replicate weights: what another draw of the clusters would have given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from itrust._core import FloatArray
from itrust.data import Chunk, Design
from itrust.nulls.base import RowwiseNull


@dataclass(frozen=True, eq=False)
class Replicates(RowwiseNull):
    """Multiply residuals by random mixtures of the replicate weights' deviations.

    The sum of residuals along any direction then varies as its replicates do, for all directions
    together; one chi-square number a draw gives Student's law with as many degrees of freedom as
    replicates have. Asymptotically valid. For rows whose clusters are known by replicate weights
    alone.

    Parameters
    ----------
    deviations : (n, R) array
        Replicate weights over the weights, less 1, times the root of the method's scale.
    freedom : float
        Degrees of freedom.
    """

    deviations: FloatArray = field(repr=False)
    freedom: float
    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "residuals times mixtures of the replicate weights"
    keeps_clusters: ClassVar[bool] = True
    keeps_residuals: ClassVar[bool] = True

    @classmethod
    def of(cls, design: Design) -> Replicates:
        """Take the replicate weights of a design.

        Parameters
        ----------
        design : Design
            With replicate weights.

        Returns
        -------
        Replicates
            For its rows, in their order.
        """
        return cls(design.replicate_deviations, design.freedom)

    def draw(self, chunk: Chunk, draws: range, seed: int) -> FloatArray:
        mixtures = np.empty((self.deviations.shape[1], len(draws)))
        for at, draw in enumerate(draws):
            rng = np.random.default_rng([seed, draw])
            student = np.sqrt(self.freedom / rng.chisquare(self.freedom))
            mixtures[:, at] = student * rng.normal(size=len(mixtures))
        rows = slice(chunk.rows.start, chunk.rows.stop)
        return np.asarray((chunk.y - chunk.p)[:, None] * (self.deviations[rows] @ mixtures))

    def to_dict(self) -> dict[str, Any]:
        """Give the name, whether it is exact, and the degrees of freedom, ready for JSON.

        Returns
        -------
        dict
            Without the weights.
        """
        return {"null": "Replicates", "exact": self.exact, "freedom": self.freedom}
