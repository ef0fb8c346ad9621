"""Help as plain text in groups: the same in a terminal, a narrow one and a pipe."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from itrust.cli.console import width

NARROW = 60


def write_entries(formatter: Any, records: list[tuple[str, str]]) -> None:
    """Options beside their words, or above them where there is little room."""
    if formatter.width >= NARROW:
        formatter.write_dl(records, col_max=26)
        return
    for option, words in records:
        formatter.write_text(option)
        with formatter.indentation():
            formatter.write_text(words)


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Every group of options, named by `rich_help_panel`, under its heading."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            name, _, _ = record[0].partition(" <")  # no Python types
            panel = getattr(parameter, "rich_help_panel", None)
            default = "Arguments" if parameter.param_type_name == "argument" else "Options"
            groups.setdefault(panel or default, []).append((name, record[1]))
    for title, records in groups.items():
        with formatter.section(title):
            write_entries(formatter, records)


def write_examples(text: str | None, formatter: Any) -> None:
    """Examples as they are: a command that is broken up cannot be copied."""
    if text:
        formatter.write_paragraph()
        formatter.write(text.strip("\n") + "\n")


class PlainCommand(TyperCommand):
    """A command with plain help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write all of it, as wide as the terminal."""
        formatter.width = max(width(), 20)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options in groups."""
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the examples."""
        write_examples(self.epilog, formatter)


class PlainGroup(TyperGroup):
    """Several commands with plain help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write all of it, as wide as the terminal."""
        formatter.width = max(width(), 20)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, no sentence cut short, then the options."""
        known = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            write_entries(formatter, [(name, str(found.help)) for name, found in known if found])
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the examples."""
        write_examples(self.epilog, formatter)
