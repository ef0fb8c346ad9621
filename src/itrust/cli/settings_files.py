"""Where settings are looked for, which files are trusted, and reading them within bounds.

Whoever can put a file into a folder above the current one could have a say in every command below
it. So the search ends at the root of a repository, at the home folder and before a folder that
everyone may write to, and a file of another user is refused.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itrust._core import InputError

NAME, PROJECT = "itrust.toml", "pyproject.toml"
REPOSITORY = (".git", ".hg")
ROOT_USER = 0
MAX_BYTES = 2**18
MAX_PARTS = 100  # of a dotted key; the parser takes time that grows with their square
CURE = "; name it with --settings if you trust it, or go without any by --settings none"
# Texts and comments of TOML, to their ends or to the end of the file: dots in them are no keys.
QUOTED = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+(?:"|$)'
    r"|'[^'\n]*+(?:'|$)"
    r"|\#[^\n]*+",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class _File:
    """A file that was read: its bytes, the users it and a link to it belong to, and its mode."""

    content: bytes
    owners: frozenset[int]
    mode: int


def folders(start: Path) -> Iterator[Path]:
    """The folders in which settings may stand: this one, then those above it up to a border."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for place in (start, *start.parents):
        if place != start and _open_to_all(place):
            return
        yield place
        if place == home or any(os.path.lexists(place / mark) for mark in REPOSITORY):
            return


def read_table(path: Path) -> dict[str, Any]:
    """The settings in a file: all of it, or `[tool.itrust]` of pyproject.toml."""
    found = _parsed(path, _read(path).content)
    return found if path.name != PROJECT else _own_table(path, found) or {}


def found_table(place: Path, start: Path) -> tuple[Path, dict[str, Any]] | None:
    """The settings in a folder, and the file that they stand in; None where there are none."""
    own, project = place / NAME, place / PROJECT
    if os.path.lexists(own):
        file = _read(own)
        _refuse_untrusted(own, file, start)
        return own, _parsed(own, file.content)
    if os.path.isfile(project):
        file = _read(project)
        if b"itrust" not in file.content:
            return None
        table = _own_table(project, _parsed(project, file.content))
        if table is not None:
            _refuse_untrusted(project, file, start)
            return project, table
    return None


def shown_path(path: Path) -> str:
    """A file as it is told: one in the current folder by its name."""
    try:
        here = os.path.samefile(path.parent, os.curdir)
    except OSError:
        here = False
    return os.path.join(os.curdir, path.name) if here else str(path)


def refused(path: Path, problem: str, **fields: Any) -> InputError:
    """An error about a file of settings; `{file}` stands for it, else it opens the sentence."""
    return InputError(problem, file=shown_path(path), **fields)


def _open_to_all(place: Path) -> bool:
    """Whether everyone may put files into a folder; also where nobody can tell."""
    if not hasattr(os, "geteuid"):  # other systems have no such bits
        return False
    try:
        return bool(os.stat(place).st_mode & stat.S_IWOTH)
    except OSError:
        return True


def _read(path: Path) -> _File:
    """Read a file within bounds; a pipe is never waited for."""
    try:
        link = os.lstat(path)
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            about = os.fstat(descriptor)  # of what is read, whatever happens to the name
            if not stat.S_ISREG(about.st_mode):
                raise refused(path, "{file} is no ordinary file, so that it can hold no settings")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    if len(content) > MAX_BYTES:
        raise refused(path, "{file} holds more than {count} bytes, too many", count=MAX_BYTES)
    return _File(content, frozenset((link.st_uid, about.st_uid)), about.st_mode)


def _refuse_untrusted(path: Path, file: _File, start: Path) -> None:
    """Raise on a file that somebody else could have put there."""
    if not hasattr(os, "geteuid"):
        return
    if not file.owners <= {os.geteuid(), ROOT_USER, os.stat(start).st_uid}:
        raise refused(path, f"{{file}} belongs to another user, so its settings are not used{CURE}")
    if file.mode & stat.S_IWOTH:
        raise refused(path, f"everyone may change {{file}}, so its settings are not used{CURE}")


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    try:
        text = content.decode("utf-8-sig")
        _refuse_long_keys(path, text)
        return tomllib.loads(text)
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8 text") from None
    except RecursionError:
        raise _unreadable(path, "it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, str(error)) from None
    except InputError:
        raise
    except ValueError:  # of Python's own limit
        raise _unreadable(path, "a number has too many digits") from None


def _refuse_long_keys(path: Path, text: str) -> None:
    bare = QUOTED.sub("_", text).translate({ord(" "): None, ord("\t"): None})
    if any(word.count(".") >= MAX_PARTS for word in re.split(r"[\n=,\[\]{}]", bare)):
        raise _unreadable(path, f"a key has more than {MAX_PARTS} parts")


def _own_table(path: Path, found: dict[str, Any]) -> dict[str, Any] | None:
    """The table of this command in pyproject.toml."""
    tools = found.get("tool", {})
    if not isinstance(tools, dict):
        raise refused(path, "'tool' must be a table, not {value}", value=tools)
    own = tools.get("itrust")
    if own is not None and not isinstance(own, dict):
        raise refused(path, "[tool.itrust] must be a table, not {value}", value=own)
    return own


def _unreadable(path: Path, reason: str) -> InputError:
    return refused(path, "{file} cannot be read: {reason}", details={"reason": reason})
