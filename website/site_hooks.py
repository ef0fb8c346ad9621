"""What `mkdocs build` does beside its plugins: formulas, words, files from outside `docs/`.

Formulas become MathML while the site is built, so that pages need no script and no other host. A
link to a file of the repository that stands outside `docs/` works in the repository as it is; for
the site that file is copied to `repository/` and the link is turned there. Words of the glossary
lead to it from where a page first uses them, and show what they mean.
"""

from __future__ import annotations

import html
import logging
import posixpath
import re
from pathlib import Path
from typing import NamedTuple

from latex2mathml.converter import convert
from markdown.extensions.toc import slugify  # type: ignore[import-untyped]
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LOG = logging.getLogger("mkdocs.hooks.site")  # its warnings end a strict build
COPIED = "repository"  # folder of the site for files from outside docs/
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)
# An unknown command or a stray column mark comes out as a name, an unknown environment as lines.
NOT_UNDERSTOOD = re.compile(r'<mi>(?:\\|&</mi>)|linebreak="newline"')
DOCTEST = re.compile(r"^```python\n>>> ", re.MULTILINE)  # its output is no Python to be coloured
GLOSSARY = "glossary.md"
ENTRY = re.compile(
    r"^### (?P<name>.+)\n<!-- words:(?P<forms>.*)-->\n\n(?P<meaning>(?:.+\n)+)", re.MULTILINE
)
TAG = re.compile(r"<!--.*?-->|<(?P<end>/?)(?P<name>[a-z0-9]+)[^>]*?(?P<empty>/?)>", re.DOTALL)
UNTOUCHED = {"a", "code", "pre", "math", "svg", "script", "style", "button", "summary"}
UNTOUCHED |= {f"h{level}" for level in range(1, 7)}
LINK = re.compile(r"(?<=\]\()(?P<target>(?:\.\./)+[^)#\s]+)")


def outside(target: str, page: str) -> str | None:
    """The path from the repository's root, if a link of a page leads out of `docs/`.

    >>> outside("../../studies/level.py", "howto/gate.md")
    'studies/level.py'
    >>> outside("../guide/data.md", "howto/gate.md") is None
    True
    """
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path.startswith("docs/") else path


def copied(path: str) -> str:
    """Where the site has a file from outside `docs/`; Markdown as plain text."""
    return f"{COPIED}/{path}.txt" if path.endswith(".md") else f"{COPIED}/{path}"


class Entry(NamedTuple):
    """A word of the glossary: its place there, how it is written elsewhere, and its meaning."""

    place: str
    forms: tuple[str, ...]
    meaning: str


def entries(glossary: str) -> list[Entry]:
    r"""The words that a glossary explains; the first paragraph of each is its meaning.

    >>> entries("### A slice\n<!-- words: slice, slices -->\n\nRows\nof a rule.\n\nMore.\n")
    [Entry(place='a-slice', forms=('slice', 'slices'), meaning='Rows of a rule.')]
    """
    return [
        Entry(
            slugify(found["name"], "-"),
            tuple(form.strip() for form in found["forms"].split(",") if form.strip()),
            " ".join(found["meaning"].split()),
        )
        for found in ENTRY.finditer(glossary)
    ]


def explained(content: str, words: list[Entry], glossary: str) -> str:
    """The page with a link to the glossary where each word first stands in running text.

    >>> entry = Entry("slice", ("slice",), "Rows of a rule.")
    >>> explained("<h1>A slice</h1><p>One slice, two slices, a slice</p>", [entry], "g.html")
    '<h1>A slice</h1><p>One <a class="word" href="g.html#slice" title="Rows of a rule.">slice</a>, \
two slices, a slice</p>'
    """
    left = {form: entry for entry in words for form in entry.forms}
    left |= {form[0].upper() + form[1:]: entry for form, entry in left.items()}

    def linked(text: str) -> str:
        longest_first = "|".join(map(re.escape, sorted(left, key=len, reverse=True)))
        found = re.search(rf"(?<![\w-])(?:{longest_first})(?![\w-])", text) if left else None
        if found is None:
            return text
        entry = left[found[0]]
        for form in [form for form, own in left.items() if own is entry]:
            del left[form]
        meaning = html.escape(entry.meaning)
        link = f'<a class="word" href="{glossary}#{entry.place}" title="{meaning}">{found[0]}</a>'
        return text[: found.start()] + link + linked(text[found.end() :])

    parts, start, inside = [], 0, 0
    for tag in TAG.finditer(content):
        text = content[start : tag.start()]
        parts += [text if inside else linked(text), tag[0]]
        if tag["name"] in UNTOUCHED and not tag["empty"]:
            inside += -1 if tag["end"] else 1
        start = tag.end()
    return "".join([*parts, content[start:]])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside `docs/`."""
    root = Path(config.docs_dir).parent
    for page in list(files.documentation_pages()):
        for link in LINK.finditer(page.content_string):
            path = outside(link["target"], page.src_uri)
            if path is None or files.get_file_from_path(copied(path)):
                continue
            if (source := root / path).is_file():
                files.append(File.generated(config, copied(path), abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Turn links to those files; one that was not found stays, and the build warns about it.

    Doctests are coloured as such. A page outside all sections needs no list of pages beside it, and
    the gallery none of its headings.
    """
    if page.parent is None:
        page.meta.setdefault("hide", ["navigation"])
    if page.file.src_uri == "gallery/index.md":
        page.meta.setdefault("hide", ["toc"])  # room for the cards

    def turned(link: re.Match[str]) -> str:
        path = outside(link["target"], page.file.src_uri)
        if path is None or not files.get_file_from_path(copied(path)):
            return link["target"]
        return posixpath.relpath(copied(path), posixpath.dirname(page.file.src_uri) or ".")

    return DOCTEST.sub("```pycon\n>>> ", LINK.sub(turned, markdown))


def on_page_content(content: str, page: Page, files: Files | None = None, **_: object) -> str:
    """Formulas, marked by the extension arithmatex, as MathML; one not understood is a warning.

    Words of the glossary lead to it.
    """

    def formula(found: re.Match[str]) -> str:
        tex = html.unescape(found["tex"]).strip()
        display = "inline" if found["open"] == "(" else "block"
        made = convert(tex, display=display)
        if NOT_UNDERSTOOD.search(made):
            LOG.warning("%s: a formula is beyond latex2mathml: %s", page.file.src_uri, tex)
        return made

    content = FORMULA.sub(formula, content)
    glossary = None if files is None else files.get_file_from_path(GLOSSARY)
    if glossary is None or page.file is glossary:
        return content
    return explained(content, entries(glossary.content_string), glossary.url_relative_to(page.file))
