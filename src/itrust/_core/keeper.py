"""A keeper, seen from the process that writes: a child that SIGKILL of this process does not reach.

It is started before anything is written and has a session of its own. It moves the files in when
it is told to, so that nobody who kills this process stops it between two of them, and it removes
what was begun when this process is gone without a word. It inherits standard error:
whoever reads that to its end finds all files in their places.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Self

from itrust._core import replacement
from itrust._core.children import interpreter
from itrust._core.recovery import UnusableJournalError, undo_own
from itrust._core.replacement import DONE, GO, READY, Replacement, as_line

PATIENCE = 30.0  # seconds for an interpreter to start on a busy machine
KILLED = "the process that moves files in was killed"


class Keeper:
    """The child and the way to it."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self._process, self._channel = process, channel
        self._answers = channel.makefile("rb")

    @classmethod
    def start(cls, what: Replacement, locks: Sequence[int]) -> Self | None:
        """Start a child; None where there can be none, as in an interpreter within a program."""
        python = interpreter()
        if not replacement.LOCKS or python is None:
            return None
        ours, theirs = socket.socketpair()
        # Names of files are encoded as they are here; -I hides PYTHONUTF8.
        encoding = f"utf8={sys.flags.utf8_mode}"
        command = [python, "-I", "-S", "-X", encoding, str(replacement.__file__)]
        try:
            with theirs:
                process = subprocess.Popen(
                    command, stdin=theirs.fileno(), pass_fds=locks, start_new_session=True
                )
        except OSError:
            ours.close()
            return None
        keeper = cls(process, ours)
        keeper._say(as_line(what))
        return keeper

    def replace_all(self, what: Replacement) -> bool:
        """Let the child move all files in, or raise OSError with everything as it was."""
        if not self._is_ready() or not self._say(GO):
            return False
        self._channel.settimeout(None)
        answer = self._answers.readline()
        if answer == DONE:
            return True
        if not answer.endswith(b"\n"):
            self._process.wait()
            return _settle(what)
        found = json.loads(answer)
        raise OSError(found["errno"], found["why"], found["file"])

    def end(self) -> None:
        """Let go of the child, which removes what is left unless it was told to move it in."""
        self._answers.close()
        self._channel.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _is_ready(self) -> bool:
        self._channel.settimeout(PATIENCE)
        try:
            if self._answers.readline() == READY:
                return True
        except OSError:  # it does not come
            pass
        self._process.kill()
        self._process.wait()
        return False

    def _say(self, word: bytes) -> bool:
        try:
            self._channel.sendall(word)
        except OSError:  # the child is gone
            return False
        return True


def _settle(what: Replacement) -> bool:
    """What a child that was killed has done: all of it, nothing, or what is undone here."""
    try:
        left = undo_own(what)
    except UnusableJournalError as error:
        told = f"{KILLED}, and {what.journal} is left alone: {error}"
        raise OSError(errno.EINTR, told) from None
    begun = any(os.path.lexists(what.temporary(k)) for k in range(len(what.targets)))
    if left is not None or begun:
        raise OSError(errno.EINTR, f"{KILLED}; {left or 'run it again'}")
    return True
