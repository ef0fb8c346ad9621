"""All that the page about several classes shows, as one plain dict."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from itrust._core import printable
from itrust.auditing import Audit, tone_of
from itrust.render.page.content import (
    TASK_TONES,
    refuse_undisclosed,
    shortened,
    tidy,
    versions,
)
from itrust.tasks import TaskFinding

PRINTED = 12  # classes that are printed; of more, those that are shown to be off
MAX_SLICES = 6
MAX_GROUPS = 40
MAX_FINDINGS = 6
MAX_PAIRS = 12
MAX_EVIDENCE = 12
SIDE = 200  # of the picture of a reliability curve
EDGES = (0.5, 1.0, 2.0)  # of the colours, in tolerances


def is_of_classes(audit: object) -> bool:
    """Whether it is an audit of several classes, or the dict of one."""
    if isinstance(audit, Audit):
        return bool(audit.classes)
    return isinstance(audit, Mapping) and bool(audit.get("classes"))


def classes_content(
    audit: Audit | Mapping[str, Any] | Any, *, min_cell: int | None = None
) -> dict[str, Any]:
    """Gather what the page shows. Nothing is computed but where lines are drawn."""
    if isinstance(audit, Audit):
        found: Mapping[str, Any] = audit.disclosed(min_cell).to_dict()
    else:
        refuse_undisclosed(audit, min_cell)
        found = audit
    parts, alpha = found["parts"], found["alpha"]
    off = set(found["shown_classes"])
    opening = next((own["class"] for own in found["evidence"] if own["class"] is not None), None)
    means = _scale([part["mean"] for part in parts])
    gathered = {
        "audit": {name: part for name, part in found.items() if name != "provenance"},
        "tone": tone_of(found["verdict"]).name,
        "tasks": [_task(task) for task in found["tasks"]],
        "evidence": MAX_EVIDENCE,
        "means": means,
        "opening": next((k for k, part in enumerate(parts) if part["name"] == opening), 0),
        "classes": [
            {
                "shown": part["name"] in off,
                "prints": len(parts) <= PRINTED or part["name"] in off,
                "curve": _curve(part["curve"]),
                "groups": _scale((part["diagnosis"]["groups"] or {"groups": []})["groups"]),
                "findings": part["findings"][:MAX_FINDINGS],
            }
            for part in parts
        ],
        "top": _curve(found["overall"]["curve"]),
        "matrix": _matrix(found),
        "pairs": [k for k, pair in enumerate(found["pairs"]["pairs"]) if _is_shown(pair, alpha)][
            :MAX_PAIRS
        ],
        "most": {"groups": MAX_GROUPS, "slices": MAX_SLICES, "places": MAX_PAIRS},
        "steps": [found["tolerance"] * times for times in EDGES],
        "side": SIDE,
        "versions": versions(),
    }
    told: dict[str, Any] = tidy(gathered, shortened([*found["on"], *found["classes"]]))
    made = found["provenance"]
    if made is not None:
        command = printable(made["command"])
        made = {**tidy(made, partial(printable, lines=False)), "command": command}
    return {**told, "provenance": made}


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    finding = TaskFinding(task["finding"])
    return {"finding": finding.value, "tone": TASK_TONES[finding].name}


def _is_shown(own: Mapping[str, Any], alpha: float) -> bool:
    return own["pvalue"] is not None and own["pvalue"] <= alpha


def _scale(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Where intervals are drawn, in percent of the width; one scale for all, with 0 in it."""
    known = [own for own in parts if own["lower"] is not None and own["upper"] is not None]
    reach = max((max(abs(own["lower"]), abs(own["upper"])) for own in known), default=0.0) or 1.0

    def at(value: float | None) -> float:
        return round(50 + 50 * (value or 0.0) / reach, 2)

    rows = [{key: at(own[key]) for key in ("lower", "bias", "upper")} for own in parts]
    return {"reach": reach, "rows": rows}


def _curve(curve: Mapping[str, Any]) -> dict[str, Any]:
    """Points and their intervals, as places in a square whose sides are [0, most]."""
    ends = [value for name in ("predicted", "upper") for value in curve[name] if value is not None]
    top = max(ends, default=1.0)
    most = next((edge for edge in (0.02, 0.05, 0.1, 0.2, 0.5) if top <= edge), 1.0)

    def at(value: float) -> float:
        return round(SIDE * min(value / most, 1.0), 1)

    points = [
        {"x": at(x), "y": SIDE - at(y), "low": SIDE - at(low), "high": SIDE - at(high)}
        for x, y, low, high in zip(
            *(curve[name] for name in ("predicted", "observed", "lower", "upper")), strict=True
        )
    ]
    line = " ".join(f"{own['x']},{own['y']}" for own in points)
    return {"points": points, "line": line, "most": most}


def _matrix(found: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """For rows of each class and each other class: which pair it is, and its colour."""
    own = found["pairs"]
    index = {(pair["label"], pair["taken_for"]): k for k, pair in enumerate(own["pairs"])}
    names, alpha, tolerance = own["classes"], found["alpha"], found["tolerance"]
    rows = []
    for i, label in enumerate(names):
        cells: list[dict[str, Any]] = []
        for j, other in enumerate(names):
            k = index.get((label, other))
            cell = {"i": i, "j": j, "pair": k, "colour": "", "mark": ""}
            if k is not None and _is_shown(own["pairs"][k], alpha):
                bias = own["pairs"][k]["bias"]
                steps = sum(abs(bias) >= edge * tolerance for edge in EDGES)
                level = min(1 + steps, 3) if bias > 0 else -min(1 + steps, 3)
                cell |= {"colour": f"d{3 + level}", "mark": "▲" if bias > 0 else "▼"}
            cells.append(cell)
        rows.append(cells)
    return rows
