"""How long each step of an audit takes compared with the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from itrust.data import DESIGN_ROWS, Scan


def audit_steps(
    source: Any,
    names: Sequence[str],
    draws: int,
    tasks: int,
    charts: bool,
    robustness: bool = False,
) -> dict[str, float]:
    """List the steps of an audit with the seconds that they took on one machine.

    Only their proportions count. They were fitted to audits of 2,000 to 1,000,000 rows and 3 to 8
    covariates, and are off by a factor of two at times.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> list(audit_steps(town, town.names, draws=999, tasks=0, charts=False))
    ['plan', 'pass', 'findings', 'missed', 'parts']
    """
    covariates, in_files = len(names), isinstance(source, Scan)
    thousands = (source.rows_expected if isinstance(source, Scan) else source.n) / 1000
    drawn, at_hand = thousands * draws / 1000, min(thousands, 100.0)
    drawing_charts = (5 * min(covariates, 8) + 1) * (0.03 + 0.008 * min(thousands, 20)) * charts
    weights: dict[str, float]
    simple = source.is_simple if isinstance(source, Scan) else source.design.is_simple
    reading = 0.1 + 0.001 * thousands if in_files else 0.0
    classes = len(source.classes) if source.several else 1
    if classes > 1:
        weights = {
            "given": 0.5 + 0.1 * drawn * classes,
            "classes": 0.3 * classes + 0.05 * drawn * classes,
            "pairs": 0.1 + 0.01 * drawn * classes,
            "tasks": 0.05 * drawn * classes * bool(tasks),
        }
    elif not simple:
        drawn = min(drawn, DESIGN_ROWS * draws / 1e6)
        weights = {
            "rows": reading,
            "overall": 0.3 + 0.05 * drawn,
            "given": (0.5 + 0.1 * covariates + 0.1 * drawn) if covariates else 0.0,
            "missed": 0.1 + 0.04 * covariates**2,
            "parts": 4.5 + 0.43 * drawn,
            "tasks": 0.013 * thousands * tasks,
            "charts": drawing_charts,
            "overturn": 0.1 * robustness,
        }
    else:
        weights = {
            "rows": reading,
            "plan": 0.4 + 0.1 * covariates + 0.01 * at_hand + 0.001 * tasks * thousands,
            "pass": 0.3 + (0.02 + 0.005 * covariates) * drawn,
            "findings": 0.1 + 0.004 * drawn,
            "missed": 0.1 + 0.04 * covariates**2,
            "parts": 0.2 + 0.02 * min(drawn, 100.0),
            "charts": drawing_charts,
            "overturn": (0.2 + 0.02 * at_hand) * robustness,
        }
    return {step: weight for step, weight in weights.items() if weight > 0}


def step_words(step: str, names: Sequence[str]) -> str:
    """What a step is called while it is done; loads what makes words then."""
    from itrust import render

    return render.step_words(step, names)
