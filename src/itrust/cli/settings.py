"""Settings from `itrust.toml` or `[tool.itrust]` in pyproject.toml; the command line wins.

The nearest file counts. Files named in it are relative to it, and lie in its folder or below it: a
file that came with other files has no say in what else is read and written. Whoever can put a file
into a folder above the current one could have a say in every command below it. So the search ends
at the root of a repository, at the home folder and before a folder that everyone may write to, and
a file of another user is refused.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itrust._core import InputError, did_you_mean, first_line
from itrust.cli.options import BY_NAME, STANDARD, Kind, Option, options_of

NAME, PROJECT = "itrust.toml", "pyproject.toml"
WITHOUT = "none"  # in place of a file
REPOSITORY = (".git", ".hg")
ROOT_USER = 0
HAS_OWNERS = hasattr(os, "geteuid")  # not so on Windows
MAX_BYTES = 2**15  # dotted keys take the parser of TOML the square of their parts
CURE = (
    "so its settings are not used; name it with --settings if you trust it, or go without any by \
--settings none"
)
TYPES: dict[Kind, Any] = {Kind.NUMBER: (int, float), Kind.COUNT: int}  # the others are text


@dataclass(frozen=True)
class Settings:
    """Values by option, and the file they stand in, if there is one."""

    values: dict[str, Any]
    path: Path | None = None

    @classmethod
    def of(cls, path: Path, table: dict[str, Any]) -> Settings:
        """What a table of a file says, checked."""
        values: dict[str, Any] = {}
        for key, value in table.items():
            name = key.replace("_", "-")
            if name in values:
                raise refused(path, "{value} stands there twice", value=name)
            values[name] = _value(path, key, value)
        return cls(values, path)

    def defaults(self, command: str) -> dict[str, Any]:
        """Those that a command takes, by the names of its parameters."""
        known = options_of(command)
        return {o.key: self.values[o.name] for o in known if o.name in self.values}

    def announcement(self, command: str, typed: frozenset[str]) -> list[str]:
        """What to say of the file: that it is read, and which options come from it."""
        if self.path is None:
            return []
        used = [o.name for o in options_of(command) if o.name in self.values and o.key not in typed]
        return [f"settings from {_shown(self.path)}: {', '.join(used) or 'none is used'}"]


def current_settings(named: str | None) -> Settings:
    """The settings of the file that was named, or else the nearest ones."""
    if named == WITHOUT:
        return Settings({})
    if named is not None:
        path = Path(os.path.expanduser(named))
        return Settings.of(path, _table(path, _content(path)) or {})
    try:
        here = Path.cwd()
    except OSError as error:
        raise InputError(f"the current folder cannot be read: {error.strerror}") from None
    return find_settings(here)


def find_settings(folder: Path) -> Settings:
    """The nearest settings, in the folder or above it."""
    for place in folders(folder):
        for path in (place / NAME, place / PROJECT):
            if not (os.path.lexists(path) if path.name == NAME else os.path.isfile(path)):
                continue
            content = _content(path)
            if path.name == PROJECT and b"itrust" not in content:
                continue
            if (table := _table(path, content)) is not None:
                _refuse_untrusted(path, folder)
                return Settings.of(path, table)
    return Settings({})


def folders(start: Path) -> Iterator[Path]:
    """The folders in which settings may stand: this one, then those above it up to a border."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for place in (start, *start.parents):
        if place != start and _open_to_all(place):
            return
        yield place
        if place == home or any(os.path.lexists(place / mark) for mark in REPOSITORY):
            return


def _open_to_all(place: Path) -> bool:
    """Whether everyone may put files into a folder; also where nobody can tell."""
    try:
        return HAS_OWNERS and bool(os.stat(place).st_mode & stat.S_IWOTH)
    except OSError:
        return True


def _content(path: Path) -> bytes:
    """The bytes of an ordinary file, within bounds; a pipe is never waited for."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise refused(path, "{file} is no ordinary file, so that it can hold no settings")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    if len(content) > MAX_BYTES:
        raise refused(path, "{file} holds more than {count} bytes, too many", count=MAX_BYTES)
    return content


def _refuse_untrusted(path: Path, start: Path) -> None:
    """Raise on a file, or a link to one, that somebody else could have put there."""
    link, file = os.lstat(path), os.stat(path)
    trusted = {os.geteuid(), ROOT_USER, os.stat(start).st_uid} if HAS_OWNERS else {link.st_uid}
    if not {link.st_uid, file.st_uid} <= trusted:
        raise refused(path, f"{{file}} belongs to another user, {CURE}")
    if HAS_OWNERS and file.st_mode & stat.S_IWOTH:
        raise refused(path, f"everyone may change {{file}}, {CURE}")


def _table(path: Path, content: bytes) -> dict[str, Any] | None:
    """The settings: all of the file, or `[tool.itrust]` of pyproject.toml, if it is there."""
    try:
        table: Any = tomllib.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise _unreadable(path, "it is nested too deeply") from None
    except ValueError as error:  # no UTF-8, no TOML, or more digits than Python reads
        raise _unreadable(path, first_line(error)) from None
    for key in ("tool", "itrust") if path.name == PROJECT else ():
        table = table.get(key, {} if key == "tool" else None)
        if not isinstance(table, dict | None):
            raise refused(path, f"{key!r} must be a table, not {{value}}", value=table)
    return None if table is None else dict(table)


def _shown(path: Path) -> str:
    """A file as it is told: one in the current folder by its name."""
    try:
        here = os.path.samefile(path.parent, os.curdir)
    except OSError:
        here = False
    return os.path.join(os.curdir, path.name) if here else str(path)


def refused(path: Path, problem: str, **fields: Any) -> InputError:
    """An error about a file of settings; `{file}` stands for it, else it opens the sentence."""
    return InputError(problem, file=_shown(path), **fields)


def _unreadable(path: Path, reason: str) -> InputError:
    return refused(path, "{file} cannot be read: {reason}", reason=reason)


def _value(path: Path, key: str, value: Any) -> Any:
    """The value of a setting as its option takes it; files as they are called from here."""
    option = BY_NAME.get(key.replace("_", "-"))
    if option is None:
        problem = f"there is no setting {{value}}; {did_you_mean(key, [*BY_NAME])}"
        raise refused(path, problem, value=key)
    if option.kind is Kind.SEVERAL and not isinstance(value, list):
        value = [value]
    if option.name == "on" and not value:
        value = [""]  # no covariates, which is not the same as not to say which
    if option.name == "na-values":
        value = [part if isinstance(part, bool) else _as_text(path, key, part) for part in value]
    if option.name == "positive":
        value = _as_text(path, key, value)
    if option.bare and isinstance(value, bool):
        return option.bare if value else None
    if not _fits(option, value):
        choices = f"true, false or one of {', '.join(option.choices)}"
        must = choices if option.bare else option.kind.value
        raise refused(path, f"{key} must be {must}, not {{value}}", value=value)
    return _placed(path, option, value) if option.is_file and value != STANDARD else value


def _as_text(path: Path, key: str, value: Any) -> Any:
    """A value of a column as it would be typed; what is no single value stays as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return value if isinstance(value, list | dict) else str(value)
    except ValueError:  # of Python's limit on digits
        raise refused(path, f"{key} has too many digits") from None


def _placed(path: Path, option: Option, value: str) -> str:
    """A file that settings name, which lies in their folder or below it."""
    if not value or "\0" in value:
        problem = f"{option.name} must be {option.kind.value}, not {{value}}"
        raise refused(path, problem, value=value)
    folder = Path(os.path.realpath(path.parent))
    place = Path(os.path.realpath(folder / value))
    is_written = option.kind is Kind.WRITTEN
    if value.startswith("~") or not place.is_relative_to(folder):
        problem = "lies outside the folder of the settings"
    elif is_written and any(part.startswith(".") for part in place.relative_to(folder).parts):
        problem = "is a hidden file or in a hidden folder"
    else:
        as_folder = is_written and os.path.basename(value) in ("", ".")
        # Not as it is written: `..` behind a link leads elsewhere.
        return os.path.relpath(place) + (os.sep if as_folder else "")
    cure = f"name it on the command line instead ({option.flag})"
    raise refused(path, f"{option.name} = {{value}} {problem}; {cure}", value=value)


def _fits(option: Option, value: Any) -> bool:
    if option.kind is Kind.SEVERAL:
        return all(isinstance(part, str) for part in value)
    if option.kind is Kind.SWITCH or isinstance(value, bool):
        return option.kind is Kind.SWITCH and isinstance(value, bool)
    if option.bare:
        return value in option.choices
    return isinstance(value, TYPES.get(option.kind, str))
