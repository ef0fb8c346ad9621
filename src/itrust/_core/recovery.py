"""What a run that was killed has left in a folder is undone by the next one that writes there.

Nothing in a folder is believed because of its name: a journal or a lock counts if it is an ordinary
file of the same user that nobody else may open, and a journal brings back only the very files that
it recorded. Whoever is still at work holds a lock, which ends with the process.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple

from itrust._core.replacement import (
    ENDING,
    LOCKS,
    OURS,
    VERSION,
    Identity,
    Recorded,
    Replacement,
    Target,
    create,
    discard,
    locked_folders,
    take_lock,
    undo,
)
from itrust._core.text import counted, listed

MAX_BYTES = 2**20
MAX_FILES = 1_000


class Settled(NamedTuple):
    """What was done about an earlier run: a sentence, and whether it is about anybody's files."""

    note: str
    matters: bool


class UnusableJournalError(Exception):
    """A journal that must not be obeyed; the text says why."""


class Locks:
    """Files that show, in every folder of a replacement, that it is at work.

    Those in other folders than the first say where the journal would be. The locks end when
    nobody holds them any more: not before a keeper that has inherited them is gone.
    """

    def __init__(self) -> None:
        self.held: list[int] = []

    def take(self, what: Replacement) -> bool:
        """Lock all folders; False where the next run could not tell whose these files are."""
        return LOCKS and all(self._take(what, folder) for folder in what.folders)

    def _take(self, what: Replacement, folder: str) -> bool:
        opened = create(what.lock(folder))
        self.held.append(opened)
        try:
            locked = take_lock(opened)
        except OSError:  # there are file systems without locks
            locked = False
        found = os.fstat(opened)
        if not locked or found.st_nlink != 1 or not _is_private(found):
            return False
        if folder != what.home:
            os.write(opened, os.fsencode(what.home))
            os.fsync(opened)
        return True

    def release(self) -> None:
        """Let go of all."""
        while self.held:
            os.close(self.held.pop())


def undo_interrupted(folders: Iterable[str | os.PathLike[str]]) -> list[Settled]:
    """Undo and remove what runs that are no more have left in some folders."""
    notes: list[Settled] = []
    for folder in dict.fromkeys(os.path.realpath(folder) for folder in folders) if LOCKS else ():
        found: dict[str, list[str]] = {}
        with suppress(OSError):  # a folder that may be written to and not read, or is gone
            for name in sorted(os.listdir(folder)):
                if match := OURS.fullmatch(name):
                    found.setdefault(match[1], []).append(name)
        for token, names in found.items():
            notes += _settled(folder, token, names)
    return notes


def undo_own(what: Replacement) -> str | None:
    """Undo what a keeper, which was killed, has left half done, as `undo`; None if there is none.

    May raise OSError and UnusableJournalError.
    """
    with locked_folders(what.folders):
        found = _read_journal(what.home, what.token)
        return None if found is None else undo(*found)


def _settled(folder: str, token: str, names: list[str]) -> Iterator[Settled]:
    """Settle one replacement as seen from one of its folders."""
    journal, lock = f".itrust-{token}.journal", f".itrust-{token}.lock"
    with _taken(os.path.join(folder, lock)) as (home, is_ours):
        if home is None:
            if journal in names and not is_ours:
                yield _left(folder, journal, "it is not a file that only you can open")
            return
        home = home or folder
        try:
            note = _undone(folder, home, token)
        except UnusableJournalError as error:
            yield _left(home, journal, str(error))
            return
        except OSError as error:
            yield _left(home, journal, f"undoing it failed ({error.strerror})")
            return
        if note is not None:
            yield Settled(note, True)
            return
        rest = [name for name in names if name != lock]
        removed = sum(_removed(folder, name) for name in rest)
        if removed == len(rest):
            _removed(folder, lock)
        if removed:
            what = counted(removed, "temporary file")
            told = f"removed {what} that an earlier run, which was stopped, had left in {folder}"
            yield Settled(told, False)


def _undone(folder: str, home: str, token: str) -> str | None:
    """Undo what a journal tells, if there is any; what was done."""
    found = _read_journal(home, token)
    if found is None:
        return None
    with locked_folders(found[0].folders):
        found = _read_journal(home, token)  # somebody else may have been faster
        if found is None:
            return None
        what, known = found
        if folder not in what.folders:
            raise UnusableJournalError("it does not name the folder that names it")
        left = undo(what, known)
    discard(what)
    names = listed([target.name for target in what.targets], 4)
    stopped = f"an earlier run was stopped while it replaced {names}"
    return f"{stopped}; {left or 'these files are again as they were before it'}"


def _read_journal(home: str, token: str) -> tuple[Replacement, list[Recorded]] | None:
    """What a journal says, checked; None where there is none."""
    if not os.path.isabs(home) or not os.path.isdir(home):
        raise UnusableJournalError("its folder is not there")
    try:
        opened = _open_private(os.path.join(home, f".itrust-{token}.journal"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableJournalError(error.strerror or "it cannot be opened") from None
    if opened is None:
        raise UnusableJournalError("it is not a file that only you can open")
    with open(opened, "rb") as file:
        text = file.read(MAX_BYTES + 1)
    try:
        return _parsed(text, home, token)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnusableJournalError("it is damaged") from None


def _parsed(text: bytes, home: str, token: str) -> tuple[Replacement, list[Recorded]]:
    facts = json.loads(text.decode("ascii"))
    files = facts["files"]
    if len(text) > MAX_BYTES or facts["version"] != VERSION or facts["token"] != token:
        raise ValueError("another version, or another journal")
    if not isinstance(files, list) or not 2 <= len(files) <= MAX_FILES:
        raise ValueError("not a set of files")
    targets = tuple(_target(own, home) for own in files)
    if targets[0].folder != home:
        raise ValueError("the journal stands elsewhere")
    kept = [Recorded(_identity(f["new"]), _known(f["old"]), _known(f["backup"])) for f in files]
    if any((one.old is None) != (one.backup is None) for one in kept):
        raise ValueError("a file without its second name")
    return Replacement(token, targets, True), kept


def _target(facts: dict[str, Any], home: str) -> Target:
    """A file by its bare name in a folder, so that it and its temporary file stand together."""
    folder, name, ending = facts["folder"], facts["name"], facts["ending"]
    if folder and not (os.path.isabs(folder) and "\0" not in folder):
        raise ValueError("no folder")
    plain = name not in ("", ".", "..") and not {"/", "\0", os.sep} & set(name)
    if not plain or OURS.fullmatch(name) or not ENDING.fullmatch(ending):
        raise ValueError("no name of a file")
    return Target(folder or home, name, ending)


def _known(facts: Any) -> Identity | None:
    return None if facts is None else _identity(facts)


def _identity(facts: Any) -> Identity:
    inode, size, changed = facts
    if not all(type(part) is int for part in facts):
        raise ValueError("no identity of a file")
    return inode, size, changed


@contextmanager
def _taken(path: str) -> Iterator[tuple[str | None, bool]]:
    """Hold the lock of somebody who is gone: what it says, and whether it is ours at all.

    None in place of what it says: whoever made it is at work, or is somebody else.
    """
    try:
        opened = _open_private(path)
    except OSError:
        opened = None
    if opened is None:
        yield None, False
        return
    with closing(os.fdopen(opened, "rb+")) as file:
        try:
            dead = take_lock(opened) and os.path.samestat(os.fstat(opened), os.lstat(path))
        except OSError:  # no locks here, or it has just been removed
            dead = False
        yield (os.fsdecode(file.read(MAX_BYTES)) if dead else None), True


def _open_private(path: str) -> int | None:
    """Open a file that nobody else can have made or changed; None where somebody could."""
    opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    found = os.fstat(opened)
    if _is_private(found) and found.st_nlink == 1:
        return opened
    os.close(opened)
    return None


def _is_private(found: os.stat_result) -> bool:
    mine = found.st_uid == os.geteuid() and stat.S_ISREG(found.st_mode)
    return mine and not stat.S_IMODE(found.st_mode) & 0o077


def _removed(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        os.unlink(path)
    except FileNotFoundError:  # somebody else was faster
        return True
    except OSError:  # it is not ours to remove
        return False
    return True


def _left(folder: str, name: str, why: str) -> Settled:
    return Settled(f"{os.path.join(folder, name)} is left alone: {why}", True)
