"""The documentation: blocks run, links lead somewhere, every public name has its page."""

import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from urllib.parse import unquote, urlsplit

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import itrust as it
from doc_blocks import (
    DOCS,
    QUIET,
    ROOT,
    STORE,
    Block,
    Runner,
    blocks_of,
    complaints,
    look_alike,
    pictures_of_the_code,
)

pytestmark = pytest.mark.slow

if os.environ.get("ITRUST_REQUIRE_DATA") != "1":  # where everything is required, its lack fails
    pytest.importorskip("mkdocs", reason="comes with the test extra")
PAGES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
# Packages whose results users hold.
RESULTS = ("auditing", "bias", "calibration", "data", "overturn")
STARTS = ("sh", "console", "python", "toml", "yaml", "json")
EVERY_TIME = ("index.md", "howto/audit-a-file.md")  # the other pages run nightly


def with_code() -> list[object]:
    """Pages with something to run, and what they are allowed."""
    found = []
    for name, path in PAGES.items():
        text = path.read_text()
        if any(block.language in STARTS and not block.is_doctest for block in blocks_of(text)):
            # A cluster's own processes and sockets warn as they please, and so does MLflow.
            free = "LocalCluster" in text or "import mlflow" in text
            marks = [pytest.mark.filterwarnings("ignore")] if free else []
            marks += [] if name in EVERY_TIME else [pytest.mark.nightly]
            found.append(pytest.param(name, marks=marks, id=name))
    return found


@pytest.mark.parametrize("name", with_code())
def test_every_block_of_a_page_runs_and_prints_what_it_says(name, page_data, tmp_path, monkeypatch):
    text = PAGES[name].read_text()
    blocks = blocks_of(text)
    page_data("\n".join(block.body for block in blocks if block.is_run))
    for variable, value in QUIET.items():
        monkeypatch.setenv(variable, value)
    for variable in STORE:
        monkeypatch.setenv(variable, "")  # so that it is put back as it was
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    runner = Runner(tmp_path)
    last = None
    for block in blocks:
        if block.language != "text" or (block.follows and last and last.is_run):
            runner.run(block)
        last = block
    plt.close("all")
    for picture in pictures_of_the_code(text):
        shown = PAGES[name].parent / picture
        assert look_alike(shown, tmp_path / picture), f"{picture} is not what the code draws"


def test_no_block_is_skipped_in_silence():
    found = [
        line
        for name, path in PAGES.items()
        for line in complaints(name, blocks_of(path.read_text()))
    ]
    assert found == []


def test_a_block_that_nobody_would_run_is_a_complaint():
    text = "```text\nalone\n```\n\n```ruby\nputs 1\n```\n\n```\nbare\n```\n"
    found = complaints("guide/page.md", blocks_of(text))
    assert len(found) == 3
    indented = "1. An item\n\n    ```ruby\n    puts 1\n    ```\n"
    assert len(complaints("guide/page.md", blocks_of(indented))) == 1


def test_a_block_that_prints_something_else_fails(tmp_path):
    runner = Runner(tmp_path)
    runner.run(Block("python", "", "print('seen in 0.5 s')", 1, False))
    runner.run(Block("text", "", "seen in 12 s\n", 2, True))
    with pytest.raises(AssertionError, match="but what is printed is"):
        runner.run(Block("text", "", "heard in 12 s\n", 2, True))
    with pytest.raises(AssertionError, match="left with 3"):
        runner.run(Block("sh", "", "exit 3", 1, False))


class References(HTMLParser):
    """What a page loads, where it leads, and the places in it that others can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {value for key in ("id", "name") if (value := found.get(key))}
        if tag == "a":
            self.links += [found["href"]] if found.get("href") else []
        elif tag != "base":
            self.loads += [value for key in ("src", "href", "data") if (value := found.get(key))]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert not re.search(r"warning|error", told, re.IGNORECASE), told
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: References(path.read_text()) for path in site.rglob("*.html")}


def target_of(page: Path, link: str, site: Path) -> Path:
    path = unquote(urlsplit(link).path)
    if not path:
        return page
    target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
    target = target.resolve()
    return target / "index.html" if target.is_dir() else target


def is_elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "mailto")


@pytest.mark.nightly
def test_every_link_and_picture_of_the_site_is_there(site, pages):
    broken = []
    for page, found in pages.items():
        for link in [*found.links, *found.loads]:
            if is_elsewhere(link) or link.startswith("data:"):
                continue
            target = target_of(page, link, site)
            place = unquote(urlsplit(link).fragment)
            wrong = not target.exists() or not target.is_relative_to(site.resolve())
            lost = place and target in pages and place not in pages[target].places
            if wrong or lost:
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []
    assert len(pages) >= len(PAGES)


def test_links_work_in_the_repository_as_well():
    broken = [
        f"{path.relative_to(ROOT)}: {link}"
        for path in [*ROOT.glob("*.md"), *PAGES.values()]
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text())
        if not is_elsewhere(link) and not (path.parent / urlsplit(link).path).exists()
    ]
    assert broken == []


def test_no_page_loads_anything_from_another_host(site, pages):
    found = [
        f"{page.relative_to(site)}: {load}"
        for page, references in pages.items()
        for load in references.loads
        if is_elsewhere(load)
    ]
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", sheet.read_text())
        found += [f"{sheet.name}: {address}" for address in addresses if is_elsewhere(address)]
    assert found == []


def test_pages_hold_no_path_of_this_machine(pages):
    for page in pages:
        assert str(ROOT) not in page.read_text(), page


def test_formulas_are_mathml_and_no_tex_is_left(site):
    home = (site / "index.html").read_text()
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in home
    for page in site.rglob("*.html"):
        assert 'class="arithmatex"' not in page.read_text(), page


def test_words_of_the_glossary_lead_to_it(site):
    page = (site / "guide" / "where.html").read_text()
    assert 'class="word" href="../glossary.html#slice" title="Rows that a rule describes' in page
    assert 'class="word"' not in (site / "glossary.html").read_text()


def test_a_formula_that_is_not_understood_is_a_warning(caplog):
    hooks = runpy.run_path(str(ROOT / "website" / "site_hooks.py"))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="theory/page.md"))

    def rendered(tex):
        return hooks["on_page_content"](f'<div class="arithmatex">\\[{tex}\\]</div>', page=page)

    good = (
        r"\frac{1 + \#\{b : T_b \ge T\}}{1 + B}",
        r"\begin{split} a &amp;= b \\ &amp;= c \end{split}",
    )
    assert all(rendered(tex).startswith("<math") for tex in good)
    assert not caplog.records
    for bad in (r"\nosuchthing{x}", r"\begin{aligned} a &amp;= b \\ c \end{aligned}", "a &amp;= b"):
        caplog.clear()
        rendered(bad)
        assert "theory/page.md: a formula is beyond latex2mathml" in caplog.text


def public_names() -> list[str]:
    """What users may import: the front door's names, and `__all__` of modules and packages."""
    modules = {name: getattr(it, name) for name in it.__all__}
    modules = {name: found for name, found in modules.items() if isinstance(found, ModuleType)}
    front = [f"itrust.{name}" for name in it.__all__ if name not in modules]
    offered = {name.removeprefix("itrust.") for name in front} | {"scores"}
    packages = [importlib.import_module(f"itrust.{name}") for name in RESULTS]
    inner = [
        f"{module.__name__}.{name}"
        for module in (*modules.values(), *packages)
        for name in getattr(module, "__all__", ())  # of packages, those that say so
        if module in modules.values() or name not in offered
    ]
    return [*front, *inner]


def test_every_public_name_is_on_exactly_one_page_of_the_reference(site):
    shown = Counter(
        name
        for page in (DOCS / "reference").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    )
    wanted = public_names()
    assert {name: shown[name] for name in wanted if shown[name] != 1} == {}
    built = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    assert [name for name in wanted if f'id="{name}"' not in built] == []


PARTS = {it.scores: "itrust.calibration."}  # what validators print has rooms of its own


def test_modules_offer_what_they_define():
    for module in (it.datasets, it.losses, it.scores, it.simulate):
        here = [getattr(module, each) for each in module.__all__]
        assert all(
            found.__module__.startswith(PARTS.get(module, module.__name__))
            for found in here
            if inspect.isclass(found) or inspect.isfunction(found)
        )
