"""Exit codes: whatever happens inside, users see one sentence and scripts a number.

0 done; 1 the gate is closed; 2 wrong input; 69 a cluster failed or memory did not suffice, so that
the same may work another time; 70 internal error; 74 standard output cannot be written to; 130
stopped by the user.
"""

from __future__ import annotations

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
from itrust.cli.console import complain
from itrust.cli.door import SHELL
from itrust.cli.help import PlainGroup
from itrust.cli.loading import nothing_collected
from itrust.cli.options import TOLD, WATCH_START, is_of_the_start
from itrust.cli.streams import OutputLostError, ReaderGoneError, take_standard_streams

DONE, CLOSED, WRONG, UNAVAILABLE, INTERNAL, LOST, STOPPED = 0, 1, 2, 69, 70, 74, 130
PIPE_CLOSED = 141  # as a shell reports a reader that went away; 1 would mean the gate
ENDED = 128  # and the number of the signal, as a shell reports it
DEBUG = "ITRUST_DEBUG"
NO_MEMORY = (
    "itrust: there is not enough memory for this; let the process have more, read the rows as a "
    "stream (--stream), or ask for fewer covariates or draws"
)


def loaded(while_loading: object) -> None:
    """Let Ctrl-C stop the work in an orderly way, now that all modules are there.

    Until then the handler of `itrust.__main__`, if it was set, ends the process at once.
    """
    if while_loading is not None and signal.getsignal(signal.SIGINT) is while_loading:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def load(*modules: str) -> None:
    """Load modules; Ctrl-C waits until they are there, as half-loaded ones print tracebacks."""
    with _interrupts_wait(), nothing_collected():
        for name in modules:
            import_module(name)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler or current_thread() is not main_thread():
        yield
        return
    asked: list[object] = []
    signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if asked:
        raise KeyboardInterrupt


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let a process that is told to end remove its temporary files first."""
    if current_thread() is not main_thread():
        yield
        return
    known = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    taken = [one for one in known if one and signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, _end)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(ENDED + number)


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
        """Run what was asked for."""
        with _ended_in_order(), speaking(SHELL):
            return super().invoke(ctx)

    def _code(self, *args: Any, **settings: Any) -> int:
        try:
            if self.owns_process:
                take_standard_streams()
            found = super().main(*args, **settings)
            sys.stdout.flush()  # the interpreter's own failure would be a traceback
        except click.ClickException as problem:
            return _usage(problem)
        except InputError as error:
            complain(f"itrust: {sentence(error, SHELL)}")
            return WRONG
        except DatasetError as error:
            complain(f"itrust: {error}")
            return WRONG
        except ClusterError as error:
            complain(f"itrust: {error}")
            return UNAVAILABLE
        except (KeyboardInterrupt, click.Abort):
            return _stopped()
        except ReaderGoneError:  # as `| head` does
            return PIPE_CLOSED
        except OutputLostError as error:
            return _lost(error)
        except SystemExit as leaving:  # told to end, or the shell asked what could follow
            return int(leaving.code or 0)
        except Exception as error:  # the last door: nobody outside may see a traceback
            return _without_memory() if lacks_memory(error) else _internal(error)
        code = found if isinstance(found, int) else DONE
        return _stopped() if code == STOPPED else code


def _usage(problem: click.ClickException) -> int:
    context = getattr(problem, "ctx", None)
    command = context.command_path if context is not None else "itrust"
    said = " ".join(problem.format_message().split()).rstrip(".")
    if isinstance(problem, click.NoSuchOption) and command.endswith(TOLD):
        key = problem.option_name.removeprefix("--").replace("-", "_")
        if is_of_the_start(key):
            command = f"itrust {WATCH_START}"
            said = f"{problem.option_name} is an option of '{command}' alone"
    joint = " See" if said.endswith("?") else "; see"
    complain(f"itrust: {said}{joint} '{command} --help'")
    return WRONG


def _stopped() -> int:
    complain("itrust: stopped")
    return STOPPED


def _lost(error: OutputLostError) -> int:
    there = f"; these files are written: {', '.join(map(str, error.files))}" if error.files else ""
    complain(f"itrust: standard output cannot be written to: {error.reason}{there}")
    return LOST


def lacks_memory(error: Exception) -> bool:
    """Whether there was not enough memory, for rows or for a library that had to be loaded."""
    unmapped = isinstance(error, ImportError) and "failed to map" in str(error)
    return unmapped or isinstance(error, MemoryError)


def _without_memory() -> int:
    complain(NO_MEMORY)
    return UNAVAILABLE


def _internal(error: Exception) -> int:
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    kind = type(error).__name__
    complain(
        f"itrust: internal error ({kind}: {error}); please open an issue with the command, what "
        f"'itrust doctor' prints, and the traceback that {DEBUG}=1 shows"
    )
    return INTERNAL
