"""How the command speaks: results on standard output, everything else on standard error."""

from __future__ import annotations

import shutil
import sys

from itrust._core import printable, wrapped
from itrust.cli.streams import results

MAX_WIDTH = 100  # longer lines are hard to read


def width() -> int:
    """Columns of the terminal; 80 in a pipe, unless COLUMNS says otherwise."""
    return min(shutil.get_terminal_size((80, 24)).columns, MAX_WIDTH)


def answer(text: str, colour: str = "", marked: str = "") -> None:
    """Write a result; the line `marked` may have a colour, where the terminal has any."""
    safe = printable(text)
    encoding = results().encoding or "utf-8"
    safe = safe.encode(encoding, "backslashreplace").decode(encoding)
    if not colour or not _in_colour(safe, colour, printable(marked)):
        results().write(f"{safe}\n")


def _in_colour(text: str, colour: str, marked: str) -> bool:
    """Write with some lines in colour; False, and nothing is written, outside a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=results(), highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        return False
    shown, lines = Text(), marked.splitlines()
    for line in text.splitlines(keepends=True):
        shown.append(line, style=colour if line.rstrip("\n") in lines else None)
    console.print(shown, soft_wrap=True)
    return True


class Log:
    """What is said beside the result; `quiet` keeps it silent."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def say(self, *notes: str) -> None:
        """One note or several, each a line: no name in it can make one of its own."""
        if not self.quiet:
            for note in notes:
                complain(printable(note, lines=False))


def complain(text: str) -> None:
    """Write to standard error, whatever was asked for; pointers into a line stay in place."""
    first, *rest = printable(text).split("\n")
    for line in [*(wrapped(first, width(), "", "  ") or [""]), *rest]:
        print(line, file=sys.stderr, flush=True)
