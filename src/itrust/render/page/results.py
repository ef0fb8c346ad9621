"""What pages are made of: results, or their dicts, with as much disclosure control as was asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from itrust._core import InputError, rounded
from itrust.auditing import SCHEMA, Audit
from itrust.balance import FeatureKind, Gap, Resemblance, RowDifference
from itrust.render.page.facts import MINUS, MarkedFacts, shown, tidy_facts
from itrust.render.text.balance import (
    difference_words,
    resemblance_sentence,
    resemblance_warnings,
    unlike_words,
)
from itrust.render.text.watch import ends_text
from itrust.tasks import SCHEMA as ESTIMATES
from itrust.tasks import TaskEstimates
from itrust.terms import SHOWN_LEVELS
from itrust.watch import REPORT_SCHEMA, Watch, WatchReport, watch_report

Shown = Audit | TaskEstimates | Watch | WatchReport | Mapping[str, Any]
MAX_COMPARED = 20
KINDS = {SCHEMA: "audit", ESTIMATES: "estimates", REPORT_SCHEMA: "watch"}


def facts_of(found: Shown, min_cell: int | None = None) -> MarkedFacts:
    """The dict of a result as a page shows it, with the words that it does not hold itself."""
    facts = dict(_disclosed(found, min_cell))
    if facts.get("resemblance"):
        facts["resemblance"] = _in_words(facts["resemblance"])
    if facts["schema"] == REPORT_SCHEMA:
        facts["numbers"] = [{**own, "told": _number(own)} for own in facts["numbers"]]
        facts |= _levels(facts["levels"])
    return tidy_facts(facts)


def _disclosed(found: Shown, min_cell: int | None) -> Mapping[str, Any]:
    if isinstance(found, Watch):
        return watch_report(found, min_cell=min_cell).to_dict()
    if isinstance(found, WatchReport):
        return found.to_dict()
    if isinstance(found, Audit | TaskEstimates):
        return found.disclosed(min_cell).to_dict()
    if not isinstance(found, Mapping) or found.get("schema") not in KINDS:
        raise InputError(
            f"a page is made of an Audit, TaskEstimates, a Watch or its report, or of the dict "
            f"that their to_dict() gives, not of a {type(found).__name__}"
        )
    hidden = found["withheld"] if found["schema"] != REPORT_SCHEMA else {"min_cell": math.inf}
    if min_cell is not None and (hidden is None or hidden["min_cell"] < min_cell):
        raise InputError(
            f"this dict has not been through disclosure control with min_cell={min_cell}; use "
            f"disclosed({min_cell}).to_dict()"
        )
    return found


def _in_words(looked: Mapping[str, Any]) -> dict[str, Any]:
    """How labelled rows differ from a population, with sentences."""
    known = {own.name for own in fields(Resemblance)} & looked.keys()
    found = Resemblance(
        **{
            **{name: looked[name] for name in known},
            "size": looked["population"],
            "gaps": tuple(Gap(**gap) for gap in looked["gaps"]),
            "differences": tuple(map(_difference, looked["differences"])),
            "compared": tuple(map(_difference, looked["compared"])),
        }
    )
    clear = {(one.name, one.kind, one.level) for one in found.differences}
    compared = [
        {
            **row,
            "text": difference_words(one).replace(" %", "\N{NO-BREAK SPACE}%"),
            "told": f"{one.z:+.1f}".replace("-", MINUS),
            "is_shown": (one.name, one.kind, one.level) in clear,
        }
        for row, one in zip(looked["compared"], found.compared, strict=True)
    ]
    return {
        **looked,
        "sentence": resemblance_sentence(found),
        "warnings": resemblance_warnings(found),
        "unlike_words": unlike_words(found),
        "compared": compared[:MAX_COMPARED],
        "more": max(len(compared) - MAX_COMPARED, 0),
    }


def _difference(one: Mapping[str, Any]) -> RowDifference:
    """A comparison from its dict; what JSON has no number for is NaN."""
    known = {own.name for own in fields(RowDifference)} & one.keys()
    sides = ("labelled", "population", "z")
    values = {name: math.nan if one[name] is None else one[name] for name in sides}
    facts = {**{name: one[name] for name in known}, **values}
    return RowDifference(**{**facts, "kind": FeatureKind(one["kind"])})


def _number(own: Mapping[str, Any]) -> list[str]:
    """Values, bias and interval of a watched number, with the digits that this can tell."""
    known = None not in (own["lower"], own["upper"])
    low, high = (own["lower"], own["upper"]) if known else (math.nan, math.nan)
    values = [
        shown(None) if own[key] is None else rounded(own[key], low, high, sign).replace("-", MINUS)
        for key, sign in (("with_labels", "-"), ("with_probabilities", "-"), ("bias", "+"))
    ]
    told = "withheld" if own["finding"] == "withheld" else "nothing yet"
    if known:
        told = " to ".join(ends_text(low, high, own["tolerance"])).replace("-", MINUS)
    return [*values, told]


def _levels(levels: list[dict[str, Any]]) -> dict[str, Any]:
    """All rows, then the levels whose labels are farthest beyond prediction."""
    found: list[dict[str, Any]] = []
    for own in levels:
        name = "all rows" if own["everywhere"] else own["name"]
        excess = f"{own['excess']:+,.1f}".replace("-", MINUS)
        title = name if own["label"] is None else f"{own['label']}: {name}"
        score = own["excess"] / own["chance"] if own["chance"] else 0.0
        told = [excess, f"\N{PLUS-MINUS SIGN}{own['chance']:,.1f}"]
        found.append({"title": title, "score": score, "told": told})
    others = sorted(found[1:], key=lambda own: -abs(own["score"]))
    more = max(len(others) - SHOWN_LEVELS, 0)
    return {"levels": [*found[:1], *others[:SHOWN_LEVELS]], "more_levels": more}
