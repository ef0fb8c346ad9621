"""The page about a watch: how it stands, evidence over time, numbers so far; no script."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from itrust._core import InputError, counted, printable, rounded, write_whole
from itrust.auditing import BAD, FAIR, OPEN
from itrust.render.page.content import shortened, tidy, versions
from itrust.render.page.html import assembled, own_file
from itrust.render.page.words import MINUS
from itrust.render.text.watch import NUMBERS, ends_text, evidence_text
from itrust.terms import SHOWN_LEVELS
from itrust.watch import REPORT_SCHEMA, Watch, WatchReport, watch_report

MAX_BATCHES, MAX_FINDINGS = 100, 20  # rows of tables
MAX_POINTS = 400  # of a line; of more batches the extremes of neighbours are drawn
FEW_POINTS = 60  # that are marked
LOWEST = -2.0  # digits of the evidence; what is below is drawn there
SIDE = 3.0  # percent of a picture that stay free on either side
MAX_TICKS = 6


def write_watch(
    found: Watch | WatchReport | Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    min_cell: int | None = None,
) -> Path:
    """Write the page about a watch: one HTML file that needs no network.

    Parameters
    ----------
    found : Watch, WatchReport or dict
        The watch, what of it may be shown, or the dict of the latter.
    path : str or path
        Where to write; written whole or not at all.
    min_cell : int, optional
        Fewest rows behind what is shown of a `Watch`; reports have theirs. Default: all is shown.

    Returns
    -------
    Path
        Of the page.
    """
    return write_whole(Path(path), watch_page(found, min_cell=min_cell))


def watch_page(
    found: Watch | WatchReport | Mapping[str, Any], *, min_cell: int | None = None
) -> str:
    """Make the page as text.

    Parameters
    ----------
    found : Watch, WatchReport or dict
        As for `write_watch`.
    min_cell : int, optional
        As for `write_watch`.

    Returns
    -------
    str
        HTML.
    """
    told = watch_content(found, min_cell=min_cell)
    return assembled("watch.html.j2", told, told["found"], own_file("watch.css"))


def watch_content(
    found: Watch | WatchReport | Mapping[str, Any], *, min_cell: int | None = None
) -> dict[str, Any]:
    """Gather what the page shows, with the places of all marks.

    Parameters
    ----------
    found : Watch, WatchReport or dict
        As for `write_watch`.
    min_cell : int, optional
        As for `write_watch`.

    Returns
    -------
    dict
        Plain values; "found" holds the dict of the report, texts cut to what a page has room for.
    """
    facts = _facts(found, min_cell)
    shown = [record for record in facts["history"] if record["log_evalue"] is not None]
    last = list(enumerate(facts["history"]))[-MAX_BATCHES:]
    present = [own for own in facts["history"] if own["segment"] == len(facts["segments"]) - 1]
    rows = sum(own["rows"] for own in present)
    over = f"{counted(len(present), 'batch')} with {counted(rows, 'row')}"
    levels = sorted(facts["levels"][1:], key=lambda own: -abs(_score(own)))
    gathered: dict[str, Any] = {
        "found": {name: part for name, part in facts.items() if name != "provenance"},
        "tone": (BAD if facts["alarm"] else FAIR if _is_near(facts) else OPEN).name,
        "line_text": evidence_text(facts["log_line"]),
        "plot": _plot(facts, shown) if shown else None,
        "rates": _rates(shown, facts) if shown else None,
        "findings": [
            {"text": text, "evidence": evidence_text(_log(own["evalue"]))}
            for own, text in zip(facts["findings"], facts["words"]["findings"], strict=True)
        ][:MAX_FINDINGS],
        "more_findings": max(len(facts["findings"]) - MAX_FINDINGS, 0),
        "numbers": [
            _number(own, text)
            for own, text in zip(facts["numbers"], facts["words"]["numbers"], strict=True)
        ],
        "numbers_over": over,
        "numbers_note": f"{NUMBERS[0].upper()}{NUMBERS[1:]}",
        "levels": _levels([*facts["levels"][:1], *levels[:SHOWN_LEVELS]]),
        "levels_over": over if facts["promise"] == "ever" else "batches since bets began",
        "more_levels": max(len(levels) - SHOWN_LEVELS, 0),
        "batches": [_batch(own, number) for number, own in reversed(last)],
        "means": ("top label right", "mean top probability")
        if facts["classes"]
        else ("observed", "predicted"),
        "earlier": len(facts["history"]) > len(last),
        "versions": versions(),
    }
    told: dict[str, Any] = tidy(gathered, shortened(facts["on"]))
    return {**told, "provenance": _provenance(facts["provenance"])}


def _provenance(found: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if found is None:
        return None
    return {**tidy(found, partial(printable, lines=False)), "command": printable(found["command"])}


def _facts(
    found: Watch | WatchReport | Mapping[str, Any], min_cell: int | None
) -> Mapping[str, Any]:
    if isinstance(found, Watch):
        return watch_report(found, min_cell=min_cell).to_dict()
    if isinstance(found, WatchReport):
        return found.to_dict()
    if not isinstance(found, Mapping) or found.get("schema") != REPORT_SCHEMA:
        raise InputError(
            f"a page is made of a Watch, of its watch_report(), or of the dict of that, not of a "
            f"{type(found).__name__}"
        )
    return found


def _is_near(facts: Mapping[str, Any]) -> bool:
    """Whether the largest evidence is half of the way to the alarm, on its scale."""
    return bool(_log_of(facts["log_peak"]) >= facts["log_line"] / 2)


def _log(value: float | None) -> float:
    if value is None:
        return math.inf
    return math.log(value) if value > 0 else -math.inf


def _log_of(value: float | str | None) -> float:
    """A logarithm as the report holds it."""
    return math.inf if isinstance(value, str) else -math.inf if value is None else value


class _Along:
    """Numbers of batches to places, in percent of the width."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.span = first, last - first

    def at(self, number: float) -> float:
        """Where a batch stands; a single one in the middle."""
        share = 0.5 if self.span <= 0 else (number - self.first) / self.span
        return round(SIDE + (100 - 2 * SIDE) * min(max(share, 0.0), 1.0), 2)


class _Up:
    """Values to places, in percent of the height from above."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.span = low, (high - low) or 1.0

    def at(self, value: float) -> float:
        """Where a value stands."""
        share = min(max((value - self.low) / self.span, 0.0), 1.0)
        return round(100 * (1 - share), 2)


def _plot(facts: Mapping[str, Any], shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Evidence after every batch."""
    line = facts["log_line"] / math.log(10)
    digits = [_log_of(own["log_evalue"]) / math.log(10) for own in shown]
    finite = [value for value in digits if math.isfinite(value)]
    top = 1.15 * max([line, *finite])
    bottom = max(LOWEST, min([0.0, *finite]) - 0.15)
    along = _Along(facts["history"][0]["number"], facts["history"][-1]["number"])
    up = _Up(bottom, top)
    places = [
        (along.at(own["number"]), up.at(min(value, top)), own["segment"], bool(own["late"]))
        for own, value in zip(shown, digits, strict=True)
    ]
    kept = _thinned([place[1] for place in places])
    drawn = [places[k] for k in kept]
    pairs = pairwise(drawn)
    few = len(drawn) <= FEW_POINTS
    first = {own["number"]: own["first"] for own in facts["segments"][1:]}
    since = facts["since"]
    band = None
    if since is not None:
        ends = along.at(since["lower"] - 0.5), along.at(since["upper"] + 0.5)
        band = [ends[0], round(max(ends[1] - ends[0], 0.8), 2)]
    return {
        "line": up.at(line),
        "line_text": evidence_text(facts["log_line"]),
        "ticks": _evidence_ticks(bottom, top, line, up),
        "along": _batch_ticks(facts["history"], along),
        "path": [[a[0], a[1], b[0], b[1]] for a, b in pairs if a[2] == b[2]],
        "points": [[x, y, late] for x, y, _, late in drawn] if few else [],
        "has_late": few and any(place[3] for place in drawn),
        "raised": [
            [place[0], place[1]] for place, own in zip(places, shown, strict=True) if own["raised"]
        ],
        "models": [along.at(number - 0.5) for number in first.values()],
        "since": band,
    }


def _thinned(values: Sequence[float]) -> list[int]:
    """Numbers of the points that are drawn: of many the extremes of neighbours, first and last."""
    if len(values) <= MAX_POINTS:
        return list(range(len(values)))
    size = math.ceil(2 * len(values) / MAX_POINTS)
    kept = {0, len(values) - 1}
    for start in range(0, len(values), size):
        block = range(start, min(start + size, len(values)))
        kept |= {min(block, key=values.__getitem__), max(block, key=values.__getitem__)}
    return sorted(kept)


def _evidence_ticks(bottom: float, top: float, line: float, up: _Up) -> list[dict[str, Any]]:
    """Powers of ten that stand apart, and the alarm line."""
    step = max(1, math.ceil((top - bottom) / MAX_TICKS))
    powers = range(math.ceil(bottom / step) * step, math.floor(top) + 1, step)
    apart = [power for power in powers if abs(power - line) > 0.07 * (top - bottom)]
    ticks = [{"at": up.at(power), "text": _power(power), "line": False} for power in apart]
    told = {"at": up.at(line), "text": f"alarm {_power_text(line)}", "line": True}
    return [*ticks, told]


def _power(power: int) -> str:
    return f"{10.0**power:,.10g}" if -3 <= power <= 4 else f"1e{power}".replace("-", MINUS)


def _power_text(digits: float) -> str:
    return evidence_text(digits * math.log(10))


def _batch_ticks(history: Sequence[Mapping[str, Any]], along: _Along) -> list[dict[str, Any]]:
    """Numbers of some batches at even steps; their names, which may be long, are in the table."""
    steps = (factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = next(step for step in steps if len(history) <= MAX_TICKS * step)
    return [
        {"at": along.at(own["number"]), "text": f"{own['number']:,}" if place else "batch 1"}
        for place, own in enumerate(history)
        if place % step == 0
    ]


def _rates(shown: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Observed rates and mean predictions."""
    means = [
        own for own in shown if own["mean_label"] is not None and own["mean_prediction"] is not None
    ]
    values = [own[key] for own in means for key in ("mean_label", "mean_prediction")] or [0.0]
    low, high = max(min(values) - 0.02, 0.0), min(max(values) + 0.02, 1.0)
    along = _Along(facts["history"][0]["number"], facts["history"][-1]["number"])
    up = _Up(low, high)
    observed = [[along.at(own["number"]), up.at(own["mean_label"])] for own in means]
    predicted = [
        [along.at(own["number"]), up.at(own["mean_prediction"]), own["segment"]] for own in means
    ]
    kept = _thinned([place[1] for place in predicted])
    line = [predicted[k] for k in kept]
    pairs = pairwise(line)
    return {
        "ticks": [{"at": up.at(v), "text": f"{v:.2f}"} for v in (low, (low + high) / 2, high)],
        "observed": observed[:: math.ceil(len(observed) / MAX_POINTS) or 1],
        "predicted": [place[:2] for place in line] if len(line) == 1 else [],
        "size": 3.5 if len(observed) <= FEW_POINTS else 1.8,
        "path": [[a[0], a[1], b[0], b[1]] for a, b in pairs if a[2] == b[2]],
    }


def _number(own: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A number so far with the digits that its interval can tell."""
    ends = [own["lower"], own["upper"]]
    known = None not in ends
    low, high = (ends[0], ends[1]) if known else (math.nan, math.nan)

    def written(value: float | None, sign: str = "-") -> str:
        if value is None:
            return "\N{EN DASH}"
        return rounded(value, low, high, sign).replace("-", MINUS)

    told = "withheld" if own["finding"] == "withheld" else "nothing yet"
    if known:
        told = " to ".join(ends_text(low, high, own["tolerance"])).replace("-", MINUS)
    values = [
        written(own["with_labels"]),
        written(own["with_probabilities"]),
        written(own["bias"], "+"),
        told,
    ]
    drawn = None
    if known and own["bias"] is not None:
        reach = max(abs(low), abs(high), abs(own["bias"])) or 1.0
        places = {"from": low, "to": high, "at": own["bias"], "zero": 0.0}
        drawn = {name: round(50 + 46 * value / reach, 2) for name, value in places.items()}
    return {"task": own["task"], "words": text, "told": values, "drawn": drawn}


def _score(own: Mapping[str, Any]) -> float:
    return float(own["excess"] / own["chance"]) if own["chance"] else 0.0


def _levels(levels: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Labels beyond prediction on one scale, in standard deviations of chance."""
    reach = max([3.0, *(abs(_score(own)) for own in levels)])
    told = []
    for own in levels:
        name = "all rows" if own["everywhere"] else own["name"]
        if own["label"] is not None:
            name = f"{own['label']}: {name}"
        one = 46 / reach
        told.append(
            {
                "name": name,
                "excess": f"{own['excess']:+,.1f}".replace("-", MINUS),
                "chance": f"\N{PLUS-MINUS SIGN}{own['chance']:,.1f}",
                "drawn": {
                    "at": round(50 + one * _score(own), 2),
                    "low": round(50 - one, 2),
                    "high": round(50 + one, 2),
                },
            }
        )
    return told


def _batch(own: Mapping[str, Any], number: int) -> dict[str, Any]:
    withheld = own["log_evalue"] is None and own["mean_label"] is None
    told = "withheld" if withheld else evidence_text(_log_of(own["log_evalue"]))
    kept = {name: own[name] for name in ("number", "name", "late", "raised")}
    return {**kept, "evidence": told, "path": f"history.{number}"}
