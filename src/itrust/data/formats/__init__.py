"""File formats: what each kind of file holds and how it is read and written.

A new format is one class here and one line in `FORMATS`; nothing else asks for an ending.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from itrust._core import InputError, listed
from itrust.data.formats.base import GZIP as GZIP
from itrust.data.formats.base import HEAD_BYTES as HEAD_BYTES
from itrust.data.formats.base import FilePart as FilePart
from itrust.data.formats.base import Format, SeveralTables
from itrust.data.formats.base import about_unpacked as about_unpacked
from itrust.data.formats.base import guess_column as guess_column
from itrust.data.formats.base import refuse_lack_of as refuse_lack_of
from itrust.data.formats.columnar import Feather, Parquet
from itrust.data.formats.databases import Duckdb, Sqlite
from itrust.data.formats.delimited import CommaSeparated, TabSeparated
from itrust.data.formats.delimited import Delimited as Delimited
from itrust.data.formats.excel import Excel
from itrust.data.formats.jsonlines import JsonLines
from itrust.data.formats.soundness import Room as Room
from itrust.data.formats.soundness import decoded as decoded
from itrust.data.formats.statistical import Spss, Stata
from itrust.data.formats.text_form import AS_SEEN as AS_SEEN
from itrust.data.formats.text_form import TextForm as TextForm

FORMATS: tuple[Format, ...] = (
    CommaSeparated(","),
    TabSeparated("\t"),
    Parquet(),
    Feather(),
    Stata(),
    Spss(),
    Excel(),
    JsonLines(),
    Sqlite(),
    Duckdb(),
)


def formats_in_words() -> str:
    """All formats, for a sentence.

    >>> formats_in_words()
    'CSV, TSV, Parquet, Feather, Stata, SPSS, Excel, JSON lines, SQLite or DuckDB'
    """
    *first, last = (kind.title for kind in FORMATS)
    return f"{', '.join(first)} or {last}"


def split_table(path: str | Path) -> tuple[Path, str | None]:
    """The file itself, and the table or sheet that is named behind it.

    >>> [str(part) for part in split_table("homes.sqlite::scores")], split_table("a::b.csv")[1]
    (['homes.sqlite', 'scores'], None)
    """
    if "::" not in str(path):
        return Path(path), None
    split = (kind.split(path) for kind in FORMATS if isinstance(kind, SeveralTables))
    return next((found for found in split if found[1] is not None), (Path(path), None))


def ending_of(path: Path) -> str:
    """The ending that tells the format: that below .gz, if there is one."""
    path, _ = split_table(path)
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def format_of(path: Path) -> Format | None:
    """The format of a file by its ending; None if it is none of ours."""
    ending, is_packed = ending_of(path), path.suffix == ".gz"
    for found in FORMATS:
        if ending in found.endings and (found.may_be_gzipped or not is_packed):
            return found
    return None


def known_format(path: Path, form: TextForm = AS_SEEN) -> Format:
    """The format of a file; a sentence if it is none of ours. Text is read in the form given."""
    found = format_of(path)
    if found is None:
        known = listed([ending for each in FORMATS for ending in each.endings], max_items=99)
        raise InputError(
            f"the ending must be one of {known} (text files also with .gz)", file=str(path)
        )
    return replace(found, form=form) if isinstance(found, Delimited) else found


def format_of_bytes(head: bytes) -> Format:
    r"""The format of a stream by its first bytes; text has commas or tabs.

    >>> [format_of_bytes(head).title for head in (b"PAR1", b"y\tp, q\tr\n", b"y,p\n", b'{"y": 1}')]
    ['Parquet', 'TSV', 'CSV', 'JSON lines']
    """
    for found in FORMATS:
        if found.begins(head):
            return found
    header = head.split(b"\n", 1)[0]
    return max(
        (kind for kind in FORMATS if isinstance(kind, Delimited)),
        key=lambda kind: header.count(kind.separator.encode()),
    )
