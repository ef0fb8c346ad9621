"""How far long work has come: one line in a terminal, plain lines elsewhere if they are wanted.

Work has stages of known weight. Work inside other work shows nothing of its own; it moves the
stage that it is a part of.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

from itrust._core.text import cut, printable

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 1.0  # seconds of silence before a line appears in a terminal
LINES_PATIENCE = 5.0  # and before lines are written elsewhere
MIN_SHARE, MIN_SECONDS = 0.05, 2.0  # before so much is done, nothing is said of the time left
WIDE = 60  # columns of a terminal that has room for a bar
BAR_WIDTH, LEFT_WIDTH = 12, 17


class Where(Enum):
    """Where progress is shown unless somebody asks for it."""

    TERMINAL = "terminal"
    ANYWHERE = "anywhere"
    NOWHERE = "nowhere"


Advance = Callable[[float], None]  # told how much of the work has been done since the last call
Stage = TypeVar("Stage", bound=Hashable)
Begun = TypeVar("Begun", bound=Hashable, contravariant=True)


class Begin(Protocol[Begun]):
    """Told which stage begins, and how much work it is; work inside it counts 1."""

    def __call__(self, stage: Begun, parts: float = 1.0) -> Advance:
        """Begin a stage; what it gives is told how much of it has been done."""


_where = ContextVar("where progress is shown", default=Where.TERMINAL)
_above: ContextVar[Advance | None] = ContextVar("the work this is a part of", default=None)


@contextmanager
def progress_shown(where: Where) -> Iterator[None]:
    """Choose where work shows its progress, if it is not asked for."""
    token = _where.set(where)
    try:
        yield
    finally:
        _where.reset(token)


@contextmanager
def progress_bar(title: str, total: float, show: bool | None = None) -> Iterator[Advance]:
    """Show the share of `total` done on standard error."""
    with progress_stages({title: 1.0}, show=show) as begin:
        yield begin(title, total)


@contextmanager
def progress_stages(
    stages: Mapping[Stage, float],
    words: Callable[[Stage], str] = str,
    show: bool | None = None,
) -> Iterator[Begin[Stage]]:
    """Show which stage is at work, the share done and the time left, on standard error."""
    meter, display = Meter(list(stages.values())), _display(show)

    def begin(stage: Stage, parts: float = 1.0) -> Advance:
        def advance(amount: float) -> None:
            meter.share = min(meter.share + amount / parts, 1.0) if parts else 1.0
            display.update(meter, lambda: words(stage))

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
        display.close(meter)


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
        if done < MIN_SHARE or elapsed < MIN_SECONDS:
            return ""
        return time_left(elapsed * (1 - done) / done)

    def heading(self, title: str) -> str:
        """The stage, and its number if there are several."""
        stages = len(self.weights)
        return printable(f"{self.number + 1} of {stages}: {title}" if stages > 1 else title)


def time_left(seconds: float) -> str:
    """How long it will take, as exactly as it can be known.

    >>> time_left(3.2), time_left(48.0), time_left(130.0), time_left(9000.0)
    ('about 4 s left', 'about 50 s left', 'about 3 min left', 'about 3 h left')
    """
    unit, size, step = "h", 3600, 3600
    if seconds <= 90 * 60:
        unit, size, step = ("min", 60, 60) if seconds > 60 else ("s", 1, 10 if seconds > 10 else 1)
    return f"about {max(math.ceil(seconds / step), 1) * step // size} {unit} left"


class _Display:
    """Shows nothing."""

    def update(self, meter: Meter, title: Callable[[], str]) -> None:
        """Tell how far the work is."""

    def close(self, meter: Meter) -> None:
        """Nothing comes any more."""


class _Inner(_Display):
    """Moves the work that this is a part of, by 1 in all."""

    def __init__(self, above: Advance) -> None:
        self.above, self.moved = above, 0.0

    def update(self, meter: Meter, title: Callable[[], str]) -> None:  # noqa: ARG002
        self._move(meter.done)

    def close(self, meter: Meter) -> None:
        if meter.share == 1.0:  # it has come to its end, whatever it counted
            self._move(1.0)

    def _move(self, done: float) -> None:
        if done > self.moved:
            self.above(done - self.moved)
            self.moved = done


class _Line(_Display):
    """One line of a terminal, which goes away at the end."""

    def __init__(self, console: Console, patience: float) -> None:
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
        self.room = max(console.width - (4 + LEFT_WIDTH + 2) - (BAR_WIDTH + 1) * wide - 1, 8)
        self.bar = Progress(*columns, console=console, transient=True)
        self.task = self.bar.add_task("", total=1.0, left="")
        self.patience = patience

    def update(self, meter: Meter, title: Callable[[], str]) -> None:
        if meter.elapsed >= self.patience:
            heading = cut(meter.heading(title()), self.room)
            self.bar.update(self.task, description=heading, completed=meter.done, left=meter.left)
            self.bar.start()

    def close(self, meter: Meter) -> None:  # noqa: ARG002
        self.bar.stop()


class _Lines(_Display):
    """Plain lines, at most one for a stage."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.stages: set[int] = set()

    def update(self, meter: Meter, title: Callable[[], str]) -> None:
        if meter.number not in self.stages and meter.elapsed >= self.patience:
            self.stages.add(meter.number)
            left = f" ({meter.left})" if meter.left else ""
            print(f"itrust: {meter.heading(title())}{left}", file=sys.stderr, flush=True)


def _display(show: bool | None) -> _Display:
    above, where = _above.get(), _where.get()
    if show is False or where is Where.NOWHERE:
        return _Display()
    if above is not None:  # two lines would write over each other
        return _Inner(above)
    console = _console(bool(show))
    if console is not None:
        return _Line(console, 0.0 if show else PATIENCE)
    if sys.stderr is not None and (show or where is Where.ANYWHERE):  # else print() takes stdout
        return _Lines(0.0 if show else LINES_PATIENCE)
    return _Display()


def _console(show: bool) -> Console | None:
    """The terminal or the notebook, if there is one that can move a line."""
    if sys.stderr is None or not (show or sys.stderr.isatty()):
        return None
    from rich.console import Console  # slow to load

    console = Console(stderr=True)
    moves = console.is_terminal and not console.is_dumb_terminal
    return console if moves or console.is_jupyter else None
