"""One self-contained page about an audit: `report.write(audit, "report.html")`.

`content` gathers everything the page shows into one plain dict, which tests read without a browser;
`page` puts it into HTML and computes nothing.
"""

from itrust.report.content import Remade, content
from itrust.report.page import page, write
from itrust.report.suppression import MIN_CELL, Discretion, suppressed

__all__ = [
    "MIN_CELL",
    "Discretion",
    "Remade",
    "content",
    "page",
    "suppressed",
    "write",
]
