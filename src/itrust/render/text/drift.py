"""What changed between two audits, as plain text."""

from __future__ import annotations

from itrust._core import counted, listed, rounded, wrapped
from itrust.auditing import Change, ComparedValue, Drift
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.layout import spelt
from itrust.render.text.tasks import pvalue_words
from itrust.tasks import FEW_NOTE

NO_MONITOR = (
    "two fixed samples are compared, once; this is no monitor, and repeated every month it would "
    "end in a false alarm (itrust.Watch and 'itrust watch' are made for that)"
)
INDEPENDENT = "it is taken for granted that no row, and no cluster, is in both audits"
TITLES = {
    ComparedValue.BRIER: "Brier score",
    ComparedValue.LOG_LOSS: "log loss",
    ComparedValue.PREDICTED: "mean prediction",
    ComparedValue.OBSERVED: "observed rate",
    ComparedValue.MEAN_BIAS: "mean bias",
    ComparedValue.GROUP_BIAS: "bias where {}",
    ComparedValue.NUMBER: "{}, from labels",
    ComparedValue.NUMBER_BIAS: "{}, bias with probabilities",
}
SIGNS = "difference = second - first; bias = observed - predicted, from labels - with probabilities"


def change_title(part: Change) -> str:
    """What is compared, in words."""
    return TITLES[part.compared].format(spelt(part.name))


def change_values(part: Change) -> tuple[str, str, str, str, str]:
    """Both values, the difference, its interval and its p-value, for people."""
    ends = part.lower, part.upper
    first, second = (rounded(value, *ends) for value in (part.first, part.second))
    if part.reason is not None:
        return first, second, "", "", ""
    told = rounded(part.difference, *ends, "+")
    interval = " to ".join(rounded(end, *ends, "+") for end in ends)
    return first, second, told, interval, pvalue_words(part.pvalue)


def drift_sentence(found: Drift) -> str:
    """Say what the comparison comes to, and what it is not."""
    whole, shown = counted(found.comparisons, "comparison"), len(found.shown)
    if shown:
        told = f"{shown} of {whole} {'shows' if shown == 1 else 'show'} a change"
    else:
        told = f"none of {whole} shows a change, which does not show that nothing changed"
    models = "" if found.same_model else "; the models differ, so rows and model may have changed"
    return f"{told}{models}"


def drift_notes(found: Drift) -> list[str]:
    """What has to be known beside the numbers, a sentence each."""
    cover = f"intervals cover {100 * (1 - found.alpha):.4g} % and p-values are adjusted"
    whole = counted(found.comparisons, "comparison")
    notes = [f"{cover}, for all {whole} together", NO_MONITOR, INDEPENDENT]
    for name, alone in zip(found.names, (found.only_first, found.only_second), strict=True):
        if alone:
            told = listed(list(map(spelt, alone)))
            notes.append(f"not compared, for only {spelt(name)!r} shows it: {told}")
    if any(part.few_labels for part in found.changes):
        notes.append(f"~ {FEW_NOTE}")
    return notes


def change_line(part: Change, alpha: float) -> str:
    """One comparison as a line: marked with * where a change is shown, ~ where labels are few."""
    first, second, told, interval, pvalue = change_values(part)
    mark = "*" if part.pvalue <= alpha else " "
    title = f"{mark} {change_title(part)}{' ~' if part.few_labels else ''}"
    if part.reason is not None:
        return f"{title}: not compared, {part.reason}"
    return f"{title}: {first}, then {second}: {told} ({interval}), p {pvalue}"


@as_text.register
def _(result: Drift, width: int = WIDTH) -> str:
    names = [
        f"{spelt(name)!r} ({rows:,} rows)"
        for name, rows in zip(result.names, result.n, strict=True)
    ]
    lines = wrapped(f"What changed from {names[0]} to {names[1]}", width, "", "  ")
    lines += wrapped(drift_sentence(result), width, "  ", "  ")
    lines.append("")
    for part in result.changes:
        line = change_line(part, result.alpha)
        first, *rest = wrapped(line[2:], width, "    ", "    ")
        lines += [f"  {line[:2]}{first[4:]}", *rest]
    lines.append("")
    for note in (f"* the interval excludes 0; {SIGNS}", *drift_notes(result)):
        lines += wrapped(note, width, "  ", "  ")
    return "\n".join(lines)
