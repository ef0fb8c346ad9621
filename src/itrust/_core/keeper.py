"""A keeper, seen from the process that writes: a child that SIGKILL of this process does not reach.

It is started before anything is written and has a session of its own. It moves the files in when
it is told to, so that nobody who kills this process stops it between two of them, and it removes
what was begun when this process is gone without a word. It inherits standard output and error:
whoever reads them to their end finds all files in their places.
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
from itrust._core.recovery import undo_own
from itrust._core.replacement import DONE, GO, READY, Replacement, as_line

PATIENCE = 30.0  # seconds for an interpreter to start on a busy machine
KILLED = "the process that moves files in was killed; run it again"


class Keeper:
    """The child and the way to it.

    Parameters
    ----------
    process : subprocess.Popen
        The child.
    channel : socket.socket
        Our end of what is its standard input.
    """

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self._process, self._channel = process, channel
        self._answers = channel.makefile("rb")

    @classmethod
    def start(cls, what: Replacement, locks: Sequence[int]) -> Self | None:
        """Start a child; None where there can be none, as in an interpreter within a program."""
        if not replacement.LOCKS or not sys.executable:
            return None
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-S", str(replacement.__file__)]
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
        """Let the child move all files in, or raise OSError with everything as it was.

        Returns
        -------
        bool
            False where there is no child that could, and nothing was changed.
        """
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
    undone = undo_own(what)
    if undone or any(os.path.lexists(what.temporary(k)) for k in range(len(what.targets))):
        raise OSError(errno.EINTR, KILLED)
    return True
