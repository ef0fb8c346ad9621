"""Values in sentences: quoted, counted, listed, with a guess at what was meant."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

NOTHING, LEAST_SHOWN = 1e-7, 5e-4  # not told from 0; 0.000 with three digits
MOST_COMPARED = 200  # characters of a name that a guess looks at
# Controls, other line ends, what turns the direction of text, and what is neither seen nor written.
# Joiners (U+200C, U+200D) and U+FE0F are not among them: scripts and emoji need them.
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    r"\ufff9-\uffff\U000e0000-\U000e007f]"
)
ONE_LINE = re.compile(rf"[\t\n]|{CONTROL.pattern}")
# Nothing to see: spaces of every kind, joiners and marks of direction, letters without ink.
BLANK = re.compile(
    r"[\s\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u2800\u3164\uffa0]*"
)


def shown(value: object, max_length: int = 60) -> str:
    """A value as Python would write it, cut where it is long; NumPy's numbers as plain ones."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    try:
        text = repr(value)
    except ValueError:  # Python does not write whole numbers of thousands of digits
        is_number = isinstance(value, int)
        text = "a number of very many digits" if is_number else "a value too long to be shown"
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def signed(value: float) -> str:
    """A bias with three digits, more where it would be taken for 0."""
    return _one_digit(value, "+") if NOTHING < abs(value) < LEAST_SHOWN else f"{value + 0.0:+.3f}"


def _one_digit(value: float, sign: str) -> str:
    """A small number with its first digit that counts, never as a power of ten."""
    return format(value, f"{sign}.{-math.floor(math.log10(abs(value)))}f")


def signed_in(value: float, lower: float, upper: float) -> str:
    """A bias, or an end of its interval, with three digits, more where the interval is narrow."""
    width = upper - lower
    if not (math.isfinite(width) and width > 0 and math.isfinite(value)):
        return signed(value)
    places = min(max(1 - math.floor(math.log10(width)), 3), 6)
    text = f"{value + 0.0:+.{places}f}"
    return signed(value) if float(text) == 0 else text


def rounded(value: float, lower: float, upper: float, sign: str = "-") -> str:
    """A number with as many digits as its interval can tell: two of the interval's width."""
    width = upper - lower
    if not (math.isfinite(width) and width > 0 and math.isfinite(value)):
        return format(value, f"{sign}.4g")
    places = min(max(1 - math.floor(math.log10(width)), 0), 6)
    nearest = round(value, places)
    if nearest == 0:  # nothing has no sign, and an end that excludes 0 is never told as 0
        excludes = value in (lower, upper) and lower * upper > 0 and abs(value) > NOTHING
        return _one_digit(value, sign) if excludes else format(0.0, f".{places}f")
    return format(nearest, f"{sign},.{places}f")


def rounded_up(size: float) -> str:
    """A size in two digits that is not smaller."""
    if size <= 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(size)) - 1)
    return f"{math.ceil(size / step - 1e-9) * step:.12g}"


def two_digits(number: float) -> int:
    """A count rounded up to two digits."""
    step = int(10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0))
    return math.ceil(number / step) * step


def listed(values: Iterable[object], max_items: int = 6) -> str:
    """Join values for a message: quoted as Python would, cut after `max_items`."""
    items = list(values)
    text = ", ".join(shown(value) for value in items[:max_items])
    return text if len(items) <= max_items else f"{text}, ... ({len(items):,} in all)"


def shown_name(name: str) -> str:
    """Give the name of a column, or words for none."""
    return "(no name)" if is_blank(name) else name


def is_blank(text: str) -> bool:
    """Whether there is nothing to see."""
    return BLANK.fullmatch(text) is not None


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Give the closest known name as a question, or list what is known."""
    close = closest(name, known)
    return f"the names are {listed(known)}" if close is None else f"did you mean {close!r}?"


def closest(name: str, known: Sequence[str]) -> str | None:
    """The known name that was probably meant; None where no name is close."""
    folded = {other.casefold(): other for other in reversed(known)}
    if name.casefold() in folded:
        return folded[name.casefold()]
    name = name[:MOST_COMPARED]
    close = get_close_matches(name, known, n=1) or [
        folded[match] for match in get_close_matches(name.casefold(), list(folded), n=1)
    ]
    # A formula cuts `hours-per-week` at its first hyphen.
    close = close or [other for other in known if other.startswith((f"{name}-", f"{name} "))]
    return close[0] if close else None


def printable(text: str, *, lines: bool = True) -> str:
    """Text of a file without power over terminal and page: control characters are spelt out."""
    spelt = CONTROL if lines else ONE_LINE
    return spelt.sub(lambda match: ascii(match[0])[1:-1], text)


def first_line(error: Exception) -> str:
    """What another package's error says, in one line, for a sentence of our own."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return printable(lines[0].strip().removesuffix("."), lines=False)


def cut(text: str, most: int) -> str:
    """Beginning and end of a long text."""
    if len(text) <= most:
        return text
    tail = most // 4
    head = text[: most - tail - 1]
    while head and unicodedata.combining(text[len(head)]):  # no accent without its letter
        head = head[:-1]
    return f"{head}…{text[-tail:]}"


def wrapped(text: str, width: int, indent: str = "", deeper: str = "") -> list[str]:
    """Break a text into lines of at most `width` characters."""
    return textwrap.wrap(
        printable(text, lines=False),
        max(width, 14),
        initial_indent=indent,
        subsequent_indent=indent + deeper,
        break_on_hyphens=False,
    )
