"""Files of every format, damaged, through every door that reads them.

All sound files hold the same rows, so that a file with a checksum that is accepted with other
rows is told.
"""

import datetime as dt
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

import itrust as it
from fuzz.kit import Outcome, Target, flipped_bytes
from itrust import InputError
from itrust.cli.inputs import opened
from itrust.cli.options import AUDIT, Options
from itrust.data import FileSet, prepare_copy
from writers import as_csv, as_excel, as_json_lines, as_spss, as_sqlite, as_stata

ROWS = 60
ROLES = dict(label="y", prob="p", on=["age", "race", "day"], missing="level")

PLAIN = pa.table(
    {
        "y": pa.array([row % 3 == 0 for row in range(ROWS)]).cast(pa.int64()),
        "p": [(row * 7 % ROWS + 2) / 64 for row in range(ROWS)],
        "age": [None if row % 11 == 4 else 20.0 + row * 13 % 50 for row in range(ROWS)],
        "race": [None if row % 13 == 5 else "bwé"[row % 3] * (1 + row % 2) for row in range(ROWS)],
        "day": [dt.date(2020, 1, 1) + dt.timedelta(days=row * 5) for row in range(ROWS)],
    }
)
MORE = {
    "kind": pa.array([f"level {row % 5}" for row in range(ROWS)]).dictionary_encode(),
    "when": pa.array([row * 10**12 for row in range(ROWS)], pa.timestamp("us", "UTC")),
    "flag": [None if row % 7 == 1 else row % 2 == 0 for row in range(ROWS)],
    "long": pa.array([f"text {row}" * (row % 3) for row in range(ROWS)], pa.large_string()),
    "bytes": pa.array([bytes([row]) for row in range(ROWS)], pa.binary()),
    "money": [Decimal(row * 101) / 100 for row in range(ROWS)],
    "lists": pa.array([[row, None] * (row % 3) for row in range(ROWS)], pa.list_(pa.int32())),
    "pairs": [{"a": row, "b": str(row)} for row in range(ROWS)],
}
RICH = pa.table({**{name: PLAIN[name] for name in PLAIN.column_names}, **MORE})


def feather(packed: str | None) -> bytes:
    """Several batches, of which one is empty."""
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=packed)
    with pa.ipc.new_file(file, RICH.schema, options=options) as writer:
        writer.write_table(RICH.slice(0, 40), 25)
        writer.write_table(RICH.slice(0, 0))
        writer.write_table(RICH.slice(40))
    return file.getvalue()


def parquet(packed: str, *, checked: bool, **settings: object) -> bytes:
    """Several row groups and pages."""
    file = io.BytesIO()
    pa.parquet.write_table(
        RICH,
        file,
        row_group_size=25,
        compression=packed,
        write_page_checksum=checked,
        data_page_size=100,
        write_batch_size=10,
        **settings,
    )
    return file.getvalue()


def feathers(_folder: Path) -> list[bytes]:
    return [feather(packed) for packed in (None, "lz4", "zstd")]


def parquets(_folder: Path, *, checked: bool = False) -> list[bytes]:
    kinds = ("none", "snappy", "zstd")
    plain = [parquet(packed, checked=checked) for packed in kinds]
    direct = [parquet(packed, checked=checked, use_dictionary=False) for packed in kinds]
    newer = [parquet("snappy", checked=checked, data_page_version="2.0")]
    return [*plain, *direct, *newer]


def written(
    write: Callable[[pa.Table, Path], None], ending: str, folder: Path, packed: bool = False
) -> list[bytes]:
    """One file of a format that has a writer for tests."""
    path = folder / f"sound{ending}"
    path.unlink(missing_ok=True)
    write(PLAIN, path)
    found = path.read_bytes()
    path.unlink()
    return [gzip.compress(found, mtime=0) if packed else found]


def one_bit(rng: random.Random, sound: bytes) -> bytes:
    found = bytearray(sound)
    at = rng.randrange(len(found))
    found[at] ^= 1 << rng.randrange(8)
    return bytes(found)


def within_a_part(rng: random.Random, sound: bytes) -> bytes:
    """A zipped file whose checksums are right, with a part that was damaged before."""
    if rng.random() < 0.3:
        return flipped_bytes(rng, sound)
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sound)) as old, zipfile.ZipFile(found, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, flipped_bytes(rng, part) if name == chosen else part)
    return found.getvalue()


def one_bit_of_a_page(rng: random.Random, sound: bytes) -> bytes:
    """Where checksums look: at what pages hold, of which the last bytes of a column are some."""
    about = pa.parquet.read_metadata(io.BytesIO(sound))
    column = about.row_group(rng.randrange(about.num_row_groups)).column(
        rng.randrange(about.num_columns)
    )
    start = column.dictionary_page_offset or column.data_page_offset
    damaged = bytearray(sound)
    damaged[start + column.total_compressed_size - 1 - rng.randrange(4)] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def doors(path: Path) -> list[Callable[[], object]]:
    """Ways into a file; each may be the first that meets what is wrong with it."""

    def names() -> list[str]:
        return FileSet.of(path).names

    def parts() -> object:
        source = FileSet.of(path)
        return [
            batch.to_pylist()
            for part in source.parts(10)
            for batch in source.batches(part, source.names)
        ]

    def untouched() -> object:
        source = FileSet.of(path)
        return [rows.to_pylist() for rows in source.untouched(source.names)]

    def copy(ending: str) -> None:
        source = FileSet.of(path)
        out = path.with_name(f"copy{ending}")
        told = prepare_copy(source, out, "better", ["p"], lambda _: None)
        told.write(out, lambda rows: np.full(rows.num_rows, 0.5), lambda _: None)

    def command() -> None:
        with opened(Options(AUDIT, str(path), {})) as source:
            _ = source.notes, source.checksum
            source.table(source.columns)

    def kinds() -> None:
        source = FileSet.of(path)
        roles = ["race", "age"]
        source.kinds(it.data.Kinds(), roles, roles)

    return [
        names,
        lambda: FileSet.of(path).about_rows,
        lambda: FileSet.of(path).head(["y", "p", "race"]),
        kinds,
        parts,
        untouched,
        lambda: copy(".parquet"),
        lambda: copy(".feather"),
        command,
        lambda: it.scan(path, **ROLES).extract(),
        lambda: it.scan(path, **ROLES).load(),
    ]


def through_all_doors(given: bytes, folder: Path, ending: str, first: int = 0) -> None:
    path = folder / f"a{ending}"
    path.write_bytes(given)
    refusals = []
    for door in doors(path)[first:]:
        try:
            door()
        except InputError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def through_reading(given: bytes, folder: Path, ending: str, sound: pa.Table) -> Outcome | None:
    """Read all of it; a checksum has to tell every change of a value."""
    path = folder / f"a{ending}"
    path.write_bytes(given)
    source = FileSet.of(path)
    found = source.table(sound.column_names)
    it.scan(path, **ROLES).load()
    same = facts(found) == facts(sound)
    return None if same else Outcome.CHANGED


def facts(table: pa.Table) -> str:
    """Values whatever their types: formats keep whole numbers and dates differently."""
    columns = table.to_pydict()
    return json.dumps({name: [_told(v) for v in values] for name, values in columns.items()})


def _told(value: object) -> str | float | None:
    if isinstance(value, dt.date):
        return str(value)[:10]
    if isinstance(value, (int, float)):
        return float(value)
    return None if value is None else str(value)


def target(name: str, seeds: Callable[[Path], list[bytes]], ending: str, fresh: int = 6) -> Target:
    return Target(name, seeds, flipped_bytes, partial(through_all_doors, ending=ending), fresh)


def written_target(
    name: str, write: Callable[[pa.Table, Path], None], ending: str, packed: str = ""
) -> Target:
    seeds = partial(written, write, ending, packed=bool(packed))
    return target(name, seeds, ending + packed, fresh=0)


def checksum_target(
    name: str,
    seeds: Callable[[Path], list[bytes]],
    ending: str,
    sound: pa.Table,
    damaged: Callable[[random.Random, bytes], bytes] = one_bit,
) -> Target:
    handed_in = partial(through_reading, ending=ending, sound=sound)
    return Target(name, seeds, damaged, handed_in, fresh=0)


TARGETS = [
    target("feather", feathers, ".feather"),
    target("parquet", parquets, ".parquet"),
    checksum_target(
        "parquet-checksums", partial(parquets, checked=True), ".parquet", RICH, one_bit_of_a_page
    ),
    written_target("csv", as_csv, ".csv"),
    written_target("csv-gz", as_csv, ".csv", ".gz"),
    checksum_target(
        "csv-gz-checksum", partial(written, as_csv, ".csv", packed=True), ".csv.gz", PLAIN
    ),
    written_target("jsonl", as_json_lines, ".jsonl"),
    written_target("jsonl-gz", as_json_lines, ".jsonl", ".gz"),
    written_target("stata", as_stata, ".dta"),
    written_target("spss", as_spss, ".sav"),
    written_target("spss-packed", as_spss, ".zsav"),
    Target(
        "excel",
        partial(written, as_excel, ".xlsx"),
        within_a_part,
        partial(through_all_doors, ending=".xlsx"),
        fresh=0,
    ),
    checksum_target("excel-checksums", partial(written, as_excel, ".xlsx"), ".xlsx", PLAIN),
    written_target("sqlite", as_sqlite, ".sqlite"),
]
