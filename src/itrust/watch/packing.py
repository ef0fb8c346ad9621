"""Arrays, levels, functions and predicates as JSON holds them, to the bit."""

from __future__ import annotations

import base64
import math
from datetime import date, datetime
from typing import Any

import numpy as np

from itrust._core import AnyArray, InputError
from itrust.data import And, Between, Everywhere, Level, Missing, Predicate
from itrust.terms import Absent, Curve, Inside, Is, Slope, Term


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
        details={"kind": type(level).__name__},
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
