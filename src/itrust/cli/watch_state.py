"""The file that keeps a watch: read as input of strangers is, and replaced by one at a time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from itrust._core import InputError, Write, write_all
from itrust.cli.console import Log
from itrust.cli.options import BY_KEY, Kind, Options
from itrust.cli.roles import FileRoles
from itrust.cli.watch_columns import ColumnKinds, are_kinds
from itrust.cli.watch_dates import Closing, days_of
from itrust.cli.watch_levels import Levels, is_levels
from itrust.cli.watch_names import BatchName
from itrust.watch import Waiting, Watch

try:
    import fcntl
except ImportError:  # not on Windows, where a change is noticed before the file is replaced
    fcntl = None  # type: ignore[assignment]

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
    """What the state keeps for the command."""

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
            "prob": roles.models,
            "on": tuple(covariates) or ("",),
            "weights": roles.weights,
            "cluster": roles.cluster,
        }
        return cls({**ABSENT, **typed}, levels=levels, kinds=kinds)

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        kept = {name: self.options[name] for name in KEPT}
        plain = {k: list(v) if isinstance(v, tuple | list) else v for k, v in kept.items()}
        return {
            "command": "itrust watch",
            "options": {name: value for name, value in plain.items() if value not in (None, [])},
            "waiting": [dict(vars(own)) for own in self.waiting],
            "levels": dict(self.levels),
            "kinds": dict(self.kinds),
        }

    @classmethod
    def read(cls, found: Mapping[str, Any], place: Path) -> Remembered:
        """Check what a file says, which anybody may have changed."""
        if not found:
            raise InputError(
                "{argument}: {file} keeps a watch that was begun in Python and does not say which "
                "columns are what; go on with it there, by Watch.load and update",
                argument="state",
                file=str(place),
            )
        options, waiting = found.get("options"), found.get("waiting")
        if not isinstance(options, dict) or not isinstance(waiting, list):
            _damaged(place, "it does not say which columns are what")
        values: dict[str, Any] = {name: BY_KEY[name].default for name in KEPT}
        for name, value in options.items():
            if name not in KEPT or not _fits(name, value):
                _damaged(place, f"what it says of {str(name)[:40]!r} is no option of this command")
            values[name] = tuple(value) if isinstance(value, list) else value
        several = (name for name in KEPT if BY_KEY[name].kind is Kind.SEVERAL)
        values |= {name: values[name] or () for name in several}
        if len(values["prob"]) != 1 or not values["label"] or not values["on"]:
            _damaged(place, "it does not say which columns are what")
        rows = tuple(_waiting(own, place) for own in waiting)
        levels, kinds = found.get("levels", {}), found.get("kinds", {})
        if not is_levels(levels) or not are_kinds(kinds):
            _damaged(place, "what it says of levels and kinds of columns cannot be read")
        return cls({**ABSENT, **values}, rows, levels, kinds)

    def after(self, closing: Closing, batch: BatchName) -> Remembered:
        """What waits after a batch was taken in."""
        others = tuple(
            own for own in self.waiting if own.name != batch.text or own.segment != batch.segment
        )
        if not closing.waiting or closing.before is None:
            return replace(self, waiting=others)
        new = Waiting(str(batch.text), closing.waiting, closing.before, batch.segment)
        return replace(self, waiting=(*others, new)[-MAX_WAITING:])


def _fits(name: str, value: Any) -> bool:
    option = BY_KEY[name]
    if option.kind is Kind.SEVERAL:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    return isinstance(value, str) and (not option.choices or value in option.choices)


def _waiting(found: Any, place: Path) -> Waiting:
    kinds = {"name": str, "rows": int, "closed_before": str, "segment": int}
    sound = isinstance(found, dict) and found.keys() == kinds.keys()
    if not sound or not all(type(found[key]) is kind for key, kind in kinds.items()):
        _damaged(place, "what it says of rows that wait cannot be read")
    try:
        days_of(found["closed_before"])
    except (ValueError, OverflowError):
        _damaged(place, "it does not say since when rows wait")
    return Waiting(**found)


def _damaged(place: Path, why: str) -> NoReturn:
    raise InputError(
        "{argument}: {file} is no state that 'itrust watch' wrote: {why}",
        argument="state",
        file=str(place),
        details={"why": why},
    )


@dataclass
class Held:
    """A state file that nobody else changes meanwhile."""

    place: Path
    text: bytes
    _digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        self._digest = hashlib.sha256(self.text).digest()

    def replace(self, outputs: Mapping[Path, Write]) -> None:
        """Write all files together, unless somebody has changed the state after all."""
        if hashlib.sha256(_bytes(self.place)).digest() != self._digest:
            raise InputError(
                "{argument}: somebody else has changed {file} meanwhile; nothing was written, so "
                "run the command again",
                argument="state",
                file=str(self.place),
            )
        write_all(outputs)


@contextmanager
def held(place: Path, log: Log) -> Iterator[Held]:
    """Be alone with a state file until the end; another command waits here for its turn.

    The file itself is locked, so nothing is left behind. Who has waited may hold the lock of a file
    that was replaced: it looks again.
    """
    while True:
        with told_of_reading(place):
            opened = os.open(place, os.O_RDONLY)
        try:
            if fcntl is not None:
                _lock(opened, place, log)
            with told_of_reading(place):
                is_there = os.path.samestat(os.fstat(opened), os.stat(place))
            if is_there:
                yield Held(place, _bytes(place))
                return
        finally:
            os.close(opened)


def _lock(opened: int, place: Path, log: Log) -> None:
    with suppress(OSError):  # file systems without locks
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.say(f"another command is at work on {place}; waiting for it")
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


def read_state(place: Path, text: bytes | None = None) -> tuple[Watch, Remembered]:
    """The watch of a file, and what the command keeps with it."""
    if text is None:
        _bytes(place)
    try:
        watch = Watch.load(place)
    except InputError as error:
        raise error.at(argument="state") from None
    return watch, Remembered.read(watch.source, place)
