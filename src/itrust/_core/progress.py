"""How far long work has come: one line in a terminal, plain lines elsewhere if they are wanted.

Work has stages of known weight. Work inside other work shows nothing of its own; it moves the
stage that it is a part of.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from itrust._core.errors import set_meanwhile
from itrust._core.text import cut, printable

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 1.0  # seconds of silence before a line appears in a terminal
LINES_PATIENCE = 5.0  # and before lines are written elsewhere
MIN_SHARE, MIN_SECONDS = 0.05, 2.0  # before so much is done, nothing is said of the time left
WIDE = 60  # columns of a terminal that has room for a bar
BAR_WIDTH, LEFT_WIDTH = 12, 17


Advance = Callable[[float], None]  # told how much of the work has been done since the last call
Begin = Callable[..., Advance]  # told which stage begins, and how much work it is, else 1
Stage = TypeVar("Stage", bound=Hashable)
# Whether progress that nobody asks for is shown: anywhere, nowhere, or (None) in a terminal.
_unasked: ContextVar[bool | None] = ContextVar("where progress is shown", default=None)
_above: ContextVar[Advance | None] = ContextVar("the work this is a part of", default=None)


def progress_shown(anywhere: bool) -> AbstractContextManager[None]:
    """Show the progress of work anywhere, not in terminals alone, or nowhere."""
    return set_meanwhile(_unasked, anywhere)


@contextmanager
def progress_bar(title: str, total: float, show: bool | None = None) -> Iterator[Advance]:
    """Show the share of `total` done on standard error."""
    with progress_stages({title: 1.0}, show=show) as begin:
        yield begin(title, total)


@contextmanager
def progress_stages(
    stages: Mapping[Stage, float], words: Callable[[Stage], str] = str, show: bool | None = None
) -> Iterator[Begin]:
    """Show which stage is at work, the share done and the time left, on standard error."""
    meter, shown = Meter(list(stages.values())), _display(show)

    def begin(stage: Stage, parts: float = 1.0) -> Advance:
        def advance(amount: float) -> None:
            meter.share = min(meter.share + amount / parts, 1.0) if parts else 1.0
            shown(meter, lambda: words(stage))

        meter.number, meter.share = list(stages).index(stage), 0.0
        token.append(_above.set(advance))
        advance(0.0)
        return advance

    token = [_above.set(lambda amount: None)]  # noqa: ARG005
    try:
        yield begin
        meter.share = 1.0
    finally:
        _above.reset(token[0])
        shown(meter, None)


class Meter:
    """How much is done: stages of known weight, and a share of the one that is under way."""

    def __init__(self, weights: Sequence[float]) -> None:
        self.weights = weights
        self.number, self.share = 0, 0.0
        self.begun = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self.begun

    @property
    def done(self) -> float:
        """Share of all work."""
        before = sum(self.weights[: self.number])
        return (before + self.share * self.weights[self.number]) / sum(self.weights)

    @property
    def left(self) -> str:
        """How long the rest takes, if it goes as fast; nothing while little is done."""
        done, elapsed = self.done, self.elapsed
        is_early = done < MIN_SHARE or elapsed < MIN_SECONDS
        return "" if is_early else time_left(elapsed * (1 - done) / done)

    def heading(self, title: str) -> str:
        """The stage, and its number if there are several."""
        stages = len(self.weights)
        return printable(f"{self.number + 1} of {stages}: {title}" if stages > 1 else title)


def time_left(seconds: float) -> str:
    """How long it will take, as exactly as it can be known."""
    unit, size, step = "h", 3600, 3600
    if seconds <= 90 * 60:
        unit, size, step = ("min", 60, 60) if seconds > 60 else ("s", 1, 10 if seconds > 10 else 1)
    return f"about {max(math.ceil(seconds / step), 1) * step // size} {unit} left"


# Shows how far the work is; without a title, nothing comes any more.
Display = Callable[[Meter, Callable[[], str] | None], None]


def _inner(above: Advance) -> Display:
    """Move the work that this is a part of, by 1 in all."""
    moved = 0.0

    def show(meter: Meter, title: Callable[[], str] | None) -> None:
        nonlocal moved
        # At its end it has moved by 1, whatever it counted.
        done = 1.0 if title is None and meter.share == 1.0 else meter.done
        if done > moved:
            above(done - moved)
            moved = done

    return show


def _line(console: Console, patience: float) -> Display:
    """One line of a terminal, which goes away at the end."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    wide = console.width >= WIDE
    share, left = (Column(no_wrap=True, min_width=width) for width in (4, LEFT_WIDTH))
    columns = [
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        *([BarColumn(bar_width=BAR_WIDTH)] if wide else []),
        TaskProgressColumn(table_column=share),
        TextColumn("{task.fields[left]}", table_column=left),
    ]
    # What is done is cut, so that share and time are not; columns are one apart.
    room = max(console.width - (4 + LEFT_WIDTH + 2) - (BAR_WIDTH + 1) * wide - 1, 8)
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=1.0, left="")

    def show(meter: Meter, title: Callable[[], str] | None) -> None:
        if title is None:
            bar.stop()
        elif meter.elapsed >= patience:
            heading = cut(meter.heading(title()), room)
            bar.update(task, description=heading, completed=meter.done, left=meter.left)
            bar.start()

    return show


def _lines(patience: float) -> Display:
    """Plain lines, at most one for a stage."""
    stages: set[int] = set()

    def show(meter: Meter, title: Callable[[], str] | None) -> None:
        if title and meter.number not in stages and meter.elapsed >= patience:
            stages.add(meter.number)
            left = f" ({meter.left})" if meter.left else ""
            print(f"itrust: {meter.heading(title())}{left}", file=sys.stderr, flush=True)

    return show


def _display(show: bool | None) -> Display:
    above, unasked = _above.get(), _unasked.get()
    if show is not False and unasked is not False:
        if above is not None:  # two lines would write over each other
            return _inner(above)
        console = _console(bool(show))
        if console is not None:
            return _line(console, 0.0 if show else PATIENCE)
        if sys.stderr is not None and (show or unasked):  # else print: stdout
            return _lines(0.0 if show else LINES_PATIENCE)
    return lambda meter, title: None  # noqa: ARG005


def _console(show: bool) -> Console | None:
    """The terminal or the notebook, if there is one that can move a line."""
    if sys.stderr is None or not (show or sys.stderr.isatty()):
        return None
    from rich.console import Console  # slow to load

    console = Console(stderr=True)
    moves = console.is_terminal and not console.is_dumb_terminal
    return console if moves or console.is_jupyter else None
