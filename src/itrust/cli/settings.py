"""Settings from `itrust.toml` or `[tool.itrust]` in pyproject.toml; the command line wins.

The nearest file counts. Files named in it are relative to it, and lie in its folder or below it: a
file that came with other files has no say in what else is read and written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itrust._core import InputError, did_you_mean
from itrust.cli.options import BY_NAME, STANDARD, Kind, Option, options_of
from itrust.cli.settings_files import (
    NAME,
    PROJECT,
    folders,
    found_table,
    read_table,
    refused,
    shown_path,
)

__all__ = ["NAME", "PROJECT", "Settings", "current_settings", "find_settings"]
WITHOUT = "none"  # in place of a file
TYPES: dict[Kind, Any] = {Kind.NUMBER: (int, float), Kind.COUNT: int}  # the others are text


@dataclass(frozen=True)
class Settings:
    """Values by option, and the file they stand in, if there is one."""

    values: dict[str, Any]
    path: Path | None = None

    def defaults(self, command: str) -> dict[str, Any]:
        """Those that a command takes, by the names of its parameters."""
        known = options_of(command)
        return {o.key: self.values[o.name] for o in known if o.name in self.values}

    def announcement(self, command: str, typed: frozenset[str]) -> list[str]:
        """What to say of the file: that it is read, and which options come from it."""
        if self.path is None:
            return []
        used = [o.name for o in options_of(command) if o.name in self.values and o.key not in typed]
        return [f"settings from {shown_path(self.path)}: {', '.join(used) or 'none is used'}"]


def current_settings(named: str | None) -> Settings:
    """The settings of the file that was named, or else the nearest ones."""
    if named == WITHOUT:
        return Settings({})
    if named is not None:
        path = Path(os.path.expanduser(named))
        return Settings(_checked(path, read_table(path)), path)
    try:
        here = Path.cwd()
    except OSError as error:
        raise InputError(
            "the current folder cannot be read: {reason}", details={"reason": error.strerror}
        ) from None
    return find_settings(here)


def find_settings(folder: Path) -> Settings:
    """The nearest settings, in the folder or above it."""
    for place in folders(folder):
        found = found_table(place, folder)
        if found is not None:
            path, table = found
            return Settings(_checked(path, table), path)
    return Settings({})


def _checked(path: Path, found: dict[str, Any]) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for key, value in found.items():
        name = key.replace("_", "-")
        if name in checked:
            raise refused(path, "{value} stands there twice", value=name)
        checked[name] = _value(path, key, value)
    return checked


def _value(path: Path, key: str, value: Any) -> Any:
    """The value of a setting as its option takes it; files as they are called from here."""
    option = BY_NAME.get(key.replace("_", "-"))
    if option is None:
        raise refused(
            path,
            "there is no setting {value}; {guess}",
            value=key,
            details={"guess": did_you_mean(key, [*BY_NAME])},
        )
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
        kind = (
            f"true, false or one of {', '.join(option.choices)}"
            if option.bare
            else option.kind.value
        )
        raise refused(
            path, f"{{key}} must be {kind}, not {{value}}", value=value, details={"key": key}
        )
    return _placed(path, option, value) if option.is_file and value != STANDARD else value


def _as_text(path: Path, key: str, value: Any) -> Any:
    """A value of a column as it would be typed; what is no single value stays as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return value if isinstance(value, list | dict) else str(value)
    except ValueError:  # of Python's limit on digits
        raise refused(path, "{key} has too many digits", details={"key": key}) from None


def _placed(path: Path, option: Option, value: str) -> str:
    """A file that settings name, which lies in their folder or below it."""
    if not value or "\0" in value:
        raise refused(
            path, f"{option.name} must be {option.kind.value}, not {{value}}", value=value
        )
    folder = Path(os.path.realpath(path.parent))
    place = Path(os.path.realpath(folder / value))
    if value.startswith("~") or not place.is_relative_to(folder):
        problem = "lies outside the folder of the settings"
    elif option.kind is Kind.WRITTEN and _is_hidden(place.relative_to(folder)):
        problem = "is a hidden file or in a hidden folder"
    else:
        as_folder = option.kind is Kind.WRITTEN and os.path.basename(value) in ("", ".")
        # Not as it is written: `..` behind a link leads elsewhere.
        return os.path.relpath(place) + (os.sep if as_folder else "")
    raise refused(
        path,
        f"{option.name} = {{value}} {problem}; name it on the command line instead ({option.flag})",
        value=value,
    )


def _is_hidden(place: Path) -> bool:
    return any(part.startswith(".") for part in place.parts)


def _fits(option: Option, value: Any) -> bool:
    if option.kind is Kind.SEVERAL:
        return all(isinstance(part, str) for part in value)
    if option.kind is Kind.SWITCH or isinstance(value, bool):
        return option.kind is Kind.SWITCH and isinstance(value, bool)
    if option.bare:
        return value in option.choices
    return isinstance(value, TYPES.get(option.kind, str))
