"""Output files: places are checked before the work."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from itrust._core import InputError, undo_interrupted
from itrust.cli.console import Log
from itrust.cli.options import Kind, Options, options_of


def refuse_standard_output(options: Options) -> None:
    """Raise on `-` where it is of use to nobody: a page among the results."""
    for option in options_of(options.command):
        wrong = option.kind is Kind.WRITTEN and not option.streams
        if wrong and options.on_standard_output(option.key):
            raise InputError(
                "{argument} cannot go to standard output; name a file", argument=option.key
            )


def refuse_bad_places(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Raise unless every output can be written and destroys nothing that is read."""
    read = {os.path.realpath(path) for path in inputs}
    seen: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in read:
            raise _refused(option, path, "would overwrite {path}, which is read")
        if place in seen:
            raise _refused(f"{seen[place]} and {option}", path, "are the same file, {path}")
        seen[place] = option
        _refuse_unwritable(option, path)


def undo_interrupted_writes(outputs: Mapping[str, Path | None], log: Log) -> None:
    """Undo what an earlier run, which was killed, has left half done where this one writes."""
    places = (os.path.realpath(path) for path in outputs.values() if path is not None)
    log.say(*(settled.note for settled in undo_interrupted(map(os.path.dirname, places))))


def _refuse_unwritable(option: str, path: Path) -> None:
    folder = path.parent
    if path.is_dir():
        raise _refused(f"{option}:", path, "{path} is a folder; name a file in it")
    if not folder.is_dir():
        raise _refused(f"{option}:", path, "there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refused(f"{option}:", path, "the folder {folder} cannot be written to")
    if os.path.lexists(place := os.path.realpath(path)) and not os.path.isfile(place):
        raise _refused(f"{option}:", path, "{path} is not an ordinary file")


def _refused(option: str, path: Path, problem: str) -> InputError:
    folder = repr(str(path.parent))
    return InputError(f"{option} {problem}", details={"path": str(path), "folder": folder})
