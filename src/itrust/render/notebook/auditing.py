"""Audits and comparisons in a notebook."""

from __future__ import annotations

from itrust._core import html
from itrust.auditing import Audit, Comparison, Overall
from itrust.bias import SIGN
from itrust.render.notebook.bias import PART_HEAD, part_cells
from itrust.render.notebook.tasks import TASK_HEAD, task_cells
from itrust.render.showing import as_html
from itrust.render.text.auditing import by_cluster, judged_on, numbers_of, seen, short_pvalue

MAX_PARTS = 5


@as_html.register
def audit_card(audit: Audit) -> str:
    """Show the verdict, the conditions, tasks, and groups and slices that are off."""
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
    return "none" if overall.test.refused is not None else f"{overall.pvalue:.3g}"


@as_html.register
def comparison_card(comparison: Comparison) -> str:
    """Show models, their tasks and paired differences."""
    models = [
        (m.name, *(f"{v:.4f}" for v in (m.accuracy, m.brier, m.ece)), f"{m.test.pvalue:.3g}")
        for m in comparison.models
    ]
    tasks = [(m.name, *task_cells(task)) for m in comparison.models for task in m.tasks]
    differences = [
        (
            d.what,
            f"{d.first} - {d.second}",
            html.number(d.value, "+.4g"),
            html.interval(d.lower, d.upper, "+.4g"),
            "; ".join(filter(None, ["excludes 0" if d.clear else "", d.note])),
        )
        for d in comparison.differences
    ]
    return html.card(
        f"{len(comparison.models)} models on the same {comparison.n:,} rows",
        html.table(["model", "accuracy", "Brier", "ECE", "p given covariates"], models),
        html.table(["model", *TASK_HEAD], tasks),
        html.table(["difference in", "of", "value", "interval", ""], differences),
        html.notes(["task bias: with labels - with probabilities"]),
    )
