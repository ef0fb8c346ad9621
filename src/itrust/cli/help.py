"""Options as click takes them, and help as plain text in groups, the same in every terminal."""

from __future__ import annotations

import math
import os
from typing import Any

import click

from itrust._core import InputError, checked_choice, closest
from itrust.cli.console import width
from itrust.cli.options import Kind, Option

NARROW = 60


class NumberType(click.ParamType):  # type: ignore[type-arg]  # a plain class before click 8.2
    """A number, whole or not; anything else is one sentence."""

    def __init__(self, option: Option) -> None:
        self.option, self.name = option, option.kind.value

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The number that a text holds."""
        most, problem = self.option.at_most, ""
        number: float
        try:
            # As text in any case: more digits than Python turns into text are of no use to anybody.
            number = int(str(value)) if self.option.kind is Kind.COUNT else float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if not abs(number) < math.inf:
            problem = f"takes {self.name}"
        elif most and number > most:
            problem = f"takes at most {most:,}"
        if problem:
            problem = f"{{argument}} {problem}, not {{value}}"
            raise InputError(problem, argument=self.option.key, value=value)
        return number


class PlainOption(click.Option):
    """An option that stands under a heading."""

    def __init__(self, *args: Any, panel: str = "Options", bare: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.panel, self.bare = panel, bare


class PlainArgument(click.Argument):
    """An argument with words of its own."""

    panel = "Arguments"

    def __init__(self, *args: Any, help: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002
        """Its name and its words, as options have them."""
        return str(self.metavar), f"{self.help}{'  [required]' if self.required else ''}"


def write_entries(formatter: click.HelpFormatter, records: list[tuple[str, str]]) -> None:
    """Options beside their words, or above them where there is little room."""
    if formatter.width >= NARROW:
        formatter.write_dl(records, col_max=26)
        return
    for option, words in records:
        formatter.write_text(option)
        with formatter.indentation():
            formatter.write_text(words)


class Plain(click.Command):
    """A command with plain help: examples as they are, for none that is broken can be copied."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option that may stand alone never takes the file for its value."""
        own = [option for option in self.params if isinstance(option, PlainOption)]
        alone = {flag: option for option in own if option.bare for flag in option.opts}
        words = list(args)
        for k, word in enumerate(args):
            if word == "--":
                break
            if word in alone and not _chooses(alone[word], *args[k + 1 : k + 2]):
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
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(parameter, "panel", "Options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                write_entries(formatter, records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write(self.epilog.strip("\n") + "\n")


def _chooses(option: click.Parameter, word: str = "-") -> bool:
    """Whether a word is one of an option's choices; refuses one that is nearly, and no file."""
    choices = tuple(getattr(option.type, "choices", ()))
    is_typed = not word.startswith("-") and closest(word, choices) is not None
    if is_typed and not os.path.exists(word):
        checked_choice(word, str(option.name), choices)
    return word in choices


class PlainGroup(Plain, click.Group):
    """Several commands with plain help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, no sentence cut short, then the options."""
        with formatter.section("Commands"):
            known = [(name, str(self.commands[name].help)) for name in self.list_commands(ctx)]
            write_entries(formatter, known)
        super().format_options(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands in the order in which they were added."""
        return list(self.commands)
