"""Models, methods of recalibration and two audits side by side, in words."""

from __future__ import annotations

import math

from itrust._core import counted, listed, rounded
from itrust.auditing import Change, Comparison, Drift
from itrust.recalibrate import RecalibrationTable
from itrust.render.document import (
    Document,
    Notes,
    Section,
    Sentence,
    Table,
    document_of,
    interval,
    number,
    spelt,
)
from itrust.render.text.tasks import pvalue_words, task_sentence
from itrust.tasks import FEW_NOTE

NO_MONITOR = (
    "two fixed samples are compared, once; this is no monitor, and repeated every month it would "
    "end in a false alarm (itrust.Watch and 'itrust watch' are made for that)"
)
INDEPENDENT = "it is taken for granted that no row, and no cluster, is in both audits"
TITLES = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "predicted": "mean prediction",
    "observed": "observed rate",
    "mean_bias": "mean bias",
    "group_bias": "bias where {}",
    "number": "{}, from labels",
    "number_bias": "{}, bias with probabilities",
}
SIGNS = "difference = second - first; bias = observed - predicted, from labels - with probabilities"


@document_of.register
def _(result: Comparison) -> Document:
    models = [
        (
            m.name,
            *(f"{value:.4f}" for value in (m.accuracy, m.brier, m.ece, m.smooth_ece)),
            number(m.test.pvalue, ".3g"),
        )
        for m in result.models
    ]
    differences = [
        (
            "*" if own.clear else "",
            own.what,
            f"{own.first} - {own.second}",
            number(own.value, "+.4g"),
            interval(own.lower, own.upper, "+.4g"),
            own.note,
        )
        for own in result.differences
    ]
    head = ("model", "accuracy", "Brier", "ECE", "smooth ECE", "p given covariates")
    cover = f"{100 * (1 - result.alpha):g} % intervals each"
    return Document(
        f"{len(result.models)} models on the same {result.n:,} rows",
        [
            Table(head, models),
            *(_task(result, k) for k in range(len(result.models[0].tasks))),
            Table([""] * 6, differences, f"differences, first minus second, {cover}"),
            Notes(["* excludes 0. Task bias: with labels - with probabilities."]),
        ],
    )


def _task(found: Comparison, k: int) -> Sentence | Table:
    """One number by every model."""
    first = found.models[0].tasks[k]
    if first.withheld is not None:
        return Sentence(f"{first.name}   {task_sentence(first)}")
    rows = []
    for name, own in ((model.name, model.tasks[k]) for model in found.models):
        ends = interval(own.lower, own.upper, "+.3g")
        rows.append((name, f"{own.plugin:.5g}", f"{own.bias:+.3g}", ends, f"{own.pvalue:.3g}"))
    head = ("model", "with probabilities", "bias", "interval", "p")
    return Table(head, rows, f"{first.name}   (with labels {first.from_labels:.5g})")


def drift_sentence(found: Drift) -> str:
    """Say what the comparison comes to, and what it is not."""
    whole, shown = counted(found.comparisons, "comparison"), len(found.shown)
    if shown:
        told = f"{shown} of {whole} {'shows' if shown == 1 else 'show'} a change"
    else:
        told = f"none of {whole} shows a change, which does not show that nothing changed"
    models = "" if found.same_model else "; the models differ, so rows and model may have changed"
    return f"{told}{models}"


@document_of.register
def _(result: Drift) -> Document:
    names = [
        f"{spelt(name)!r} ({rows:,} rows)"
        for name, rows in zip(result.names, result.n, strict=True)
    ]
    cover = f"intervals cover {100 * (1 - result.alpha):.4g} % and p-values are adjusted"
    notes = [
        f"* the interval excludes 0; {SIGNS}",
        *(
            f"{change_title(part)}: not compared, {part.reason}"
            for part in result.changes
            if part.reason is not None
        ),
        f"{cover}, for all {counted(result.comparisons, 'comparison')} together",
        NO_MONITOR,
        INDEPENDENT,
    ]
    for name, alone in zip(result.names, (result.only_first, result.only_second), strict=True):
        if alone:
            only = listed(list(map(spelt, alone)))
            notes.append(f"not compared, for only {spelt(name)!r} shows it: {only}")
    if any(part.few_labels for part in result.changes):
        notes.append(f"~ {FEW_NOTE}")
    compared = [part for part in result.changes if part.reason is None]
    head = ("", "compared", *result.names, "difference", "interval", "p")
    return Document(
        f"What changed from {names[0]} to {names[1]}",
        [
            Sentence(drift_sentence(result)),
            Table(head, [_change(part, result.alpha) for part in compared]),
            Notes(notes),
        ],
    )


def change_title(part: Change) -> str:
    """What is compared, in words."""
    return TITLES[part.compared].format(spelt(part.name))


def _change(part: Change, alpha: float) -> tuple[str, ...]:
    """A comparison: marked with * where a change is shown, ~ where labels are few."""
    ends = part.lower, part.upper
    values = (rounded(value, *ends) for value in (part.first, part.second))
    difference, *signed_ends = (rounded(value, *ends, "+") for value in (part.difference, *ends))
    mark = "*" if part.pvalue <= alpha else ""
    pvalue = pvalue_words(part.pvalue)
    title = f"{change_title(part)}{' ~' if part.few_labels else ''}"
    return (mark, title, *values, difference, " to ".join(signed_ends), pvalue)


@document_of.register
def _(result: RecalibrationTable) -> Document:
    rows = [
        (
            m.name,
            f"{m.brier:.4f}",
            "infinite" if math.isinf(m.log_loss) else f"{m.log_loss:.4f}",
            *(number(value, ".3f") for value in (m.ece, m.mce)),
            number(m.klce2, "+.2e"),
            number(m.pvalue, ".3f"),
            f"{m.seconds:.1f}",
        )
        for m in result
    ]
    head = ("method", "Brier", "log loss", "ECE", "MCE", "KLCE^2", "p-value", "seconds")
    slices: list[Section] = []
    if not result.of_classes:  # of which none are searched
        rules = [
            f"{m.name}: {m.slice.rule}, bias at least {m.slice.at_least:+.3f}"
            for m in result
            if m.slice
        ]
        title = "worst confirmed slice"
        slices = [Section("slices", title, [Notes(rules or ["none"])])]
    made = (
        f"fitted on {result.calibration_rows:,} rows, judged on {result.test_rows:,} others; "
        f"p-values from {result.draws} draws, seed {result.seed}"
    )
    return Document(
        f"{counted(len(rows), 'method')} of recalibration",
        [Table(head, rows), *slices, Notes([*result.notes, made])],
    )
