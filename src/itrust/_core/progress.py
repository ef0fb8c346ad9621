"""A progress bar on long runs in a terminal; silence everywhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PATIENCE = 1.0  # seconds of silence before a bar appears
_inside = ContextVar("inside a bar", default=False)  # two bars would write over each other


class Advance(Protocol):
    """Told how much of the work has been done since the last call."""

    def __call__(self, amount: float) -> None:
        """Add to the work done."""


@contextmanager
def progress_bar(title: str, total: float, show: bool | None = None) -> Iterator[Advance]:
    """Show the share of `total` done on standard error, if that is a terminal.

    Parameters
    ----------
    title : str
    total : float
        Amount of work; `advance` is told shares of it.
    show : bool, optional
        True: always; False: never; None: in a terminal, after a second, and not inside another.
    """
    console = Console(stderr=True)
    if show is False or (show is None and (not console.is_terminal or _inside.get())):
        yield lambda amount: None  # noqa: ARG005
        return
    columns = TextColumn(title), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(title, total=total)
    begun = time.monotonic()

    def advance(amount: float) -> None:
        bar.advance(task, amount)
        if show or time.monotonic() - begun > PATIENCE:
            bar.start()

    token = _inside.set(True)
    try:
        yield advance
    finally:
        _inside.reset(token)
        bar.stop()
