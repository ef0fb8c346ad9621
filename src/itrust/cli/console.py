"""How the command speaks: results on standard output, everything else on standard error."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

from itrust._core import (
    ApproximationWarning,
    AssumptionWarning,
    Code,
    Door,
    Row,
    Setting,
    printable,
    set_meanwhile,
    wrapped,
)
from itrust.cli.options import BY_KEY, WATCH_START, WATCH_UPDATE, Option, Options

MAX_WIDTH = 100  # longer lines are hard to read
# Arguments of the package that have another name on the command line.
CALLED = {"x": "on", "y": "label", "p": "prob", "rng": "seed", "tasks": "task"}
CALLED |= {"categories": "category", "numbers": "number"}


@dataclass(frozen=True)
class ShellDoor(Door):
    """Errors in a shell: options instead of arguments, lines instead of row numbers.

    About the batch of a watch, it is said of options that updates do not take where they are.
    """

    of_batch: bool = False

    def argument(self, name: str, column: str | None = None) -> str:
        """The option, with the column of the file that it names; other arguments as they are.

        >>> SHELL.argument("prob", "p hat"), SHELL.argument("min_cell"), SHELL.argument("power")
        ("--prob 'p hat'", '--min-cell', 'power')
        """
        option = _option(name)
        if option is None:
            return name
        return option.flag if column is None else f"{option.flag} {shlex.quote(column)}"

    def setting(self, setting: Setting) -> str:
        """The option with its value, quoted for the shell.

        >>> SHELL.setting(Setting("positive", ">50K")), SHELL.setting(Setting("cluster"))
        ("--positive '>50K'", '--cluster')
        >>> SHELL.setting(Setting("cluster", ["stratum", "psu"]))
        '--cluster stratum,psu'
        >>> ShellDoor(of_batch=True).setting(Setting("dates", "dmy"))
        "--dates dmy of 'itrust watch start'"
        """
        value, option = setting.value, _option(setting.name)
        where = " of 'itrust watch start'" if self.of_batch and of_the_start(setting.name) else ""
        if value is None:
            return f"{self.argument(setting.name)}{where}"
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        shown = shlex.quote(text) if value is not ... else option.metavar if option else "VALUE"
        return f"{self.argument(setting.name)} {shown}{where}"

    def row(self, row: Row) -> str:
        """The line of a text file; in other files the row, counted from 1 in words.

        >>> SHELL.row(Row(16, line=18)), SHELL.row(Row(0)), SHELL.row(Row(1_011))
        ('line 18', 'the 1st row', 'the 1,012th row')
        """
        if row.line is not None:
            return f"line {row.line:,}"
        number = row.number + 1
        ends = {} if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}
        return f"the {number:,}{ends.get(number % 10, 'th')} row"

    def code(self, code: Code) -> str:
        """The plain words."""
        return code.plain


def _option(argument: str) -> Option | None:
    return BY_KEY.get(CALLED.get(argument, argument))


def of_the_start(argument: str) -> bool:
    """Whether it is an option that a watch is told at its start, and not by updates."""
    option = _option(argument)
    commands = () if option is None else option.commands
    return WATCH_START in commands and WATCH_UPDATE not in commands


SHELL = ShellDoor()
_results: ContextVar[TextIO | None] = ContextVar("where results go", default=None)


class OutputLostError(Exception):
    """Standard output cannot be written to; without a reason, nobody reads it any more."""


def results() -> TextIO:
    """The stream that results go to."""
    stream: TextIO | None = _results.get() or sys.stdout
    if stream is None:  # Python has none where the descriptor was closed
        raise OutputLostError("it is closed")
    return stream


@contextmanager
def nothing_but_results() -> Iterator[None]:
    """Let what libraries print go to standard error; warnings of ours stand in the result."""
    errors = sys.stderr or io.StringIO()  # old NumPy wants one where that is closed, too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        warnings.simplefilter("ignore", ApproximationWarning)
        with set_meanwhile(_results, sys.stdout), redirect_stdout(errors), redirect_stderr(errors):
            yield


def width() -> int:
    """Columns of the terminal; 80 in a pipe, unless COLUMNS says otherwise."""
    return min(shutil.get_terminal_size((80, 24)).columns, MAX_WIDTH)


def answer(text: str, colour: str = "", marked: str = "") -> None:
    """Write a result; the line `marked` may have a colour, where the terminal has any."""
    stream = results()
    encoding = stream.encoding or "utf-8"
    safe = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    try:
        if colour and stream.isatty():
            from rich.console import Console
            from rich.text import Text

            shown = Text(safe)
            shown.highlight_words(printable(marked).splitlines(), colour)
            Console(file=stream).print(shown, soft_wrap=True)
        else:
            stream.write(f"{safe}\n")
        stream.flush()
    except OSError as error:
        give_up(stream)
        gone = isinstance(error, BrokenPipeError)
        raise OutputLostError("" if gone else error.strerror or str(error)) from None


def give_up(stream: TextIO) -> None:
    """Let what is left in the buffer of a stream go nowhere, or Python would fail at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(options: Options, *notes: str) -> None:
    """Notes beside the result, each a line: no name in it can make one of its own."""
    if not options.quiet:
        for note in notes:
            complain(printable(note, lines=False))


def complain(text: str) -> None:
    """Write to standard error, whatever was asked for; pointers into a line stay in place."""
    first, *rest = printable(text).split("\n")
    try:
        for line in [*(wrapped(first, width(), "", "  ") or [""]), *rest]:
            if sys.stderr is not None:  # else print would take standard output
                print(line, file=sys.stderr, flush=True)
    except OSError:  # there is nobody left to be told
        give_up(sys.stderr)
