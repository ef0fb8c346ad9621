"""What would overturn an audit, as a part of its page: small curves, and a table of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from itrust.auditing import BAD, GOOD, OPEN
from itrust.render.text.overturning import NAMES, size_words
from itrust.tasks import TaskFinding

WIDTH, HEIGHT = 240.0, 110.0  # of a curve, with room for what stands at its axes
LEFT, RIGHT, TOP, BOTTOM = 34.0, 232.0, 8.0, 88.0
TONES = {"biased": BAD, "safe to report": GOOD}
COLUMNS = ("selection", "label_error")
NARROW = "\N{NO-BREAK SPACE}%"
TICKS = (1.0, 0.1, 0.01, 0.001)


def overturning_content(found: Mapping[str, Any] | None, alpha: float) -> dict[str, Any] | None:
    """Gather what a page shows of what would overturn an audit."""
    if found is None:
        return None
    return {
        "sentence": found["sentence"],
        "curves": [_curve(own, alpha) for own in found["violations"]],
        "numbers": [_number(own) for own in found["numbers"]],
    }


def _curve(found: Mapping[str, Any], alpha: float) -> dict[str, Any]:
    """One curve: p-values on a logarithmic scale over the size of a violation."""
    sizes, pvalues, kind = found["sizes"], found["pvalues"], found["kind"]
    least = float(min(*pvalues, alpha / 10))
    first, last = float(sizes[0]), max(float(sizes[-1]), float(sizes[0]) + 1e-9)

    def across(size: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (size - first) / (last - first), 2)

    def up(pvalue: float) -> float:
        share = math.log(pvalue / least) / math.log(1 / least)
        return round(BOTTOM - (BOTTOM - TOP) * share, 2)

    points = [[across(size), up(pvalue)] for size, pvalue in zip(sizes, pvalues, strict=True)]
    return {
        "name": NAMES[kind],
        "path": " ".join(f"{x},{y}" for x, y in points),
        "dots": points,
        "alpha_at": up(alpha),
        "alpha": f"{alpha:g}",
        "point_at": None if found["point"] is None else across(found["point"]),
        "point": None if found["point"] is None else size_words(kind, found["point"]),
        "more": "more than " if found["beyond"] else "",
        "ends": [size_words(kind, first), size_words(kind, last)],
        "ticks": [[f"{tick:g}", up(tick)] for tick in TICKS if tick >= least],
        "unit": "odds" if kind == "selection" else "bias" if kind == "tolerance" else "labels",
    }


def _number(found: Mapping[str, Any]) -> dict[str, Any]:
    """One row of the table: sizes up to which the finding stands, and flipped labels."""
    places = {own["kind"]: k for k, own in enumerate(found["tippings"])}
    cells: list[dict[str, str] | None] = []
    for kind in COLUMNS:
        own = found["tippings"][places[kind]] if kind in places else None
        if own is None or own["point"] is None:
            cells.append(None)
            continue
        more = "more than " if own["beyond"] else ""
        least = "at least " if found["precision"] == "bound" and not more else ""
        told = size_words(kind, own["point"]).replace(" %", NARROW)
        path = f"tippings.{places[kind]}.point"
        cells.append({"path": path, "before": more or least, "told": told})
    flips = found["flips"]
    ends = [] if flips is None else ["at_least", "at_most"]
    if flips is not None and flips["at_least"] == flips["at_most"]:
        ends = ["at_most"]
    return {
        "title": found["title"],
        "finding": found["finding"],
        "tone": TONES.get(TaskFinding(found["finding"]).value, OPEN).name,
        "sentence": found["sentence"],
        "cells": cells,
        "flips": ends,
    }
