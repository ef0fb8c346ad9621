"""Output files: checked before the work, written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from itrust._core import InputError

Write = Callable[[Path], object]


def refuse_bad_places(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Raise unless every output can be written and destroys nothing that is read."""
    read = {path.resolve() for path in inputs}
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        place = path.resolve()
        if place in read:
            raise InputError(f"{option} would overwrite {path}, which is read")
        if place in seen:
            raise InputError(f"{seen[place]} and {option} are the same file, {path}")
        seen[place] = option
        _refuse_unwritable(option, path)


def refuse_standard_output(outputs: Mapping[str, Path | None]) -> None:
    """Raise on `-`: a page among the results would be of use to nobody."""
    for option, path in outputs.items():
        if path == Path("-"):
            raise InputError(f"{option} cannot go to standard output; name a file")


def _refuse_unwritable(option: str, path: Path) -> None:
    folder = path.parent
    if path.is_dir():
        raise InputError(f"{option}: {path} is a folder; name a file in it")
    if not folder.is_dir():
        raise InputError(f"{option}: there is no folder {str(folder)!r}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{option}: the folder {str(folder)!r} cannot be written to")
    if path.exists() and not path.is_file():
        raise InputError(f"{option}: {path} is not an ordinary file")


def write_whole(outputs: Mapping[Path, Write]) -> None:
    """Write all files beside their places, then move them in; on failure none has changed."""
    beside = {path: _beside(path) for path in outputs}
    try:
        for path, write in outputs.items():
            write(beside[path])
        for path, temporary in beside.items():
            _keep_mode(path, temporary)
            os.replace(temporary, path.resolve())  # a link stays a link
    except OSError as error:
        where = getattr(error, "filename", None) or next(iter(outputs))
        raise InputError(f"{where} cannot be written: {error.strerror or error}") from None
    finally:
        for temporary in beside.values():
            with suppress(OSError):
                temporary.unlink()


def _beside(path: Path) -> Path:
    """A name in the same folder, so that the move is one step; the ending stays."""
    return path.resolve().with_name(f".{secrets.token_hex(6)}{path.suffix}")


def _keep_mode(path: Path, temporary: Path) -> None:
    if path.exists():
        temporary.chmod(path.stat().st_mode & 0o777)


def text_writer(text: str) -> Write:
    """Write text as UTF-8 with plain line ends; what cannot be encoded is spelt out."""
    content = text.encode("utf-8", "backslashreplace")
    return lambda path: path.write_bytes(content)
