"""What pages are made of: results, or their dicts, with as much disclosure control as was asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from itrust._core import InputError
from itrust.auditing import SCHEMA, Audit
from itrust.render.page.facts import MINUS, MarkedFacts, tidy_facts
from itrust.tasks import SCHEMA as ESTIMATES
from itrust.tasks import TaskEstimates
from itrust.terms import SHOWN_LEVELS
from itrust.watch import REPORT_SCHEMA, Watch, WatchReport, watch_report

Shown = Audit | TaskEstimates | Watch | WatchReport | Mapping[str, Any]
KINDS = {SCHEMA: "audit", ESTIMATES: "estimates", REPORT_SCHEMA: "watch"}


def facts_of(found: Shown, min_cell: int | None = None) -> MarkedFacts:
    """The dict of a result as a page shows it, with levels in the order that tells most."""
    facts = dict(_disclosed(found, min_cell))
    if facts["schema"] == REPORT_SCHEMA:
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


def _levels(levels: list[dict[str, Any]]) -> dict[str, Any]:
    """All rows, then the levels whose labels are farthest beyond prediction."""
    found: list[dict[str, Any]] = []
    for own in levels:
        name = "all rows" if own["family"] == "overall" else own["name"]
        excess = f"{own['excess']:+,.1f}".replace("-", MINUS)
        title = name if own["label"] is None else f"{own['label']}: {name}"
        score = own["excess"] / own["chance"] if own["chance"] else 0.0
        told = [excess, f"\N{PLUS-MINUS SIGN}{own['chance']:,.1f}"]
        found.append({"title": title, "score": score, "told": told})
    others = sorted(found[1:], key=lambda own: -abs(own["score"]))
    more = max(len(others) - SHOWN_LEVELS, 0)
    return {"levels": [*found[:1], *others[:SHOWN_LEVELS]], "more_levels": more}
