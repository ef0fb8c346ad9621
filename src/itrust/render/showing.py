"""How results are shown, until every one has a document."""

from itrust.render.document import WIDTH, as_figure, as_html, as_text

__all__ = ["WIDTH", "as_figure", "as_html", "as_text"]
