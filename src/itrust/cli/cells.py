"""Small groups and slices stay in the house: they are taken out of what leaves it, and counted.

Placeholder for `itrust.report.suppressed`: same arguments, same answer; this is its only use.
"""

from __future__ import annotations

from typing import Any


def without_small_cells(found: dict[str, Any], min_cell: int) -> dict[str, Any]:
    """The JSON of an audit without groups and slices under `min_cell` rows, and how many."""
    diagnosis = dict(found["diagnosis"])
    hidden = {}
    rules = []
    for part in ("groups", "slices"):
        table = diagnosis[part]
        if table is None:
            hidden[part] = 0
            continue
        kept = [row for row in table[part] if row["rows"] >= min_cell]
        rules += [row["rule"] for row in table[part] if "rule" in row and row not in kept]
        hidden[part] = len(table[part]) - len(kept)
        diagnosis[part] = {**table, part: kept}
    carried = [said for said in found["carried_by"] if not any(rule in said for rule in rules)]
    return {
        **found,
        "carried_by": carried,
        "diagnosis": diagnosis,
        "min_cell": min_cell,
        "suppressed": hidden,
    }
