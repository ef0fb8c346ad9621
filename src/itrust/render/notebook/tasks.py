"""Tasks in a notebook: what a model does to a number, and estimates on a population."""

from __future__ import annotations

from itrust._core import counted, rounded
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.balance import resemblance_warnings
from itrust.render.text.estimates import refusal_sentence, resemblance_lines
from itrust.render.text.tasks import (
    TASK_SIGN,
    WAYS,
    bias_text,
    ends_text,
    estimate_head,
    estimate_notes,
    population_words,
    recommendation,
    scope_words,
    task_sentence,
    task_title,
    task_words,
)
from itrust.tasks import Estimate, TaskEstimate, TaskEstimates, TaskResult

TASK_HEAD = ("task", "with labels", "with probabilities", "bias", "interval", "p", "finding")
ESTIMATE_HEAD = ("estimate", "interval", "if")


@as_html.register
def _(result: TaskResult) -> str:
    return html.card(
        "What the model does to one number",
        html.table(TASK_HEAD, [task_cells(result)]),
        html.notes([TASK_SIGN, *result.notes]),
    )


def task_cells(result: TaskResult) -> tuple[str, ...]:
    """A task as a row of `TASK_HEAD`."""
    if result.withheld is not None:
        return (task_title(result), *[""] * 5, task_sentence(result))
    bias, interval = bias_text(result)
    return (
        task_title(result),
        rounded(result.from_labels, result.lower, result.upper),
        rounded(result.plugin, result.lower, result.upper),
        bias,
        interval,
        html.number(result.pvalue, ".3g"),
        task_sentence(result),
    )


@as_html.register
def _(result: Estimate) -> str:
    return html.card("An estimate", html.table(ESTIMATE_HEAD, [estimate_cells(result)]))


@as_html.register
def _(result: TaskEstimate) -> str:
    rows = [(WAYS[name], *estimate_cells(way)) for name, way in result.ways.items()]
    return html.card(
        estimate_head(result),
        html.table(["", *ESTIMATE_HEAD], rows),
        html.notes(
            [
                recommendation(result),
                *resemblance_warnings(result.resemblance),
                *estimate_notes(result),
                *result.notes,
            ]
        ),
    )


def estimate_cells(way: Estimate) -> tuple[str, ...]:
    """An estimate as a row of `ESTIMATE_HEAD`."""
    return html.number(way.value, ".5g"), ends_text(way), way.assumes.value


@as_html.register
def _(result: TaskEstimates) -> str:
    rows = []
    for own in result.estimates:
        best = ("", "") if own.best is None else estimate_cells(own.best)[:2]
        way = "none" if own.best_way is None else WAYS[own.best_way]
        scope = scope_words(own)
        title = f"{task_words(own.task)}{scope and ', '}{scope}"
        rows.append((title, *best, way, html.number(own.plugin.value, ".5g")))
    rows_told = population_words(result.resemblance.size, result.excluded)
    return html.card(
        f"{counted(len(result), 'number')} for {rows_told}",
        html.table(("number", "report", "interval", "way", "plug-in"), rows),
        html.notes(
            [
                *resemblance_lines(result),
                *(
                    f"{task_words(own.task)}: no estimate. {refusal_sentence(own)}"
                    for own in result.refused
                ),
                *(f"{task} is withheld" for task in result.withheld),
            ]
        ),
    )
