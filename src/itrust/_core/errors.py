"""Errors that carry values, the function that makes sentences of them, checks of arguments.

Whoever knows more adds it (`error.at(...)`); nobody reads a finished sentence again. The words
depend on the door: `prob` and `missing='drop'` are `--prob` and `--missing drop` in the shell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, TypeVar

from itrust._core.text import closest, counted, did_you_mean, listed, shown

PLACE = re.compile(r"\{(\w*)\}")
COVARIATES = ("x", "on")  # arguments that bring several columns
MATRICES = ("replicate_weights",)  # so do these, and the argument is told as well
MAX_ALPHA = 0.5
ROUNDING = 1e-9

Choice = TypeVar("Choice", bound=str)
Value = TypeVar("Value")


class Subject(NamedTuple):
    """What a value belongs to: an argument, and its column where that has a name."""

    argument: str
    column: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """Both, as an `InputError` takes them."""
        return self._asdict()

    def error(self, problem: str, **fields: Any) -> InputError:
        """The error about it."""
        return InputError(problem, **fields, **self._asdict())


class Setting(NamedTuple):
    """An argument with a value (`...`: any; None: it is to be given), named in a cure."""

    name: str
    value: object = None


class Argument(NamedTuple):
    """An argument of a function, which is an option of the command."""

    name: str


class Row(NamedTuple):
    """A row, counted from 0, and the line of its file where that is known."""

    number: int
    line: int | None = None


class Code(NamedTuple):
    """Words of Python, and plain ones for everybody else."""

    python: str
    plain: str


class Door:
    """How the things that an error is about are called where the user stands: here, in Python."""

    def argument(self, name: str, column: str | None = None) -> str:  # noqa: ARG002
        """An argument of a function, or an option of the command; the column is its value."""
        return name

    def setting(self, setting: Setting) -> str:
        """An argument with a value, as it is typed: `missing='drop'`; without one, `cluster=`."""
        if setting.value is None:
            return f"{setting.name}="
        return f"{setting.name}={'...' if setting.value is ... else repr(setting.value)}"

    def row(self, row: Row) -> str:
        """A row, counted from 0."""
        return f"row {row.number}"

    def code(self, code: Code) -> str:
        """Words of Python, or plain ones."""
        return code.python


PYTHON = Door()
_SPEAKING: ContextVar[Door] = ContextVar("door", default=PYTHON)


@contextmanager
def set_meanwhile(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a variable of the context a value until the end."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def speaking(door: Door) -> AbstractContextManager[None]:
    """Let notes that name a cure use the words of a door."""
    return set_meanwhile(_SPEAKING, door)


def in_door_words(thing: Setting | Argument | Code) -> str:
    """A setting, an argument or code, as it is called where the user stands."""
    return _worded(thing, _SPEAKING.get())


class InputError(ValueError):
    """The data or an argument is wrong; the message says what, where and how to mend it.

    Parameters
    ----------
    problem : str
        What is wrong. Names in braces stand for the fields below and for `details`; `{subject}`
        for the covariate or else the argument, `{title}` for the column's bare name or else it.
    argument, column, file : str, optional
        What brought the value; the file opens the sentence, unless `{file}` says where it goes.
    row, count : int, optional
        Number of the row, from 0, and how many rows have it.
    value : object, optional
        What was found there.
    hint : str, optional
        What would mend it: `{}` stands for the settings in turn, `{settings}` for all of them.
    settings : iterable of Setting, Argument or Code, optional
        What the hint names.
    details : mapping of str to object, optional
        More words for the problem.
    **words : object
        The same by their names.

    Examples
    --------
    >>> error = InputError("{argument} must lie in [0, 1]; {row} has {value}",
    ...                    argument="prob", row=17, value=1.2)
    >>> print(error)
    prob must lie in [0, 1]; row 17 has 1.2
    >>> error.row, error.value
    (17, 1.2)
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
        settings: Iterable[Setting | Argument | Code] = (),
        details: Mapping[str, object] | None = None,
        **words: object,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.argument, self.column, self.row = argument, column, row
        self.value, self.count, self.file = value, count, file
        self.hint, self.settings, self.details = hint, tuple(settings), {**(details or {}), **words}
        self.line: int | None = None

    def at(self, **fields: Any) -> Self:
        """Make a new error that is the same but for some fields; this one stays as it is.

        Parameters
        ----------
        **fields : object
            The fields that are known now, by the names of the parameters of `InputError`.

        Returns
        -------
        InputError
            The error with these fields.
        """
        # Not copy(): libraries that pickle tracebacks register a way of copying that shares fields.
        known = type(self).__new__(type(self), *self.args)
        vars(known).update({**vars(self), **fields})
        return known.with_traceback(self.__traceback__)

    def renumbered(
        self,
        number: Callable[[int], int],
        line: Callable[[int], int | None] | None = None,
        file: str | None = None,
    ) -> Self:
        """Make a new error whose rows have other numbers; this one stays as it is.

        Parameters
        ----------
        number : callable
            From the number of a row in this error to the new one, from 0.
        line : callable, optional
            From the new number of a row to its line, None where that is not known.
        file : str, optional
            Name of the file, where the new numbers are of its rows.

        Returns
        -------
        InputError
            The same error with these rows.
        """

        def moved(value: object) -> object:
            if not isinstance(value, Row):
                return value
            new = number(value.number)
            return Row(new, None if line is None else line(new))

        fields = {} if file is None else {"file": file}
        error = self.at(details={k: moved(v) for k, v in self.details.items()}, **fields)
        place = None if self.row is None else moved(Row(self.row))
        if isinstance(place, Row):
            error.row, error.line = place
        return error

    def __str__(self) -> str:
        return sentence(self, PYTHON)


class DatasetError(RuntimeError):
    """A data set could not be read or downloaded."""


class ClusterError(RuntimeError):
    """A cluster could not do the work: its workers, its scheduler or the way to it are at fault.

    The same call may succeed on a cluster that is well, so this is no `InputError`.
    """


class AssumptionWarning(UserWarning):
    """The data contradict an assumption that the exact p-value rests on."""


class ApproximationWarning(UserWarning):
    """A low-rank kernel is farther from the true one than was asked for."""


for _public in (InputError, DatasetError, AssumptionWarning, ApproximationWarning):
    _public.__module__ = "itrust"  # where users find them, in tracebacks too
ClusterError.__module__ = "itrust.engines"


def sentence(error: InputError, door: Door | None = None) -> str:
    """An error in the words of a door, by default of the one where the user stands."""
    door = door or _SPEAKING.get()
    problem = _filled(error.problem, _words(error, door))
    if error.file is not None and "{file}" not in error.problem:
        problem = f"{error.file}: {problem}"
    if error.hint is None:
        return problem
    cures = [_worded(setting, door) for setting in error.settings]
    cure = _filled(error.hint, {"settings": " or ".join(cures)}, cures)
    if cure.startswith("("):
        return f"{problem} {cure}"
    return f"{problem}; {cure}" if cures else f"{problem} ({cure})"


def _filled(template: str, words: Mapping[str, str], in_order: Iterable[str] = ()) -> str:
    """A template with its names replaced in one go: braces in the words themselves stay."""
    following = iter(in_order)

    def word(match: re.Match[str]) -> str:
        name = match[1]
        return words.get(name, match[0]) if name else next(following, match[0])

    return PLACE.sub(word, template)


def _words(error: InputError, door: Door) -> dict[str, str]:
    """Everything that a problem can name, in the words of a door; only what is known."""
    words = {name: _worded(value, door) for name, value in error.details.items()}
    if error.argument is not None:
        words["argument"] = words["subject"] = door.argument(error.argument, error.column)
        words["title"] = words["argument"] if error.column is None else error.column
    if error.column is not None:
        words["column"] = shown(error.column)
        if error.argument in COVARIATES:
            words["subject"] = f"covariate {words['column']}"
        elif error.argument in MATRICES:
            words["subject"] = f"column {words['column']} of {door.argument(error.argument)}"
            words["title"] = words["subject"]
    if error.row is not None:
        words["row"] = door.row(Row(error.row, error.line))
    if error.count is not None:
        words["count"] = f"{error.count:,}"
    if error.file is not None:
        words["file"] = error.file
    if len(words) > len(error.details) or error.value is not None:
        words["value"] = shown(error.value)  # None is a value where the error has any field
    return words


def _worded(value: object, door: Door) -> str:
    match value:
        case Row():
            return door.row(value)
        case Setting():
            return door.setting(value)
        case Argument():
            return door.argument(value.name)
        case Code():
            return door.code(value)
        case int():
            return f"{value:,}"
    return str(value)


def checked_count(value: object, argument: str, *, at_least: int = 1) -> int:
    """Pass a whole number on; refuse anything else."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least:
        return int(value)
    problem = f"{{argument}} must be a whole number of at least {at_least}, not {{value}}"
    raise InputError(problem, argument=argument, value=value)


def checked_min_cell(min_cell: object) -> int | None:
    """Pass a number of rows on, or None where nothing is to be withheld."""
    return None if min_cell is None else checked_count(min_cell, "min_cell")


def checked_share(value: object, argument: str) -> float:
    """Pass a number between 0 and 1 on, ends excluded; refuse anything else."""
    return _checked(0 < _number(value) < 1, value, argument, "lie between 0 and 1")


def checked_alpha(alpha: object) -> float:
    """Pass an error that is allowed on; refuse what is none, or as much as a half."""
    allowed = checked_share(alpha, "alpha")
    if allowed >= MAX_ALPHA:
        raise InputError(
            "{argument} is the error that is allowed, such as 0.05, not {value}",
            argument="alpha",
            value=alpha,
        )
    return allowed


def checked_reach(draws: object, alpha: object) -> int:
    """Pass a number of draws on; refuse an alpha that so few draws cannot reach."""
    allowed, number = checked_alpha(alpha), checked_count(draws, "draws")
    smallest = 1 / (1 + number)
    if allowed < smallest - ROUNDING:
        raise InputError(
            "{argument} {alpha} cannot be reached with {draws}, whose smallest p-value is "
            "{smallest}; take at least {enough}",
            argument="alpha",
            value=alpha,
            alpha=f"{allowed:g}",
            draws=counted(number, "draw"),
            smallest=f"{smallest:.3g}",
            enough=math.ceil(1 / allowed) - 1,
        )
    return number


def checked_positive(value: object, argument: str) -> float:
    """Pass a finite number above 0 on; refuse anything else."""
    return _checked(0 < _number(value) < math.inf, value, argument, "be a number above 0")


def checked_finite(value: object, argument: str) -> float:
    """Pass a finite number on; refuse anything else."""
    return _checked(math.isfinite(_number(value)), value, argument, "be a finite number")


def place_of(name: object, known: Sequence[Any], problem: str, **fields: Any) -> int:
    """Give the place of a name among known ones; refuse another, and guess which was meant."""
    if name in known:
        return known.index(name)
    words = [str(other) for other in known]
    guess: dict[str, Any] = {"guess": did_you_mean(str(name), words) if words else "there are none"}
    raise InputError(problem, value=name, **guess | fields)


def checked_choice(value: object, argument: str, choices: Sequence[Choice]) -> Choice:
    """Pass one of some words on; refuse anything else."""
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    close = closest(value, choices) if isinstance(value, str) else None
    raise InputError(
        "{argument} must be one of {choices}, not {value}",
        argument=argument,
        value=value,
        hint=None if close is None else f"did you mean {close!r}?",
        choices=listed(choices),
    )


def _checked(passes: bool, value: Any, argument: str, must: str) -> float:
    if not passes:
        problem = f"{{argument}} must {must}, not {{value}}"
        raise InputError(problem, argument=argument, value=value)
    return float(value)


def _number(value: object) -> float:
    """The value as a number: NaN, which no comparison lets pass, for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf
