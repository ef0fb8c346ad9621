"""What an audit does step by step, and how long each step takes compared with the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from itrust._core import Begin, progress_stages
from itrust.data import DESIGN_ROWS, Scan


class Stage(Enum):
    """What is being done."""

    ROWS = "rows"
    PLAN = "plan"
    PASS = "pass"
    FINDINGS = "findings"
    OVERALL = "overall"
    GIVEN = "given"
    MISSED = "missed"
    PARTS = "parts"
    TASKS = "tasks"
    CHARTS = "charts"
    OVERTURN = "overturn"
    MODEL = "model"
    CLASSES = "classes"
    PAIRS = "pairs"


@dataclass(frozen=True)
class AuditStep:
    """A stage, and the covariates or the model that it is about."""

    stage: Stage
    names: tuple[str, ...] = ()


def audit_steps(
    source: Any,
    names: Sequence[str],
    draws: int,
    tasks: int,
    charts: bool,
    robustness: bool = False,
) -> dict[AuditStep, float]:
    """List the steps of an audit with the seconds that they took on one machine.

    Only their proportions count. They were fitted to audits of 2,000 to 1,000,000 rows and 3 to 8
    covariates, and are off by a factor of two at times.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> [s.stage.value for s in audit_steps(town, town.names, draws=999, tasks=0, charts=False)]
    ['plan', 'pass', 'findings', 'missed', 'parts']
    """
    covariates, in_files = len(names), isinstance(source, Scan)
    thousands = (source.rows_expected if isinstance(source, Scan) else source.n) / 1000
    drawn, at_hand = thousands * draws / 1000, min(thousands, 100.0)
    drawing_charts = (5 * min(covariates, 8) + 1) * (0.03 + 0.008 * min(thousands, 20)) * charts
    weights: dict[Stage, float]
    simple = source.is_simple if isinstance(source, Scan) else source.design.is_simple
    reading = 0.1 + 0.001 * thousands if in_files else 0.0
    classes = len(source.classes) if source.several else 1
    if classes > 1:
        weights = {
            Stage.GIVEN: 0.5 + 0.1 * drawn * classes,
            Stage.CLASSES: 0.3 * classes + 0.05 * drawn * classes,
            Stage.PAIRS: 0.1 + 0.01 * drawn * classes,
            Stage.TASKS: 0.05 * drawn * classes * bool(tasks),
        }
    elif not simple:
        drawn = min(drawn, DESIGN_ROWS * draws / 1e6)
        weights = {
            Stage.ROWS: reading,
            Stage.OVERALL: 0.3 + 0.05 * drawn,
            Stage.GIVEN: (0.5 + 0.1 * covariates + 0.1 * drawn) if covariates else 0.0,
            Stage.MISSED: 0.1 + 0.04 * covariates**2,
            Stage.PARTS: 4.5 + 0.43 * drawn,
            Stage.TASKS: 0.013 * thousands * tasks,
            Stage.CHARTS: drawing_charts,
            Stage.OVERTURN: 0.1 * robustness,
        }
    else:
        weights = {
            Stage.ROWS: reading,
            Stage.PLAN: 0.4 + 0.1 * covariates + 0.01 * at_hand + 0.001 * tasks * thousands,
            Stage.PASS: 0.3 + (0.02 + 0.005 * covariates) * drawn,
            Stage.FINDINGS: 0.1 + 0.004 * drawn,
            Stage.MISSED: 0.1 + 0.04 * covariates**2,
            Stage.PARTS: 0.2 + 0.02 * min(drawn, 100.0),
            Stage.CHARTS: drawing_charts,
            Stage.OVERTURN: (0.2 + 0.02 * at_hand) * robustness,
        }
    return {
        AuditStep(stage, tuple(names) if stage in (Stage.GIVEN, Stage.PASS) else ()): weight
        for stage, weight in weights.items()
        if weight > 0
    }


def shown_steps(steps: dict[AuditStep, float], show: bool | None) -> AbstractContextManager[Begin]:
    """Show which step is at work; see `itrust._core.progress_stages`."""

    def words(step: AuditStep) -> str:
        from itrust.render import step_words

        return step_words(step)

    return progress_stages(steps, words, show)


def model_steps(names: Sequence[str]) -> dict[AuditStep, float]:
    """List the steps of a comparison: every model takes as long as any other."""
    return {AuditStep(Stage.MODEL, (name,)): 1.0 for name in names}
