"""How a text file is written: what separates columns, decimals, dates; as told, or as it looks."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from itrust._core import InputError, Setting, checked_choice, in_door_words, shown_name

HEAD_LINES = 2_000
HEAD_BYTES = 2**20
SEPARATORS = (",", ";", "\t", "|")
NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
UNFIT = "\"'.\r\n\0"  # to separate columns
SPELT = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
QUOTED = re.compile(r'"[^"]*"')
COMMA_NUMBER = re.compile(r"[-+]?\d+,\d+")
POINT_NUMBER = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")
DATE = re.compile(r"(\d\d?)([./-])(\d\d?)\2(\d{4}|\d\d)")

DateOrder = Literal["dmy", "mdy"]


@dataclass(frozen=True)
class TextForm:
    r"""How text files are written; what is not said is seen from the first lines of each file.

    Examples
    --------
    >>> TextForm(separator="tab").separator, TextForm(dates="dmy").dates
    ('\t', 'dmy')
    """

    separator: str | None = None
    decimal: str | None = None
    dates: DateOrder | None = None
    na_values: tuple[Any, ...] = ()
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator is not None:
            given = NAMES.get(self.separator, self.separator)
            if len(given) != 1 or given.isalnum() or not given.isascii() or given in UNFIT:
                raise InputError(
                    "{argument} takes one ASCII sign, or tab, not {value}",
                    argument="sep",
                    value=self.separator,
                )
            object.__setattr__(self, "separator", given)
        if self.decimal is not None:
            checked_choice(self.decimal, "decimal", (".", ","))
        if self.dates is not None:
            checked_choice(self.dates, "dates", get_args(DateOrder))
        if self.separator is not None and self.separator == self.decimal:
            raise InputError(
                "{argument} and {other} cannot both be {value}",
                argument="decimal",
                value=self.decimal,
                details={"other": Setting("sep")},
            )


AS_SEEN = TextForm()


@dataclass(frozen=True)
class Dialect:
    """How one file is written."""

    separator: str
    decimal: str = "."
    dates: tuple[str, ...] = ()
    order: DateOrder | None = None
    unclear: tuple[str, ...] = ()
    has_rows: bool = True

    def notes(self, usual: str, form: TextForm) -> list[str]:
        """What was seen and not told."""
        said = []
        if form.separator is None and self.separator != usual:
            cure = in_door_words(Setting("sep", ...))
            said.append(f"columns are separated by {SPELT[self.separator]} ({cure} says otherwise)")
        if form.decimal is None and self.decimal == ",":
            cure = in_door_words(Setting("decimal", "."))
            said.append(f"decimals are written with a comma ({cure} says otherwise)")
        if form.dates is None and self.order is not None:
            first, other = ("day", "mdy") if self.order == "dmy" else ("month", "dmy")
            cure = in_door_words(Setting("dates", other))
            said.append(f"dates are read with the {first} first ({cure} says otherwise)")
        if self.unclear:
            cures = [in_door_words(Setting("dates", order)) for order in get_args(DateOrder)]
            names = ", ".join(map(shown_name, self.unclear))
            said.append(
                f"dates of {names} may have the day or the month first, so they are read as text; "
                f"say {cures[0]} or {cures[1]}"
            )
        return said


def dialect_of(path: Path, usual: str, form: TextForm) -> Dialect:
    """How a file is written: as the user says, else as its first lines look."""
    place = path.stat()
    seen = replace(form, na_values=(), texts=())
    return _dialect_of(path, usual, seen, (place.st_mtime_ns, place.st_size))


@lru_cache(maxsize=64)
def _dialect_of(path: Path, usual: str, form: TextForm, _state: tuple[int, int]) -> Dialect:
    lines = _first_lines(path)
    header = next((line for line in lines if line.strip()), "")
    separator = form.separator or _separator(header, usual)
    rows = [cells for cells in _cells(lines, separator) if cells]
    names, cells = (rows[0], rows[1:]) if rows else ([], [])
    columns = [
        [row[k].strip() for row in cells if k < len(row) and row[k].strip()]
        for k in range(len(names))
    ]
    decimal = form.decimal or _decimal(columns, separator)
    by_column = {name: _orders(column) for name, column in zip(names, columns, strict=True)}
    dated = {name: found for name, found in by_column.items() if found is not None}
    known = {order for _, _, order in dated.values() if order is not None}
    order = form.dates or (next(iter(known)) if len(known) == 1 else None)
    shapes = {(sign, year) for sign, year, _ in dated.values()}
    unclear = tuple(dated) if order is None else ()
    return Dialect(
        separator,
        decimal,
        tuple(_strptime(order, *shape) for shape in sorted(shapes)) if order else (),
        order if dated else None,
        unclear,
        has_rows=bool(cells),
    )


def _first_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if packed else open
    try:
        with opener(path, "rb") as raw:
            head = raw.read(HEAD_BYTES).decode("utf-8-sig", "replace")
    except (OSError, EOFError, zlib.error):
        return []  # the reader says what is wrong with it
    lines = head.splitlines()
    return list(islice(lines if len(head) < HEAD_BYTES else lines[:-1], HEAD_LINES))


def _separator(header: str, usual: str) -> str:
    bare = QUOTED.sub("", header)
    counts = {sign: bare.count(sign) for sign in SEPARATORS}
    most = max(counts.values())
    return usual if counts[usual] == most else max(counts, key=lambda sign: counts[sign])


def _cells(lines: Sequence[str], separator: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO("\n".join(lines)), delimiter=separator)
    except csv.Error:
        return


def _decimal(columns: Sequence[Sequence[str]], separator: str) -> str:
    """A comma where columns hold such numbers, whole ones at most beside them, and no points."""
    if separator == ",":
        return "."
    with_comma = any(_all_numbers(column, COMMA_NUMBER) for column in columns)
    with_point = any(_all_numbers(column, POINT_NUMBER) for column in columns)
    return "," if with_comma and not with_point else "."


def _all_numbers(column: Sequence[str], form: re.Pattern[str]) -> bool:
    """Whether most cells are numbers of a form, and one at least has a decimal sign."""
    with_sign = sum(bool(form.fullmatch(cell)) for cell in column)
    whole = sum(cell.lstrip("+-").isdigit() for cell in column)
    return with_sign > 0 and with_sign + whole >= 0.8 * len(column)


def _orders(column: Sequence[str]) -> tuple[str, str, DateOrder | None] | None:
    """Sign, year and order of dates; no order where they may be read either way; None: no dates."""
    found = [match for cell in column if (match := DATE.fullmatch(cell))]
    if not column or len(found) < len(column):
        return None
    sign, year = found[0][2], "y" if all(len(match[4]) == 2 for match in found) else "Y"
    if sign == "." or any(int(match[1]) > 12 for match in found):
        return sign, year, "dmy"
    return sign, year, "mdy" if any(int(match[3]) > 12 for match in found) else None


def _strptime(order: DateOrder, sign: str, year: str) -> str:
    parts = ["%d", "%m"] if order == "dmy" else ["%m", "%d"]
    return sign.join([*parts, f"%{year}"])
