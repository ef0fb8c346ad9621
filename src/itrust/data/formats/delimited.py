"""Text with a row a line: CSV and TSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from itrust._core import InputError
from itrust.data.formats.base import (
    BATCH_ROWS,
    FilePart,
    Format,
    Put,
    about_lines,
    refuse_lack_of,
    sink,
)
from itrust.data.formats.text_form import AS_SEEN, Dialect, TextForm, dialect_of

CSV_BLOCK_BYTES = 2**23
MAX_BLOCK_BYTES = 2**22  # once types are known: Arrow reads up to 32 blocks ahead
NULLS = pa.csv.ConvertOptions().null_values


@dataclass(frozen=True)
class Delimited(Format):
    """Text with a row a line; read with Arrow's streaming reader, also gzipped."""

    separator: str
    form: TextForm = AS_SEEN

    has_types = False
    may_be_gzipped = True

    def form_of(self, path: Path) -> TextForm:
        """The form that a file like this one is written in."""
        seen = self.dialect(path)
        return replace(self.form, separator=seen.separator, decimal=seen.decimal)

    def dialect(self, path: Path) -> Dialect:
        """How a file is written."""
        return dialect_of(path, self.separator, self.form)

    def notes(self, path: Path) -> list[str]:
        """What was seen of the way it is written."""
        return self.dialect(path).notes(self.separator, self.form)

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """As the first block of the file looks; without rows, nothing is known of the types."""
        with self._open(path, list(names)) as reader:
            if self.dialect(path).has_rows:
                return reader.schema
            return pa.schema([(name, pa.null()) for name in reader.schema.names])

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """One batch a block."""
        yield from self._open(part.path, names)

    def untouched_schema(self, path: Path, names: list[str]) -> pa.Schema:
        """Text."""
        self.schema(path, names)
        return pa.schema([(name, pa.string()) for name in names])

    def untouched(self, path: Path, names: list[str]) -> Iterator[pa.Table]:
        """Every cell as text."""
        with self._open(path, names, types=dict.fromkeys(names, pa.string())) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        """Text as it was read; Arrow, which is faster, would put quotes around all of it."""
        separator = self.form.separator or self.separator
        told = _with_commas if self.form.decimal == "," else _as_it_is
        kept = told(schema.empty_table()).schema
        with sink(path) as raw:
            if not _is_text_and_more(kept):
                options = pa.csv.WriteOptions(delimiter=separator)
                with pa.csv.CSVWriter(raw, kept, write_options=options) as arrow:
                    yield lambda table: _put_rows(arrow, told(table))
                return
            with io.TextIOWrapper(raw, "utf-8", newline="") as file:
                writer = csv.writer(file, delimiter=separator, lineterminator="\n")
                writer.writerow(schema.names)

                def put(table: pa.Table) -> None:
                    for batch in told(table).to_batches(BATCH_ROWS):
                        cells = (column.to_pylist() for column in batch.columns)
                        writer.writerows(zip(*cells, strict=True))

                yield put

    def about_rows(self, path: Path) -> float | None:
        """By the length of its first lines."""
        return about_lines(path)

    def _open(
        self, path: Path, names: list[str], types: dict[str, pa.DataType] | None = None
    ) -> Any:
        """A streaming reader; what looks like integers or is empty at first is read as float64.

        With `types` given, these count, and no text is taken for a missing value.
        """
        dialect = self.dialect(path)
        parse = pa.csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True)
        read = pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES)
        seen: dict[str, Any] = {
            "decimal_point": dialect.decimal,
            "timestamp_parsers": [pa.csv.ISO8601, *dialect.dates],
            # Codes that are numbers are blanked, and counted, when the rows are selected.
            "null_values": [*NULLS, *filter(_is_word, map(str, self.form.na_values))],
        }
        with pa.csv.open_csv(path, read, parse, pa.csv.ConvertOptions(**seen)) as reader:
            schema = reader.schema
        refuse_lack_of(names, schema.names, path)
        for name in names or schema.names:
            if pa.types.is_binary(schema.field(name).type):
                raise InputError(
                    "column {column} is not UTF-8 text; save it as UTF-8",
                    file=path.name,
                    column=name,
                )
        nullable = types is None
        types = types or {
            name: pa.string() if name in self.form.texts else _lasting_type(schema.field(name).type)
            for name in names
        }
        convert = pa.csv.ConvertOptions(
            column_types=types, include_columns=names, strings_can_be_null=nullable, **seen
        )
        if names:
            read.block_size = min(CSV_BLOCK_BYTES, MAX_BLOCK_BYTES)
        return pa.csv.open_csv(path, read, parse, convert)


def _is_text_and_more(schema: pa.Schema) -> bool:
    """Whether all columns are text but decimals at the end, as where columns are added to text."""
    kinds = list(schema.types)
    while kinds and kinds[-1] == pa.float64():
        kinds.pop()
    return bool(kinds) and all(pa.types.is_string(kind) for kind in kinds)


def _as_it_is(table: pa.Table) -> pa.Table:
    return table


def _with_commas(table: pa.Table) -> pa.Table:
    """Decimals as text with a comma."""
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            texts = [
                None if v is None else repr(v).replace(".", ",") for v in table[at].to_pylist()
            ]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return table


def _put_rows(writer: pa.csv.CSVWriter, table: pa.Table) -> None:
    """Only batches that hold rows: after one without any, Arrow before 24 repeats the header."""
    for batch in table.to_batches():
        if batch.num_rows:
            writer.write_batch(batch)


def _is_word(code: str) -> bool:
    try:
        float(code)
    except ValueError:
        return True
    return False


def _lasting_type(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


class CommaSeparated(Delimited):
    """CSV."""

    title, endings = "CSV", (".csv",)


class TabSeparated(Delimited):
    """TSV; a folder's .txt files are not taken for data, one that is named is."""

    title, endings, named_only = "TSV", (".tsv", ".txt"), (".txt",)
