"""Text with a JSON object a line."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.json

from itrust._core import InputError
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    Put,
    about_lines,
    refuse_lack_of,
    sink,
    unreadable,
)
from itrust.data.formats.soundness import in_bytes

BLOCK_BYTES = 2**23
MAX_LINE_BYTES = 2**26
BOM = b"\xef\xbb\xbf"
MAX_DEPTH = 64
ESCAPED, TEXT = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"')
WITHOUT_BRACKETS = bytes(set(range(256)) - set(b"{}[]\n"))
WITHOUT_STRUCTURE = bytes(set(range(256)) - set(b'{}[]"'))
IN_WORDS = {
    "number": "numbers",
    "string": "text",
    "boolean": "booleans",
    "object": "objects",
    "array": "lists",
}
KINDS = "|".join(IN_WORDS)
OTHER_TYPE = re.compile(rf"Column\(/(.*)\) changed from ({KINDS}) to ({KINDS})")
TWICE = re.compile(r"Column\(/(.*)\) was specified twice")


class JsonLines(Format):
    """Read some megabytes of lines at a time, also gzipped; a field that is absent is missing."""

    title, endings = "JSON lines", (".jsonl", ".ndjson")
    may_be_gzipped = True
    types_last = False

    def begins(self, head: bytes) -> bool:
        """An object comes first."""
        return re.match(rb'\s*\{\s*["}]', head.removeprefix(BOM)) is not None

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """As the first block of the file looks; refuses names of nested values."""
        schema = self._first_schema(path)
        refuse_lack_of(names, schema.names, path)
        for name in names:
            if pa.types.is_nested(schema.field(name).type):
                raise InputError(
                    "column {column} holds lists or objects; write their values as fields of the "
                    "line",
                    file=path.name,
                    column=name,
                )
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """One batch a block."""
        schema = self.schema(part.path, names)
        wanted = pa.schema([schema.field(name) for name in names])
        as_read = pa.schema([_as_read(field) for field in wanted])
        for block in _blocks(part.path):
            rows = _parsed(part.path, block, as_read)
            try:
                rows = rows.cast(wanted)
            except pa.ArrowInvalid as error:
                raise unreadable(part.path, error, "give the column one type") from None
            yield from rows.combine_chunks().to_batches()

    def untouched_schema(self, path: Path, names: list[str]) -> pa.Schema:
        """As the first block looks; a column that comes later holds nothing there."""
        first = next(self.untouched(path, names), pa.table({}))
        return pa.schema([_field(first.schema, name) for name in names])

    def untouched(self, path: Path, names: list[str]) -> Iterator[pa.Table]:
        """Whole numbers stay whole, dates stay text, nested values stay; types as in the block."""
        for block in _blocks(path):
            inferred = _parsed(path, block).schema
            dates = [_as_read(field) for field in inferred if pa.types.is_temporal(field.type)]
            rows = _parsed(path, block, pa.schema(dates), others="infer")
            yield rows.select([name for name in names if name in rows.column_names])

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:  # noqa: ARG002
        """Missing values are null, dates text."""

        def put(table: pa.Table) -> None:
            for batch in table.to_batches(BATCH_ROWS):
                for row in batch.to_pylist():
                    cells = {name: _without_nan(value) for name, value in row.items()}
                    line = json.dumps(cells, ensure_ascii=False, allow_nan=False, default=_as_json)
                    file.write(f"{line}\n")

        with sink(path) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
            yield put

    def about_rows(self, path: Path) -> float | None:
        """By the length of its first lines."""
        return about_lines(path)

    def _first_schema(self, path: Path) -> pa.Schema:
        block = next(_blocks(path), None)
        if block is None:
            raise InputError("{file} is empty", file=path.name)
        if not self.begins(block):
            raise InputError(
                "{file} must hold an object a line, such as {example}",
                file=path.name,
                details={"example": '{"y": 1, "p": 0.7}'},
            )
        inferred = _parsed(path, block).schema
        as_read = pa.schema([_as_read(field) for field in inferred])
        rows = _parsed(path, block, as_read)
        return pa.schema([(name, _lasting(rows[name])) for name in rows.column_names])


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; lines of spaces alone do not count."""
    with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as file:
        try:
            if file.read(len(BOM)) != BOM:
                file.seek(0)
            while block := file.read(BLOCK_BYTES) + file.readline(MAX_LINE_BYTES):
                if len(block) >= BLOCK_BYTES + MAX_LINE_BYTES:
                    raise InputError(
                        "{file} has a line of more than {size}, which is no row of a table",
                        file=path.name,
                        details={"size": in_bytes(MAX_LINE_BYTES)},
                    )
                if block.strip():
                    _refuse_deep_nesting(block, path)
                    yield block
        except zlib.error as error:
            raise unreadable(path, error) from None


def _refuse_deep_nesting(block: bytes, path: Path) -> None:
    """Raise where values are nested so deeply that Arrow, which calls itself, would crash."""
    if _is_flat(block):
        return
    plain = ESCAPED.sub(b"", block) if b"\\" in block else block
    brackets = TEXT.sub(b"", plain.translate(None, WITHOUT_STRUCTURE))
    for _ in range(MAX_DEPTH):
        inner = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(inner) == len(brackets):
            return
        brackets = inner
    if brackets:
        raise InputError(
            f"{{file}} has values that are nested more than {MAX_DEPTH} deep, which is no row of a "
            "table",
            file=path.name,
        )


def _is_flat(block: bytes) -> bool:
    """Whether every line begins with its only opening bracket, and ends with the closing one."""
    lines = block if block.endswith(b"\n") else block + b"\n"
    found = lines.translate(None, WITHOUT_BRACKETS)
    count = len(found) // 3
    ends = lines.count(b"}\n") + lines.count(b"}\r\n")
    begins = lines.count(b"\n{") + lines.startswith(b"{")
    return found == b"{}\n" * count and begins == ends == count


def _parsed(
    path: Path, block: bytes, schema: pa.Schema | None = None, others: str = "ignore"
) -> pa.Table:
    """The rows of a block: columns of a schema, and others if these are to be inferred."""
    parse = None
    if schema is not None:
        parse = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)
    read = pa.json.ReadOptions(block_size=len(block) + 1)  # the whole block has one type a column
    try:
        block.decode()
        return pa.json.read_json(io.BytesIO(block), read, parse)
    except UnicodeDecodeError:
        raise InputError("{file} is not UTF-8 text; save it as UTF-8", file=path.name) from None
    except pa.ArrowInvalid as error:
        raise _told(path, error) from None


def _told(path: Path, error: pa.ArrowInvalid) -> InputError:
    """What Arrow cannot read, in a sentence."""
    if other := OTHER_TYPE.search(str(error)):
        return InputError(
            "column {column} holds both {first} and {second}; give it one type",
            file=path.name,
            column=other[1],
            details={
                "first": IN_WORDS.get(other[2], other[2]),
                "second": IN_WORDS.get(other[3], other[3]),
            },
        )
    if twice := TWICE.search(str(error)):
        return InputError(
            "names of columns must differ; {column} stands more than once",
            file=path.name,
            column=twice[1],
        )
    return unreadable(path, error)


def _field(schema: pa.Schema, name: str) -> pa.Field:
    return schema.field(name) if name in schema.names else pa.field(name, pa.null())


def _as_read(field: pa.Field) -> pa.Field:
    """Dates as text: Arrow takes those with fractions of seconds or zones for no dates."""
    return pa.field(field.name, pa.string()) if pa.types.is_temporal(field.type) else field


def _lasting(column: pa.ChunkedArray) -> pa.DataType:
    """A type that holds for the rest of the file, too; that of dates for text that is all dates."""
    if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
        return pa.float64()
    if pa.types.is_string(column.type) and column.null_count < len(column):
        for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                column.cast(kind)
            except pa.ArrowInvalid:
                continue
            return kind
    return column.type


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        if math.isinf(value):
            raise pa.ArrowInvalid("JSON has no infinite numbers")
        return None
    return value


def _as_json(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    raise pa.ArrowInvalid(f"JSON has no {type(value).__name__}")
