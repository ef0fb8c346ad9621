"""Files are replaced whole, and several of them together, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from itrust._core.errors import InputError
from itrust._core.interrupts import Interrupts
from itrust._core.keeper import Keeper
from itrust._core.recovery import Locks, undo_interrupted
from itrust._core.replacement import ENDING, Replacement, Target, create, discard, replace_all

Write = Callable[[Path], object]
TRIES = 3  # somebody who tidies up may take a lock for one that is left over, in its first moment


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
    """Write several files beside their places, then move them in together.

    Whatever happens on the way, there are the files of before or all of the new ones. Where the
    process is killed, a child removes what was begun or finishes; where that is killed as well, or
    the power fails, the next call that writes to one of the folders brings the old files back.
    """
    if not outputs:
        return
    targets = tuple(_target(path) for path in outputs)
    _refuse_same(targets, list(outputs))
    for settled in undo_interrupted(target.folder for target in targets):
        if settled.matters:
            warnings.warn(settled.note, RuntimeWarning, stacklevel=2)
    with Interrupts() as interrupts:
        change = _Change(targets)
        try:
            with _told_of(list(outputs), change):
                change.begin()
            for number, (path, write) in enumerate(outputs.items()):
                with _told_of([path], change):
                    change.write(number, write, interrupts)
            with interrupts.allowed():
                pass  # the last moment to stop
            with _told_of(list(outputs), change):
                change.replace()
        finally:
            change.end()


class _Change:
    """A replacement at work, with its locks and its keeper."""

    def __init__(self, targets: tuple[Target, ...]) -> None:
        self.what = Replacement("", targets, False)
        self._locks = Locks()
        self._keeper: Keeper | None = None

    def begin(self) -> None:
        """Show that somebody is at work; from here on `end` has to be called."""
        for _ in range(TRIES):
            self.what = self.what._replace(token=secrets.token_hex(8))
            if self._locks.take(self.what):
                self.what = self.what._replace(lasting=True)
                break
            discard(self.what)
            self._locks.release()
        # Without a journal nobody could tell what a keeper that is killed has done.
        if self.what.lasting and len(self.what.targets) > 1:
            self._keeper = Keeper.start(self.what, self._locks.held)

    def write(self, number: int, write: Write, interrupts: Interrupts) -> None:
        """Write a file beside its place, with the mode and, if possible, the owner of the old."""
        path = self.what.temporary(number)
        opened = create(path)
        try:
            with interrupts.allowed():
                write(Path(path))
            if not os.path.samestat(os.fstat(opened), os.lstat(path)):
                raise OSError(errno.EEXIST, "its temporary file was replaced by another", path)
            self._take_over(opened, number)
            os.fsync(opened)
        finally:
            os.close(opened)

    def _take_over(self, opened: int, number: int) -> None:
        try:
            old = os.lstat(self.what.place(number))
        except FileNotFoundError:
            _set_mode(opened, self._usual_mode(self.what.targets[number].folder))
            return
        mode = stat.S_IMODE(old.st_mode) & 0o777
        if not _give_to(opened, old):  # its group is another one: it gets what all others get
            mode = mode & 0o707 | (mode & 0o007) << 3 & mode
        _set_mode(opened, mode)

    def _usual_mode(self, folder: str) -> int:
        """The mode of new files, which the umask and the folder decide."""
        path = self.what.beside(folder, ".mode")
        opened = create(path, 0o666)
        try:
            return stat.S_IMODE(os.fstat(opened).st_mode)
        finally:
            os.close(opened)
            os.unlink(path)

    def replace(self) -> None:
        """Move all files in."""
        if self._keeper is None or not self._keeper.replace_all(self.what):
            replace_all(self.what)

    def end(self) -> None:
        """Remove what is left."""
        if self._keeper is not None:
            self._keeper.end()
        discard(self.what)
        self._locks.release()


def _target(path: Path) -> Target:
    """The file that a path leads to: a link stays a link."""
    place = os.path.realpath(path)
    try:
        ordinary = stat.S_ISREG(os.lstat(place).st_mode)
    except OSError:  # not there, or not to be reached, which is told when it is written
        ordinary = True
    if not ordinary:
        raise InputError("{file} is not an ordinary file", file=str(path))
    folder, name = os.path.split(place)
    suffixes = Path(name).suffixes
    ending = "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])
    return Target(folder, name, ending if ENDING.fullmatch(ending) else "")


def _refuse_same(targets: Sequence[Target], paths: Sequence[Path]) -> None:
    for number, target in enumerate(targets):
        first = targets.index(target)
        if first < number:
            raise InputError(
                "{file} and {other} are the same file",
                file=str(paths[first]),
                details={"other": str(paths[number])},
            )


def _give_to(opened: int, old: os.stat_result) -> bool:
    """Give a file to the owner of another, as far as that is allowed; whether the group is."""
    now = os.fstat(opened)
    for owner in (old.st_uid, -1):
        if (now.st_uid, now.st_gid) == (old.st_uid, old.st_gid):
            return True
        with suppress(OSError):
            os.fchown(opened, owner, old.st_gid)
        now = os.fstat(opened)
    return now.st_gid == old.st_gid


def _set_mode(opened: int, mode: int) -> None:
    if hasattr(os, "fchmod"):  # not so on Windows
        with suppress(PermissionError):  # file systems without modes
            os.fchmod(opened, mode)


@contextmanager
def _told_of(paths: Sequence[Path], change: _Change) -> Iterator[None]:
    """Tell what the system says against a file in one sentence."""
    try:
        yield
    except OSError as error:
        named = {}
        if len(paths) > 1:
            for number, path in enumerate(paths):
                named[change.what.temporary(number)] = named[change.what.place(number)] = path
        raise InputError(
            "{file} cannot be written: {reason}",
            file=str(named.get(str(error.filename), paths[0])),
            details={"reason": error.strerror or str(error)},
        ) from error
