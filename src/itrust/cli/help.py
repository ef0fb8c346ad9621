"""Help as plain text in groups: the same in a terminal, a narrow one and a pipe."""

from __future__ import annotations

import os
from typing import Any

import click

from itrust._core import InputError, checked_choice, closest
from itrust.cli.console import width

NARROW = 60


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
        alone = {
            flag: parameter
            for parameter in self.params
            if isinstance(parameter, PlainOption) and parameter.bare
            for flag in parameter.opts
        }
        told = list(args)
        for k, word in enumerate(args):
            if word == "--":
                break
            if word in alone and not _chooses(alone[word], args[k + 1 : k + 2]):
                _refuse_a_slip(alone[word], args[k + 1 : k + 2])
                told[k] = f"{word}={alone[word].bare}"
        self._refuse_repeated(ctx, told)
        return super().parse_args(ctx, told)

    def _refuse_repeated(self, ctx: click.Context, args: list[str]) -> None:
        """Raise on an option that is given twice, for one of its values would count for nothing."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in order:
            if isinstance(parameter, PlainOption) and not (parameter.multiple or parameter.is_flag):
                times = sum(other is parameter for other in order)
                if times > 1:
                    raise InputError(
                        "{argument} is given {count} times; give it once",
                        argument=str(parameter.opts[0]),
                        count=times,
                    )

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


def _chooses(option: PlainOption, following: list[str]) -> bool:
    """Whether the next word is one of the option's choices."""
    return isinstance(option.type, click.Choice) and any(
        word in option.type.choices for word in following
    )


def _refuse_a_slip(option: PlainOption, following: list[str]) -> None:
    """Refuse a word that is no file and nearly a choice."""
    for word in following:
        choices = tuple(getattr(option.type, "choices", ()))
        typed = not word.startswith("-") and closest(word, choices) is not None
        if typed and not os.path.exists(word):
            checked_choice(word, str(option.name), choices)


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
