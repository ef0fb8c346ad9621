"""What all figures share: colours, axes, titles, and how signs are told."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import singledispatch
from typing import Any, Self

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from itrust._core import InputError, cut, printable, set_meanwhile, shown_name
from itrust.data import Column

LOW, HIGH = "#a9560d", "#2a5d92"  # the model is too low, too high: as on the page
SIZES = (HIGH, "#6d9dc9", "#bdd4e9", "#eceeef", "#f5d2b1", "#dc9350", LOW)  # of the bias, in maps
SHOWN_LOW, SHOWN_HIGH, NOT_SHOWN = "^", "v", "o"  # markers: shown to be miscalibrated, or not
INK, FAINT, PALE = "#222222", "#767676", "#d9d9d9"
UNDER, OVER = "model underestimates", "model overestimates"
# Of what is shown to be miscalibrated: the sign of its bias, colour, marker and words.
SIDES = ((1, LOW, SHOWN_LOW, UNDER), (-1, HIGH, SHOWN_HIGH, OVER))
CYCLE = ("#222222", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#8c6d31", "#7f7f7f")  # no sign's
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BIAS = "bias (observed \N{MINUS SIGN} predicted)"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # a column name may hold a dollar sign
    "legend.frameon": False,
    "legend.fontsize": "small",
    "font.size": 10,
}


class Display:
    """A picture that keeps what it shows: of any result, as `result.plot()` makes it.

    Parameters
    ----------
    result : Result
        What is drawn.
    **settings : object
        How; some results take any.

    Attributes
    ----------
    result : Result
        What is drawn.
    figure_ : matplotlib figure
        After `plot`.
    ax_ : matplotlib axes
        After `plot`; the first of several.
    axes_ : list of matplotlib axes
        After `plot`, all of them; in given axes that one alone.
    """

    figure_: Figure
    ax_: Axes
    axes_: list[Axes]

    def __init__(self, result: Any, **settings: Any) -> None:
        self.result, self.settings = result, settings

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; no test is made again, and matplotlib's settings stay as they are.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; default: a new figure. Pictures with several panels draw all in one,
            or the first only.

        Returns
        -------
        Display
            The same display, which now has `figure_` and `ax_`.
        """
        with mpl.rc_context(STYLE):
            paint(self.result, self, ax, **self.settings)
        return self


@singledispatch
def paint(result: Any, display: Display, ax: Axes | None, **settings: Any) -> None:
    """Draw a result into panels of a display; modules beside this one register how."""
    del display, ax, settings
    raise InputError(f"a {type(result).__name__} has no picture; to_dict() has its numbers")


def draw(result: Any, ax: Axes | None = None, **settings: Any) -> Display:
    """Draw a result into given axes or a new figure."""
    return Display(result, **settings).plot(ax)


def new_panels(
    display: Display,
    ax: Axes | None,
    size: tuple[float, float],
    shape: tuple[int, int] = (1, 1),
    **settings: Any,
) -> list[Axes]:
    """Keep figure and axes: given ones, or new ones of some size in inches, row by row."""
    if ax is None:
        display.figure_ = new_figure(size)
        display.axes_ = list(display.figure_.subplots(*shape, squeeze=False, **settings).ravel())
    elif isinstance(ax, Axes):
        whole = ax.figure.figure  # also of axes in a part of it
        assert whole is not None
        display.figure_, display.axes_ = whole, [ax]
    else:
        raise InputError(f"ax must be matplotlib Axes, such as plt.subplots()[1], not a {type(ax)}")
    display.ax_ = display.axes_[0]
    return display.axes_


def titled(display: Display, text: str, ax: Axes | None) -> None:
    """At the left of a new figure, where long labels leave the axes little room."""
    if ax is None:
        display.figure_.suptitle(text, x=0.01, ha="left", fontsize="medium", fontweight="bold")
    else:
        display.ax_.set_title(text, pad=20)


_DETACHED: ContextVar[bool] = ContextVar("detached", default=False)


def detached() -> AbstractContextManager[None]:
    """Make figures that no window and no notebook shows by itself."""
    return set_meanwhile(_DETACHED, True)


def new_figure(size: tuple[float, float]) -> Figure:
    """A new figure of some size in inches."""
    if _DETACHED.get():
        return Figure(figsize=size, layout="constrained")
    return plt.figure(figsize=size, layout="constrained")


def signed(value: float, _: object = None) -> str:
    """Write a bias with its sign."""
    return "0" if abs(value) < 1e-12 else f"{value:+.3g}".replace("-", "\N{MINUS SIGN}")


def bias_axis(ax: Axes) -> None:
    """Mark zero, and label the vertical axis with signed numbers."""
    ax.yaxis.set_major_formatter(FuncFormatter(signed))
    ax.axhline(0, color=FAINT, linewidth=0.8, zorder=1)


def sign_words(ax: Axes) -> None:
    """Say at the ends of a vertical bias axis what its signs mean."""
    quiet: dict[str, Any] = {"color": FAINT, "fontsize": "small", "zorder": 5}
    for y, words, place in ((0.99, f"↑ {UNDER}", "top"), (0.01, f"↓ {OVER}", "bottom")):
        ax.text(0.01, y, words, transform=ax.transAxes, ha="left", va=place, **quiet)


def beside_axes(ax: Axes, row: float, text: str, color: str) -> None:
    """Write the number of a row at the right of the axes."""
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
    ax.annotate(text, (1.01, row), fontsize="small", color=color, **place)


def rows_of_names(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows, the first on top, as in tables."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def date_ticks(axis: XAxis | YAxis, column: Column) -> None:
    """Few ticks, written as the column writes its values."""
    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda value, _: column.shown(value)))


def short(text: str, width: int = 44) -> str:
    """Cut a long text, between words if that leaves enough of it; control characters spelt out."""
    text = shown_name(printable(text, lines=False))
    if len(text) <= width:
        return text
    short = textwrap.shorten(text, width, placeholder=" …")
    return short if len(short) > width // 2 else f"{text[: width - 2]} …"


def in_two_lines(text: str) -> str:
    r"""Break a long label, and cut what two lines do not hold from its middle.

    >>> in_two_lines("region of residence at the time of the interview " * 2 + "= north")
    'region of residence at the time of the\ninterview region of resi…the interview = north'
    """
    told = shown_name(printable(text, lines=False))
    for most in range(2 * 46, 46, -1):
        lines = textwrap.wrap(cut(told, most), 46)
        if len(lines) <= 2:
            break
    return "\n".join(lines)


def in_legend(text: str) -> str:
    """A label that a legend shows: matplotlib leaves out those that begin with an underscore.

    >>> in_legend("_x = 1"), in_legend("x = 1")
    (' _x = 1', 'x = 1')
    """
    told = short(text)
    return f" {told}" if told.startswith("_") else told
