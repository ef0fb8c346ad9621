"""What a watch keeps between commands, and how a batch is read as its reference was."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import itrust as it
from itrust._core import (
    Argument,
    ByName,
    EntryShape,
    FloatArray,
    InputError,
    Made,
    OneWord,
    Record,
    Setting,
    Text,
    Write,
    counted,
    listed,
    printable,
    speaking,
    tuple_of,
    unfit,
    write_all,
)
from itrust.cli.console import ShellDoor, of_the_start, say
from itrust.cli.inputs import SPOOLED, InputFiles, na_values
from itrust.cli.options import BY_KEY, WATCH_START, Kind, Options
from itrust.cli.roles import FileRoles, condition_of, kinds_said, split_names
from itrust.data import (
    FORMATS,
    Delimited,
    date_text,
    known_format,
    quoted,
    split_table,
    without_codes,
    written,
)
from itrust.watch import Waiting, Watch

try:
    import fcntl
except ImportError:  # not on Windows, where a change is noticed before the file is replaced
    fcntl = None  # type: ignore[assignment]

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
        kind = known_format(path, source.file_set.form)
        if isinstance(kind, Delimited) and (order := kind.dialect(path).order) is not None:
            return order
    return None


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
        with speaking(ShellDoor(of_batch=True)):
            yield
    except InputError as error:
        raise _as_started(error, asked) from None


def _as_started(error: InputError, asked: Options) -> InputError:
    named = [own for own in error.settings if isinstance(own, Setting | Argument)]
    cures = {own.name for own in named if of_the_start(own.name)}
    if "guess" in error.details and of_the_start(str(error.argument)):
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


DIGITS = 8  # of a level
MAX_LEVELS = 5_000  # of all categories; the widest ones are not looked at where there are more
MAX_NAMED = 5
Levels = Mapping[str, tuple[str, ...]]  # by category, the digits of its levels


def salt_of(watch: Watch) -> bytes:
    """What the hashes of a segment begin with; no two references share it."""
    return watch.segments[-1].reference_digest.encode()


def levels_of(rows: Any, salt: bytes) -> dict[str, tuple[str, ...]]:
    """The levels that occur in some rows, by category, as far as there is room for them."""
    found = {
        own.name: tuple(sorted(_digits(own.name, text, salt) for text in _counts(own)))
        for own in rows.columns
        if own.is_category
    }
    narrow = sorted(found, key=lambda name: len(found[name]))
    total = np.cumsum([len(found[name]) for name in narrow])
    return {name: found[name] for name, n in zip(narrow, total, strict=True) if n <= MAX_LEVELS}


def new_level_notes(rows: Any, known: Levels, salt: bytes, min_cell: int) -> list[str]:
    """Say which levels of a batch the reference lacks, and who sees them; one note a column.

    Those of fewer than `min_cell` rows are counted and not named.
    """
    notes = []
    for column in rows.columns:
        if not column.is_category or column.name not in known:
            continue
        reference = set(known[column.name])
        new = {
            text: n
            for text, n in _counts(column).items()
            if _digits(column.name, text, salt) not in reference
        }
        if new:
            notes.append(_note(printable(column.name, lines=False), new, min_cell))
    return notes


def _note(column: str, new: Mapping[str, int], min_cell: int) -> str:
    large = sorted((text for text in new if new[text] >= min_cell), key=lambda t: (-new[t], t))
    told = [
        f"{printable(text[:60], lines=False)} ({counted(new[text], 'row')})"
        for text in large[:MAX_NAMED]
    ]
    if len(told) < len(new):
        told.append(f"{len(new) - len(told):,} not named")
    return (
        f"{column} has values that the reference lacks: {', '.join(told)}; only checks that do not "
        "name its levels see them"
    )


def _digits(column: str, level: str, salt: bytes) -> str:
    text = f"{column}\0{level}".encode("utf-8", "backslashreplace")
    return hashlib.blake2b(text, digest_size=DIGITS // 2, key=salt).hexdigest()


def _counts(column: Any) -> dict[str, int]:
    """How many rows have each level that occurs."""
    present = column.values[column.values >= 0]
    sizes = np.bincount(present, minlength=len(column.levels))
    return {str(level): int(n) for level, n in zip(column.levels, sizes, strict=True) if n}


MAX_NAME = 200  # characters
ENDINGS = (".gz", *(ending for kind in FORMATS for ending in kind.endings))


def batch_name(options: Options, source: InputFiles) -> str | None:
    """How a batch is called: as was typed, or as its one file without the ending, and the table."""
    if options.name is not None:
        return str(options.name)
    if source.name == SPOOLED or len(source.files) != 1:
        return None
    path, table = split_table(source.files[0])
    name = path.name
    while name.lower().endswith(ENDINGS):
        name = name.rpartition(".")[0]
    name = (name if table is None else f"{name}::{table}")[:MAX_NAME]
    return name if name.strip() else None


def taken_names(watch: Watch) -> set[str | None]:
    """How the batches of the present model are called."""
    segment = watch.segments[-1].number
    return {record.name for record in watch.history if record.segment == segment}


def free_name(name: str | None, taken: set[str | None], options: Options) -> str | None:
    """A name that no batch of the model has; one that was typed is left to be refused."""
    is_typed, late = options.name is not None, options.late
    if name is None or (not late and (is_typed or name not in taken)):
        return name
    numbers = range(2, len(taken) + 3)
    ends = ["late", *(f"late {k}" for k in numbers)] if late else map(str, numbers)
    return next(free for end in ends if (free := _with(name, end)) not in taken)


def _with(name: str, end: str) -> str:
    """A name with something in brackets behind it, cut where it would be too long."""
    return f"{name[: MAX_NAME - len(end) - 3]} ({end})"


EPOCH = datetime(1970, 1, 1)
NAME = {"name": Setting("name", ...)}


# The condition on rows that count now, when the first and the last closed, and which rows wait.
Closing = tuple[str | None, tuple[str, str] | None, Waiting | None]


def closing_of(
    source: InputFiles,
    roles: FileRoles,
    asked: Options,
    options: Options,
    waiting: Sequence[Waiting],
    watch: Watch,
    name: str | None,
) -> Closing:
    """Settle and say which rows of a file count now, by the column of dates.

    Late rows of a batch, some of which were counted before, are those that closed since: the batch
    is known by its name. Rows that wait since the time of an earlier model are refused.
    """
    column = asked.date_column
    if column is None:
        if options.closed_before is None:
            return asked.where, None, None
        raise InputError(
            "{argument} needs the column that says when outcomes are known; this watch was "
            "started without {date_column}",
            argument="closed_before",
            details={"date_column": Setting("date_column", ...)},
        )
    end = np.inf if options.closed_before is None else _asked_day(options.closed_before)
    before = date_text(end) if np.isfinite(end) else None
    since = _waits_since(waiting, watch, name, options.late)
    start = -np.inf if since is None else days_of(since)
    days, lacking = _days(source, roles, asked, column)
    inside = days[(days >= start) & (days < end)]
    waits, known = int((days >= end).sum()), int((days < start).sum())
    if waits and name is None:
        raise InputError(
            "some rows are not closed before {value}; name the batch ({name}), so that they are "
            "known when they enter later",
            argument="closed_before",
            value=before,
            details=NAME,
        )
    if inside.size < 2:
        closing = "only 1 row" if inside.size else "no row"
        raise InputError(
            f"{closing} of {{file}} closes in this time, and a batch has 2 or more, so there is "
            "nothing to count yet; take rows in later, together with others",
            argument="closed_before" if before is not None else "date_column",
            file=source.name,
        )
    left_out = {
        f"of {source.name} without {column!r}: left out": lacking,
        f"of {source.name} not closed before {before}: left out, to enter late": waits,
        f"closed before {since}: counted with {name!r} before": known,
    }
    say(options, *(f"{counted(n, 'row')} {why}" for why, n in left_out.items() if n))
    where = _condition(asked.where, column, start, end, some_lack=lacking > 0)
    times = date_text(float(inside.min())), date_text(float(inside.max()))
    if not waits or before is None:
        return where, times, None
    return where, times, Waiting(str(name), waits, before, watch.segments[-1].number)


def _waits_since(
    waiting: Sequence[Waiting], watch: Watch, name: str | None, late: bool
) -> str | None:
    """The date that late rows of the batch had to close before; None where none of it waits.

    Refuses a name by which rows would be counted twice, or those that wait forgotten.
    """
    present = [own for own in waiting if own.segment == watch.segments[-1].number]
    own = next((own for own in present if own.name == name), None)
    if not late and own is not None:
        raise InputError(
            "rows of a batch called {value} still wait, and are known by that name; give this "
            "batch another one with {name}, or take those rows in with {late}",
            argument="name",
            value=name,
            details={**NAME, "late": Setting("late")},
        )
    if not late or own is not None:
        return None if own is None else own.closed_before
    problem = ""
    if name is None:
        problem = (
            "{argument} needs the name of the batch that the rows belong to, so that none is "
            "counted twice: give it with {name}"
        )
    elif any(other.name == name for other in waiting):
        problem = (
            "rows of {value} wait since the time of an earlier model, which predicted them; they "
            "say nothing of the present one and are not counted (rows that it has predicted are "
            "taken in under another name: {name})"
        )
    elif {name, _with(name, "late")} & taken_names(watch):
        problem = (
            "{argument}: no rows of {value} wait, since a batch of that name was counted before; "
            "other rows need another name: {name}"
        )
    elif present:
        problem = (
            "rows of {waiting} wait, and a batch is known by its name: say which of them these "
            "rows belong to with {name}, so that none is counted twice"
        )
    if problem:
        details = {"waiting": listed(other.name for other in present), **NAME}
        raise InputError(problem, argument="late", value=name, details=details)
    return None


def _days(
    source: InputFiles, roles: FileRoles, asked: Options, column: str
) -> tuple[FloatArray, int]:
    """When each row closes, in days since 1970, and how many rows do not say; no label is read.

    A missing date is no level: rows without one are dropped or refused.
    """
    source.require("date_column", column)
    codes = na_values(asked)
    where, conditions = condition_of(source, asked, roles.prob)
    needed = [roles.prob[0], column, *conditions]
    frame = source.table(needed)
    with source.located():
        found = it.Population.from_frame(
            frame,
            prob=roles.prob[0],
            on=[column],
            na_values=list(codes),
            where=where,
            missing="drop" if asked.missing == "drop" else "error",
            **kinds_said(source, asked).of_columns(needed),
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
    lacking = without_codes(frame.select([column]), codes)[column].null_count
    return np.asarray(dates.values, dtype=float), lacking


def refuse_no_dates(source: InputFiles, asked: Options) -> None:
    """Raise unless the reference has dates where batches are to have them; some may be missing."""
    column = asked.date_column
    if column is None:
        return
    values = without_codes(source.table([column]), na_values(asked))[column]
    held = values.drop_null()
    read = it.Population(np.full(len(held), 0.5), {column: held}) if len(held) else None
    if read is not None and read.column(column).kind != "date":
        raise InputError(
            "{argument}: {value} cannot be read as dates: {first}; write them as in 2026-01-31, or "
            "say their order with {dates}",
            argument="date_column",
            value=column,
            details={"first": str(held[0].as_py()), "dates": Setting("dates", ...)},
        )


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


KEPT = (  # options about columns and text, which updates need and do not name
    *("label", "prob", "on", "weights", "cluster", "positive", "category", "number"),
    *("value_labels", "where", "na_values", "sep", "decimal", "dates", "missing", "date_column"),
)
MAX_WAITING = 1_000
# What only other commands take, so that columns are read as theirs are.
ABSENT: Mapping[str, Any] = {"strata": (), "replicate_weights": (), "replicate_method": None}


def state_place(options: Options) -> Path:
    """The file that `--state` names."""
    if options.state is None:
        raise InputError(
            "name the file that keeps the watch with {argument}, such as watch.json",
            argument="state",
        )
    return Path(os.path.expanduser(str(options.state)))


@dataclass(frozen=True)
class Remembered:
    """What the state keeps for the command: options that were given or settled, and more."""

    options: Mapping[str, Any]
    waiting: tuple[Waiting, ...] = ()
    levels: Levels = field(default_factory=dict)
    kinds: ColumnKinds = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        asked: Options,
        roles: FileRoles,
        covariates: tuple[str, ...],
        levels: Levels,
        kinds: ColumnKinds,
    ) -> Remembered:
        """Take over what was typed, set or guessed."""
        typed = {
            **{name: getattr(asked, name) for name in KEPT},
            "label": roles.label,
            "prob": tuple(roles.models),
            "on": tuple(covariates) or ("",),
            "weights": roles.weights,
            "cluster": roles.cluster,
        }
        given = {name: value for name, value in typed.items() if value not in (None, (), [])}
        return cls(given, levels=levels, kinds=kinds)

    @property
    def values(self) -> dict[str, Any]:
        """The options as the start of a watch takes them."""
        usual = {name: BY_KEY[name].default_in(WATCH_START) for name in KEPT}
        return {**ABSENT, **usual, **self.options}

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return REMEMBERED.write(self)


def _kept_shape(name: str) -> EntryShape:
    option = BY_KEY[name]
    if option.kind is Kind.SEVERAL:
        return tuple_of(Text(), at_least=1)
    return OneWord(option.choices) if option.choices else Text()


def _read_date(text: str) -> str:
    _asked_day(text)
    return text


NEEDED = ("label", "prob", "on")
REMEMBERED = Record.of(
    Remembered,
    options=Record({name: _kept_shape(name) for name in KEPT}, frozenset({*KEPT} - {*NEEDED})),
    waiting=tuple_of(Record.of(Waiting, closed_before=Made(Text(), _read_date, str))),
    levels=ByName(tuple_of(Text(DIGITS))),
    kinds=ByName(OneWord((TEXT, CODES, NUMBER))),
)


@contextmanager
def held(place: Path, options: Options) -> Iterator[Callable[[Mapping[Path, Write]], None]]:
    """Be alone with a state file until the end; gives what writes it, and others, together.

    Another command waits here for its turn. The file itself is locked, so nothing is left behind.
    Who has waited may hold the lock of a file that was replaced: it looks again.
    """

    def write(outputs: Mapping[Path, Write]) -> None:
        if _bytes(place) != before:
            raise InputError(
                "{argument}: somebody else has changed {file} meanwhile; nothing was written, so "
                "run the command again",
                argument="state",
                file=str(place),
            )
        write_all(outputs)

    while True:
        with told_of_reading(place):
            opened = os.open(place, os.O_RDONLY)
        try:
            if fcntl is not None:
                _lock(opened, place, options)
            with told_of_reading(place):
                is_there = os.path.samestat(os.fstat(opened), os.stat(place))
            if is_there:
                before = _bytes(place)
                yield write
                return
        finally:
            os.close(opened)


def _lock(opened: int, place: Path, options: Options) -> None:
    with suppress(OSError):  # file systems without locks
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(options, f"another command is at work on {place}; waiting for it")
            fcntl.flock(opened, fcntl.LOCK_EX)


@contextmanager
def told_of_reading(place: Path) -> Iterator[None]:
    """Say in one sentence why a state file cannot be read."""
    try:
        yield
    except OSError as error:
        hint = "; begin one with 'itrust watch start'" if not os.path.exists(place) else ""
        raise InputError(
            f"{{argument}}: {{file}} cannot be read: {{reason}}{hint}",
            argument="state",
            file=str(place),
            details={"reason": error.strerror or str(error)},
        ) from None


def _bytes(place: Path) -> bytes:
    with told_of_reading(place):
        return place.read_bytes()


def read_state(place: Path) -> tuple[Watch, Remembered]:
    """The watch of a file, and what the command keeps with it."""
    _bytes(place)
    try:
        watch = Watch.load(place)
    except InputError as error:
        raise error.at(argument="state") from None
    if not watch.source:
        raise InputError(
            "{argument}: {file} keeps a watch that was begun in Python and does not say which "
            "columns are what; go on with it there, by Watch.load and update",
            argument="state",
            file=str(place),
        )
    try:
        kept: Remembered = REMEMBERED.read(watch.source, "source")
        if len(kept.options["prob"]) != 1:
            unfit("source.options.prob", "must be one column")
    except InputError as error:
        raise InputError(
            "{argument}: {file} is no state that 'itrust watch' wrote: {why}",
            argument="state",
            file=str(place),
            details={"why": str(error)},
        ) from None
    return watch, kept
