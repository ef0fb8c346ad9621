"""The page about estimates on a population: numbers, rows, ways; charts are lines of HTML."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from itrust._core import InputError, printable, rounded, write_whole
from itrust.auditing import BAD, FAIR, GOOD
from itrust.render.page.content import refuse_undisclosed, shortened, tidy, versions
from itrust.render.page.html import assembled
from itrust.render.page.population import population_content
from itrust.render.page.words import MINUS
from itrust.render.text.tasks import INSIDE, NONE, OUTSIDE, WAYS
from itrust.tasks import MAX_NEW, MAX_UNLIKE, SCHEMA, TaskEstimates

TONES = {NONE: BAD, OUTSIDE: FAIR, INSIDE: GOOD}
MARGIN = 0.04  # of a picture, on either side
MEANINGS = {
    "plugin": "Probabilities in place of labels, summed over the population.",
    "recalibrated": "Probabilities, moved by the bias that labelled rows show nearby.",
    "prediction_powered": "Probabilities of the population, corrected by the labelled rows as they "
    "are.",
    "transported": "Recalibrated probabilities, corrected by labelled rows that are weighted to be "
    "like the population.",
    "labelled": "The labelled rows and their labels, nothing else.",
}


def write_estimates(
    found: TaskEstimates | Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    min_cell: int | None = None,
) -> Path:
    """Write the page about estimates: one HTML file that needs no network."""
    return write_whole(Path(path), estimates_page(found, min_cell=min_cell))


def estimates_page(found: TaskEstimates | Mapping[str, Any], *, min_cell: int | None = None) -> str:
    """Make the page as text."""
    told = estimates_content(found, min_cell=min_cell)
    return assembled("estimates.html.j2", told, told["found"])


def estimates_content(
    found: TaskEstimates | Mapping[str, Any], *, min_cell: int | None = None
) -> dict[str, Any]:
    """Gather what the page shows, with the places of all marks."""
    facts = _facts(found, min_cell)
    gathered = {
        "found": {name: part for name, part in facts.items() if name != "provenance"},
        "numbers": [_number(own) for own in facts["estimates"]],
        "population": population_content(facts["resemblance"]),
        "ways": [{"name": WAYS[name], "meaning": told} for name, told in MEANINGS.items()],
        "is_excluding": any(own["support"] == "exclude" for own in facts["estimates"]),
        "most": {"new": MAX_NEW, "unlike": MAX_UNLIKE},
        "versions": versions(),
    }
    told: dict[str, Any] = tidy(gathered, shortened(facts["on"]))
    return {**told, "provenance": _provenance(facts["provenance"])}


def _provenance(found: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if found is None:
        return None
    return {**tidy(found, partial(printable, lines=False)), "command": printable(found["command"])}


def _facts(found: TaskEstimates | Mapping[str, Any], min_cell: int | None) -> Mapping[str, Any]:
    if isinstance(found, TaskEstimates):
        return found.disclosed(min_cell).to_dict()
    if not isinstance(found, Mapping) or found.get("schema") != SCHEMA:
        raise InputError(
            f"a page is made of TaskEstimates, or of the dict that their to_dict() gives, not of a "
            f"{type(found).__name__}"
        )
    refuse_undisclosed(found, min_cell)
    return found


def _number(own: Mapping[str, Any]) -> dict[str, Any]:
    """A number with the digits that its interval can tell, and its ways on one scale."""
    ways = {name: own[name] for name in WAYS if own[name] is not None}
    best = None if own["best"] is None else ways[own["best"]]
    measure = best or ways["labelled"]
    ends = [value for way in ways.values() for value in (way["lower"], way["upper"])]
    scale = _Scale(min(ends), max(ends))

    def written(value: float) -> str:
        return rounded(value, measure["lower"], measure["upper"]).replace("-", MINUS)

    return {
        "tone": TONES[own["finding"]].name,
        "way": None if best is None else WAYS[own["best"]],
        "plugin_at": scale.at(ways["plugin"]["value"]),
        "ends": [written(scale.low), written(scale.high)],
        "shown": {
            name: {key: written(way[key]) for key in ("value", "lower", "upper")}
            for name, way in ways.items()
        },
        "ways": [
            {
                "key": name,
                "name": WAYS[name],
                "meaning": MEANINGS[name],
                "best": name == own["best"],
                "at": scale.at(way["value"]),
                "from": scale.at(way["lower"]),
                "to": scale.at(way["upper"]),
            }
            for name, way in ways.items()
        ],
    }


class _Scale:
    """Values to places of a picture, in percent of its width."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def at(self, value: float) -> float:
        """Where a value stands."""
        width = self.high - self.low
        share = 0.5 if width <= 0 else (value - self.low) / width
        return round(100 * (MARGIN + (1 - 2 * MARGIN) * share), 2)
