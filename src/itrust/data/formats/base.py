"""What a kind of file promises: columns, rows in batches, all rows as they stand, writing.

Parquet and Feather, which Arrow keeps column by column, are the plainest of them.

Arrow's readers trust a file: offsets, lengths and text in a damaged one may point anywhere. So rows
are `sound`, that is what their types say, before anybody uses them.
"""

from __future__ import annotations

import gzip
import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from itrust._core import Code, InputError, did_you_mean, first_line, free_memory, listed, place_of

BATCH_ROWS = 65_536
GROUP_ROWS = 2**20  # of a row group that is written, at most
BUFFER_BYTES = 2**20  # that are read at once of a column
PACKED = "lz4" if pa.Codec.is_available("lz4") else None
LINES_BYTES = 2**18  # enough to tell how long lines are
HEAD_BYTES = 2**16  # enough to tell which format a file begins like
DAYS = -719_162, 2_932_896  # of the years 1 to 9999, from 1970
IN_A_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
SHARE = 1 / 2  # of free memory, for rows that are gathered, as they will be copied
VALUE_BYTES = 8
SMALL_BYTES = 2**28  # are never refused: what is free changes from moment to moment
AS_A_STREAM = Code(
    "use the scan itself, without load(), or fewer columns",
    "read them as a stream (--stream), or name fewer columns",
)

Put: TypeAlias = Callable[[pa.Table], None]


@dataclass(frozen=True)
class FilePart:
    """A piece of the rows: a file or some row groups of a Parquet file.

    Its first row has the number `start` in the whole, `offset` in its file; `rows` may be unknown.
    """

    path: Path
    row_groups: tuple[int, ...] | None = None
    offset: int = 0
    start: int = 0
    rows: int | None = None


class Format(ABC):
    """One kind of file.

    `endings` are those it is read by, the first of them the usual one, `named_only` those of them
    that a file is not taken for data by unless it is named itself; `has_types` says whether a
    file knows the types of its columns, `types_last` whether these hold for the whole file,
    `has_categories` whether there is one for categories; `one_dictionary` says that a file has room
    for one dictionary a column; `magic` are the bytes that such a file begins with;
    `is_text` says that rows are lines, and the file may be gzipped;
    `beside` are the endings of files that hold changes which are not in the file itself yet.
    """

    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    named_only: ClassVar[tuple[str, ...]] = ()
    has_types: ClassVar[bool] = True
    has_categories: ClassVar[bool] = False
    types_last: ClassVar[bool] = True
    one_dictionary: ClassVar[bool] = False
    is_written: ClassVar[bool] = True
    is_text: ClassVar[bool] = False
    magic: ClassVar[tuple[bytes, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """Columns and their types; refuses a file without these names."""

    @abstractmethod
    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows of some columns, in order."""

    def untouched(self, path: Path, names: list[str]) -> Iterator[pa.Table]:
        """All rows as they stand in the file, in order, some at a time; by default as read."""
        for batch in self.batches(FilePart(path), names):
            yield pa.Table.from_batches([batch]).select(names)

    def writer(self, path: Path, schema: pa.Schema) -> AbstractContextManager[Put]:  # noqa: ARG002
        """Open a file for rows that come some at a time; refused where `is_written` is not set."""
        sentence = f"{self.title} files are read, not written; take .csv or .parquet"
        raise refused(path, sentence)

    def write(self, table: pa.Table, path: Path) -> None:
        with self.writer(path, table.schema) as put:
            put(table)

    def begins(self, head: bytes) -> bool:
        """Whether these are the first bytes of such a file, as far as bytes can tell."""
        return bool(self.magic) and head.startswith(self.magic)

    def refuse_other_start(self, path: Path) -> None:
        """Raise unless a file begins as one of this kind does."""
        refuse_empty(path)
        with path.open("rb") as file:
            if not self.begins(file.read(HEAD_BYTES)):
                raise refused(path, f"{{file}} is no {self.title} file, whatever its ending says")

    def value_labels(self, path: Path) -> dict[str, dict[Any, str]]:  # noqa: ARG002
        """What the codes of a column mean, by column, where the file says so."""
        return {}

    def notes(self, path: Path) -> list[str]:  # noqa: ARG002
        """What a user may not expect of the way a file is read."""
        return []

    def parts(self, path: Path, _rows: int) -> list[FilePart]:
        """The file in pieces of about so many rows that can be read alone; by default, whole."""
        return [FilePart(path)]

    def about_rows(self, path: Path) -> float | None:
        """How many rows there are, or about how many; None where that takes reading them."""
        if not self.is_text:
            return None
        with path.open("rb") as raw:
            file = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            try:
                lines = file.read(LINES_BYTES).count(b"\n")
            except (OSError, EOFError, zlib.error):  # the reader says what is wrong with it
                lines = 0
            return path.stat().st_size * lines / max(raw.tell(), 1)

    def line_of(self, path: Path, row: int) -> int | None:  # noqa: ARG002
        """The line on which a row begins, from 1; None for files without lines."""
        return None


class SeveralTables(Format):
    """A file that holds several tables; one is named behind its path, as in `homes.db::scores`.

    `noun` is what a table is called there.
    """

    noun: ClassVar[str] = "table"
    is_written = False

    def split(self, path: str | Path) -> tuple[Path, str | None]:
        """The file itself, and the table that was named behind it."""
        endings = "|".join(map(re.escape, self.endings))
        match = re.fullmatch(rf"(.*?(?:{endings}))::(.+)", str(path), re.DOTALL | re.IGNORECASE)
        return (Path(match[1]), match[2]) if match else (Path(path), None)

    def refuse_lack_of_table(self, name: str, present: list[str], file: Path) -> None:
        """Raise unless there is a table of this name."""
        problem = f"there is no {self.noun} {{value}}; {{guess}}"
        place_of(name, present, problem, file=file.name)


def optional_package(name: str, kind: Format, extra: str, path: Path) -> Any:
    """A package that reads one kind of file; a sentence where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        sentence = f"reading {kind.title} files takes {name}; pip install 'itrust[{extra}]'"
        raise refused(path, sentence) from None


def refused(file: Path | str, sentence: str, **fields: Any) -> InputError:
    """The error about a file."""
    return InputError(sentence, file=file.name if isinstance(file, Path) else file, **fields)


def unreadable(path: Path, reason: Exception | str, cure: str = "is it whole?") -> InputError:
    """The sentence for a file that its reader gives up on."""
    reason = reason if isinstance(reason, str) else first_line(reason)
    sentence = "{file} cannot be read to its end ({reason}); {cure}"
    return refused(path, sentence, reason=reason, cure=cure)


def refuse_empty(path: Path) -> None:
    """Raise if a file has no byte."""
    if not path.stat().st_size:
        raise refused(path, "{file} is empty")


def refuse_lack_of(names: Sequence[str], present: list[str], path: Path) -> None:
    """Raise unless every name is there once; of no names, unless all columns differ."""
    counts = Counter(present)
    twice = [name for name in dict.fromkeys(names or present) if counts[name] > 1]
    if twice:
        sentence = "names of columns must differ; {twice} stands more than once"
        raise refused(path, sentence, twice=listed(twice))
    for name in names:
        if name not in counts:
            guess = did_you_mean(name, present)
            raise refused(path, "there is no column {column}; {guess}", column=name, guess=guess)


def sound(batch: pa.RecordBatch, path: Path) -> pa.RecordBatch:
    """The same rows; Arrow's error where they are not what their types say."""
    batch.validate(full=True)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.dictionary
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            _refuse_foreign_times(column, name, path)
    return batch


def _refuse_foreign_times(column: pa.Array, name: str, path: Path) -> None:
    """Raise for dates that no calendar has: they would wrap around where dates become numbers."""
    kind = column.type
    per_day = 1 if pa.types.is_date32(kind) else IN_A_DAY[getattr(kind, "unit", "ms")]
    ends = pc.min_max(column.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()))
    for end in (ends["min"].as_py(), ends["max"].as_py()):
        if end is not None and not DAYS[0] <= end // per_day <= DAYS[1]:
            raise no_date(end, name, path)
    try:
        pa.lib.string_to_tzinfo(getattr(kind, "tz", None) or "UTC")
    except (ValueError, LookupError, OSError):
        sentence = "column {column} has the time zone {value}, which is not known here"
        raise refused(path, sentence, column=name, value=kind.tz) from None


def no_date(value: object, name: str, path: Path) -> InputError:
    """The sentence for a number that stands for no day of our calendar."""
    sentence = "column {column} holds {value}, which is no date of the years 1 to 9999"
    return refused(path, sentence, column=name, value=value)


def room_for(share: float = 1.0) -> float:
    """Bytes that something may take: a share of free memory, and never very few."""
    return max(share * free_memory(), SMALL_BYTES)


def room_left(room: float, batch: pa.RecordBatch, path: Path) -> float:
    """Memory that is left for rows that are gathered; refuses rows that do not fit."""
    room -= max(batch.nbytes, VALUE_BYTES * batch.num_rows)
    if room < 0:
        size = in_bytes(SHARE * free_memory())
        sentence = (
            "the rows of {file} do not fit into memory: they take more than {size}, half of what "
            "is free; {cure}"
        )
        raise refused(path, sentence, size=size, cure=AS_A_STREAM)
    return room


def in_bytes(size: float) -> str:
    """A size for people.

    >>> in_bytes(3.2e9), in_bytes(2e6), in_bytes(12), in_bytes(64_000)
    ('3.2 GB', '2 MB', '12 bytes', '64 kB')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            digits = ".2g" if size < 10 * unit else ",.0f"
            return f"{size / unit:{digits}} {name}"
    return f"{size:.0f} bytes"


class Parquet(Format):
    """Read a row group at a time."""

    title, endings, magic = "Parquet", (".parquet",), (b"PAR1",)
    has_categories = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        refuse_empty(path)
        schema = pa.parquet.read_schema(path)
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches end with their group, so partitions change no sum."""
        # Not the dataset reader: it keeps the column chunks of a file until the file's end.
        with pa.parquet.ParquetFile(
            part.path, pre_buffer=False, buffer_size=BUFFER_BYTES, page_checksum_verification=True
        ) as file:
            every = range(file.num_row_groups)
            for number in every if part.row_groups is None else part.row_groups:
                left = file.metadata.row_group(number).num_rows
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[number], columns=names):
                    left -= batch.num_rows
                    refuse_lack_of(names, batch.schema.names, part.path)  # as its other schema says
                    yield sound(batch, part.path)
                if left:
                    sentence = (
                        "row group {group} of {file} has other rows than it says; is it whole?"
                    )
                    raise refused(part.path, sentence, group=number + 1)

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        with pa.parquet.ParquetWriter(path, schema, write_page_checksum=True) as file:
            yield lambda table: file.write_table(table, GROUP_ROWS)

    def about_rows(self, path: Path) -> float | None:
        return float(sum(_counts(path)))

    def parts(self, path: Path, rows: int) -> list[FilePart]:
        parts: list[FilePart] = []
        groups: list[int] = []
        offset = gathered = 0
        counts = _counts(path)
        for number, count in enumerate(counts):
            groups.append(number)
            gathered += count
            if gathered >= rows or number == len(counts) - 1:
                parts.append(FilePart(path, tuple(groups), offset, rows=gathered))
                offset, gathered, groups = offset + gathered, 0, []
        return parts


def _counts(path: Path) -> list[int]:
    """The rows of each row group; refuses a footer that contradicts itself."""
    about = pa.parquet.read_metadata(path)
    counts = [about.row_group(number).num_rows for number in range(about.num_row_groups)]
    if min(counts, default=0) < 0 or sum(counts) != about.num_rows:
        raise refused(path, "{file} contradicts itself on its rows; is it whole?")
    return counts


class Feather(Format):
    """Feather and other Arrow files."""

    title, endings = "Feather", (".feather", ".arrow", ".ipc")
    magic = (b"ARROW1", b"FEA1")
    has_categories = one_dictionary = True

    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        refuse_empty(path)
        with pa.OSFile(str(path)) as raw, pa.ipc.open_file(raw) as file:
            schema = file.schema
        refuse_lack_of(names, schema.names, path)
        return schema

    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Those of the file, large ones cut and empty ones left out."""
        schema = self.schema(part.path, names)
        fields = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(n) for n in names])
        # Not the dataset reader: it reads ahead as far as memory goes if its rows are not wanted.
        with pa.OSFile(str(part.path)) as raw, pa.ipc.open_file(raw, options=fields) as file:
            for number in range(file.num_record_batches):
                batch = sound(file.get_batch(number).select(names), part.path)
                for first in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(first, BATCH_ROWS)

    @contextmanager
    def writer(self, path: Path, schema: pa.Schema) -> Iterator[Put]:
        packing = pa.ipc.IpcWriteOptions(compression=PACKED)
        with pa.ipc.new_file(str(path), schema, options=packing) as file:
            yield lambda table: file.write_table(table, BATCH_ROWS)

    def about_rows(self, path: Path) -> float | None:
        from pyarrow.dataset import dataset  # which takes a while to load

        return float(dataset(path, format="ipc").count_rows())
