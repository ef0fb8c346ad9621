"""Audits and comparisons in a notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence

from itrust._core import signed_in
from itrust.auditing import (
    FAMILY,
    Audit,
    ClassMatrix,
    Comparison,
    Difference,
    OutcomePart,
    Overall,
    PairBias,
)
from itrust.bias import SIGN
from itrust.overturn import NumberRobustness
from itrust.render import html
from itrust.render.notebook.tasks import TASK_HEAD, task_cells
from itrust.render.showing import as_html
from itrust.render.text import class_words, classes_judged_on, classes_missed_words
from itrust.render.text.auditing import by_cluster, judged_on, numbers_of, seen, short_pvalue
from itrust.render.text.bias import PART_HEAD, part_cells
from itrust.render.text.overturning import (
    NAMES,
    TITLE,
    number_sentence,
    overturning_lines,
    untold_words,
)

MAX_PARTS = 5
MAX_PAIRS = 20


@as_html.register
def audit_card(audit: Audit) -> str:
    """Show the verdict, the conditions, tasks, and groups and slices that are off."""
    if audit.classes:
        return classes_card(audit)
    test, overall = audit.test, audit.overall
    conditions = [
        ("Overall calibration", _overall_pvalue(overall), f"ECE {overall.ece:.4f}"),
        ("Calibration given the covariates", short_pvalue(test), judged_on(audit)),
        (
            "What this audit could have missed",
            "–",  # noqa: RUF001
            seen(audit.missed),
        ),
    ]
    parts = [
        html.sentence(audit.summary),
        html.sentence(f"{audit.sentence} {audit.action}"),
        html.sentence(numbers_of(audit.tasks)),
        html.table(["condition", "p", ""], conditions),
        html.table(TASK_HEAD, [task_cells(task) for task in audit.tasks]),
        html.table(
            ["shown to be miscalibrated", *PART_HEAD[1:]],
            [part_cells(part) for part in audit.diagnosis.shown[:MAX_PARTS]],
        ),
        html.table([TITLE], [(line,) for line in overturning_lines(audit)]),
        html.notes(
            [
                f"{audit.n:,} rows{by_cluster(audit)}, judged on {judged_on(audit)}",
                SIGN,
                *test.warnings,
            ]
        ),
    ]
    return html.card(f"Verdict: {audit.verdict}", *parts, colour=audit.verdict.tone.light)


def _overall_pvalue(overall: Overall) -> str:
    return "none" if math.isnan(overall.pvalue) else f"{overall.pvalue:.3g}"


@as_html.register
def number_card(found: NumberRobustness) -> str:
    """Show what would overturn the finding about one number."""
    ends = [
        (NAMES[own.kind], html.number(own.point, ".3g"), "yes" if own.beyond else "no")
        for own in found.tippings
        if own.point is not None
    ]
    return html.card(
        f"{found.name}: {found.finding}",
        html.sentence(number_sentence(found)),
        html.table(["violation", "stands up to", "more than that"], ends),
    )


@as_html.register
def comparison_card(comparison: Comparison) -> str:
    """Show models, their tasks and paired differences."""
    models = [
        (m.name, *(f"{v:.4f}" for v in (m.accuracy, m.brier, m.ece)), f"{m.test.pvalue:.3g}")
        for m in comparison.models
    ]
    tasks = [(m.name, *task_cells(task)) for m in comparison.models for task in m.tasks]
    differences = _differences(comparison.differences)
    return html.card(
        f"{len(comparison.models)} models on the same {comparison.n:,} rows",
        html.table(["model", "accuracy", "Brier", "ECE", "p given covariates"], models),
        html.table(["model", *TASK_HEAD], tasks),
        html.table(["difference in", "of", "value", "interval", ""], differences),
        html.notes(["task bias: with labels - with probabilities"]),
    )


def _differences(found: Sequence[Difference]) -> list[tuple[str, ...]]:
    return [
        (
            d.what,
            f"{d.first} - {d.second}",
            html.number(d.value, "+.4g"),
            html.interval(d.lower, d.upper, "+.4g"),
            "; ".join(filter(None, ["excludes 0" if d.clear else "", d.note])),
        )
        for d in found
    ]


def classes_card(audit: Audit) -> str:
    """Show the verdict over all classes, every class, pairs, tasks, and where classes are off."""
    classes = [
        (str(part.name), *_class_cells(part), html.number(part.test.pvalue, ".3g"))
        for part in audit.parts
    ]
    shown = [(part.name, own) for part in audit.parts for own in part.diagnosis.shown]
    shown.sort(key=lambda pair: -abs(pair[1].at_least))
    assert audit.pairs is not None
    off = [(class_words(name), *part_cells(own)) for name, own in shown[:MAX_PARTS]]
    pairs = [_pair_cells(pair) for pair in audit.pairs.shown[:MAX_PARTS]]
    parts = [
        html.sentence(audit.summary),
        html.sentence(f"{audit.sentence} {audit.action}"),
        html.sentence(numbers_of(audit.tasks)),
        html.table(TASK_HEAD, [task_cells(task) for task in audit.tasks]),
        html.table(CLASS_HEAD, classes),
        html.table(["class", "shown to be miscalibrated", *PART_HEAD[1:]], off),
        html.table(PAIR_HEAD, pairs),
        html.notes(
            [
                f"{audit.n:,} rows, judged on {classes_judged_on(audit)}",
                f"all classes given the covariates: p {_short(audit.test.pvalue)}",
                classes_missed_words(audit),
                *_untold(audit),
                FAMILY,
                SIGN,
                *audit.test.warnings,
            ]
        ),
    ]
    return html.card(f"Verdict: {audit.verdict}", *parts, colour=audit.verdict.tone.light)


def _untold(audit: Audit) -> list[str]:
    found = audit.robustness
    if found is None or found.untold is None:
        return []
    return [f"{TITLE}: {untold_words(found.untold)}"]


CLASS_HEAD = ["class", "rows", "predicted", "observed", "bias", "interval", "p given covariates"]
PAIR_HEAD = ["rows of", "give", "on average", "expected", "difference", "interval", "adjusted p"]


def _class_cells(part: OutcomePart) -> tuple[str, ...]:
    """Rows and the mean of a class, as far as they are told."""
    mean, predicted = part.mean, f"{part.mean.predicted:.3f}"
    if part.rows is None:
        return "few", predicted, "withheld", "", ""
    return (
        f"{part.rows:,}",
        predicted,
        f"{mean.observed:.3f}",
        signed_in(mean.bias, mean.lower, mean.upper),
        html.interval(mean.lower, mean.upper, "+.3f"),
    )


def _short(pvalue: float) -> str:
    return "none" if math.isnan(pvalue) else f"{pvalue:.3g}"


def _pair_cells(pair: PairBias) -> tuple[str, ...]:
    return (
        str(pair.label),
        str(pair.taken_for),
        f"{pair.given:.3f}",
        f"{pair.expected:.3f}",
        signed_in(pair.bias, pair.lower, pair.upper),
        html.interval(pair.lower, pair.upper, "+.3f"),
        f"{pair.pvalue:.3g}",
    )


@as_html.register
def matrix_card(found: ClassMatrix) -> str:
    """Show the pairs of classes, those that are shown first."""
    ordered = sorted(found.pairs, key=lambda pair: (not pair.is_shown, -abs(pair.bias)))
    return html.card(
        f"{len(found.shown)} of {len(found.pairs)} pairs of classes are mixed up",
        html.table(PAIR_HEAD, [_pair_cells(pair) for pair in ordered[:MAX_PAIRS]]),
        html.notes(["intervals and p-values hold for all pairs at once"]),
    )
