"""Tables of a database in one file: SQLite with the standard library, DuckDB with its package.

Databases are opened for reading only, and names of tables and columns are always quoted.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from itrust._core import InputError, listed
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    SeveralTables,
    optional_package,
    refuse_lack_of,
    unreadable,
)

DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
MAX_VALUE_BYTES = 2**26
ROW_NUMBERS = ("rowid", "_rowid_", "oid")  # what SQLite calls them, unless columns have the name


class Database(SeveralTables):
    """A database: its only table, or the one that is named."""

    @abstractmethod
    def tables(self, connection: Any) -> tuple[list[str], list[str]]:
        """Names of the tables to choose from by themselves, and of all that can be named."""

    def chosen(self, connection: Any, path: Path) -> str:
        """The table that a path means."""
        file, name = self.split(path)
        own, known = self.tables(connection)
        if name is not None:
            self.refuse_lack_of_table(name, known, file)
            return name
        if len(own) != 1:
            several = "{file} holds several tables, {tables}; name one of them, as {example}"
            raise InputError(
                several if own else "{file} holds no table",
                file=file.name,
                details={"tables": listed(own), "example": f"{file.name}::{(own or [''])[0]}"},
            )
        return own[0]


class Sqlite(Database):
    """SQLite, where every value has a type of its own; a column has one that fits all of them."""

    title, endings = "SQLite", (".sqlite", ".sqlite3", ".db")
    named_only = (".db",)  # of many programs, and most hold no data of their users
    magic = (b"SQLite format 3\0",)
    beside = ("-wal",)

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """From all values of the table."""
        with self._opened(path) as connection:
            table = self.chosen(connection, path)
            declared = _declared_types(connection, table)
            refuse_lack_of(names, list(declared), path)
            wanted = {name: declared[name] for name in names or declared}
            return pa.schema(_types(connection, table, wanted).items())

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
        found = connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        ).fetchall()
        tables = [name for kind, name in found if kind == "table"]
        return tables or [name for _, name in found], [name for _, name in found]

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
                    raise InputError("{file} has lost its end; is it whole?", file=path.name)
                yield connection
        except sqlite3.Error as error:
            if "UTF-8" in str(error):
                raise InputError(
                    "{file} has text that is not UTF-8; save it as UTF-8", file=path.name
                ) from None
            raise unreadable(path, error) from None


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
        found = connection.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND table_schema = 'main' ORDER BY table_name"
        ).fetchall()
        names = [name for (name,) in found]
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


def _types(
    connection: sqlite3.Connection, table: str, declared: dict[str, str]
) -> dict[str, pa.DataType]:
    """A type for every column that all of its values can have, in one pass over the table."""
    asked = ", ".join(_kinds_asked(quoted(name), kind) for name, kind in declared.items())
    found = connection.execute(f"SELECT {asked} FROM {quoted(table)}").fetchone()
    return {name: _type(kinds or "null null") for name, kinds in zip(declared, found, strict=True)}


def _kinds_asked(column: str, declared: str) -> str:
    """The first and the last kind of values in the order of the alphabet, and which are dates."""
    asked = f"min(typeof({column})) || ' ' || max(typeof({column}))"
    if "DATE" in declared or "TIME" in declared:
        asked += (
            f" || coalesce(' ' || min(({column} GLOB '{DATE}*') + ({column} GLOB '{DATE}')), '')"
        )
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
    if pa.types.is_string(kind):
        return pa.array([None if value is None else str(value) for value in values], kind)
    if pa.types.is_binary(kind):
        return pa.array([value if isinstance(value, bytes) else None for value in values], kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], kind)
    return pa.array(values, kind)
