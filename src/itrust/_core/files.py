"""Files that are written whole, beside their places first, then moved in."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from itrust._core.errors import InputError

Write = Callable[[Path], object]
MAX_ENDING = 32  # characters; longer ones are no formats


def cache_folder() -> Path:
    """The user's folder for data sets."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("itrust"))


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write one file; on failure the old one stays as it was."""
    write_all({path: writer_of(lambda: content)})
    return path


def writer_of(make: Callable[[], str | bytes]) -> Write:
    """What makes a text or bytes and writes it, for `write_all`."""

    def write(path: Path) -> None:
        content = make()
        whole = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        path.write_bytes(whole)

    return write


def write_all(outputs: Mapping[Path, Write]) -> None:
    """Write all files beside their places, then move them in, one after the other.

    Whatever happens, each file is the old one or the new one, and none is moved in before all are
    written. Temporary files are removed; a process that is killed leaves them as `.itrust-...`.
    """
    places = {path: _place(path) for path in outputs}
    temporary = {path: _beside(place) for path, place in places.items()}
    try:
        for path, write in outputs.items():
            with _in_one_sentence(path):
                _write(temporary[path], places[path], write)
        for path, place in places.items():
            with _in_one_sentence(path):
                os.replace(temporary[path], place)
    finally:
        for left in temporary.values():
            with suppress(OSError):  # moved in, or never made
                left.unlink()


def _place(path: Path) -> Path:
    """The file that a path leads to: a link stays a link."""
    place = Path(os.path.realpath(path))
    with suppress(OSError):  # not there, or not to be reached, which is told when it is written
        if not stat.S_ISREG(place.lstat().st_mode):
            raise InputError("{file} is not an ordinary file", file=str(path))
    return place


def _beside(place: Path) -> Path:
    """A new name in the same folder, with the same ending, by which formats are known."""
    suffixes = place.suffixes
    ending = "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])
    known = ending if len(ending) <= MAX_ENDING else ""
    return place.with_name(f".itrust-{secrets.token_hex(8)}{known}")


def _write(temporary: Path, place: Path, write: Write) -> None:
    """Write a file to disk, with the mode and, if possible, the owner of the one in its place."""
    try:
        old = place.stat()
    except FileNotFoundError:
        old = None
    mode = 0o666 if old is None else 0o600  # the umask has its say; or until it is known better
    opened = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
    try:
        write(temporary)
        if old is not None:
            _take_over(temporary, old)
        os.fsync(opened)
    finally:
        os.close(opened)


def _take_over(path: Path, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode) & 0o777
    try:
        os.chown(path, old.st_uid, old.st_gid)
    except (OSError, AttributeError):  # not allowed, or Windows: its group is another one
        mode &= 0o707 | (mode & 0o007) << 3  # which gets what all others get
    with suppress(PermissionError):  # file systems without modes
        path.chmod(mode)


@contextmanager
def _in_one_sentence(path: Path) -> Iterator[None]:
    """Say what the system has against a file."""
    try:
        yield
    except OSError as error:
        raise InputError(
            "{file} cannot be written: {reason}",
            file=str(path),
            reason=error.strerror or str(error),
        ) from error
