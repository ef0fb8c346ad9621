"""All that a page shows, as one plain dict: no HTML, no NaN, nothing under `min_cell` rows."""

from __future__ import annotations

import platform
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from itrust import __version__
from itrust._core import InputError, plain
from itrust.auditing import (
    BELOW_MATERIAL,
    MIN_CELL,
    NO_EVIDENCE,
    NOT_ENOUGH,
    Audit,
    Charts,
    Comparison,
    Disclosure,
    covariate_of,
    null_picture,
    suppressed,
)
from itrust.recalibrate import RecalibrationTable

MAX_FINDINGS, MAX_ROWS_SHOWN = 15, 300
LONG_NAME, LONG_TEXT = 80, 700
REPAIR_NUMBERS = ("brier", "log_loss", "ece", "mce", "klce2", "pvalue", "slice", "seconds")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow")
TONES = {NO_EVIDENCE: "good", BELOW_MATERIAL: "fair", NOT_ENOUGH: "open"}
# Control characters, and those that turn the direction of the text around them.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


@dataclass(frozen=True)
class Remade:
    """How to make a page again.

    Attributes
    ----------
    command : str
        The command line, or the lines of Python.
    file : str or None
        Name of the file that was audited.
    sha256 : str or None
        Its checksum.
    seed : int
    """

    command: str
    file: str | None
    sha256: str | None
    seed: int


def content(
    audit: Audit,
    *,
    remade: Remade | None = None,
    repair: RecalibrationTable | None = None,
    comparison: Comparison | None = None,
    min_cell: int = MIN_CELL,
) -> dict[str, Any]:
    """Gather what the page shows; curves and maps are made here, from 20,000 rows at most.

    Parameters are those of `write`.
    """
    if not isinstance(audit, Audit):
        raise InputError(f"a report is made of an Audit, not of a {type(audit).__name__}")
    whole = audit.to_dict()
    found, left_out = suppressed(whole, min_cell)
    disclosure = Disclosure.of(whole, min_cell)
    hidden = _names(whole) - _names(found)
    charts_of = Charts(audit, min_cell, hidden)
    curves, maps = charts_of.curves(), charts_of.maps()
    gathered = {
        "audit": found,
        "left_out": left_out,
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "tone": TONES.get(found["verdict"], "bad"),
        "conditions": _conditions(found),
        "worst": _worst_slice(found),
        "findings": _findings(found),
        "groups": _by_covariate(found),
        "null": null_picture(audit.competency),
        "curves": curves,
        "maps": maps,
        "opening": {"curve": _first_curve(curves), "map": _most_telling(maps)},
        "picture_rows": charts_of.rows,
        "steps": [found["tolerance"] * times for times in (-2, -1, -0.5, 0.5, 1, 2)],
        "notes": _notes(found),
        "comparison": None if comparison is None else disclosure.reworded(comparison.to_dict()),
        "repair": _repair_rows(repair, disclosure),
        "versions": _versions(),
    }
    told: dict[str, Any] = _tidy(plain(gathered), _shortener(_long_names(audit)))
    # A command that is cut makes nothing again.
    return {**told, "remade": None if remade is None else _tidy(asdict(remade), _seen_through)}


def _shown_bias(picture: Mapping[str, Any]) -> float:
    """The largest bias that a band of the picture excludes; below 0 if it excludes none."""
    ends = zip(picture["lower"], picture["upper"], picture["wrong"], strict=True)
    return max((max(lower, -upper) for lower, upper, wrong in ends if wrong), default=-1.0)


def _most_telling(pictures: list[dict[str, Any]]) -> int:
    """The picture to begin with, the first of equals."""
    return max(range(len(pictures)), key=lambda k: _shown_bias(pictures[k]), default=0)


def _first_curve(curves: list[dict[str, Any]]) -> list[int]:
    """Covariate and group to begin with."""
    chosen = [_most_telling(curve["parts"]) for curve in curves]
    best = _most_telling([curve["parts"][k] for curve, k in zip(curves, chosen, strict=True)])
    return [best, chosen[best] if chosen else 0]


def _names(found: Mapping[str, Any]) -> set[str]:
    table = found["diagnosis"]["groups"]
    return set() if table is None else {group["name"] for group in table["groups"]}


def _conditions(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Reliance, competency and confidence: question, answer, tone."""
    alpha = found["alpha"]
    exact = "exact" if found["competency"]["null"]["exact"] else "approximate"

    def judged(pvalue: float) -> tuple[str, str]:
        return ("no", "bad") if pvalue <= alpha else ("not refuted", "good")

    given = _in_words(found["on"])
    first, tone_1 = judged(found["reliance"]["pvalue"])
    second, tone_2 = judged(found["pvalue"])
    seen, tone_3 = _seen(found)
    return [
        {
            "name": "Reliance",
            "question": "Are the probabilities calibrated at all?",
            "answer": first,
            "tone": tone_1,
            "kind": exact,
        },
        {
            "name": "Competency",
            "question": f"Are they calibrated given {given}?" if given else "No covariates named.",
            "answer": second,
            "tone": tone_2,
            "kind": exact,
        },
        {
            "name": "Confidence",
            "question": "How sure is that, and what could it have missed?",
            "answer": seen,
            "tone": tone_3,
            "kind": exact,
        },
    ]


def _seen(found: Mapping[str, Any]) -> tuple[str, str]:
    seen = found["confidence"]["detectable"]
    if seen is None:
        return "what could have been missed is not known: no label can vary", "open"
    worst, everywhere = seen["worst"], seen["everywhere"]
    numbers = [part["shift"] for part in (worst, everywhere) if part is not None]
    small = all(isinstance(shift, float) and shift <= found["tolerance"] for shift in numbers)
    told = f"a bias of {_shift(everywhere['shift'])} everywhere"
    if worst is not None and worst["where"] != "everywhere":
        told += f", or of {_shift(worst['shift'])} where {worst['where']},"
    return f"{told} would be seen with power {seen['power']:g}", "good" if small else "open"


def _shift(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _worst_slice(found: Mapping[str, Any]) -> int | None:
    """The confirmed slice of which the largest bias is shown, by its place in the table."""
    table = found["diagnosis"]["slices"]
    confirmed = [
        (max(part["lower"], -part["upper"]), -k)
        for k, part in enumerate(table["slices"])
        if part["pvalue"] is not None and part["pvalue"] <= table["alpha"]
    ]
    return -max(confirmed)[1] if confirmed else None


def _findings(found: Mapping[str, Any]) -> dict[str, Any]:
    """The story first, then the largest scores: places in the dict's list."""
    listed = found["competency"].get("findings", [])
    story = set(found["competency"].get("story", ()))
    told = [k for k, finding in enumerate(listed) if finding["name"] in story]
    others = [k for k in range(len(listed)) if k not in told]
    return {
        "shown": [*told, *others][:MAX_FINDINGS],
        "story": told,
        "looked_at": sum(part["entries"] for part in _dictionary(found).values()),
    }


def _dictionary(found: Mapping[str, Any]) -> dict[str, Any]:
    families: dict[str, Any] = found["competency"].get("dictionary", {})
    return {name: part for name, part in families.items() if isinstance(part, Mapping)}


def _by_covariate(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Groups for the chart: by covariate, places in the dict's list."""
    table = found["diagnosis"]["groups"]
    if table is None:
        return []
    places: dict[str, list[int]] = {}
    for k, group in enumerate(table["groups"][:MAX_ROWS_SHOWN]):
        places.setdefault(covariate_of(group["name"], found["on"]), []).append(k)
    return [{"name": name, "places": own} for name, own in places.items()]


def _notes(found: Mapping[str, Any]) -> list[str]:
    diagnosis = found["diagnosis"]
    groups = diagnosis["groups"] or {"notes": []}
    sources = (
        found["competency"]["notes"],
        diagnosis["local_bias"]["notes"],
        groups["notes"],
        diagnosis["slices"]["notes"],
    )
    said = [note for notes in sources for note in notes]
    said += [f"{task['task']}: {note}" for task in found["tasks"] for note in task["notes"]]
    alarms = set(found["competency"]["alarms"])
    return [note for note in dict.fromkeys(said) if note not in alarms]


def _repair_rows(
    repair: RecalibrationTable | None, disclosure: Disclosure
) -> list[dict[str, Any]] | None:
    """One row a method; a slice by its rule and bias."""
    if repair is None:
        return None
    if not isinstance(repair, RecalibrationTable):
        raise InputError(
            f"repair must come from itrust.recalibrate.compare, not a {type(repair).__name__}"
        )
    rows = disclosure.repairs(repair.to_dict())["recalibrations"]
    for row in rows:
        worst = row["slice"]
        row["slice"] = "" if worst is None else f"{worst['rule']} ({worst['bias']:+.3f})"
        row["seconds"] = round(row["seconds"], 1)
    return [{name: row[name] for name in ("name", *REPAIR_NUMBERS)} for row in rows]


def _versions() -> dict[str, str]:
    own = {"itrust": __version__, "Python": platform.python_version()}
    return own | {name: version(name) for name in LIBRARIES}


def _in_words(names: list[str]) -> str:
    if len(names) > 6:
        return f"{len(names)} covariates"
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _long_names(audit: Audit) -> list[str]:
    """Names and levels of the file that no page has room for."""
    found: set[str] = set()
    for column in audit.sample.columns:
        found.add(column.name)
        found.update(str(level) for level in column.levels)
    return sorted((name for name in found if len(name) > LONG_NAME), key=len, reverse=True)


def _shortener(names: Iterable[str]) -> Callable[[str], str]:
    """Cut long names wherever they occur, then whatever is still too long."""
    cuts = [(name, cut(name, LONG_NAME)) for name in names]

    def short(text: str) -> str:
        if len(text) > LONG_NAME:
            for name, shorter in cuts:
                text = text.replace(name, shorter)
        return cut(_seen_through(text), LONG_TEXT)

    return short


def _seen_through(text: str) -> str:
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def cut(text: str, most: int) -> str:
    """Beginning and end of a long text.

    >>> cut("abcdefghijkl", 8)
    'abcde…kl'
    """
    if len(text) <= most:
        return text
    tail = most // 4
    head = text[: most - tail - 1]
    while head and unicodedata.combining(text[len(head)]):  # no accent without its letter
        head = head[:-1]
    return f"{head}…{text[-tail:]}"


def _tidy(value: Any, short: Callable[[str], str]) -> Any:
    """Every text, keys included, as a page can show it."""
    if isinstance(value, str):
        return short(value)
    if isinstance(value, dict):
        return {short(name): _tidy(part, short) for name, part in value.items()}
    if isinstance(value, list):
        return [_tidy(part, short) for part in value]
    return value
