"""What is being done, while it is done."""

from __future__ import annotations

from itrust._core import shown_name
from itrust.auditing import AuditStep, Stage
from itrust.render.text.verdict import in_words

WORDS = {
    Stage.ROWS: "reading and counting the rows",
    Stage.PLAN: "choosing checks, points and groups",
    Stage.FINDINGS: "finding out what carries a bias",
    Stage.OVERALL: "testing overall calibration",
    Stage.MISSED: "finding out what could have been missed",
    Stage.LOCAL: "estimating local bias",
    Stage.PARTS: "comparing groups and searching slices",
    Stage.TASKS: "computing your numbers",
    Stage.CHARTS: "computing curves and maps",
    Stage.OVERTURN: "finding out what would overturn it",
    Stage.CLASSES: "judging one class after the other",
    Stage.PAIRS: "finding out which class is taken for which",
}


def step_words(step: AuditStep) -> str:
    """Say what a step of an audit does.

    Examples
    --------
    >>> step_words(AuditStep(Stage.GIVEN, ("age", "sex"))), step_words(AuditStep(Stage.LOCAL))
    ('testing calibration given age and sex', 'estimating local bias')
    """
    if step.stage is Stage.GIVEN:
        return f"testing calibration given {in_words(step.names)}"
    if step.stage is Stage.PASS:
        given = f" given {in_words(step.names)}" if step.names else ""
        return f"testing calibration{given}, and by how much and where it fails"
    if step.stage is Stage.MODEL:
        return f"comparing models: {shown_name(step.names[0])}"
    return WORDS[step.stage]
