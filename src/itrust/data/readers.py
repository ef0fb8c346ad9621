"""Reading files in batches with pyarrow: which files, what they hold, and their rows in order."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import shutil
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from itrust._core import InputError, IntArray, counted
from itrust.data.encoding import kind_of
from itrust.data.formats import (
    AS_SEEN,
    FORMATS,
    Delimited,
    FilePart,
    TextForm,
    ending_of,
    format_of,
    format_of_bytes,
    formats_in_words,
    known_format,
    split_table,
)
from itrust.data.kinds import Kinds, all_labelled

GZIP = b"\x1f\x8b"
HEAD_BYTES = 2**16  # of a stream, to tell what it holds
PART_ROWS = 2**18
MAX_NOTES = 3  # about files
MAX_SPARE_BYTES = 2**27  # of columns that may be left out


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a file as read; `numbers` says which rows of the batch they are, if not all."""

    path: Path
    offset: int
    rows: pa.RecordBatch
    numbers: IntArray | None = None
    dropped: int = 0

    def split(self, rows: int) -> tuple[Batch, Batch]:
        """The first rows, and the others."""
        numbers, offset = self.numbers, self.offset
        first = replace(self, rows=self.rows.slice(0, rows), dropped=0)
        if numbers is not None:
            first = replace(first, numbers=numbers[:rows])
            return first, replace(self, rows=self.rows.slice(rows), numbers=numbers[rows:])
        return first, replace(self, rows=self.rows.slice(rows), offset=offset + rows)

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
    place, table = split_table(text)
    if table is not None:
        return [Path(f"{file}::{table}") for file in list_files(place)]
    if os.path.isfile(text) and format_of(Path(text)):
        return [Path(text)]
    if os.path.isdir(text):
        hidden = (".", "_", "~$")
        found = sorted(
            file
            for file in Path(text).rglob("*")
            if file.is_file()
            and (kind := format_of(file))
            and ending_of(file) not in kind.named_only
            and not any(part.startswith(hidden) for part in file.relative_to(text).parts)
        )
        if not found:
            raise InputError(f"the folder {{file}} holds no {formats_in_words()} file", file=text)
        return _one_format(text, found)
    if glob.has_magic(text):
        found = sorted(Path(name) for name in glob.glob(text, recursive=True))
        if not found:
            raise InputError("no file matches {value}", argument="path", value=text)
        return _one_format(text, [file for one in found for file in list_files(str(one))])
    if not os.path.isfile(text):
        raise InputError("there is no file {value}", argument="path", value=text)
    known_format(Path(text))
    return [Path(text)]


def _one_format(place: str, files: list[Path]) -> list[Path]:
    """The same files; of two formats one is often made from the other, and would count twice."""
    formats = sorted({known_format(file).title for file in files})
    if len(formats) > 1:
        raise InputError(
            f"{{file}} holds files of several formats, {' and '.join(formats)}; name those of "
            f"one, such as '*{ending_of(files[0])}'",
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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the reader cannot read into one sentence."""
    try:
        yield
    except UnicodeDecodeError:  # Arrow's names of columns, before any value is looked at
        raise InputError(
            "the names of the columns are not UTF-8 text; save it as UTF-8", file=path.name
        ) from None
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        reason = legible(str(error).splitlines()[0])
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


def read_head(path: Path, names: list[str], form: TextForm = AS_SEEN) -> pa.RecordBatch | None:
    """The first rows of some columns; None if there are none."""
    with reading(path):
        head = known_format(path, form).head(path, names)
        return None if head is None else plain_columns(head)


def read_table(
    files: Sequence[Path],
    names: list[str],
    spare: Sequence[str] = (),
    form: TextForm = AS_SEEN,
) -> pa.Table:
    """All rows of some columns, in memory; of the spare ones, too, unless these are too large."""
    wanted = [*names, *spare]
    refuse_other_kinds(files, wanted, form)
    tables: list[pa.Table] = []
    spent = 0
    for part in (
        part for path in files for part in known_format(path, form).parts(path, PART_ROWS)
    ):
        for batch in sound_batches(part, wanted, form):
            spent += sum(batch[name].nbytes for name in wanted if name in spare)
            if spent > MAX_SPARE_BYTES:
                wanted, spare, spent = names, (), 0
                tables = [table.select(wanted) for table in tables]
            tables.append(pa.Table.from_batches([plain_columns(batch.select(wanted))]))
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


def read_untouched(files: Sequence[Path], names: list[str], form: TextForm = AS_SEEN) -> pa.Table:
    """All rows as they are: text files as text, the others with their types and zones."""
    tables = []
    for path in files:
        with reading(path):
            tables.append(known_format(path, form).untouched(path, names))
    with reading(files[0]):
        table = pa.concat_tables(tables, promote_options="permissive") if tables[1:] else tables[0]
    return table.unify_dictionaries()  # a Feather file has room for one dictionary a column


def file_notes(files: Sequence[Path], form: TextForm = AS_SEEN) -> list[str]:
    """What a user may not expect of the way files are read; of many files, of the first ones."""
    said: list[str] = []
    for path in files:
        with reading(path):
            said += known_format(path, form).notes(path)
        if len(said) > MAX_NOTES:
            return [*said[:MAX_NOTES], "there may be more to say of the files that follow"]
    return said


def with_labels_of_file(
    path: Path, kinds: Kinds, names: Sequence[str], form: TextForm = AS_SEEN
) -> Kinds:
    """What the user says of columns, and what the file itself says its codes mean.

    A column whose first rows have a value without a meaning is a number with a few special values,
    and stays one.

    Parameters
    ----------
    path : Path
        The first of the files.
    kinds : Kinds
        What the user says, which goes before.
    names : sequence of str
        The columns that are used.
    form : TextForm
        How text files are written.

    Returns
    -------
    Kinds
        Both.
    """
    with reading(path):
        labels = known_format(path, form).value_labels(path)
    said = {*kinds.numbers, *kinds.value_labels}
    open_ones = [name for name in dict.fromkeys(names) if name in labels and name not in said]
    head = read_head(path, open_ones, form) if open_ones else None
    if head is None:
        return kinds
    meant = {
        name: labels[name]
        for name in open_ones
        if name in kinds.categories or all_labelled(head[name], labels[name])
    }
    return replace(kinds, value_labels={**kinds.value_labels, **meant})


def is_text(path: Path) -> bool:
    """Whether a file is CSV or the like, which has no types."""
    return not known_format(path).has_types


def refuse_other_kinds(files: Sequence[Path], names: list[str], form: TextForm = AS_SEEN) -> None:
    """Raise unless every file has the columns, each of one kind throughout."""
    first = column_kinds(files[0], names, form)
    for path in files[1:]:
        for name, kind in column_kinds(path, names, form).items():
            if kind != first[name] and "null" not in (kind, first[name]):
                raise InputError(
                    f"column {{column}} is {kind}, but {first[name]} in {{other}}; give it one "
                    f"type in all files",
                    file=path.name,
                    column=name,
                    details={"other": files[0].name},
                )


def column_names(path: Path, form: TextForm = AS_SEEN) -> list[str]:
    """All columns of a file."""
    with reading(path):
        return list(known_format(path, form).schema(path).names)


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
        ending = format_of_bytes(file.read(HEAD_BYTES)).endings[0]
    return plain.rename(folder / f"{stem}{ending}")


def _unpacked(path: Path) -> Any:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return gzip.open(path) if packed else path.open("rb")


def column_kinds(path: Path, names: list[str], form: TextForm = AS_SEEN) -> dict[str, str]:
    """What each column holds, in words, from the file's schema."""
    with reading(path):
        schema = known_format(path, form).schema(path, names)
    return {name: kind_of(schema.field(name).type) for name in names}


def row_of(
    files: Sequence[Path], names: list[str], row: int, form: TextForm = AS_SEEN
) -> tuple[Path, int]:
    """The file that a row of all files stands in, and its number there, both from 0.

    The rows are counted again: for the sake of an error, which is rare.
    """
    for path in files:
        rows = sum(batch.num_rows for batch in sound_batches(FilePart(path), names, form))
        if row < rows:
            return path, row
        row -= rows
    return files[-1], row


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
