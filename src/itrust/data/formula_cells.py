r"""Cells of text files that a spreadsheet program would take for formulas.

Such a program computes a cell that begins with =, +, - or @, also in their full width, and some do
so after blanks, a tab or a carriage return. Text that comes from strangers can so run what it likes
on the machine of whoever opens the file. An apostrophe before it makes it text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import InputError, shown

QUOTE = "'"
BLANK = r"[\s\x00\x0b\x{a0}\x{200b}\x{200e}\x{200f}\x{feff}]"
SIGNS = r"=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}\x{fe62}\x{fe63}\x{fe66}\x{fe6b}\x{2212}"
FORMULA = rf"(?s)^(?:[\t\r]|{BLANK}*[{SIGNS}])"
# A number with one decimal mark, or thousands in groups; infinity; nothing but signs.
DIGITS = r"(?:[0-9]+(?:[.,][0-9]*)?|[0-9]{1,3}(?:[.,' ][0-9]{3})+(?:[.,][0-9]*)?|[.,][0-9]+)"
NUMBER = rf"(?i)^ *[+-]?(?:{DIGITS}(?:e[+-]?[0-9]+)?|inf|infinity) *%? *$"
NOTHING = rf"^(?: |[{SIGNS}])*$"


def formula_cells(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mark the cells that a spreadsheet program would compute; numbers are none of them.

    Examples
    --------
    >>> cells = ["=1+1", "-3.5", "+1e5", "-1+cmd|' /C calc'!A0", " @SUM(A1)", "a = b", "-", None]
    >>> formula_cells(pa.chunked_array([cells])).to_pylist()
    [True, False, False, True, True, False, False, False]
    """
    texts = texts.fill_null("")
    found = pc.match_substring_regex(texts, FORMULA)
    if not pc.any(found).as_py():
        return found
    plain = pc.or_(
        pc.match_substring_regex(texts, NUMBER), pc.match_substring_regex(texts, NOTHING)
    )
    return pc.and_not(found, plain)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet program would compute a cell."""
    return bool(formula_cells(pa.chunked_array([[text]]))[0].as_py())


@dataclass
class FormulaCells:
    """Counts such cells on their way into a file, and quotes them where that was asked for."""

    quotes: bool
    count: int = field(default=0)

    def names(self, names: Sequence[str]) -> list[str]:
        """Give the names of the columns as they are written."""
        odd = {name for name in names if is_formula(name)}
        self.count += len(odd)
        if not (odd and self.quotes):
            return list(names)
        written = [QUOTE + name if name in odd else name for name in names]
        if len(set(written)) < len(written):
            twice = next(name for name in written if written.count(name) > 1)
            raise InputError(
                "with {argument} two columns would be called {value}; rename one of them",
                argument="safe_cells",
                value=twice,
            )
        return written

    def kinds(self, kinds: Iterable[pa.DataType]) -> list[pa.DataType]:
        """Give the types of the columns as they are written."""
        return [pa.string() if self.quotes and _is_text(kind) else kind for kind in kinds]

    def rows(self, table: pa.Table) -> pa.Table:
        """Count the cells of some rows, and give the rows as they are written."""
        for at, own in enumerate(table.schema):
            if not _is_text(own.type):
                continue
            texts = table[at].cast(pa.string())
            marked = formula_cells(texts)
            self.count += pc.sum(marked).as_py() or 0
            if self.quotes:
                quoted = pc.binary_join_element_wise(QUOTE, texts, "")
                table = table.set_column(at, own.name, pc.if_else(marked, quoted, texts))
        return table


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text, by itself or as levels of a category."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def refuse_formula_names(names: Iterable[str]) -> None:
    """Refuse columns that could not be found by their names in a file with quoted cells."""
    for name in names:
        if is_formula(name):
            raise InputError(
                "with {argument} the column {value} would be called {quoted}; rename it first",
                argument="safe_cells",
                value=name,
                details={"quoted": shown(QUOTE + name)},
            )
