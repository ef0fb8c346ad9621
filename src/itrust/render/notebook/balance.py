"""Whether labelled rows are like a population, in a notebook."""

from __future__ import annotations

from itrust.balance import Resemblance, RowDifference
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.balance import difference_words, resemblance_warnings, unlike_words

HEAD = ("labelled rows", "p")


@as_html.register
def _(result: RowDifference) -> str:
    return html.card("A difference", html.table(HEAD, [difference_cells(result)]))


@as_html.register
def _(result: Resemblance) -> str:
    told = "differ from the population" if result.differs else "show no difference"
    return html.card(
        f"{result.n:,} labelled rows {told}, p = {result.pvalue:.3g}",
        html.table(HEAD, [difference_cells(found) for found in result.compared]),
        html.notes([*resemblance_warnings(result), unlike_words(result), *result.notes]),
    )


def difference_cells(found: RowDifference) -> tuple[str, ...]:
    """A comparison as a row of `HEAD`."""
    return difference_words(found), html.number(found.pvalue, ".3g")
