"""Pieces of studies/pages/reference.json: ours against other packages'."""

from __future__ import annotations

from typing import Any

from quoting.kit import Results, Rows, piece, share, table

TO_ROUNDING = 1e-8
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


def compared(rows: Rows) -> str:
    """A table of numbers, and what is to be said about them."""
    columns = {"what": str, "package": str, "data": str, "ours": digits, "theirs": digits}
    columns |= {"difference": apart, "relative": apart}
    told = table([by(row) for row in rows], columns, HEADS)
    said: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["note"]:
            said.setdefault(row["note"], {})[f"{row['what']} ({row['package']})"] = None
    notes = "\n".join(f"- *{'; '.join(names)}*: {note}." for note, names in said.items())
    return f"{told}\n\n{notes}" if notes else told


def equal(found: Results, topic: str) -> str:
    """The numbers of a topic that should be the same."""
    return compared(
        [row for row in rows_of(found) if row["topic"] == topic and row["within"] is not None]
    )


@piece("reference", "scores")
def scores(found: Results) -> str:
    return equal(found, "scores")


@piece("reference", "validation")
def validation(found: Results) -> str:
    return equal(found, "validation")


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
    return compared([row for row in rows_of(found) if row["within"] is None])


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
    judged = [row for row in rows_of(found) if row["within"] is not None]
    return f"{sum(row['relative'] <= TO_ROUNDING for row in judged)} of {len(judged)}"


@piece("reference", "rejections")
def rejections(found: Results) -> str:
    heads = {"right": "rejects the calibrated model", "wrong": "rejects the miscalibrated one"}
    columns = {"test": str, "given": str, "right": share, "wrong": share}
    return table(found["tables"]["rejections"]["rows"], columns, heads)
