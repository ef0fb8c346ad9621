"""Readers that may end their process on a damaged file run in one of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa

from itrust._core import InputError, interpreter
from itrust.data.formats.base import unreadable
from itrust.data.formats.soundness import room_for

FOLDER = Path(__file__).parent
START = "import sys; sys.path.append(sys.argv[1]); import child_answer as c; c.serve(*sys.argv[2:])"
SHARE = 1 / 2  # of free memory, for the child; its answer is held here as well
MOST = 2**50  # bytes, where nothing tells how much is free


class ReaderFailedError(RuntimeError):
    """A reader in another process raised what it should not."""


def read_in_child(
    module: str, path: Path, cure: str, **request: Any
) -> tuple[dict[str, Any], pa.Table]:
    """What a module beside this one reads: something to say, and rows."""
    python = interpreter()
    if python is None:
        raise InputError(
            "{file} is read by a second Python, which cannot be started from within this program; "
            "save it as CSV or Parquet",
            file=path.name,
        )
    room = int(min(room_for(SHARE), MOST))
    command = [python, "-P", "-c", START, str(FOLDER), module, json.dumps(request)]
    # Arrow's usual allocators reserve a gigabyte that they may never use.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    with subprocess.Popen(
        [*command, str(room)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as child:
        assert child.stdout is not None
        try:
            found = _answer(child.stdout, path)
        except BaseException:
            child.kill()
            raise
    if found is None:
        raise unreadable(path, RuntimeError(_how_it_ended(child.returncode)), cure)
    return found


def _answer(stream: Any, path: Path) -> tuple[dict[str, Any], pa.Table] | None:
    """What the child wrote; None if it ended before it had."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    told = json.loads(line)
    if "unreadable" in told:
        raise unreadable(path, RuntimeError(told["unreadable"]))
    if "failed" in told:
        raise ReaderFailedError(told["failed"])
    try:
        with pa.ipc.open_stream(stream) as rows:
            table = rows.read_all()
    except (pa.ArrowInvalid, OSError):  # of a head, and of a body, that stops
        return None
    table.validate(full=True)
    return told["about"], table


def _how_it_ended(code: int) -> str:
    if code < 0:
        return f"its reader was ended by {signal.Signals(-code).name}"
    return f"its reader ended with code {code}"
