"""The gate of a build: whether it is closed, and one check for each condition and number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

from itrust._core import InputError, checked_choice, did_you_mean
from itrust.auditing.audits import Audit
from itrust.auditing.overturning import DEPENDENT, Overturning
from itrust.auditing.verdict import Verdict
from itrust.overturn import KINDS
from itrust.tasks import TaskFinding
from itrust.watch import WatchReport, number_finding

Outcome = Literal["passed", "failed", "skipped"]
Asked = Literal["model", "tasks", "any"]
# What a margin is called, the kind of violation, the size that violates nothing, the largest.
MARGINS = {
    "odds": ("selection", 1.0, math.inf),
    "label-error": ("label_error", 0.0, 1.0),
    "false-positives": ("false_positives", 0.0, 1.0),
    "false-negatives": ("false_negatives", 0.0, 1.0),
    "tolerance": ("tolerance", 0.0, 1.0),
}


Margin: TypeAlias = tuple[str, float]  # a violation that evidence has to survive, and its size


def as_margins(asked: Mapping[str, float] | None) -> tuple[Margin, ...]:
    """Check the margins that somebody asks for.

    Examples
    --------
    >>> as_margins({"odds": 1.2})
    (('odds', 1.2),)
    """
    if asked is None:
        return ()
    if not isinstance(asked, Mapping) or not asked:
        raise InputError(
            "{argument} must name margins and their sizes, such as dict(odds=1.2), not {value}",
            argument="robust_to",
            value=asked,
        )
    return tuple(_margin(name, size) for name, size in asked.items())


def _margin(name: object, size: object) -> Margin:
    known = str(name).replace("_", "-")
    if known not in MARGINS:
        raise InputError(
            "{argument} has no margin {value}",
            argument="robust_to",
            value=name,
            hint=did_you_mean(known, list(MARGINS)),
        )
    _, neutral, most = MARGINS[known]
    number = float(size) if isinstance(size, Real) and not isinstance(size, bool) else math.nan
    if not neutral < number < most:
        upper = "" if math.isinf(most) else f" and below {most:g}"
        raise InputError(
            "{argument}: {name} must be above {neutral}{upper}, not {value}",
            argument="robust_to",
            value=size,
            details={"name": known, "neutral": f"{neutral:g}", "upper": upper},
        )
    return known, number


@dataclass(frozen=True, eq=False)
class Check:
    """One condition of the gate.

    Attributes
    ----------
    key : {"verdict", "overall", "test", "missed", "class", "task", "alarm"}
        Which part of the audit, or of the watch, the check is about.
    name : str
        The check in words.
    outcome : {"passed", "failed", "skipped"}
        "failed" only where the gate is closed by it; "skipped" where the rows do not decide, a
        margin could explain what was found, or the gate was not asked about it.
    value : object
        The part of the audit: a judgement, a result, a task; of a watch its report, or a number.
    is_asked : bool
        Whether the gate was asked about it.
    explained : tuple of (str, float)
        Margins that could explain what would otherwise have closed the gate: names and sizes.
    """

    key: str
    name: str
    outcome: Outcome
    value: Any
    is_asked: bool = True
    explained: tuple[Margin, ...] = ()


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
    margins : tuple of (str, float)
        What evidence has to survive before it closes the gate, each by itself.
    explained : tuple of (str, float)
        Those that the evidence against the model does not survive.
    spared : tuple of str
        Names of the numbers that are shown to be biased, where a margin could explain it.
    unjudged : str or None
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
    unjudged: str | None = None

    @property
    def closed(self) -> bool:
        """Whether the model, or a number, is shown to be off; too few rows show nothing."""
        model = self.asked != "tasks" and self.verdict.closes_gate and not self.explained
        return model or (self.asked != "model" and bool(self.biased))


def gate(audit: Audit, asked: Asked = "any", robust_to: Mapping[str, float] | None = None) -> Gate:
    """Decide whether a build may go on, check by check.

    Parameters
    ----------
    audit : Audit
        What was found. Of `audit.disclosed(...)` verdict and p-values of the tests are those of the
        audit; numbers that are withheld are not judged.
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
    kinds = [MARGINS[name][0] for name, _ in margins]
    model = asked != "tasks"
    explained: tuple[Margin, ...] = ()
    held = _held(audit, margins, model=model) if margins else None
    unjudged: str | None = None
    if held is not None and model and verdict.closes_gate:
        unjudged = held.untold
        if unjudged is None:
            explained = _unsurvived(map(held.point, kinds), margins)
    refuted, refused = audit.judgement.refuted, test.refused is not None
    overall, off = audit.overall.refutes(alpha), verdict.closes_gate
    hidden = not audit.judgement.would_be_seen

    def about_model(key: str, name: str, value: Any, found: bool, undecided: bool) -> Check:
        spares = explained if found and model else ()
        outcome = _outcome(found and not spares, undecided or bool(spares), model)
        return Check(key, name, outcome, value, model, spares)

    checks = [
        about_model(
            "verdict", "verdict on the model", audit.judgement, off, not verdict.conclusive
        ),
        about_model("overall", "overall calibration", audit.overall, off and overall, refused),
        about_model("test", "calibration given the covariates", test, off and refuted, refused),
        about_model("missed", "what could have been missed", audit.missed, False, hidden),
    ]
    if len(audit.parts) > 1:
        shown = audit.shown_classes
        checks += [
            about_model("class", f"class {own.name}", own, off and own.name in shown, refused)
            for own in audit.parts
        ]
    biased: list[str] = []
    spared: list[str] = []
    for k, task in enumerate(audit.tasks):
        found, numbers = task.finding, asked != "model"
        explains: tuple[Margin, ...] = ()
        if held is not None and found.closes_gate:
            points = (held.numbers[k].tipping(kind).point for kind in kinds)
            explains = _unsurvived(points, margins)
        if found.closes_gate:
            (spared if explains else biased).append(task.name)
        open_ = found in (TaskFinding.UNDECIDED, TaskFinding.WITHHELD) or bool(explains)
        outcome = _outcome(found.closes_gate and not explains, open_, numbers)
        spares = explains if numbers else ()
        checks.append(Check("task", f"task {task.name}", outcome, task, numbers, spares))
    told = tuple(biased), tuple(checks)
    return Gate(verdict, asked, *told, margins, explained, tuple(spared), unjudged)


def watch_checks(report: WatchReport, asked: Asked = "any") -> tuple[Check, ...]:
    """The checks of the gate of a watch: it is closed where one has failed.

    Parameters
    ----------
    report : WatchReport
        Of a watch.
    asked : {"model", "tasks", "any"}
        What can close the gate: an alarm, a number that is biased so far, or either. Every number
        has an error alpha of its own, beside that of the alarm, and "any" adds them all up.

    Returns
    -------
    tuple of Check
        The alarm, then every number; `value` is the report or the number.
    """
    asked = checked_choice(asked, "asked", get_args(Asked))
    model, numbers = asked != "tasks", asked != "model"
    outcome: Outcome = "failed" if report.alarm else "passed"
    name = "no alarm of the watch"
    checks = [Check("alarm", name, outcome if model else "skipped", report, model)]
    for own in report.numbers:
        found = number_finding(own)
        undecided = found is TaskFinding.UNDECIDED and own.task.tolerance is not None
        open_ = undecided or found is TaskFinding.WITHHELD or not numbers
        outcome = _outcome(found.closes_gate, open_, numbers)
        checks.append(Check("task", f"task {own.task}", outcome, own, numbers))
    return tuple(checks)


def _held(audit: Audit, margins: Sequence[Margin], *, model: bool) -> Overturning:
    """What would overturn the audit; refused where that is not known and is asked for."""
    found = audit.robustness
    if len(audit.parts) > 1:
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
    if model and found.untold == DEPENDENT and audit.verdict.closes_gate:
        raise InputError(
            "{argument} needs independent rows: {why}; leave it out",
            argument="robust_to",
            details={"why": found.untold},
        )
    for name, size in margins:
        most = KINDS[MARGINS[name][0]].end
        if size > most:
            raise InputError(
                "{argument}: {name} is looked at up to {most}, not {value}",
                argument="robust_to",
                value=size,
                details={"name": name, "most": f"{most:g}"},
            )
    return found


def _unsurvived(points: Iterable[float | None], margins: Sequence[Margin]) -> tuple[Margin, ...]:
    """The violations that are larger than those up to which there is evidence."""
    pairs = zip(points, margins, strict=True)
    return tuple(own for at, own in pairs if at is None or at < own[1])


def _outcome(failed: bool, undecided: bool, is_asked: bool) -> Outcome:
    if failed:
        return "failed" if is_asked else "skipped"
    return "skipped" if undecided else "passed"
