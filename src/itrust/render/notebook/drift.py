"""What changed between two audits, in a notebook."""

from __future__ import annotations

from itrust.auditing import Drift
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.drift import (
    SIGNS,
    change_title,
    change_values,
    drift_notes,
    drift_sentence,
)


@as_html.register
def _(result: Drift) -> str:
    rows = []
    for part in result.changes:
        few = " ~" if part.few_labels else ""
        told = change_values(part) if part.reason is None else ("", "", "", part.reason, "")
        mark = "*" if part.pvalue <= result.alpha else ""
        rows.append((mark, f"{change_title(part)}{few}", *told))
    head = ("", "compared", *result.names, "difference", "interval", "p")
    return html.card(
        f"What changed: {drift_sentence(result)}",
        html.table(head, rows),
        html.notes([f"* the interval excludes 0; {SIGNS}", *drift_notes(result)]),
    )
