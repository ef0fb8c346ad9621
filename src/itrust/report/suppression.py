"""Pages and files leave the house: what rests on few rows stays behind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from itrust.errors import InputError

MIN_CELL = 10


def checked_cell(min_cell: object) -> int:
    """Refuse what is no number of rows."""
    if isinstance(min_cell, bool) or not isinstance(min_cell, int) or min_cell < 1:
        raise InputError(f"min_cell must be a whole number of rows, 1 or more, not {min_cell!r}")
    return min_cell


def suppressed(found: Mapping[str, Any], min_cell: int = MIN_CELL) -> tuple[dict[str, Any], int]:
    """Leave out of an audit's dict what fewer than `min_cell` rows stand behind.

    Groups, slices, bins of the reliability curve and regions of `confidence`. Where one group
    of a covariate, or one bin, would be all that is left out, totals would give it away, so the
    next smallest goes, too. A slice that leaves out fewer rows than that is as telling as one
    that holds them. Names of groups that are left out are taken out of sentences as well. The key
    `suppressed` says how many of each.

    Parameters
    ----------
    found : `audit.to_dict()`
    min_cell : int
        1 leaves nothing out.

    Returns
    -------
    dict, int
        A copy, and how many entries were left out.
    """
    least = checked_cell(min_cell)
    kept, counts = dict(found), {"groups": 0, "slices": 0, "bins": 0, "regions": 0}
    diagnosis, rare, hidden = dict(found["diagnosis"]), set[str](), set[str]()
    if diagnosis["groups"] is not None:
        diagnosis["groups"], rare, hidden = _groups(diagnosis["groups"], found["on"], least)
        counts["groups"] = len(hidden)
    diagnosis["slices"], counts["slices"] = _slices(diagnosis["slices"], hidden, least)
    kept["diagnosis"] = diagnosis
    kept["reliance"], counts["bins"] = _bins(found["reliance"], least)
    kept["confidence"], counts["regions"] = _regions(found["confidence"], hidden, least)
    tasks = kept.pop("tasks")  # in the user's own words
    kept = _reworded(kept, _without(rare, least))
    return {**kept, "tasks": tasks, "suppressed": {"min_cell": least, **counts}}, sum(
        counts.values()
    )


def suppressed_repairs(table: Mapping[str, Any], min_cell: int = MIN_CELL) -> dict[str, Any]:
    """Leave slices that rest on few rows out of a comparison of repairs."""
    least = checked_cell(min_cell)

    def kept(row: Mapping[str, Any]) -> dict[str, Any]:
        part = row["slice"]
        few = part is not None and min(part["rows"], part["judged_on"]) < least
        return {**row, "slice": None if few else part}

    return {**table, "repairs": [kept(row) for row in table["repairs"]]}


def wording(found: Mapping[str, Any], min_cell: int = MIN_CELL) -> Callable[[str], str]:
    """A function that takes names of groups under `min_cell` rows out of a sentence."""
    least, table = checked_cell(min_cell), found["diagnosis"]["groups"]
    groups = () if table is None else table["groups"]
    return _without({group["name"] for group in groups if group["rows"] < least}, least)


def too_few(rows: Sequence[int], least: int) -> set[int]:
    """Positions to leave out of parts that add up to a known total.

    >>> sorted(too_few([400, 3, 60], 10)), sorted(too_few([400, 3, 4], 10)), too_few([400], 10)
    ([1, 2], [1, 2], set())
    """
    few = {k for k, number in enumerate(rows) if number < least}
    if len(few) == 1 and len(rows) > 1:  # the total less the others would tell it
        few.add(min((k for k in range(len(rows)) if k not in few), key=rows.__getitem__))
    return few


def _groups(
    table: Mapping[str, Any], names: Sequence[str], least: int
) -> tuple[dict[str, Any], set[str], set[str]]:
    """The table without them; names of those with few rows, and of all that are left out."""
    groups = table["groups"]
    by_covariate: dict[str, list[int]] = {}
    for k, group in enumerate(groups):
        by_covariate.setdefault(covariate_of(group["name"], names), []).append(k)
    left_out: set[int] = set()
    for places in by_covariate.values():
        left_out |= {places[k] for k in too_few([groups[k]["rows"] for k in places], least)}
    rare = {group["name"] for group in groups if group["rows"] < least}
    shown = [group for k, group in enumerate(groups) if k not in left_out]
    return {**table, "groups": shown}, rare, {groups[k]["name"] for k in left_out}


def covariate_of(group: str, names: Sequence[str]) -> str:
    """The covariate of a group, from its name.

    >>> covariate_of("age group = young", ["age", "age group"])
    'age group'
    """
    fitting = [name for name in names if group.startswith((f"{name} = ", f"{name} missing"))]
    return max(fitting, key=len, default="")


def _slices(table: Mapping[str, Any], hidden: set[str], least: int) -> tuple[dict[str, Any], int]:
    shown = [
        part
        for part in table["slices"]
        if min(part["rows"], part["judged_on"]) >= least
        and not 0 < table["n"] - part["rows"] < least
        and part["rule"] not in hidden
    ]
    confirmed = sum(
        part["pvalue"] is not None and part["pvalue"] <= table["level"] for part in shown
    )
    return {**table, "slices": shown, "confirmed": confirmed}, len(table["slices"]) - len(shown)


def _bins(reliance: Mapping[str, Any], least: int) -> tuple[dict[str, Any], int]:
    curve = reliance["curve"]
    few = too_few(curve["rows"], least)
    shown = {
        name: [value for k, value in enumerate(values) if k not in few]
        for name, values in curve.items()
    }
    return {**reliance, "curve": shown}, len(few)


def _regions(
    confidence: Mapping[str, Any], hidden: set[str], least: int
) -> tuple[dict[str, Any], int]:
    found = confidence["detectable"]
    if found is None:
        return dict(confidence), 0

    def enough(region: Mapping[str, Any]) -> bool:
        return region["share"] * found["n"] >= least - 0.5 and region["where"] not in hidden

    shown = [region for region in found["regions"] if enough(region)]
    worst = found["worst"] if enough(found["worst"]) else None
    kept = {**found, "regions": shown, "worst": worst}
    return {**confidence, "detectable": kept}, len(found["regions"]) - len(shown)


def _without(names: set[str], least: int) -> Callable[[str], str]:
    """Take names out of a sentence, also in the form "race white" for "race = white"."""
    if not names:
        return lambda text: text
    forms = names | {name.replace(" = ", " ", 1) for name in names}
    longest_first = sorted(forms, key=len, reverse=True)
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w|\.\d)")
    return lambda text: pattern.sub(f"(a group under {least} rows)", text)


def _reworded(value: Any, words: Callable[[str], str]) -> Any:
    """The same with every text through `words`."""
    if isinstance(value, str):
        return words(value)
    if isinstance(value, Mapping):
        return {name: _reworded(part, words) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_reworded(part, words) for part in value]
    return value
