"""Ctrl-C and requests to end wait while files change places, and none is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from typing import Any, Self

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupts:
    """Signals wait, but for the work within `allowed`, which the first of them may end.

    Those that end the process without Python's knowing, or that are ignored, stay as they are.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, Any], Any]] = {}
        self._waiting: list[int] = []
        self._allowed = False

    def __enter__(self) -> Self:
        if current_thread() is main_thread():
            for number in (getattr(signal, name) for name in NAMES if hasattr(signal, name)):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._come)
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as last:  # does all of it, also where a signal comes between and raises
            last.callback(self._deliver)
            for number, handler in self._before.items():
                last.callback(signal.signal, number, handler)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let a signal end the work, also one that came before."""
        self._allowed = True
        try:
            self._deliver()
            yield
        finally:
            self._allowed = False

    def _come(self, number: int, frame: Any) -> None:
        if not self._allowed:
            self._waiting.append(number)
            return
        self._allowed = False  # until all is cleaned up
        self._before[number](number, frame)
        self._allowed = True  # it was none that ends the work

    def _deliver(self) -> None:
        with ExitStack() as last:  # calls all handlers, the first signal's first, if one raises too
            while self._waiting:
                number = self._waiting.pop()
                last.callback(self._before[number], number, None)
