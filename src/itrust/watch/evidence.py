"""The evidence of all panels together, and of single checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from itrust.watch.components import CheckPanel
from itrust.watch.results import Promise, WatchFinding
from itrust.watch.wealth import RECALIBRATED, PanelWealth

MAX_LOG = 700.0  # beyond it a float overflows


def total_of(
    panels: Sequence[CheckPanel], wealth: Sequence[PanelWealth], batches: int, promise: Promise
) -> float:
    """Log evidence of all panels, which have equal shares."""
    logs = [own.total(panel, batches, promise) for panel, own in zip(panels, wealth, strict=True)]
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


def findings_of(
    panel: CheckPanel, own: PanelWealth, panels: int, promise: Promise
) -> list[WatchFinding]:
    """All checks of a panel with their largest evidence."""
    share = (1 - RECALIBRATED if own.log_moved.size else 1.0) / panels
    found = []
    for k, check in enumerate(panel.checks):
        weight, log_evalue = float(panel.weights[k]) * share, float(own.peaks[k])
        pvalue = min(1.0, math.exp(min(0.0, -log_evalue - math.log(weight))))
        found.append(
            WatchFinding(
                check.name,
                check.family,
                check.covariates,
                check.shape,
                check.where,
                panel.label,
                int(own.sides[k]),
                weight,
                exp_of(log_evalue),
                pvalue if promise is Promise.EVER else None,
                int(own.rows[k]),
            )
        )
    return found


def exp_of(log: float) -> float:
    """The exponential, without overflow: what is finite stays finite."""
    return math.inf if log == math.inf else math.exp(min(log, MAX_LOG))
