"""What every saved recalibration holds.

A file is data and never code. It is read as strict JSON (`json_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from itrust._core import (
    MAX_JSON_BYTES,
    ByName,
    Code,
    EntryShape,
    Flag,
    FloatArray,
    ListOf,
    ListWith,
    Made,
    Maybe,
    Number,
    Numbers,
    OneWord,
    Record,
    SavedLevel,
    Text,
    Whole,
    shown,
    tuple_of,
    unfit,
)

SCHEMA = "itrust-recalibration/3"
MAX_BYTES = MAX_JSON_BYTES
MAX_ROWS = 10**15
KINDS = ("number", "boolean", "date", "category")
COUNT, SHARE, POSITIVE = Whole(1, 10**9), Number(0, 1, above=True), Number(0, above=True)
PROBABILITY, EDGE = Number(0, 1), Number(0, 0.5, above=True)
FLAG = Flag()
CURE = "fit again and write it with {}", Code("save", "--save")
CLASSES = tuple_of(SavedLevel(), at_least=2, at_most=100_000)
POSITION = Whole(0, 10**9)
# Entries of a file and the attributes that they are of.
ATTRIBUTES = {
    "columns": "columns_",
    "missing_levels": "missing_levels_",
    "seen_levels": "seen_levels_",
    "meanings": "meanings_",
    "prob": "prob_",
    "rows": "n_rows_",
    "available_rows": "n_available_",
}


def matrix_of(each: Number) -> Made:
    """A list of equally long lists of numbers; others fit nothing, and become an empty matrix."""

    def made(rows: list[FloatArray]) -> FloatArray:
        return np.array(rows) if len({row.size for row in rows}) == 1 else np.empty((0, 0))

    return Made(ListOf(Numbers(each)), made, list)


def whole_record(
    method: str, settings: Mapping[str, EntryShape], learned: EntryShape, of_classes: bool
) -> Record:
    """What a file of a method holds."""
    entries: dict[str, EntryShape] = {
        "schema": OneWord((SCHEMA,)),
        "version": Text(),
        "method": OneWord((method,)),
        "settings": Record(settings, frozenset(settings)),
        **({"classes": CLASSES} if of_classes else {}),
        "columns": ByName(OneWord(KINDS)),
        "missing_levels": ByName(Maybe(Text())),
        "seen_levels": ByName(ListOf(SavedLevel())),
        "meanings": ByName(Made(ListOf(ListWith((SavedLevel(), SavedLevel()))), dict, dict.items)),
        "prob": Maybe(Text()),
        "rows": Whole(1, MAX_ROWS),
        "available_rows": Whole(1, MAX_ROWS),
        "learned": learned,
    }
    return Record(entries)


def refuse_contradictions(facts: Mapping[str, Any], place: str, reads_covariates: bool) -> None:
    """Refuse columns that the entries of a file do not agree on."""
    columns = facts["columns"]
    categories = {name for name, kind in columns.items() if kind == "category"}
    if columns and not reads_covariates:
        unfit(f"{place}columns", "must be empty: the method reads no covariate")
    for entry, named in (("missing_levels", set(columns)), ("seen_levels", categories)):
        odd = set(facts[entry]) ^ named
        if odd:
            what = "the columns" if entry == "missing_levels" else "the categories of columns"
            unfit(f"{place}{entry}", f"must have {what}; {shown(min(odd))} is in one of them alone")
    odd = set(facts["meanings"]) - categories
    if odd:
        unfit(f"{place}meanings", f"has {shown(min(odd))}, which is no category of columns")
    if facts["available_rows"] < facts["rows"]:
        unfit(f"{place}available_rows", f"must be at least rows, which is {facts['rows']:,}")
