"""Every figure and table of the paper, and the page that shows them: `make paper`.

Runs the eight studies one after another, then writes build/paper.html. At full size the same
content also becomes studies/pages/paper.md. QUICK=1 takes a few minutes and
writes to build/paper; REDRAW=1 makes texts, pictures and page again from the last results; PAGE=1
makes the page alone.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import figure1
import figure2
import figure3
import figure4
import kit
import lcb
import table1
import table2
import type1
from itrust._core import write_whole

STUDIES = tuple(
    module.STUDY for module in (figure1, figure2, figure3, figure4, type1, lcb, table1, table2)
)
COLUMNS = {
    "quantity": "",
    "paper": "The paper",
    "printed": "Its published code printed",
    "papers_way": "Ours, with the paper's null and widths",
    "exact": "Ours, exact adaptive test",
}
TEMPLATES = Path(__file__).parent / "templates"
PAGE = kit.ROOT / "build" / "paper.html"


def records(folder: Path) -> list[dict[str, Any]]:
    """The files of all studies, with the heads of their tables filled in."""
    found = []
    for study in STUDIES:
        file = folder / f"{study.name}.json"
        if not file.exists():
            raise FileNotFoundError(
                f"{file.name} is not there yet; run make study NAME={study.name}"
            )
        record = json.loads(file.read_text(encoding="utf-8"))
        del record["results"]  # behind the page, not on it
        full = json.loads(kit.as_json(study.full))
        record["columns"] = COLUMNS | record["columns"]
        record["quick"] = record["sizes"] != full
        found.append(record)
    return found


def html(items: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """One file that needs no other: pictures stand inside it."""
    pictures = {
        item["name"]: base64.b64encode((folder / f"{item['name']}.svg").read_bytes()).decode()
        for item in items
    }
    page = _environment(escape=True).get_template("paper.html.j2")
    return page.render(items=items, pictures=pictures, quick=any(item["quick"] for item in items))


def markdown(items: Sequence[Mapping[str, Any]]) -> str:
    """The same content as a page of the studies, its pictures in the folder paper/."""
    return _environment(escape=False).get_template("paper.md.j2").render(items=items)


def _environment(*, escape: bool) -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["plain"] = lambda text: text.replace("|", "\\|").replace("<", "&lt;")
    return made


def write_page(folder: Path, docs: Path | None) -> None:
    """The page of what a folder holds and, at full size, paper.md."""
    items = records(folder)
    PAGE.parent.mkdir(exist_ok=True)
    write_whole(PAGE, html(items, folder))
    if docs is not None:
        write_whole(docs / "paper.md", markdown(items))


def main() -> None:
    folder, docs = (kit.QUICK, None) if kit.asked("QUICK") else (kit.FULL, kit.FULL.parent)
    if not kit.asked("PAGE"):
        for study in STUDIES:
            kit.main(study)
    try:
        write_page(folder, docs)
    except FileNotFoundError as error:
        sys.exit(f"paper: {error}")
    print(f"wrote {PAGE.relative_to(kit.ROOT)}")


if __name__ == "__main__":
    main()
