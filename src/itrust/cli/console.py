"""How the command speaks: results on standard output, everything else on standard error.

Libraries may print where they like, from Python and from C. So a process of our own keeps standard
output to itself under another descriptor, and number 1 leads to standard error from then on.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from itrust._core import Code, Door, Row, Setting, printable, wrapped
from itrust.cli.options import BY_KEY

MAX_WIDTH = 100  # longer lines are hard to read
OUTPUT, ERRORS = 1, 2  # descriptors
# Arguments of the package that have another name on the command line.
CALLED = {"x": "on", "y": "label", "p": "prob", "rng": "seed", "tasks": "task"}
CALLED |= {"categories": "category", "numbers": "number"}


class ShellDoor(Door):
    """Errors in a shell: options instead of arguments, lines instead of row numbers."""

    def argument(self, name: str, column: str | None = None) -> str:
        """The option, with the column of the file that it names; other arguments as they are.

        >>> SHELL.argument("prob", "p hat"), SHELL.argument("min_cell"), SHELL.argument("power")
        ("--prob 'p hat'", '--min-cell', 'power')
        """
        option = BY_KEY.get(CALLED.get(name, name))
        if option is None:
            return name
        return option.flag if column is None else f"{option.flag} {shlex.quote(column)}"

    def setting(self, setting: Setting) -> str:
        """The option with its value, quoted for the shell.

        >>> SHELL.setting(Setting("positive", ">50K")), SHELL.setting(Setting("cluster"))
        ("--positive '>50K'", '--cluster')
        >>> SHELL.setting(Setting("cluster", ["stratum", "psu"]))
        '--cluster stratum,psu'
        """
        flag, value = self.argument(setting.name), setting.value
        if value is None:
            return flag
        if value is ...:
            option = BY_KEY.get(CALLED.get(setting.name, setting.name))
            return f"{flag} {option.metavar if option else 'VALUE'}"
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        return f"{flag} {shlex.quote(text)}"

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


SHELL = ShellDoor()


class ReaderGoneError(Exception):
    """Nobody reads the output any more."""


class OutputLostError(Exception):
    """Standard output cannot be written to."""

    def __init__(self, reason: str, files: Iterable[Path] = ()) -> None:
        super().__init__(reason)
        self.reason, self.files = reason, tuple(files)


class _Stream(io.FileIO):
    """A standard stream; a failure of output is told once, and what is left in buffers given up."""

    failed = False

    def write(self, content: Any, /) -> int:
        if self.failed:
            return len(content)
        try:
            return super().write(content)
        except OSError as error:
            if self.fileno() == ERRORS:  # there is nobody left to be told
                return len(content)
            self.failed = True
            if isinstance(error, BrokenPipeError):
                raise ReaderGoneError from None
            raise OutputLostError(error.strerror or str(error)) from None


def take_standard_streams() -> None:
    """Keep standard output for results; raises `OutputLostError` if it is closed.

    Closed descriptors must be occupied already (`itrust.__main__`).
    """
    output: TextIO | None = sys.stdout  # Python has none where the descriptor was closed
    _install("stderr", _Stream(ERRORS, "wb", closefd=False), sys.stderr)
    results = _Stream(os.dup(OUTPUT), "wb")
    os.dup2(ERRORS, OUTPUT)
    _install("stdout", results, output)
    if output is None:
        results.failed = True
        raise OutputLostError("it is closed")


def _install(name: str, raw: io.FileIO, like: TextIO | None) -> None:
    """Put a stream of text into its place, as Python would have made it."""
    is_errors = raw.fileno() == ERRORS
    stream = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(like, "encoding", None) or "utf-8",
        errors="backslashreplace" if is_errors else getattr(like, "errors", None),
        line_buffering=is_errors or raw.isatty(),
        write_through=bool(getattr(like, "write_through", False)),
    )
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)  # of which the width of the terminal is asked


_results: ContextVar[TextIO | None] = ContextVar("where results go", default=None)


def results() -> TextIO:
    """The stream that results go to."""
    return _results.get() or sys.stdout


@contextmanager
def nothing_but_results() -> Iterator[None]:
    """Let what libraries print go to standard error."""
    token = _results.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _results.reset(token)


@contextmanager
def after_writing(files: Iterable[Path | None]) -> Iterator[None]:
    """Tell results when output files are there already; a failure names them."""
    try:
        yield
        results().flush()
    except OutputLostError as error:
        raise OutputLostError(error.reason, [file for file in files if file]) from None


def width() -> int:
    """Columns of the terminal; 80 in a pipe, unless COLUMNS says otherwise."""
    return min(shutil.get_terminal_size((80, 24)).columns, MAX_WIDTH)


def answer(text: str, colour: str = "", marked: str = "") -> None:
    """Write a result; the line `marked` may have a colour, where the terminal has any."""
    encoding = results().encoding or "utf-8"
    safe = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    if not (colour and results().isatty()):
        results().write(f"{safe}\n")
        return
    from rich.console import Console
    from rich.text import Text

    shown, lines = Text(), printable(marked).splitlines()
    for line in safe.splitlines(keepends=True):
        shown.append(line, style=colour if line.rstrip("\n") in lines else None)
    console = Console(file=results(), highlight=False, markup=False, emoji=False)
    console.print(shown, soft_wrap=True)


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
