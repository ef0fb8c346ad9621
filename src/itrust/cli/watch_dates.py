"""Rows whose outcome window has closed, and those that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

import itrust as it
from itrust._core import FloatArray, InputError, Setting, counted, listed
from itrust.cli.columns import said_of_columns
from itrust.cli.inputs import InputFiles
from itrust.cli.options import Options
from itrust.cli.roles import FileRoles
from itrust.cli.watch_names import BatchName
from itrust.data import date_text, quoted, without_codes, written

if TYPE_CHECKING:
    from itrust.watch import Waiting

EPOCH = datetime(1970, 1, 1)
NAME = {"name": Setting("name", ...)}


@dataclass(frozen=True)
class Closing:
    """Which rows of a file count now."""

    where: str | None
    times: tuple[str, str] | None = None
    waiting: int = 0
    before: str | None = None
    notes: tuple[str, ...] = ()


def closing_of(
    source: InputFiles,
    roles: FileRoles,
    asked: Options,
    options: Options,
    waiting: Sequence[Waiting],
    batch: BatchName,
) -> Closing:
    """Settle which rows of a file count now, by the column of dates.

    Late rows of a batch, some of which were counted before, are those that closed since: the batch
    is known by its name. Rows that wait since the time of an earlier model are refused.
    """
    column = asked.date_column
    if column is None:
        _refuse_windows(options)
        return Closing(asked.where)
    end = np.inf if options.closed_before is None else _asked_day(options.closed_before)
    before = date_text(end) if np.isfinite(end) else None
    since = _waits_since(waiting, batch, options.late)
    start = -np.inf if since is None else days_of(since)
    days, lacking = _days(source, roles, asked, column)
    inside = days[(days >= start) & (days < end)]
    waits, known = int((days >= end).sum()), int((days < start).sum())
    if waits and batch.text is None:
        _refuse_unnamed(before)
    if inside.size < 2:
        _refuse_few(source, inside.size, before)
    left_out = {
        f"of {source.name} without {column!r}: left out": lacking,
        f"of {source.name} not closed before {before}: left out, to enter late": waits,
        f"closed before {since}: counted with {batch.text!r} before": known,
    }
    return Closing(
        _condition(asked.where, column, start, end, some_lack=lacking > 0),
        (date_text(float(inside.min())), date_text(float(inside.max()))),
        waits,
        before,
        tuple(f"{counted(n, 'row')} {why}" for why, n in left_out.items() if n),
    )


def _refuse_windows(options: Options) -> None:
    """Refuse what is about dates in a watch that knows of none."""
    if options.closed_before is not None:
        raise InputError(
            "{argument} needs the column that says when outcomes are known; this watch was "
            "started without {date_column}",
            argument="closed_before",
            details={"date_column": Setting("date_column", ...)},
        )


def _refuse_unnamed(before: str | None) -> NoReturn:
    raise InputError(
        "some rows are not closed before {value}; name the batch ({name}), so that they are known "
        "when they enter later",
        argument="closed_before",
        value=before,
        details=NAME,
    )


def _refuse_few(source: InputFiles, count: int, before: str | None) -> NoReturn:
    argument = "closed_before" if before is not None else "date_column"
    if not count:
        raise InputError(
            "no row of {file} closes in this time, so there is nothing to count",
            argument=argument,
            file=source.name,
        )
    raise InputError(
        "only 1 row of {file} closes in this time, and a batch has 2 or more; take it in later, "
        "together with others",
        argument=argument,
        file=source.name,
    )


def _waits_since(waiting: Sequence[Waiting], batch: BatchName, late: bool) -> str | None:
    """The date that late rows of the batch had to close before; None where none of it waits.

    Refuses a name by which rows would be counted twice, or those that wait forgotten.
    """
    named = [own for own in waiting if own.name == batch.text]
    own = next((own for own in named if own.segment == batch.segment), None)
    if not late:
        if own is not None:
            raise InputError(
                "rows of a batch called {value} still wait, and are known by that name; give this "
                "batch another one with {name}, or take those rows in with {late}",
                argument="name",
                value=batch.text,
                details={**NAME, "late": Setting("late")},
            )
        return None
    if own is None:
        names = [one.name for one in waiting if one.segment == batch.segment]
        _refuse_unknown_rows(batch, names, is_of_before=bool(named))
    return None if own is None else own.closed_before


def _refuse_unknown_rows(batch: BatchName, names: list[str], *, is_of_before: bool) -> None:
    """Refuse late rows that may have been counted: nothing waits under their name."""
    if batch.text is None:
        raise InputError(
            "{argument} needs the name of the batch that the rows belong to, so that none is "
            "counted twice: give it with {name}",
            argument="late",
            details=NAME,
        )
    if is_of_before:
        raise InputError(
            "rows of {value} wait since the time of an earlier model, which predicted them; they "
            "say nothing of the present one and are not counted (rows that it has predicted are "
            "taken in under another name: {name})",
            argument="late",
            value=batch.text,
            details=NAME,
        )
    if batch.is_counted:
        raise InputError(
            "{argument}: no rows of {value} wait, since a batch of that name was counted before; "
            "other rows need another name: {name}",
            argument="late",
            value=batch.text,
            details=NAME,
        )
    if names:
        raise InputError(
            "rows of {waiting} wait, and a batch is known by its name: say which of them these "
            "rows belong to with {name}, so that none is counted twice",
            argument="late",
            details={"waiting": listed(names), **NAME},
        )


def _days(
    source: InputFiles, roles: FileRoles, asked: Options, column: str
) -> tuple[FloatArray, int]:
    """When each row closes, in days since 1970, and how many rows do not say; no label is read.

    A missing date is no level: rows without one are dropped or refused.
    """
    source.require("date_column", column)
    said = said_of_columns(source, asked)
    needed = [roles.prob[0], column, *said.condition_columns(source, roles.prob)]
    frame = source.table(needed)
    with source.located():
        found = it.Population.from_frame(
            frame,
            prob=roles.prob[0],
            on=[column],
            na_values=list(said.na_values),
            where=said.where,
            missing="drop" if asked.missing == "drop" else "error",
            **said.kinds.of_columns(needed),
        )
    dates = found.column(column)
    if dates.kind != "date":
        as_before = {"dmy": " with the day first", "mdy": " with the month first"}
        raise InputError(
            "{argument}: {value} cannot be read as dates{order}; write them as in 2026-01-31",
            argument="date_column",
            value=column,
            details={"order": as_before.get(str(asked.dates), "")},
        )
    lacking = without_codes(frame.select([column]), said.na_values)[column].null_count
    return np.asarray(dates.values, dtype=float), lacking


def refuse_no_dates(source: InputFiles, asked: Options) -> None:
    """Raise unless the reference has dates where batches are to have them; some may be missing."""
    column = asked.date_column
    if column is None:
        return
    said = said_of_columns(source, asked)
    values = without_codes(source.table([column]), said.na_values)[column]
    held = values.drop_null()
    if len(held) and not is_dates(held):
        raise InputError(
            "{argument}: {value} cannot be read as dates: {first}; write them as in 2026-01-31, or "
            "say their order with {dates}",
            argument="date_column",
            value=column,
            details={"first": str(held[0].as_py()), "dates": Setting("dates", ...)},
        )


def is_dates(values: pa.ChunkedArray) -> bool:
    """Whether these are taken for dates, as covariates are."""
    return it.Population(np.full(len(values), 0.5), {"dates": values}).columns[0].kind == "date"


def days_of(text: str) -> float:
    """Days from 1970 to a date or time in ISO 8601, in UTC where it has a zone.

    >>> days_of("1970-01-02T12:00")
    1.5
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - EPOCH).total_seconds() / 86_400


def _asked_day(text: str) -> float:
    try:
        return days_of(text.strip())
    except (ValueError, OverflowError):
        raise InputError(
            "{argument} must be a date, such as 2026-01-31, not {value}",
            argument="closed_before",
            value=text,
        ) from None


def _condition(
    where: str | None, column: str, start: float, end: float, *, some_lack: bool
) -> str | None:
    """The condition of the watch, and that a row closes in a time."""
    ends: Sequence[tuple[str, float]] = ((">=", start), ("<", end))
    parts = [
        f"{quoted(column)} {sign} {written(date_text(day))}"
        for sign, day in ends
        if np.isfinite(day)
    ]
    if some_lack and not parts:
        parts = [f"{quoted(column)} is not missing"]
    if where is not None:
        parts.insert(0, f"({where})")
    return " and ".join(parts) or None
