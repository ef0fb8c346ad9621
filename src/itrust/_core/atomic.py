"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from itrust._core.errors import InputError

Write = Callable[[Path], object]


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write one file; on failure the old one stays as it was.

    Parameters
    ----------
    path : Path
        Where it goes; its folder must be there.
    content : str or bytes
        Text is written as UTF-8 with plain line ends; what cannot be encoded is spelt out.

    Returns
    -------
    Path
        The same path.
    """
    whole = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    write_all({path: lambda beside: beside.write_bytes(whole)})
    return path


def write_all(outputs: Mapping[Path, Write]) -> None:
    """Write several files beside their places, then move them in; on failure none has changed.

    Parameters
    ----------
    outputs : mapping of Path to callable
        For each file what writes it, given the path to write to.
    """
    beside = {path: _beside(path) for path in outputs}
    try:
        for path, write in outputs.items():
            write(beside[path])
        for path, temporary in beside.items():
            _keep_mode(path, temporary)
            os.replace(temporary, path.resolve())  # a link stays a link
    except OSError as error:
        where = next((path for path, other in beside.items() if str(other) == error.filename), None)
        raise InputError(
            "{file} cannot be written: {reason}",
            file=str(where or next(iter(outputs))),
            details={"reason": error.strerror or str(error)},
        ) from error
    finally:
        for temporary in beside.values():
            with suppress(OSError):
                temporary.unlink()  # gone already where all went well


def _beside(path: Path) -> Path:
    """A name in the same folder, so that the move is one step; the ending stays, as .csv.gz."""
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    return path.resolve().with_name(f".{secrets.token_hex(6)}{ending}")


def _keep_mode(path: Path, temporary: Path) -> None:
    if path.exists():
        temporary.chmod(path.stat().st_mode & 0o777)
