"""How errors speak in a shell: options instead of arguments, lines instead of row numbers."""

from __future__ import annotations

import shlex

from itrust._core import Code, Door, Row, Setting
from itrust.cli.options import BY_KEY

# Arguments of the package that have another name on the command line.
CALLED = {
    "x": "on",
    "y": "label",
    "p": "prob",
    "rng": "seed",
    "tasks": "task",
    "categories": "category",
    "numbers": "number",
}


class ShellDoor(Door):
    """Names as they are typed."""

    def argument(self, name: str, column: str | None = None) -> str:
        """The option, with the column of the file that it names; other arguments as they are.

        >>> SHELL.argument("prob", "p hat"), SHELL.argument("min_cell"), SHELL.argument("power")
        ("--prob 'p hat'", '--min-cell', 'power')
        """
        option = BY_KEY.get(CALLED.get(name, name))
        if option is None:
            return name
        return option.flag if column is None else f"{option.flag} {shlex.quote(column)}"

    def setting(self, setting: Setting) -> str:
        """The option with its value, quoted for the shell.

        >>> SHELL.setting(Setting("positive", ">50K")), SHELL.setting(Setting("cluster"))
        ("--positive '>50K'", '--cluster')
        >>> SHELL.setting(Setting("cluster", ["stratum", "psu"]))
        '--cluster stratum,psu'
        """
        flag = self.argument(setting.name)
        if setting.value is None:
            return flag
        option = BY_KEY.get(CALLED.get(setting.name, setting.name))
        if setting.value is ...:
            return f"{flag} {option.metavar if option else 'VALUE'}"
        value = setting.value
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        return f"{flag} {shlex.quote(text)}"

    def row(self, row: Row) -> str:
        """The line of a text file; in other files the row, counted from 1 in words.

        >>> SHELL.row(Row(16, line=18)), SHELL.row(Row(0)), SHELL.row(Row(1_011))
        ('line 18', 'the 1st row', 'the 1,012th row')
        """
        return f"the {_ordinal(row.number + 1)} row" if row.line is None else f"line {row.line:,}"

    def code(self, code: Code) -> str:
        """The plain words."""
        return code.plain


SHELL = ShellDoor()


def _ordinal(number: int) -> str:
    teen = 10 < number % 100 < 20
    return f"{number:,}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
