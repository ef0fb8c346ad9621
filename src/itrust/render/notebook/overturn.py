"""What would overturn the evidence, in a notebook."""

from __future__ import annotations

from itrust.overturn import PrudentResult, Robustness, Tipping
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.overturning import (
    NAMES,
    prudence_sentence,
    prudence_words,
    violation_sentence,
)

HEAD = ("violation", "what it would take", "carried by")


@as_html.register
def _(result: Tipping) -> str:
    return html.card("A tipping point", html.table(HEAD, [_cells(result)]))


@as_html.register
def _(result: PrudentResult) -> str:
    return html.card("Prudence", html.notes([prudence_words(result)]))


@as_html.register
def _(result: Robustness) -> str:
    return html.card(
        f"What would overturn it? {result.n:,} rows, p = {result.pvalue:.3g}",
        html.table(HEAD, [_cells(tipping) for tipping in result.violations]),
        html.notes(
            [
                prudence_sentence(result.prudence, result.alpha),
                *result.warnings,
                *result.notes,
            ]
        ),
    )


def _cells(tipping: Tipping) -> tuple[str, ...]:
    found = "" if tipping.finding is None else str(tipping.finding)
    return NAMES[tipping.kind], violation_sentence(tipping), found
