"""Self-contained HTML pages: about an audit, about estimates on a population, about a watch."""

from itrust.render.page.facts import MarkedFacts, shown
from itrust.render.page.html import embedded, page, pictures_of, write
from itrust.render.page.library import WORDS
from itrust.render.page.results import facts_of

__all__ = ["WORDS", "MarkedFacts", "embedded", "facts_of", "page", "pictures_of", "shown", "write"]
