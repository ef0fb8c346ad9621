"""What would overturn the evidence, an audit and its numbers, in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from itrust._core import counted
from itrust.auditing import MARGINS, NOT_REJECTED, Audit, Check, Gate, Verdict
from itrust.overturn import (
    FlippedLabels,
    NumberRobustness,
    PrudentResult,
    RangePrecision,
    Robustness,
    Tipping,
)
from itrust.render.document import Document, Notes, Section, Table, document_of, noted, seconds
from itrust.render.text.tasks import task_words
from itrust.tasks import TaskFinding

TITLE = "What would overturn this"
NAMES = {
    "selection": "selection",
    "label_error": "label error",
    "false_positives": "false labels 1",
    "false_negatives": "false labels 0",
    "tolerance": "tolerance",
}
OF_NUMBERS = ("selection", "label_error")  # what is told of every number; the JSON has all
HOLDS = "calibration is still rejected if"


def size_words(kind: str, size: float) -> str:
    """Write the size of a violation, rounded down so that nothing is said to hold too long.

    Examples
    --------
    >>> size_words("selection", 1.2789), size_words("label_error", 0.0319)
    ('1.27', '3.1 %')
    >>> size_words("tolerance", 0.0529)
    '0.052'
    """
    if kind == "selection":
        return f"{_down(size, 2):.2f}"
    if kind == "tolerance":
        return f"{_down(size, 3):.3f}"
    return f"{_down(100 * size, 1):.1f} %"


def _down(value: float, digits: int) -> float:
    """Round down, but for what rounding of numbers in memory takes away."""
    unit: float = 10.0**digits
    return math.floor(value * unit + 1e-6) / unit


CLAUSES: dict[str, Callable[[str], str]] = {
    "selection": lambda size: f"the odds of a label are off by a factor of up to {size}",
    "label_error": lambda size: f"up to {size} of labels are in error, in whichever rows",
    "false_positives": lambda size: f"up to {size} of the rows that should have label 0 have 1",
    "false_negatives": lambda size: f"up to {size} of the rows that should have label 1 have 0",
}
NOTHING: dict[str, str] = {
    "selection": "the slightest selection of rows",
    "label_error": "the slightest error of labels",
    "false_positives": "the fewest labels 1 that should be 0",
    "false_negatives": "the fewest labels 0 that should be 1",
}


def violation_sentence(found: Tipping, audit: Audit | None = None) -> str:
    """Say how large a violation would have to be to explain the evidence."""
    if found.point is None:
        return "nothing to overturn: calibration itself is not rejected"
    size = size_words(found.kind, found.point)
    more = "more than " if found.beyond else ""
    if found.kind == "tolerance":
        return _tolerance_sentence(found.point, more, audit)
    if size == size_words(found.kind, found.neutral):
        return f"{NOTHING[found.kind]} could explain what was found"
    told = CLAUSES[found.kind](size)
    if found.beyond:
        told = f"{told}, the most that was looked at"
    return f"{HOLDS} {told}"


def _tolerance_sentence(point: float, more: str, audit: Audit | None) -> str:
    """Say which bias the test shows, in line with the verdict."""
    size = size_words("tolerance", point)
    if size == size_words("tolerance", 0.0):
        return "the test alone shows no size: the slightest bias everywhere could explain it"
    told = f"a bias of {more or 'at least '}{size} is shown somewhere by the test alone"
    if audit is None:
        return told
    large, verdict = point >= audit.tolerance, audit.verdict
    if verdict is Verdict.MISCALIBRATED and not large:
        return f"{told}; that it reaches {audit.tolerance:g} is what the verdict's evidence shows"
    if verdict is Verdict.SIZE_NOT_ESTABLISHED and large:
        return f"{told}, though in no place that can be named"
    if verdict is Verdict.WITHIN_TOLERANCE and large:
        return f"{told}, in few rows: nearly all lie within {audit.tolerance:g}"
    return told


def prudence_sentence(found: PrudentResult, alpha: float) -> str:
    """Say whether a probability is shown to be too low, which is what prudence asks."""
    shown = "show" if found.pvalue <= alpha else "do not show"
    return f"sums of labels alone {shown} that probabilities are too low somewhere ({_test(found)})"


def _test(found: PrudentResult) -> str:
    return f"p = {found.pvalue:.3g}"


def flips_words(found: FlippedLabels) -> str:
    """Say how many labels would have to be flipped.

    Examples
    --------
    >>> flips_words(FlippedLabels(14, 14, 14, 0))
    '14 labels flipped from 1 to 0'
    >>> flips_words(FlippedLabels(3, 5, 2, 3))
    '3 to 5 flipped labels'
    """
    if not found.is_exact:
        return f"{found.at_least:,} to {found.at_most:,} flipped labels"
    if found.to_negative and found.to_positive:
        return counted(found.at_most, "flipped label")
    way = "1 to 0" if found.to_negative else "0 to 1"
    return f"{counted(found.at_most, 'label')} flipped from {way}"


def number_sentence(found: NumberRobustness) -> str:
    """Say what would overturn the finding about a number."""
    if found.finding is TaskFinding.WITHHELD:
        return "withheld"
    if not found.is_decided:
        return "undecided, so there is nothing to overturn"
    least = "at least " if found.precision is RangePrecision.BOUND else ""
    about = "to first order " if found.precision is RangePrecision.FIRST_ORDER else ""
    parts = []
    for kind in OF_NUMBERS:
        own = found.tipping(kind)
        size = size_words(kind, own.neutral if own.point is None else own.point)
        more = "more than " if own.beyond else least
        what = "a factor of {} in the odds" if kind == "selection" else "{} of labels in error"
        parts.append(what.format(f"{more}{size}"))
    told = f"{about}{found.finding.value} up to {' or '.join(parts)}"
    if found.flips is not None:
        # Flips change the width of the interval, too, which is taken as it is.
        return f"{told}; about {flips_words(found.flips)} would make it undecided"
    if not found.flips_counted:
        return f"{told}; flipped labels are not counted on files of this size"
    return f"{told}; no flipped labels would make it undecided"


@document_of.register
def _(result: NumberRobustness) -> Document:
    return Document(f"{task_words(result.task)}: {number_sentence(result)}")


@document_of.register
def _(result: Tipping) -> Document:
    return Document(f"{NAMES[result.kind]}: {violation_sentence(result)}")


@document_of.register
def _(result: PrudentResult) -> Document:
    return Document(f"test of whether probabilities are too low somewhere: {_test(result)}")


@document_of.register
def _(result: Robustness) -> Document:
    exact = f"exact; {counted(result.checks, 'check')}, adjusted for all of them"
    findings = [own.finding for own in result.violations if own.finding is not None]
    rows = [
        ("rows", f"{result.n:,}"),
        ("covariates", ", ".join(result.names) or "none"),
        ("calibrated?", f"p = {result.pvalue:.3g}   ({exact})"),
        *(("carried by", str(finding)) for finding in findings[:1]),
        *((NAMES[tipping.kind], violation_sentence(tipping)) for tipping in result.violations),
        ("prudence", prudence_sentence(result.prudence, result.alpha)),
        *(("number", str(number)) for number in result.numbers),
        ("made with", f"{result.draws:,} draws, seed {result.seed}, {seconds(result.elapsed)}"),
    ]
    return Document(
        f"What would overturn it?   (alpha = {result.alpha:g})",
        [Table(("", ""), rows), noted(result.notes, result.warnings)],
    )


def overturning_sections(audit: Audit) -> list[Section]:
    """Say what would overturn an audit, unless that was left out."""
    found = audit.robustness
    if found is None:
        return []
    lines = [] if found.untold is None else [untold_words(found.untold)]
    lines += [f"{NAMES[own.kind]}: {violation_sentence(own, audit)}" for own in found.violations]
    if found.prudence is not None:
        lines.append(f"prudence: {prudence_sentence(found.prudence, audit.alpha)}")
    if found.draws:
        which = f"all {audit.n:,} rows"
        if found.rows < audit.n:
            which = f"{found.rows:,} random rows of {audit.n:,}"
        lines.append(f"judged on {which} with {counted(found.draws, 'draw')}")
    lines += [
        f"{task_words(own.task, task.positives)}: {number_sentence(own)}"
        for own, task in zip(found.numbers, audit.tasks, strict=False)
    ]
    return [Section("robustness", TITLE, [Notes(lines)])] if lines else []


def untold_words(why: str) -> str:
    """Say why nothing is told about the evidence against the model."""
    if why == NOT_REJECTED:
        return why
    return f"of the evidence against the model this is not known: {why}"


def overturning_facts(audit: Audit) -> dict[str, Any] | None:
    """Give what would overturn an audit, with its sentences, ready for JSON."""
    found = audit.robustness
    if found is None:
        return None
    facts = found.to_dict()
    facts["sentence"] = None if found.untold is None else untold_words(found.untold)
    for told, own in zip(facts["violations"], found.violations, strict=True):
        told["sentence"] = violation_sentence(own, audit)
    if found.prudence is not None:
        facts["prudence"]["sentence"] = prudence_sentence(found.prudence, audit.alpha)
    for told, number, task in zip(facts["numbers"], found.numbers, audit.tasks, strict=False):
        told["title"] = task_words(number.task, task.positives)
        told["sentence"] = number_sentence(number)
    return facts


def margin_words(name: str, size: float) -> str:
    """Say which violation evidence has to survive.

    Examples
    --------
    >>> margin_words("odds", 1.2), margin_words("label-error", 0.02)
    ('odds off by a factor of 1.2', '2 % of labels in error')
    """
    percent = f"{100 * size:.3g} %"
    return {
        "odds": f"odds off by a factor of {size:g}",
        "label-error": f"{percent} of labels in error",
        "false-positives": f"{percent} of labels 0 turned into 1",
        "false-negatives": f"{percent} of labels 1 turned into 0",
        "tolerance": f"a bias of {size:g} everywhere",
    }[name]


def explained_words(check: Check, audit: Audit) -> list[str]:
    """Say why a check does not close the gate although it found something; empty where it does."""
    if not check.explained:
        return []
    points = [_point_of(check, audit, MARGINS[name][0]) for name, _ in check.explained]
    why = " or ".join(
        margin_words(*own) + ("" if point is None else f" (it stands up to {point:.3g})")
        for own, point in zip(check.explained, points, strict=True)
    )
    return [f"does not close the gate, as {why} could explain it"]


def _point_of(check: Check, audit: Audit, kind: str) -> float | None:
    """The largest violation at which the evidence behind a check still stands."""
    held = audit.robustness
    if held is None:
        return None
    if check.key != "task":
        return held.point(kind)
    at = next((k for k, task in enumerate(audit.tasks) if task is check.value), None)
    return None if at is None else held.numbers[at].tipping(kind).point


def margins_words(found: Gate) -> list[str]:
    """Say what margins did to a gate."""
    if not found.margins:
        return []
    said = []
    asked = " and with ".join(margin_words(*own) for own in found.margins)
    model = found.asked != "tasks" and found.verdict.closes_gate
    if model and found.unjudged is not None:
        evidence = "whether the evidence against the model survives"
        said.append(f"{evidence} {asked} could not be judged: {found.unjudged}")
    elif model and found.explained:
        why = " or ".join(margin_words(*own) for own in found.explained)
        said.append(f"{why} could explain that")
    elif model or (found.biased and found.asked != "model"):
        said.append(f"also with {asked}")
    if found.spared and found.asked != "model":
        numbers = counted(len(found.spared), "number")
        verb = "is" if len(found.spared) == 1 else "are"
        spares = (own for check in found.checks if check.key == "task" for own in check.explained)
        why = " or ".join(margin_words(*own) for own in dict.fromkeys(spares))
        said.append(f"{numbers} {verb} biased, which {why} could explain")
    return said
