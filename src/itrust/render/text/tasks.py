"""Tasks as plain text: what a model does to a number, and estimates on a population."""

from __future__ import annotations

import math
from dataclasses import replace

from itrust._core import Setting, counted, in_door_words, rounded, rounded_up, wrapped
from itrust.balance import shares_of
from itrust.data import Everywhere, Predicate
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.balance import gap_words, percent, resemblance_warnings
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
LEAST_PVALUE = 1e-4
REGRESSIONS = {"logit": "logistic", "identity": "linear", "log": "log-linear"}
SIGNS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}


@as_text.register
def _(result: TaskResult, width: int = WIDTH) -> str:
    rows = [
        *([] if result.withheld is not None else _numbers(result)),
        ("finding", task_sentence(result)),
        ("depends on", ", ".join(result.covariates) or "no covariate"),
    ]
    lines = wrapped(task_title(result), width, "", "  ")
    for name, text in rows:
        lines += wrapped(f"{name:<18}  {text}", width, "  ", " " * 20)
    return "\n".join([*lines, f"  {TASK_SIGN}", *(f"  note: {note}" for note in result.notes)])


def _numbers(result: TaskResult) -> list[tuple[str, str]]:
    bias, interval = bias_text(result)
    return [
        ("with probabilities", _value(result, result.plugin)),
        ("with labels", _value(result, result.from_labels)),
        ("bias", f"{bias}   ({interval})"),
        ("p-value", f"{pvalue_words(result.pvalue)}   (H0: no bias for this task)"),
    ]


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


def bias_text(result: TaskResult) -> tuple[str, str]:
    """The bias of a number and its interval, with the digits that the interval can tell."""
    told = [
        rounded(value, result.lower, result.upper, "+")
        for value in (result.bias, result.lower, result.upper)
    ]
    return told[0], f"{told[1]} to {told[2]}"


def pvalue_words(pvalue: float) -> str:
    """A p-value for people.

    >>> pvalue_words(0.0558), pvalue_words(5.94e-18)
    ('0.0558', 'below 0.0001')
    """
    return "below 0.0001" if pvalue < LEAST_PVALUE else f"{pvalue:.3g}"


def _value(result: TaskResult, value: float) -> str:
    return rounded(value, result.lower, result.upper)


def task_sentence(result: TaskResult) -> str:
    """Say whether a number may be reported, and what would decide where that is open."""
    return f"{result.finding}: {_reason(result)}"


def _reason(result: TaskResult) -> str:
    size = result.tolerance
    if result.withheld is not None:
        return f"it rests on fewer than {result.withheld} rows, or would tell of so few"
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


@as_text.register
def _(result: Estimate, width: int = WIDTH) -> str:  # noqa: ARG001
    return f"{result.value:.5g}  {ends_text(result)}, if {result.assumes}"


@as_text.register
def _(result: TaskEstimate, width: int = WIDTH) -> str:
    names = max(map(len, WAYS.values()))
    lines = [
        f"{'>' if name == result.best_way else ' '} {WAYS[name]:<{names}} {way.value:>10.5g}  "
        f"{ends_text(way):<22}  if {way.assumes}"
        for name, way in result.ways.items()
    ]
    head = "\n".join(wrapped(estimate_head(result), width, "", "  "))
    said = [recommendation(result)]
    said += [f"warning: {text}" for text in resemblance_warnings(result.resemblance)]
    said += [f"note: {note}" for note in (*estimate_notes(result), *result.notes)]
    for text in said:
        lines += wrapped(text, width, "  ", "    ")
    return "\n".join([head, *lines])


def estimate_head(result: TaskEstimate) -> str:
    """What is estimated on which rows."""
    rows = f"{result.size:,} rows without labels{_without(result.excluded)}"
    return f"{result.task} on {rows}, {result.n:,} with"


def population_words(size: int, excluded: int | None) -> str:
    """The rows that numbers are for, such as "a population of 900 rows"."""
    return f"a population of {size:,} rows{_without(excluded)}"


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


def ends_text(way: Estimate) -> str:
    """The interval of an estimate."""
    return f"({way.lower:.5g} to {way.upper:.5g})"
