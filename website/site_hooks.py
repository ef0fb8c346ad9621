"""What `mkdocs build` does beside its plugins: formulas as MathML, files from outside `docs/`.

Formulas become MathML while the site is built, so that pages need no script and no other host. A
link to a file of the repository that stands outside `docs/` works in the repository as it is; for
the site that file is copied to `repository/` and the link is turned there.
"""

from __future__ import annotations

import html
import logging
import posixpath
import re
from pathlib import Path

from latex2mathml.converter import convert
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
LINK = re.compile(r"(?<=\]\()(?P<target>(?:\.\./)+[^)#\s]+)")


def outside(target: str, page: str) -> str | None:
    """The path from the repository's root, if a link of a page leads out of `docs/`.

    >>> outside("../../examples/run.py", "howto/gate.md")
    'examples/run.py'
    >>> outside("../guide/data.md", "howto/gate.md") is None
    True
    """
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path.startswith("docs/") else path


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside `docs/`."""
    root = Path(config.docs_dir).parent
    for page in list(files.documentation_pages()):
        for link in LINK.finditer(page.content_string):
            path = outside(link["target"], page.src_uri)
            if path is None or files.get_file_from_path(f"{COPIED}/{path}"):
                continue
            source = root / path
            if source.suffix != ".md" and source.is_file():
                copied = File.generated(config, f"{COPIED}/{path}", abs_src_path=str(source))
                files.append(copied)
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Turn links to those files; one that was not found stays, and the build warns about it.

    Doctests are coloured as such. A page outside all sections needs no list of pages beside it.
    """
    if page.parent is None:
        page.meta.setdefault("hide", ["navigation"])

    def turned(link: re.Match[str]) -> str:
        path = outside(link["target"], page.file.src_uri)
        if path is None or not files.get_file_from_path(f"{COPIED}/{path}"):
            return link["target"]
        return posixpath.relpath(f"{COPIED}/{path}", posixpath.dirname(page.file.src_uri) or ".")

    return DOCTEST.sub("```pycon\n>>> ", LINK.sub(turned, markdown))


def on_page_content(content: str, page: Page, **_: object) -> str:
    """Formulas, marked by the extension arithmatex, as MathML; one not understood is a warning."""

    def formula(found: re.Match[str]) -> str:
        tex = html.unescape(found["tex"]).strip()
        display = "inline" if found["open"] == "(" else "block"
        made = convert(tex, display=display)
        if NOT_UNDERSTOOD.search(made):
            LOG.warning("%s: a formula is beyond latex2mathml: %s", page.file.src_uri, tex)
        return made

    return FORMULA.sub(formula, content)
