"""Pieces of docs/studies/reference.json: ours against other packages'."""

from __future__ import annotations

from typing import Any

from quoting.kit import Results, Rows, piece, share, table

HEADS = {"what": "number", "package": "by", "data": "on"}


def rows_of(found: Results) -> Rows:
    return found["tables"]["rows"]["rows"]


def digits(value: float) -> str:
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}", 1) if value < 0 else f"{value:.6g}"


def apart(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"


def by(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the package named as the reader knows it."""
    return {**row, "package": f"{row['package']} {row['version']}"}


def compared(rows: Rows, *others: str) -> str:
    columns = {"what": str, "package": str, "data": str, "ours": digits, "theirs": digits}
    columns |= {"difference": apart, "relative": apart} | dict.fromkeys(others, str)
    return table([by(row) for row in rows], columns, HEADS)


def equal(found: Results, topic: str) -> str:
    """A table of the numbers that should be the same, and what is to be said about them."""
    rows = [r for r in rows_of(found) if r["topic"] == topic and r["within"] is not None]
    said: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["note"]:
            said.setdefault(row["note"], {})[f"{row['what']} ({row['package']})"] = None
    notes = "\n".join(f"- *{'; '.join(names)}*: {note}." for note, names in said.items())
    return f"{compared(rows)}\n\n{notes}" if notes else compared(rows)


@piece("reference", "scores")
def scores(found: Results) -> str:
    return equal(found, "scores")


@piece("reference", "recalibration")
def recalibration(found: Results) -> str:
    return equal(found, "recalibration")


@piece("reference", "surveys")
def surveys(found: Results) -> str:
    return equal(found, "surveys")


@piece("reference", "inference")
def inference(found: Results) -> str:
    return equal(found, "inference")


@piece("reference", "other definitions")
def other_definitions(found: Results) -> str:
    rows = [row for row in rows_of(found) if row["within"] is None]
    return compared(rows, "note").replace("| note |", "| how they differ |", 1)


@piece("reference", "data")
def data(found: Results) -> str:
    used = {row["data"] for row in rows_of(found)}
    told = found["tables"]["rows"]["data"]
    return "\n".join(f"- *{name}*: {told[name]}." for name in told if name in used)


@piece("reference", "how many")
def how_many(found: Results) -> str:
    rows = rows_of(found)
    return f"{len(rows)} comparisons with {len({row['package'] for row in rows})} packages"


@piece("reference", "how many are equal to rounding")
def to_rounding(found: Results) -> str:
    same = [r for r in rows_of(found) if r["within"] is not None and r["relative"] <= 1e-9]
    judged = [r for r in rows_of(found) if r["within"] is not None]
    return f"{len(same)} of {len(judged)}"


@piece("reference", "rejections")
def rejections(found: Results) -> str:
    heads = {"right": "rejects the model that is right", "wrong": "rejects the one that is wrong"}
    columns = {"test": str, "given": str, "right": share, "wrong": share}
    return table(found["tables"]["rejections"]["rows"], columns, heads)
