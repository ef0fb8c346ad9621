"""Settings from `itrust.toml` or `[tool.itrust]` in pyproject.toml; the command line wins.

The nearest one counts, in the current folder or above. Files named in it are relative to it.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itrust._core import InputError, did_you_mean
from itrust.cli.options import BY_NAME, STANDARD, Kind, Option, options_of

NAME, PROJECT = "itrust.toml", "pyproject.toml"
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


def find_settings(folder: Path) -> Settings:
    """The nearest settings, in the folder or above it."""
    for place in (folder, *folder.parents):
        own, project = place / NAME, place / PROJECT
        if own.is_file():
            return Settings(_checked(own, _read(own), folder), own)
        if project.is_file() and "itrust" in project.read_text("utf-8", "replace"):
            found = _read(project).get("tool", {}).get("itrust")
            if found is not None:
                return Settings(_checked(project, found, folder), project)
    return Settings({})


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(
            "{file} cannot be read: {reason}", file=path.name, details={"reason": str(error)}
        ) from None


def _checked(path: Path, found: Any, folder: Path) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InputError("[tool.itrust] must be a table, not {value}", file=path.name, value=found)
    return {key.replace("_", "-"): _value(path, key, value, folder) for key, value in found.items()}


def _value(path: Path, key: str, value: Any, folder: Path) -> Any:
    """The value of a setting as its option takes it; files as they are called from the folder."""
    option = BY_NAME.get(key.replace("_", "-"))
    if option is None:
        raise InputError(
            "there is no setting {value}; {guess}",
            file=path.name,
            value=key,
            details={"guess": did_you_mean(key, [*BY_NAME])},
        )
    if option.kind is Kind.SEVERAL and not isinstance(value, list):
        value = [value]
    if option.name == "on" and not value:
        value = [""]  # no covariates, which is not the same as not to say which
    if option.name == "na-values":
        value = [part if isinstance(part, str | bool) else str(part) for part in value]
    if option.name == "positive" and isinstance(value, bool | int | float):
        value = str(value).lower() if isinstance(value, bool) else str(value)
    if option.bare and isinstance(value, bool):
        return option.bare if value else None
    if not _fits(option, value):
        kind = (
            f"true, false or one of {', '.join(option.choices)}"
            if option.bare
            else option.kind.value
        )
        raise InputError(
            f"{{key}} must be {kind}, not {{value}}",
            file=path.name,
            value=value,
            details={"key": key},
        )
    if not option.is_file or value == STANDARD or os.path.isabs(value):
        return value
    return os.path.relpath(path.parent / value, folder)


def _fits(option: Option, value: Any) -> bool:
    if option.kind is Kind.SEVERAL:
        return all(isinstance(part, str) for part in value)
    if option.kind is Kind.SWITCH or isinstance(value, bool):
        return option.kind is Kind.SWITCH and isinstance(value, bool)
    if option.bare:
        return value in option.choices
    return isinstance(value, TYPES.get(option.kind, str))
