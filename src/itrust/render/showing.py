"""How results are shown: each module of `render` says it for the results of one question."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

WIDTH = 88


@singledispatch
def as_text(result: object, width: int = WIDTH) -> str:
    """A result as plain text; modules of `render.text` register how."""
    raise TypeError(f"nothing says how a {type(result).__name__} reads (at width {width})")


@singledispatch
def as_html(result: object) -> str:
    """A result as HTML for a notebook; modules of `render.notebook` register how."""
    raise TypeError(f"nothing says how a {type(result).__name__} looks in a notebook")


def as_figure(result: object, ax: Any = None, **settings: Any) -> Any:
    """A result drawn with matplotlib, which is loaded here: see `itrust.figures.draw`."""
    from itrust.render.figures import draw

    return draw(result, ax=ax, **settings)
