"""Labels of different rows that go together, beyond what p and the covariates explain.

Residuals are looked at within the values of columns that may name units, within rows that are
nearly alike, and in the order of the file. What a smooth function of (p, x) explains is taken off
first. What stays is compared with rows that would share the bias of a miscalibrated model but
belong to another unit: the nearest units in p and x, or rows some way off in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from itrust.calibration.assumptions.order import neighbour_correlation
from itrust.calibration.assumptions.rows import Rows
from itrust.calibration.assumptions.units import (
    Agreement,
    agreement,
    by_column,
    by_likeness,
    by_pair,
)

MIN_ROWS = 50
AS_MUCH = 0.8  # of the largest correlation, from which on the coarser column is told


@dataclass(frozen=True)
class Dependence:
    """Rows whose labels go together."""

    kind: Literal["column", "alike", "order"]
    correlation: float
    rows: int = 0
    units: int = 0
    names: tuple[str, ...] = ()


def dependence(whole: Rows, followed: Rows | None = None) -> Dependence | None:
    """The plainest sign of dependence; None without one, or if clusters are known.

    Rows that are random ones of many tell nothing by their order; `followed` are others that do.
    """
    sample = whole.sample
    design = sample.design
    known = design.cluster is not None or design.replicate_weights is not None
    if known or sample.n < MIN_ROWS or np.ptp(sample.y) == 0:
        return None
    columns = [found for units in by_column(whole) if (found := agreement(whole, units))]
    if columns:
        return _told("column", _coarsest(columns))
    for units in by_pair(sample):
        if (found := agreement(whole, units)) is not None:
            return _told("column", found)
    for units in by_likeness(whole):
        if (found := agreement(whole, units)) is not None:
            return _told("alike", found)
    correlation = neighbour_correlation(whole if followed is None else followed)
    return None if correlation is None else Dependence("order", correlation)


def _coarsest(found: list[Agreement]) -> Agreement:
    """Of columns that show about as much the one with the fewest units: it holds the others."""
    most = max(one.correlation for one in found)
    close = [one for one in found if one.correlation >= AS_MUCH * most]
    return min(close, key=lambda one: one.units)


def _told(kind: Literal["column", "alike"], found: Agreement) -> Dependence:
    return Dependence(kind, found.correlation, found.rows, found.units, found.names)
