"""Whether rows are like a population, as a part of a page: sentences, and bars from the middle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from itrust.balance import FeatureKind, Gap, Resemblance, RowDifference
from itrust.render.page.words import MINUS
from itrust.render.text.balance import (
    difference_words,
    resemblance_sentence,
    resemblance_warnings,
    unlike_words,
)

MAX_COMPARED = 20
SIDES = ("labelled", "population", "z")
NO_COUNT = {"rows": 0}  # files of an earlier release do not say it


def population_content(looked: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Gather what a page shows of a look at the rows and a population."""
    if looked is None:
        return None
    found = _resemblance(looked)
    return {
        "sentence": resemblance_sentence(found),
        "warnings": resemblance_warnings(found),
        "unlike": unlike_words(found),
        "rows": _bars(found),
        "more": max(len(found.compared) - MAX_COMPARED, 0),
    }


def _resemblance(looked: Mapping[str, Any]) -> Resemblance:
    """A result from its dict."""
    known = {own.name for own in fields(Resemblance)} & looked.keys()
    facts = {
        **{name: looked[name] for name in known},
        "size": looked["population"],
        "gaps": tuple(Gap(**{**NO_COUNT, **gap}) for gap in looked["gaps"]),
        "differences": tuple(map(_difference, looked["differences"])),
        "compared": tuple(map(_difference, looked["compared"])),
    }
    return Resemblance(**facts)


def _difference(one: Mapping[str, Any]) -> RowDifference:
    """A comparison from its dict; what JSON has no number for is NaN."""
    known = {own.name for own in fields(RowDifference)} & one.keys()
    values = {name: math.nan if one[name] is None else one[name] for name in SIDES}
    facts = {**NO_COUNT, **{name: one[name] for name in known}, **values}
    return RowDifference(**{**facts, "kind": FeatureKind(one["kind"])})


def _bars(found: Resemblance) -> list[dict[str, Any]]:
    """Differences in standard errors, as bars from the middle."""
    some = found.compared[:MAX_COMPARED]
    reach = max((abs(one.z) for one in some), default=1.0) or 1.0
    shown = {(one.name, one.kind, one.level) for one in found.differences}
    rows = []
    for one in some:
        size = round(46 * abs(one.z) / reach, 2)
        rows.append(
            {
                "text": difference_words(one),
                "from": round(50 - size, 2) if one.z < 0 else 50,
                "length": size,
                "z": f"{one.z:+.1f}".replace("-", MINUS),
                "is_shown": (one.name, one.kind, one.level) in shown,
            }
        )
    return rows
