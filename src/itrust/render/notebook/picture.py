"""The picture of a result inside its notebook view: the same figure as `plot`, as a small PNG."""

from __future__ import annotations

import base64
import warnings
from html import escape
from io import BytesIO

from itrust._core import InputError
from itrust.render.showing import as_html

DOTS_PER_INCH = 110
COLOURS = 64
PIXELS_PER_INCH = 76  # on the screen: sharp where screens have finer dots


def picture_of(result: object) -> str:
    """An image of the result; nothing where it has none, or where matplotlib is missing."""
    try:
        from itrust.render.figures import detached, draw
    except ImportError:
        return ""
    if draw.dispatch(type(result)) is draw.dispatch(object):
        return ""
    file = BytesIO()
    with detached(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font does not have
        try:
            figure = draw(result).figure_
        except InputError:  # there is nothing to draw, such as draws of a null that has none
            return ""
        figure.savefig(file, format="png", dpi=DOTS_PER_INCH, facecolor="white")
    file = _lighter(file)
    width = round(PIXELS_PER_INCH * figure.get_figwidth())
    code = base64.b64encode(file.getvalue()).decode("ascii")
    style = f"display:block;width:{width}px;max-width:100%;margin:.4em 0"
    return f'<img alt="{escape(repr(result))}" style="{style}" src="data:image/png;base64,{code}">'


def _lighter(file: BytesIO) -> BytesIO:
    """The same picture with at most 64 colours: a third of the size."""
    from PIL import Image  # with matplotlib, which needs it

    made = BytesIO()
    with Image.open(file) as image:
        few = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
        few.save(made, "PNG", optimize=True)
    return made


def in_notebook(result: object) -> str:
    """A result as a notebook shows it: its card, with the picture as the last thing in it."""
    return f"{as_html(result).removesuffix('</div>')}{picture_of(result)}</div>"
