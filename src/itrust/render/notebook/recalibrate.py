"""Methods of recalibration side by side, as HTML for a notebook."""

from __future__ import annotations

from itrust.recalibrate import RecalibrationTable
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.recalibrate import footing, loss_text

HEAD = ("method", "Brier", "log loss", "ECE", "MCE", "KLCE^2", "p-value", "worst confirmed slice")


@as_html.register
def _(result: RecalibrationTable) -> str:
    rows = [
        [
            method.name,
            html.number(method.brier, ".4f"),
            loss_text(method.log_loss),
            html.number(method.ece, ".3f"),
            html.number(method.mce, ".3f"),
            html.number(method.klce2, "+.2e"),
            html.number(method.pvalue, ".3f"),
            f"{method.slice.rule} (at least {method.slice.at_least:+.3f})"
            if method.slice
            else "none",
        ]
        for method in result
    ]
    return html.card(
        "Recalibration", html.table(HEAD, rows), html.notes([*result.notes, footing(result)])
    )
