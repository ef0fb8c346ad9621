"""What goes wrong: errors that carry values, and the one function that makes a sentence of them.

An `InputError` knows which argument, row, column and value it is about, and what would cure it.
Whoever knows more adds it (`error.at(file=..., row=...)`); nobody reads a finished sentence again.
The words depend on the door: `prob` and `missing='drop'` in Python are `--prob` and
`--missing drop` in the shell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, Self

from itrust._core.text import shown

FIELDS = ("argument", "column", "row", "value", "count", "file")


class Setting(NamedTuple):
    """An argument with a value, named in a hint: `missing='drop'`, or `--missing drop`."""

    name: str
    value: object = None


class Door(Protocol):
    """How the things that an error is about are called where the user stands."""

    def argument(self, name: str) -> str:
        """An argument of a function, or an option of the command."""

    def setting(self, setting: Setting) -> str:
        """An argument with a value."""

    def row(self, number: int, file: str | None) -> str:
        """A row, counted from 0 within its file."""


class PythonDoor:
    """Names as Python has them."""

    def argument(self, name: str) -> str:
        """The argument itself."""
        return name

    def setting(self, setting: Setting) -> str:
        """As it is typed: `missing='drop'`; without a value, `cluster=`."""
        return f"{setting.name}=" + ("" if setting.value is None else repr(setting.value))

    def row(self, number: int, file: str | None) -> str:
        """The row counted from 0, and the file if there is one."""
        return f"row {number}" + (f" of {file}" if file else "")


PYTHON = PythonDoor()


class InputError(ValueError):
    """The data or an argument is wrong; the message says what, where and how to mend it.

    Parameters
    ----------
    problem : str
        What is wrong. `{argument}`, `{column}`, `{row}`, `{value}`, `{count}` and `{file}` stand
        for the fields, in the words of the door.
    argument : str, optional
        The argument it came in by.
    column : str, optional
        Name of the column.
    row : int, optional
        Number of the row, from 0.
    value : object, optional
        What was found.
    count : int, optional
        How many rows have it.
    file : str, optional
        The file that the row stands in.
    hint : str, optional
        What would mend it; `{}` stands for the settings, one after the other.
    settings : sequence of Setting, optional
        Those that the hint names.
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | None = None,
        column: str | None = None,
        row: int | None = None,
        value: object = None,
        count: int | None = None,
        file: str | None = None,
        hint: str | None = None,
        settings: Iterable[Setting] = (),
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.argument, self.column, self.row = argument, column, row
        self.value, self.count, self.file = value, count, file
        self.hint, self.settings = hint, tuple(settings)

    @property
    def fields(self) -> dict[str, Any]:
        """What the error is about, by name."""
        return {name: getattr(self, name) for name in FIELDS}

    def at(self, **fields: Any) -> Self:
        """The same error with more fields known."""
        for name, value in fields.items():
            setattr(self, name, value)
        return self

    def __str__(self) -> str:
        return sentence(self)


class DatasetError(RuntimeError):
    """A data set could not be read or downloaded."""


class AssumptionWarning(UserWarning):
    """The data contradict an assumption that the exact p-value rests on."""


class ApproximationWarning(UserWarning):
    """A low-rank kernel is farther from the true one than was asked for."""


for _public in (InputError, DatasetError, AssumptionWarning, ApproximationWarning):
    _public.__module__ = "itrust"  # where users find them, in tracebacks too


def sentence(error: InputError, door: Door = PYTHON) -> str:
    """An error in the words of a door.

    >>> sentence(InputError("{argument} must lie in [0, 1]; {row} has {value}",
    ...                     argument="prob", row=17, value=1.2, hint="are these logits?"))
    'prob must lie in [0, 1]; row 17 has 1.2 (are these logits?)'
    """
    named = any(getattr(error, name) is not None for name in FIELDS)
    told = error.problem
    if named:
        words = {
            "argument": door.argument(error.argument) if error.argument is not None else "",
            "column": shown(error.column),
            "row": door.row(error.row, error.file) if error.row is not None else "",
            "value": shown(error.value),
            "count": "" if error.count is None else f"{error.count:,}",
            "file": error.file or "",
        }
        told = told.format(**words)
    if error.hint is None:
        return told
    cure = error.hint
    if error.settings:
        cure = cure.format(*(door.setting(setting) for setting in error.settings))
    return f"{told}; {cure}" if error.settings else f"{told} ({cure})"
