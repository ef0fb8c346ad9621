"""What validators print, as HTML for a notebook."""

from __future__ import annotations

from itrust.calibration import Validation
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.validation import (
    ALONE,
    TITLES,
    calibrated_value,
    chance,
    number,
    validation_head,
    validation_notes,
)


@as_html.register
def _(result: Validation) -> str:
    statistics = [
        (
            TITLES[own.name],
            number(own.value),
            "" if own.lower is None else f"{number(own.lower)} to {number(own.upper)}",
            calibrated_value(own),
            chance(own.pvalue),
            chance(own.exact_pvalue),
        )
        for own in result
    ]
    grades = [
        (
            own.name,
            f"{own.rows:,}",
            f"{own.events:,}",
            *(number(rate) for rate in (own.predicted, own.observed)),
            *(chance(own_p) for own_p in (own.binomial, own.jeffreys, own.adjusted)),
        )
        for own in result.grades
    ]
    decision = [
        (f"{own.threshold:g}", number(own.net_benefit), number(own.treat_all), f"{own.rows:,}")
        for own in result.decision
    ]
    found = result.to_dict()
    return html.card(
        "What validators print",
        html.sentence(validation_head(found)),
        html.table(("statistic", "value", "interval", "if calibrated", "p", "exact p"), statistics),
        html.table(
            (
                *("grade", "rows", "events", "predicted", "observed"),
                *("binomial p", "Jeffreys p", "adjusted p"),
            ),
            grades,
        ),
        html.table(("threshold", "net benefit", "act on all", "rows"), decision),
        html.notes([*validation_notes(found), ALONE]),
    )
