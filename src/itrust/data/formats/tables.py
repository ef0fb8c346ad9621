"""Files that hold several tables: Excel's workbooks, SQLite's and DuckDB's databases.

Databases are opened for reading only, and names of tables and columns are always quoted.
"""

from __future__ import annotations

import re
import sqlite3
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from itrust._core import InputError, free_memory, listed
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    SeveralTables,
    in_bytes,
    optional_package,
    refuse_lack_of,
    refused,
    room_for,
    unreadable,
)

ZIP, BLOCK_BYTES = b"PK\x03\x04", 2**20
PLACE, PLACE_BYTES = re.compile(rb"""\sr=["']([A-Z]{0,3})([0-9]{1,7})["']"""), 16  # of a cell
CELL_BYTES = 32  # that the reader keeps for every place between the first and the last cell
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,  # a compression that is not known here
    RuntimeError,  # a part that is encrypted
)
PANIC = "PanicException"  # of Rust; it is no Exception, and nobody can import it
NOTHING = pa.array(pa.csv.ConvertOptions().null_values, pa.string())  # as in a text file
DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
MAX_VALUE_BYTES = 2**26
ROW_NUMBERS = ("rowid", "_rowid_", "oid")  # what SQLite calls them, unless columns have the name


@dataclass(frozen=True)
class Sheet:
    """The rows of a sheet, whose first row holds the names of the columns.

    `others` are the other sheets, `nameless` the letters of columns with values but no name.
    """

    name: str
    rows: pa.Table
    others: tuple[str, ...]
    nameless: tuple[str, ...]


class Excel(SeveralTables):
    """A workbook, read with fastexcel: its first visible sheet, or the one that is named."""

    title, endings, noun = "Excel", (".xlsx", ".xlsm", ".xlsb", ".xls"), "sheet"
    magic = (ZIP, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From all rows: a column has the type that all of its cells can have."""
        schema = self._sheet(path).rows.schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Parts of the sheet, which is in memory as a whole."""
        self.schema(part.path, names)
        yield from self._sheet(part.path).rows.select(names).to_batches(BATCH_ROWS)

    def about_rows(self, path: Path) -> float | None:
        """Of the sheet in memory."""
        return float(self._sheet(path).rows.num_rows)

    def notes(self, path: Path) -> list[str]:
        """Which sheet was taken, and what of it was left out."""
        sheet, (file, named) = self._sheet(path), self.split(path)
        notes = []
        if sheet.others and named is None:
            notes.append(
                f"{file.name}: reading the sheet {sheet.name!r}; the others are "
                f"{listed(sheet.others)} (name one as {file.name}::{sheet.others[0]})"
            )
        if sheet.nameless:
            letters = ", ".join(sheet.nameless)
            notes.append(f"{file.name}: columns without a name are left out: {letters}")
        return notes

    def _sheet(self, path: Path) -> Sheet:
        file, name = self.split(path)
        state = file.stat()
        return _read_sheet(self, file, name, (state.st_mtime_ns, state.st_size))


# A workbook is read whole, and an audit asks for its columns several times.
@lru_cache(maxsize=1)
def _read_sheet(kind: Excel, file: Path, name: str | None, _state: tuple[int, int]) -> Sheet:
    package = optional_package("fastexcel", kind, "excel", file)
    kind.refuse_other_start(file)
    _refuse_damaged_parts(file)
    try:
        book = package.read_excel(file)
        if not book.sheet_names:
            raise refused(file, "{file} holds no sheet; is it whole?")
        if name is not None:
            kind.refuse_lack_of_table(name, book.sheet_names, file)
        return _sheet_of(package, book, name or _first_visible(book), file)
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
                    raise unreadable(
                        file,
                        f"a sheet has {last} rows",
                        "is it whole, and no cell far away from the others?",
                    )
    except InputError:  # which is a ValueError, and has its sentence
        raise
    except DAMAGE as error:
        raise unreadable(file, error) from None


def _number_of(letters: bytes) -> int:
    """The number of a column, from 1.

    >>> [_number_of(letters) for letters in (b"A", b"Z", b"AA", b"XFD")]
    [1, 26, 27, 16384]
    """
    return sum((letter - 64) * 26**place for place, letter in enumerate(reversed(letters)))


def _letters(number: int) -> str:
    """The name of a column in a sheet, of its number from 0.

    >>> [_letters(number) for number in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    before, last = divmod(number, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)


def _first_visible(book: Any) -> str:
    names: list[str] = book.sheet_names
    visible = (name for name in names if book.load_sheet(name, n_rows=0).visible == "visible")
    return next(visible, names[0])


def _sheet_of(package: Any, book: Any, name: str, file: Path) -> Sheet:
    others = tuple(other for other in book.sheet_names if other != name)
    head = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string").to_arrow()
    titles = [(column[0].as_py() or "").strip() for column in head.columns]
    if not any(titles):
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
    return Sheet(name, rows, others, tuple(nameless))


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


class Database(SeveralTables):
    """A database: its only table, or the one that is named."""

    @abstractmethod
    def tables(self, connection: Any) -> tuple[list[str], list[str]]:
        """Names of the tables to choose from by themselves, and of all that can be named."""

    def chosen(self, connection: Any, path: Path) -> str:
        """The table that a path means."""
        file, name = self.split(path)
        tables, known = self.tables(connection)
        if name is not None:
            self.refuse_lack_of_table(name, known, file)
            return name
        if len(tables) != 1:
            several = "{file} holds several tables, {tables}; name one of them, as {example}"
            example = f"{file.name}::{(tables or [''])[0]}"
            sentence = several if tables else "{file} holds no table"
            raise refused(file, sentence, tables=listed(tables), example=example)
        return tables[0]


class Sqlite(Database):
    """SQLite, where every value has a type of its own; a column has one that fits all of them."""

    title, endings = "SQLite", (".sqlite", ".sqlite3", ".db")
    named_only = (".db",)  # of many programs, and most hold no data of their users
    magic = (b"SQLite format 3\0",)
    beside = ("-wal",)

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From all values of the table, in one pass."""
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

    def tables(self, connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
        """Tables, or views where there is no table; both can be named."""
        known = connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        ).fetchall()
        names = [name for _, name in known]
        return [name for kind, name in known if kind == "table"] or names, names

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
    """A name as SQL takes it, whatever it holds.

    >>> print(quoted('a"; DROP TABLE b; --'))
    "a""; DROP TABLE b; --"
    """
    return '"' + name.replace('"', '""') + '"'


def _declared_types(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """The columns with the types that they were declared with."""
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
    """Values of a column that may mix types, as one type."""
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_binary(kind):
        return pa.array([value if isinstance(value, bytes) else None for value in values], kind)
    if pa.types.is_string(kind) or pa.types.is_floating(kind):
        python = str if pa.types.is_string(kind) else float
        return pa.array([None if value is None else python(value) for value in values], kind)
    return pa.array(values, kind)


class Duckdb(Database):
    """DuckDB; views are left out, for their rows need not come in the same order twice."""

    title, endings = "DuckDB", (".duckdb",)
    beside = (".wal",)
    has_categories = True

    def begins(self, head: bytes) -> bool:
        """Behind a checksum."""
        return head[8:12] == b"DUCK"

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """That of the table."""
        with self._opened(path) as connection:
            rows = connection.sql(f"SELECT * FROM {quoted(self.chosen(connection, path))} LIMIT 0")
            schema = pa.RecordBatchReader.from_stream(rows).schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows in the order in which they were inserted."""
        self.schema(part.path, names)
        with self._opened(part.path) as connection:
            table = quoted(self.chosen(connection, part.path))
            rows = connection.sql(f"SELECT {', '.join(map(quoted, names))} FROM {table}")
            for batch in pa.RecordBatchReader.from_stream(rows):
                yield from pa.Table.from_batches([batch]).to_batches(BATCH_ROWS)

    def tables(self, connection: Any) -> tuple[list[str], list[str]]:
        """Those of the schema `main`."""
        rows = connection.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND table_schema = 'main' ORDER BY table_name"
        ).fetchall()
        names = [name for (name,) in rows]
        return names, names

    @contextmanager
    def _opened(self, path: Path) -> Iterator[Any]:
        file, _ = self.split(path)
        package = optional_package("duckdb", self, "duckdb", file)
        self.refuse_other_start(file)
        try:
            with closing(package.connect(str(file), read_only=True)) as connection:
                yield connection
        except package.Error as error:
            raise unreadable(path, error) from None


FORMATS: tuple[Format, ...] = (Excel(), Sqlite(), Duckdb())
