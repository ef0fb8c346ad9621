"""Checks of single arguments: each passes a value on or raises one clear sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TypeVar

from itrust._core.errors import InputError
from itrust._core.text import closest, counted, listed

Choice = TypeVar("Choice", bound=str)
MAX_ALPHA = 0.5
ROUNDING = 1e-9


def checked_count(value: object, argument: str, *, at_least: int = 1) -> int:
    """Pass a whole number on; refuse anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < at_least:
        raise _refusal(value, argument, f"be a whole number of at least {at_least}")
    return int(value)


def checked_share(value: object, argument: str, *, one: bool = False) -> float:
    """Pass a number between 0 and 1 on, ends excluded (or 1 as well); refuse anything else."""
    number = _number(value)
    if not (0 < number < 1 or (one and number == 1)):
        where = "above 0 and at most at 1" if one else "between 0 and 1"
        raise _refusal(value, argument, f"lie {where}")
    return number


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


def checked_reach(draws: object, alpha: object, parts: int = 1) -> int:
    """Pass a number of draws on; refuse an alpha that so few draws, for each part, cannot reach."""
    allowed, number = checked_alpha(alpha), checked_count(draws, "draws")
    smallest = parts / (1 + number)
    if allowed < smallest - ROUNDING:
        where = f" in each of {parts} parts of the rows" if parts > 1 else ""
        raise InputError(
            "{argument} {alpha} cannot be reached with {draws}, whose smallest p-value is "
            f"{{smallest}}{where}; take at least {{enough}}",
            argument="alpha",
            value=alpha,
            details={
                "alpha": f"{allowed:g}",
                "draws": counted(number, "draw"),
                "smallest": f"{smallest:.3g}",
                "enough": math.ceil(parts / allowed) - 1,
            },
        )
    return number


def checked_positive(value: object, argument: str) -> float:
    """Pass a finite number above 0 on; refuse anything else."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise _refusal(value, argument, "be a number above 0")
    return number


def checked_finite(value: object, argument: str) -> float:
    """Pass a finite number on; refuse anything else."""
    number = _number(value)
    if not math.isfinite(number):
        raise _refusal(value, argument, "be a finite number")
    return number


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
        details={"choices": listed(choices)},
    )


def _refusal(value: object, argument: str, must: str) -> InputError:
    return InputError(f"{{argument}} must {must}, not {{value}}", argument=argument, value=value)


def _number(value: object) -> float:
    """The value as a number: NaN, which no comparison lets pass, for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf
