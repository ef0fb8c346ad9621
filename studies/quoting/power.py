"""Pieces of studies/pages/power.json, for its page and the comparison of tests."""

from __future__ import annotations

from scipy.stats import binomtest

from quoting.kit import Results, Rows, fixed, piece, share, span, table, where

LEVEL = 0.05
BESIDE = {
    "shift": "shift everywhere",
    "calibration slope": "calibration slope",
    "one small group": "one small group",
    "interaction of c and d": "interaction of c and d",
    "waves in c": "waves in c",
    "interaction of a, c and d": "interaction of a, c and d",
    "spot in c and d": "spot in c and d",
}


def rows_of(found: Results, name: str) -> Rows:
    return found["tables"][name]["rows"]


@piece("power", "thin")
def thin(found: Results) -> str:
    rows = rows_of(found, "thin")
    heads = {
        "adaptive": "`klce_test`",
        "score test": "score test that knows the family",
        "bias scan": "AIF360's `bias_scan`",
    }
    return table(rows, {name: str if name == "bias" else share for name in rows[0]}, heads)


@piece("power", "papers")
def papers(found: Results) -> str:
    rows = rows_of(found, "papers")
    return table(rows, {name: str if name in ("N", "d") else share for name in rows[0]})


@piece("power", "alternatives")
def alternatives(found: Results) -> str:
    rows = rows_of(found, "alternatives")
    heads = {"best": "best single entry", "best entry": "which", "default": "default kernel"}
    texts = ("bias", "best entry")
    return table(rows, {name: str if name in texts else share for name in rows[0]}, heads)


@piece("power", "detectable")
def detectable(found: Results) -> str:
    columns = {"where": str, "shift": fixed(3), "power": fixed(2)}
    return table(rows_of(found, "detectable"), columns, {"power": "simulated power"})


@piece("power", "level")
def level(found: Results) -> str:
    runs = found["tables"]["level"]["runs"]
    rows = [
        {**row, "p of .05": binomtest(round(row["rejected"] * runs), runs, LEVEL).pvalue}
        for row in rows_of(found, "level")
    ]
    return table(rows, {"design": str, "rejected": share, "p of .05": fixed(2)})


@piece("power", "levels of the dictionary")
def levels(found: Results) -> str:
    return span([row["rejected"] for row in rows_of(found, "level")], share)


@piece("power", "the paper's design side by side")
def papers_side_by_side(found: Results) -> str:
    rows = [where(rows_of(found, "papers"), N=500, d=d) for d in (10, 30, 50)]
    heads = {"adaptive": "dictionary", "printed": "printed with the paper"}
    shown = ("adaptive", "default kernel alone", "printed")
    return table(rows, {"d": str} | dict.fromkeys(shown, share), heads)


@piece("power", "alternatives side by side")
def alternatives_side_by_side(found: Results) -> str:
    known = rows_of(found, "alternatives")
    rows = [{**where(known, bias=name), "bias": title} for name, title in BESIDE.items()]
    heads = {
        "adaptive": "dictionary",
        "best": "best single entry, with hindsight",
        "default": "default kernel",
    }
    shown = ("adaptive", "best", "default")
    return table(rows, {"bias": str} | dict.fromkeys(shown, share), heads)


@piece("power", "small groups missed at 3/4")
def small_groups(found: Results) -> str:
    return share(where(rows_of(found, "alternatives"), bias="one small group")["adaptive at 3/4"])


@piece("power", "small groups missed by the best entry")
def small_groups_by_the_best(found: Results) -> str:
    return share(where(rows_of(found, "alternatives"), bias="one small group")["best at 3/4"])


@piece("power", "rivals side by side")
def rivals(found: Results) -> str:
    """The three tests that are not ours and know as little as ours does, and the scan."""
    rows = rows_of(found, "thin")
    heads = {"adaptive": "`klce_test`", "bias scan": "AIF360's `bias_scan`"}
    shown = [name for name in rows[0] if name not in ("bias", "score test")]
    return table(rows, {"bias": str} | dict.fromkeys(shown, share), heads)
