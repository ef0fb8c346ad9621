"""Sentences and pictures: text, notebook, page, Markdown, JUnit, figures."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
