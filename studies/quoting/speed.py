"""Pieces of studies/pages/speed.json, for its page, the comparison and the README.

`make bench` prints; what it printed is written into the file by hand, with the machine.
"""

from __future__ import annotations

from typing import Any

from quoting.kit import Results, Rows, piece, table, where


def rows_of(found: Results, name: str) -> Rows:
    return found["tables"][name]["rows"]


def plain(value: Any) -> str:
    """Texts as they stand, numbers with commas and as many digits as they have."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


@piece("speed", "audit")
def audit(found: Results) -> str:
    rows = rows_of(found, "audit")
    return table(rows, dict.fromkeys(rows[0], plain))


@piece("speed", "rows")
def one_kernel(found: Results) -> str:
    rows = rows_of(found, "rows")
    return table(rows, dict.fromkeys(rows[0], plain))


@piece("speed", "dictionary")
def dictionary(found: Results) -> str:
    rows = rows_of(found, "dictionary")
    return table(rows, dict.fromkeys(rows[0], plain))


def seconds(found: Results, name: str, digits: int, /, **wanted: Any) -> str:
    return f"{where(rows_of(found, name), **wanted)['seconds']:.{digits}f} s"


@piece("speed", "one kernel, 8,000 rows")
def kernel_few(found: Results) -> str:
    return seconds(found, "rows", 2, rows=8_000, **{"from": "memory"})


@piece("speed", "plain NumPy, 8,000 rows")
def plain_few(found: Results) -> str:
    return seconds(found, "rows", 0, rows=8_000, **{"from": "plain dense NumPy"})


@piece("speed", "one kernel, a million rows")
def kernel_many(found: Results) -> str:
    return seconds(found, "after", 1, what="one kernel, 500 draws")


@piece("speed", "dictionary, 1,000 rows")
def dictionary_few(found: Results) -> str:
    return seconds(found, "dictionary", 1, rows=1_000)


@piece("speed", "dictionary, a million rows")
def dictionary_many(found: Results) -> str:
    return seconds(found, "after", 1, what="dictionary, 999 draws")


@piece("speed", "audit, 2,000 rows")
def audit_few(found: Results) -> str:
    return seconds(found, "audit", 0, rows=2_000)


@piece("speed", "audit, a million rows")
def audit_many(found: Results) -> str:
    return seconds(found, "audit", 0, rows=1_000_000, **{"from": "memory"})


@piece("speed", "audit, twenty million rows")
def audit_most(found: Results) -> str:
    return f"{where(rows_of(found, 'audit'), rows=20_000_000)['seconds'] / 60:.0f} minutes"


@piece("speed", "memory of twenty million rows")
def audit_memory(found: Results) -> str:
    """Rounded up: it is a promise."""
    megabytes = where(rows_of(found, "audit"), rows=20_000_000)["MB"]
    return f"{-(-megabytes // 100) / 10:.1f} GB"
