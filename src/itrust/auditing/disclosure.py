"""Pages and files leave the house: what rests on few rows stays behind."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from itrust._core import InputError

MIN_CELL = 10


def checked_cell(min_cell: object) -> int:
    """Refuse what is no number of rows."""
    if isinstance(min_cell, bool) or not isinstance(min_cell, int) or min_cell < 1:
        raise InputError(f"min_cell must be a whole number of rows, 1 or more, not {min_cell!r}")
    return min_cell


@dataclass(frozen=True)
class Disclosure:
    """What of one audit may be shown: one decision for all files that leave the house.

    Attributes
    ----------
    least : int
        Rows that have to stand behind what is shown.
    rare : frozenset of str
        Groups with fewer rows.
    hidden : frozenset of str
        Groups that are left out: those, and others that would give them away by subtraction.
    names : frozenset of str
        All groups.
    """

    least: int
    rare: frozenset[str]
    hidden: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, found: Mapping[str, Any], min_cell: int = MIN_CELL) -> Disclosure:
        """Decide for an audit's dict."""
        least, table = checked_cell(min_cell), found["diagnosis"]["groups"]
        groups = [] if table is None else table["groups"]
        told = {part["rule"] for part in found["diagnosis"]["slices"]["slices"]}
        hidden = _hidden(groups, found["on"], least, told)
        rare = (group["name"] for group in groups if group["rows"] < least)
        return cls(least, frozenset(rare), hidden, frozenset(group["name"] for group in groups))

    def allows(self, part: Mapping[str, Any], n: int) -> bool:
        """Whether a slice of n rows may be shown; one that leaves out few rows tells them, too."""
        return (
            min(part["rows"], part["judged_on"]) >= self.least
            and not 0 < n - part["rows"] < self.least
            and part["rule"] not in self.hidden
        )

    def words(self, text: str) -> str:
        """Take names of small groups out of a sentence, also "race white" for "race = white"."""
        pattern = _any_of(self.names)
        if pattern is None or not self.rare:
            return text
        forms = self.rare | {name.replace(" = ", " ", 1) for name in self.rare}
        instead = f"(a group under {self.least} rows)"
        return pattern.sub(lambda match: instead if match[0] in forms else match[0], text)

    def reworded(self, value: Any) -> Any:
        """The same with every text through `words`."""
        if isinstance(value, str):
            return self.words(value)
        if isinstance(value, Mapping):
            return {name: self.reworded(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.reworded(part) for part in value]
        return value

    def repairs(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """A comparison of repairs without slices that may not be shown."""
        n = table["test_rows"]

        def kept(row: Mapping[str, Any]) -> dict[str, Any]:
            part = row["slice"]
            return {**row, "slice": part if part is not None and self.allows(part, n) else None}

        found: dict[str, Any] = self.reworded(
            {**table, "recalibrations": list(map(kept, table["recalibrations"]))}
        )
        return found


def suppressed(found: Mapping[str, Any], min_cell: int = MIN_CELL) -> tuple[dict[str, Any], int]:
    """Leave out of an audit's dict what fewer than `min_cell` rows stand behind.

    Groups, slices, bins of the reliability curve and regions of `confidence`. Where one group
    of a covariate, or one bin, would be all that is left out, totals would give it away, so
    another goes, too: the smallest that no slice names. A slice that leaves out fewer rows than
    that is as telling as one that holds them. Names of groups that are left out are taken out of
    sentences as well. The key `suppressed` says how many of each; `withheld` of the slices, how
    many confirmed ones.

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
    disclosure = Disclosure.of(found, min_cell)
    kept, counts = dict(found), {"groups": 0, "slices": 0, "bins": 0, "regions": 0}
    diagnosis, least = dict(found["diagnosis"]), disclosure.least
    if diagnosis["groups"] is not None:
        table = diagnosis["groups"]
        shown = [group for group in table["groups"] if group["name"] not in disclosure.hidden]
        diagnosis["groups"] = {**table, "groups": shown}
        counts["groups"] = len(table["groups"]) - len(shown)
    diagnosis["slices"], counts["slices"] = _slices(diagnosis["slices"], disclosure)
    kept["diagnosis"] = diagnosis
    kept["reliance"], counts["bins"] = _bins(found["reliance"], least)
    kept["confidence"], counts["regions"] = _regions(found["confidence"], disclosure.hidden, least)
    tasks = kept.pop("tasks")  # in the user's own words
    kept = disclosure.reworded(kept)
    return {**kept, "tasks": tasks, "suppressed": {"min_cell": least, **counts}}, sum(
        counts.values()
    )


def too_few(rows: Sequence[int], least: int, needed: Container[int] = ()) -> set[int]:
    """Positions to leave out of parts that add up to a known total; `needed` ones if need be.

    >>> sorted(too_few([400, 3, 60], 10)), sorted(too_few([400, 3, 4], 10)), too_few([400], 10)
    ([1, 2], [1, 2], set())
    >>> sorted(too_few([400, 3, 60], 10, needed={2}))
    [0, 1]
    """
    few = {k for k, number in enumerate(rows) if number < least}
    if len(few) == 1 and len(rows) > 1:  # the total less the others would tell it
        others = [k for k in range(len(rows)) if k not in few]
        few.add(min(others, key=lambda k: (k in needed, rows[k])))
    return few


def _hidden(
    groups: Sequence[Mapping[str, Any]], names: Sequence[str], least: int, told: set[str]
) -> frozenset[str]:
    """Groups to leave out, covariate by covariate."""
    by_covariate: dict[str, list[Mapping[str, Any]]] = {}
    for group in groups:
        by_covariate.setdefault(covariate_of(group["name"], names), []).append(group)
    found: set[str] = set()
    for own in by_covariate.values():
        needed = {k for k, group in enumerate(own) if group["name"] in told}
        few = too_few([group["rows"] for group in own], least, needed)
        found |= {own[k]["name"] for k in few}
    return frozenset(found)


@lru_cache(maxsize=8)
def _any_of(names: frozenset[str]) -> re.Pattern[str] | None:
    """Any of these names, the longest that fits: "White British" is not "White"."""
    forms = names | {name.replace(" = ", " ", 1) for name in names}
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    if not longest_first:
        return None
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w|\.\d)")


def covariate_of(group: str, names: Sequence[str]) -> str:
    """The covariate of a group, from its name.

    >>> covariate_of("age group = young", ["age", "age group"])
    'age group'
    """
    fitting = [name for name in names if group.startswith((f"{name} = ", f"{name} missing"))]
    return max(fitting, key=len, default="")


def _slices(table: Mapping[str, Any], disclosure: Disclosure) -> tuple[dict[str, Any], int]:
    shown = [part for part in table["slices"] if disclosure.allows(part, table["n"])]
    confirmed = [part for part in table["slices"] if _is_confirmed(part, table["alpha"])]
    withheld = sum(part not in shown for part in confirmed)
    return {**table, "slices": shown, "withheld": withheld}, len(table["slices"]) - len(shown)


def _is_confirmed(part: Mapping[str, Any], alpha: float) -> bool:
    return part["pvalue"] is not None and part["pvalue"] <= alpha


def _bins(reliance: Mapping[str, Any], least: int) -> tuple[dict[str, Any], int]:
    curve = reliance["curve"]
    few = too_few(curve["rows"], least)
    shown = {
        name: [value for k, value in enumerate(values) if k not in few]
        for name, values in curve.items()
    }
    return {**reliance, "curve": shown}, len(few)


def _regions(
    confidence: Mapping[str, Any], hidden: frozenset[str], least: int
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
