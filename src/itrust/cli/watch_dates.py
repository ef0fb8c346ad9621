"""Rows whose outcome window has closed, and those that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import itrust as it
from itrust._core import FloatArray, InputError, Setting, counted, listed
from itrust.cli.columns import said_of_columns
from itrust.cli.inputs import InputFiles
from itrust.cli.options import Options
from itrust.cli.roles import Roles
from itrust.cli.watch_state import Remembered
from itrust.data import date_text, quoted, written

MICROSECONDS = 86_400_000_000  # of a day


@dataclass(frozen=True)
class Closing:
    """Which rows of a file count now.

    Attributes
    ----------
    where : str or None
        The condition of rows that count; None: all of them.
    times : two str, or None
        The first and the last date among rows that count; None without a column of dates.
    waiting : int
        Rows that are left out until their window closes.
    before : str or None
        The date that their window had to close before.
    notes : tuple of str
        What is said aloud.
    """

    where: str | None
    times: tuple[str, str] | None = None
    waiting: int = 0
    before: str | None = None
    notes: tuple[str, ...] = ()


def closing_of(
    source: InputFiles,
    roles: Roles,
    asked: Options,
    options: Options,
    kept: Remembered,
    name: str | None,
    segment: int,
) -> Closing:
    """Settle which rows of a file count now, by the column of dates.

    Late rows of a batch, some of which were counted before, are those that closed since: the batch
    is known by its name. Rows that wait since the time of an earlier model are refused.
    """
    column, before = asked.date_column, options.closed_before
    if column is None:
        if before is not None:
            raise InputError(
                "{argument} needs the column that says when outcomes are known; this watch was "
                "started without {date_column}",
                argument="closed_before",
                details={"date_column": Setting("date_column", ...)},
            )
        return Closing(asked.where)
    source.require("date_column", column)
    days = _days(source, roles, asked, column)
    end = np.inf if before is None else _day(before, "closed_before")
    named = [own for own in kept.waiting if own.name == name] if options.late else []
    begun = [own for own in named if own.segment == segment]
    if named and not begun:
        raise InputError(
            "rows of {value} wait since the time of an earlier model, which predicted them; they "
            "say nothing of the present one and are not counted (rows that it has predicted are "
            "taken in under another name: {name})",
            argument="late",
            value=name,
            details={"name": Setting("name", ...)},
        )
    _refuse_names([own.name for own in kept.waiting if own.segment == segment], name, options.late)
    start = _day(begun[0].closed_before, "state") if begun else -np.inf
    counts, waits, known = (days >= start) & (days < end), days >= end, days < start
    notes = []
    if waits.any() and name is None:
        raise InputError(
            "some rows are not closed before {value}; name the batch ({name}), so that they are "
            "known when they enter later",
            argument="closed_before",
            value=before,
            details={"name": Setting("name", ...)},
        )
    if waits.any():
        told = counted(int(waits.sum()), "row")
        notes.append(f"{told} of {source.name} not closed before {before}: left out, to enter late")
    if known.any():
        told = counted(int(known.sum()), "row")
        notes.append(f"{told} closed before {begun[0].closed_before}: counted with {name!r} before")
    if not counts.any():
        raise InputError(
            "no row of {file} closes in this time, so there is nothing to count",
            argument="closed_before" if before is not None else "date_column",
            file=source.name,
        )
    inside = days[counts]
    return Closing(
        _condition(asked.where, column, start, end),
        (date_text(float(inside.min())), date_text(float(inside.max()))),
        int(waits.sum()),
        before,
        tuple(notes),
    )


def _refuse_names(names: list[str], name: str | None, late: bool) -> None:
    """Refuse a name by which rows that wait would be counted twice, or forgotten."""
    if late and names and name not in names:
        raise InputError(
            "rows of {waiting} wait, and a batch is known by its name: say which of them these "
            "rows belong to with {name}, so that none is counted twice",
            argument="late",
            details={"waiting": listed(names), "name": Setting("name", ...)},
        )
    if not late and name in names:
        raise InputError(
            "rows of a batch called {value} still wait, and are known by that name; give this "
            "batch another one with {name}, or take those rows in with {late}",
            argument="name",
            value=name,
            details={"name": Setting("name", ...), "late": Setting("late")},
        )


def _days(source: InputFiles, roles: Roles, asked: Options, column: str) -> FloatArray:
    """When each row closes, in days since 1970; no label is read."""
    said = said_of_columns(source, asked)
    needed = [roles.prob[0], column, *said.condition_columns(source, roles.prob)]
    with source.located():
        found = it.Population.from_frame(
            source.table(needed),
            prob=roles.prob[0],
            on=[column],
            na_values=list(said.na_values),
            where=said.where,
        )
    dates = found.column(column)
    if dates.kind != "date":
        raise InputError(
            "{argument}: {value} holds no dates, such as 2026-01-31",
            argument="date_column",
            value=column,
        )
    return np.asarray(dates.values, dtype=float)


def _day(text: str, argument: str) -> float:
    try:
        moment = np.datetime64(text.strip().replace(" ", "T"), "us")
        if np.isnat(moment):
            raise ValueError
    except ValueError:
        raise InputError(
            "{argument} must be a date, such as 2026-01-31, not {value}",
            argument=argument,
            value=text,
        ) from None
    return float(moment.astype(int)) / MICROSECONDS


def _condition(where: str | None, column: str, start: float, end: float) -> str | None:
    """The condition of the watch, and that a row closes in a time."""
    ends: Sequence[tuple[str, float]] = ((">=", start), ("<", end))
    parts = [
        f"{quoted(column)} {sign} {written(date_text(day))}"
        for sign, day in ends
        if np.isfinite(day)
    ]
    if where is not None:
        parts.insert(0, f"({where})")
    return " and ".join(parts) or None
