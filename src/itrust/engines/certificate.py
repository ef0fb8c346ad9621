"""How far an approximate kernel can be from the true one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far the approximate kernel can be from the true one; p-values are exact for it.

    Attributes
    ----------
    rank : int
        Number of features that stand in the kernel's place.
    bound : float
        Under the null, the error's standard deviation is at most this share of the
        statistic's own. Uses no label. In single precision a small part of it, for rounding, is
        estimated from some rows.
    sampled : float
        That share itself, estimated from sampled pairs of rows.
    worst_case : (float, float)
        The true KLCE^2 minus the computed one lies between these, for the observed labels.
    precision : str
        Of the features: "float32" or "float64".
    """

    rank: int
    bound: float
    sampled: float
    worst_case: tuple[float, float]
    precision: str

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            The attributes by name; None where a bound is infinite.
        """
        facts = {**vars(self), "worst_case": list(self.worst_case)}
        for name in ("bound", "sampled"):
            facts[name] = facts[name] if math.isfinite(facts[name]) else None
        return facts
