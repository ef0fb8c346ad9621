"""Files that are written whole, beside their places first, then moved in; and strict JSON.

Strict: of bounded size, no entry twice, no NaN or Infinity, no numbers that overflow.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

from itrust._core.errors import InputError
from itrust._core.text import shown

Write = Callable[[Path], object]
MAX_JSON_BYTES = 2**26  # 64 MB; audits and fits of 500,000 rows write less than 1 MB
MAX_ENDING = 32  # characters; longer ones are no formats


def cache_folder() -> Path:
    """The user's folder for data sets and the compiled template of the page."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("itrust"))


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write one file; on failure the old one stays as it was."""
    write_all({path: writer_of(lambda: content)})
    return path


def writer_of(make: Callable[[], str | bytes]) -> Write:
    """What makes a text or bytes and writes it, for `write_all`."""

    def write(path: Path) -> None:
        content = make()
        whole = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        path.write_bytes(whole)

    return write


def write_all(outputs: Mapping[Path, Write]) -> None:
    """Write all files beside their places, then move them in, one after the other.

    Whatever happens, each file is the old one or the new one, and none is moved in before all are
    written. Temporary files are removed; a process that is killed leaves them as `.itrust-...`.
    """
    places = {path: _place(path) for path in outputs}
    temporary = {path: _beside(place) for path, place in places.items()}
    try:
        for path, write in outputs.items():
            with _in_one_sentence(path):
                _write(temporary[path], places[path], write)
        for path, place in places.items():
            with _in_one_sentence(path):
                os.replace(temporary[path], place)
    finally:
        for left in temporary.values():
            with suppress(OSError):  # moved in, or never made
                left.unlink()


def _place(path: Path) -> Path:
    """The file that a path leads to: a link stays a link."""
    place = Path(os.path.realpath(path))
    with suppress(OSError):  # not there, or not to be reached, which is told when it is written
        if not stat.S_ISREG(place.lstat().st_mode):
            raise InputError("{file} is not an ordinary file", file=str(path))
    return place


def _beside(place: Path) -> Path:
    """A new name in the same folder, with the same ending, by which formats are known."""
    suffixes = place.suffixes
    ending = "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])
    known = ending if len(ending) <= MAX_ENDING else ""
    return place.with_name(f".itrust-{secrets.token_hex(8)}{known}")


def _write(temporary: Path, place: Path, write: Write) -> None:
    """Write a file to disk, with the mode and, if possible, the owner of the one in its place."""
    try:
        old = place.stat()
    except FileNotFoundError:
        old = None
    mode = 0o666 if old is None else 0o600  # the umask has its say; or until it is known better
    opened = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
    try:
        write(temporary)
        if old is not None:
            _take_over(temporary, old)
        os.fsync(opened)
    finally:
        os.close(opened)


def _take_over(path: Path, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if hasattr(os, "chown"):  # not so on Windows
        for owner in (old.st_uid, -1):
            with suppress(OSError):
                os.chown(path, owner, old.st_gid)
                break
        else:  # its group is another one, which gets what all others get
            mode &= 0o707 | (mode & 0o007) << 3
    with suppress(PermissionError):  # file systems without modes
        path.chmod(mode)


@contextmanager
def _in_one_sentence(path: Path) -> Iterator[None]:
    """Say what the system has against a file."""
    try:
        yield
    except OSError as error:
        raise InputError(
            "{file} cannot be written: {reason}",
            file=str(path),
            reason=error.strerror or str(error),
        ) from error


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
            reason=error.strerror,
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
