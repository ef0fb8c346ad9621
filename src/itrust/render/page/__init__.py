"""One self-contained HTML page about an audit."""

from itrust.render.page.content import content
from itrust.render.page.html import page, rendered, write

__all__ = [
    "content",
    "page",
    "rendered",
    "write",
]
