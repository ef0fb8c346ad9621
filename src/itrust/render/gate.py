"""The gate: which verdicts close it, and one check for each condition and task."""

from __future__ import annotations

from typing import Literal, NamedTuple

from itrust.auditing import NOT_ENOUGH, SIZE_UNCLEAR, UNTRUSTWORTHY, Audit, Verdict
from itrust.render.text import sections, task_line
from itrust.tasks import TaskResult

Outcome = Literal["passed", "failed", "skipped"]


class Check(NamedTuple):
    """One thing that was looked at; `failed` only where the gate is closed, too."""

    name: str
    outcome: Outcome
    says: str


def is_closed(verdict: Verdict) -> bool:
    """Whether the model is shown to be untrustworthy; too few rows show nothing."""
    return verdict.name in (UNTRUSTWORTHY, SIZE_UNCLEAR)


def checks(audit: Audit) -> list[Check]:
    """The verdict, the three conditions and every task."""
    closed = is_closed(audit.verdict)
    too_few = audit.verdict.name == NOT_ENOUGH
    lines = {section.title: "\n".join(section.lines) for section in sections(audit)}
    reliance, competency = audit.reliance.test, audit.competency
    wrong = competency.pvalue <= audit.alpha or competency.impossible > 0
    return [
        Check("verdict", _outcome(closed, too_few), str(audit.verdict)),
        Check("reliance", _outcome(closed and reliance.pvalue <= audit.alpha), lines["reliance"]),
        Check("competency", _outcome(closed and wrong), lines["competency"]),
        Check("confidence", _outcome(False, too_few), lines.get("confidence", "not known")),
        *(_task_check(task, closed) for task in audit.tasks),
    ]


def _task_check(task: TaskResult, closed: bool) -> Check:
    failed = closed and task.finding == "biased"
    return Check(f"task {task.name}", _outcome(failed), task_line(task))


def _outcome(failed: bool, skipped: bool = False) -> Outcome:
    return "failed" if failed else "skipped" if skipped else "passed"
