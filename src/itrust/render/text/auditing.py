"""Audits in words: one document for two labels and for several classes."""

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
from itrust.auditing import (
    FAMILY,
    Audit,
    Check,
    ClassEvidence,
    ClassMatrix,
    Gate,
    GroupPower,
    Missed,
    OutcomePart,
    PairBias,
    PairGroup,
    Verdict,
)
from itrust.bias import SIGN, GroupTable, PartBias
from itrust.calibration import (
    Autocorrelation,
    CalibrationResult,
    Detectable,
    Finding,
    TakenFor,
    worst_of,
)
from itrust.data import Everywhere
from itrust.render.document import (
    WIDTH,
    Block,
    Document,
    Notes,
    Section,
    Sentence,
    Table,
    document_of,
    more,
    noted,
    seconds,
)
from itrust.render.text.balance import difference_words, resemblance_warnings
from itrust.render.text.bias import PART_HEAD, bias_and_interval, part_cells
from itrust.render.text.calibration import kind_text
from itrust.render.text.overturning import explained_words, margins_words, overturning_sections
from itrust.render.text.tasks import bias_text, pvalue_words, task_sentence, task_title, task_values
from itrust.render.text.verdict import (
    OWN_PVALUES,
    class_words,
    clustering_words,
    evidence_words,
    in_words,
    refusal_words,
    untold,
)
from itrust.tasks import Named, TaskFinding, TaskResult

STRIKING = 3.0  # standard errors
MAX_TOLD = 3
IMPOSSIBLE = "rejected: labels that the model called impossible came true"
UNKNOWN = "how small a bias would have been seen is not known"
MAX_GROUPS, MAX_NAMES, MAX_CLASSES = 8, 12, 60
MAX_EVIDENCE = 5  # in the message of an assertion
MAX_OF_CLASSES = 5  # findings, places and pairs of several classes
CLASS_HEAD = ("", "class", "rows", "predicted", "observed", "bias", "interval", "p of its test")
TASKS = (
    "intervals and p-values of your numbers hold for all of them at once; their bias: with labels "
    "- with probabilities"
)
PAIRS = (
    "rows of a class beside the probability that they give to another: more than the model itself "
    "expects is a class taken for another; adjusted for all pairs"
)
STAGES = {
    "rows": "reading and counting the rows",
    "plan": "choosing checks, points and groups",
    "findings": "finding out what carries a bias",
    "overall": "testing overall calibration",
    "missed": "finding out what could have been missed",
    "parts": "estimating local bias, comparing groups and searching slices",
    "tasks": "computing your numbers",
    "charts": "computing curves and maps",
    "overturn": "finding out what would overturn it",
    "classes": "judging one class after the other",
    "pairs": "finding out which class is taken for which",
}


def step_words(step: str, names: Sequence[str]) -> str:
    """Say what a step of an audit does, while it is done: on some covariates, or with a model.

    >>> step_words("given", ["age", "sex"]), step_words("overall", ["age", "sex"])
    ('testing calibration given age and sex', 'testing overall calibration')
    """
    given = f" given {in_words(names)}" if names else ""
    return {
        **STAGES,
        "given": f"testing calibration{given}",
        "pass": f"testing calibration{given}, and by how much and where it fails",
        "model": f"comparing models: {', '.join(map(shown_name, names))}",
    }[step]


@document_of.register
def _(audit: Audit) -> Document:
    return Document(
        _headline(audit.verdict),
        [
            Sentence(audit.sentence),
            Sentence(f"Next: {audit.action}"),
            Sentence(numbers_of(audit.tasks)),
            noted((), audit.test.warnings),
            *_sections(audit),
            Notes(_footnotes(audit)),
        ],
        audit.verdict.tone,
        audit.summary,
    )


def _headline(verdict: Verdict) -> str:
    return f"VERDICT  {verdict}"


def verdict_line(verdict: Verdict, width: int = WIDTH) -> str:
    """The line of a text that says the verdict; in a narrow one, two lines.

    >>> verdict_line(Verdict.INCONCLUSIVE)
    'VERDICT  inconclusive'
    """
    return "\n".join(wrapped(_headline(verdict), width, "", "  "))


def summary_of(audit: Audit) -> str:
    """Say in one line what is there: rows, mean prediction, observed rate, overall bias."""
    mean = audit.overall.mean
    ends = mean.lower, mean.upper
    predicted, observed = (rounded(value, *ends) for value in (mean.predicted, mean.observed))
    bias, interval = bias_text(mean)
    rows = counted(audit.n, "row")
    if audit.rows_available != audit.n:
        rows = f"{audit.n:,} random ones of {counted(audit.rows_available, 'row')}"
    weighted = "" if audit.sample.weights is None else ", weighted"
    rows += f"{by_cluster(audit, freedom=False)}{weighted}"
    if audit.classes:
        return (
            f"{rows}, {len(audit.classes)} classes; the class with the largest probability is "
            f"right in {observed}, by its probability in {predicted}: difference {bias} "
            f"({interval})"
        )
    return (
        f"{rows}; mean prediction {predicted}, observed rate {observed}: overall bias {bias} "
        f"({interval})"
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
    told = [evidence_words(item) for item in audit.evidence]
    lines += [f"  evidence: {words}" for words in told[:MAX_EVIDENCE]]
    if len(told) > MAX_EVIDENCE:
        lines.append(f"  evidence: and {len(told) - MAX_EVIDENCE:,} more")
    biased = [task for task in audit.tasks if task.finding.closes_gate]
    lines += [f"  {task_title(task)} is {task_sentence(task)}" for task in biased]
    lines.append(f"  what to do: {audit.action}")
    made = f"alpha {audit.alpha:g}, tolerance {audit.tolerance:g}, {audit.draws:,} draws"
    return printable("\n".join([first, *lines, f"  made with: {made}, seed {audit.seed}"]))


def _sections(audit: Audit) -> list[Section]:
    """Say what was asked and what was found, part by part."""
    several = bool(audit.classes)
    given = "the covariates" if audit.test.names else _alone(audit)
    test = f"Calibration given {given} (competency)"
    names = {
        "diagnosis": f"Where {'a class' if several else 'the model'} is shown to be miscalibrated",
        "test": f"All classes given {given}" if several else test,
        "overall": "Overall calibration" if several else "Overall calibration (reliance)",
        "missed": "What this audit could have missed" + ("" if several else " (confidence)"),
    }
    blocks: dict[str, list[Block]] = {
        "diagnosis": _classes_off(audit) if several else _diagnosis(audit),
        **{key: [Notes(_answer(key, audit))] for key in ("test", "overall", "missed")},
    }
    first, *others = [Section(key, title, blocks[key]) for key, title in names.items()]
    groups = audit.diagnosis.groups if not several else None
    return [
        *([Section("tasks", "Your numbers", list(map(_task, audit.tasks)))] if audit.tasks else []),
        *([Section("classes", "Each class against the rest", _classes(audit))] if several else []),
        *([Section("groups", "Groups", _groups(groups))] if groups and groups.groups else []),
        first,
        *([] if audit.pairs is None else [_pairs(audit.pairs)]),
        *others,
        *overturning_sections(audit),
        *_population(audit),
        Section("rows", "Rows", [Notes(_rows(audit))]),
    ]


def _answer(key: str, audit: Audit) -> list[str]:
    """What was found about one of the three conditions."""
    if key == "missed":
        return [seen(audit.missed)]
    if key == "overall":
        return [_overall(audit)]
    return _test(audit)


def _alone(audit: Audit) -> str:
    return "the predictions alone" if audit.classes else "the prediction alone"


def _population(audit: Audit) -> list[Section]:
    """Whether the rows are like the population, if there is one."""
    found = audit.resemblance
    if found is None:
        return []
    lines = [f"warning: {text}" for text in resemblance_warnings(found)]
    lines = lines or [f"no difference from the population is shown (p = {found.pvalue:.3g})"]
    lines += [difference_words(one) for one in found.differences]
    return [Section("population", f"The population of {found.size:,} rows", [Notes(lines)])]


def _groups(table: GroupTable) -> list[Block]:
    """Groups with the largest biases that are shown, then the largest others."""
    known = [own for own in table.groups if math.isfinite(own.bias)]
    ordered = sorted(
        known, key=lambda own: (own.pvalue > table.alpha, -abs(own.at_least), -abs(own.bias))
    )
    if not ordered:
        return [Notes(["no group has rows that count"])]
    rows = [
        ("*" if own.pvalue <= table.alpha else "", *part_cells(own)) for own in ordered[:MAX_GROUPS]
    ]
    shown = "* the" if ordered[0].pvalue <= table.alpha else "no"
    excludes = f"{shown} interval excludes 0"
    return [
        Table(("", "group", *PART_HEAD[1:]), rows),
        Notes([*more(len(ordered) - MAX_GROUPS), excludes]),
    ]


def _rows(audit: Audit) -> list[str]:
    """How many rows, on what they were judged, and what was made from random ones only."""
    chosen = ""
    if audit.rows_available > audit.n:
        chosen = f" at random from {audit.rows_available:,} rows,"
    lines = [f"{audit.n:,}{by_cluster(audit)},{chosen} judged on {judged_on(audit)}"]
    if not audit.classes and audit.rows_at_hand != audit.n:
        charts = "reliability by group, curves, maps, " if audit.charts.computed else ""
        others = f"{charts}what could have been missed and the checks of assumptions"
        lines.append(f"{others} from {audit.rows_at_hand:,} random rows; all else from all rows")
    return [*lines, *in_time(audit.autocorrelation)]


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
        told = f"residuals of a day are not seen to go with those of the next ({size})"
        if own.correlation > STRIKING * own.stderr:
            cure = in_door_words(Setting("cluster", f"blocks({name})"))
            told = f"residuals of a day go with those of the next ({size}); name blocks of time"
            told += f" with {cure}"
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
    told = ", ".join(map(shown_name, names[:MAX_NAMES])) or _alone(audit)
    return told if len(names) <= MAX_NAMES else f"{told} and {len(names) - MAX_NAMES} more"


def check_lines(check: Check, audit: Audit) -> list[str]:
    """Say what one check of the gate found."""
    if check.key == "verdict":
        lines = [f"{audit.verdict}: {audit.sentence}"]
    elif check.key == "task":
        lines = [task_line(check.value)]
    elif check.key == "class":
        lines = _class_lines(check.value, audit.alpha)
    else:
        lines = _answer(check.key, audit)
    if not check.is_asked:
        return ["this gate does not ask about it", *lines]
    return [*explained_words(check, audit), *lines]


def _footnotes(audit: Audit) -> list[str]:
    """Say how to read it, and what makes it again."""
    made = (
        f"alpha {audit.alpha:g}, tolerance {audit.tolerance:g}, {audit.draws:,} draws, seed "
        f"{audit.seed}, {seconds(audit.elapsed)}"
    )
    withheld = _withheld(audit)
    notes = list(audit.test.notes)
    if not audit.classes:  # those on the search of slices
        known = {*notes, *audit.diagnosis.bias.notes}
        notes += [note for note in audit.diagnosis.slices.notes if note not in known]
    together = [FAMILY] if audit.classes else [TASKS] if audit.tasks else []
    return [*together, SIGN, made, *withheld, *noted(notes).lines]


def _withheld(audit: Audit) -> list[str]:
    """What disclosure control did, where it was applied."""
    if audit.withheld is None:
        return []
    rows, total = audit.withheld.min_cell, audit.withheld.total
    gone = f"; {counted(total, 'result')} on fewer than {rows} rows withheld" if total else ""
    names = [class_words(part.name) for part in audit.parts if part.rows is None]
    told = f"rows and rates of {' and '.join(names)} are withheld: fewer than {rows} each"
    noise = f"counts and rates carry a noise that belongs to their rows{gone}"
    return [noise, *([told] if names else [])]


def _overall(audit: Audit) -> str:
    found = audit.overall
    scores = f"Brier {found.brier:.4f}, ECE {found.ece:.4f}, smooth ECE {found.smooth_ece:.4f}"
    all_classes = ""
    if audit.classes:
        losses = f"Brier {found.brier:.4f}, log loss {found.log_loss:.4f}"
        scores = f"{losses}, ECE of the top label {found.ece:.4f}"
        all_classes = "all classes together "
    if math.isnan(found.pvalue):
        refuted = not audit.classes and found.refutes(audit.alpha)
        none = f"{all_classes.strip()}: no p-value" if audit.classes else "no p-value"
        return f"{IMPOSSIBLE if refuted else none}; {scores}"
    answer = "rejected" if found.refutes(audit.alpha) else "not rejected"
    about = [] if found.test is None else [kind_text(found.test)]
    if found.unadjusted_pvalue < found.pvalue:
        about.append(f"the predictions alone give {found.unadjusted_pvalue:.3g}")
    told = f" ({'; '.join(about)})" if about else ""
    return f"{all_classes}{answer}: p {found.pvalue:.3g}{told}; {scores}"


def _test(audit: Audit) -> list[str]:
    test, most = audit.test, MAX_OF_CLASSES if audit.classes else MAX_TOLD
    if test.refused is not None:
        told = [f"no p-value: {refusal_words(test.refused)}"]
        return [IMPOSSIBLE, *told] if audit.judgement.refuted else told
    kind = "; p-values of classes and findings are adjusted for all"
    if isinstance(test, CalibrationResult):
        checks = f"; {counted(test.checks, 'check')}, p-values adjusted for all"
        kind = f" ({kind_text(test)}){checks if test.is_adaptive else ''}"
    leading = [
        (own.pvalue, evidence_words(item))
        for item in audit.evidence
        for own in [item.item if isinstance(item, ClassEvidence) else item]
        if isinstance(own, Finding | TakenFor)
    ]
    about = about_findings(audit)
    if about == OWN_PVALUES and all(pvalue <= test.pvalue for pvalue, _ in leading[:most]):
        about = ""  # none of those that are told has a larger one
    answer = "rejected" if audit.judgement.refuted else "not rejected"
    return [
        f"{answer}: p {test.pvalue:.3g}{kind}",
        *(f"p {pvalue:.3g}: {words}" for pvalue, words in leading[:most]),
        *more(len(leading) - most),
        *([about] if about else []),
    ]


def about_findings(audit: Audit) -> str:
    """Say how p-values of findings go with that of the test, where a reader may wonder."""
    test = audit.test
    if not isinstance(test, CalibrationResult):
        if audit.judgement.refuted and not audit.judgement.is_attributed:
            return untold(test.names, audit.classes)
        alone = audit.shown_classes or not audit.judgement.refuted
        return "" if alone else "no single class is shown by the test"
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


def _diagnosis(audit: Audit) -> list[Block]:
    slices, bias = audit.diagnosis.slices, audit.diagnosis.bias
    beside = " beside the groups" if audit.diagnosis.shown_groups else ""
    told = f"no slice stands out{beside}"
    if len(slices):
        told = (
            f"{counted(len(slices.confirmed), 'slice')}{beside} confirmed among "
            f"{slices.regions:,} regions"
        )
    points = f"at {_percent(float(bias.flagged.mean()))} of the points that were checked"
    marked = marked_pictures(audit.charts.to_dict())
    return [
        Notes([f"{points}; {told}"]),
        Table(("slice", *PART_HEAD[1:]), list(map(part_cells, slices.confirmed[:MAX_TOLD]))),
        Notes([*more(len(slices.confirmed) - MAX_TOLD), *marked]),
    ]


def shown_parts(audit: Audit) -> list[tuple[str, PartBias]]:
    """Groups and slices that are shown, the largest first: of several classes with the class."""
    if not audit.classes:
        return [(str(part.where), part) for part in audit.diagnosis.shown]
    named = [
        (f"{class_words(own.name)} where {part.where}", part)
        for own in audit.parts
        for part in own.diagnosis.shown
    ]
    return sorted(named, key=lambda pair: -abs(pair[1].at_least))


def _classes_off(audit: Audit) -> list[Block]:
    """Groups, slices and points of all classes, the largest shown biases first."""
    parts = shown_parts(audit)
    points = [
        f"{class_words(part.name)} at {100 * float(part.diagnosis.bias.flagged.mean()):.0f} %"
        for part in audit.parts
        if part.diagnosis.bias.flagged.any()
    ]
    notes = list(more(len(parts) - MAX_OF_CLASSES))
    if points:
        names = [*points[:MAX_OF_CLASSES], *more(len(points) - MAX_OF_CLASSES)]
        listed = ", ".join(names)
        notes.append(f"local bias is shown for {listed} of the points that were checked")
    if not parts and not notes:
        notes = ["in no group, slice or point of any class"]
    rows = [(name, *part_cells(part)[1:]) for name, part in parts[:MAX_OF_CLASSES]]
    return [Table(("class", *PART_HEAD[1:]), rows), Notes(notes)]


def _classes(audit: Audit) -> list[Block]:
    """Every class: its rows, its mean and its share of the test."""
    rows = [
        ("*" if part.test.pvalue <= audit.alpha else "", *_class_cells(part))
        for part in audit.parts[:MAX_CLASSES]
    ]
    told = "no class by itself is shown to be miscalibrated by the test"
    if audit.shown_classes:
        told = "* the test shows the class to be miscalibrated, adjusted for all classes"
    return [Table(CLASS_HEAD, rows), Notes([*more(len(audit.parts) - MAX_CLASSES), told])]


def _class_cells(part: OutcomePart) -> tuple[str, ...]:
    """A class as a row of `CLASS_HEAD`: rows and the mean, as far as they may be shown."""
    mean, pvalue = part.mean, _pvalue(part.test.pvalue)
    predicted = f"{mean.predicted:.3f}"
    if part.rows is None:
        return str(part.name), "few", predicted, "withheld", "", "", pvalue
    rates = predicted, f"{mean.observed:.3f}"
    return str(part.name), f"{part.rows:,}", *rates, *bias_and_interval(mean), pvalue


def _pvalue(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3g}"


def _class_lines(part: OutcomePart, alpha: float) -> list[str]:
    """Say what was found about one class: the test, the mean, groups and slices."""
    answer = "rejected" if part.test.pvalue <= alpha else "not rejected"
    _, _, predicted, observed, bias, ends, pvalue = _class_cells(part)
    mean = f"predicted {predicted}, observed {observed}: bias {bias} ({ends})"
    if part.rows is None:
        mean = f"predicted {predicted}; its rate is withheld"
    shown = ((own.where, *bias_and_interval(own)) for own in part.diagnosis.shown[:MAX_OF_CLASSES])
    told = (f"{bias} ({ends}) where {where}" for where, bias, ends in shown)
    return [f"{answer}: p {pvalue}; {mean}", *told]


def _pairs(found: ClassMatrix) -> Section:
    return Section("taken for", "Which class is taken for which", [Notes(_pair_lines(found))])


def _pair_lines(found: ClassMatrix) -> list[str]:
    """Say which classes are taken for which, and where."""
    shown, places = found.shown, found.places
    lines = [_pair_words(pair) for pair in shown[:MAX_OF_CLASSES]]
    lines += more(len(shown) - MAX_OF_CLASSES)
    lines += [_place_words(place) for place in places[:MAX_OF_CLASSES]]
    lines += more(len(places) - MAX_OF_CLASSES)
    return lines or ["no pair of classes is shown to be mixed up more than the model expects"]


def _pair_words(pair: PairBias) -> str:
    bias, ends = bias_and_interval(pair)
    often = "more" if pair.bias > 0 else "less"
    return (
        f"rows of {class_words(pair.label)} give {class_words(pair.taken_for)} {often} than the "
        f"model expects: {pair.given:.3f}, expected {pair.expected:.3f}, difference {bias} "
        f"({ends})"
    )


def _place_words(place: PairGroup) -> str:
    """Say where probability of one class should have gone to another."""
    return (
        f"where {place.where}, {class_words(place.taken_for)} is too high by {place.too_high:.2g} "
        f"and {class_words(place.label)} too low by {place.too_low:.2g}"
    )


@document_of.register
def _(found: ClassMatrix) -> Document:
    section = _pairs(found)
    return Document(section.title, [*section.blocks, Notes([PAIRS])])


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


def _task(task: TaskResult) -> Section:
    """Say what a model does to one number, in several lines."""
    title = task_title(task)
    named = task.task if isinstance(task.task, Named) and title == task.name else None
    written = [] if named is None else [str(named.task)]  # what the title stands for
    values = [] if task.withheld is not None else [_values(task)]
    lines = [*written, task_sentence(task), *values, *noted(task.notes).lines]
    return Section("task", title, [Notes(lines)])


def task_line(task: TaskResult) -> str:
    """Say what a model does to one number, and whether it may be reported."""
    told = task_sentence(task)
    return told if task.withheld is not None else f"{told} ({_values(task)})"


def _values(task: TaskResult) -> str:
    bias, ends = bias_text(task)
    plugin, labels = task_values(task)
    return (
        f"{plugin} with probabilities, {labels} with labels: bias {bias} ({ends}), "
        f"p {pvalue_words(task.pvalue)}"
    )


def seen(missed: Missed) -> str:
    """Say how small a bias would have been seen."""
    if missed.groups is not None:
        return _seen_in_classes(missed.groups)
    found = missed.detectable
    if found is None:
        return UNKNOWN if missed.unknown is None else f"{UNKNOWN}: {missed.unknown}"
    told = _shifts(found)
    if found.clustering is None:
        return told
    return f"{told}; approximate, by clusters: {clustering_words(found.clustering, found.n)}"


def _seen_in_classes(found: GroupPower) -> str:
    """How small a bias of a class would have been shown, and what was not asked."""
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
