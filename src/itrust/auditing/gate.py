"""The gate of a build: whether it is closed, and one check for each condition and task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from itrust.auditing.audits import Audit
from itrust.auditing.verdict import Verdict
from itrust.tasks import TaskFinding

Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, eq=False)
class Check:
    """One condition of the gate.

    Attributes
    ----------
    key : {"verdict", "overall", "test", "missed", "task"}
        Which part of the audit the check is about.
    name : str
        The check in words.
    outcome : {"passed", "failed", "skipped"}
        "failed" only where the gate is closed; "skipped" where too few rows tell nothing.
    value : object
        The part of the audit: a judgement, a result, a task.
    """

    key: str
    name: str
    outcome: Outcome
    value: Any


@dataclass(frozen=True, eq=False)
class Gate:
    """What a build is told about an audit.

    Attributes
    ----------
    verdict : Verdict
        Of the audit; `verdict.closes_gate` says whether the gate is closed.
    checks : tuple of Check
        The verdict, the three conditions, and every task.
    """

    verdict: Verdict
    checks: tuple[Check, ...]

    @property
    def closed(self) -> bool:
        """Whether the model is shown to be miscalibrated; too few rows show nothing."""
        return self.verdict.closes_gate


def gate(audit: Audit) -> Gate:
    """Decide whether a build may go on, check by check.

    Whatever a part of the audit shows, its check fails only where the verdict closes the gate.

    Parameters
    ----------
    audit : Audit
        What was found. A copy that `Disclosure` made will do: verdict, tasks and p-values of the
        tests, which the checks rest on, are all there.

    Returns
    -------
    Gate
        Whether it is closed, and the checks.
    """
    verdict, test = audit.verdict, audit.test
    closed, unclear = verdict.closes_gate, not verdict.conclusive
    refuted = test.pvalue <= audit.alpha or test.impossible > 0
    overall = audit.overall.test.pvalue <= audit.alpha
    checks = [
        Check("verdict", "verdict", _outcome(closed, unclear), audit.judgement),
        Check("overall", "overall calibration", _outcome(closed and overall), audit.overall),
        Check("test", "calibration given the covariates", _outcome(closed and refuted), test),
        Check("missed", "what could have been missed", _outcome(False, unclear), audit.missed),
    ]
    for task in audit.tasks:
        failed = closed and task.finding is TaskFinding.BIASED
        checks.append(Check("task", f"task {task.name}", _outcome(failed), task))
    return Gate(verdict, tuple(checks))


def _outcome(failed: bool, skipped: bool = False) -> Outcome:
    return "failed" if failed else "skipped" if skipped else "passed"
