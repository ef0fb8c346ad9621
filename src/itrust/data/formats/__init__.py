"""File formats: what each kind of file holds and how it is read and written.

A new format is one class, and its place in `FORMATS`; nothing else asks for an ending.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from itrust._core import first_line, listed
from itrust.data.formats.base import (
    HEAD_BYTES,
    SHARE,
    Feather,
    FilePart,
    Format,
    Parquet,
    SeveralTables,
    in_bytes,
    refuse_lack_of,
    refused,
    room_for,
    room_left,
    unreadable,
)
from itrust.data.formats.tables import Excel, Spss, Sqlite, Stata
from itrust.data.formats.text import AS_SEEN, GZIP, Delimited, JsonLines, TabSeparated, TextForm

FORMATS: tuple[Format, ...] = (
    *(Delimited(","), TabSeparated("\t"), JsonLines(), Parquet(), Feather()),
    *(Stata(), Spss(), Excel(), Sqlite()),
)
QUOTED_ROW = re.compile(r"(Expected \d+ columns, got \d+):.*")  # errors go into logs


def split_table(path: str | Path) -> tuple[Path, str | None]:
    """The file itself, and the table or sheet that is named behind it, as in `homes.db::scores`."""
    if "::" not in str(path):
        return Path(path), None
    splits = (kind.split(path) for kind in FORMATS if isinstance(kind, SeveralTables))
    return next((split for split in splits if split[1] is not None), (Path(path), None))


def ending_of(path: Path) -> str:
    """The ending that tells the format: that below .gz, if there is one."""
    path, _ = split_table(path)
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def format_of(path: Path) -> Format | None:
    """The format of a file by its ending; None if it is none of ours."""
    ending, is_packed = ending_of(path), path.suffix == ".gz"
    for kind in FORMATS:
        if ending in kind.endings and (kind.is_text or not is_packed):
            return kind
    return None


def known_format(path: Path, form: TextForm = AS_SEEN) -> Format:
    """The format of a file; a sentence if it is none of ours. Text is read in the form given."""
    kind = format_of(path)
    if kind is None:
        endings = listed([ending for each in FORMATS for ending in each.endings], max_items=99)
        sentence = f"the ending must be one of {endings} (text files also with .gz)"
        raise refused(str(path), sentence)
    return replace(kind, form=form) if isinstance(kind, Delimited) else kind


def format_of_bytes(head: bytes) -> Format:
    """The format of a stream by its first bytes; text has commas or tabs."""
    for kind in FORMATS:
        if kind.begins(head):
            return kind
    header = head.split(b"\n", 1)[0]
    return max(
        (kind for kind in FORMATS if isinstance(kind, Delimited)),
        key=lambda kind: header.count(kind.separator.encode()),
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a reader cannot read into one sentence."""
    try:
        yield
    except UnicodeDecodeError:  # Arrow's names of columns, before any value is looked at
        sentence = "the names of the columns are not UTF-8 text; save it as UTF-8"
        raise refused(path, sentence) from None
    except PermissionError:
        raise refused(path, "{file} may not be read by this user") from None
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        reason = QUOTED_ROW.sub(r"\1", first_line(error))
        if reason == "Empty CSV file":
            raise refused(path, "{file} is empty") from None
        if "duplicate field names" in reason:
            raise refused(path, "names of columns must differ") from None
        if other := _really(path):
            sentence = f"{{file}} is a {other} file, whatever its ending says; rename it"
            raise refused(path, sentence) from None
        cure = "give the column one type" if "conversion error" in reason else "is it whole?"
        raise unreadable(path, reason, cure) from None


def _really(path: Path) -> str | None:
    """The format that a file which cannot be read begins like; None where its ending is right."""
    place = split_table(path)[0]
    if not place.is_file():
        return None
    with place.open("rb") as file:
        head = file.read(HEAD_BYTES)
    likely = [kind for kind in FORMATS if kind.magic and kind.begins(head)]
    same = not likely or isinstance(known_format(path), type(likely[0]))
    return None if same else likely[0].title
