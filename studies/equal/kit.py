"""What a row of the comparison is, and how it is measured.

A row is a function that returns our number and theirs, or two arrays of numbers. To add one, write
such a function in a module of this package and put `@row(...)` above it; a new module is named in
`reference.TOPICS`. Packages that are not in the test extra are imported inside the function.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from equal import data

ROUNDING = 1e-12


@dataclass(frozen=True)
class Row:
    """One number, on one set of data, by one other package.

    `within` is how far ours may be from theirs, as a share of theirs; None where the definitions
    differ, and then `note` says how.
    """

    topic: str
    what: str
    package: str
    on: str
    within: float | None
    note: str
    pair: Callable[..., tuple[Any, Any]]

    def measure(self) -> dict[str, Any]:
        """Both numbers where they are farthest apart, as shares of theirs, and how far that is."""
        given = () if self.on == data.NONE else (data.SETS[self.on](),)
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):  # of other packages
            warnings.simplefilter("ignore")
            ours, theirs = (np.ravel(np.asarray(own, dtype=float)) for own in self.pair(*given))
        if ours.shape != theirs.shape:
            raise ValueError(f"{self.what}: {ours.size} numbers of ours, {theirs.size} of theirs")
        apart = np.abs(ours - theirs)
        relative = apart / np.where(np.abs(theirs) > ROUNDING, np.abs(theirs), 1.0)
        worst = int(np.argmax(relative))
        return {
            "topic": self.topic,
            "what": self.what,
            "package": self.package,
            "version": version(self.package),
            "data": self.on,
            "numbers": ours.size,
            "ours": float(ours[worst]),
            "theirs": float(theirs[worst]),
            "difference": float(apart.max()),
            "relative": float(relative[worst]),
            "within": self.within,
            "note": self.note,
        }


ROWS: list[Row] = []


def row(
    what: str,
    package: str,
    *,
    on: tuple[str, ...] = (data.SURVEY, data.COMPAS),
    within: float | None = ROUNDING,
    note: str = "",
) -> Callable[[Callable[..., tuple[Any, Any]]], Callable[..., tuple[Any, Any]]]:
    """Make a row of the function below, one for each set of data."""

    def keep(pair: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        topic = pair.__module__.rpartition(".")[2]
        ROWS.extend(Row(topic, what, package, name, within, note, pair) for name in on)
        return pair

    return keep


def agrees(measured: dict[str, Any]) -> bool:
    """Whether ours is as near to theirs as it should be."""
    return measured["within"] is None or measured["relative"] <= measured["within"]
