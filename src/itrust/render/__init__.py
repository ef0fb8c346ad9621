"""Sentences and pictures: text, notebook, page, Markdown, JUnit, figures."""

from itrust.render import (  # noqa: F401  they register how results are shown
    recalibrate_notebook,
    recalibrate_text,
    scores_notebook,
    scores_text,
)
from itrust.render.gate import checks, is_closed
from itrust.render.junit import junit_xml
from itrust.render.markdown import summary_markdown
from itrust.render.showing import as_figure, as_html, as_text
from itrust.render.text import NARROW, fitted, sections, seen, task_line, told, wrapped

__all__ = [
    "NARROW",
    "as_figure",
    "as_html",
    "as_text",
    "checks",
    "fitted",
    "is_closed",
    "junit_xml",
    "sections",
    "seen",
    "summary_markdown",
    "task_line",
    "told",
    "wrapped",
]
