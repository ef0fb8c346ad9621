"""The gate of a build: whether it is closed, and one check for each condition and number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from itrust._core import checked_choice
from itrust.auditing.audits import Audit
from itrust.auditing.multiclass.audits import MulticlassAudit
from itrust.auditing.verdict import Verdict
from itrust.tasks import TaskFinding

Outcome = Literal["passed", "failed", "skipped"]
Asked = Literal["model", "tasks", "any"]


@dataclass(frozen=True, eq=False)
class Check:
    """One condition of the gate.

    Attributes
    ----------
    key : {"verdict", "overall", "test", "missed", "class", "task"}
        Which part of the audit the check is about.
    name : str
        The check in words.
    outcome : {"passed", "failed", "skipped"}
        "failed" only where the gate is closed by it; "skipped" where the rows do not decide, or
        the gate was not asked about it.
    value : object
        The part of the audit: a judgement, a result, a task.
    is_asked : bool
        Whether the gate was asked about it.
    """

    key: str
    name: str
    outcome: Outcome
    value: Any
    is_asked: bool = True


@dataclass(frozen=True, eq=False)
class Gate:
    """What a build is told about an audit.

    Attributes
    ----------
    verdict : Verdict
        On the model.
    asked : {"model", "tasks", "any"}
        What can close the gate.
    biased : tuple of str
        Names of the numbers that are shown to be biased.
    checks : tuple of Check
        The verdict, the three conditions, of several classes each, and every number.
    """

    verdict: Verdict
    asked: Asked
    biased: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def closed(self) -> bool:
        """Whether the model, or a number, is shown to be off; too few rows show nothing."""
        model = self.asked != "tasks" and self.verdict.closes_gate
        return model or (self.asked != "model" and bool(self.biased))


def gate(audit: Audit | MulticlassAudit, asked: Asked = "any") -> Gate:
    """Decide whether a build may go on, check by check.

    Parameters
    ----------
    audit : Audit or MulticlassAudit
        What was found. In a copy that `Disclosure` made, verdict and p-values of the tests are all
        there; numbers that it withholds are not judged.
    asked : {"model", "tasks", "any"}
        What can close the gate: the verdict on the model, a number that is biased, or either.

    Returns
    -------
    Gate
        Whether it is closed, and the checks.
    """
    asked = checked_choice(asked, "asked", get_args(Asked))
    verdict, test, alpha = audit.verdict, audit.test, audit.alpha
    closes, open_ = verdict.closes_gate, not verdict.conclusive
    model = asked != "tasks"
    refuted, refused = audit.judgement.refuted, test.refused is not None
    overall = closes and audit.overall.refutes(alpha)
    hidden = not audit.judgement.would_be_seen
    parts: list[tuple[str, str, Outcome, Any]] = [
        ("verdict", "verdict on the model", _outcome(closes, open_, model), audit.judgement),
        ("overall", "overall calibration", _outcome(overall, refused, model), audit.overall),
        (
            "test",
            "calibration given the covariates",
            _outcome(closes and refuted, refused, model),
            test,
        ),
        ("missed", "what could have been missed", _outcome(False, hidden, model), audit.missed),
    ]
    if isinstance(audit, MulticlassAudit):
        parts += [
            (
                "class",
                f"class {part.name}",
                _outcome(closes and part.name in audit.shown_classes, refused, model),
                part,
            )
            for part in audit.parts
        ]
    checks = [Check(*part, is_asked=model) for part in parts]
    for task in audit.tasks:
        found, numbers = task.finding, asked != "model"
        open_ = found in (TaskFinding.UNDECIDED, TaskFinding.WITHHELD)
        outcome = _outcome(found.closes_gate, open_, numbers)
        checks.append(Check("task", f"task {task.name}", outcome, task, is_asked=numbers))
    biased = tuple(task.name for task in audit.tasks if task.finding.closes_gate)
    return Gate(verdict, asked, biased, tuple(checks))


def _outcome(failed: bool, undecided: bool, is_asked: bool) -> Outcome:
    if failed:
        return "failed" if is_asked else "skipped"
    return "skipped" if undecided else "passed"
