"""Output files: places are checked before the work."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from itrust._core import InputError, counted
from itrust.cli.options import BY_KEY, Kind, Options, options_of
from itrust.cli.streams import results

if TYPE_CHECKING:
    from itrust.data import FormulaCells

MAX_SHOWN = 200  # characters of a path
MAX_LINKS = 40  # of one path, as systems follow them
DESCRIPTOR = re.compile(r"/dev/(fd/.*|std(in|out|err))|/proc/.*/fd/.*", re.DOTALL)


def refuse_standard_output(options: Options) -> None:
    """Raise on `-` where it is of use to nobody: a page among the results."""
    for option in options_of(options.command):
        wrong = option.kind is Kind.WRITTEN and not option.streams
        if wrong and options.on_standard_output(option.key):
            raise InputError(
                "{argument} cannot go to standard output; name a file", argument=option.key
            )


def refuse_bad_places(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Raise unless every output can be written and destroys nothing that is read."""
    read = {os.path.realpath(path) for path in inputs if path is not None}
    seen: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        about, place = _about(option, path)
        if _is_descriptor(path):
            raise _refused(f"{option}:", path, _other_than_descriptor(option))
        if place in read:
            raise _refused(option, path, "would overwrite {path}, which is read")
        if place in seen:
            raise _refused(f"{seen[place]} and {option}", path, "are the same file, {path}")
        seen[place] = option
        _refuse_unwritable(option, path, about)


def cells_notes(cells: FormulaCells | None, name: str) -> list[str]:
    """What became of cells that a spreadsheet would take for formulas."""
    if cells is None:
        return []
    told = f"{counted(cells.count, 'cell')} of {name}"
    if cells.quotes:
        return [f"{told} quoted: text that a spreadsheet would take for a formula"]
    if not cells.count:
        return []
    return [f"a spreadsheet would take the text of {told} for a formula; --safe-cells quotes it"]


def _about(option: str, path: Path) -> tuple[os.stat_result | None, str]:
    """What the system knows of a file, None where there is none yet, and where it really is."""
    try:
        place = os.path.realpath(path)
        try:
            return os.stat(path), place
        except (FileNotFoundError, NotADirectoryError):
            return None, place
    except OSError as error:  # a loop of links, a name that is too long, a folder that is gone
        raise _refused(
            f"{option}:", path, "{path} cannot be written: {reason}", reason=error.strerror
        ) from None


def _refuse_unwritable(option: str, path: Path, about: os.stat_result | None) -> None:
    if about is not None and stat.S_ISDIR(about.st_mode):
        raise _refused(f"{option}:", path, "{path} is a folder; name a file in it")
    folder = path.parent if not path.is_symlink() else Path(os.path.realpath(path)).parent
    told = _cut(repr(str(folder)))
    if not os.path.isdir(folder):
        raise _refused(f"{option}:", path, "there is no folder {folder}", folder=told)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refused(f"{option}:", path, "the folder {folder} cannot be written to", folder=told)
    if about is not None and not stat.S_ISREG(about.st_mode):
        raise _refused(f"{option}:", path, "{path} is not an ordinary file")
    for name, stream in {"output": results(), "error": sys.stderr}.items():
        if about is not None and _goes_to(stream, about):
            raise _refused(
                option, path, f"is where standard {name} goes, {{path}}; name another file"
            )


def _goes_to(stream: TextIO, about: os.stat_result) -> bool:
    try:
        return os.path.samestat(about, os.fstat(stream.fileno()))
    except (OSError, ValueError):  # a stream that is no file
        return False


def _is_descriptor(path: Path) -> bool:
    """Whether a path names a descriptor: number 1 leads elsewhere than the shell was told."""
    place = str(path)
    for _ in range(MAX_LINKS):
        folder, name = os.path.split(place)
        place = os.path.join(os.path.realpath(folder), name)
        if DESCRIPTOR.fullmatch(place):
            return True
        if not os.path.islink(place):
            return False
        place = os.path.join(os.path.dirname(place), os.readlink(place))
    return False


def _other_than_descriptor(option: str) -> str:
    named = BY_KEY[option.removeprefix("--")]
    cure = "name - for standard output" if named.streams else "name a file"
    return f"{cure}, not {{path}}"


def _refused(option: str, path: Path, problem: str, **details: object) -> InputError:
    return InputError(f"{option} {problem}", details={"path": _cut(str(path)), **details})


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
