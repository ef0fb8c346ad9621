"""Audits and comparisons as plain text."""

from __future__ import annotations

import numpy as np

from itrust.auditing import Audit, Comparison
from itrust.bias import SIGN
from itrust.calibration import Detectable
from itrust.render.showing import as_text
from itrust.render.text.layout import WIDTH, Section, fitted, laid_out, more, wrapped
from itrust.tasks import TaskResult

MAX_TOLD = 3


@as_text.register
def told(audit: Audit, width: int = WIDTH) -> str:
    """The whole audit, the verdict first."""
    head = [f"VERDICT  {audit.verdict.name}", *wrapped(audit.verdict.sentence, width, "  ")]
    alarms = (f"! {alarm}" for alarm in audit.competency.alarms)
    head += [line for text in alarms for line in wrapped(text, width, "  ", "  ")]
    body = [line for section in sections(audit) for line in laid_out(section, width)]
    foot = [line for text in footnotes(audit) for line in wrapped(text, width, "  ")]
    return "\n".join([*head, "", *body, "", *foot])


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
        *more(len(story) - MAX_TOLD),
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
        *more(len(slices.confirmed) - MAX_TOLD),
    ]


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


@as_text.register
def compared(comparison: Comparison, width: int = WIDTH) -> str:
    """Models, their tasks and paired differences."""
    names = max(len("model"), *(len(model.name) for model in comparison.models))
    head = f"{'model':<{names}}  accuracy    Brier      ECE  smooth ECE  p given covariates"
    lines = [head]
    lines.extend(
        f"{m.name:<{names}}  {m.accuracy:>8.4f} {m.brier:>8.4f} {m.ece:>8.4f}  "
        f"{m.smooth_ece:>10.4f}  {m.test.pvalue:>18.3g}"
        for m in comparison.models
    )
    for k, task in enumerate(comparison.models[0].tasks):
        lines.append("")
        lines.append(f"{task.name}   (with labels {task.from_labels:.5g})")
        for m in comparison.models:
            own = m.tasks[k]
            lines.append(
                f"  {m.name:<{names}} {own.plugin:>10.5g}  bias {own.bias:+.3g} "
                f"({own.lower:+.3g} to {own.upper:+.3g}), p {own.pvalue:.3g}"
            )
    lines += [
        "",
        f"differences, first minus second, {100 * (1 - comparison.alpha):g} % intervals each",
    ]
    for part in comparison.differences:
        mark = "*" if part.clear else " "
        lines.append(
            f"{mark} {part.what}: {part.first} - {part.second} {part.value:+.4g} "
            f"({part.lower:+.4g} to {part.upper:+.4g})"
        )
    lines.append("* excludes 0. Task bias: with labels - with probabilities.")
    return fitted("\n".join(lines), width)
