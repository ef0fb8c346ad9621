"""Numbers in words: what a model does to them, and what to report of a population."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from itrust._core import Setting, counted, in_door_words, rounded, rounded_up, sentence
from itrust.balance import shares_of
from itrust.data import Everywhere, Predicate
from itrust.render.document import (
    Document,
    Notes,
    Section,
    Sentence,
    Table,
    document_of,
    interval,
    noted,
    spelt,
)
from itrust.render.text.balance import (
    difference_words,
    effective_words,
    gap_words,
    percent,
    resemblance_facts,
    resemblance_sentence,
    resemblance_warnings,
    unlike_words,
)
from itrust.tasks import (
    BestReason,
    Coefficient,
    Combined,
    Covariate,
    Estimate,
    Indicator,
    Leaf,
    LevelOf,
    Named,
    Quantity,
    Ratio,
    Task,
    TaskEstimate,
    TaskEstimates,
    TaskFinding,
    TaskResult,
    label_apart,
)

TASK_SIGN = "bias = with labels - with probabilities; positive: the model understates it"
WAYS = {
    "plugin": "plug-in",
    "recalibrated": "recalibrated",
    "prediction_powered": "prediction-powered",
    "transported": "transported",
    "labelled": "labels alone",
}
OUTSIDE, INSIDE, NONE = "differs from the plug-in", "near the plug-in", "no number to report"
UNLESS, SAME_ROWS = "what you would have published", "on the same rows"
LEAST_PVALUE = 1e-4
REGRESSIONS = {"logit": "logistic", "identity": "linear", "log": "log-linear"}
SIGNS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}


@document_of.register
def _(result: TaskResult) -> Document:
    numbers = []
    if result.withheld is None:
        bias, ends = bias_text(result)
        plugin, labels = task_values(result)
        numbers = [
            ("with probabilities", plugin),
            ("with labels", labels),
            ("bias", f"{bias}   ({ends})"),
            ("p-value", f"{pvalue_words(result.pvalue)}   (H0: no bias for this task)"),
        ]
    rows = [
        *numbers,
        ("finding", task_sentence(result)),
        ("depends on", ", ".join(result.covariates) or "no covariate"),
    ]
    notes = Notes([TASK_SIGN, *noted(result.notes).lines])
    return Document(task_title(result), [Table(("", ""), rows), notes])


def task_values(result: TaskResult) -> tuple[str, str]:
    """With probabilities and with labels, with the digits that the interval can tell."""
    ends = result.lower, result.upper
    return rounded(result.plugin, *ends), rounded(result.from_labels, *ends)


def task_title(result: TaskResult) -> str:
    """The number in words, or by the title that it was given."""
    return task_words(result.task, result.positives)


def task_words(task: Task, positives: str = "positives") -> str:
    """Say in words what a task is.

    Examples
    --------
    >>> import itrust as it
    >>> task_words(it.tasks.parse('mean(age | race == "b") - mean(age)'), "owner = 1")
    'mean age among owner = 1 where race = b, minus mean age among owner = 1'
    >>> task_words(it.tasks.parse("prevalence()")), task_words(it.tasks.parse("Rate: prevalence()"))
    ('share of positives', 'Rate')
    >>> task_words(it.tasks.parse("(mean(a) + mean(b)) / 2"))
    '(mean a among positives, plus mean b among positives), divided by 2'
    >>> task_words(it.tasks.parse('coef(race["b"] ; age + race against "w")'), "owner = 1")
    'coefficient of race = b against w in a logistic regression of owner = 1 on age and race'
    >>> task_words(it.tasks.parse('prevalence("tie" | age > 40)'), "result")
    'share of result = tie where age > 40'
    >>> task_words(it.tasks.parse('mean(age | result == "tie" and age > 40)'), "result")
    'mean age among result = tie where age > 40'
    """
    if isinstance(task, Named):
        inner = task.task
        return task_words(inner, positives) if task.title == str(inner) else task.title
    if isinstance(task, Combined):
        left, right = (task_words(part, positives) for part in (task.left, task.right))
        if isinstance(task.right, Combined):
            right = f"({right})"
        if isinstance(task.left, Combined) and task.sign in "*/":
            left = f"({left})"
        if task.sign == "-" and str(task.left) == "0":
            return f"minus {right}"
        return f"{left}, {SIGNS[task.sign]} {right}"
    if isinstance(task, Coefficient):
        return _coefficient_words(task, _called(task, positives))
    if not isinstance(task, Ratio):
        return str(task)
    label = _label_name(positives)
    if task.label is None and task.among_positives:
        named, where = label_apart(task.where, [label])
        task = replace(task, label=named, where=where)
    positives = _called(task, positives)
    if not task.among_positives:
        return f"share of {positives}{_where(task.where)}"
    what = f"mean {task.quantity}"
    if isinstance(task.quantity, Indicator):
        what = f"share with {task.quantity.where}"
    return f"{what} among {positives}{_where(task.where)}"


def _label_name(positives: str) -> str:
    """What the label is called, from what positives are."""
    return "y" if positives == "positives" else positives.partition(" = ")[0]


def _called(task: Leaf, positives: str) -> str:
    """What the rows of a leaf are called: its class, if it names one."""
    if task.label is None:
        return positives
    whole = isinstance(task.label, float) and task.label.is_integer()  # as typed: 1, not 1.0
    return f"{_label_name(positives)} = {int(task.label) if whole else task.label}"


def _coefficient_words(task: Coefficient, positives: str) -> str:
    regression = task.regression
    against = dict(regression.references)
    of = () if task.of is None else task.of.factors

    def told(factor: Quantity) -> str:
        if isinstance(factor, LevelOf):
            level = f"{factor.name} = {factor.level}"
            chosen = against.pop(factor.name, None)  # said once
            return level if chosen is None else f"{level} against {chosen}"
        name = factor.name if isinstance(factor, Covariate) else None
        chosen = against.pop(name, None) if name in against else None
        return str(factor) if chosen is None else f"{factor} against {chosen}"

    what = "constant of"
    if of:
        what = f"coefficient of {' times '.join(map(told, of))} in"
    terms = [" times ".join(map(told, term.factors)) for term in regression.terms]
    on = " and ".join([", ".join(terms[:-1]), terms[-1]] if len(terms) > 1 else terms)
    kind = REGRESSIONS[regression.link]
    return f"{what} a {kind} regression of {positives} on {on}{_where(task.where)}"


def _where(rows: Predicate) -> str:
    return "" if isinstance(rows, Everywhere) else f" where {rows}"


def bias_text(result: Any) -> tuple[str, str]:
    """The bias of a number and its interval, with the digits that the interval can tell."""
    ends = result.lower, result.upper
    bias, lower, upper = (rounded(value, *ends, "+") for value in (result.bias, *ends))
    return bias, f"{lower} to {upper}"


def pvalue_words(pvalue: float) -> str:
    """A p-value for people.

    >>> pvalue_words(0.0558), pvalue_words(5.94e-18)
    ('0.0558', 'below 0.0001')
    """
    return "below 0.0001" if pvalue < LEAST_PVALUE else f"{pvalue:.3g}"


def task_sentence(result: TaskResult) -> str:
    """Say whether a number may be reported, and what would decide where that is open."""
    return f"{result.finding}: {_reason(result)}"


def _reason(result: TaskResult) -> str:
    size = result.tolerance
    if result.withheld is not None:
        return f"it rests on fewer than {result.withheld} rows"
    if result.finding is TaskFinding.SAFE:
        return f"its bias lies within the tolerance of {size:g}"
    if result.finding is TaskFinding.BIASED:
        ends = sorted(abs(end) for end in (result.lower, result.upper))
        least, most = (rounded(end, result.lower, result.upper) for end in ends)
        way = "understate" if result.bias > 0 else "overstate"
        told = f"the probabilities {way} it by {least} to {most}"
        return told if size is None else f"{told}, and {size:g} would matter"
    return _open(result)


def _open(result: TaskResult) -> str:
    """Why a number is undecided, and what would decide."""
    size = result.tolerance
    if math.isnan(result.bias):
        return "labels give no estimate"
    if result.few_labels:
        return "fewer than ten labels carry it; more labelled rows would decide"
    if size is None:
        least = rounded_up(result.reach)
        return (
            f"no bias is shown, and a bias beyond {least} is excluded; with a tolerance of {least} "
            f"or more it would be safe to report"
        )
    if result.is_shown:
        told = f"a bias is shown, but not whether it reaches the tolerance of {size:g}"
    else:
        told = f"no bias is shown, but a bias beyond the tolerance of {size:g} is not excluded"
    if result.rows_needed is None:
        return f"{told}; the estimate lies too near the tolerance for more rows to decide"
    then = "if it is as estimated" if result.is_shown else "if there is none"
    return f"{told}; about {result.rows_needed:,} labelled rows like these would decide, {then}"


@document_of.register
def _(result: Estimate) -> Document:
    ends = interval(result.lower, result.upper, ".5g")
    return Document(f"{result.value:.5g}  ({ends}), if {result.assumes}")


@document_of.register
def _(result: TaskEstimate) -> Document:
    rows = f"{result.size:,} rows without labels{_without(result.excluded)}"
    warnings = [f"warning: {text}" for text in resemblance_warnings(result.resemblance)]
    notes = noted([*estimate_notes(result), *result.notes]).lines
    return Document(
        f"{result.task} on {rows}, {result.n:,} with",
        [_ways(result), Notes([recommendation(result), *warnings, *notes])],
    )


def _ways(result: TaskEstimate) -> Table:
    """All ways of estimating a number, and what each assumes."""
    rows = [
        (
            ">" if name == result.best_way else "",
            WAYS[name],
            with_interval(result, way),
            f"if {way.assumes}",
        )
        for name, way in result.ways.items()
    ]
    return Table(("", "", "", ""), rows)


def _without(excluded: int | None) -> str:
    if excluded == 0:
        return ""
    left = "a few" if excluded is None else f"{excluded:,}"
    return f" (less {left} that no labelled row resembles)"


def scope_words(result: TaskEstimate) -> str:
    """Say which of its rows a number is for; nothing where it is for all."""
    unlike = shares_of(result.gaps)
    if result.support != "exclude" or not unlike > 0:
        return ""
    return f"for the {percent(1 - unlike)} of the rows it counts that labelled rows resemble"


def recommendation(result: TaskEstimate) -> str:
    """Say which estimate to report, for which rows, and why."""
    reason = result.reason.value
    if result.best_way is None:
        cure = ""
        if result.reason is BestReason.UNSUPPORTED:
            rest = in_door_words(Setting("support", "exclude"))
            cure = f"; {rest} gives the number for the rest"
        return f"report none of them: {reason}{cure}"
    scope = scope_words(result)
    return f"report the {WAYS[result.best_way]} estimate{scope and ', '}{scope}: {reason}"


def estimate_notes(result: TaskEstimate) -> list[str]:
    """Say which rows do not count, and which weights were cut."""
    told = []
    if scope_words(result):
        told.append(
            f"of the rows that it counts, those that no labelled row resembles are left out: "
            f"{gap_words(result.gaps)}"
        )
    elif result.reason is BestReason.UNSUPPORTED:
        where = f": {gap_words(result.gaps)}" if result.gaps else ""
        told.append(f"no labelled row is like some of the rows that it counts{where}")
    if result.unbalanced:
        told.append(
            f"weights leave {counted(result.unbalanced, 'feature')} of the covariates different by "
            f"more than a tenth of a standard deviation; the interval counts what that may do"
        )
    if result.trimmed:
        told.append(
            f"{counted(result.trimmed, 'weight')} of labelled rows cut, so that no row counts more "
            f"than the root of {result.n:,} rows"
        )
    return told


def estimate_facts(found: TaskEstimates) -> dict[str, Any]:
    """All that was found about numbers and rows, in values and in words."""
    looked = found.resemblance
    return {
        "n": looked.n,
        "population": looked.size,
        "excluded": found.excluded,
        "resemblance": resemblance_facts(looked),
        "estimates": [_estimate_facts(own) for own in found.estimates],
        "refused": [
            {
                "task": str(own.task),
                "title": task_words(own.task),
                "formula": own.task.formula,
                "reason": sentence(own.error),
            }
            for own in found.refused
        ],
    }


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


@document_of.register
def _(result: TaskEstimates) -> Document:
    looked = result.resemblance
    rows = f"a population of {looked.size:,} rows{_without(result.excluded)}"
    cover = f"intervals cover {100 * (1 - result[0].alpha):.4g} %" if result.estimates else ""
    alike = [
        resemblance_sentence(looked),
        *map(difference_words, looked.differences),
        unlike_words(looked),
        effective_words(looked),
        *noted(looked.notes).lines,
    ]
    left = [f"{task_words(own.task)}: no estimate. {sentence(own.error)}" for own in result.refused]
    if result.withheld:
        names = ", ".join(spelt(str(task)) for task in result.withheld)
        left.append(f"withheld, for they rest on fewer than {result.min_cell} rows: {names}")
    return Document(
        f"{counted(len(result), 'number')} for {rows}, from {looked.n:,} labelled rows",
        [
            Sentence(cover),
            Section("rows", "Are the labelled rows like the population?", [Notes(alike)]),
            *map(_number, result.estimates),
            Notes(left),
        ],
    )


def _number(own: TaskEstimate) -> Section:
    """The number in words with its recommended value, or that there is none, and why."""
    scope = scope_words(own)
    title = f"{task_words(own.task)}{scope and ', '}{scope}"
    value = NONE
    if own.best is not None and own.best_way is not None:
        value = f"{with_interval(own, own.best)}, {WAYS[own.best_way]}"
    said = Notes([recommendation(own), plugin_sentence(own)])
    notes = noted([*estimate_notes(own), *own.notes])
    return Section("number", f"{title}: {value}", [said, _ways(own), notes])
