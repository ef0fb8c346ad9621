"""How the command speaks: results on standard output, everything else on standard error."""

from __future__ import annotations

import shutil
import sys

from rich.console import Console
from rich.text import Text

from itrust._core import printable
from itrust.render import wrapped

WIDEST = 100  # longer lines are hard to read


def width() -> int:
    """Columns of the terminal; 80 in a pipe, unless COLUMNS says otherwise."""
    return min(shutil.get_terminal_size((80, 24)).columns, WIDEST)


def answer(text: str, colour: str = "") -> None:
    """Write a result; the first line may have a colour, where the terminal has any."""
    safe = printable(text)
    encoding = sys.stdout.encoding or "utf-8"
    safe = safe.encode(encoding, "backslashreplace").decode(encoding)
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if not colour or not console.is_terminal:
        sys.stdout.write(f"{safe}\n")
        return
    first, _, rest = safe.partition("\n")
    console.print(Text(first, style=colour), soft_wrap=True)
    console.print(Text(rest), soft_wrap=True)


class Log:
    """What is said beside the result; `quiet` keeps it silent."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def say(self, text: str) -> None:
        """One remark."""
        if not self.quiet:
            complain(text)


def complain(text: str) -> None:
    """Write to standard error, whatever was asked for; pointers into a line stay in place."""
    first, *rest = printable(text).split("\n")
    for line in [*(wrapped(first, width(), "", "  ") or [""]), *rest]:
        print(line, file=sys.stderr, flush=True)
