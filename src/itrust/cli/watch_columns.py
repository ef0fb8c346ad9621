"""Batches are read as the reference was, whatever their own values look like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from itrust._core import Argument, InputError, Setting, speaking
from itrust.cli.columns import split_names
from itrust.cli.door import CALLED, ShellDoor
from itrust.cli.inputs import InputFiles
from itrust.cli.options import Options, is_of_the_start
from itrust.data import Delimited, known_format

TEXT, CODES, NUMBER = "text", "codes", "number"
LEAVE_OUT = Setting("missing", "drop")
ColumnKinds = Mapping[str, str]  # by covariate; others than these need no help


def kinds_of(rows: Any) -> dict[str, str]:
    """What the covariates of a reference are: categories of text or of codes, or numbers.

    Levels that value labels name are codes in the file.
    """
    found = {}
    for own in rows.columns:
        if own.is_category:
            is_text = not own.codes and all(isinstance(level, str) for level in own.levels)
            found[own.name] = TEXT if is_text else CODES
        elif own.kind == NUMBER:
            found[own.name] = NUMBER
    return found


def date_order(source: InputFiles) -> str | None:
    """Whether day or month comes first in the dates of text files, as far as one of them shows it.

    A batch of the first days of a month alone would not show it.
    """
    for path in source.files:
        kind = known_format(path, source.form)
        if isinstance(kind, Delimited) and (order := kind.dialect(path).order) is not None:
            return order
    return None


def are_kinds(found: Any) -> bool:
    """Whether something is what `kinds_of` gives."""
    return isinstance(found, dict) and all(own in (TEXT, CODES, NUMBER) for own in found.values())


def text_columns(kinds: ColumnKinds) -> tuple[str, ...]:
    """The columns of a text file whose cells are kept as they are written, such as 007."""
    return tuple(name for name, own in kinds.items() if own == TEXT)


def carried_over(kinds: ColumnKinds, asked: Options) -> dict[str, str]:
    """What the reference of another model takes over: categories that have no other use now.

    Numbers are looked at anew, since one that was declared is judged otherwise than one of few
    values.
    """
    used = {asked.label, *asked.prob, asked.weights, *asked.cluster}
    return {name: own for name, own in kinds.items() if own != NUMBER and name not in used}


def as_the_reference(source: InputFiles, asked: Options, kinds: ColumnKinds) -> Options:
    """The options of the start with what it found out: categories and numbers by name."""
    category, number = (split_names(source, key, asked.values[key]) for key in ("category", NUMBER))
    said = {*category, *number}
    more = {name: own for name, own in kinds.items() if name in source.columns and name not in said}
    numbers = [name for name, own in more.items() if own == NUMBER]
    settled = {
        "category": (*category, *(name for name in more if name not in numbers)),
        "number": (*number, *numbers),
    }
    return replace(asked, values={**asked.values, **settled})


def with_the_levels_of_the_reference(rows: Any, kinds: ColumnKinds) -> Any:
    """Levels written as those of the reference are: the text 7, or the code 7."""
    columns = tuple(
        replace(own, levels=tuple(_level(level, kinds[own.name]) for level in own.levels))
        if own.is_category and own.name in kinds and not own.codes
        else own
        for own in rows.columns
    )
    return rows.with_columns(columns)


def _level(level: Any, kind: str) -> Any:
    if kind == TEXT:
        return level if isinstance(level, str) else str(level)
    for number in (int, float) if isinstance(level, str) else ():
        with suppress(ValueError):
            if str(number(level)) == level:
                return number(level)
    return level


@contextmanager
def settled_at_the_start(asked: Options) -> Iterator[None]:
    """Let errors about a batch name no cure that only the start of a watch takes."""
    try:
        with speaking(BatchDoor()):
            yield
    except InputError as error:
        raise _as_started(error, asked) from None


class BatchDoor(ShellDoor):
    """Of options that updates do not take, it is said where they are."""

    def setting(self, setting: Setting) -> str:
        """The option with its value.

        >>> BatchDoor().setting(Setting("dates", "dmy")), BatchDoor().setting(Setting("gate"))
        ("--dates dmy of 'itrust watch start'", '--gate')
        """
        said = super().setting(setting)
        return f"{said} of 'itrust watch start'" if _of_the_start(setting.name) else said


def _as_started(error: InputError, asked: Options) -> InputError:
    named = [own for own in error.settings if isinstance(own, Setting | Argument)]
    cures = {own.name for own in named if _of_the_start(own.name)}
    if "guess" in error.details and _of_the_start(str(error.argument)):
        told = "{file} has no column {value}, which this watch has read from its start; {guess}"
        return error.at(problem=told) if error.file else error
    if error.details.get("cure") == LEAVE_OUT or error.column == asked.date_column is not None:
        told = "rows without {title}: {count} (first: {row})"
        return error.at(problem=told, **_about_missing(error, asked))
    if "fewest_rows" in error.details:
        told = "a batch needs at least {fewest_rows} rows; this one has {count}"
        return error.at(problem=told, hint="count them with the next batch")
    if "is_empty" in error.details:
        return error.at(hint="every batch must have some; count these rows with the next one")
    if cures == {"missing"}:
        return error.at(**_about_missing(error, asked))
    if cures:
        hint = "how columns are read was settled when the watch was started; mend the file"
        return error.at(hint=hint, settings=())
    return error


def _about_missing(error: InputError, asked: Options) -> dict[str, Any]:
    """What mends rows that lack something, in a watch that was started as it was."""
    if error.column != asked.label:
        hint = "fill them in, or leave those rows out of the file: this watch was started with {}"
        return {"hint": hint, "settings": (Setting("missing", asked.missing),)}
    known = "a row enters when its outcome is known, whatever it is: "
    if asked.date_column is None:
        return {"hint": f"{known}keep it for a later file", "settings": ()}
    hint = f"{known}let it wait with {{}} before its date, or keep it for a later file"
    return {"hint": hint, "settings": (Setting("closed_before", ...),)}


def _of_the_start(argument: str) -> bool:
    return is_of_the_start(CALLED.get(argument, argument))
