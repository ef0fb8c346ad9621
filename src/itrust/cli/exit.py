"""Exit codes: whatever happens inside, users see one sentence and scripts a number.

0 done; 1 the gate is closed; 2 wrong input; 69 a cluster failed or memory did not suffice, so that
the same may work another time; 70 internal error; 74 standard output cannot be written to; 130
stopped by the user.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any, NoReturn

import click

from itrust._core import ClusterError, DatasetError, InputError, sentence, speaking
from itrust.cli.console import (
    SHELL,
    OutputLostError,
    ReaderGoneError,
    complain,
    take_standard_streams,
)
from itrust.cli.help import PlainGroup
from itrust.cli.options import TOLD, WATCH_START, is_of_the_start

DONE, CLOSED, WRONG, UNAVAILABLE, INTERNAL, LOST, STOPPED = 0, 1, 2, 69, 70, 74, 130
PIPE_CLOSED = 141  # as a shell reports a reader that went away; 1 would mean the gate
ENDED = 128  # and the number of the signal, as a shell reports it
DEBUG = "ITRUST_DEBUG"
NO_MEMORY = (
    "there is not enough memory for this; let the process have more, read the rows as a stream "
    "(--stream), or ask for fewer covariates or draws"
)


def loaded(while_loading: object) -> None:
    """Let Ctrl-C stop the work in an orderly way, now that all modules are there.

    Until then the handler of `itrust.__main__`, if it was set, ends the process at once.
    """
    if while_loading is not None and signal.getsignal(signal.SIGINT) is while_loading:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def nothing_collected() -> Iterator[None]:
    """No garbage is looked for: loading leaves little, and looking takes a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load(*modules: str) -> None:
    """Load modules; Ctrl-C waits until they are there, as half-loaded ones print tracebacks."""
    requests: list[int] = []
    waits = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with _handled(requests.append, ["SIGINT"] if waits else []), nothing_collected():
        for name in modules:
            import_module(name)
    if requests:
        raise KeyboardInterrupt


def _end(number: int) -> NoReturn:
    raise SystemExit(ENDED + number)


@contextmanager
def _handled(handle: Any, names: Sequence[str]) -> Iterator[None]:
    """Hand signals to a function of their number meanwhile, as far as a thread may."""
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if current_thread() is main_thread()}
    for number in before:
        signal.signal(number, lambda number, _: handle(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Guarded(PlainGroup):
    """The group of commands; turns exceptions into sentences and exit codes."""

    while_loading: object = None  # the handler of Ctrl-C until all modules are there
    owns_process = False  # and with it the standard streams

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *others: Any,
        **settings: Any,
    ) -> NoReturn:
        """Run a command and leave with its code."""
        settings["standalone_mode"] = False
        code = self._code(args, prog_name, *others, **settings)
        with suppress(OutputLostError, ReaderGoneError):  # told, or an error was told before it
            sys.stdout.flush()
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run what was asked for; who is told to end removes temporary files first."""
        ends = [
            name
            for name in ("SIGTERM", "SIGHUP")
            if signal.getsignal(getattr(signal, name, signal.SIGINT)) is signal.SIG_DFL
        ]
        with _handled(_end, ends), speaking(SHELL):
            return super().invoke(ctx)

    def _code(self, *args: Any, **settings: Any) -> int:
        try:
            if self.owns_process:
                take_standard_streams()
            code = super().main(*args, **settings)
            sys.stdout.flush()  # the interpreter's own failure would be a traceback
        except SystemExit as leaving:  # told to end, or the shell asked what could follow
            return int(leaving.code or 0)
        except (Exception, KeyboardInterrupt) as error:  # nobody outside may see a traceback
            code, problem = _told(error)
            if problem:
                complain(f"itrust: {problem}")
        return code if isinstance(code, int) else DONE


def _told(error: BaseException) -> tuple[int, str]:
    """The exit code of an error, and its sentence."""
    match error:
        case click.ClickException():
            return WRONG, _usage(error)
        case InputError():
            return WRONG, sentence(error, SHELL)
        case DatasetError():
            return WRONG, str(error)
        case ClusterError():
            return UNAVAILABLE, str(error)
        case KeyboardInterrupt() | click.Abort():
            return STOPPED, "stopped"
        case ReaderGoneError():  # as `| head` does
            return PIPE_CLOSED, ""
        case OutputLostError():
            files = ", ".join(map(str, error.files))
            written = f"; these files are written: {files}" if files else ""
            return LOST, f"standard output cannot be written to: {error.reason}{written}"
    if lacks_memory(error):
        return UNAVAILABLE, NO_MEMORY
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    return INTERNAL, (
        f"internal error ({type(error).__name__}: {error}); please open an issue with the command, "
        f"what 'itrust doctor' prints, and the traceback that {DEBUG}=1 shows"
    )


def _usage(problem: click.ClickException) -> str:
    context = getattr(problem, "ctx", None)
    command = context.command_path if context is not None else "itrust"
    words = " ".join(problem.format_message().split()).rstrip(".")
    if isinstance(problem, click.NoSuchOption) and command.endswith(TOLD):
        key = problem.option_name.removeprefix("--").replace("-", "_")
        if is_of_the_start(key):
            command = f"itrust {WATCH_START}"
            words = f"{problem.option_name} is an option of '{command}' alone"
    return f"{words}{' See' if words.endswith('?') else '; see'} '{command} --help'"


def lacks_memory(error: BaseException) -> bool:
    """Whether there was not enough memory, for rows or for a library that had to be loaded."""
    unmapped = isinstance(error, ImportError) and "failed to map" in str(error)
    return unmapped or isinstance(error, MemoryError)
