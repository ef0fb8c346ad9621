"""Values of a file, each checked where it stands: a file is data of strangers, and never code."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from itrust._core import (
    Code,
    FloatArray,
    InputError,
    NotJSONError,
    TooLargeError,
    json_text,
    shown,
    strict_json,
)

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
            details={"where": self.where, "wanted": wanted, "found": found},
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
                details={"where": self.where, "name": repr(name)},
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
            details={"why": error.why},
        ) from None
