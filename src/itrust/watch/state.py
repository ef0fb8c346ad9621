"""A watch as the text of its file: small, versioned, exact."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from itrust import __version__
from itrust._core import MAX_JSON_BYTES, InputError, strict_json
from itrust.watch.components import CheckPanel, WatchCheck
from itrust.watch.results import BatchRecord, Onset, Segment
from itrust.watch.sequences import LeafSequence, SumSequence, TaskSequence, numbers_of
from itrust.watch.wealth import PanelWealth

if TYPE_CHECKING:
    from itrust.watch.watching import Watch
import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from itrust._core import (
    AnyArray,
    Code,
    FloatArray,
    NotJSONError,
    TooLargeError,
    json_text,
    shown,
)
from itrust.data import And, Between, Everywhere, Level, Missing, Predicate
from itrust.terms import Absent, Curve, Inside, Is, Slope, Term

SCHEMA = "itrust-watch/1"
MAX_SEED = 2**64 - 1
MAX_SOURCE = 1_000_000  # characters of what the maker of a watch keeps with it


def text_of(watch: Watch) -> str:
    """The whole text of a file."""
    schema = watch.schema
    source = json.dumps(watch.source, allow_nan=False)
    if len(source) > MAX_SOURCE:
        raise InputError(
            "what is kept with a watch has at most {most} characters of JSON, not {value}",
            argument="source",
            value=len(source),
            most=MAX_SOURCE,
        )
    facts = {
        "schema": SCHEMA,
        "version": __version__,
        "alpha": watch.alpha,
        "tolerance": watch.tolerance,
        "promise": str(watch.promise),
        "seed": watch.seed,
        "columns": [list(column) for column in schema.columns],
        "classes": [packed_level(name) for name in schema.classes],
        "positive": packed_level(schema.positive),
        "weighted": schema.weighted,
        "clustered": schema.clustered,
        "largest_weight": schema.largest_weight,
        "panels": [
            _panel(panel, own) for panel, own in zip(watch.panels, watch.wealth, strict=True)
        ],
        "tasks": [_sequence(own) for own in watch.sequences],
        "history": [_record(record) for record in watch.history],
        "segments": [_segment(segment) for segment in watch.segments],
        "source": watch.source,
    }
    try:
        text = json.dumps(facts, allow_nan=False, separators=(",", ":")) + "\n"
    except ValueError:
        raise InputError(
            "a file cannot hold this watch: sums of its rows are not finite; take other units for "
            "weights and covariates",
            argument="path",
        ) from None
    _refuse_unreadable(text)
    return text


def _refuse_unreadable(text: str) -> None:
    """What is written must be read again: refuse it before it replaces what can be."""
    from itrust.watch.loading import watch_in

    if len(text) > MAX_JSON_BYTES:  # all of it is ASCII
        raise InputError(
            "the state of this watch has {value} bytes, and one of more than {most} bytes is not "
            "read again; watch fewer classes or fewer covariates, or begin a new watch",
            argument="path",
            value=len(text),
            most=MAX_JSON_BYTES,
        )
    try:
        watch_in(FilePlace(strict_json(text)))
    except InputError as error:
        raise InputError(
            f"a file cannot hold this watch: {error.problem}",
            argument="path",
            details=error.details,
        ) from None


def _log(value: float) -> float | str:
    """A logarithm; infinities are words."""
    if math.isfinite(value):
        return value
    return "infinite" if value > 0 else "nothing"


def _check(check: WatchCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        "family": check.family,
        "covariates": list(check.covariates),
        "shape": check.shape.value,
        "where": packed_predicate(check.where),
        "parts": [[packed_term(term), centre] for term, centre in check.parts],
        "span": check.span,
    }


def _panel(panel: CheckPanel, own: PanelWealth) -> dict[str, Any]:
    return {
        "label": packed_level(panel.label),
        "checks": [_check(check) for check in panel.checks],
        "weights": packed_array(panel.weights),
        "scales": [
            [name, packed_array(scale.knots), packed_array(scale.heights)]
            for name, scale in panel.scales.items()
        ],
        "joint": list(panel.joint),
        "bets": packed_array(own.log_bets),
        "moved": packed_array(own.log_moved),
        "peaks": packed_array(own.peaks),
        "sides": packed_array(own.sides),
        "rows": packed_array(own.rows),
        "scores": packed_array(own.known.scores),
        "information": packed_array(own.known.information),
        "block_starts": list(own.blocks.first),
        "block_sums": packed_array(own.blocks.sums),
    }


def _sequence(own: TaskSequence) -> dict[str, Any]:
    return {
        "task": own.task.formula,
        "batches": own.batches,
        "rows": own.rows,
        "leaves": [_leaf(leaf) for leaf in own.leaves],
    }


def _leaf(own: LeafSequence) -> dict[str, Any]:
    numbers = {
        name: value if math.isfinite(value) else None for name, value in numbers_of(own).items()
    }
    return {"above": _sums(own.above), "below": _sums(own.below), **numbers}


def _sums(own: SumSequence) -> list[float]:
    return [own.bound, own.total, own.squares, own.hoeffding]


def _record(record: BatchRecord) -> dict[str, Any]:
    logs = {"log_evalue": _log(record.log_evalue), "log_peak": _log(record.log_peak)}
    return {**asdict(record), **logs}


def _onset(since: Onset | None) -> dict[str, Any] | None:
    return None if since is None else {**asdict(since), "label": packed_level(since.label)}


def _segment(segment: Segment) -> dict[str, Any]:
    alarms = [
        {
            "batch": alarm.batch,
            "log_evalue": _log(alarm.log_evalue),
            "since": _onset(alarm.since),
        }
        for alarm in segment.alarms
    ]
    return {**asdict(segment), "alarms": alarms}


def packed_array(values: AnyArray) -> dict[str, Any]:
    """An array of numbers: shape, type and bytes in base64."""
    kind = "<f4" if values.dtype == np.float32 else "<f8"
    raw = np.ascontiguousarray(values, dtype=kind).tobytes()
    return {
        "type": kind,
        "shape": list(values.shape),
        "data": base64.b64encode(raw).decode("ascii"),
    }


def packed_level(level: Any) -> Any:
    """A level of a category: text, a number, true, false, a date or a moment."""
    if level is None or isinstance(level, str | bool | int | float):
        return level
    if isinstance(level, datetime):
        return {"datetime": level.isoformat()}
    if isinstance(level, date):
        return {"date": level.isoformat()}
    raise InputError(
        "the level {value} is a {kind}, which a file cannot hold; turn the column into text",
        argument="reference",
        value=level,
        kind=type(level).__name__,
    )


def packed_end(end: float) -> float | None:
    """An end of a range; None where there is none."""
    return float(end) if math.isfinite(end) else None


def packed_term(term: Term) -> list[Any]:
    """A function of one column, as its kind, its column and what else it has."""
    match term:
        case Curve(order=1):
            return ["line", term.column]
        case Curve():
            return ["curve", term.column, term.order]
        case Slope():
            return ["slope", None]
        case Inside():
            return ["within", term.column, packed_end(term.low), packed_end(term.high)]
        case Is():
            return ["is", term.column, packed_level(term.level)]
        case Absent():
            return ["absent", term.column]
        case _:
            raise TypeError(f"no way to pack a {type(term).__name__}")


def packed_predicate(where: Predicate) -> list[Any]:
    """A predicate, as its kind and what it has."""
    match where:
        case Everywhere():
            return ["everywhere"]
        case Level():
            return ["level", where.name, packed_level(where.level)]
        case Missing():
            return ["missing", where.name]
        case Between():
            ends = packed_end(where.low), packed_end(where.high)
            return ["between", where.name, *ends, where.text, where.holds]
        case And():
            return ["and", *(packed_predicate(part) for part in where.parts)]
        case _:
            raise TypeError(f"no way to pack a {type(where).__name__}")


Read = TypeVar("Read")
LARGEST = 1e150  # of any number: squares stay finite
MAX_TEXT = 100_000
MAX_SIZE = 50_000_000  # numbers of one array
CURE, SAVED = "give a file that {} wrote", Code("Watch.save", "itrust watch")
KINDS = ("number", "boolean", "date", "category")


@dataclass(frozen=True)
class FilePlace:
    """A value of a file, and where it stands."""

    value: Any
    where: str = "it"

    def refuse(self, wanted: str) -> NoReturn:
        """Say what should stand here."""
        found = shown(self.value) if not isinstance(self.value, list | dict) else "something else"
        raise InputError(
            "{where} must be {wanted}, not {found}",
            argument="path",
            hint=CURE,
            settings=[SAVED],
            where=self.where,
            wanted=wanted,
            found=found,
        )

    def __getitem__(self, name: str) -> FilePlace:
        if not isinstance(self.value, Mapping):
            self.refuse("a record")
        if name not in self.value:
            raise InputError(
                "{where} lacks the entry {name}",
                argument="path",
                hint=CURE,
                settings=[SAVED],
                where=self.where,
                name=repr(name),
            )
        return FilePlace(self.value[name], name if self.where == "it" else f"{self.where}.{name}")

    def entries(self, size: int | None = None, least: int = 0) -> list[FilePlace]:
        """The entries of a list, which may have to be of one size, or of a size at least."""
        if not isinstance(self.value, list):
            self.refuse("a list")
        if size is not None and len(self.value) != size:
            self.refuse(f"a list of {size}")
        if len(self.value) < least:
            self.refuse(f"a list of {least} or more")
        return [FilePlace(own, f"{self.where}[{k}]") for k, own in enumerate(self.value)]

    def number(self, low: float = -LARGEST, high: float = LARGEST) -> float:
        """A number within bounds."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.refuse("a number")
        if not low <= self.value <= high:
            self.refuse(f"a number from {low:g} to {high:g}")
        return float(self.value)

    def whole(self, low: int = 0, high: int = 10**15) -> int:
        """A whole number within bounds."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.refuse("a whole number")
        if not low <= self.value <= high:
            self.refuse(f"a whole number from {low:,} to {high:,}")
        return int(self.value)

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.refuse("true or false")
        return self.value

    def text(self, most: int = MAX_TEXT) -> str:
        """A text that can be written."""
        if not isinstance(self.value, str) or len(self.value) > most:
            self.refuse(f"a text of at most {most:,} characters")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            self.refuse("a text of whole characters")
        return self.value

    def word(self, *words: str) -> str:
        """One of some words."""
        if not isinstance(self.value, str) or self.value not in words:
            self.refuse(" or ".join(map(repr, words)))
        return self.value

    def maybe(self, read: Callable[[FilePlace], Read]) -> Read | None:
        """What it is, or None for null."""
        return None if self.value is None else read(self)

    def log(self) -> float:
        """A logarithm."""
        if self.value == "infinite":
            return math.inf
        return -math.inf if self.value == "nothing" else self.number()

    def level(self) -> Any:
        """A level of a category, or null."""
        if isinstance(self.value, Mapping) and len(self.value) == 1:
            for kind, read in (("datetime", datetime), ("date", date)):
                if kind in self.value:
                    try:
                        return read.fromisoformat(self[kind].text(100))
                    except ValueError:
                        self.refuse("a date such as '2026-01-31'")
        if self.value is None or isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, str):
            return self.text()
        number = self.number(-1e300, 1e300)
        return self.value if isinstance(self.value, int) else number

    def array(self, shape: tuple[int, ...], *, logs: bool = False) -> FloatArray:
        """An array of one shape; only logarithms may be infinite, and only below."""
        kind = self["type"].word("<f4", "<f8")
        own = tuple(size.whole(0, MAX_SIZE) for size in self["shape"].entries())
        if own != shape:
            self.refuse(f"an array of shape {list(shape)}")
        try:
            raw = base64.b64decode(self["data"].text(2**27).encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            self.refuse("an array in base64")
        if len(raw) != math.prod(shape) * int(kind[2]):
            self.refuse(f"an array of {math.prod(shape):,} numbers")
        found = np.frombuffer(raw, dtype=kind).reshape(shape).astype(np.float64)
        possible = np.isfinite(found) | np.isneginf(found) if logs else np.isfinite(found)
        if not possible.all() or (np.abs(found[np.isfinite(found)]) > LARGEST).any():
            self.refuse("an array of finite numbers")
        return found.astype(np.float32 if kind == "<f4" else np.float64)


def place_in(path: Path) -> FilePlace:
    """The whole of a file as strict JSON."""
    try:
        return FilePlace(strict_json(json_text(path)))
    except TooLargeError:
        raise InputError(
            "it is larger than any watch", argument="path", hint=CURE, settings=[SAVED]
        ) from None
    except NotJSONError as error:
        raise InputError(
            "it is not JSON: {why}",
            argument="path",
            hint=CURE,
            settings=[SAVED],
            why=error.why,
        ) from None
