"""What a result says, once: a title and blocks, which writers turn into text or HTML.

Each module of `render.text` registers the documents of one question with `document_of`. Names and
values of the user's file are hostile: writers spell control characters out and escape the rest.
"""

from __future__ import annotations

import base64
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from html import escape
from io import BytesIO
from typing import Any, NamedTuple

from itrust._core import InputError, printable, signed, wrapped

WIDTH, NARROW = 88, 56  # columns of a text; below NARROW what belongs together has its own lines
ROOM = 14  # columns that a text in a table wants
GAP = "  "
MAX_ROWS, LONG = 60, 300  # rows of a table and characters of a text in HTML
NUMBER = re.compile(
    r"(?:(?:[-+<~]|over )?\d[\d.,]*(?:e[-+]?\d+)?(?: %)?(?: (?:to|of) (?=.)|$)){1,2}|-|"
)
# Greys that show on both grounds; inline, because notebooks that are cleaned lose style sheets.
BOX = "max-width:60rem;line-height:1.45;font-variant-numeric:tabular-nums;overflow-wrap:break-word"
LINE = "border-bottom:1px solid rgba(128,128,128,.35);padding:.25em .8em;vertical-align:top"
QUIET = "opacity:.75;font-size:.92em;margin:.35em 0"
DOTS_PER_INCH, PIXELS_PER_INCH, COLOURS = 110, 76, 64  # of a picture, which fine screens sharpen


# Colours of bad, fair and good news, and of none, on light and on dark ground and in a terminal.
LIGHT = {"bad": "#a02c1a", "fair": "#7d5200", "good": "#1b6540", "open": "#4b5560"}
DARK = {"bad": "#f29b8a", "fair": "#e3ba68", "good": "#83cda6", "open": "#b3bcc5"}
TERMINAL = {"bad": "bold red", "fair": "bold yellow", "good": "bold green", "open": "bold"}


class Sentence(NamedTuple):
    """A paragraph."""

    text: str


class Table(NamedTuple):
    """Names of columns, texts of cells, and a title; a head of empty names is not written."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


class Notes(NamedTuple):
    """Quiet lines, one for each thing to know."""

    lines: Sequence[str]


class Section(NamedTuple):
    """Blocks under a title; the key names what the section is about."""

    key: str
    title: str
    blocks: Sequence[Block]

    @property
    def lines(self) -> list[str]:
        """What is said in sentences and notes, a text each."""
        return [
            text
            for block in self.blocks
            if isinstance(block, Sentence | Notes)
            for text in ([block.text] if isinstance(block, Sentence) else block.lines)
        ]


Block = Sentence | Table | Notes | Section


class Document(NamedTuple):
    """All that is said of a result; without blocks it is one line, which is never wrapped.

    The lead says what was looked at: above the title in a text, below it in HTML.
    """

    title: str
    blocks: Sequence[Block] = ()
    tone: str | None = None
    lead: str = ""

    def section(self, key: str) -> Section:
        """The section of that key."""
        return next(own for own in self.blocks if isinstance(own, Section) and own.key == key)


@singledispatch
def document_of(result: object) -> Document:
    """What a result says; modules of `render.text` register it."""
    raise TypeError(f"nothing says how a {type(result).__name__} reads")


def in_one_line(kind: type, words: Callable[[Any], str]) -> None:
    """Register results that are one line."""
    document_of.register(kind, lambda result: Document(words(result)))


def as_text(result: object, width: int = WIDTH) -> str:
    """A result as plain text."""
    return terminal(document_of(result), width)


def as_html(result: object) -> str:
    """A result as a card of HTML."""
    return html(document_of(result))


def as_figure(result: object, ax: Any = None, **settings: Any) -> Any:
    """A result drawn with matplotlib, which is loaded here: see `itrust.figures.draw`."""
    from itrust.render.figures import draw

    return draw(result, ax=ax, **settings)


def in_notebook(result: object) -> str:
    """A result as a notebook shows it: its card, with the picture as the last thing in it."""
    return f"{as_html(result).removesuffix('</div>')}{_picture(result)}</div>"


def terminal(document: Document, width: int = WIDTH) -> str:
    """Write a document as plain text of any width."""
    if not document.blocks:
        return spelt(document.title)
    lead = [*wrapped(document.lead, width, "", "  "), ""] if document.lead else []
    title = wrapped(document.title, width, "", "  ")
    return "\n".join([*lead, *title, *_blocks(document, width, "  ")])


def _blocks(parent: Document | Section, width: int, indent: str) -> Iterable[str]:
    """Lines of all blocks; outside sections what is not prose stands apart."""
    before: Block = Sentence("")
    for block in parent.blocks:
        lines = list(_lines(block, width, indent))
        prose = isinstance(block, Sentence | Notes) and isinstance(before, Sentence | type(block))
        together = prose or isinstance(parent, Section)
        if lines:
            yield from lines if together else ["", *lines]
            before = block


def _lines(block: Block, width: int, indent: str) -> Iterable[str]:
    match block:
        case Sentence(text):
            yield from wrapped(text, width, indent)
        case Notes(lines):
            for text in lines:
                yield from wrapped(text, width, indent, "  ")
        case Table(rows=[_, *_], caption=caption):
            yield from wrapped(caption, width, indent)
            yield from _table_lines(block, width, indent)
        case Section(title=title):
            yield from wrapped(title, width, indent, "  ")
            yield from _blocks(block, width, indent + "  ")


def _table_lines(table: Table, width: int, indent: str) -> Iterable[str]:
    """Columns side by side; a text goes on below itself, or a row over lines of its own."""
    head = [table.head] if any(table.head) else []
    rows = [[spelt(cell) for cell in row] for row in (*head, *table.rows)]
    columns = zip(*rows[len(head) :], strict=True)
    right = [all(NUMBER.fullmatch(cell) for cell in column) for column in columns]
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    over = len(indent) + sum(sizes) + len(GAP) * (len(sizes) - 1) - width
    texts = [k for k, is_right in enumerate(right) if not is_right]
    if over > 0 and texts:
        widest = max(texts, key=lambda k: sizes[k])
        if sizes[widest] - over >= ROOM and (width >= NARROW or len(sizes) == 2):
            sizes[widest] -= over
            over = 0
    if over > 0:
        for row in rows[len(head) :]:
            yield from _stacked(table.head, row, width, indent)
        return
    for row in rows:
        cells = [wrapped(cell, size) or [""] for cell, size in zip(row, sizes, strict=True)]
        for k in range(max(map(len, cells))):
            parts = (cell[k] if k < len(cell) else "" for cell in cells)
            aligned = (
                part.rjust(size) if is_right else part.ljust(size)
                for part, size, is_right in zip(parts, sizes, right, strict=True)
            )
            yield f"{indent}{GAP.join(aligned)}".rstrip()


def _stacked(head: Sequence[str], row: list[str], width: int, indent: str) -> Iterable[str]:
    """A row where columns have no room: the first cell, and the others by name below it."""
    mark, (first, *others) = ("", row) if len(row[0]) > 1 else (f"{row[0] or ' '} ", row[1:])
    names = head[len(row) - len(others) :]
    cells = [f"{name} {cell}".strip() for name, cell in zip(names, others, strict=True) if cell]
    yield from wrapped(f"{mark}{first}".rstrip(), width, indent, "  ")
    yield from wrapped(", ".join(cells), width, f"{indent}    ")


def html(document: Document) -> str:
    """Write a document as a card of HTML: no scripts, readable on light and dark ground."""
    head = f'<div style="font-size:1.08em;margin:.2em 0"><strong>{_text(document.title)}</strong>'
    tone = document.tone
    edge = "" if tone is None else f";border-left:.35em solid {LIGHT[tone]};padding-left:.9em"
    blocks = "".join(map(_html, (Sentence(document.lead), *document.blocks)))
    return f'<div style="{BOX}{edge}">{head}</div>{blocks}</div>'


def _html(block: Block) -> str:
    match block:
        case Sentence(text):
            return f'<p style="margin:.35em 0"><bdi>{_text(text)}</bdi></p>' if text else ""
        case Notes(lines):
            return "".join(f'<p style="{QUIET}"><bdi>{_text(text)}</bdi></p>' for text in lines)
        case Section(title=title, blocks=blocks):
            head = f'<p style="margin:.9em 0 .2em"><strong><bdi>{_text(title)}</bdi></strong></p>'
            loud = (
                [*map(Sentence, block.lines)] if isinstance(block, Notes) else [block]
                for block in blocks
            )
            return head + "".join(_html(block) for own in loud for block in own)
        case Table():
            return _html_table(block)


def _html_table(table: Table) -> str:
    """Numbers go to the right; of a long table the first rows are shown."""
    if not table.rows:
        return ""
    right = [all(map(NUMBER.fullmatch, column)) for column in zip(*table.rows, strict=True)]

    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ("right;white-space:nowrap" if own else "left" for own in right)
        made = (
            f'<{tag} style="{LINE};text-align:{side}"><bdi>{_text(cell)}</bdi></{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    head = f"<thead>{line('th', table.head)}</thead>" if any(table.head) else ""
    body = "".join(line("td", row) for row in table.rows[:MAX_ROWS])
    title = _html(Sentence(table.caption))
    more = len(table.rows) - MAX_ROWS
    return (
        f'{title}<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:.4em 0"'
        f">{head}<tbody>{body}</tbody></table></div>"
        + (_html(Notes([f"and {more:,} more"])) if more > 0 else "")
    )


def _text(value: str) -> str:
    """Escaped text, control characters spelt out, cut where it is very long."""
    text = printable(value)
    return escape(text if len(text) <= LONG else f"{text[: LONG - 1]}…")


def _picture(result: object) -> str:
    """The figure of a result as a small PNG; nothing where it has none, or without matplotlib."""
    try:
        from itrust.render.figures import detached, draw
    except ImportError:
        return ""
    from PIL import Image  # with matplotlib, which needs it

    file, small = BytesIO(), BytesIO()
    with detached(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font does not have
        try:
            figure = draw(result).figure_
        except InputError:  # nothing draws it, or there is nothing, such as draws of a formula
            return ""
        figure.savefig(file, format="png", dpi=DOTS_PER_INCH, facecolor="white")
    with Image.open(file) as image:  # few colours: a third of the size
        few = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
        few.save(small, "PNG", optimize=True)
    width = round(PIXELS_PER_INCH * figure.get_figwidth())
    code = base64.b64encode(small.getvalue()).decode("ascii")
    style = f"display:block;width:{width}px;max-width:100%;margin:.4em 0"
    return f'<img alt="{escape(repr(result))}" style="{style}" src="data:image/png;base64,{code}">'


def spelt(text: str) -> str:
    """A text for a line: nothing in it can begin another one."""
    return printable(text, lines=False)


def number(value: object, form: str = ".4g") -> str:
    """A number for people; a dash where there is none.

    >>> number(0.25, "+.3f"), number(float("nan")), number(None)
    ('+0.250', '-', '-')
    """
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "-"
    return format(value, form)


def interval(lower: float, upper: float, form: str | None = None) -> str:
    """Both ends; by default as biases, none of which is taken for 0.

    >>> interval(-0.1, 0.2), interval(0.0002, 0.2)
    ('-0.100 to +0.200', '+0.0002 to +0.200')
    """
    ends = (lower, upper)
    if form is None and all(map(math.isfinite, ends)):
        return " to ".join(map(signed, ends))
    return " to ".join(number(end, form or "+.3f") for end in ends)


def noted(notes: Sequence[str], warnings: Sequence[str] = ()) -> Notes:
    """What has to be known beside numbers, each line marked as a warning or a note."""
    return Notes([*(f"! {text}" for text in warnings), *(f"note: {text}" for text in notes)])


def more(count: int) -> Sequence[str]:
    """Say how many entries of a list are not shown, if any."""
    return [f"and {count:,} more"] if count > 0 else []


def seconds(elapsed: float) -> str:
    """A time for people.

    >>> seconds(0.123), seconds(11.4), seconds(113.2), seconds(7_300)
    ('0.12 s', '11 s', '113 s', '122 min')
    """
    if elapsed >= 600:
        return f"{elapsed / 60:,.0f} min"
    return f"{elapsed:.0f} s" if elapsed >= 10 else f"{elapsed:.2g} s"
