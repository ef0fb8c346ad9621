"""Sentences and pictures: text, notebook, page, Markdown, JUnit, figures."""

from itrust.render import notebook, text
from itrust.render.junit import junit_xml
from itrust.render.markdown import summary_markdown
from itrust.render.showing import as_figure, as_html, as_text
from itrust.render.text import (
    NARROW,
    check_lines,
    evidence_words,
    fitted,
    sections,
    seen,
    sentence_of,
    task_line,
    told,
)

__all__ = [
    "NARROW",
    "as_figure",
    "as_html",
    "as_text",
    "check_lines",
    "evidence_words",
    "fitted",
    "junit_xml",
    "notebook",
    "sections",
    "seen",
    "sentence_of",
    "summary_markdown",
    "task_line",
    "text",
    "told",
]
