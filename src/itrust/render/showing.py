"""How results are shown: each module of `render` says it for the results of one question."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

WIDTH = 88


@singledispatch
def as_text(result: object, width: int = WIDTH) -> str:
    """A result as plain text; modules of `render.text` register how.

    Parameters
    ----------
    result : Result
        What to show.
    width : int
        Most characters in a line.

    Returns
    -------
    str
        Lines without a newline at the end.
    """
    raise TypeError(f"nothing says how a {type(result).__name__} reads (at width {width})")


@singledispatch
def as_html(result: object) -> str:
    """A result as HTML for a notebook; modules of `render.notebook` register how.

    Parameters
    ----------
    result : Result
        What to show.

    Returns
    -------
    str
        Escaped HTML without scripts.
    """
    raise TypeError(f"nothing says how a {type(result).__name__} looks in a notebook")


def as_figure(result: object, ax: Any = None, **settings: Any) -> Any:
    """A result drawn with matplotlib, which is loaded here: see `itrust.figures.draw`.

    Parameters
    ----------
    result : Result
        One that has a display.
    ax : matplotlib axes, optional
        Axes to draw into; default: new ones.
    **settings : dict
        For the display.

    Returns
    -------
    Display
        It keeps the figure and the axes.
    """
    from itrust.render.figures import draw

    return draw(result, ax=ax, **settings)
