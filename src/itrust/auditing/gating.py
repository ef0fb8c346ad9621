"""The gate of a build: whether it is closed, and one check for each condition and number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from itrust._core import InputError, checked_choice
from itrust.auditing.audits import Audit
from itrust.auditing.margins import Margin, as_margins
from itrust.auditing.multiclass.audits import MulticlassAudit
from itrust.auditing.overturning import Overturning, Untold
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
        Names of the numbers that are shown to be biased; with margins, of those whose bias
        survives all of them.
    checks : tuple of Check
        The verdict, the three conditions, of several classes each, and every number.
    margins : tuple of Margin
        What evidence has to survive before it closes the gate, each by itself.
    explained : tuple of Margin
        Those that the evidence against the model does not survive.
    spared : tuple of str
        Names of the numbers that are shown to be biased, where a margin could explain it.
    unjudged : Untold or None
        Why it is not known whether the evidence against the model survives the margins: then it
        closes the gate as it is. None where that is known, or was not asked.
    """

    verdict: Verdict
    asked: Asked
    biased: tuple[str, ...]
    checks: tuple[Check, ...]
    margins: tuple[Margin, ...] = ()
    explained: tuple[Margin, ...] = ()
    spared: tuple[str, ...] = ()
    unjudged: Untold | None = None

    @property
    def closed(self) -> bool:
        """Whether the model, or a number, is shown to be off; too few rows show nothing."""
        model = self.asked != "tasks" and self.verdict.closes_gate and not self.explained
        return model or (self.asked != "model" and bool(self.biased))


def gate(
    audit: Audit | MulticlassAudit,
    asked: Asked = "any",
    robust_to: Mapping[str, float] | None = None,
) -> Gate:
    """Decide whether a build may go on, check by check.

    Parameters
    ----------
    audit : Audit or MulticlassAudit
        What was found. In a copy that `Disclosure` made, verdict and p-values of the tests are all
        there; numbers that it withholds are not judged.
    asked : {"model", "tasks", "any"}
        What can close the gate: the verdict on the model, a number that is biased, or either.
    robust_to : mapping of str to float, optional
        Violations that evidence has to survive before it closes the gate, each by itself: sizes
        by name, among "odds" (of selection), "label-error", "false-positives", "false-negatives"
        and "tolerance", such as {"odds": 1.2}. Default: evidence closes the gate as it is, and so
        it does where it is not known what would overturn it.

    Returns
    -------
    Gate
        Whether it is closed, and the checks.
    """
    asked = checked_choice(asked, "asked", get_args(Asked))
    verdict, test, alpha = audit.verdict, audit.test, audit.alpha
    margins = as_margins(robust_to)
    model = asked != "tasks"
    explained: tuple[Margin, ...] = ()
    held = _held(audit, margins, model=model) if margins else None
    unjudged: Untold | None = None
    if held is not None and model and verdict.closes_gate:
        unjudged = held.untold
        if unjudged is None:
            explained = tuple(own for own in margins if not _survives(held, own))
    closes, open_ = verdict.closes_gate and not explained, not verdict.conclusive
    open_ = open_ or bool(explained)
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
    biased: list[str] = []
    spared: list[str] = []
    for k, task in enumerate(audit.tasks):
        found, numbers = task.finding, asked != "model"
        holds = found.closes_gate and _number_holds(held, k, margins)
        if found.closes_gate:
            (biased if holds else spared).append(task.name)
        open_ = found in (TaskFinding.UNDECIDED, TaskFinding.WITHHELD)
        outcome = _outcome(holds, open_ or (found.closes_gate and not holds), numbers)
        checks.append(Check("task", f"task {task.name}", outcome, task, is_asked=numbers))
    told = tuple(biased), tuple(checks)
    return Gate(verdict, asked, *told, margins, explained, tuple(spared), unjudged)


def _held(audit: Audit | MulticlassAudit, margins: Sequence[Margin], *, model: bool) -> Overturning:
    """What would overturn the audit; refused where that is not known and is asked for."""
    found = None if isinstance(audit, MulticlassAudit) else audit.robustness
    if isinstance(audit, MulticlassAudit):
        raise InputError(
            "{argument} is for two labels: what would overturn an audit of several classes is not "
            "known; leave it out",
            argument="robust_to",
        )
    if found is None:
        raise InputError(
            "{argument} needs to know what would overturn the audit, which was left out of it",
            argument="robust_to",
        )
    if model and found.untold is Untold.DEPENDENT and audit.verdict.closes_gate:
        raise InputError(
            "{argument} needs independent rows: {why}; leave it out",
            argument="robust_to",
            details={"why": found.untold.value},
        )
    for own in margins:
        most = found.largest(own.kind)
        if most is not None and own.size > most:
            raise InputError(
                "{argument}: {name} is looked at up to {most}, not {value}",
                argument="robust_to",
                value=own.size,
                details={"name": own.name, "most": f"{most:g}"},
            )
    return found


def _survives(held: Overturning, margin: Margin) -> bool:
    """Whether the evidence against the model is there under a violation."""
    point = held.point(margin.kind)
    return point is not None and point >= margin.size


def _number_holds(held: Overturning | None, k: int, margins: Sequence[Margin]) -> bool:
    """Whether the k-th number is shown to be biased under every violation."""
    if held is None or not margins:
        return True
    points = [held.numbers[k].tipping(own.kind).point for own in margins]
    return all(
        point is not None and point >= own.size for point, own in zip(points, margins, strict=True)
    )


def _outcome(failed: bool, undecided: bool, is_asked: bool) -> Outcome:
    if failed:
        return "failed" if is_asked else "skipped"
    return "skipped" if undecided else "passed"
