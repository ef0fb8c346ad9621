"""The glossary: it says what the report says, and every word leads somewhere once."""

import runpy
from collections import Counter

import pytest

from doc_blocks import DOCS, ROOT
from itrust.render.page import WORDS

pytest.importorskip("mkdocs", reason="comes with the test extra")
TEXT = (DOCS / "glossary.md").read_text()
WANTED = """calibrated given the covariates, local bias, slice, tolerance, p-value, exact,
prediction-powered, KLCE, confidence band, gate, design effect, overall calibration,
verdict, covariates, power"""


@pytest.fixture(scope="module")
def entries():
    return runpy.run_path(str(ROOT / "website" / "site_hooks.py"))["entries"](TEXT)


def test_the_glossary_explains_words_as_the_report_does():
    for word in WORDS.values():
        heading = f"### {word['name'][0].upper()}{word['name'][1:]}\n"
        assert heading in TEXT
        paragraph = TEXT.split(heading)[1].split("\n\n")[1]
        assert " ".join(paragraph.split()) == word["meaning"]


def test_every_heading_is_an_entry_with_a_meaning(entries):
    assert len(entries) == TEXT.count("\n### ")
    assert all(entry.meaning.endswith(".") for entry in entries)
    assert len({entry.place for entry in entries}) == len(entries)


def test_no_word_has_two_meanings(entries):
    counts = Counter(form for entry in entries for form in entry.forms)
    assert {form for form, count in counts.items() if count > 1} == set()


@pytest.mark.parametrize("word", [" ".join(word.split()) for word in WANTED.split(",")])
def test_words_that_readers_meet_are_explained(word, entries):
    assert any(word in (form, entry.place) for entry in entries for form in entry.forms)


def test_a_word_is_explained_once_a_page_and_never_in_code_links_or_headings(entries):
    explained = runpy.run_path(str(ROOT / "website" / "site_hooks.py"))["explained"]
    page = "<h2>Slices</h2><p><code>slice</code> <a href='#'>a slice</a> Slices and a slice.</p>"
    found = explained(page, entries, "g.html")
    assert found.count('class="word"') == 1
    assert '</a> <a class="word" href="g.html#slice" title="Rows that a rule' in found
    assert found.endswith(">Slices</a> and a slice.</p>")
