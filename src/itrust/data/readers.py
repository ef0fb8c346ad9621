"""Reading a file in batches with pyarrow: what it holds, and its rows in order."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from itrust._core import InputError
from itrust.data.formats import (
    AS_SEEN,
    FORMATS,
    GZIP,
    HEAD_BYTES,
    Delimited,
    FilePart,
    TextForm,
    decoded,
    known_format,
    split_table,
)

QUOTED_ROW = re.compile(r"(Expected \d+ columns, got \d+):.*")  # errors go into logs


def plain_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries as their values, dates as timestamps: the parts of a column go together."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = decoded(column, name)
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us"), safe=False)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the reader cannot read into one sentence."""
    try:
        yield
    except UnicodeDecodeError:  # Arrow's names of columns, before any value is looked at
        raise InputError(
            "the names of the columns are not UTF-8 text; save it as UTF-8", file=path.name
        ) from None
    except PermissionError:
        raise InputError("{file} may not be read by this user", file=path.name) from None
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        reason = QUOTED_ROW.sub(r"\1", legible(str(error).splitlines()[0]))
        if reason == "Empty CSV file":
            raise InputError("{file} is empty", file=path.name) from None
        if "duplicate field names" in reason:
            raise InputError("names of columns must differ", file=path.name) from None
        other = _really(path)
        if other is not None:
            raise InputError(
                f"{{file}} is a {other} file, whatever its ending says; rename it", file=path.name
            ) from None
        cure = "give the column one type" if "conversion error" in reason else "is it whole?"
        raise InputError(
            "{file} cannot be read to its end ({reason}); {cure}",
            file=path.name,
            details={"reason": reason, "cure": cure},
        ) from None


def _really(path: Path) -> str | None:
    """The format that a file which cannot be read begins like; None where its ending is right."""
    place = split_table(path)[0]
    if not place.is_file():
        return None
    with place.open("rb") as file:
        head = file.read(HEAD_BYTES)
    own = known_format(path)
    found = [kind for kind in FORMATS if kind.magic and kind.begins(head)]
    return found[0].title if found and not isinstance(own, type(found[0])) else None


def legible(text: str) -> str:
    r"""Text with whatever is no letter or sign spelt out.

    >>> legible("caf\xe9 \x01\ufffd")
    'caf\xe9 \\x01\\ufffd'
    """
    return "".join(
        c if c.isprintable() and c != "\N{REPLACEMENT CHARACTER}" else ascii(c)[1:-1] for c in text
    )


def sound_batches(
    part: FilePart, names: list[str], form: TextForm = AS_SEEN
) -> Generator[pa.RecordBatch, None, None]:
    """The same; what cannot be read is one sentence."""
    with closing(_generated(known_format(part.path, form).batches(part, names))) as batches:
        while True:
            with reading(part.path):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def _generated(batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
    yield from batches


def column_names(path: Path, form: TextForm = AS_SEEN) -> list[str]:
    """All columns of a file."""
    with reading(path):
        return list(known_format(path, form).schema(path).names)


def _unpacked(path: Path) -> Any:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return gzip.open(path) if packed else path.open("rb")


def column_types(
    path: Path, names: Sequence[str], form: TextForm = AS_SEEN
) -> dict[str, pa.DataType]:
    """The types of some columns, from the file's schema."""
    with reading(path):
        schema = known_format(path, form).schema(path, names)
    return {name: schema.field(name).type for name in names}


def line_of(path: Path, row: int, form: TextForm = AS_SEEN) -> int | None:
    """The line on which a row of a text file begins, from 1; None for files without lines."""
    kind = known_format(path, form)
    if not isinstance(kind, Delimited):
        return None
    with _unpacked(path) as raw, io.TextIOWrapper(raw, "utf-8", "replace", newline="") as file:
        records = csv.reader(file, delimiter=kind.dialect(path).separator)
        filled = (cells for cells in records if cells)  # Arrow, too, passes over empty lines
        try:
            cells = next(islice(filled, row + 1, None))  # the names come first
        except (StopIteration, csv.Error):
            return None
        return records.line_num - sum(cell.count("\n") for cell in cells)
