"""Where rows are: the files, folders and patterns that a user names, and the files they mean."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itrust._core import InputError
from itrust.data.formats import ending_of, format_of, formats_in_words, known_format, split_table

HIDDEN = (".", "_", "~$")


@dataclass(frozen=True)
class Location:
    """A file, a folder or a pattern, and the table that is named behind it."""

    text: str
    table: str | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Location:
        """The location that a path names."""
        text = os.path.expanduser(os.fspath(path))
        location, table = split_table(text)
        return cls(text if table is None else str(location), table)

    @property
    def is_file(self) -> bool:
        """Whether it is one file, so that no other can appear there."""
        return os.path.isfile(self.text) and (
            format_of(Path(self.text)) is not None or not glob.has_magic(self.text)
        )

    @property
    def base(self) -> Path:
        """The folder below which names of folders may differ: that before the first wildcard.

        >>> str(Location("runs/year=20*/*.csv").base), str(Location("*.csv").base)
        ('runs', '.')
        """
        if os.path.exists(self.text):
            return Path(self.text)
        parts = Path(self.text).parts
        fixed = next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        return Path(*parts[:fixed])

    def files(self) -> list[Path]:
        """The files, in order; refuses a folder or pattern that means files of several formats."""
        found = self.found()
        if not self.is_file:
            _refuse_several_formats(self.text, found)
        return [Path(f"{file}::{self.table}") if self.table is not None else file for file in found]

    def found(self) -> list[Path]:
        """The files, in order, whatever their formats."""
        if self.is_file:
            known_format(Path(self.text))
            return [Path(self.text)]
        if os.path.isdir(self.text):
            found = _within(Path(self.text))
            if not found:
                raise InputError(
                    f"the folder {{file}} holds no {formats_in_words()} file", file=self.text
                )
            return found
        if not glob.has_magic(self.text):
            raise InputError("there is no file {value}", argument="path", value=self.text)
        named = sorted(Path(name) for name in glob.glob(self.text, recursive=True))
        if not named:
            raise InputError("no file matches {value}", argument="path", value=self.text)
        return [file for one in named for file in Location(str(one)).found()]


def _within(folder: Path) -> list[Path]:
    """The files of all known formats in a folder, at any depth, without hidden ones."""
    return sorted(
        file
        for file in folder.rglob("*")
        if (kind := format_of(file))
        and ending_of(file) not in kind.named_only
        and not any(part.startswith(HIDDEN) for part in file.relative_to(folder).parts)
        and file.is_file()
    )


def _refuse_several_formats(location: str, files: list[Path]) -> None:
    """Raise on two formats: one is often made from the other, and rows would count twice."""
    formats = sorted({known_format(file).title for file in files})
    if len(formats) > 1:
        raise InputError(
            f"{{file}} holds files of several formats, {' and '.join(formats)}; name those of "
            f"one, such as '*{ending_of(files[0])}'",
            file=location,
        )


def named_locations(path: Any) -> list[Location]:
    """The locations that a path, a pattern, a folder or a list of these names."""
    if isinstance(path, list | tuple):
        if not path:
            raise InputError("the list of files is empty", argument="path")
        return [location for one in path for location in named_locations(one)]
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"scan takes paths, not a {type(path).__name__}; frames go to Sample", argument="path"
        )
    return [Location.of(path)]
