"""How a piece of a page is made from the results of a study, and put into its place.

A study keeps studies/pages/NAME.json. A page names a piece of it between two comments, which no
reader sees,

    <!-- power.json: thin -->
    ...
    <!-- end -->

or within a line, `<!-- power.json: lowest level -->.042<!-- end -->`, and a function under
`@piece("power", "thin")` makes the text from the file. `python studies/quote.py` puts all texts
into their places, and a test holds pages, functions and files together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from itrust._core import write_whole
from kit import as_json

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STUDIES = ROOT / "studies" / "pages"
FOLDERS = (STUDIES, STUDIES / "paper")
PLACE = re.compile(r"(<!-- (\w+)\.json: ([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)

Results = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
Shown = Callable[[Any], str]
PIECES: dict[tuple[str, str], Callable[[Results], str]] = {}


def piece(study: str, name: str) -> Callable[[Callable[[Results], str]], Callable[[Results], str]]:
    """Name the function below, so that pages can ask for what it makes."""

    def keep(made: Callable[[Results], str]) -> Callable[[Results], str]:
        if (study, name) in PIECES:
            raise ValueError(f"{study}.json: {name} is made twice")
        PIECES[study, name] = made
        return made

    return keep


def kept(study: str) -> Results:
    """What a study found when it was last run at full size."""
    for folder in FOLDERS:
        if (file := folder / f"{study}.json").exists():
            return json.loads(file.read_text(encoding="utf-8"))
    raise FileNotFoundError(f"there is no {study}.json in {' or '.join(map(str, FOLDERS))}")


def keep(study: str, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write tables of a study beside those that it has, and make its pages again."""
    file = FOLDERS[0] / f"{study}.json"
    before = kept(study)["tables"] if file.exists() else {}
    record = {"name": study, "tables": {**before, **tables}}
    write_whole(file, as_json(record) + "\n")
    write_pages()


def pages() -> list[Path]:
    """Every page that may show something."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted(STUDIES.glob("*.md"))]


def places(page: str) -> Iterator[tuple[str, str]]:
    """The pieces that a page names: study and name."""
    return ((found[2], found[3]) for found in PLACE.finditer(page))


def filled(page: str) -> str:
    """The page with every piece as the results have it now."""
    files: dict[str, Results] = {}

    def made(found: re.Match[str]) -> str:
        study, name = found[2], found[3]
        if (study, name) not in PIECES:
            raise KeyError(f"nothing makes {study}.json: {name}")
        text = PIECES[study, name](files.setdefault(study, kept(study)))
        return found[1] + (f"\n\n{text}\n\n" if "\n" in text else text) + found[5]

    return PLACE.sub(made, page)


def write_pages() -> list[Path]:
    """Fill all pages; those that have changed."""
    changed = []
    for path in pages():
        before = path.read_text(encoding="utf-8")
        if (after := filled(before)) != before:
            write_whole(path, after)
            changed.append(path)
    return changed


# --- tables and numbers as they are printed -------------------------------------------------------


def table(rows: Rows, columns: Mapping[str, Shown], heads: Mapping[str, str] | None = None) -> str:
    """A table in Markdown of these columns, each shown in its way; None is an empty cell."""
    heads = heads or {}
    cells = [[heads.get(name, name) for name in columns]]
    cells += [
        ["" if row.get(name) is None else show(row[name]) for name, show in columns.items()]
        for row in rows
    ]
    head, *body = ("|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in cells)
    return "\n".join([head, "|" + "---|" * len(columns), *body])


def where(rows: Rows, /, **wanted: Any) -> Mapping[str, Any]:
    """The one row that has these values."""
    (found,) = (row for row in rows if all(row[name] == value for name, value in wanted.items()))
    return found


def share(value: float) -> str:
    """A share of runs: .042, and 1 for all of them."""
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1"


def fixed(digits: int, *, bare: bool = False) -> Shown:
    """So many decimals; bare: without a zero before the point."""
    return lambda value: f"{value:.{digits}f}".removeprefix("0" if bare else "")


def span(values: Sequence[float], show: Shown) -> str:
    """From the least to the largest."""
    return f"{show(min(values))} to {show(max(values))}"
