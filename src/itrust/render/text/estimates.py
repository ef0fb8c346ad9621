"""Numbers for a population, as plain text: what to report, and what would have been published."""

from __future__ import annotations

from typing import Any

from itrust._core import counted, rounded, sentence, wrapped
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.balance import (
    difference_words,
    resemblance_sentence,
    resemblance_warnings,
    unlike_words,
)
from itrust.render.text.layout import NARROW, spelt
from itrust.render.text.tasks import (
    WAYS,
    estimate_notes,
    population_words,
    recommendation,
    scope_words,
    task_words,
)
from itrust.tasks import Estimate, RefusedTask, TaskEstimate, TaskEstimates

OUTSIDE, INSIDE, NONE = "differs from the plug-in", "near the plug-in", "no number to report"
UNLESS, SAME_ROWS = "what you would have published", "on the same rows"


def estimate_facts(found: TaskEstimates) -> dict[str, Any]:
    """All that was found about numbers and rows, in values and in words."""
    looked = found.resemblance
    alike = {
        **looked.to_dict(),
        "compared": [{**one.to_dict(), "text": difference_words(one)} for one in looked.compared],
        "sentence": resemblance_sentence(looked),
        "warnings": resemblance_warnings(looked),
    }
    return {
        "n": looked.n,
        "population": looked.size,
        "excluded": found.excluded,
        "resemblance": alike,
        "estimates": [_estimate_facts(own) for own in found.estimates],
        "refused": [
            {
                "task": str(own.task),
                "title": task_words(own.task),
                "formula": own.task.formula,
                "reason": refusal_sentence(own),
            }
            for own in found.refused
        ],
    }


def refusal_sentence(own: RefusedTask) -> str:
    """Why a number cannot be given, without a full stop."""
    return sentence(own.error)


def _estimate_facts(own: TaskEstimate) -> dict[str, Any]:
    facts = {**dict.fromkeys(WAYS), **own.to_dict()}
    del facts["resemblance"]
    return {
        **facts,
        "title": task_words(own.task),
        "formula": own.task.formula,
        "scope": scope_words(own),
        "finding": finding_of(own),
        "sentence": recommendation(own),
        "plugin_sentence": plugin_sentence(own),
        "notes": [*estimate_notes(own), *own.notes],
    }


def finding_of(own: TaskEstimate) -> str:
    """Whether the number that would have been published differs from the one to report."""
    if own.best is None:
        return NONE
    return INSIDE if own.best.lower <= own.plugin.value <= own.best.upper else OUTSIDE


def told_value(own: TaskEstimate, value: float) -> str:
    """A value with the digits that the interval of the recommended estimate can tell."""
    way = own.best or own.labelled
    return rounded(value, way.lower, way.upper)


def with_interval(own: TaskEstimate, way: Estimate) -> str:
    """An estimate and its interval, such as "0.41 (0.38 to 0.44)"."""
    value, low, high = (told_value(own, v) for v in (way.value, way.lower, way.upper))
    return f"{value} ({low} to {high})"


def plugin_sentence(own: TaskEstimate) -> str:
    """Say what probabilities in place of labels give, and whether that is near."""
    value = told_value(own, own.plugin.value)
    told = f"plug-in, {UNLESS if own.excluded == 0 else SAME_ROWS}: {value}"
    if own.best is None:
        return told
    off = own.plugin.value - own.best.value
    size = rounded(abs(off), own.best.lower, own.best.upper)
    if float(size.replace(",", "")) == 0:
        return f"{told}, the same to these digits"
    side = "higher" if off > 0 else "lower"
    where = "within the interval" if finding_of(own) == INSIDE else "outside the interval"
    return f"{told}, {side} by {size}, {where}"


def resemblance_lines(found: TaskEstimates) -> list[str]:
    """What was seen of the rows, a sentence each."""
    looked = found.resemblance
    lines = [resemblance_sentence(looked), *map(difference_words, looked.differences)]
    lines.append(unlike_words(looked))
    lines.append(
        f"weighted to be like the population, {looked.n:,} labelled rows say as much as "
        f"{looked.effective:,.0f}"
    )
    return [*lines, *(f"note: {note}" for note in looked.notes)]


def estimates_told(found: TaskEstimates, width: int = WIDTH) -> str:
    """All numbers as text for a terminal."""
    looked = found.resemblance
    shown = counted(len(found), "number")
    rows = population_words(looked.size, found.excluded)
    head = f"{shown} for {rows}, from {looked.n:,} labelled rows"
    lines = wrapped(head, width, "", "  ")
    if found.estimates:
        lines.append(f"intervals cover {100 * (1 - found[0].alpha):.4g} %")
    lines.append("")
    lines += wrapped("Are the labelled rows like the population?", width, "  ", "  ")
    for text in resemblance_lines(found):
        lines += wrapped(text, width, "    ", "  ")
    for own in found.estimates:
        lines += ["", *_number(own, width)]
    for refused in found.refused:
        said = f"{task_words(refused.task)}: no estimate. {refusal_sentence(refused)}"
        lines += ["", *wrapped(said, width, "  ", "    ")]
    if found.withheld:
        told = ", ".join(spelt(str(task)) for task in found.withheld)
        few = f"withheld, for they would tell of fewer than {found.min_cell} rows: {told}"
        lines += ["", *wrapped(few, width, "  ", "  ")]
    return "\n".join(lines)


def headline(own: TaskEstimate) -> str:
    """The number in words with its recommended value, or that there is none."""
    scope = scope_words(own)
    title = f"{task_words(own.task)}{scope and ', '}{scope}"
    if own.best is None or own.best_way is None:
        return f"{title}: {NONE}"
    return f"{title}: {with_interval(own, own.best)}, {WAYS[own.best_way]}"


def _number(own: TaskEstimate, width: int) -> list[str]:
    lines = wrapped(headline(own), width, "  ", "    ")
    for text in (recommendation(own), plugin_sentence(own)):
        lines += wrapped(text, width, "    ", "  ")
    lines += _table(own, width)
    for note in (*estimate_notes(own), *own.notes):
        lines += wrapped(f"note: {note}", width, "    ", "  ")
    return lines


def _table(own: TaskEstimate, width: int) -> list[str]:
    """All ways: one a line, or what they assume below where there is little room."""
    rows = [
        (">" if name == own.best_way else " ", WAYS[name], with_interval(own, way), way.assumes)
        for name, way in own.ways.items()
    ]
    names, values = (max(len(row[k]) for row in rows) for k in (1, 2))
    lines = []
    for mark, name, value, assumes in rows:
        if width >= NARROW:
            text = f"{mark} {name:<{names}}  {value:<{values}}  if "
            lines += _hanging(text, str(assumes), width)
        else:
            lines += wrapped(f"{mark} {name}: {value}", width, "    ", "    ")
            lines += wrapped(f"if {assumes}", width, "        ")
    return lines


def _hanging(text: str, assumes: str, width: int) -> list[str]:
    """A row whose last column goes on below itself, or below the row where that is too narrow."""
    start = "    " + text
    if width - len(start) >= 20:
        first, *rest = wrapped(assumes, width - len(start))
        return [start + first, *(" " * len(start) + line for line in rest)]
    above = wrapped(text.removesuffix("if ").rstrip(), width, "    ", "    ")
    return [*above, *wrapped(f"if {assumes}", width, "        ")]


@as_text.register
def _(result: TaskEstimates, width: int = WIDTH) -> str:
    return estimates_told(result, width)
