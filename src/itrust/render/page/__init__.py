"""Self-contained HTML pages: about an audit, about estimates on a population, about a watch."""

from itrust.render.page.content import content
from itrust.render.page.estimates import estimates_content, estimates_page, write_estimates
from itrust.render.page.html import page, rendered, write
from itrust.render.page.watch import watch_content, watch_page, write_watch

__all__ = [
    "content",
    "estimates_content",
    "estimates_page",
    "page",
    "rendered",
    "watch_content",
    "watch_page",
    "write",
    "write_estimates",
    "write_watch",
]
