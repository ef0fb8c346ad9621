"""Files of statistics packages: Stata and SPSS, read with pyreadstat.

Codes stay numbers; what they mean is in `value_labels`. Missing values of any kind (Stata's `.`
and `.a` to `.z`, SPSS's system and user-missing ones, empty text) are null.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from itrust._core import AnyArray, FloatArray
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    no_date,
    optional_package,
    refuse_lack_of,
    refused,
    unreadable,
)

OPENING, CLOSING = b"<stata_dta>", b"</stata_dta>"
CELL_BYTES, MAX_BYTES = 64, 2**28  # of a value at least, as Python holds it; of rows read at once
FIRST_DAY, LAST_DAY = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")


class Statistical(Format):
    """Rows of a statistics package, some ten thousand at a time."""

    extra: ClassVar[str]
    reader: ClassVar[str]
    is_written = False

    @abstractmethod
    def time_unit(self, display: str) -> str | None:
        """What numbers that are displayed so count, if they are dates."""

    @abstractmethod
    def times(self, numbers: FloatArray, unit: str) -> AnyArray:
        """Numbers as dates (datetime64 of days or microseconds)."""

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From the file's head."""
        about = self._about(path)
        if None in about.column_names:
            raise refused(path, "{file} has columns without a name; is it whole?")
        refuse_lack_of(names, list(about.column_names), path)
        return pa.schema([(name, self._type(about, name)) for name in about.column_names])

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Read a number of rows, then the next."""
        schema, about = self.schema(part.path, names), self._about(part.path)
        first = 0
        most = rows = _rows_at_once(about, names)
        while rows == most:
            columns, _ = self._read(part.path, usecols=names, row_offset=first, row_limit=most)
            rows = len(next(iter(columns.values()), ()))
            first += rows
            arrays = [
                self._array(columns[name], schema.field(name), self._unit(about, name), part.path)
                for name in names
            ]
            if rows:
                yield pa.RecordBatch.from_arrays(arrays, names=names)

    def about_rows(self, path: Path) -> float | None:
        """From the file's head."""
        rows = self._about(path).number_rows
        return None if rows is None else float(rows)

    def value_labels(self, path: Path) -> dict[str, dict[Any, str]]:
        """What codes mean, without those that stand for a missing value."""
        about = self._about(path, user_missing=True)
        found: dict[str, dict[Any, str]] = {}
        for name, labels in about.variable_value_labels.items():
            is_text = about.readstat_variable_types[name] == "string"
            if self._unit(about, name) is None:
                ranges = about.missing_ranges.get(name, [])
                found[name] = {
                    _whole(code): text
                    for code, text in labels.items()
                    if isinstance(code, str) == is_text  # a letter is one of .a to .z
                    and not any(one["lo"] <= code <= one["hi"] for one in ranges)
                }
        return {name: labels for name, labels in found.items() if labels}

    def _about(self, path: Path, *, user_missing: bool = False) -> Any:
        """Names, types and labels of the columns."""
        return self._read(path, metadataonly=True, user_missing=user_missing)[1]

    def _read(self, path: Path, **settings: Any) -> tuple[dict[str, list[Any]], Any]:
        package = optional_package("pyreadstat", self, self.extra, path)
        self.refuse_other_start(path)
        read = getattr(package, self.reader)
        try:
            found: tuple[dict[str, list[Any]], Any] = read(
                path, output_format="dict", disable_datetime_conversion=True, **settings
            )
        except (UnicodeDecodeError, package.ReadstatError, package.PyreadstatError) as error:
            if isinstance(error, UnicodeDecodeError) or "encoding" in str(error):
                problem = "text that is not in the encoding that the file names"
                raise refused(path, f"{{file}} has {problem}; save it as UTF-8") from None
            raise unreadable(path, error) from None
        return found

    def _unit(self, about: Any, name: str) -> str | None:
        return self.time_unit(about.original_variable_types[name] or "")

    def _type(self, about: Any, name: str) -> pa.DataType:
        stored = about.readstat_variable_types[name]
        if stored.startswith("string"):
            return pa.string()
        unit = self._unit(about, name)
        if unit is not None:
            example = self.times(np.zeros(0), unit)
            return pa.date32() if example.dtype == "datetime64[D]" else pa.timestamp("us")
        return pa.int64() if stored.startswith("int") else pa.float64()

    def _array(self, values: list[Any], field: pa.Field, unit: str | None, path: Path) -> pa.Array:
        """Values as Arrow holds them."""
        if pa.types.is_string(field.type):
            return pa.array([text or None for text in values], field.type)
        if unit is None:
            return pa.array(values, field.type)
        numbers = np.array(values, dtype=np.float64)
        missing = np.isnan(numbers)
        times = self.times(np.where(missing, 0.0, numbers), unit)
        odd = ~missing & ((times < FIRST_DAY) | (times > LAST_DAY))
        if odd.any():
            raise no_date(float(numbers[odd][0]), field.name, path)
        return pa.array(times, field.type, mask=missing)


class Stata(Statistical):
    """Stata's .dta, of any version."""

    title, endings, extra, reader = "Stata", (".dta",), "stata", "read_dta"
    # Versions 102 to 115 begin with their number, the byte order and a 1.
    magic = (OPENING, *(bytes([v, order, 1]) for v in range(102, 116) for order in (1, 2)))

    def refuse_other_start(self, path: Path) -> None:
        """Raise for a file that was cut off, too: labels of values stand at the end."""
        super().refuse_other_start(path)
        with path.open("rb") as file:
            marked = file.read(len(OPENING)) == OPENING
            file.seek(-min(len(CLOSING), path.stat().st_size), os.SEEK_END)
            if marked and file.read() != CLOSING:
                raise refused(path, "{file} has lost its end; is it whole?")

    def time_unit(self, display: str) -> str | None:
        """The letter of formats such as %td or %tcHH:MM; years (%ty) are numbers."""
        found = re.match(r"%-?(?:t([cCdwmqh])|(d))", display)
        return (found[1] or found[2]) if found else None

    def times(self, numbers: FloatArray, unit: str) -> AnyArray:
        """Counted from 1960; weeks, months, quarters and half-years are their first day."""
        if unit in "cC":  # %tC counts up to 27 leap seconds, which no calendar here knows
            return np.datetime64("1960-01-01", "us") + _steps(numbers * 1000, "us")
        whole = np.floor(numbers)
        if unit == "d":
            return np.datetime64("1960-01-01") + _steps(whole, "D")
        if unit == "w":  # every year has 52
            years = np.datetime64("1960") + _steps(whole // 52, "Y")
            return years.astype("datetime64[D]") + _steps(whole % 52 * 7, "D")
        months = {"m": 1, "q": 3, "h": 6}[unit]
        return (np.datetime64("1960-01") + _steps(whole * months, "M")).astype("datetime64[D]")


class Spss(Statistical):
    """SPSS's .sav, and its compressed form."""

    title, endings, extra, reader = "SPSS", (".sav", ".zsav"), "spss", "read_sav"
    magic = (b"$FL2", b"$FL3")

    def time_unit(self, display: str) -> str | None:
        """Days or microseconds for dates; times of day and lengths of time are seconds."""
        name = display.rstrip("0123456789.")
        if name in ("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"):
            return "D"
        return "us" if name in ("DATETIME", "YMDHMS") else None

    def times(self, numbers: FloatArray, unit: str) -> AnyArray:
        """Seconds since the Gregorian calendar."""
        if unit == "D":
            return np.datetime64("1582-10-14") + _steps(np.floor(numbers / 86_400), "D")
        return np.datetime64("1582-10-14", "us") + _steps(numbers * 1e6, "us")


def _steps(numbers: FloatArray, unit: str) -> AnyArray:
    """Numbers as lengths of time; what is far beyond the calendar stays beyond it."""
    farthest = 4e6 * {"D": 1, "M": 1, "Y": 1}.get(unit, 86_400_000_000)
    return np.round(np.clip(numbers, -farthest, farthest)).astype(f"timedelta64[{unit}]")


def _rows_at_once(about: Any, names: Sequence[str]) -> int:
    """How many rows take little memory, however wide their texts are."""
    width = sum(max(about.variable_storage_width.get(name, 0), CELL_BYTES) for name in names)
    return max(1, min(BATCH_ROWS, MAX_BYTES // max(int(width), 1)))


def _whole(code: Any) -> Any:
    """1.0 as 1: codes are counted in whole numbers."""
    return int(code) if isinstance(code, float) and code.is_integer() else code


FORMATS: tuple[Format, ...] = (Stata(), Spss())
