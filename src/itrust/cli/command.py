"""Commands as click takes them: plain help, the same in every terminal, and exit codes.

Whatever happens inside, users see one sentence and scripts a number: 0 done; 1 the gate is closed;
2 wrong input; 69 a cluster failed or memory did not suffice, so that the same may work another
time; 70 internal error; 74 standard output cannot be written to; 130 stopped by the user.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from itrust._core import ClusterError, DatasetError, InputError, checked_count, sentence, speaking
from itrust.cli.console import (
    SHELL,
    OutputLostError,
    answer,
    complain,
    of_the_start,
    results,
    width,
)
from itrust.cli.options import BY_KEY, OTHERS, TOLD, WATCH_START, Kind, Option

DONE, CLOSED, WRONG, UNAVAILABLE, INTERNAL, LOST, STOPPED = 0, 1, 2, 69, 70, 74, 130
PIPE_CLOSED = 141  # as a shell reports a reader that went away; 1 would mean the gate
ENDED = 128  # and the number of the signal, as a shell reports it
DEBUG = "ITRUST_DEBUG"
NO_MEMORY = (
    "there is not enough memory for this; let the process have more, read the rows as a stream "
    "(--stream), or ask for fewer covariates or draws"
)
NARROW = 60


def number_reader(option: Option) -> Callable[[object, object, Any], Any]:
    """What click calls to read a number, whole or not; anything else is one sentence."""
    key, most, is_whole = option.key, option.at_most, option.kind is Kind.COUNT

    def read(_: object, __: object, value: Any) -> Any:
        if value is None:
            return None
        try:
            # As text in any case: more digits than Python turns into text are of no use to anybody.
            number = int(str(value)) if is_whole else float(value)
            if not math.isfinite(number):
                raise OverflowError
        except (ValueError, OverflowError):
            problem = f"{{argument}} takes {option.kind.value}, not {{value}}"
            raise InputError(problem, argument=key, value=value) from None
        if most and number > most:
            problem = f"{{argument}} takes at most {most:,}, not {{value}}"
            raise InputError(problem, argument=key, value=value)
        return checked_count(number, key, at_least=option.at_least) if is_whole else number

    return read


def write_entries(formatter: click.HelpFormatter, records: list[tuple[str, str]]) -> None:
    """Options beside their words, or above them where there is little room."""
    if formatter.width >= NARROW:
        formatter.write_dl(records, col_max=26)
        return
    for option, words in records:
        formatter.write_text(option)
        with formatter.indentation():
            formatter.write_text(words)


def show_help(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Write the help and leave."""
    if asked and not ctx.resilient_parsing:
        answer(ctx.get_help())
        ctx.exit()


class Plain(click.Command):
    """A command with plain help: examples as they are, for none that is broken can be copied.

    `arguments` says of each, by what it is called, what it is.
    """

    def __init__(
        self, *args: Any, arguments: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.arguments = arguments or {}

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The flag that asks for help, whose output may be lost as any other."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = show_help
        return option

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option that may stand alone never takes the file for its value."""
        own = [option for option in self.params if isinstance(option, click.Option)]
        rows = [BY_KEY[option.name] for option in own if option.name in BY_KEY]
        alone = {row.flag: row for row in rows if row.bare}
        words = list(args)
        for k, word in enumerate(args):
            if word == "--":
                break
            if word in alone and not {*args[k + 1 : k + 2]} & {*alone[word].choices}:
                words[k] = f"{word}={alone[word].bare}"
        _, _, order = self.make_parser(ctx).parse_args(args=list(words))
        for option in own:
            times = sum(other is option for other in order)
            if times > 1 and not (option.multiple or option.is_flag):  # a value would be lost
                problem = "{argument} is given {count} times; give it once"
                raise InputError(problem, argument=str(option.opts[0]), count=times)
        return super().parse_args(ctx, words)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all of it, as wide as the terminal."""
        formatter.width = max(width(), 20)
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every group of options under its heading."""
        command = ctx.command_path.removeprefix("itrust ")
        required = [own.metavar for own in self.params if own.required]
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, words in self.arguments.items():
            told = f"{words}{'  [required]' if name in required else ''}"
            groups.setdefault("Arguments", []).append((name, told))
        for parameter in self.get_params(ctx):
            record, row = parameter.get_help_record(ctx), BY_KEY.get(parameter.name or "")
            if record is not None and isinstance(parameter, click.Option):
                panel = OTHERS if row is None else row.panel_in(command)
                groups.setdefault(panel, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                write_entries(formatter, records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write(self.epilog.strip("\n") + "\n")


class Guarded(Plain, click.Group):
    """A group of commands with plain help; turns exceptions into sentences and exit codes."""

    while_loading: object = None  # the handler of Ctrl-C until all modules are there

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, no sentence cut short, then the options."""
        with formatter.section("Commands"):
            known = [(name, str(self.commands[name].help)) for name in self.list_commands(ctx)]
            write_entries(formatter, known)
        super().format_options(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands in the order in which they were added."""
        return list(self.commands)

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """Run a command and leave with its code."""
        settings["standalone_mode"] = False
        sys.exit(self._code(*args, **settings))

    def invoke(self, ctx: click.Context) -> Any:
        """Run what was asked for, unless nobody could be told."""
        results()
        with _ending(), speaking(SHELL):
            return super().invoke(ctx)

    def _code(self, *args: Any, **settings: Any) -> int:
        try:
            code = super().main(*args, **settings)
        except SystemExit as leaving:  # told to end, or the shell asked what could follow
            return int(leaving.code or 0)
        except (Exception, KeyboardInterrupt) as error:  # nobody outside may see a traceback
            code, problem = _told(error)
            if problem:
                complain(f"itrust: {problem}")
        return code if isinstance(code, int) else DONE


@contextmanager
def _ending() -> Iterator[None]:
    """Let who is told to end remove temporary files first."""
    names = (name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
    numbers = [getattr(signal, name) for name in names]
    ends = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ends:
        signal.signal(number, lambda number, _: sys.exit(ENDED + number))
    try:
        yield
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)


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
        case OutputLostError():
            problem = f"standard output cannot be written to: {error}"
            return (LOST, problem) if str(error) else (PIPE_CLOSED, "")  # as of `| head`
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
        if of_the_start(key):
            command = f"itrust {WATCH_START}"
            words = f"{problem.option_name} is an option of '{command}' alone"
    return f"{words}{' See' if words.endswith('?') else '; see'} '{command} --help'"


def lacks_memory(error: BaseException) -> bool:
    """Whether there was not enough memory, for rows or for a library that had to be loaded."""
    unmapped = isinstance(error, ImportError) and "failed to map" in str(error)
    return unmapped or isinstance(error, MemoryError)
