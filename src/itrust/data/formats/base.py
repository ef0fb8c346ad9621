"""What a kind of file promises: columns, rows in batches, all rows as they stand, writing."""

from __future__ import annotations

import gzip
import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeAlias, cast

import pyarrow as pa

from itrust._core import InputError, did_you_mean, first_line, listed

BATCH_ROWS = 65_536
HEAD_ROWS = 20_000
START_BYTES = 64  # enough to tell what a file is
HEAD_BYTES = 2**16  # enough to tell which format it begins like, if its ending does not
GZIP = b"\x1f\x8b"
END_BYTES = 2**16  # at either end of a file, to tell whether it is still the same
LINES_BYTES = 2**18  # enough to tell how long lines are
PACKED_HEAD, UNPACKED_HEAD = 2**16, 2**26  # to tell how much a file unpacks to
PACKING = 6  # of gzip, its usual level

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

    def telling_bytes(self, file: BinaryIO, size: int) -> bytes:
        """Some bytes of an open file that change when it does: both ends, and all of a footer."""
        length = max(END_BYTES, self.footer_bytes(file, size))
        file.seek(0)
        head = file.read(END_BYTES)
        file.seek(max(len(head), size - length))
        return head + file.read(length)

    def footer_bytes(self, file: BinaryIO, size: int) -> int:  # noqa: ARG002
        """Length of the part at the end of a file that says where everything is; 0 without one."""
        return 0

    def refuse_other_start(self, path: Path) -> None:
        """Raise unless a file begins as one of this kind does."""
        refuse_empty(path)
        with path.open("rb") as file:
            head = file.read(START_BYTES)
        if not self.begins(head):
            raise InputError(
                f"{{file}} is no {self.title} file, whatever its ending says", file=path.name
            )

    def head(self, path: Path, names: list[str]) -> pa.RecordBatch | None:
        """The first rows, some ten thousand; None if there are none."""
        return next(iter(self.batches(FilePart(path), names)), None)

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


class SeveralTables(Format):
    """A file that holds several tables; one is named behind its path, as in `homes.db::scores`.

    `noun` is what a table is called there.
    """

    noun: ClassVar[str] = "table"
    is_written = False

    def split(self, path: str | Path) -> tuple[Path, str | None]:
        """The file itself, and the table that was named behind it."""
        endings = "|".join(map(re.escape, self.endings))
        found = re.fullmatch(rf"(.*?(?:{endings}))::(.+)", str(path), re.DOTALL | re.IGNORECASE)
        return (Path(found[1]), found[2]) if found else (Path(path), None)

    def refuse_lack_of_table(self, name: str, present: list[str], file: Path) -> None:
        """Raise unless there is a table of this name."""
        if name not in present:
            raise InputError(
                f"there is no {self.noun} {{value}}; {{guess}}",
                file=file.name,
                value=name,
                details={"guess": did_you_mean(name, present)},
            )


def about_lines(path: Path) -> float:
    """About how many lines a text file has, by its first ones; it may be gzipped."""
    with path.open("rb") as raw, _unpacked(path, raw) as file:
        try:
            lines = file.read(LINES_BYTES).count(b"\n")
        except (OSError, EOFError, zlib.error):  # the reader says what is wrong with it
            lines = 0
        return path.stat().st_size * lines / max(raw.tell(), 1)


def about_unpacked(path: Path) -> float:
    """About how large a gzipped file is when it is unpacked, by its first bytes."""
    with path.open("rb") as file:
        head = file.read(PACKED_HEAD)
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = len(unpacking.decompress(head, UNPACKED_HEAD))
    except zlib.error:  # the reader says what is wrong with it
        return 0.0
    used = len(head) - len(unpacking.unconsumed_tail) - len(unpacking.unused_data)
    return path.stat().st_size * found / max(used, 1)


def _unpacked(path: Path, raw: BinaryIO) -> AbstractContextManager[BinaryIO]:
    packed = path.suffix == ".gz"
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else nullcontext(raw)


@contextmanager
def sink(path: Path) -> Iterator[BinaryIO]:
    """A file for text; packed where its ending says so, with nothing about when and where."""
    with path.open("wb") as raw:
        if path.suffix != ".gz":
            yield raw
            return
        with gzip.GzipFile("", "wb", PACKING, raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)


def optional_package(name: str, kind: Format, extra: str, path: Path) -> Any:
    """A package that reads one kind of file; a sentence where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"reading {kind.title} files takes {name}; pip install 'itrust[{extra}]'",
            file=path.name,
        ) from None


@contextmanager
def impossible(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Turn these exceptions into the sentence for a file that cannot be what it says."""
    try:
        yield
    except InputError:  # which is a ValueError, and has its sentence
        raise
    except kinds as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception, cure: str = "is it whole?") -> InputError:
    """The sentence for a file that its reader gives up on."""
    return InputError(
        "{file} cannot be read to its end ({reason}); {cure}",
        file=path.name,
        details={"reason": first_line(error), "cure": cure},
    )


def refuse_empty(path: Path) -> None:
    """Raise if a file has no byte."""
    if not path.stat().st_size:
        raise InputError("{file} is empty", file=path.name)


def refuse_lack_of(names: Sequence[str], present: list[str], path: Path) -> None:
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
    return did_you_mean(name, present)
