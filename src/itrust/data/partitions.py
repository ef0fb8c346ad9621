"""Columns that stand in names of folders, as Hive and Spark write them: `year=2020/a.csv`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import InputError
from itrust.data.locations import Location

NOTHING = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, eq=False)
class Partitions:
    """The keys in the names of the folders that files stand in."""

    values: Mapping[Path, Mapping[str, str | None]]
    types: Mapping[str, pa.DataType]
    common: tuple[str, ...]

    @classmethod
    def of(cls, files: Sequence[tuple[Location, Sequence[Path]]]) -> Partitions:
        """Read the names of the folders below those that were named.

        Of files that are named themselves, these are the folders below the one that they share.
        """
        named = [_folders(file) for location, (file, *_) in files if location.is_file]
        shared = _shared_depth(named)
        found: dict[Path, dict[str, str | None]] = {}
        for location, some in files:
            skipped = shared if location.is_file else len(_folders(location.base / "file"))
            found |= {file: _keys_in(_folders(file)[skipped:], file) for file in some}
        values: dict[str, list[str | None]] = {}
        for keys in found.values():
            for key, text in keys.items():
                values.setdefault(key, []).append(text)
        return cls(
            {file: keys for file, keys in found.items() if keys},
            {key: _type_of([text for text in own if text]) for key, own in values.items()},
            tuple(key for key, own in values.items() if len(own) == len(found)),
        )

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def only(self, files: Iterable[Path]) -> Partitions:
        """The same for some files; keys have the types that they have in all files."""
        return replace(
            self, values={path: self.values[path] for path in files if path in self.values}
        )

    def value_of(self, key: str, path: Path) -> pa.Scalar:
        """The value of a key for all rows of a file; refuses a file whose folders lack it."""
        if key not in self.values.get(path, {}):
            raise InputError(
                "{file} has no column {column}, and no folder called {example} as others have",
                file=str(path),
                column=key,
                details={"example": f"'{key}=...'"},
            )
        return pa.scalar(self.values[path][key]).cast(self.types[key])

    def completed(
        self, rows: pa.RecordBatch, names: Sequence[str], path: Path, offset: int
    ) -> pa.RecordBatch:
        """Rows of a file with some columns, of which those that the file lacks are keys."""
        if not self.types:
            return rows
        columns = []
        for name in names:
            if name not in rows.schema.names:
                columns.append(pa.repeat(self.value_of(name, path), rows.num_rows))
                continue
            columns.append(rows[name])
            if name in self.values.get(path, {}):
                _refuse_contradiction(rows[name], self.values[path][name], name, path, offset)
        return pa.RecordBatch.from_arrays(columns, names=list(names))


def _folders(file: Path) -> tuple[str, ...]:
    return Path(os.path.abspath(file)).parts[:-1]


def _shared_depth(folders: Sequence[tuple[str, ...]]) -> int:
    """How many folders several files share.

    >>> _shared_depth([("/", "runs", "year=2020"), ("/", "runs", "year=2021")])
    2
    """
    levels = enumerate(zip(*folders, strict=False))
    shortest = min(map(len, folders), default=0)
    return next((depth for depth, names in levels if len(set(names)) > 1), shortest)


def _keys_in(folders: Iterable[str], file: Path) -> dict[str, str | None]:
    """The keys in names of folders that a file stands in.

    >>> _keys_in(["runs", "year=2020", "region=a%2Fb"], Path("a.csv"))
    {'year': '2020', 'region': 'a/b'}
    """
    keys: dict[str, str | None] = {}
    for part in folders:
        name, sign, text = part.partition("=")
        if not sign or not name:
            continue
        key, value = _decoded(name), None if text in ("", NOTHING) else _decoded(text)
        if keys.get(key, value) != value:
            raise InputError(
                "{file} stands in folders that give {column} two values, {first} and {value}",
                file=str(file),
                column=key,
                value=value,
                details={"first": repr(keys[key])},
            )
        keys[key] = value
    return keys


def _decoded(text: str) -> str:
    """Text with signs such as %2F as themselves; what is no such text stays.

    >>> _decoded("S%C3%A3o Paulo"), _decoded("100%"), _decoded("%FF")
    ('São Paulo', '100%', '%FF')
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def _type_of(texts: Sequence[str]) -> pa.DataType:
    """Whole numbers where all texts are such, as in a text file; else text.

    >>> _type_of(["01", "-7"]), _type_of(["1", "1.5"]), _type_of([])
    (DataType(int64), DataType(string), DataType(null))
    """
    if not texts:
        return pa.null()
    return pa.int64() if all(map(WHOLE.fullmatch, texts)) else pa.string()


def _refuse_contradiction(
    column: pa.Array, text: str | None, name: str, path: Path, offset: int
) -> None:
    """Raise unless all cells of a column hold what the folder says."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if text is None:
        same = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    else:
        try:
            meant = pa.scalar(text).cast(column.type)
        except pa.ArrowException:
            meant = pa.scalar(None, column.type)
        same = pc.fill_null(pc.equal(column, meant), fill_value=False)
    row = pc.index(same, value=False).as_py()
    if row >= 0:
        raise InputError(
            "{file}: {row} has {value} in column {column}, but stands in the folder {folder}; "
            "mend one of the two",
            file=str(path),
            row=offset + row,
            value=column[row].as_py(),
            column=name,
            details={"folder": repr(f"{name}={NOTHING if text is None else text}")},
        )
