"""A reliability curve, as HTML for a notebook."""

from __future__ import annotations

from itrust.calibration import ReliabilityCurve
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.scores import GAP


@as_html.register
def _(result: ReliabilityCurve) -> str:
    rows = [
        (
            f"{row['rows']:,}",
            *(html.number(row[name], ".3f") for name in ("predicted", "observed")),
            html.interval(row["lower"], row["upper"], ".3f"),
            html.number(row["gap"], "+.3f"),
        )
        for row in result.to_arrow().to_pylist()
    ]
    head = ("rows", "predicted", "observed", "interval", "gap")
    return html.card("Reliability curve", html.table(head, rows), html.notes([GAP]))
