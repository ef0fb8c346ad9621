"""Settings from `itrust.toml` or `[tool.itrust]` in pyproject.toml; the command line wins.

The nearest one counts, in the current folder or above. Files named in it are relative to it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itrust._core import InputError, did_you_mean

NAME, PROJECT = "itrust.toml", "pyproject.toml"
TEXT, NUMBER, COUNT, SWITCH, SEVERAL = "text", "a number", "a whole number", "true or false", "list"
KINDS = {
    "label": TEXT,
    "prob": SEVERAL,
    "on": SEVERAL,
    "weights": TEXT,
    "cluster": TEXT,
    "positive": TEXT,
    "missing": TEXT,
    "task": SEVERAL,
    "alpha": NUMBER,
    "tolerance": NUMBER,
    "draws": COUNT,
    "seed": COUNT,
    "min-cell": COUNT,
    "report": TEXT,
    "json": TEXT,
    "junit": TEXT,
    "summary": TEXT,
    "repair": TEXT,
    "method": TEXT,
    "apply": TEXT,
    "out": TEXT,
    "column": TEXT,
    "save": TEXT,
    "load": TEXT,
    "gate": SWITCH,
    "quiet": SWITCH,
}
FILES = ("report", "json", "junit", "summary", "repair", "apply", "out", "save", "load")
STANDARD = "-"  # a stream, in no folder


@dataclass(frozen=True)
class Settings:
    """Values by option, and the file they stand in, if there is one."""

    values: dict[str, Any]
    path: Path | None = None

    def defaults(self, names: Sequence[str]) -> dict[str, Any]:
        """Those that a command knows, by the names of its parameters."""
        found = {name.replace("-", "_"): value for name, value in self.values.items()}
        return {name: value for name, value in found.items() if name in names}


def find_settings(folder: Path) -> Settings:
    """The nearest settings, in the folder or above it."""
    for place in (folder, *folder.parents):
        own, project = place / NAME, place / PROJECT
        if own.is_file():
            return Settings(_checked(own, _read(own)), own)
        if project.is_file() and "itrust" in project.read_text("utf-8", "replace"):
            found = _read(project).get("tool", {}).get("itrust")
            if found is not None:
                return Settings(_checked(project, found), project)
    return Settings({})


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path.name} cannot be read: {error}") from None


def _checked(path: Path, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InputError(f"{path.name}: [tool.itrust] must be a table, not {found!r}")
    return {_known(path, key): _value(path, key, value) for key, value in found.items()}


def _known(path: Path, key: str) -> str:
    name = key.replace("_", "-")
    if name not in KINDS:
        raise InputError(f"{path.name}: there is no setting {key!r}; {did_you_mean(key, [*KINDS])}")
    return name


def _value(path: Path, key: str, value: Any) -> Any:
    name = key.replace("_", "-")
    kind = KINDS[name]
    if kind == SEVERAL:
        value = value if isinstance(value, list) else [value]
        if not all(isinstance(part, str) for part in value):
            raise InputError(f"{path.name}: {key} must be text or a list of texts, not {value!r}")
        return value
    if name == "positive" and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not _fits(kind, value):
        raise InputError(f"{path.name}: {key} must be {kind}, not {value!r}")
    return str(path.parent / value) if name in FILES and value != STANDARD else value


def _fits(kind: str, value: Any) -> bool:
    if kind == SWITCH or isinstance(value, bool):
        return kind == SWITCH and isinstance(value, bool)
    types = {TEXT: str, COUNT: int, NUMBER: (int, float)}
    return isinstance(value, types[kind])  # type: ignore[arg-type]
