"""Standard streams of a process of our own: nothing but results gets into standard output.

Libraries may print where they like, from Python and from C. So the command keeps standard output to
itself under another descriptor, and number 1 leads to standard error from then on.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

OUTPUT, ERRORS = 1, 2  # descriptors


class ReaderGoneError(Exception):
    """Nobody reads the output any more."""


class OutputLostError(Exception):
    """Standard output cannot be written to."""

    def __init__(self, reason: str, files: Iterable[Path] = ()) -> None:
        super().__init__(reason)
        self.reason, self.files = reason, tuple(files)


class _Results(io.FileIO):
    """Standard output; a failure is told once, and what is left in buffers is given up."""

    failed = False

    def write(self, content: Any, /) -> int:
        if self.failed:
            return len(content)
        try:
            return super().write(content)
        except BrokenPipeError:
            self.failed = True
            raise ReaderGoneError from None
        except OSError as error:
            self.failed = True
            raise OutputLostError(error.strerror or str(error)) from None


class _Remarks(io.FileIO):
    """Standard error; where it cannot be written to there is nobody left to be told."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except OSError:
            return len(content)


def take_standard_streams() -> None:
    """Keep standard output for results; raises `OutputLostError` if it is closed.

    Closed descriptors must be occupied already (`itrust.__main__`).
    """
    errors: TextIO | None = sys.stderr  # Python has none where the descriptor was closed
    _install("stderr", _text(_Remarks(ERRORS, "wb", closefd=False), errors))
    output: TextIO | None = sys.stdout
    kept = _Results(os.dup(OUTPUT), "wb")
    os.dup2(ERRORS, OUTPUT)
    _install("stdout", _text(kept, output))
    if output is None:
        kept.failed = True
        raise OutputLostError("it is closed")


def _install(name: str, stream: TextIO) -> None:
    for known in (name, f"__{name}__"):  # the width of the terminal is asked of the second
        setattr(sys, known, stream)


def _text(raw: io.FileIO, like: TextIO | None) -> TextIO:
    """A stream of text as Python would have made it."""
    is_errors = raw.fileno() == ERRORS
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(like, "encoding", None) or "utf-8",
        errors="backslashreplace" if is_errors else getattr(like, "errors", None),
        line_buffering=is_errors or raw.isatty(),
        write_through=bool(getattr(like, "write_through", False)),
    )


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
        there = [file for file in files if file is not None]
        raise OutputLostError(error.reason, there) from None
