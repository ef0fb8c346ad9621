"""Reading files in batches with pyarrow: which files, what they hold, and their rows in order."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from itrust._core import InputError, IntArray, counted, did_you_mean, listed
from itrust.data.encoding import kind_of

BATCH_ROWS = 65_536
CSV_BLOCK_BYTES = 2**23
NAMES = {".csv": "CSV", ".tsv": "TSV", ".txt": "TSV", ".parquet": "Parquet"}
FORMATS = {".parquet": "parquet", ".feather": "feather", ".arrow": "feather", ".ipc": "feather"}
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"FEA1": ".feather"}
GZIP = b"\x1f\x8b"
HEAD_BYTES = 2**16  # of a stream, to tell what it holds


@dataclass(frozen=True)
class Part:
    """A piece of the rows: a file or some row groups of a Parquet file.

    `start` is the number of its first row that counts in the whole, `offset` in its file;
    `rows` is how many count, where that is known.
    """

    path: Path
    row_groups: tuple[int, ...] | None = None
    offset: int = 0
    start: int = 0
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a file as read; `numbers` says which rows of the batch they are, if not all."""

    path: Path
    offset: int
    rows: pa.RecordBatch
    numbers: IntArray | None = None
    dropped: int = 0

    @contextmanager
    def located(self, chosen: IntArray | None = None) -> Iterator[None]:
        """Give an error about these rows (or those chosen) the file and their numbers in it."""

        def number(row: int) -> int:
            row = row if chosen is None else int(chosen[row])
            return self.offset + (row if self.numbers is None else int(self.numbers[row]))

        try:
            yield
        except InputError as error:
            raise error.within(self.path.name, number) from None


def plain_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries as their values, dates as timestamps: the parts of a column go together."""
    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us"), safe=False)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def list_files(path: Any) -> list[Path]:
    """The files that a path, a pattern, a folder or a list of these means, in order."""
    if isinstance(path, list | tuple):
        if not path:
            raise InputError("the list of files is empty", argument="path")
        return [file for one in path for file in list_files(one)]
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"scan takes paths, not a {type(path).__name__}; frames go to Sample", argument="path"
        )
    text = os.path.expanduser(os.fspath(path))
    if os.path.isfile(text) and _is_known(Path(text)):
        return [Path(text)]
    if os.path.isdir(text):
        hidden = (".", "_")
        found = sorted(
            file
            for file in Path(text).rglob("*")
            if file.is_file()
            and _is_known(file)
            and _ending(file) != ".txt"
            and not any(part.startswith(hidden) for part in file.relative_to(text).parts)
        )
        if not found:
            raise InputError(
                "the folder {file} holds no Parquet, Feather, CSV or TSV file", file=text
            )
        return _one_format(text, found)
    if glob.has_magic(text):
        found = sorted(Path(name) for name in glob.glob(text, recursive=True))
        if not found:
            raise InputError("no file matches {value}", argument="path", value=text)
        return _one_format(text, [file for one in found for file in list_files(str(one))])
    if not os.path.isfile(text):
        raise InputError("there is no file {value}", argument="path", value=text)
    if not _is_known(Path(text)):
        known = listed([*FORMATS, *SEPARATORS], max_items=20)
        raise InputError(f"the ending must be one of {known} (text files also with .gz)", file=text)
    return [Path(text)]


def _one_format(place: str, files: list[Path]) -> list[Path]:
    """The same files; of two formats one is often made from the other, and would count twice."""
    formats = sorted({NAMES.get(_ending(file), "Feather") for file in files})
    if len(formats) > 1:
        raise InputError(
            f"{{file}} holds files of several formats, {' and '.join(formats)}; name those of "
            f"one, such as '*{_ending(files[0])}'",
            file=place,
        )
    return files


def partition_keys(place: str, files: Sequence[Path]) -> list[str]:
    """Keys in names of folders, such as year=2020, below the folder that was named.

    >>> partition_keys("runs", [Path("runs/year=2020/a.csv"), Path("runs/year=2021/a.csv")])
    ['year']
    """
    keys: dict[str, None] = {}
    for file in files:
        inner = file.relative_to(place) if file.is_relative_to(place) else file
        keys |= dict.fromkeys(part.split("=", 1)[0] for part in inner.parts[:-1] if "=" in part)
    return list(keys)


def _ending(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def _is_known(path: Path) -> bool:
    is_text = _ending(path) in SEPARATORS
    return is_text or (_ending(path) in FORMATS and path.suffix != ".gz")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the reader cannot read into one sentence."""
    try:
        yield
    except UnicodeDecodeError:  # Arrow's names of columns, before any value is looked at
        raise InputError(
            "the names of the columns are not UTF-8 text; save it as UTF-8", file=path.name
        ) from None
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = legible(str(error).splitlines()[0])
        if reason == "Empty CSV file":
            raise InputError("{file} is empty", file=path.name) from None
        if "duplicate field names" in reason:
            raise InputError("names of columns must differ", file=path.name) from None
        cure = "give the column one type" if "conversion error" in reason else "is it whole?"
        raise InputError(
            "{file} cannot be read to its end ({reason}); {cure}",
            file=path.name,
            details={"reason": reason, "cure": cure},
        ) from None


def legible(text: str) -> str:
    r"""Text with whatever is no letter or sign spelt out.

    >>> legible("caf\xe9 \x01\ufffd")
    'caf\xe9 \\x01\\ufffd'
    """
    return "".join(
        c if c.isprintable() and c != "\N{REPLACEMENT CHARACTER}" else ascii(c)[1:-1] for c in text
    )


def read_batches(part: Part, names: list[str]) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a file, or of some of its row groups, in order."""
    if _ending(part.path) in SEPARATORS:
        yield from _open_csv(part.path, names)
        return
    if _ending(part.path) == ".parquet":
        # Not the dataset reader: it keeps the column chunks of a file until the file's end.
        with pa.parquet.ParquetFile(part.path, pre_buffer=False) as file:
            groups = range(file.num_row_groups) if part.row_groups is None else part.row_groups
            for group in groups:  # batches end with their group, so partitions change no sum
                yield from file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names)
        return
    data = pa.dataset.dataset(part.path, format="feather")
    for batch in data.to_batches(columns=names, batch_size=BATCH_ROWS, batch_readahead=4):
        if batch.num_rows:
            yield batch


def sound_batches(part: Part, names: list[str]) -> Generator[pa.RecordBatch, None, None]:
    """The same; what cannot be read is one sentence."""
    with closing(read_batches(part, names)) as batches:
        while True:
            with reading(part.path):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def read_table(files: Sequence[Path], names: list[str]) -> pa.Table:
    """All rows of some columns, in memory."""
    refuse_other_kinds(files, names)
    tables = [
        pa.Table.from_batches([plain_columns(batch)])
        for path in files
        for batch in sound_batches(Part(path), names)
    ]
    if not tables:
        raise without_rows(files)
    return pa.concat_tables(tables, promote_options="permissive")


def without_rows(files: Sequence[Path]) -> InputError:
    """The error about files that have columns at most."""
    if len(files) == 1:
        return InputError("{file} holds no rows", file=files[0].name)
    return InputError(
        f"the {counted(len(files), 'file')} hold no rows; the first is {{file}}", file=files[0].name
    )


def read_untouched(files: Sequence[Path], names: list[str]) -> pa.Table:
    """All rows as they are: text files as text, the others with their types and zones."""
    tables = []
    for path in files:
        with reading(path):
            tables.append(_untouched(path, names))
    with reading(files[0]):
        table = pa.concat_tables(tables, promote_options="permissive") if tables[1:] else tables[0]
    return table.unify_dictionaries()  # a Feather file has room for one dictionary a column


def _untouched(path: Path, names: list[str]) -> pa.Table:
    if _ending(path) in SEPARATORS:
        with _open_csv(path, names, types=dict.fromkeys(names, pa.string())) as reader:
            return reader.read_all()
    _schema(path, names)
    if _ending(path) == ".parquet":
        with pa.parquet.ParquetFile(path) as file:
            return file.read().select(names)
    return pa.feather.read_table(path).select(names)


def is_text(path: Path) -> bool:
    """Whether a file is CSV or the like, which has no types."""
    return _ending(path) in SEPARATORS


def refuse_other_kinds(files: Sequence[Path], names: list[str]) -> None:
    """Raise unless every file has the columns, each of one kind throughout."""
    first = column_kinds(files[0], names)
    for path in files[1:]:
        for name, kind in column_kinds(path, names).items():
            if kind != first[name] and "null" not in (kind, first[name]):
                raise InputError(
                    f"column {{column}} is {kind}, but {first[name]} in {{other}}; give it one "
                    f"type in all files",
                    file=path.name,
                    column=name,
                    details={"other": files[0].name},
                )


def column_names(path: Path) -> list[str]:
    """All columns of a file."""
    with reading(path):
        return list(_schema(path, []).names)


def ending_of(head: bytes) -> str:
    r"""The ending that goes with the first bytes of a file that has no name.

    >>> ending_of(b"PAR1"), ending_of(b"y\tp, q\tr\n"), ending_of(b"y,p\n")
    ('.parquet', '.tsv', '.csv')
    """
    for magic, ending in MAGIC.items():
        if head.startswith(magic):
            return ending
    header = head.split(b"\n", 1)[0]
    return ".tsv" if header.count(b"\t") > header.count(b",") else ".csv"


def spool(stream: BinaryIO, folder: Path, stem: str) -> Path:
    """Keep a stream of any known form, gzipped or not, as a file with the right ending."""
    raw, plain = folder / "raw", folder / "plain"
    with raw.open("wb") as file:
        shutil.copyfileobj(stream, file)
    try:
        with _unpacked(raw) as source, plain.open("wb") as file:
            shutil.copyfileobj(source, file)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(
            "{file} cannot be read to its end ({reason}); is it whole?",
            file=stem,
            details={"reason": str(error)},
        ) from None
    raw.unlink()
    if not plain.stat().st_size:
        raise InputError("{file} is empty", file=stem)
    with plain.open("rb") as file:
        ending = ending_of(file.read(HEAD_BYTES))
    return plain.rename(folder / f"{stem}{ending}")


def _unpacked(path: Path) -> Any:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return gzip.open(path) if packed else path.open("rb")


def _open_csv(path: Path, names: list[str], types: dict[str, pa.DataType] | None = None) -> Any:
    """A streaming reader; what looks like integers or is empty at first is read as float64.

    With `types` given, these count, and no text is taken for a missing value.
    """
    parse = pa.csv.ParseOptions(delimiter=SEPARATORS[_ending(path)], newlines_in_values=True)
    read = pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES)
    with pa.csv.open_csv(path, read, parse) as reader:
        schema = reader.schema
    _require(path, names, schema.names)
    for name in names or schema.names:
        if pa.types.is_binary(schema.field(name).type):
            raise InputError(
                "column {column} is not UTF-8 text; save it as UTF-8", file=path.name, column=name
            )
    nullable = types is None
    types = types or {name: _lasting_type(schema.field(name).type) for name in names}
    convert = pa.csv.ConvertOptions(
        column_types=types, include_columns=names, strings_can_be_null=nullable
    )
    return pa.csv.open_csv(path, read, parse, convert)


def _lasting_type(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def column_kinds(path: Path, names: list[str]) -> dict[str, str]:
    """What each column holds, in words, from the file's schema."""
    with reading(path):
        schema = _schema(path, names)
    return {name: kind_of(schema.field(name).type) for name in names}


def _schema(path: Path, names: list[str]) -> pa.Schema:
    if _ending(path) in SEPARATORS:
        with _open_csv(path, names) as reader:
            return reader.schema
    if _ending(path) == ".parquet":
        schema = pa.parquet.read_schema(path)
    else:
        schema = pa.dataset.dataset(path, format=FORMATS[_ending(path)]).schema
    _require(path, names, schema.names)
    return schema


def _require(path: Path, names: list[str], present: list[str]) -> None:
    """Raise unless every name is there once; of no names, unless all columns differ."""
    often = Counter(present)
    twice = [name for name in dict.fromkeys(names or present) if often[name] > 1]
    if twice:
        raise InputError(
            "names of columns must differ; {twice} stands more than once",
            file=path.name,
            details={"twice": listed(twice)},
        )
    for name in names:
        if name not in present:
            raise InputError(
                "there is no column {column}; {guess}",
                file=path.name,
                column=name,
                details={"guess": guess_column(name, present)},
            )


def guess_column(name: str, present: list[str]) -> str:
    """What was meant by the name of a column that is not there."""
    if len(present) == 1 and ";" in present[0]:
        return "columns must be separated by commas (.csv) or tabs (.tsv), not semicolons"
    return did_you_mean(name, present)


def row_of(files: Sequence[Path], names: list[str], row: int) -> tuple[Path, int]:
    """The file that a row of all files stands in, and its number there, both from 0.

    The rows are counted again: for the sake of an error, which is rare.
    """
    for path in files:
        rows = sum(batch.num_rows for batch in sound_batches(Part(path), names))
        if row < rows:
            return path, row
        row -= rows
    return files[-1], row


def line_of(path: Path, row: int) -> int | None:
    """The line on which a row of a text file begins, from 1; None for files without lines."""
    if not is_text(path):
        return None
    with _unpacked(path) as raw, io.TextIOWrapper(raw, "utf-8", "replace", newline="") as file:
        records = csv.reader(file, delimiter=SEPARATORS[_ending(path)])
        filled = (cells for cells in records if cells)  # Arrow, too, passes over empty lines
        try:
            cells = next(islice(filled, row + 1, None))  # the names come first
        except (StopIteration, csv.Error):
            return None
        return records.line_num - sum(cell.count("\n") for cell in cells)
