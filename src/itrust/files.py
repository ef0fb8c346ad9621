"""Rows in files, larger than memory: `scan` names them, `Scan` hands them out chunk by chunk.

pyarrow reads Parquet, Feather and CSV in batches; each batch goes through the same intake as
a sample in memory, so the same sentences come out, with file and row.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from itrust.columns import kind_of
from itrust.errors import InputError, did_you_mean, listed
from itrust.intake import Missing, frame_columns, read_parts
from itrust.sample import Chunk, Points, Sample
from itrust.seeds import smallest_tickets, tickets
from itrust.typing import BoolArray, FloatArray, IntArray

BATCH_ROWS = 65_536
CSV_BLOCK_BYTES = 2**23
FORMATS = {".parquet": "parquet", ".feather": "feather", ".arrow": "feather", ".ipc": "feather"}
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def scan(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    label: str,
    prob: str,
    on: str | Sequence[str] = (),
    weights: str | None = None,
    positive: object = None,
    missing: Missing = "error",
) -> Scan:
    """Name the rows of files without loading them.

    Works on a scan, in one or two passes over the files: `klce_test` (Bernoulli, Rademacher and
    Spectral), `klce2`, `null_sd`, and the scores except equal-mass bins. Everything else
    wants `scan(...).load()`.

    Parameters
    ----------
    path : path, pattern ("folder/*.parquet"), folder, or list of paths
        Parquet, Feather/Arrow, CSV and TSV, the last two also gzipped.
    label, prob, on, weights, positive, missing
        As for `Sample.from_frame`.

    Examples
    --------
    >>> import itrust as it, pyarrow as pa, pyarrow.parquet, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "homes.parquet")
    >>> rows = pa.table({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9], "age": [3, 4, 5]})
    >>> pa.parquet.write_table(rows, file)
    >>> it.scan(file, label="y", prob="p", on="age")
    <Scan: 1 file, covariates 'age'>
    """
    chosen = [on] if isinstance(on, str) else [str(name) for name in on or ()]
    return Scan(tuple(_files(path)), label, prob, tuple(chosen), weights, positive, missing)


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """Rows of files; made by `scan`."""

    files: tuple[Path, ...]
    label: str
    prob: str
    names: tuple[str, ...]
    weights: str | None
    positive: Any
    missing: Missing
    parts: tuple[Part, ...] | None = None

    def __post_init__(self) -> None:
        roles = [self.label, self.prob, *self.names, *([self.weights] if self.weights else [])]
        twice = [name for name in roles if roles.count(name) > 1]
        if twice:
            raise InputError(f"a column has one role only; {listed(set(twice))} has several")
        first = _kinds(self.files[0], roles)
        for path in self.files[1:]:
            for name, kind in _kinds(path, roles).items():
                if kind != first[name]:
                    raise InputError(
                        f"{path.name}: column {name!r} is {kind}, but {first[name]} in "
                        f"{self.files[0].name}; give it one type in all files"
                    )

    @property
    def roles(self) -> list[str]:
        """All columns that are read."""
        return [self.label, self.prob, *self.names, *([self.weights] if self.weights else [])]

    def __repr__(self) -> str:
        files = f"{len(self.files):,} file{'s' if len(self.files) > 1 else ''}"
        return f"<Scan: {files}, covariates {listed(self.names)}>"

    def load(self) -> Sample:
        """All rows as a Sample in memory."""
        tables = [pa.Table.from_batches([batch]) for _, _, batch in self._batches()]
        frame = pa.concat_tables(tables, promote_options="permissive")
        return Sample.from_frame(
            frame,
            label=self.label,
            prob=self.prob,
            on=self.names,
            weights=self.weights,
            positive=self.positive,
            missing=self.missing,
        )

    @cached_property
    def n(self) -> int:
        """Number of rows that count, from a pass over the files."""
        return sum(batch.num_rows for _, _, batch in self._batches())

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, at most `size` at a time, checked as they come."""
        first, seen = self.parts[0].start if self.parts else 0, set[Any]()
        for path, offset, batch in self._batches():
            try:
                parts = self._read(batch)
                _refuse_third_label(seen, parts["values"], batch[self.label], self.positive)
            except InputError as error:
                raise InputError(_located(str(error), path, offset)) from None
            points = Points(parts["p"], parts["columns"])
            for at in range(0, len(points), size):
                rows = slice(at, at + size)
                weights = None if parts["weights"] is None else parts["weights"][rows]
                yield Chunk(
                    first + at, parts["y"][rows], parts["p"][rows], points.take(rows), weights
                )
            first += len(points)

    clusters: ClassVar[None] = None  # files have no clusters yet

    def pilot(self, size: int) -> tuple[Points, FloatArray]:
        """Random rows of all files (which may be sorted), and their w^2 p (1 - p)."""
        if size not in self._pilots:
            self._pilots[size] = self.pilot_of([self.best_candidates(size)], size)
        return self._pilots[size]

    def remember(self, n: int, size: int, pilot: tuple[Points, FloatArray]) -> None:
        """Keep what somebody else has counted and sampled."""
        self.__dict__["n"] = n
        self._pilots[size] = pilot

    @cached_property
    def surveys(self) -> dict[int, tuple[Part, ...]]:
        """Partitions that an engine has made, by size of the pilot sample."""
        return {}

    @cached_property
    def _pilots(self) -> dict[int, tuple[Points, FloatArray]]:
        return {}

    def pilot_of(
        self, candidates: Sequence[tuple[FloatArray, pa.Table]], size: int
    ) -> tuple[Points, FloatArray]:
        """The rows with the smallest tickets among candidates."""
        drawn, rows = _smallest(candidates, size)
        if drawn.size < 2:
            told = "1 row" if drawn.size else "no rows"
            raise InputError(f"the files hold {told} that count; a sample needs at least 2")
        parts = self._read(rows, with_label=False)
        w = 1.0 if parts["weights"] is None else parts["weights"]
        return Points(parts["p"], parts["columns"]), w**2 * parts["p"] * (1 - parts["p"])

    def best_candidates(self, size: int, most: float = 1.0) -> tuple[FloatArray, pa.Table]:
        """The rows with the smallest tickets, none above `most`, from a pass over the files."""
        start = first = self.parts[0].start if self.parts else 0
        bar = most
        found: list[tuple[FloatArray, pa.Table]] = []
        for path, offset, batch in self._batches():
            drawn = tickets(first, batch.num_rows)
            first += batch.num_rows
            rows = np.flatnonzero(drawn < bar)
            if rows.size:
                part = pa.Table.from_batches([batch]).take(pa.array(rows))
                try:
                    self._read(part, with_label=False)
                except InputError as error:  # the row is that of the batch, not of the part
                    raise InputError(_located(str(error), path, offset, rows)) from None
                found = [_smallest([*found, (drawn[rows], part)], size)]
                bar = float(found[0][0].max()) if found[0][0].size == size else most
        self.__dict__["n"] = first - start  # counted on the way
        return found[0] if found else (np.empty(0), pa.table({}))

    def _read(self, frame: Any, *, with_label: bool = True) -> dict[str, Any]:
        columns = frame_columns(frame if isinstance(frame, pa.Table) else pa.table(frame))
        labels = columns[self.label] if with_label else np.zeros(frame.num_rows)
        return read_parts(
            labels,
            columns[self.prob],
            {name: columns[name] for name in self.names},
            weights=columns[self.weights] if self.weights else None,
            positive=self.positive if with_label else None,
            missing=self.missing,
            partial=True,
        )

    def _batches(self) -> Iterator[tuple[Path, int, pa.RecordBatch]]:
        """Files, the number of their first row in hand, and the rows; without dropped rows."""
        for part in self.parts or tuple(Part(path) for path in self.files):
            offset = part.offset
            with _reading(part.path):
                batches = _read_batches(part, self.roles)
            while True:
                with _reading(part.path):
                    batch = next(batches, None)
                if batch is None:
                    break
                kept = self._kept(batch) if self.missing == "drop" else None
                yield part.path, offset, batch if kept is None else batch.filter(pa.array(kept))
                offset += batch.num_rows

    def _kept(self, batch: pa.RecordBatch) -> BoolArray:
        keep = np.ones(batch.num_rows, dtype=bool)
        for name in self.names:
            column = batch[name]
            is_float = pa.types.is_floating(column.type)
            missing = pc.is_null(column, nan_is_null=True) if is_float else pc.is_null(column)
            keep &= ~missing.to_numpy(zero_copy_only=False)
        return keep


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


def _refuse_third_label(
    seen: set[Any], values: tuple[Any, Any], column: pa.Array, positive: object
) -> None:
    """Labels other than the positive one must be the same in all chunks."""
    other = values[0]
    if isinstance(other, str) and other == f"not {1 if positive is None else positive!r}":
        return  # this chunk has positive labels only
    seen.add(other)
    if len(seen) > 1:
        row = column.to_pylist().index(other)
        raise InputError(
            f"label must have two values, but besides the positive one there are {listed(seen)}; "
            f"row {row} has {other!r}"
        )


def _smallest(
    candidates: Sequence[tuple[FloatArray, pa.Table]], size: int
) -> tuple[FloatArray, pa.Table]:
    """The `size` smallest tickets of several lots, in the order of the rows, and their rows."""
    lots = [(drawn, rows) for drawn, rows in candidates if drawn.size]
    if not lots:
        return np.empty(0), pa.table({})
    drawn = np.concatenate([ticket for ticket, _ in lots])
    table = pa.concat_tables([rows for _, rows in lots], promote_options="permissive")
    chosen = smallest_tickets(drawn, size)
    return drawn[chosen], table.take(pa.array(chosen)).combine_chunks()


def _located(message: str, path: Path, offset: int, rows: IntArray | None = None) -> str:
    """A message about a batch, with the file's name and the row's number in the file."""

    def number(found: re.Match[str]) -> str:
        row = int(found[1])
        return f"row {offset + (row if rows is None else int(rows[row]))}"

    moved = re.sub(r"\brow (\d+)", number, message)
    return f"{path.name}: {moved}"


def _files(path: Any) -> list[Path]:
    if isinstance(path, list | tuple):
        return [file for one in path for file in _files(one)]
    text = os.fspath(path)
    if os.path.isdir(text):
        found = sorted(p for p in Path(text).rglob("*") if p.is_file() and _is_known(p))
        if not found:
            raise InputError(f"the folder {text} holds no Parquet, Feather, CSV or TSV file")
        return found
    if glob.has_magic(text):
        found = sorted(Path(name) for name in glob.glob(text, recursive=True))
        if not found:
            raise InputError(f"no file matches {text!r}")
        return found
    if not os.path.isfile(text):
        raise InputError(f"there is no file {text!r}")
    if not _is_known(Path(text)):
        known = listed([*FORMATS, *SEPARATORS])
        raise InputError(f"{text}: the ending must be one of {known} (text files also with .gz)")
    return [Path(text)]


def _ending(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def _is_known(path: Path) -> bool:
    is_text = _ending(path) in SEPARATORS
    return is_text or (_ending(path) in FORMATS and path.suffix != ".gz")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what the reader cannot read into one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path.name} cannot be read to its end ({reason}); is it whole?"
        ) from None


def _read_batches(part: Part, names: list[str]) -> Iterator[pa.RecordBatch]:
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


def _open_csv(path: Path, names: list[str]) -> Any:
    """A streaming reader; integers are read as float64, since later blocks may have decimals."""
    parse = pa.csv.ParseOptions(delimiter=SEPARATORS[_ending(path)])
    read = pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES)
    with pa.csv.open_csv(path, read, parse) as reader:
        schema = reader.schema
    _require(path, names, schema.names)
    types = {name: _lasting_type(schema.field(name).type) for name in names}
    convert = pa.csv.ConvertOptions(
        column_types=types, include_columns=names, strings_can_be_null=True
    )
    return pa.csv.open_csv(path, read, parse, convert)


def _lasting_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.float64()
    return pa.string() if pa.types.is_null(kind) else kind


def _kinds(path: Path, names: list[str]) -> dict[str, str]:
    """What each column holds, in words, from the file's schema."""
    with _reading(path):
        schema = _schema(path, names)
    return {name: kind_of(schema.field(name).type) for name in names}


def _schema(path: Path, names: list[str]) -> pa.Schema:
    if _ending(path) in SEPARATORS:
        with _open_csv(path, names) as reader:
            return reader.schema
    schema = pa.dataset.dataset(path, format=FORMATS[_ending(path)]).schema
    _require(path, names, schema.names)
    return schema


def _require(path: Path, names: list[str], present: list[str]) -> None:
    for name in names:
        if name not in present:
            raise InputError(
                f"{path.name}: there is no column {name!r}; {did_you_mean(name, present)}"
            )
