"""Strict JSON of bounded size: no entry twice, no NaN or Infinity, no numbers that overflow."""

from __future__ import annotations

import json
import math
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from itrust._core.errors import InputError
from itrust._core.text import shown

MAX_JSON_BYTES = 2**26  # 64 MB; audits and fits of 500,000 rows write less than 1 MB


class NotJSONError(ValueError):
    """A text that is no JSON, or (`is_damaged`) says what no file of ours says."""

    def __init__(self, why: str, *, is_damaged: bool = False) -> None:
        super().__init__(why)
        self.why, self.is_damaged = why, is_damaged


class TooLargeError(ValueError):
    """A file has more than `MAX_JSON_BYTES` bytes."""


def json_text(path: Path | BinaryIO) -> str:
    """The text of a file, or of what is open already; at most `MAX_JSON_BYTES` bytes of it."""
    try:
        with path.open("rb") if isinstance(path, Path) else nullcontext(path) as file:
            raw = file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise InputError(
            "cannot read {file}: {reason}",
            argument="path",
            file=str(path) if isinstance(path, Path) else "standard input",
            details={"reason": error.strerror},
        ) from None
    if len(raw) > MAX_JSON_BYTES:
        raise TooLargeError
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJSONError(f"it is not UTF-8 text at byte {error.start + 1:,}") from None


def strict_json(text: str) -> Any:
    """What strict JSON says; otherwise a `NotJSONError`."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_once_each,
            parse_constant=_refuse_constant,
            parse_float=lambda digits: float(_finite(digits)),
            parse_int=lambda digits: int(_finite(digits)),
        )
    except RecursionError:
        raise NotJSONError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        why = f"{error.msg[0].lower()}{error.msg[1:]} in line {error.lineno:,}"
        raise NotJSONError(why) from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise NotJSONError(f"the entry {shown(name)} stands there twice", is_damaged=True)
    return entries


def _refuse_constant(word: str) -> float:
    raise NotJSONError(f"{word} is no number", is_damaged=True)


def _finite(digits: str) -> str:
    if not math.isfinite(float(digits)):
        start = f"{digits[:30]}{'...' * (len(digits) > 30)}"
        raise NotJSONError(f"the number {start} cannot be held", is_damaged=True)
    return digits
