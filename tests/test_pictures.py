"""Pictures of the pages: all are made by a command, none is missing, none is large."""

import re
import runpy

import matplotlib as mpl
import pytest

from doc_blocks import DOCS, PICTURE, README, ROOT, blocks_of, look_alike, pictures_of_the_code
from itrust.auditing import ClassMatrix
from itrust.balance import Resemblance
from itrust.render import figures  # noqa: F401
from itrust.render.figures.style import paint
from itrust.watch import Watch
from pinned import only_with_pinned

PAGES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
FOLDER = DOCS / "pictures"
SHOWING = re.compile(r"^(guide|howto|gallery)/|^tutorial\.md$|^index\.md$|^reference/figures\.md$")
WITHOUT = {
    "howto/dask.md": "it is about where the code runs; results look as they do elsewhere",
    "howto/gate.md": "what it gives is an exit code and files for build servers",
    "howto/imputed-race.md": "its numbers stand in tables, beside the truth",
    "howto/mlflow.md": "what it gives stands in MLflow's store; the page looks as elsewhere",
    "howto/approved-only.md": "its numbers stand beside the truth that the simulation knows",
    "howto/number-elsewhere.md": "its numbers stand in a table, beside the truth",
    "howto/pytest.md": "what it gives is an assertion",
    "howto/several-classes.md": "its page is shown by the command; numbers stand in its blocks",
    "howto/twenty-million-rows.md": "it is about time and memory; results look as elsewhere",
}
GALLERY = [name for name in PAGES if re.fullmatch(r"gallery/(?!index).+", name)]
MAX_BYTES = 120_000
MAX_LINES = 25


def shown_by(path):
    """Files of all pictures of a page, in Markdown and in HTML."""
    text = path.read_text()
    found = PICTURE.findall(text) + re.findall(r'(?:src|srcset)="([^"]+\.png)"', text)
    return [(path.parent / name).resolve() for name in found]


def saved_by_pages():
    return {
        (path.parent / name).resolve()
        for path in PAGES.values()
        for name in pictures_of_the_code(path.read_text())
    }


@pytest.fixture(scope="module")
def script():
    mpl.use("Agg")
    return runpy.run_path(str(ROOT / "website" / "pictures.py"))


@pytest.mark.nightly
def test_the_script_draws_every_picture_of_its_folder_as_it_is(script, tmp_path):
    only_with_pinned("matplotlib")
    made = script["draw"](tmp_path)
    assert {path.name for path in made} == {path.name for path in FOLDER.iterdir()}
    assert [path.name for path in made if not look_alike(FOLDER / path.name, path)] == []


def test_every_picture_that_a_page_shows_is_made_by_a_command(script):
    made = {(FOLDER / f"{name}.png").resolve() for name in script["PICTURES"]} | saved_by_pages()
    shown = {picture for path in [README, *PAGES.values()] for picture in shown_by(path)}
    assert shown == made
    paper = (DOCS / "paper").resolve()  # by `make paper`
    assert {path for path in DOCS.resolve().rglob("*.png") if path.parent != paper} == made


def test_no_picture_is_large():
    assert [path for path in DOCS.rglob("*.png") if path.stat().st_size > MAX_BYTES] == []


def test_every_page_that_shows_something_has_a_picture_or_a_reason():
    bare = {name for name in PAGES if SHOWING.search(name) and not shown_by(PAGES[name])}
    assert bare == set(WITHOUT)


def test_every_picture_says_what_it_shows():
    for path in [README, *PAGES.values()]:
        assert "![](" not in path.read_text(), path
        assert all("alt=" in tag for tag in re.findall(r"<img [^>]*>", path.read_text())), path


def test_the_reference_shows_a_picture_of_every_kind_of_result():
    text = PAGES["reference/figures.md"].read_text()
    for kind in set(paint.registry) - {object, Watch, ClassMatrix, Resemblance}:
        assert f"**[{kind.__name__}]" in text, kind


@pytest.mark.parametrize("name", GALLERY)
def test_an_example_is_short_shows_a_picture_and_says_what_is_learned(name):
    text = PAGES[name].read_text()
    code, printed = blocks_of(text)
    assert code.language == "python"
    assert len(code.body.splitlines()) <= MAX_LINES
    assert printed.body.strip()
    assert pictures_of_the_code(text) == [f"{PAGES[name].stem}.png"]
    assert text.index("**What you learn.**") < text.index("**Next:**")


def test_the_gallery_has_a_card_for_every_example():
    text = PAGES["gallery/index.md"].read_text()
    assert len(GALLERY) >= 8
    for name in GALLERY:
        stem = PAGES[name].stem
        assert f"({stem}.png)]({stem}.md)" in text
