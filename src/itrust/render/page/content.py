"""All that a page shows, as one plain dict: the audit's own dict and what is chosen from it."""

from __future__ import annotations

import math
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

from itrust import __version__
from itrust._core import InputError, counted, cut, printable
from itrust.auditing import BAD, GOOD, OPEN, SCHEMA, Audit, tone_of
from itrust.calibration import Autocorrelation
from itrust.render.page.overturning import overturning_content
from itrust.render.page.population import population_content
from itrust.render.text.auditing import in_time, marked_pictures
from itrust.render.text.validation import (
    ALONE,
    DECISION,
    FAMILIES,
    GRADES,
    TITLES,
    StatisticFamily,
    calibrated_value,
    validation_head,
    validation_notes,
)
from itrust.render.text.verdict import in_words
from itrust.tasks import TaskFinding

MAX_FINDINGS, MAX_EVIDENCE, MAX_FOREST = 15, 5, 30
LONG_NAME, LONG_LABEL, LONG_TEXT = 80, 160, 700
LABELS = ("name", "rule", "group", "by", "where", "model", "title")  # keys of what is called so
NO_COVARIATES = "No covariates were named, so this is overall calibration once more."
TASK_TONES = {
    TaskFinding.BIASED: BAD,
    TaskFinding.SAFE: GOOD,
    TaskFinding.UNDECIDED: OPEN,
    TaskFinding.WITHHELD: OPEN,
}
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow")
WORD = re.compile(r"\S{81,}")  # no page has room for such a word


def content(audit: Audit | Mapping[str, Any], *, min_cell: int | None = None) -> dict[str, Any]:
    """Gather what the page shows. Nothing is computed: all numbers are in the audit."""
    found = _facts(audit, min_cell)
    charts = found["parts"][0]["charts"]
    gathered = {
        "audit": {name: part for name, part in found.items() if name != "provenance"},
        "tone": tone_of(found["verdict"]).name,
        "summary": found["summary"]["text"],
        "action": found["action"],
        "tasks": [_task(task) for task in found["tasks"]],
        "conditions": _conditions(found),
        "in_time": in_time(
            {name: Autocorrelation(**own) for name, own in found["autocorrelation"].items()}
        ),
        "worst": _worst(found),
        "marked": marked_pictures(charts),
        "forest": _forest(found),
        "findings": _findings(found),
        "evidence": MAX_EVIDENCE,
        "opening": {
            "curve": _first_curve(charts["curves"]),
            "map": _most_telling(charts["maps"]),
            "recalibration": _best_recalibration(found),
        },
        "steps": [found["tolerance"] * times for times in (-2, -1, -0.5, 0.5, 1, 2)],
        "validation": _validation(found),
        "population": population_content(found.get("resemblance")),
        "overturning": overturning_content(found.get("robustness"), found["alpha"]),
        "notes": _notes(found),
        "by_design": _by_design(found),
        "versions": versions(),
    }
    told: dict[str, Any] = tidy(gathered, shortened(found["on"]))
    return {**told, "provenance": _provenance(found["provenance"])}


def _provenance(found: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """How it was made; a command that is cut would make nothing again."""
    if found is None:
        return None
    return {**tidy(found, partial(printable, lines=False)), "command": printable(found["command"])}


def _facts(audit: Audit | Mapping[str, Any], min_cell: int | None) -> Mapping[str, Any]:
    if isinstance(audit, Audit):
        return audit.disclosed(min_cell).to_dict()
    if not isinstance(audit, Mapping) or audit.get("schema") != SCHEMA:
        raise InputError(
            f"a page is made of an Audit, or of the dict that its to_dict() gives, not of a "
            f"{type(audit).__name__}"
        )
    refuse_undisclosed(audit, min_cell)
    return audit


def refuse_undisclosed(audit: Mapping[str, Any], min_cell: int | None) -> None:
    """Raise on a dict that has been through less disclosure control than a page shall have."""
    hidden = audit.get("withheld")
    if min_cell is not None and (hidden is None or hidden["min_cell"] < min_cell):
        raise InputError(
            f"this dict has not been through disclosure control with min_cell={min_cell}; use "
            f"disclosed({min_cell}).to_dict()"
        )


def _shown_bias(picture: Mapping[str, Any]) -> float:
    """The largest bias that a band of the picture excludes; below 0 if it excludes none."""
    ends = zip(picture["lower"], picture["upper"], picture["flagged"], strict=True)
    return max((max(lower, -upper) for lower, upper, flagged in ends if flagged), default=-1.0)


def _most_telling(pictures: list[dict[str, Any]]) -> int:
    """The picture to begin with, the first of equals."""
    return max(range(len(pictures)), key=lambda k: _shown_bias(pictures[k]), default=0)


def _first_curve(curves: list[dict[str, Any]]) -> list[int]:
    """Covariate and group to begin with."""
    chosen = [_most_telling(curve["parts"]) for curve in curves]
    best = _most_telling([curve["parts"][k] for curve, k in zip(curves, chosen, strict=True)])
    return [best, chosen[best] if chosen else 0]


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    """What a number is called, what was found about it, and how that looks."""
    return {
        "title": task["title"],
        "finding": task["finding"],
        "sentence": task["sentence"],
        "tone": TASK_TONES[TaskFinding(task["finding"])].name,
    }


def _best_recalibration(found: Mapping[str, Any]) -> int:
    """The method to begin with: the smallest Brier score, but not the probabilities as given."""
    rows = (found["recalibration"] or {"recalibrations": []})["recalibrations"]
    return min(range(1, len(rows)), key=lambda k: float(rows[k]["brier"]), default=0)


def _validation(audit: Mapping[str, Any]) -> dict[str, Any] | None:
    """What validators print, by family: where each statistic is in the dict, and its words."""
    found = audit.get("validation")
    if found is None:
        return None
    since = int(not audit["test"]["is_exact"])  # files of an earlier release do not say folds
    place = {own["name"]: k for k, own in enumerate(found["statistics"])}
    families = [
        {
            **_words_of(family),
            "rows": [
                {
                    "path": f"validation.statistics.{place[name]}",
                    "title": TITLES[name],
                    "calibrated": calibrated_value(found["statistics"][place[name]]),
                    "has_interval": found["statistics"][place[name]]["lower"] is not None,
                }
                for name in family.names
            ],
        }
        for family in FAMILIES
    ]
    return {
        "head": validation_head(found),
        "families": families,
        "grades": _words_of(GRADES),
        "decision": _words_of(DECISION),
        "notes": [*validation_notes({"folds": since, **found}), ALONE],
    }


def _words_of(family: StatisticFamily) -> dict[str, str]:
    return {"title": family.title, "asks": family.asks, "blind": family.blind}


def _by_design(found: Mapping[str, Any]) -> bool:
    """Whether rows come in clusters, or their draw is known by replicate weights."""
    return any(found["design"][name] is not None for name in ("clusters", "replicates"))


def _conditions(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The three conditions: name, the paper's word, question, answer, tone."""
    given = in_words(found["on"])
    seen, tone = _seen(found)
    exact = "approximate, by clusters" if _by_design(found) else "approximate"
    exact = "exact" if found["test"]["is_exact"] else exact
    return [
        {
            "key": "overall",
            "name": "Overall calibration",
            "paper": "reliance",
            "question": "Are the probabilities calibrated, whatever the covariates?",
            "kind": exact,
            **_answer(found["overall"]["pvalue"], found["alpha"], found["test"]["impossible"] > 0),
        },
        {
            "key": "test",
            "name": f"Calibration given the {'covariates' if given else 'prediction alone'}",
            "paper": "competency",
            "question": f"Are they calibrated given {given}?" if given else NO_COVARIATES,
            "kind": exact,
            **_answer(found["pvalue"], found["alpha"], found["test"]["impossible"] > 0),
        },
        {
            "key": "missed",
            "name": "What this audit could have missed",
            "paper": "confidence",
            "question": "How small a bias would have been seen?",
            "kind": exact,
            "answer": seen,
            "tone": tone,
        },
    ]


def _answer(pvalue: float | None, alpha: float, impossible: bool = False) -> dict[str, str]:
    if impossible or (pvalue is not None and pvalue <= alpha):
        return {"answer": "no", "tone": BAD.name}
    if pvalue is None:
        return {"answer": "not known: too few clusters", "tone": OPEN.name}
    return {"answer": "not rejected", "tone": GOOD.name}


def _seen(found: Mapping[str, Any]) -> tuple[str, str]:
    tone = GOOD if found["missed"]["would_be_seen"] else OPEN
    return found["missed"]["sentence"], tone.name


def _worst(found: Mapping[str, Any]) -> dict[str, str] | None:
    """The group or slice of which the largest bias is shown: its kind and its place in the dict."""
    parts = [row for row in _parts(found) if row["shown"]]
    return {name: parts[0][name] for name in ("kind", "path")} if parts else None


def _parts(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Groups and slices, the largest shown bias first."""
    rows = []
    for kind in ("group", "slice"):
        table = found["parts"][0]["diagnosis"][f"{kind}s"]
        for k, part in enumerate([] if table is None else table[f"{kind}s"]):
            path = f"parts.0.diagnosis.{kind}s.{kind}s.{k}"
            rows.append({"kind": kind, "path": path, **_forest_row(part, table["alpha"])})
    return sorted(rows, key=_near_end, reverse=True)


def _is_shown(part: Mapping[str, Any], alpha: float) -> bool:
    return part["pvalue"] is not None and part["pvalue"] <= alpha


def _near_end(part: Mapping[str, Any]) -> float:
    """How far the interval stays away from 0; below 0 where it does not, or is not known."""
    lower, upper = part["lower"], part["upper"]
    return -math.inf if lower is None or upper is None else float(max(lower, -upper))


def _forest(found: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of the forest plot: groups and confirmed slices, the largest shown bias first."""
    rows = [row for row in _parts(found) if row["shown"] or row["kind"] == "group"]
    return {"rows": rows[:MAX_FOREST], "more": max(len(rows) - MAX_FOREST, 0)}


def _forest_row(part: Mapping[str, Any], alpha: float) -> dict[str, Any]:
    numbers = {name: part[name] for name in ("bias", "lower", "upper", "pvalue", "rows")}
    return {
        "name": part.get("rule") or part.get("name"),
        "judged_on": part.get("judged_on", part["rows"]),
        "shown": _is_shown(part, alpha),
        **numbers,
    }


def _findings(found: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence first, then the largest scores: positions in the dict's list."""
    test = found["test"]
    leading = {item["name"] for item in found["evidence"] if item["kind"] == "finding"}
    told = [k for k, finding in enumerate(test["findings"]) if finding["name"] in leading]
    others = [k for k in range(len(test["findings"])) if k not in told]
    return {
        "shown": [*told, *others][:MAX_FINDINGS],
        "leading": told,
        "checks": test["checks"] if test["is_adaptive"] else 0,
    }


def _notes(found: Mapping[str, Any]) -> list[str]:
    diagnosis = found["parts"][0]["diagnosis"]
    groups = diagnosis["groups"] or {"notes": []}
    sources = (
        found["test"]["notes"],
        diagnosis["local_bias"]["notes"],
        groups["notes"],
        diagnosis["slices"]["notes"],
    )
    said = [note for notes in sources for note in notes]
    undrawn = found["parts"][0]["charts"]["undrawn"]
    if undrawn:
        said.append(
            f"no curve is drawn along {counted(len(undrawn), 'other number')}: those of what was "
            f"found come first, then the first that were named"
        )
    said += [f"{task['task']}: {note}" for task in found["tasks"] for note in task["notes"]]
    warned = set(found["test"]["warnings"])
    return [note for note in dict.fromkeys(said) if note not in warned]


def versions() -> dict[str, str]:
    """Versions of what numbers depend on."""
    own = {"itrust": __version__, "Python": platform.python_version()}
    return own | {name: version(name) for name in LIBRARIES}


def shortened(names: Iterable[str]) -> Callable[[str], str]:
    """Cut long names of covariates and long words wherever they occur, then what is too long."""
    cuts = _cut_names(sorted((name for name in names if len(name) > LONG_NAME), key=len))

    def short(text: str) -> str:
        if len(text) > LONG_NAME:
            for name, shorter in reversed(cuts.items()):  # the longest may hold others
                text = text.replace(name, shorter)
        told = WORD.sub(lambda word: cut(word[0], LONG_NAME), printable(text, lines=False))
        return cut(told, LONG_TEXT)

    return short


def _cut_names(names: Iterable[str]) -> dict[str, str]:
    """Long names cut, with a number where others are cut to the same.

    >>> list(_cut_names(["a" * 99 + "b" * 30, "a" * 98 + "b" * 30]).values())[1][-8:]
    'bbbb (2)'
    """
    found: dict[str, str] = {}
    times: Counter[str] = Counter()
    for name in names:
        shorter = cut(name, LONG_NAME)
        times[shorter] += 1
        number = f" ({times[shorter]})" if times[shorter] > 1 else ""
        found[name] = cut(name, LONG_NAME - len(number)) + number
    return found


def tidy(value: Any, short: Callable[[str], str]) -> Any:
    """Every text as a page can show it; keys that are names stay, since no page shows those."""
    if isinstance(value, str):
        return short(value)
    if isinstance(value, dict):
        found = {name: tidy(part, short) for name, part in value.items()}
        labels = (name for name in LABELS if isinstance(found.get(name), str))
        return found | {name: cut(found[name], LONG_LABEL) for name in labels}
    if isinstance(value, list):
        return [tidy(part, short) for part in value]
    return value
