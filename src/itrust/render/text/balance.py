"""Whether labelled rows are like a population, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from itrust._core import listed
from itrust.balance import FeatureKind, Gap, Resemblance, RowDifference
from itrust.render.document import Document, Table, document_of, more, noted

MAX_TOLD = 4  # differences and gaps in one sentence
NOTED = 0.01  # share of a population that is worth a warning
FEW = 0.3  # effective size over the number of rows that is worth a warning


def percent(share: float, digits: int = 2) -> str:
    """A share as people write it, with two digits that count or more.

    >>> percent(0.123), percent(0.0042), percent(0.0), percent(0.996), percent(0.12345, 3)
    ('12 %', '0.42 %', '0 %', '99.6 %', '12.3 %')
    """
    hundred = 100 * share
    if 99 < hundred < 100:  # what is left counts
        digits = max(digits, 3)
    if 0 < hundred < 1e-3:
        return "less than 0.001 %"
    told = f"{hundred:.{digits}g}"
    return f"{100 if 'e' in told else told} %"  # 1e+02


def difference_words(found: RowDifference) -> str:
    """Say how labelled rows differ in one covariate.

    The direction is that of the comparison that was tested, of rows that stand for all and of
    ranks. Means and shares of all rows stand beside it where they say the same.
    """
    name, more = found.name, "more" if found.z > 0 else "less"
    match found.kind:
        case FeatureKind.LEVEL:
            return f"labelled rows are {more} often {name} = {found.level}{_shares(found)}"
        case FeatureKind.MISSING:
            return f"labelled rows {more} often lack {name}{_shares(found)}"
        case FeatureKind.PRODUCT:
            return f"labelled rows differ in how {name} and {found.other} go together"
        case FeatureKind.TREND:
            sizes = ("later", "earlier") if found.is_date else ("higher", "lower")
            size = sizes[0] if found.z > 0 else sizes[1]
            return f"labelled rows have a {size} {name}{_means(found, 'mean')}"
        case FeatureKind.QUADRATIC:
            wide = _means(found, "standard deviation")
            return f"labelled rows are {more} spread in {name}{wide}"
        case _:  # neither a mean nor a spread says what a cubic does
            return f"{name} has another shape among labelled rows"


def _agree(found: RowDifference) -> bool:
    """Whether means or shares of all rows differ in the direction that was tested."""
    return (found.labelled - found.population) * found.z > 0


def _shares(found: RowDifference) -> str:
    """Shares on both sides, with the digits that tell them apart."""
    if not _agree(found):
        return ""
    for digits in (2, 3, 4):
        here, there = (percent(share, digits) for share in (found.labelled, found.population))
        if here != there:
            return f": {here} against {there}"
    return ""


def _means(found: RowDifference, called: str) -> str:
    here, there = (_number(value, found) for value in (found.labelled, found.population))
    if here == there or not _agree(found):  # means hide what ranks show
        return ", by ranks"
    return f": {called} {here} against {there}"


def _number(value: float, found: RowDifference) -> str:
    if found.is_date and np.isfinite(value):
        return str(np.datetime64(0, "D") + np.timedelta64(round(value), "D"))
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def gap_words(gaps: Sequence[Gap]) -> str:
    """Name parts of a population that no labelled row resembles, with their shares."""
    names = [f"{_gap(gap)} ({percent(gap.share)})" for gap in gaps[:MAX_TOLD]]
    return ", ".join([*names, *more(len(gaps) - MAX_TOLD)])


def _gap(gap: Gap) -> str:
    if gap.side == "far":
        return "values that do not occur together"
    if gap.side == "missing":
        return f"{gap.name} is missing"
    if gap.side == "level":
        return f"{gap.name} = {gap.level}"
    if gap.bound is None:
        return f"{gap.name} {gap.side} that of all labelled rows"
    bound = f"{gap.bound:,.0f}" if abs(gap.bound) >= 1000 else f"{gap.bound:.3g}"
    return f"{gap.name} {gap.side} {bound}"


def resemblance_sentence(found: Resemblance) -> str:
    """Say in one sentence whether labelled rows are like the population."""
    if math.isnan(found.pvalue):
        return "whether labelled rows are like the population could not be tested"
    if found.differs:
        return f"labelled rows differ from the population (p = {found.pvalue:.3g}, exact)"
    return f"no difference of labelled rows and population is shown (p = {found.pvalue:.3g}, exact)"


def resemblance_warnings(found: Resemblance) -> tuple[str, ...]:
    """Say what whoever reports a number for this population has to know."""
    told = []
    if found.differs:
        names = listed([one.name for one in found.differences[:MAX_TOLD]])
        where = f" in {names}" if found.differences else ""
        told.append(
            f"labelled rows are no random sample of the population: they differ{where} "
            f"(p = {found.pvalue:.3g})"
        )
    if found.unlike > NOTED:
        told.append(unlike_words(found))
    if found.effective < FEW * found.n:
        told.append(effective_words(found))
    return tuple(told)


def resemblance_facts(found: Resemblance) -> dict[str, Any]:
    """Give how labelled rows go with a population, with its sentences, ready for JSON."""
    compared = [
        {**one.to_dict(), "text": difference_words(one), "is_shown": one in found.differences}
        for one in found.compared
    ]
    return {
        **found.to_dict(),
        "compared": compared,
        "sentence": resemblance_sentence(found),
        "warnings": resemblance_warnings(found),
        "unlike_sentence": unlike_words(found),
    }


def effective_words(found: Resemblance) -> str:
    """Say how many rows are left after weighting."""
    return (
        f"weighted to be like the population, {found.n:,} labelled rows say as much as "
        f"{found.effective:,.0f}"
    )


@document_of.register
def _(result: RowDifference) -> Document:
    return Document(f"{difference_words(result)} (p = {result.pvalue:.3g})")


@document_of.register
def _(result: Resemblance) -> Document:
    verdict = "labelled rows differ from the population"
    if not result.differs:
        verdict = "no difference is shown"
    rows = [
        ("finding", f"{verdict}, p = {result.pvalue:.3g} (exact, {result.draws:,} permutations)"),
        *(("", difference_words(one)) for one in result.differences),
        ("effective size", f"{result.effective:,.0f} rows, weighted to be like the population"),
        ("unlike", unlike_words(result)),
    ]
    return Document(
        f"{result.n:,} labelled rows against a population of {result.size:,}",
        [Table(("", ""), rows), noted(result.notes)],
    )


def unlike_words(result: Resemblance) -> str:
    """Say how much of the population no labelled row resembles."""
    if not result.gaps:
        return "no part of the population is shown to lack labelled rows like it"
    return (
        f"no labelled row resembles {percent(result.unlike)} of the population: "
        f"{gap_words(result.gaps)}"
    )
