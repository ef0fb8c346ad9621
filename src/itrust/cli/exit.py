"""Exit codes: whatever happens inside, users see one sentence and scripts a number.

0 done; 1 the gate is closed; 2 wrong input; 70 a fault of ours; 130 stopped by the user.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import typer

from itrust._core import DatasetError, InputError
from itrust.cli.console import complain
from itrust.cli.help import PlainGroup

DONE, CLOSED, WRONG, FAULT, STOPPED = 0, 1, 2, 70, 130
PIPE_CLOSED = 141  # as a shell reports a reader that went away; 1 would mean the gate
DEBUG = "ITRUST_DEBUG"
# Whatever click raises about options: typer exports only its children.
UsageProblem: Any = typer.BadParameter.__mro__[2]
ARGUMENTS = re.compile(
    r"""\b(positive|missing|weights|cluster|alpha|draws|tolerance)=('[^']*'|"[^"]*"|\w*)"""
)
NO_NUMBER = re.compile(r"Invalid value for '(--[\w-]+)': Input should be a valid (\w+).*")
NAMED = re.compile(r"^(alpha|draws|tolerance)(?= must)|`(on)`")
ROW = re.compile(r"\brow \d")


class Guarded(PlainGroup):
    """The group of commands; turns exceptions into sentences and exit codes."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *others: Any,
        **settings: Any,
    ) -> NoReturn:
        """Run a command and leave with its code."""
        settings["standalone_mode"] = False
        sys.exit(self._code(args, prog_name, *others, **settings))

    def _code(self, *args: Any, **settings: Any) -> int:
        try:
            found = super().main(*args, **settings)
            sys.stdout.flush()
        except UsageProblem as problem:
            return _usage(problem)
        except (InputError, DatasetError) as error:
            complain(f"itrust: {in_options(str(error))}")
            return WRONG
        except (KeyboardInterrupt, typer.Abort):
            return _stopped()
        except BrokenPipeError:
            return _silenced()
        except SystemExit as leaving:  # typer leaves by itself when a pipe is closed
            return _silenced() if _pipe_closed(leaving) else int(leaving.code or 0)
        except Exception as error:  # the last door: nobody outside may see a traceback
            return _fault(error)
        code = found if isinstance(found, int) else DONE
        return _stopped() if code == STOPPED else code


def in_options(message: str) -> str:
    """A sentence for Python users as one for the command line.

    Values are quoted for the shell where it would take them for something else.

    >>> in_options("say which value counts as 1 with positive='yes' or positive='>50K'")
    "say which value counts as 1 with --positive yes or --positive '>50K'"
    """
    said = ARGUMENTS.sub(lambda found: f"--{found[1]} {_for_shell(found[2])}".rstrip(), message)
    said = NAMED.sub(lambda found: f"--{found[1] or found[2]}", said)
    counted = " (rows count from 0, after the header)" if ROW.search(said) else ""
    first, *pointer = said.split("\n")
    return "\n".join([first + counted if not pointer else first, *pointer])


def _wanted(found: re.Match[str]) -> str:
    kind = "a whole number" if found[2] == "integer" else f"a {found[2]}"
    return f"{found[1]} takes {kind}"


def _for_shell(value: str) -> str:
    text = value[1:-1] if value[:1] in {"'", '"'} else value
    return shlex.quote(text) if text else ""


def _usage(problem: Any) -> int:
    context = getattr(problem, "ctx", None)
    command = context.command_path if context is not None else "itrust"
    said = problem.format_message().rstrip()
    if type(problem).__name__ == "NoArgsIsHelpError":
        complain("itrust: a command is needed, such as 'itrust audit FILE'; see 'itrust --help'")
        return WRONG
    said = " ".join(said.split()).rstrip(".")
    said = NO_NUMBER.sub(_wanted, said)
    joint = " See" if said.endswith("?") else "; see"
    complain(f"itrust: {said}{joint} '{command} --help'")
    return WRONG


def _stopped() -> int:
    complain("itrust: stopped")
    return STOPPED


def _pipe_closed(leaving: SystemExit) -> bool:
    cause = leaving.__context__
    return isinstance(cause, OSError) and cause.errno == errno.EPIPE


def _silenced() -> int:
    """The reader went away (`| head`): say nothing, and let the interpreter flush nothing."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return PIPE_CLOSED


def _fault(error: Exception) -> int:
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    kind = type(error).__name__
    complain(
        f"itrust: a fault of ours ({kind}: {error}); please open an issue with the command, what "
        f"'itrust doctor' prints, and the traceback that {DEBUG}=1 shows"
    )
    return FAULT
