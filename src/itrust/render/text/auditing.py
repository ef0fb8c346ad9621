"""Audits and comparisons as plain text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from itrust._core import (
    Setting,
    counted,
    in_door_words,
    printable,
    rounded,
    shown_name,
    signed,
    wrapped,
)
from itrust.auditing import Audit, Check, Comparison, Gate, Missed, Verdict
from itrust.bias import SIGN, GroupTable, PartBias
from itrust.calibration import Autocorrelation, CalibrationResult, Detectable, Finding, worst_of
from itrust.data import Everywhere
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.balance import difference_words, resemblance_warnings
from itrust.render.text.bias import bias_and_interval
from itrust.render.text.calibration import kind_text
from itrust.render.text.layout import TextPart, fitted, laid_out, more, seconds, spelt
from itrust.render.text.overturning import (
    TITLE,
    explained_words,
    margins_words,
    overturning_lines,
)
from itrust.render.text.tasks import bias_text, pvalue_words, task_sentence, task_title
from itrust.render.text.verdict import (
    OWN_PVALUES,
    clustering_words,
    evidence_words,
    refusal_words,
    untold,
)
from itrust.tasks import Named, TaskFinding, TaskResult

STRIKING = 3.0  # standard errors
MAX_TOLD = 3
IMPOSSIBLE = "rejected: labels that the model called impossible came true"
MAX_GROUPS = 8
MAX_NAMES = 12
MAX_EVIDENCE = 5  # in the message of an assertion


@as_text.register
def told(audit: Audit, width: int = WIDTH) -> str:
    """Give the whole audit: the rows in one line, the verdict, then what it rests on."""
    if audit.classes:
        from itrust.render.text.multiclass import classes_told

        return classes_told(audit, width)
    head = [*wrapped(audit.summary, width, "", "  ")]
    head += ["", verdict_line(audit.verdict, width)]
    head += wrapped(audit.sentence, width, "  ")
    head += wrapped(f"Next: {audit.action}", width, "  ")
    head += wrapped(numbers_of(audit.tasks), width, "  ")
    warned = (f"! {warning}" for warning in audit.test.warnings)
    head += [line for text in warned for line in wrapped(text, width, "  ", "  ")]
    body = [line for section in sections(audit) for line in ("", *laid_out(section, width))]
    foot = [line for text in footnotes(audit) for line in wrapped(text, width, "  ", "  ")]
    return "\n".join([*head, *body, "", *foot])


def verdict_line(verdict: Verdict, width: int = WIDTH) -> str:
    """The line of a text that says the verdict; in a narrow one, two lines.

    >>> verdict_line(Verdict.INCONCLUSIVE)
    'VERDICT  inconclusive'
    """
    first, *rest = wrapped(f"VERDICT {verdict}", width - 1, "", " " * len("VERDICT  "))
    return "\n".join([first.replace(" ", "  ", 1), *rest])


def summary_of(audit: Audit) -> str:
    """Say in one line what is there: rows, mean prediction, observed rate, overall bias."""
    mean = audit.overall.mean
    ends = mean.lower, mean.upper
    predicted, observed = (rounded(value, *ends) for value in (mean.predicted, mean.observed))
    bias, lower, upper = (rounded(value, *ends, "+") for value in (mean.bias, *ends))
    weighted = "" if audit.sample.weights is None else ", weighted"
    return (
        f"{_used(audit)}{by_cluster(audit, freedom=False)}{weighted}; mean prediction "
        f"{predicted}, "
        f"observed rate {observed}: overall bias {bias} ({lower} to {upper})"
    )


def numbers_of(tasks: Sequence[TaskResult]) -> str:
    """Say how many of the user's numbers may be reported."""
    found = Counter(task.finding for task in tasks)
    parts = [f"{found[kind]} {kind}" for kind in TaskFinding if found[kind]]
    return f"Your numbers: {', '.join(parts)}." if parts else ""


def gate_words(found: Gate) -> str:
    """Say whether the gate is closed, and by what."""
    numbers = counted(len(found.biased), "number")
    biased = f"{numbers} {'is' if len(found.biased) == 1 else 'are'} biased"
    told = {
        "model": f"the model is judged {found.verdict}",
        "tasks": biased if found.biased else "no number is shown to be biased",
    }
    asked: tuple[str, ...] = ("model", "tasks") if found.asked == "any" else (found.asked,)
    if found.asked == "any" and not found.biased:
        asked = ("model",)
    if found.asked == "tasks" and found.spared and not found.biased:
        asked = ()
    why = "; ".join([*(told[part] for part in asked), *margins_words(found)])
    if not found.closed and "model" in asked and not found.verdict.conclusive:
        why += ", which is no proof that it is calibrated"
    return f"gate {'closed' if found.closed else 'open'}: {why}"


def failure_words(audit: Audit, found: Gate, require: Verdict | None) -> str:
    """Say why an audit is not good enough: what closes the gate, what shows it, what to do."""
    if found.closed:
        first = gate_words(found)
    else:
        first = f"the verdict is {audit.verdict.value!r}, and {str(require)!r} is required"
    lines = [f"  {audit.summary}", f"  verdict: {audit.sentence}"]
    told = [evidence_words(item, audit.tolerance) for item in audit.evidence]
    lines += [f"  evidence: {words}" for words in told[:MAX_EVIDENCE]]
    if len(told) > MAX_EVIDENCE:
        lines.append(f"  evidence: and {len(told) - MAX_EVIDENCE:,} more")
    biased = [task for task in audit.tasks if task.finding.closes_gate]
    lines += [f"  {task_title(task)} is {task_sentence(task)}" for task in biased]
    lines.append(f"  what to do: {audit.action}")
    made = f"alpha {audit.alpha:g}, tolerance {audit.tolerance:g}, {audit.draws:,} draws"
    return printable("\n".join([first, *lines, f"  made with: {made}, seed {audit.seed}"]))


def sections(audit: Audit) -> list[TextPart]:
    """Say what was asked and what was found, part by part."""
    found = []
    given = "the covariates" if audit.test.names else "the prediction alone"
    if audit.tasks:
        lines = [line for task in audit.tasks for line in task_lines(task)]
        found.append(TextPart("tasks", "Your numbers", lines))
    if audit.diagnosis.groups is not None and audit.diagnosis.groups.groups:
        found.append(TextPart("groups", "Groups", _groups(audit.diagnosis.groups)))
    return [
        *found,
        TextPart("diagnosis", "Where the model is shown to be miscalibrated", _diagnosis(audit)),
        TextPart("test", f"Calibration given {given} (competency)", _test(audit)),
        TextPart("overall", "Overall calibration (reliance)", _overall(audit)),
        TextPart("missed", "What this audit could have missed (confidence)", _missed(audit)),
        *_overturning(audit),
        *_population(audit),
        TextPart("rows", "Rows", [_rows(audit), *_at_hand(audit), *in_time(audit.autocorrelation)]),
    ]


def _overturning(audit: Audit) -> list[TextPart]:
    """What would overturn what was found, unless it was left out."""
    lines = overturning_lines(audit)
    return [TextPart("robustness", TITLE, lines)] if lines else []


def _population(audit: Audit) -> list[TextPart]:
    """Whether the rows are like the population, if there is one."""
    found = audit.resemblance
    if found is None:
        return []
    lines = [f"warning: {text}" for text in resemblance_warnings(found)]
    lines = lines or [f"no difference from the population is shown (p = {found.pvalue:.3g})"]
    lines += [difference_words(one) for one in found.differences]
    return [TextPart("population", f"The population of {found.size:,} rows", lines)]


def _groups(table: GroupTable) -> list[str]:
    """Groups with the largest biases that are shown, then the largest others."""
    known = [own for own in table.groups if math.isfinite(own.bias)]
    ordered = sorted(
        known, key=lambda own: (own.pvalue > table.alpha, -abs(own.at_least), -abs(own.bias))
    )
    if not ordered:
        return ["no group has rows that count"]
    names = max(len(str(own.where)) for own in ordered[:MAX_GROUPS])
    return [
        *(
            f"{'*' if own.pvalue <= table.alpha else ' '} {own.where!s:<{names}}  "
            f"{_told(own)}, {counted(own.rows, 'row')}"
            for own in ordered[:MAX_GROUPS]
        ),
        *more(len(ordered) - MAX_GROUPS),
        "* the interval excludes 0"
        if ordered[0].pvalue <= table.alpha
        else "no interval excludes 0",
    ]


def _told(part: PartBias) -> str:
    bias, interval = bias_and_interval(part)
    return f"{bias} ({interval})"


def _used(audit: Audit) -> str:
    if audit.rows_available == audit.n:
        return counted(audit.n, "row")
    return f"{audit.n:,} random ones of {counted(audit.rows_available, 'row')}"


def _rows(audit: Audit) -> str:
    chosen = ""
    if audit.rows_available > audit.n:
        chosen = f" at random from {audit.rows_available:,} rows,"
    return f"{audit.n:,}{by_cluster(audit)},{chosen} judged on {judged_on(audit)}"


def _at_hand(audit: Audit) -> list[str]:
    """What was made from random rows only, if anything was."""
    if audit.rows_at_hand == audit.n:
        return []
    charts = "reliability by group, curves, maps, " if audit.charts.computed else ""
    searched = f"slices searched in {audit.rows_at_hand:,} random rows and judged on all others"
    others = f"{charts}what could have been missed and the checks of assumptions from random rows"
    return [f"{searched}; {others}; all else from all rows"]


def in_time(found: Mapping[str, Autocorrelation]) -> list[str]:
    """Say whether residuals of one day go with those of the next.

    Examples
    --------
    >>> in_time({"day": Autocorrelation(1, 0.31, 0.05, 300)})[0]
    "along day: residuals of a day go with those of the next (correlation 0.31, standard error \
0.05); name blocks of time with cluster='blocks(day)'"
    """
    said = []
    for name, own in found.items():
        size = f"correlation {own.correlation:.2g}, standard error {own.stderr:.2g}"
        if own.correlation > STRIKING * own.stderr:
            cure = in_door_words(Setting("cluster", f"blocks({name})"))
            told = f"residuals of a day go with those of the next ({size}); name blocks of time"
            said.append(f"along {shown_name(name)}: {told} with {cure}")
        else:
            told = f"residuals of a day are not seen to go with those of the next ({size})"
            said.append(f"along {shown_name(name)}: {told}")
    return said


def by_cluster(audit: Audit, *, freedom: bool = True) -> str:
    """Say how the rows were drawn; nothing where each was drawn by itself."""
    design = audit.sample.design
    parts = []
    if design.cluster is not None:
        parts.append(counted(design.clusters, "cluster"))
    if design.strata is not None:
        parts.append(f"{design.stratum_count:,} strat{'um' if design.stratum_count == 1 else 'a'}")
    if design.replication is not None and design.replicate_weights is not None:
        sets = counted(design.replicate_weights.shape[1], "set")
        parts.append(f"with {sets} of replicate weights ({design.replication})")
    if not parts:
        return ""
    left = f" ({counted(int(design.freedom), 'degree')} of freedom)" if freedom else ""
    lead = " " if parts[0].startswith("with") else " in "
    return f"{lead}{' and '.join(parts)}{left}"


def judged_on(audit: Audit) -> str:
    """Say which covariates an audit was given."""
    names = audit.test.names
    told = ", ".join(map(shown_name, names[:MAX_NAMES])) or "the prediction alone"
    return told if len(names) <= MAX_NAMES else f"{told} and {len(names) - MAX_NAMES} more"


def check_lines(check: Check, audit: Audit) -> list[str]:
    """Say what one check of the gate found."""
    if audit.classes:
        from itrust.render.text.multiclass import class_check_lines

        return class_check_lines(check, audit)
    if check.key == "verdict":
        lines = [f"{audit.verdict}: {audit.sentence}"]
    elif check.key == "task":
        lines = [task_line(check.value)]
    else:
        lines = next(section.lines for section in sections(audit) if section.key == check.key)
    if not check.is_asked:
        return ["this gate does not ask about it", *lines]
    return [*explained_words(check, audit), *lines]


def footnotes(audit: Audit) -> list[str]:
    """Say how to read it, and what makes it again."""
    tasks = (
        "intervals and p-values of your numbers hold for all of them at once; their bias: with "
        "labels - with probabilities"
    )
    made = (
        f"alpha {audit.alpha:g}, tolerance {audit.tolerance:g}, {audit.draws:,} draws, seed "
        f"{audit.seed}, {seconds(audit.elapsed)}"
    )
    hidden = audit.withheld
    withheld = []
    if hidden is not None and hidden.total:
        rest = "rests" if hidden.total == 1 else "rest"
        few = f"{rest} on fewer than {hidden.min_cell} rows or would give such away"
        withheld = [f"{counted(hidden.total, 'result')} withheld that {few}"]
    known = {*audit.test.notes, *audit.diagnosis.bias.notes}
    own = [note for note in audit.diagnosis.slices.notes if note not in known]  # on the search
    notes = (f"note: {note}" for note in (*audit.test.notes, *own))
    return [*([tasks] if audit.tasks else []), SIGN, made, *withheld, *notes]


def _overall(audit: Audit) -> list[str]:
    found = audit.overall
    scores = f"Brier {found.brier:.4f}, ECE {found.ece:.4f}, smooth ECE {found.smooth_ece:.4f}"
    refuted = found.refutes(audit.alpha)
    assert found.test is not None
    if found.test.refused is not None:
        return [f"{IMPOSSIBLE if refuted else 'no p-value'}; {scores}"]
    answer = "rejected" if refuted else "not rejected"
    own = ""
    if found.test.pvalue < found.pvalue:
        own = f"; the predictions alone give {found.test.pvalue:.3g}"
    return [f"{answer}: p {found.pvalue:.3g} ({kind_text(found.test)}{own}); {scores}"]


def short_pvalue(test: CalibrationResult) -> str:
    """The p-value in three digits, or that there is none."""
    return "none" if test.refused is not None else f"{test.pvalue:.3g}"


def _test(audit: Audit) -> list[str]:
    test = audit.test
    leading = [item for item in audit.evidence if isinstance(item, Finding)]
    checks = ""
    if test.is_adaptive:
        checks = f"; {counted(test.checks, 'check')}, p-values adjusted for all"
    if test.refused is not None:
        told = [f"no p-value: {refusal_words(test.refused)}"]
        return [IMPOSSIBLE, *told] if audit.judgement.refuted else told
    about = about_findings(audit)
    if about == OWN_PVALUES and all(f.pvalue <= test.pvalue for f in leading[:MAX_TOLD]):
        about = ""  # none of those that are told has a larger one
    answer = "rejected" if audit.judgement.refuted else "not rejected"
    return [
        f"{answer}: p {short_pvalue(test)} ({kind_text(test)}){checks}",
        *(f"p {found.pvalue:.3g}: {evidence_words(found)}" for found in leading[:MAX_TOLD]),
        *more(len(leading) - MAX_TOLD),
        *([about] if about else []),
    ]


def about_findings(audit: Audit) -> str:
    """Say how p-values of findings go with that of the test, where a reader may wonder."""
    test = audit.test
    told = [item.pvalue for item in audit.evidence if isinstance(item, Finding)]
    if told:
        return OWN_PVALUES if max(told) > test.pvalue else ""
    if not (test.is_adaptive and test.pvalue <= audit.alpha):
        return ""
    if not audit.judgement.is_attributed:
        return untold(test.names)
    hidden = audit.withheld is not None and audit.withheld.findings > 0
    which = "that can be shown " if hidden else ""
    return f"the test rejects, but no single finding {which}stands out by itself"


def _missed(audit: Audit) -> list[str]:
    return [seen(audit.missed)]


UNKNOWN = "how small a bias would have been seen is not known"


def _diagnosis(audit: Audit) -> list[str]:
    slices, bias = audit.diagnosis.slices, audit.diagnosis.bias
    beside = " beside the groups" if audit.diagnosis.shown_groups else ""
    told = f"no slice stands out{beside}"
    if len(slices):
        told = (
            f"{counted(len(slices), 'slice')}{beside} found on one part of the rows, "
            f"{len(slices.confirmed) or 'none'} confirmed on the other"
        )
    points = f"at {_percent(float(bias.flagged.mean()))} of the points that were checked"
    return [
        f"{points}; {told}",
        *(f"{_told(part)}  {part.rule}" for part in slices.confirmed[:MAX_TOLD]),
        *more(len(slices.confirmed) - MAX_TOLD),
        *marked_pictures(audit.charts.to_dict()),
    ]


def marked_pictures(charts: Mapping[str, Any]) -> list[str]:
    """Say which curves and maps have marks: other families than groups, slices and points.

    Examples
    --------
    >>> west = {"by": "region", "group": "region = west", "flagged": (False, True)}
    >>> marked_pictures({"curves": [{"name": "age", "parts": [west]}], "maps": []})
    ['marked on the curve along age where region = west; each curve and each map has an error \
control of its own']
    """
    places = []
    for curve in charts["curves"]:
        along = f"on the curve along {shown_name(curve['name'])}"
        marked = [part for part in curve["parts"] if any(part["flagged"])]
        places += [
            along if part["by"] is None else f"{along} where {part['group']}" for part in marked
        ]
    places += [
        f"on the map of {shown_name(own['across']['name'])} and {shown_name(own['up']['name'])}"
        for own in charts["maps"]
        if any(own["flagged"])
    ]
    if not places:
        return []
    others = len(places) - MAX_TOLD
    named = places[:MAX_TOLD] + ([f"on {counted(others, 'other')}"] if others > 0 else [])
    *first, last = named
    told = f"{', '.join(first)} and {last}" if first else last
    return [f"marked {told}; each curve and each map has an error control of its own"]


def _percent(share: float) -> str:
    """A share for people: no "0 %" for what is there.

    >>> _percent(0.0), _percent(0.0031), _percent(0.273)
    ('none', '0.3 %', '27 %')
    """
    if share == 0:
        return "none"
    return f"{100 * share:.1g} %" if share < 0.01 else f"{100 * share:.0f} %"


def task_lines(task: TaskResult) -> list[str]:
    """Say what a model does to one number, in several lines."""
    title = task_title(task)
    named = task.task if isinstance(task.task, Named) and title == task.name else None
    written = [] if named is None else [f"  {named.task}"]  # what the title stands for
    values = [] if task.withheld is not None else [f"  {_values(task)}"]
    lines = [title, *written, f"  {task_sentence(task)}", *values]
    return [*lines, *(f"  note: {note}" for note in task.notes)]


def task_line(task: TaskResult) -> str:
    """Say what a model does to one number, and whether it may be reported."""
    told = task_sentence(task)
    return told if task.withheld is not None else f"{told} ({_values(task)})"


def _values(task: TaskResult) -> str:
    ends = task.lower, task.upper
    bias, interval = bias_text(task)
    plugin, labels = (rounded(value, *ends) for value in (task.plugin, task.from_labels))
    return (
        f"{plugin} with probabilities, {labels} with labels: bias {bias} ({interval}), "
        f"p {pvalue_words(task.pvalue)}"
    )


def seen(missed: Missed) -> str:
    """Say how small a bias would have been seen, for terminal, notebook, page and files."""
    found = missed.detectable
    if found is None:
        return UNKNOWN if missed.unknown is None else f"{UNKNOWN}: {missed.unknown}"
    told = _shifts(found)
    if found.clustering is None:
        return told
    return f"{told}; approximate, by clusters: {clustering_words(found.clustering, found.n)}"


def _shifts(found: Detectable) -> str:
    everywhere = found.everywhere.shift
    if math.isinf(everywhere):
        return "no bias below 0.5 would be seen: too few rows"
    worst = [worst_of(regions) for regions in (found.regions, found.pairs) if regions]
    worst = [region for region in worst if not isinstance(region.where, Everywhere)]
    hidden = [
        f"none below 0.5 where {region.where}" for region in worst if region.shift == math.inf
    ]
    shifts = [] if math.isnan(everywhere) else [f"{signed(everywhere)[1:]} everywhere"]
    shifts += [f"{signed(r.shift)[1:]} where {r.where}" for r in worst if math.isfinite(r.shift)]
    if not shifts:
        unseen = f"; {' and '.join(hidden)} would be seen" if hidden else ""
        return f"no room for a bias everywhere{unseen}"
    *first, last = shifts
    told = f"a bias of {', of '.join(first)}, or of {last}," if first else f"a bias of {last}"
    but = f", but {' and '.join(hidden)}" if hidden else ""
    return f"{told} would be seen with power {found.power:g}{but}"


@as_text.register
def compared(comparison: Comparison, width: int = WIDTH) -> str:
    """Models, their tasks and paired differences."""
    names = max(len("model"), *(len(spelt(model.name)) for model in comparison.models))
    head = f"{'model':<{names}}  accuracy    Brier      ECE  smooth ECE  p given covariates"
    lines = [head]
    lines.extend(
        f"{spelt(m.name):<{names}}  {m.accuracy:>8.4f} {m.brier:>8.4f} {m.ece:>8.4f}  "
        f"{m.smooth_ece:>10.4f}  {m.test.pvalue:>18.3g}"
        for m in comparison.models
    )
    for k, task in enumerate(comparison.models[0].tasks):
        lines.append("")
        if task.withheld is not None:
            lines.append(f"{task.name}   {task_sentence(task)}")
            continue
        lines.append(f"{task.name}   (with labels {task.from_labels:.5g})")
        for m in comparison.models:
            own = m.tasks[k]
            lines.append(
                f"  {spelt(m.name):<{names}} {own.plugin:>10.5g}  bias {own.bias:+.3g} "
                f"({own.lower:+.3g} to {own.upper:+.3g}), p {own.pvalue:.3g}"
            )
    lines += [
        "",
        f"differences, first minus second, {100 * (1 - comparison.alpha):g} % intervals each",
    ]
    for part in comparison.differences:
        told = f"{'*' if part.clear else ' '} {part.what}: {part.first} - {part.second} "
        if not math.isnan(part.value):
            told += f"{part.value:+.4g} ({part.lower:+.4g} to {part.upper:+.4g})"
        lines.append(f"{told}{'; ' if not math.isnan(part.value) and part.note else ''}{part.note}")
    lines.append("* excludes 0. Task bias: with labels - with probabilities.")
    return fitted("\n".join(map(spelt, lines)), width)
