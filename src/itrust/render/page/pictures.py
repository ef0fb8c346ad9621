"""What the charts of a page draw: the values of views, as `page.js` takes them, kind by kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from itrust._core import shown_name
from itrust.render.page.facts import MINUS, MarkedFacts, is_shown, shown
from itrust.render.text.overturning import NAMES, size_words
from itrust.render.text.tasks import WAYS
from itrust.render.text.watch import evidence_text

MAX_FOREST, MAX_COMPARED = 30, 20
STEPS = (-2, -1, -0.5, 0.5, 1, 2)  # ends of the colours of a map, in tolerances
BINNED = "Observed rate against mean prediction in bins of equal weight"
LOWEST = -2.0  # digits of the evidence of a watch; what is below is drawn there


class Picture(NamedTuple):
    """A chart: what it shows, its kind, its views in sets, and the tables with its numbers.

    Views of a picture are chosen by `choices`, the titles of one or two menus; the tables have the
    numbers of the first view, and the script makes those of the others.
    """

    title: str
    kind: str
    sets: Sequence[Mapping[str, Any]]
    tables: Sequence[str] = ()
    choices: Sequence[str] = ()
    settings: Mapping[str, Any] = {}

    @property
    def data(self) -> dict[str, Any]:
        """What the script draws."""
        return {"kind": self.kind, "title": self.title, "sets": self.sets, **self.settings}


def single(title: str, kind: str, view: Mapping[str, Any], *tables: str, **more: Any) -> Picture:
    """A picture of one view."""
    return Picture(title, kind, [{"parts": [view]}], tables, settings=more)


def dot(name: str, ends: Sequence[float | None], state: str, **tip: str) -> dict[str, Any]:
    """A value and its interval, with what stands beside the pointer."""
    numbers = dict(zip(("bias", "lower", "upper"), ends, strict=True))
    told = [[key.replace("_", " "), text] for key, text in tip.items()]
    return {"name": name, **numbers, "state": state, "tip": told}


def bias_dot(
    part: Mapping[str, Any], alpha: float, name: str = "", rows: str = ""
) -> dict[str, Any]:
    """A bias with its interval; the script writes what stands beside the pointer."""
    numbers = {key: part[key] for key in ("bias", "lower", "upper", "pvalue", "rows")}
    numbers["bias"] = part.get("estimate", part["bias"])
    told = rows or shown(part["rows"], "rows")
    return {"name": name or part["name"], "shown": is_shown(part, alpha), "told": told, **numbers}


def biased_parts(a: MarkedFacts) -> list[dict[str, Any]]:
    """Groups and slices, the largest shown bias first, with their places."""
    found = []
    for kind in ("group", "slice"):
        table = a["parts"][0]["diagnosis"][f"{kind}s"]
        for k, part in enumerate([] if table is None else table[f"{kind}s"]):
            place = {"kind": kind, "place": f"parts.0.diagnosis.{kind}s.{kind}s.{k}"}
            own = bias_dot(part, table["alpha"], part.get("rule") or part["name"])
            found.append({**place, **own})
    return sorted(found, key=_near_end, reverse=True)


def _near_end(part: Mapping[str, Any]) -> float:
    """How far the interval stays away from 0; below 0 where it does not, or is not known."""
    ends = part["lower"], part["upper"]
    return -math.inf if None in ends else float(max(ends[0], -ends[1]))


def _shown_bias(picture: Mapping[str, Any]) -> float:
    """The largest bias that a band of the picture excludes; below 0 if it excludes none."""
    ends = zip(picture["lower"], picture["upper"], picture["flagged"], strict=True)
    return max((max(lower, -upper) for lower, upper, flagged in ends if flagged), default=-1.0)


def _most_telling(pictures: Sequence[Mapping[str, Any]]) -> int:
    """The picture to begin with, the first of equals."""
    return max(range(len(pictures)), key=lambda k: _shown_bias(pictures[k]), default=0)


def audit_pictures(a: MarkedFacts) -> dict[str, Picture]:
    """Charts of an audit, by key."""
    found = class_pictures(a) if a["classes"] else _pictures(a)
    return found | _compared(a) | _violations(a) | _recalibrations(a)


def _pictures(a: MarkedFacts) -> dict[str, Picture]:
    """Charts of two labels: forest, curves, maps, reliability, predictions, null distribution."""
    charts, shade = a["parts"][0]["charts"], a["tolerance"]
    forest = [part for part in biased_parts(a) if part["shown"] or part["kind"] == "group"]
    view: dict[str, Any] = {"rows": forest[:MAX_FOREST], "shade": shade}
    title, found = "Bias of groups and of confirmed slices", {}
    if forest:
        found["forest"] = single(title, "intervals", view, "slices", "groups")
    curves = charts["curves"]
    if curves or charts["groups"]:
        first = [_most_telling(curve["parts"]) for curve in curves]
        best = _most_telling([own["parts"][k] for own, k in zip(curves, first, strict=True)])
        sets = [*curves, *(_levels(own, a["alpha"], shade) for own in charts["groups"])]
        title = f"Bias along {'a covariate' if a['on'] else 'the prediction'}"
        opening = {"opening": [best, first[best] if first else 0]}
        found["curve"] = Picture(title, "curve", sets, (), ("Covariate", "Group"), opening)
    if charts["maps"]:
        opening = {"opening": [0, _most_telling(charts["maps"])]}
        settings = {**opening, "steps": [times * shade for times in STEPS]}
        title, sets = "Bias over two covariates", [{"parts": charts["maps"]}]
        found["map"] = Picture(title, "map", sets, (), ("Map of",), settings)
    views = [_reliability("all rows", charts["reliability"]), *charts["reliability_by_group"]]
    title, bars = BINNED, charts["histogram"]
    menu = ("Rows",) if len(views) > 1 else ()
    settings = {"baseline": charts["reliability"], "histogram": bars}
    sets = [{"parts": views}]
    found["reliability"] = Picture(title, "reliability", sets, ("reliability",), menu, settings)
    if bars:
        view = {**bars, "x": "prediction, all rows", "y": "rows", "low": True}
        found["histogram"] = single("Number of rows by prediction", "bars", view, "histogram")
    if charts["null"]:
        combined = "combined score (largest over all checks)"
        view = {**charts["null"], "x": combined if charts["null"]["combined"] else "KLCE²"}
        title = "Distribution of the score over draws, and the score of the data"
        found["null"] = single(title, "bars", {**view, "y": "draws"}, "null")
    return found


def _levels(own: Mapping[str, Any], alpha: float, shade: float) -> dict[str, Any]:
    """Biases of the levels of a covariate, in the place of a curve."""
    rows = [bias_dot(part, alpha) for part in own["groups"][:MAX_FOREST]]
    part = {"group": "all groups", "by": None, "rows": rows, "shade": shade}
    return {"name": own["name"], "kind": "levels", "parts": [part]}


def _reliability(group: str, curve: Mapping[str, Any]) -> dict[str, Any]:
    return {"group": group, "by": None, "curve": curve}


def _recalibrations(a: MarkedFacts) -> dict[str, Picture]:
    """Calibration errors and reliability, before and after."""
    before, *methods = (a["recalibration"] or {"recalibrations": [None]})["recalibrations"]
    if not methods:
        return {}
    rows = [
        {"name": own["name"], "of": name, "before": before[key], "after": own[key]}
        for own in methods
        for key, name in (("ece", "ECE"), ("smooth_ece", "smooth ECE"))
    ]
    best = min(range(len(methods)), key=lambda k: float(methods[k]["brier"]))
    settings = {"opening": [0, best], "baseline": before["curve"], "before": True}
    sets = [{"parts": [_reliability(own["name"], own["curve"]) for own in methods]}]
    errors = "Calibration errors before and after recalibration"
    title = "Reliability before and after recalibration"
    return {
        "errors": single(errors, "change", {"rows": rows}, "recalibration"),
        "recalibration": Picture(title, "reliability", sets, (), ("Method",), settings),
    }


def _compared(a: MarkedFacts) -> dict[str, Picture]:
    """Labelled rows less population, in standard errors."""
    if not (a["resemblance"] and a["resemblance"]["compared"]):
        return {}
    dots = [
        dot(
            own["text"],
            (own["z"], min(own["z"], 0), max(own["z"], 0)),
            "best" if own["is_shown"] else "not",
            standard_errors=shown(own["z"], "deviation"),
            adjusted_p=shown(own["pvalue"], "p"),
        )
        for own in a["resemblance"]["compared"][:MAX_COMPARED]
    ]
    view = {"rows": dots, "x": "labelled rows less population, in standard errors"}
    return {"compared": single("Labelled rows less population", "intervals", view, "compared")}


def _violations(a: MarkedFacts) -> dict[str, Picture]:
    """P-values on a logarithmic scale over the size of each violation."""
    found = {}
    for k, own in enumerate((a.value.get("robustness") or {"violations": []})["violations"]):
        points = [
            {
                "x": size,
                "y": math.log10(pvalue),
                "run": 0,
                "tip": [["size", size_words(own["kind"], size)], ["p", shown(pvalue, "p")]],
            }
            for size, pvalue in zip(own["sizes"], own["pvalues"], strict=True)
        ]
        view = {
            "points": points,
            "rule": math.log10(a["alpha"]),
            "uprights": [] if own["point"] is None else [own["point"]],
            "percent": own["kind"] not in ("selection", "tolerance"),
            "x": NAMES[own["kind"]],
        }
        more = {"y": "p-value", "log": True, "low": True, "top": 0}
        title = f"p-value by size of the violation: {own['sentence']}"
        found[f"violation-{k}"] = single(title, "line", {**view, **more}, f"violation-{k}")
    return found


def class_pictures(a: MarkedFacts) -> dict[str, Picture]:
    """Charts of several classes: means, reliability and groups of each, and the top label."""
    alpha, shade, found = a["alpha"], a["tolerance"], {}
    known = [part for part in a["parts"] if part["rows"] is not None]
    means = [({**own["mean"], "rows": own["rows"]}, shown_name(own["name"])) for own in known]
    view = {"rows": [bias_dot(mean, alpha, name) for mean, name in means], "shade": shade}
    found["classes"] = single("Each class against the rest", "intervals", view, "classes")
    for k, part in enumerate(a["parts"]):
        if part["rows"] is not None:
            view = _reliability(part["name"], part["curve"])
            found[f"reliability-{k}"] = single(BINNED, "reliability", view, f"bins-{k}")
        groups = (part["diagnosis"]["groups"] or {"groups": []})["groups"]
        if groups:
            view = {"rows": [bias_dot(group, alpha) for group in groups], "shade": shade}
            found[f"groups-{k}"] = single("Groups of the class", "intervals", view, f"groups-{k}")
    view = _reliability("all rows", a["overall"]["curve"])
    axes = {"x": "confidence", "y": "accuracy"}
    found["top"] = single("Accuracy against confidence", "reliability", view, "top", **axes)
    return found


def estimates_pictures(a: MarkedFacts) -> dict[str, Picture]:
    """Every way to each number, beside the plug-in."""
    found = _compared(a)
    for k, own in enumerate(a["estimates"]):
        best, dots = own["best"] or "labelled", []
        for name in (name for name in WAYS if own[name] is not None):
            place, of = f"estimates.{k}.{name}", f"estimates.{k}.{best}"
            tip = {"estimate": a.number(f"{place}.value", "value", of).striptags()}
            tip["interval"] = a.interval(place, "value", of).striptags()
            ends = [own[name][key] for key in ("value", "lower", "upper")]
            dots.append(dot(WAYS[name], ends, "best" if name == own["best"] else "not", **tip))
        view = {"rows": dots, "x": own["title"], "guide": own["plugin"]["value"]}
        found[f"ways-{k}"] = single(f"Ways to {own['title']}", "intervals", view, f"ways-{k}")
    return found


def watch_pictures(a: MarkedFacts) -> dict[str, Picture]:
    """Evidence and rates over time, numbers so far, labels beyond prediction by level."""
    found = {}
    told = [own for own in a["history"] if own["log_evalue"] is not None]
    if told:
        title = f"Evidence after every batch on a log scale; {a['words']['headline']}"
        found["evidence"] = single(title, "line", _evidence(a, told), "batches")
        title = "Observed rate and mean prediction of every batch"
        found["rates"] = single(title, "line", _rates(a, told), "batches")
    numbers = zip(a["numbers"], a["words"]["values"], strict=True)
    dots = [_scaled(own, told) for own, told in numbers if own["lower"] is not None]
    if dots:
        view = {"rows": dots, "x": "bias, each number on its own scale", "bare": True}
        title = "Intervals of the biases, each on its own scale; 0 is the line"
        found["numbers"] = single(title, "intervals", view, "numbers")
    levels = [
        dot(
            own["title"],
            (own["score"], -1, 1),
            "not",
            labels_beyond=own["told"][0],
            by_chance=own["told"][1],
        )
        for own in a["levels"]
    ]
    if levels:
        view = {"rows": levels, "x": "labels beyond prediction, in standard deviations of chance"}
        title = "Labels beyond what the model predicted"
        found["levels"] = single(title, "intervals", view, "levels")
    return found


def log_of(value: float | str | None) -> float:
    """A logarithm as the report of a watch holds it."""
    return math.inf if isinstance(value, str) else -math.inf if value is None else value


def _evidence(a: MarkedFacts, history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Powers of ten of the evidence; what is infinite or very small stands at the edge."""
    line, since = a["log_line"] / math.log(10), a["since"]
    digits = [log_of(own["log_evalue"]) / math.log(10) for own in history]
    top = 1.15 * max([line, *filter(math.isfinite, digits)])
    points = [
        {
            "x": own["number"],
            "y": min(max(value, LOWEST), top),
            "run": own["segment"],
            "state": "raised" if own["raised"] else "late" if own["late"] else "",
            "tip": [["batch", _batch(own)], ["evidence", evidence_text(log_of(own["log_evalue"]))]],
        }
        for own, value in zip(history, digits, strict=True)
    ]
    return {
        "points": points,
        "rule": line,
        "ruleText": f"alarm {evidence_text(a['log_line'])}",
        "band": None if since is None else [since["lower"] - 0.5, since["upper"] + 0.5],
        "breaks": [own["first"] - 0.5 for own in a["segments"][1:]],
        "x": "batch",
        "y": "evidence",
        "log": True,
        "whole": True,
    }


def _rates(a: MarkedFacts, history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Observed rates as dots, mean predictions as a line."""
    names = ("top label right", "mean top p") if a["classes"] else ("observed", "predicted")
    keys = ("mean_label", "mean_prediction")
    known = [own for own in history if None not in (own[key] for key in keys)]
    tips = [
        [
            ["batch", _batch(own)],
            *([name, shown(own[key], "rate")] for name, key in zip(names, keys, strict=True)),
        ]
        for own in known
    ]
    dots, points = (
        [
            {"x": own["number"], "y": own[key], "run": own["segment"], "tip": tip}
            for own, tip in zip(known, tips, strict=True)
        ]
        for key in keys
    )
    axes = {"x": "batch", "y": "rate", "whole": True, "low": True}
    return {"points": points, "dots": dots, "accent": True, **axes}


def _batch(own: Mapping[str, Any]) -> str:
    return f"{own['number']} {own['name'] or ''}".strip()


def _scaled(own: Mapping[str, Any], told: Sequence[str]) -> dict[str, Any]:
    """The interval of a number on a scale of its own."""
    ends = [own[key] for key in ("bias", "lower", "upper")]
    reach = max(map(abs, ends)) or 1.0
    bias, interval = (text.replace("-", MINUS) for text in told[2:])
    ends = [end / reach for end in ends]
    return dot(own["task"], ends, "not", bias=bias, interval=interval)
