"""Strict JSON of bounded size: no entry twice, no NaN or Infinity, no numbers that overflow."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from itrust._core.errors import InputError
from itrust._core.text import shown

MAX_JSON_BYTES = 2**26  # 64 MB; audits and fits of 500,000 rows write less than 1 MB
MAX_DIGITS = 400  # of one number: all that a float has


class NotJSONError(ValueError):
    """A text that is no JSON, or (`is_damaged`) says what no file of ours says."""

    def __init__(self, why: str, *, is_damaged: bool = False) -> None:
        super().__init__(why)
        self.why, self.is_damaged = why, is_damaged


class TooLargeError(ValueError):
    """A file has more than `MAX_JSON_BYTES` bytes."""


def json_text(path: Path | BinaryIO) -> str:
    """The text of a file, or of what is open already; at most `MAX_JSON_BYTES` bytes of it."""
    with _bytes_of(path) as file:
        raw = file.read(MAX_JSON_BYTES + 1)
    if len(raw) > MAX_JSON_BYTES:
        raise TooLargeError
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJSONError(f"it is not UTF-8 text at byte {error.start + 1:,}") from None


@contextmanager
def _bytes_of(path: Path | BinaryIO) -> Iterator[BinaryIO]:
    try:
        if isinstance(path, Path):
            with path.open("rb") as file:
                yield file
        else:
            yield path
    except OSError as error:
        raise InputError(
            "cannot read {file}: {reason}",
            argument="path",
            file=str(path) if isinstance(path, Path) else "standard input",
            details={"reason": error.strerror},
        ) from None


def strict_json(text: str) -> Any:
    """What strict JSON says; otherwise a `NotJSONError`.

    >>> strict_json('{"a": [1, 0.5, null]}')
    {'a': [1, 0.5, None]}
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_once_each,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError:
        raise NotJSONError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        why = f"{error.msg[0].lower()}{error.msg[1:]} in line {error.lineno:,}"
        raise NotJSONError(why) from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _damaged(f"the entry {shown(twice)} stands there twice")
    return found


def _refuse_constant(word: str) -> float:
    raise _damaged(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits) if len(digits) <= MAX_DIGITS else math.inf
    if not math.isfinite(number):
        raise _damaged(f"the number {digits[:30]}{'...' * (len(digits) > 30)} cannot be held")
    return number


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _damaged(f"the number {digits[:30]}... has {len(digits):,} digits")
    return int(digits)


def _damaged(why: str) -> NotJSONError:
    return NotJSONError(why, is_damaged=True)
