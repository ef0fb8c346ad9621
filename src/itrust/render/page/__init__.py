"""Self-contained HTML pages: about an audit, and about estimates on a population."""

from itrust.render.page.content import content
from itrust.render.page.estimates import estimates_content, estimates_page, write_estimates
from itrust.render.page.html import page, rendered, write

__all__ = [
    "content",
    "estimates_content",
    "estimates_page",
    "page",
    "rendered",
    "write",
    "write_estimates",
]
