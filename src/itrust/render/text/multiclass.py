"""Audits and comparisons of several classes as plain text."""

from __future__ import annotations

import math
from collections.abc import Iterator

from itrust._core import counted, rounded, shown_name, signed_in, wrapped
from itrust.auditing import (
    FAMILY,
    Audit,
    Check,
    ClassMatrix,
    OutcomePart,
    PairBias,
    PairGroup,
)
from itrust.bias import SIGN
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.auditing import (
    MAX_NAMES,
    numbers_of,
    task_line,
    task_lines,
    verdict_line,
)
from itrust.render.text.bias import bias_and_interval
from itrust.render.text.layout import TextPart, fitted, laid_out, more, seconds, spelt
from itrust.render.text.overturning import TITLE, untold_words
from itrust.render.text.verdict import class_words, untold

MAX_TOLD = 5  # of findings and pairs
MAX_CLASSES = 60  # lines of the table of classes
PAIRS = (
    "rows of a class beside the probability that they give to another: more than the model itself "
    "expects is a class taken for another; adjusted for all pairs"
)


def classes_told(audit: Audit, width: int = WIDTH) -> str:
    """Give the whole audit: the rows in one line, the verdict, then what it rests on."""
    head = [*wrapped(audit.summary, width, "", "  ")]
    head += ["", verdict_line(audit.verdict, width)]
    head += wrapped(audit.sentence, width, "  ")
    head += wrapped(f"Next: {audit.action}", width, "  ")
    head += wrapped(numbers_of(audit.tasks), width, "  ")
    warned = (f"! {warning}" for warning in audit.test.warnings)
    head += [line for text in warned for line in wrapped(text, width, "  ", "  ")]
    body: list[str] = []
    for section in classes_sections(audit):
        if section.key == "classes":
            body += ["", *wrapped(section.title, width, "  ", "  "), *_class_table(audit, width)]
            body += laid_out(section, width)[1:]
        else:
            body += ["", *laid_out(section, width)]
    foot = [line for text in classes_notes(audit) for line in wrapped(text, width, "  ", "  ")]
    return "\n".join([*head, *body, "", *foot])


def classes_summary(audit: Audit) -> str:
    """Say in one line what is there: rows, classes, accuracy and confidence."""
    mean = audit.overall.mean
    ends = mean.lower, mean.upper
    accuracy, confidence = (rounded(value, *ends) for value in (mean.observed, mean.predicted))
    bias, lower, upper = (rounded(value, *ends, "+") for value in (mean.bias, *ends))
    return (
        f"{counted(audit.n, 'row')}, {len(audit.classes)} classes; the class with the largest "
        f"probability is right in {accuracy}, by its probability in {confidence}: difference "
        f"{bias} ({lower} to {upper})"
    )


def classes_missed_words(audit: Audit) -> str:
    """Say how small a bias of a class would have been shown, and what was not asked."""
    found = audit.missed.groups
    if found is None:
        return "how small a bias of a class would have been shown is not known"
    told = f"a bias of {found.everywhere:.2g} of any class in all rows"
    if found.groups:
        where = "in a group that is not shown"
        if found.where is not None:
            where = f"where {found.where}"
        told += f", or of {found.shift:.2g} of {class_words(found.name)} {where}"
    return (
        f"{told}, would be shown by the intervals of groups with power {found.power:g}, careful "
        f"for all classes at once; groups below {counted(found.min_rows, 'row')} are left out, and "
        f"power of the test itself is not computed"
    )


def class_line(part: OutcomePart) -> str:
    """The mean of one class: prediction, rate, bias and interval."""
    mean = part.mean
    if part.rows is None:
        return f"predicted {mean.predicted:.3f}; its rate is withheld"
    ends = mean.lower, mean.upper
    bias, lower, upper = (signed_in(value, *ends) for value in (mean.bias, *ends))
    return (
        f"predicted {mean.predicted:.3f}, observed {mean.observed:.3f}: bias {bias} "
        f"({lower} to {upper})"
    )


def _class_table(audit: Audit, width: int) -> Iterator[str]:
    """One line for each class; in a narrow terminal two."""
    parts = audit.parts[:MAX_CLASSES]
    names = [spelt(str(part.name)) for part in parts]
    longest = min(max(map(len, [*names, "class"])), 24)
    counts = ["few" if part.rows is None else f"{part.rows:,}" for part in audit.parts]
    rows = max(map(len, counts))
    for part, name, count in zip(parts, names, counts, strict=False):
        mark = "*" if part.test.pvalue <= audit.alpha else " "
        shown = name if len(name) <= longest else f"{name[: longest - 1]}…"
        first = f"    {mark} {shown:<{longest}}  {count:>{max(rows, 4)}} rows  "
        first += f"p {_pvalue(part.test.pvalue):<6}"
        second = class_line(part)
        if len(first) + 2 + len(second) <= width:
            yield f"{first}  {second}"
        else:
            yield from wrapped(first.strip(), width, "    " if mark == "*" else "      ", "  ")
            yield from wrapped(second, width, " " * 8, "  ")


def _pvalue(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3g}"


def classes_sections(audit: Audit) -> list[TextPart]:
    """Say what was asked and what was found, part by part."""
    found = []
    if audit.tasks:
        lines = [line for task in audit.tasks for line in task_lines(task)]
        found.append(TextPart("tasks", "Your numbers", lines))
    given = "the covariates" if audit.test.names else "the predictions alone"
    return [
        *found,
        TextPart("classes", "Each class against the rest", _after_classes(audit)),
        TextPart("diagnosis", "Where a class is shown to be miscalibrated", _diagnosis(audit)),
        TextPart("taken for", "Which class is taken for which", _pairs(audit)),
        TextPart("test", f"All classes given {given}", _test(audit)),
        TextPart("overall", "Overall calibration", _overall(audit)),
        TextPart("missed", "What this audit could have missed", [classes_missed_words(audit)]),
        *_overturning(audit),
        TextPart("rows", "Rows", [f"{audit.n:,}, judged on {classes_judged_on(audit)}"]),
    ]


def _overturning(audit: Audit) -> list[TextPart]:
    """Why it is not told what would overturn what was found, unless that was left out."""
    found = audit.robustness
    if found is None or found.untold is None:
        return []
    return [TextPart("robustness", TITLE, [untold_words(found.untold)])]


def _after_classes(audit: Audit) -> list[str]:
    lines = list(more(len(audit.parts) - MAX_CLASSES))
    shown = len(audit.shown_classes)
    if shown:
        return [*lines, "* the test shows the class to be miscalibrated, adjusted for all classes"]
    return [*lines, "no class by itself is shown to be miscalibrated by the test"]


def _diagnosis(audit: Audit) -> list[str]:
    """Groups and slices of all classes, the largest shown biases first."""
    found = [(part.name, own) for part in audit.parts for own in part.diagnosis.shown]
    found.sort(key=lambda pair: -abs(pair[1].at_least))
    lines = []
    for name, own in found[:MAX_TOLD]:
        bias, interval = bias_and_interval(own)
        lines.append(f"{bias} ({interval})  {class_words(name)} where {own.where}")
    points = [
        f"{class_words(part.name)} at {100 * float(part.diagnosis.bias.flagged.mean()):.0f} %"
        for part in audit.parts
        if part.diagnosis.bias.flagged.any()
    ]
    if points:
        others = more(len(points) - MAX_TOLD)
        told = ", ".join([*points[:MAX_TOLD], *others])
        lines.append(f"local bias is shown for {told} of the points that were checked")
    if not lines:
        return ["in no group, slice or point of any class"]
    return [
        *lines[: len(found[:MAX_TOLD])],
        *more(len(found) - MAX_TOLD),
        *lines[len(found[:MAX_TOLD]) :],
    ]


def pair_words(pair: PairBias) -> str:
    """Say what one pair of classes shows."""
    bias, lower, upper = (
        signed_in(value, pair.lower, pair.upper) for value in (pair.bias, pair.lower, pair.upper)
    )
    often = "more" if pair.bias > 0 else "less"
    return (
        f"rows of {class_words(pair.label)} give {class_words(pair.taken_for)} {often} than the "
        f"model expects: {pair.given:.3f}, expected {pair.expected:.3f}, difference {bias} "
        f"({lower} to {upper})"
    )


def place_words(place: PairGroup) -> str:
    """Say where probability of one class should have gone to another."""
    return (
        f"where {place.where}, {class_words(place.taken_for)} is too high by {place.too_high:.2g} "
        f"and {class_words(place.label)} too low by {place.too_low:.2g}"
    )


def _pairs(audit: Audit) -> list[str]:
    assert audit.pairs is not None
    return pairs_lines(audit.pairs)


def pairs_lines(found: ClassMatrix) -> list[str]:
    """Say which classes are taken for which, and where."""
    shown, places = found.shown, found.places
    lines = [pair_words(pair) for pair in shown[:MAX_TOLD]]
    lines += more(len(shown) - MAX_TOLD)
    lines += [place_words(place) for place in places[:MAX_TOLD]]
    lines += more(len(places) - MAX_TOLD)
    return lines or ["no pair of classes is shown to be mixed up more than the model expects"]


def _test(audit: Audit) -> list[str]:
    test, alpha = audit.test, audit.alpha
    answer = "rejected" if audit.judgement.refuted else "not rejected"
    told = "no p-value" if math.isnan(test.pvalue) else f"p {test.pvalue:.3g}"
    lines = [f"{answer}: {told}; p-values of classes and findings are adjusted for all"]
    findings = [(own.name, finding) for own in test.classes for finding in own.evidence(alpha)]
    findings.sort(key=lambda own: own[1].pvalue)
    lines += [
        f"p {own.pvalue:.3g}: {class_words(name)}: {own}" for name, own in findings[:MAX_TOLD]
    ]
    lines += more(len(findings) - MAX_TOLD)
    if audit.judgement.refuted and not audit.judgement.is_attributed:
        lines.append(untold(test.names, audit.classes))
    elif audit.judgement.refuted and not audit.shown_classes:
        lines.append("no single class is shown by the test")
    return lines


def _overall(audit: Audit) -> list[str]:
    found = audit.overall
    if math.isnan(found.pvalue):
        answer = "all classes together: no p-value"
    else:
        word = "rejected" if found.refutes(audit.alpha) else "not rejected"
        own = ""
        if found.unadjusted_pvalue < found.pvalue:
            own = f" (the predictions alone give {found.unadjusted_pvalue:.3g})"
        answer = f"all classes together {word}: p {found.pvalue:.3g}{own}"
    scores = (
        f"Brier {found.brier:.4f}, log loss {found.log_loss:.4f}, ECE of the top label "
        f"{found.ece:.4f}"
    )
    return [f"{answer}; {scores}"]


def classes_judged_on(audit: Audit) -> str:
    """Say which covariates an audit of several classes was given."""
    names = audit.test.names
    told = ", ".join(map(shown_name, names[:MAX_NAMES])) or "the predictions alone"
    return told if len(names) <= MAX_NAMES else f"{told} and {len(names) - MAX_NAMES} more"


def classes_notes(audit: Audit) -> list[str]:
    """Say how to read it, and what makes it again."""
    made = (
        f"alpha {audit.alpha:g}, tolerance {audit.tolerance:g}, {audit.draws:,} draws, seed "
        f"{audit.seed}, {seconds(audit.elapsed)}"
    )
    hidden, withheld = audit.withheld, []
    if hidden is not None and hidden.total:
        rest = "rests" if hidden.total == 1 else "rest"
        few = f"{rest} on fewer than {hidden.min_cell} rows or would give such away"
        withheld = [f"{counted(hidden.total, 'result')} withheld that {few}"]
        withheld += joined_words(audit)
    return [FAMILY, SIGN, made, *withheld, *(f"note: {note}" for note in audit.test.notes)]


def joined_words(audit: Audit) -> list[str]:
    """Say which classes are told together only, and why; nothing where there are none."""
    gone = [class_words(part.name) for part in audit.parts if part.rows is None]
    if audit.withheld is None or not gone:
        return []
    few = f"one of them or more has fewer than {audit.withheld.min_cell} rows"
    return [f"rows and rates of {' and '.join(gone)} are withheld: {few}"]


def class_check_lines(check: Check, audit: Audit) -> list[str]:
    """Say what one check of the gate found about an audit of several classes."""
    if check.key == "verdict":
        lines = [f"{audit.verdict}: {audit.sentence}"]
    elif check.key == "task":
        lines = [task_line(check.value)]
    elif check.key == "class":
        lines = class_found(check.value, audit)
    else:
        lines = next(own.lines for own in classes_sections(audit) if own.key == check.key)
    return lines if check.is_asked else ["this gate does not ask about it", *lines]


def class_found(part: OutcomePart, audit: Audit) -> list[str]:
    """Say what was found about one class: the test, the mean, groups and slices."""
    shown = part.test.pvalue <= audit.alpha
    answer = "rejected" if shown else "not rejected"
    lines = [f"{answer}: p {_pvalue(part.test.pvalue)}; {class_line(part)}"]
    for own in part.diagnosis.shown[:MAX_TOLD]:
        bias, interval = bias_and_interval(own)
        lines.append(f"{bias} ({interval}) where {own.where}")
    return lines


@as_text.register
def _(found: ClassMatrix, width: int = WIDTH) -> str:
    """The pairs that are shown, and where."""
    lines = ["Which class is taken for which", *(f"  {line}" for line in pairs_lines(found)), PAIRS]
    return fitted("\n".join(map(spelt, lines)), width)
