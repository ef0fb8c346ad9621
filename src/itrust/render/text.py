"""An audit or a comparison as plain text of any width; what is told is in the result already."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from itrust.auditing import Audit
from itrust.bias import SIGN
from itrust.calibration import Detectable
from itrust.tasks import TaskResult

WIDTH = 88
NARROW = 56  # below it titles stand on lines of their own
TITLE = 13
MAX_TOLD = 3


class Section(NamedTuple):
    """A title and the lines under it."""

    title: str
    lines: list[str]


def told(audit: Audit, width: int = WIDTH) -> str:
    """The whole audit, the verdict first."""
    head = [f"VERDICT  {audit.verdict.name}", *wrapped(audit.verdict.sentence, width, "  ")]
    alarms = (f"! {alarm}" for alarm in audit.competency.alarms)
    head += [line for text in alarms for line in wrapped(text, width, "  ", "  ")]
    body = [line for section in sections(audit) for line in _laid_out(section, width)]
    foot = [line for text in footnotes(audit) for line in wrapped(text, width, "  ")]
    return "\n".join([*head, "", *body, "", *foot])


def wrapped(text: str, width: int, indent: str = "", deeper: str = "") -> list[str]:
    """Lines of at most `width` characters; those after the first are indented deeper."""
    return textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent + deeper,
        break_on_hyphens=False,
    )


def _laid_out(section: Section, width: int) -> list[str]:
    """The title beside its lines, or above them where there is little room."""
    if width < NARROW:
        below = [line for text in section.lines for line in wrapped(text, width, "    ", "  ")]
        return [f"  {section.title}", *below]
    indent = " " * (TITLE + 2)
    lines = [line for text in section.lines for line in wrapped(text, width, indent, "  ")]
    return [f"  {section.title:<{TITLE}}{lines[0].strip()}", *lines[1:]]


def sections(audit: Audit) -> list[Section]:
    """What was asked and what was found, in the order of the audit."""
    on = ", ".join(audit.competency.names) or "the prediction alone"
    found = [
        Section("rows", [f"{audit.n:,}, judged on {on}"]),
        Section("reliance", _reliance(audit)),
        Section("competency", _competency(audit)),
        Section("diagnosis", _diagnosis(audit)),
    ]
    if audit.confidence.detectable is not None:
        found.insert(3, Section("confidence", [seen(audit.confidence.detectable)]))
    if audit.tasks:
        lines = [line for task in audit.tasks for line in _task(task)]
        found.append(Section("tasks", lines))
    return found


def footnotes(audit: Audit) -> list[str]:
    """How to read it, and what makes it again."""
    tasks = (
        "mean(...) and share(...) are among positives; intervals and p-values hold for all tasks "
        "at once; bias of a task: with labels - with probabilities"
    )
    made = (
        f"alpha {audit.alpha:g}, tolerance {audit.tolerance:g}, {audit.draws:,} draws, seed "
        f"{audit.seed}, {audit.elapsed:.2g} s"
    )
    notes = (f"note: {note}" for note in audit.competency.notes)
    return [*([tasks] if audit.tasks else []), SIGN, made, *notes]


def _reliance(audit: Audit) -> list[str]:
    found = audit.reliance
    return [
        f"calibrated at all?  p {found.test.pvalue:.3g}",
        f"Brier {found.brier:.4f}, ECE {found.ece:.4f}, smooth ECE {found.smooth_ece:.4f}",
    ]


def _competency(audit: Audit) -> list[str]:
    test = audit.competency
    story = getattr(test, "story", lambda _: ())(audit.alpha)
    return [
        f"calibrated given the covariates?  p {test.pvalue:.3g}",
        f"KLCE^2 {test.statistic:.3g} (may be negative)",
        *(f"{found.pvalue:.3f}  {found}" for found in story[:MAX_TOLD]),
        *_more(len(story) - MAX_TOLD),
    ]


def _diagnosis(audit: Audit) -> list[str]:
    slices, bias = audit.diagnosis.slices, audit.diagnosis.bias
    flagged = f"local bias shown to be wrong at {100 * bias.flagged.mean():.0f} % of points"
    return [
        f"{len(slices.confirmed)} of {len(slices)} slices confirmed; {flagged}",
        *(
            f"{part.bias:+.3f} ({part.lower:+.3f} to {part.upper:+.3f})  {part.rule}"
            for part in slices.confirmed[:MAX_TOLD]
        ),
        *_more(len(slices.confirmed) - MAX_TOLD),
    ]


def _more(number: int) -> Iterable[str]:
    return [f"and {number} more"] if number > 0 else []


def _task(task: TaskResult) -> list[str]:
    return [task.name, f"  {task_line(task)}", *(f"  note: {note}" for note in task.notes)]


def task_line(task: TaskResult) -> str:
    """What a model does to one number."""
    return (
        f"{task.plugin:.5g} with probabilities, {task.from_labels:.5g} with labels: bias "
        f"{task.bias:+.3g} ({task.lower:+.3g} to {task.upper:+.3g}), p {task.pvalue:.3g}: "
        f"{task.finding}"
    )


def seen(found: Detectable) -> str:
    """What would have been seen, in words."""
    if not np.isfinite(found.everywhere.shift):
        return "no bias below 0.5 would be seen: too few rows"
    everywhere = f"a bias of {found.everywhere.shift:.3f} everywhere"
    if not np.isfinite(found.worst.shift) or found.worst.where == "everywhere":
        return f"{everywhere} would be seen with power {found.power:g}"
    where = f"of {found.worst.shift:.3f} where {found.worst.where}"
    rows = "; rows taken as independent" if found.notes else ""
    return f"{everywhere}, or {where}, would be seen with power {found.power:g}{rows}"


def fitted(text: str, width: int) -> str:
    """Any table of ours in less room: long lines go on below, deeper than they began."""
    lines: list[str] = []
    for line in text.splitlines():
        if len(line) <= width:
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        lines.extend(wrapped(line.strip(), width, indent, "    "))
    return "\n".join(lines)
