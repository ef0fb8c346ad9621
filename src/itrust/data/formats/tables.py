"""Files of other programs: Excel's workbooks, SQLite's databases, Stata's and SPSS's.

Databases are opened for reading only, and names of tables and columns are always quoted. Codes of
statistics packages stay numbers; what they mean is in `value_labels`. Missing values of any kind
(Stata's `.` and `.a` to `.z`, SPSS's system and user-missing ones, empty text) are null.
"""

from __future__ import annotations

import os
import re
import sqlite3
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from itrust._core import AnyArray, FloatArray, InputError, free_memory, listed
from itrust.data.encoding import whole
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    SeveralTables,
    in_bytes,
    no_date,
    optional_package,
    refuse_lack_of,
    refused,
    room_for,
    unreadable,
)

ZIP, BLOCK_BYTES = b"PK\x03\x04", 2**20
PLACE, PLACE_BYTES = re.compile(rb"""\sr=["']([A-Z]{0,3})([0-9]{1,7})["']"""), 16  # of a cell
CELL_BYTES = 32  # that the reader keeps for every place between the first and the last cell
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
PANIC = "PanicException"  # of Rust; it is no Exception, and nobody can import it
NOTHING = pa.array(pa.csv.ConvertOptions().null_values, pa.string())  # as in a text file
DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
MAX_VALUE_BYTES = 2**26
ROW_NUMBERS = ("rowid", "_rowid_", "oid")  # what SQLite calls them, unless columns have the name
OPENING, CLOSING = b"<stata_dta>", b"</stata_dta>"
VALUE_BYTES, MAX_BYTES = 64, 2**28  # of a value at least, as Python holds it; of rows read at once
FIRST_DAY, LAST_DAY = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")


class Excel(SeveralTables):
    """A workbook, read with fastexcel: its first visible sheet, or the one that is named."""

    title, endings, noun = "Excel", (".xlsx", ".xlsm", ".xlsb", ".xls"), "sheet"
    magic = (ZIP, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From all rows: a column has the type that all of its cells can have."""
        schema = self._sheet(path)[0].schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        self.schema(part.path, names)
        yield from self._sheet(part.path)[0].select(names).to_batches(BATCH_ROWS)

    def about_rows(self, path: Path) -> float | None:
        return float(self._sheet(path)[0].num_rows)

    def notes(self, path: Path) -> list[str]:
        return self._sheet(path)[1]

    def _sheet(self, path: Path) -> tuple[pa.Table, list[str]]:
        """The rows of a sheet, and what a user may not expect of them."""
        file, name = self.split(path)
        state = file.stat()
        return _read_sheet(self, file, name, (state.st_mtime_ns, state.st_size))


# A workbook is read whole, and an audit asks for its columns several times.
@lru_cache(maxsize=1)
def _read_sheet(
    kind: Excel, file: Path, name: str | None, _state: tuple[int, int]
) -> tuple[pa.Table, list[str]]:
    package = optional_package("fastexcel", kind, "excel", file)
    kind.refuse_other_start(file)
    _refuse_damaged_parts(file)
    try:
        book = package.read_excel(file)
        if not book.sheet_names:
            raise refused(file, "{file} holds no sheet; is it whole?")
        if name is not None:
            kind.refuse_lack_of_table(name, book.sheet_names, file)
        names: list[str] = book.sheet_names
        seen = (sheet for sheet in names if book.load_sheet(sheet, n_rows=0).visible == "visible")
        chosen = name or next(seen, names[0])
        rows, notes = _rows_of_sheet(package, book, chosen, file)
        others = [other for other in names if other != chosen]
        if others and name is None:
            told = f"{listed(others)} (name one as {file.name}::{others[0]})"
            notes.insert(0, f"{file.name}: reading the sheet {chosen!r}; the others are {told}")
        return rows, notes
    except package.FastExcelError as error:
        raise unreadable(file, error) from None
    except BaseException as error:
        if type(error).__name__ != PANIC:
            raise
        raise unreadable(file, "its reader gave up on it") from None


def _refuse_damaged_parts(file: Path) -> None:
    """Raise unless the parts of a zipped workbook have their checksums and fit into memory.

    The reader ends the process where memory does not suffice for a cell far away from the others.
    """
    with file.open("rb") as raw:
        if raw.read(len(ZIP)) != ZIP:
            return
    room = room_for()
    try:
        with zipfile.ZipFile(file) as parts:
            for part in parts.infolist():
                tail, columns, last = b"", {b""}, 0
                with parts.open(part) as unpacked:
                    while block := unpacked.read(BLOCK_BYTES):
                        room -= len(block)
                        if room < 0:
                            size = f"the {in_bytes(free_memory())} of memory that are free"
                            raise refused(
                                file,
                                f"{{file}} unpacks to more than {size}; save the sheet as .csv",
                            )
                        places = PLACE.findall(tail + block)
                        columns.update(letters for letters, _ in places)
                        last = max((last, *(int(row) for _, row in places)))
                        tail = block[-PLACE_BYTES:]
                if CELL_BYTES * last * max(map(_number_of, columns)) > room_for():
                    cure = "is it whole, and no cell far away from the others?"
                    raise unreadable(file, f"a sheet has {last} rows", cure)
    except InputError:  # which is a ValueError, and has its sentence
        raise
    except DAMAGE as error:
        raise unreadable(file, error) from None


def _number_of(letters: bytes) -> int:
    """The number of a column from 1: 27 for AA."""
    return sum((letter - 64) * 26**place for place, letter in enumerate(reversed(letters)))


def _letters(number: int) -> str:
    """The letters of a column in a sheet, of its number from 0."""
    before, last = divmod(number, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)


def _rows_of_sheet(package: Any, book: Any, name: str, file: Path) -> tuple[pa.Table, list[str]]:
    """The named columns of a sheet, and what is left out."""
    head = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string").to_arrow()
    titles = [(column[0].as_py() or "").strip() for column in head.columns]
    if not any(titles):
        others = [other for other in book.sheet_names if other != name]
        cure = f"; name another, as {file.name}::{others[0]}" if others else ""
        raise refused(file, "the sheet {value} is empty{cure}", value=name, cure=cure)
    whole: dict[str, Any] = {
        "schema_sample_rows": None,  # every cell has a say in the type of its column
        "skip_whitespace_tail_rows": True,
        "whitespace_as_null": True,
    }
    sheet = book.load_sheet(name, **whole)
    places = [column.absolute_index for column in sheet.available_columns()]
    table = pa.Table.from_batches([sheet.to_arrow()])
    columns = [_tidy(column.combine_chunks()) for column in table.columns]
    nameless = [
        _letters(place)
        for place, title, column in zip(places, titles, columns, strict=True)
        if not title and column.null_count < len(column)
    ]
    named = [at for at, title in enumerate(titles) if title]
    if len(nameless) >= len(named):
        names = f"names {len(named)} of {len(named) + len(nameless)} columns"
        cure = "if it is a title or a merged header, leave one row of names"
        raise refused(file, f"the first row of the sheet {{value}} {names}; {cure}", value=name)
    for at in named:
        if pa.types.is_string(columns[at].type):
            try:
                numbers = columns[at].cast(pa.float64())
                book.load_sheet(name, **whole, use_columns=[at], dtype_coercion="strict")
            except pa.ArrowInvalid:  # words
                continue
            except package.UnsupportedColumnTypeCombinationError:
                columns[at] = numbers  # of which some are kept as text: a mishap, unlike codes
    rows = pa.Table.from_arrays([columns[at] for at in named], [titles[at] for at in named])
    letters = ", ".join(nameless)
    left_out = f"{file.name}: columns without a name are left out: {letters}"
    return rows, [left_out] if nameless else []


def _tidy(column: pa.Array) -> pa.Array:
    """Words for a missing value as such; days where no cell has a time of day."""
    if pa.types.is_string(column.type):
        column = pc.if_else(pc.is_in(column, NOTHING), pa.scalar(None, pa.string()), column)
        return column if column.null_count < len(column) else pa.nulls(len(column))
    if pa.types.is_timestamp(column.type):
        times = column.cast(pa.timestamp("us"))
        days = times.cast(pa.date32(), safe=False)
        return days if days.cast(pa.timestamp("us")).equals(times) else times
    return column


class Sqlite(SeveralTables):
    """The only table of SQLite, or view where there is no table, or the one that is named.

    Every value has a type of its own; a column has one that fits all of them.
    """

    title, endings = "SQLite", (".sqlite", ".sqlite3", ".db")
    named_only = (".db",)  # of many programs, and most hold no data of their users
    magic = (b"SQLite format 3\0",)
    beside = ("-wal",)
    listing = (
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    )

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        with self._opened(path) as connection:
            table = self.chosen(connection, path)
            declared = _declared_types(connection, table)
            refuse_lack_of(names, list(declared), path)
            wanted = list(names or declared)
            asked = ", ".join(_kinds_asked(quoted(name), declared[name]) for name in wanted)
            kinds = connection.execute(f"SELECT {asked} FROM {quoted(table)}").fetchone()
            return pa.schema(
                [(n, _type(k or "null null")) for n, k in zip(wanted, kinds, strict=True)]
            )

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows in the order in which the table keeps them, whichever columns are asked for."""
        schema = self.schema(part.path, names)
        with self._opened(part.path) as connection:
            table = self.chosen(connection, part.path)
            order = _order(connection, table)
            # Of a view all columns are read: which are asked for may change the order of its rows.
            read = names if order else list(_declared_types(connection, table))
            columns = ", ".join(map(quoted, read))
            rows = connection.execute(f"SELECT {columns} FROM {quoted(table)} {order}")
            while some := rows.fetchmany(BATCH_ROWS):
                values = dict(zip(read, zip(*some, strict=True), strict=True))
                arrays = [_array(values[name], schema.field(name).type) for name in names]
                yield pa.RecordBatch.from_arrays(arrays, names=names)

    def chosen(self, connection: sqlite3.Connection, path: Path) -> str:
        file, name = self.split(path)
        known = connection.execute(self.listing).fetchall()
        names: list[str] = [table for _, table in known]
        tables = [table for kind, table in known if kind == "table"] or names
        if name is not None:
            self.refuse_lack_of_table(name, names, file)
            return name
        if len(tables) != 1:
            several = "{file} holds several tables, {tables}; name one of them, as {example}"
            example = f"{file.name}::{(tables or [''])[0]}"
            sentence = several if tables else "{file} holds no table"
            raise refused(file, sentence, tables=listed(tables), example=example)
        return tables[0]

    @contextmanager
    def _opened(self, path: Path) -> Iterator[sqlite3.Connection]:
        file, _ = self.split(path)
        self.refuse_other_start(file)
        try:
            place = f"{file.resolve().as_uri()}?mode=ro"
            with closing(sqlite3.connect(place, uri=True)) as connection:
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
                (page,) = connection.execute("PRAGMA page_size").fetchone()
                if file.stat().st_size % page:  # rows of the last page would be lost silently
                    raise refused(path, "{file} has lost its end; is it whole?")
                yield connection
        except sqlite3.Error as error:
            if "UTF-8" in str(error):
                sentence = "{file} has text that is not UTF-8; save it as UTF-8"
                raise refused(path, sentence) from None
            raise unreadable(path, error) from None


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def _declared_types(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    about = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    return {name: declared.upper() for name, declared in about}


def _order(connection: sqlite3.Connection, table: str) -> str:
    """What keeps rows in one order; nothing for views and tables that do not number their rows."""
    is_table = "SELECT 1 FROM sqlite_master WHERE name = ? AND type = 'table'"
    columns = {name.lower() for name in _declared_types(connection, table)}
    number = next((name for name in ROW_NUMBERS if name not in columns), None)
    if number is None or not connection.execute(is_table, (table,)).fetchone():
        return ""
    try:
        connection.execute(f"SELECT {number} FROM {quoted(table)} LIMIT 0")
    except sqlite3.OperationalError:
        return ""
    return f"ORDER BY {number}"


def _kinds_asked(column: str, declared: str) -> str:
    """The first and the last kind of values in the order of the alphabet, and which are dates."""
    asked = f"min(typeof({column})) || ' ' || max(typeof({column}))"
    if "DATE" in declared or "TIME" in declared:
        dates = f"min(({column} GLOB '{DATE}*') + ({column} GLOB '{DATE}'))"
        asked += f" || coalesce(' ' || {dates}, '')"
    return asked


def _type(kinds: str) -> pa.DataType:
    """From blob, integer, null, real and text: the first and the last leave no doubt."""
    first, last, *dates = kinds.split()
    if first == "blob":
        return pa.binary()
    if last == "text":
        if first in ("null", "text") and dates in (["1"], ["2"]):
            return pa.timestamp("us") if dates == ["1"] else pa.date32()
        return pa.string()
    if last == "real":
        return pa.float64()
    return pa.int64() if first == "integer" else pa.null()


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_binary(kind):
        return pa.array([value if isinstance(value, bytes) else None for value in values], kind)
    if pa.types.is_string(kind) or pa.types.is_floating(kind):
        python = str if pa.types.is_string(kind) else float
        return pa.array([None if value is None else python(value) for value in values], kind)
    return pa.array(values, kind)


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
        about = self._about(path)
        if None in about.column_names:
            raise refused(path, "{file} has columns without a name; is it whole?")
        refuse_lack_of(names, list(about.column_names), path)
        return pa.schema([(name, self._type(about, name)) for name in about.column_names])

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
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
        rows = self._about(path).number_rows
        return None if rows is None else float(rows)

    def value_labels(self, path: Path) -> dict[str, dict[Any, str]]:
        """What codes mean, without those that stand for a missing value."""
        about = self._about(path, user_missing=True)
        meanings: dict[str, dict[Any, str]] = {}
        for name, labels in about.variable_value_labels.items():
            is_text = about.readstat_variable_types[name] == "string"
            if self._unit(about, name) is None:
                ranges = about.missing_ranges.get(name, [])
                meanings[name] = {
                    whole(code): text
                    for code, text in labels.items()
                    if isinstance(code, str) == is_text  # a letter is one of .a to .z
                    and not any(one["lo"] <= code <= one["hi"] for one in ranges)
                }
        return {name: labels for name, labels in meanings.items() if labels}

    def _about(self, path: Path, *, user_missing: bool = False) -> Any:
        return self._read(path, metadataonly=True, user_missing=user_missing)[1]

    def _read(self, path: Path, **settings: Any) -> tuple[dict[str, list[Any]], Any]:
        package = optional_package("pyreadstat", self, self.extra, path)
        self.refuse_other_start(path)
        read = getattr(package, self.reader)
        try:
            columns, about = read(
                path, output_format="dict", disable_datetime_conversion=True, **settings
            )
        except (UnicodeDecodeError, package.ReadstatError, package.PyreadstatError) as error:
            if isinstance(error, UnicodeDecodeError) or "encoding" in str(error):
                problem = "text that is not in the encoding that the file names"
                raise refused(path, f"{{file}} has {problem}; save it as UTF-8") from None
            raise unreadable(path, error) from None
        return columns, about

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
        if unit == "w":  # every year has 52
            years = np.datetime64("1960") + _steps(whole // 52, "Y")
            return years.astype("datetime64[D]") + _steps(whole % 52 * 7, "D")
        step, length = {"d": ("D", 1), "m": ("M", 1), "q": ("M", 3), "h": ("M", 6)}[unit]
        first: AnyArray = np.array("1960-01-01", f"datetime64[{step}]")
        return (first + _steps(whole * length, step)).astype("datetime64[D]")


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
        if unit == "D":
            return np.datetime64("1582-10-14") + _steps(np.floor(numbers / 86_400), "D")
        return np.datetime64("1582-10-14", "us") + _steps(numbers * 1e6, "us")


def _steps(numbers: FloatArray, unit: str) -> AnyArray:
    """Numbers as lengths of time; what is far beyond the calendar stays beyond it."""
    farthest = 4e6 * {"D": 1, "M": 1, "Y": 1}.get(unit, 86_400_000_000)
    return np.round(np.clip(numbers, -farthest, farthest)).astype(f"timedelta64[{unit}]")


def _rows_at_once(about: Any, names: Sequence[str]) -> int:
    """How many rows take little memory, however wide their texts are."""
    width = sum(max(about.variable_storage_width.get(name, 0), VALUE_BYTES) for name in names)
    return max(1, min(BATCH_ROWS, MAX_BYTES // max(int(width), 1)))
