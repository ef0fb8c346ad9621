"""What a kind of file promises: columns, rows in batches, all rows as they stand, writing.

Arrow's readers trust a file: offsets, lengths and text in a damaged one may point anywhere. So rows
are `sound`, that is what their types say, before anybody uses them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import Code, InputError, did_you_mean, first_line, free_memory, listed

BATCH_ROWS = 65_536
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

    `start` is the number of its first row that counts in the whole, `offset` in its file;
    `rows` is how many it holds, where the file says so.
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
    may_be_gzipped: ClassVar[bool] = False
    magic: ClassVar[tuple[bytes, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def schema(self, path: Path, names: Sequence[str] = ()) -> pa.Schema:
        """Columns and their types; refuses a file without these names."""

    @abstractmethod
    def batches(self, part: FilePart, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows of some columns, in order."""

    def untouched_schema(self, path: Path, names: list[str]) -> pa.Schema:
        """The types that `untouched` gives; if they do not last, those of the first rows."""
        schema = self.schema(path, names)
        return pa.schema([schema.field(name) for name in names], schema.metadata)

    def untouched(self, path: Path, names: list[str]) -> Iterator[pa.Table]:
        """All rows as they stand in the file, in order, some at a time; by default as read."""
        for batch in self.batches(FilePart(path), names):
            yield pa.Table.from_batches([batch]).select(names)

    def writer(self, path: Path, schema: pa.Schema) -> AbstractContextManager[Put]:  # noqa: ARG002
        """Open a file for rows that come some at a time; refused where `is_written` is not set."""
        raise InputError(
            f"{self.title} files are read, not written; take .csv or .parquet", file=path.name
        )

    def write(self, table: pa.Table, path: Path) -> None:
        """Write all rows."""
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
                raise InputError(
                    f"{{file}} is no {self.title} file, whatever its ending says", file=path.name
                )

    def value_labels(self, path: Path) -> dict[str, dict[Any, str]]:  # noqa: ARG002
        """What the codes of a column mean, by column, where the file says so."""
        return {}

    def notes(self, path: Path) -> list[str]:  # noqa: ARG002
        """What a user may not expect of the way a file is read."""
        return []

    def parts(self, path: Path, _rows: int) -> list[FilePart]:
        """The file in pieces of about so many rows that can be read alone; by default, whole."""
        return [FilePart(path)]

    def about_rows(self, path: Path) -> float | None:  # noqa: ARG002
        """How many rows there are, or about how many; None where that takes reading them."""
        return None

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
        if name not in present:
            raise InputError(
                f"there is no {self.noun} {{value}}; {{guess}}",
                file=file.name,
                value=name,
                details={"guess": did_you_mean(name, present)},
            )


def optional_package(name: str, kind: Format, extra: str, path: Path) -> Any:
    """A package that reads one kind of file; a sentence where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"reading {kind.title} files takes {name}; pip install 'itrust[{extra}]'",
            file=path.name,
        ) from None


def unreadable(path: Path, reason: Exception | str, cure: str = "is it whole?") -> InputError:
    """The sentence for a file that its reader gives up on."""
    return InputError(
        "{file} cannot be read to its end ({reason}); {cure}",
        file=path.name,
        details={"reason": reason if isinstance(reason, str) else first_line(reason), "cure": cure},
    )


def refuse_empty(path: Path) -> None:
    """Raise if a file has no byte."""
    if not path.stat().st_size:
        raise InputError("{file} is empty", file=path.name)


def refuse_lack_of(names: Sequence[str], present: list[str], path: Path) -> None:
    """Raise unless every name is there once; of no names, unless all columns differ."""
    counts = Counter(present)
    twice = [name for name in dict.fromkeys(names or present) if counts[name] > 1]
    if twice:
        raise InputError(
            "names of columns must differ; {twice} stands more than once",
            file=path.name,
            details={"twice": listed(twice)},
        )
    for name in names:
        if name not in counts:
            raise InputError(
                "there is no column {column}; {guess}",
                file=path.name,
                column=name,
                details={"guess": did_you_mean(name, present)},
            )


def sound(batch: pa.RecordBatch, path: Path) -> pa.RecordBatch:
    """The same rows; Arrow's error where they are not what their types say."""
    batch.validate(full=True)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for leaf in _leaves(column):
            _refuse_foreign_times(leaf, name, path)
    return batch


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    """The plain columns that a nested one is made of."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(column.storage)
    elif pa.types.is_dictionary(kind):
        yield from _leaves(column.dictionary)
    elif pa.types.is_run_end_encoded(kind):
        yield from _leaves(column.values)
    elif pa.types.is_struct(kind) or pa.types.is_map(kind):
        for child in column.flatten() if pa.types.is_struct(kind) else (column.keys, column.items):
            yield from _leaves(child)
    elif pa.types.is_nested(kind) and not pa.types.is_union(kind):
        yield from _leaves(column.flatten())
    else:
        yield column


def _refuse_foreign_times(column: pa.Array, name: str, path: Path) -> None:
    """Raise for dates that no calendar has: they would wrap around where dates become numbers."""
    kind = column.type
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        return
    if pa.types.is_date32(kind):
        steps, column = 1, column.view(pa.int32())
    else:
        steps = IN_A_DAY["ms" if pa.types.is_date(kind) else kind.unit]
        column = column.view(pa.int64())
    ends = pc.min_max(column)
    for end in (ends["min"].as_py(), ends["max"].as_py()):
        if end is not None and not DAYS[0] <= end // steps <= DAYS[1]:
            raise no_date(end, name, path)
    try:
        pa.lib.string_to_tzinfo(getattr(kind, "tz", None) or "UTC")
    except (ValueError, LookupError, OSError):
        raise InputError(
            "column {column} has the time zone {value}, which is not known here",
            file=path.name,
            column=name,
            value=kind.tz,
        ) from None


def no_date(value: object, name: str, path: Path) -> InputError:
    """The sentence for a number that stands for no day of our calendar."""
    return InputError(
        "column {column} holds {value}, which is no date of the years 1 to 9999",
        file=path.name,
        column=name,
        value=value,
    )


def room_for(share: float = 1.0) -> float:
    """Bytes that something may take: a share of free memory, and never very few."""
    return max(share * free_memory(), SMALL_BYTES)


class Room:
    """Memory for rows that are gathered."""

    def __init__(self) -> None:
        self.left = room_for(SHARE)

    def take(self, batch: pa.RecordBatch, path: Path) -> None:
        """Raise if these rows, on top of those before, do not fit."""
        self.left -= max(batch.nbytes, VALUE_BYTES * batch.num_rows)
        if self.left < 0:
            raise InputError(
                "the rows of {file} do not fit into memory: they take more than {size}, half of "
                "what is free; {cure}",
                file=path.name,
                details={"size": in_bytes(SHARE * free_memory()), "cure": AS_A_STREAM},
            )


def decoded(column: pa.DictionaryArray, name: str) -> pa.Array:
    """The values of a dictionary, row by row; refuses a few long ones in very many rows."""
    values = column.dictionary
    if pa.types.is_large_string(values.type) or pa.types.is_string(values.type):
        lengths = pc.binary_length(values)
        size = (pc.max(lengths).as_py() or 0) * len(column)
        if size > SMALL_BYTES:
            size = pc.sum(lengths.take(column.indices)).as_py() or 0
        if size > room_for(SHARE):
            raise InputError(
                "column {column} has texts of {size} in {count} rows, more than fits into memory",
                column=name,
                count=len(column),
                details={"size": in_bytes(size)},
            )
    return column.dictionary_decode()


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
