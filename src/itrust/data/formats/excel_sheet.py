"""A sheet of a workbook, read in a process of its own and written as Arrow to standard output.

The reader keeps a cell for every place between the first and the last that is filled, and ends the
process where memory does not suffice. This module is loaded there alone (see `child_process`), so
it imports nothing of the package.
"""

from __future__ import annotations

from typing import Any

import fastexcel
import pyarrow as pa

ERRORS = (fastexcel.FastExcelError,)
WHOLE: dict[str, Any] = {
    "schema_sample_rows": None,  # every cell has a say in the type of its column
    "skip_whitespace_tail_rows": True,
    "whitespace_as_null": True,
}


def read(file: str, name: str | None) -> tuple[dict[str, Any], pa.Table]:
    """What there is to say of a sheet, and its columns, named by their numbers.

    Without such a sheet, or without names in its first row, nothing more is read.
    """
    book = fastexcel.read_excel(file)
    about: dict[str, Any] = {"sheets": book.sheet_names}
    if not book.sheet_names or (name is not None and name not in book.sheet_names):
        return about, pa.table({})
    chosen = _first_visible(book) if name is None else name
    head = book.load_sheet(chosen, header_row=None, n_rows=1, dtypes="string").to_arrow()
    titles = [(column[0].as_py() or "").strip() for column in head.columns]
    about |= {"name": chosen, "titles": titles}
    if not any(titles):
        return about, pa.table({})
    sheet = book.load_sheet(chosen, **WHOLE)
    columns = sheet.to_arrow().columns
    about["places"] = [column.absolute_index for column in sheet.available_columns()]
    about["mixed"] = [
        at
        for at, column in enumerate(columns)
        if pa.types.is_string(column.type) and _mixes_types(book, chosen, at)
    ]
    return about, pa.Table.from_arrays(columns, [str(at) for at in range(len(columns))])


def _first_visible(book: Any) -> str:
    names: list[str] = book.sheet_names
    seen = (name for name in names if book.load_sheet(name, n_rows=0).visible == "visible")
    return next(seen, names[0])


def _mixes_types(book: Any, name: str, at: int) -> bool:
    """Whether some cells hold numbers and others text: a mishap, unlike codes kept as text."""
    try:
        book.load_sheet(name, **WHOLE, use_columns=[at], dtype_coercion="strict").to_arrow()
    except fastexcel.UnsupportedColumnTypeCombinationError:
        return True
    return False
