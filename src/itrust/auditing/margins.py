"""Margins that evidence has to survive before it closes the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

from itrust._core import InputError, did_you_mean

# What a margin is called, the kind of violation, the size that violates nothing, the largest.
NAMES = {
    "odds": ("selection", 1.0, math.inf),
    "label-error": ("label_error", 0.0, 1.0),
    "false-positives": ("false_positives", 0.0, 1.0),
    "false-negatives": ("false_negatives", 0.0, 1.0),
    "tolerance": ("tolerance", 0.0, 1.0),
}


@dataclass(frozen=True)
class Margin:
    """A violation that evidence has to survive.

    Attributes
    ----------
    name : {"odds", "label-error", "false-positives", "false-negatives", "tolerance"}
        What is violated.
    size : float
        By how much.
    """

    name: str
    size: float

    @property
    def kind(self) -> str:
        """The kind of violation, as of `Tipping`."""
        return NAMES[self.name][0]


def as_margins(asked: Mapping[str, float] | None) -> tuple[Margin, ...]:
    """Check the margins that somebody asks for.

    Examples
    --------
    >>> as_margins({"odds": 1.2})
    (Margin(name='odds', size=1.2),)
    """
    if asked is None:
        return ()
    if not isinstance(asked, Mapping) or not asked:
        raise InputError(
            "{argument} must name margins and their sizes, such as dict(odds=1.2), not {value}",
            argument="robust_to",
            value=asked,
        )
    return tuple(_margin(name, size) for name, size in asked.items())


def _margin(name: object, size: object) -> Margin:
    known = str(name).replace("_", "-")
    if known not in NAMES:
        raise InputError(
            "{argument} has no margin {value}",
            argument="robust_to",
            value=name,
            hint=did_you_mean(known, list(NAMES)),
        )
    _, neutral, most = NAMES[known]
    number = float(size) if isinstance(size, Real) and not isinstance(size, bool) else math.nan
    if not neutral < number < most:
        upper = "" if math.isinf(most) else f" and below {most:g}"
        raise InputError(
            "{argument}: {name} must be above {neutral}{upper}, not {value}",
            argument="robust_to",
            value=size,
            details={"name": known, "neutral": f"{neutral:g}", "upper": upper},
        )
    return Margin(known, number)
