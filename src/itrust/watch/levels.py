"""Labels beyond what the model predicted, by level: what a watch keeps of its last segment.

The bets keep sums of residuals for every check, so the levels of categories need no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import Result
from itrust.data import Everywhere, Predicate

if TYPE_CHECKING:
    from itrust.watch.watched import WatchedModel

FAMILIES = ("overall", "levels")


@dataclass(frozen=True)
class LevelSoFar(Result):
    """One level of a covariate, or all rows, since bets began.

    Attributes
    ----------
    where : Predicate
        The rows.
    label : object
        The class; None for two classes.
    excess : float
        Positive labels less those that the model predicted: the sum of the residuals.
    chance : float
        Standard deviation of that sum if the model is calibrated. It describes; the evidence of a
        watch is what is tested.
    rows : int
        How many there are.
    """

    where: Predicate
    label: Any
    excess: float
    chance: float
    rows: int

    def _facts(self) -> Mapping[str, Any]:
        is_all = isinstance(self.where, Everywhere)
        told = {"where": self.where.formula, "name": str(self.where), "everywhere": is_all}
        return {**vars(self), **told}


def levels_so_far(watch: WatchedModel) -> tuple[LevelSoFar, ...]:
    """Sums of residuals by level, of the batches since bets began.

    Parameters
    ----------
    watch : Watch
        Of rows that count alike: with weights, clusters or a tolerance the sums are others.

    Returns
    -------
    tuple of LevelSoFar
        All rows first, then every level that is a check; empty where there is nothing to tell.
    """
    if watch.tolerance is not None or watch.schema.weighted or watch.schema.clustered:
        return ()
    found = []
    for panel, own in zip(watch.panels, watch.wealth, strict=True):
        if not own.blocks.first:
            continue
        above, second, first = own.blocks.sums[:, :, 0, :].astype(float).sum(axis=0)
        chance = np.sqrt(second + first)
        found += [
            LevelSoFar(
                check.where, panel.label, float(above[k]), float(chance[k]), int(own.rows[k])
            )
            for k, check in enumerate(panel.checks)
            if check.family in FAMILIES
        ]
    return tuple(found)
