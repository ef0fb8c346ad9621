"""Text with a row a line: CSV, TSV and JSON lines, also gzipped.

How columns, decimals and dates are written is told by the user, or seen from the first lines.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, cast, get_args

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from itrust._core import InputError, Setting, checked_choice, in_door_words, shown_name
from itrust.data.encoding import code_of
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    Put,
    in_bytes,
    refuse_lack_of,
    refused,
    unreadable,
)

GZIP = b"\x1f\x8b"
PACKING = 6  # of gzip, its usual level
HEAD_LINES, HEAD_BYTES = 2_000, 2**20  # to tell how a file is written
CSV_BLOCK_BYTES = 2**23
MAX_BLOCK_BYTES = 2**22  # once types are known: Arrow reads up to 32 blocks ahead
JSON_BLOCK_BYTES = 2**23
MAX_LINE_BYTES = 2**26
NULLS = pa.csv.ConvertOptions().null_values
NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
UNFIT = "\"'.\r\n\0"  # to separate columns
SPELT = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
QUOTED = re.compile(r'"[^"]*"')
COMMA_NUMBER = re.compile(r"[-+]?\d+,\d+")
POINT_NUMBER = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")
DATE = re.compile(r"(\d\d?)([./-])(\d\d?)\2(\d{4}|\d\d)")
BOM = b"\xef\xbb\xbf"
MAX_DEPTH = 64
ESCAPED, TEXT = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"')
NO_STRUCTURE = bytes(set(range(256)) - set(b'{}[]"'))
OTHER_TYPE = re.compile(r"Column\(/(.*)\) changed from (\w+) to (\w+)")
TWICE = re.compile(r"Column\(/(.*)\) was specified twice")
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
            sign = NAMES.get(self.separator, self.separator)
            if len(sign) != 1 or sign.isalnum() or not sign.isascii() or sign in UNFIT:
                sentence = "{argument} takes one ASCII sign, or tab, not {value}"
                raise InputError(sentence, argument="sep", value=self.separator)
            object.__setattr__(self, "separator", sign)
        if self.decimal is not None:
            checked_choice(self.decimal, "decimal", (".", ","))
        if self.dates is not None:
            checked_choice(self.dates, "dates", get_args(DateOrder))
        if self.separator is not None and self.separator == self.decimal:
            sentence, other = "{argument} and {other} cannot both be {value}", Setting("sep")
            raise InputError(sentence, argument="decimal", value=self.decimal, other=other)


AS_SEEN = TextForm()


def _unpacked(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return cast(BinaryIO, gzip.open(path) if packed else path.open("rb"))


@contextmanager
def _sink(path: Path) -> Iterator[BinaryIO]:
    """A file for text; packed where its ending says so, with nothing about when and where."""
    with path.open("wb") as raw:
        if path.suffix != ".gz":
            yield raw
            return
        with gzip.GzipFile("", "wb", PACKING, raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)


@dataclass(frozen=True)
class Dialect:
    """How one file is written."""

    separator: str
    decimal: str = "."
    dates: tuple[str, ...] = ()
    order: DateOrder | None = None
    unclear: tuple[str, ...] = ()
    has_rows: bool = True


@dataclass(frozen=True)
class Delimited(Format):
    """Cells with a sign between them; read with Arrow's streaming reader."""

    separator: str
    form: TextForm = AS_SEEN

    title, has_types, is_text = "CSV", False, True
    endings: ClassVar[tuple[str, ...]] = (".csv",)

    def form_of(self, path: Path) -> TextForm:
        seen = self.dialect(path)
        return replace(self.form, separator=seen.separator, decimal=seen.decimal)

    def dialect(self, path: Path) -> Dialect:
        """How a file is written: as the user says, else as its first lines look."""
        state = path.stat()
        said = replace(self.form, na_values=(), texts=())
        return _dialect_of(path, self.separator, said, (state.st_mtime_ns, state.st_size))

    def notes(self, path: Path) -> list[str]:
        seen, said = self.dialect(path), self.form
        odd: list[tuple[str, Setting]] = []
        if said.separator is None and seen.separator != self.separator:
            odd.append((f"columns are separated by {SPELT[seen.separator]}", Setting("sep", ...)))
        if said.decimal is None and seen.decimal == ",":
            odd.append(("decimals are written with a comma", Setting("decimal", ".")))
        if said.dates is None and seen.order is not None:
            first, other = ("day", "mdy") if seen.order == "dmy" else ("month", "dmy")
            odd.append((f"dates are read with the {first} first", Setting("dates", other)))
        notes = [f"{what} ({in_door_words(cure)} says otherwise)" for what, cure in odd]
        if seen.unclear:
            cures = [in_door_words(Setting("dates", order)) for order in get_args(DateOrder)]
            names = ", ".join(map(shown_name, seen.unclear))
            notes.append(
                f"dates of {names} may have the day or the month first, so they are read as text; "
                f"say {cures[0]} or {cures[1]}"
            )
        return notes

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """As the first block of the file looks; without rows, nothing is known of the types."""
        with self._open(path, list(names)) as reader:
            if self.dialect(path).has_rows:
                return reader.schema
            return pa.schema([(name, pa.null()) for name in reader.schema.names])

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._open(part.path, names)

    def untouched(self, path: Path, names: list[str]) -> Iterator[pa.Table]:
        with self._open(path, names, types=dict.fromkeys(names, pa.string())) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        """Text as it was read; Arrow, which is faster, would put quotes around all of it."""
        separator = self.form.separator or self.separator
        spelt = _with_commas if self.form.decimal == "," else lambda table: table
        written = spelt(schema.empty_table()).schema
        with _sink(path) as raw:
            if not _is_text_and_more(written):
                options = pa.csv.WriteOptions(delimiter=separator)
                with pa.csv.CSVWriter(raw, written, write_options=options) as arrow:

                    def put_batches(table: pa.Table) -> None:
                        for batch in spelt(table).to_batches():
                            if batch.num_rows:  # after none, Arrow before 24 repeats the header
                                arrow.write_batch(batch)

                    yield put_batches
                return
            with io.TextIOWrapper(raw, "utf-8", newline="") as file:
                writer = csv.writer(file, delimiter=separator, lineterminator="\n")
                writer.writerow(schema.names)

                def put(table: pa.Table) -> None:
                    for batch in spelt(table).to_batches(BATCH_ROWS):
                        cells = (column.to_pylist() for column in batch.columns)
                        writer.writerows(zip(*cells, strict=True))

                yield put

    def line_of(self, path: Path, row: int) -> int | None:
        with _unpacked(path) as raw, io.TextIOWrapper(raw, "utf-8", "replace", newline="") as file:
            records = csv.reader(file, delimiter=self.dialect(path).separator)
            filled = (cells for cells in records if cells)  # Arrow, too, passes over empty lines
            try:
                cells = next(islice(filled, row + 1, None))  # the names come first
            except (StopIteration, csv.Error):
                return None
            return records.line_num - sum(cell.count("\n") for cell in cells)

    def _open(
        self, path: Path, names: list[str], types: dict[str, pa.DataType] | None = None
    ) -> Any:
        """A streaming reader; what looks like integers or is empty at first is read as float64.

        With `types` given, these count, and no text is taken for a missing value.
        """
        dialect, codes = self.dialect(path), self.form.na_values
        parse = pa.csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True)
        read = pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES)
        seen: dict[str, Any] = {
            "decimal_point": dialect.decimal,
            "timestamp_parsers": [pa.csv.ISO8601, *dialect.dates],
            # Codes that are numbers are blanked, and counted, when the rows are selected.
            "null_values": [*NULLS, *(str(c) for c in codes if isinstance(code_of(c), str))],
        }
        with pa.csv.open_csv(path, read, parse, pa.csv.ConvertOptions(**seen)) as reader:
            schema = reader.schema
        refuse_lack_of(names, schema.names, path)
        for name in names or schema.names:
            if pa.types.is_binary(schema.field(name).type):
                sentence = "column {column} is not UTF-8 text; save it as UTF-8"
                raise refused(path, sentence, column=name)
        lasting = {
            name: pa.string() if name in self.form.texts else _lasting(schema.field(name).type)
            for name in names
        }
        convert = pa.csv.ConvertOptions(
            column_types=types or lasting,
            include_columns=names,
            strings_can_be_null=types is None,
            **seen,
        )
        if names:
            read.block_size = min(CSV_BLOCK_BYTES, MAX_BLOCK_BYTES)
        return pa.csv.open_csv(path, read, parse, convert)


class TabSeparated(Delimited):
    """TSV; a folder's .txt files are not taken for data, one that is named is."""

    title, endings, named_only = "TSV", (".tsv", ".txt"), (".txt",)


@lru_cache(maxsize=64)
def _dialect_of(path: Path, usual: str, form: TextForm, _state: tuple[int, int]) -> Dialect:
    lines = _first_lines(path)
    header = QUOTED.sub("", next((line for line in lines if line.strip()), ""))
    # Of signs that are as frequent, the usual one.
    likely = max((usual, *SPELT), key=header.count)
    separator = form.separator or likely
    try:
        rows = [
            row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator) if row
        ]
    except csv.Error:
        rows = []
    names, cells = (rows[0], rows[1:]) if rows else ([], [])
    columns = [
        [row[k].strip() for row in cells if k < len(row) and row[k].strip()]
        for k in range(len(names))
    ]
    orders = {name: _order_of(column) for name, column in zip(names, columns, strict=True)}
    dated = {name: order for name, order in orders.items() if order is not None}
    known = {order for _, _, order in dated.values() if order is not None}
    order = form.dates or (next(iter(known)) if len(known) == 1 else None)
    shapes = sorted({(sign, year) for sign, year, _ in dated.values()})
    days = ("%d", "%m") if order == "dmy" else ("%m", "%d")
    return Dialect(
        separator,
        form.decimal or _decimal(columns, separator),
        tuple(sign.join((*days, year)) for sign, year in shapes) if order else (),
        order if dated else None,
        tuple(dated) if order is None else (),
        has_rows=bool(cells),
    )


def _first_lines(path: Path) -> list[str]:
    try:
        with _unpacked(path) as raw:
            head = raw.read(HEAD_BYTES).decode("utf-8-sig", "replace")
    except (OSError, EOFError, zlib.error):
        return []  # the reader says what is wrong with it
    lines = head.splitlines()
    return (lines if len(head) < HEAD_BYTES else lines[:-1])[:HEAD_LINES]


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


def _order_of(column: Sequence[str]) -> tuple[str, str, DateOrder | None] | None:
    """Sign, year and order of dates; no order where they may be read either way; None: no dates."""
    dates = [match for cell in column if (match := DATE.fullmatch(cell))]
    if not column or len(dates) < len(column):
        return None
    sign, year = dates[0][2], "%y" if all(len(match[4]) == 2 for match in dates) else "%Y"
    if sign == "." or any(int(match[1]) > 12 for match in dates):
        return sign, year, "dmy"
    return sign, year, "mdy" if any(int(match[3]) > 12 for match in dates) else None


def _is_text_and_more(schema: pa.Schema) -> bool:
    """Whether all columns are text but decimals at the end, as where columns are added to text."""
    kinds = list(schema.types)
    while kinds and kinds[-1] == pa.float64():
        kinds.pop()
    return bool(kinds) and all(pa.types.is_string(kind) for kind in kinds)


def _with_commas(table: pa.Table) -> pa.Table:
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            numbers = table[at].to_pylist()
            texts = [None if v is None else repr(v).replace(".", ",") for v in numbers]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return table


def _lasting(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


class JsonLines(Format):
    """An object a line, some megabytes of lines at a time; a field that is absent is missing."""

    title, endings = "JSON lines", (".jsonl", ".ndjson")
    types_last, is_text = False, True

    def begins(self, head: bytes) -> bool:
        return re.match(rb'\s*\{\s*["}]', head.removeprefix(BOM)) is not None

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        block = next(_blocks(path), None)
        if block is None:
            raise refused(path, "{file} is empty")
        if not self.begins(block):
            sentence = "{file} must hold an object a line, such as {example}"
            raise refused(path, sentence, example='{"y": 1, "p": 0.7}')
        rows = _parsed(path, block, _as_read(_parsed(path, block).schema))
        schema = pa.schema([(name, _lasting_json(rows[name])) for name in rows.column_names])
        refuse_lack_of(names, schema.names, path)
        for name in names:
            if pa.types.is_nested(schema.field(name).type):
                what = "lists or objects; write their values as fields of the line"
                raise refused(path, f"column {{column}} holds {what}", column=name)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        schema = self.schema(part.path, names)
        wanted = pa.schema([schema.field(name) for name in names])
        for block in _blocks(part.path):
            rows = _parsed(part.path, block, _as_read(wanted))
            try:
                rows = rows.cast(wanted)
            except pa.ArrowInvalid as error:
                raise unreadable(part.path, error, "give the column one type") from None
            yield from rows.combine_chunks().to_batches()

    def untouched(self, path: Path, names: list[str]) -> Iterator[pa.Table]:
        """Whole numbers stay whole, dates stay text, nested values stay; types as in the block."""
        for block in _blocks(path):
            inferred = _parsed(path, block).schema
            rows = _parsed(path, block, _as_read(inferred, dates_only=True), others="infer")
            yield rows.select([name for name in names if name in rows.column_names])

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:  # noqa: ARG002

        def put(table: pa.Table) -> None:
            for batch in table.to_batches(BATCH_ROWS):
                for row in batch.to_pylist():
                    cells = {name: None if cell != cell else cell for name, cell in row.items()}
                    try:
                        line = json.dumps(cells, ensure_ascii=False, allow_nan=False, default=_json)
                    except ValueError as error:
                        raise pa.ArrowInvalid(f"JSON has no such numbers: {error}") from None
                    file.write(f"{line}\n")

        with _sink(path) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
            yield put


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; lines of spaces alone do not count."""
    with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as file:
        if file.read(len(BOM)) != BOM:
            file.seek(0)
        while block := file.read(JSON_BLOCK_BYTES) + file.readline(MAX_LINE_BYTES):
            if len(block) >= JSON_BLOCK_BYTES + MAX_LINE_BYTES:
                sentence = "{file} has a line of more than {size}, which is no row of a table"
                raise refused(path, sentence, size=in_bytes(MAX_LINE_BYTES))
            if block.strip():
                _refuse_deep_nesting(block, path)
                yield block


def _refuse_deep_nesting(block: bytes, path: Path) -> None:
    """Raise where values are nested so deeply that Arrow, which calls itself, would crash."""
    plain = ESCAPED.sub(b"", block) if b"\\" in block else block
    # Whether a bracket stands in text depends on how many quotes stand before it: pairs may go.
    brackets = TEXT.sub(b"", plain.translate(None, NO_STRUCTURE).replace(b'""', b""))
    for _ in range(MAX_DEPTH):
        inner = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(inner) == len(brackets):
            return
        brackets = inner
    if brackets:
        values = f"values that are nested more than {MAX_DEPTH} deep"
        raise refused(path, f"{{file}} has {values}, which is no row of a table")


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
        raise refused(path, "{file} is not UTF-8 text; save it as UTF-8") from None
    except pa.ArrowInvalid as error:
        if other := OTHER_TYPE.search(str(error)):
            first, second = (
                "text" if kind == "string" else f"{kind}s" for kind in other.group(2, 3)
            )
            sentence = f"column {{column}} holds both {first} and {second}; give it one type"
            raise refused(path, sentence, column=other[1]) from None
        if twice := TWICE.search(str(error)):
            sentence = "names of columns must differ; {column} stands more than once"
            raise refused(path, sentence, column=twice[1]) from None
        raise unreadable(path, error) from None


def _as_read(schema: pa.Schema, dates_only: bool = False) -> pa.Schema:
    """Dates as text: Arrow takes those with fractions of seconds or zones for no dates."""
    return pa.schema(
        pa.field(field.name, pa.string()) if pa.types.is_temporal(field.type) else field
        for field in schema
        if not dates_only or pa.types.is_temporal(field.type)
    )


def _lasting_json(column: pa.ChunkedArray) -> pa.DataType:
    """A type that holds for the rest of the file, too; that of dates for text that is all dates."""
    if pa.types.is_string(column.type) and column.null_count < len(column):
        for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                column.cast(kind)
            except pa.ArrowInvalid:
                continue
            return kind
    return _lasting(column.type)


def _json(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    raise pa.ArrowInvalid(f"JSON has no {type(value).__name__}")
