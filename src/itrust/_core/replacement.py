"""Several files change places together: what stands on disk meanwhile, and how it is undone.

Names change one after the other, so somebody may be stopped between two of them. Before the first
one changes, the old files get a second name and a journal says which they are. Whoever finds the
journal later brings the old files back; the step that makes the new ones count is its removal.

As a script this is the keeper: a process of its own, which moves the files in when it is told to
and removes what was begun when whoever told it is gone, by SIGKILL or otherwise. It starts in an
interpreter without the package, so only the standard library is imported here.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NamedTuple

try:
    import fcntl

    LOCKS = True
except ImportError:  # no such locks on this system
    LOCKS = False

VERSION = 1
ENDING = re.compile(r"(?:\.[^/\0]{1,31})?")
OURS = re.compile(
    r"\.itrust-([0-9a-f]{16})"
    r"(?:\.lock|\.journal|\.journal-new|\.mode|-[0-9]{1,3}-old|-[0-9]{1,3}(?:\.[^/\0]{1,31})?)"
)
PATIENCE = 10.0  # seconds to wait for others that change files in the same folder
NO_SYNC = {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS}  # folders of some systems
READY, GO, DONE = b"ready\n", b"go\n", b"done\n"

Identity = tuple[int, int, int]


class Target(NamedTuple):
    """A file to be replaced: its folder, free of links, its name and the ending of both."""

    folder: str
    name: str
    ending: str


class Recorded(NamedTuple):
    """Which file is which: the new one, the one in its place, and that one's second name."""

    new: Identity
    old: Identity | None
    backup: Identity | None


class Replacement(NamedTuple):
    """Files that change together."""

    token: str
    targets: tuple[Target, ...]
    lasting: bool

    @property
    def home(self) -> str:
        """The folder of the journal."""
        return self.targets[0].folder

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders, each once."""
        return tuple(dict.fromkeys(target.folder for target in self.targets))

    @property
    def journal(self) -> str:
        """Path of the journal."""
        return self.beside(self.home, ".journal")

    def beside(self, folder: str, rest: str) -> str:
        """Path of something that belongs to this replacement."""
        return os.path.join(folder, f".itrust-{self.token}{rest}")

    def lock(self, folder: str) -> str:
        """Path of the file that is locked while anybody works on this."""
        return self.beside(folder, ".lock")

    def place(self, number: int) -> str:
        """Where a file goes."""
        return os.path.join(self.targets[number].folder, self.targets[number].name)

    def temporary(self, number: int) -> str:
        """Where it is written first: in the same folder, with the same ending."""
        target = self.targets[number]
        return self.beside(target.folder, f"-{number}{target.ending}")

    def backup(self, number: int) -> str:
        """The second name of the file in its place."""
        return self.beside(self.targets[number].folder, f"-{number}-old")

    def kept(self, number: int) -> str:
        """The name of a file that could not be brought back; nobody but its owner removes it."""
        return self.beside(self.targets[number].folder, f"-{number}-kept")


def identity(path: str) -> Identity | None:
    """Inode, size and time of the last change of a file's content; None where there is none."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def replace_all(what: Replacement) -> None:
    """Move all temporary files in, or raise OSError and leave everything as it was."""
    with locked_folders(what.folders):
        if len(what.targets) == 1:  # one step needs no journal
            os.replace(what.temporary(0), what.place(0))
        else:
            _replace_several(what)
    with suppress(OSError):  # done already, and here to stay unless the power fails now
        sync(what.home)


def _replace_several(what: Replacement) -> None:
    known = [_kept(what, number) for number in range(len(what.targets))]
    try:
        if what.lasting:
            _write_journal(what, known)
        for number in range(len(what.targets)):
            os.replace(what.temporary(number), what.place(number))
        for folder in what.folders:
            sync(folder)
        if what.lasting:
            os.unlink(what.journal)
    except BaseException as error:
        left = _undone_or_kept(what, known)
        if left and isinstance(error, OSError):
            raise OSError(error.errno, f"{error.strerror}; {left}", error.filename) from error
        raise


def _kept(what: Replacement, number: int) -> Recorded:
    """Give the file in place a second name."""
    place, backup = what.place(number), what.backup(number)
    new, old = identity(what.temporary(number)), identity(place)
    if new is None:
        raise FileNotFoundError(errno.ENOENT, "its temporary file is gone", place)
    if old is None:
        return Recorded(new, None, None)
    if not stat.S_ISREG(os.lstat(place).st_mode):
        raise OSError(errno.EEXIST, "it is not an ordinary file", place)
    try:
        os.link(place, backup)
    except OSError:  # where files have one name only, or another owner
        import shutil

        os.close(create(backup))  # nobody else may read it before it has the mode of the file
        shutil.copy2(place, backup)
    return Recorded(new, old, identity(backup))


def _write_journal(what: Replacement, known: Sequence[Recorded]) -> None:
    """From its last step on, whoever comes later can undo what follows."""
    files = [
        {
            "folder": "" if target.folder == what.home else target.folder,
            "name": target.name,
            "ending": target.ending,
            **one._asdict(),
        }
        for target, one in zip(what.targets, known, strict=True)
    ]
    text = json.dumps({"version": VERSION, "token": what.token, "files": files})
    fresh = what.beside(what.home, ".journal-new")
    with open(create(fresh), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    for folder in what.folders:  # second names and temporary files, before the journal tells them
        sync(folder)
    os.rename(fresh, what.journal)
    sync(what.home)


def _undone_or_kept(what: Replacement, known: Sequence[Recorded]) -> str:
    try:
        return undo(what, known)
    except OSError:
        if what.lasting:  # the journal stays for the next run
            raise
        return f"undoing it failed{_set_aside(what, known)}"


def undo(what: Replacement, known: Sequence[Recorded]) -> str:
    """Bring the old files back and remove the journal.

    Where somebody has changed one of the files since, none is touched, and the old ones that are
    not in their places are kept.
    """
    found = [identity(what.place(number)) for number in range(len(known))]
    changed = [
        what.targets[number].name
        for number, (one, now) in enumerate(zip(known, found, strict=True))
        if now not in one
        or (now == one.new and one.old is not None and identity(what.backup(number)) != one.backup)
    ]
    left = ""
    if changed:
        names = ", ".join(map(repr, changed))
        left = f"all are left as they are, for {names} changed since{_set_aside(what, known)}"
    else:
        for number, (one, now) in enumerate(zip(known, found, strict=True)):
            if now == one.new and one.old is None:
                os.unlink(what.place(number))
            elif now == one.new:
                os.replace(what.backup(number), what.place(number))
        for folder in what.folders:
            sync(folder)
    with suppress(FileNotFoundError):
        os.unlink(what.journal)
    sync(what.home)
    return left


def _set_aside(what: Replacement, known: Sequence[Recorded]) -> str:
    """Let old files that are not in their places outlast `discard`; where they are."""
    kept = []
    for number, one in enumerate(known):
        backup = what.backup(number)
        if identity(what.place(number)) != one.old and os.path.lexists(backup):
            os.replace(backup, what.kept(number))
        if os.path.lexists(what.kept(number)):  # also by somebody who was stopped since
            kept.append(what.kept(number))
    return f"; what was there before is kept as {', '.join(kept)}" if kept else ""


def discard(what: Replacement) -> None:
    """Remove all that belongs to a replacement, unless there is something to undo first."""
    if os.path.lexists(what.journal):
        return
    rest = [what.beside(folder, ".mode") for folder in what.folders]
    rest.append(what.beside(what.home, ".journal-new"))
    for number in range(len(what.targets)):
        rest += [what.temporary(number), what.backup(number)]
    rest += [what.lock(folder) for folder in what.folders]
    with suppress(OSError):  # while a lock stands, the next run looks for the rest
        for path in rest:
            with suppress(FileNotFoundError):
                os.unlink(path)


def create(path: str, mode: int = 0o600) -> int:
    """Open a new file, which nobody else has made and nobody else may read."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), mode)


def sync(folder: str) -> None:
    """Let the names in a folder outlast a loss of power, where the system knows how."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder to write to and not to read, or one of Windows
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(opened)


@contextmanager
def locked_folders(folders: Sequence[str]) -> Iterator[None]:
    """Change names in these folders alone; sets that others write would mix with ours.

    Who waits too long goes on: anybody who can read a folder could hold such a lock for ever.
    """
    held: list[int] = []
    try:
        for folder in _in_one_order(folders) if LOCKS else ():
            with suppress(OSError):  # folders that cannot be read, systems without locks of folders
                held.append(os.open(folder, os.O_RDONLY))
                _wait_for(held[-1])
        yield
    finally:
        for opened in held:
            os.close(opened)


def _in_one_order(folders: Sequence[str]) -> list[str]:
    """The same for everybody, so that nobody waits in a circle; each folder once, by any name."""
    found = ((os.stat(folder), folder) for folder in folders)
    known = {(one.st_dev, one.st_ino): folder for one, folder in found}
    return [known[key] for key in sorted(known)]


def _wait_for(opened: int) -> None:
    end = time.monotonic() + PATIENCE
    while not take_lock(opened) and time.monotonic() < end:
        time.sleep(0.005)


def take_lock(opened: int) -> bool:
    """Lock an open file, unless somebody else has; other reasons against it are an OSError."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def as_line(what: Replacement) -> bytes:
    """A replacement as a keeper reads it."""
    return json.dumps(what).encode("ascii") + b"\n"


def from_line(line: bytes) -> Replacement:
    """A replacement as `as_line` wrote it."""
    token, targets, lasting = json.loads(line)
    return Replacement(token, tuple(Target(*target) for target in targets), lasting)


def _word(orders: BinaryIO) -> bytes:
    """What is said next; nothing where the other end is gone, also with an answer unread."""
    try:
        return orders.readline()
    except ConnectionResetError:
        return b""


def keep(channel: int) -> None:
    """Do as a keeper does: read a replacement, wait for the word, and move the files in.

    Where the other end closes without a word, all that was begun is removed.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with open(channel, "rb", closefd=False) as orders:
        first = orders.readline()
        if not first.endswith(b"\n"):
            return
        what = from_line(first)
        answer: dict[str, Any] | None = None
        with suppress(BrokenPipeError):
            os.write(channel, READY)
        if _word(orders) == GO:
            try:
                replace_all(what)
            except OSError as error:
                answer = {"errno": error.errno, "why": error.strerror, "file": error.filename}
        discard(what)
        with suppress(BrokenPipeError):  # nobody waits for it any more
            os.write(channel, DONE if answer is None else json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    keep(0)
