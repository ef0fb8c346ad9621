"""Processes that die at a chosen step while they write a set of files, and what they leave.

As a script it kills one process after the other and prints what it found, as JSON: the process
that writes, its keeper, or both, at every step at which either asks the system to change anything.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

from itrust._core import InputError, undo_interrupted, write_all, writer_of
from itrust._core import keeper as keeper_module
from itrust._core.keeper import Keeper
from itrust._core.replacement import keep

STEPS = ("open", "write", "fchmod", "fsync", "link", "rename", "replace", "unlink")
PLACES = ("here/page.html", "here/audit.json", "there/rows.csv", "there/new.xml")
OLD, NEW, MIXED = "old", "new", "mixed"


class Steps:
    """Counts what a process asks the system for; at the chosen step it dies or is refused."""

    def __init__(self, calls=STEPS, at=None, error=None):
        self.calls, self.at, self.error, self.taken = calls, at, error, 0
        self.before = {name: getattr(os, name) for name in calls}

    def __enter__(self):
        Steps.current = self
        for name in self.calls:
            setattr(os, name, self._counted(self.before[name]))
        return self

    def __exit__(self, *_):
        for name, call in self.before.items():
            setattr(os, name, call)

    def _counted(self, call):
        def step(*args, **settings):
            self.taken += 1
            if self.taken - 1 == self.at:
                if self.error is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(self.error, os.strerror(self.error))
            return call(*args, **settings)

        return step


def old_set(folder):
    """Files of before: three of the four, in two folders."""
    for name in ("here", "there"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in PLACES[:3]:
        (folder / name).write_text(f"{OLD} {name}")


def write_new_set(folder):
    def text(name):
        return writer_of(lambda: f"{NEW} {name}")

    write_all({folder / name: text(name) for name in PLACES})


def state(folder):
    """Which set there is."""
    found = {name: (folder / name).read_text() for name in PLACES if (folder / name).exists()}
    for kind, names in ((OLD, PLACES[:3]), (NEW, PLACES)):
        if found == {name: f"{kind} {name}" for name in names}:
            return kind
    return MIXED


def strays(folder):
    known = {folder / name for name in PLACES}
    return sorted(str(path) for path in folder.rglob("*") if path.is_file() and path not in known)


class ForkedKeeper:
    """In place of `subprocess.Popen`, without the time that an interpreter takes to start."""

    dies_at = None

    def __init__(self, _command, stdin, pass_fds, start_new_session):
        assert start_new_session
        self.pid = os.fork()
        if self.pid == 0:
            Steps.current.__exit__()  # those of the process that forked
            os.setsid()
            os.dup2(stdin, 0)
            kept = {0, 1, 2, OPEN_WHILE_ANYBODY_LIVES, *pass_fds}
            for number in set(range(64)) - kept:
                with suppress(OSError):
                    os.close(number)
            try:
                with Steps(at=self.dies_at):
                    keep(0)
            finally:
                os._exit(0)

    def wait(self, _timeout=None):
        if self.pid:
            os.waitpid(self.pid, 0)
        self.pid = 0

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)


OPEN_WHILE_ANYBODY_LIVES = 63


def killed(folder, writer_at, keeper_at, with_keeper):
    """Write the new set in a process that dies at a step; True if all steps were taken."""
    reading, writing = os.pipe()
    os.dup2(writing, OPEN_WHILE_ANYBODY_LIVES)
    os.close(writing)
    child = os.fork()
    if child == 0:
        os.close(reading)
        ForkedKeeper.dies_at = keeper_at
        keeper_module.subprocess.Popen = ForkedKeeper
        if not with_keeper:
            Keeper.start = classmethod(lambda *_: None)
        try:
            with Steps(at=writer_at):
                write_new_set(folder)
        except InputError:
            os._exit(3)
        os._exit(0)
    os.close(OPEN_WHILE_ANYBODY_LIVES)
    while os.read(reading, 1):
        pass
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tidied(folder, seconds=3.0):
    """What the next run does; the system ends the locks of the dead a little after their pipes."""
    end = time.monotonic() + seconds
    notes = undo_interrupted([str(folder)])
    while any(folder.glob(".itrust-*")) and time.monotonic() < end:
        time.sleep(0.01)
        notes += undo_interrupted([str(folder)])
    return notes


def at_every_step(who, base):
    """Kill at one step after the other until there are no more; what was found, counted."""
    found, at = Counter(), 0
    while True:
        folder = base / f"{who}-{at}"
        old_set(folder)
        writer_at = None if who == "keeper" else at
        keeper_at = None if who in ("writer", "alone") else at
        code = killed(folder, writer_at, keeper_at, who != "alone")
        left = bool(strays(folder))
        found[f"at once: {state(folder)}{', strays' if left else ''}"] += 1
        if code in (0, 3) and state(folder) != (NEW if code == 0 else OLD):
            found[f"exit code {code} is wrong"] += 1
        first, second = ("here", "there") if at % 2 else ("there", "here")
        tidied(folder / first)
        found[f"after the next run: {state(folder)}"] += 1
        tidied(folder / second)
        if strays(folder):
            found["strays for ever"] += 1
        if code == 0 and (who != "keeper" or at > 60):
            return {"steps": at, **found}
        at += 1


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # steps count, not disks
    base = Path(tempfile.mkdtemp(dir=memory))
    try:
        for who in sys.argv[1:] or ("alone", "writer", "keeper", "both"):
            print(json.dumps({"who": who, **at_every_step(who, base)}), flush=True)
    finally:
        shutil.rmtree(base)
