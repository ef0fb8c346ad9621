"""Freed memory kept for the next chunk of rows, where Dask would hand it back at once."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
TRIM, MMAP = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
KEPT_BYTES = 2**28
MMAP_BYTES = 2**17  # glibc's own choice

_lock = Lock()
_users = 0


@contextmanager
def memory_kept() -> Iterator[None]:
    """Let a worker keep the memory that a task frees until the task is done.

    Dask starts its workers so that they return freed memory to the system (`MALLOC_TRIM_THRESHOLD_`
    is 65,536), so every array of every chunk is made of new pages, which took two fifths of the
    time of a pass. The setting is the process's, so the last user puts it back. Without it, or
    without glibc, nothing is changed.
    """
    global _users
    mallopt = _mallopt()
    if mallopt is None:
        yield
        return
    with _lock:
        _users += 1
        if _users == 1:
            mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
            mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                mallopt(M_TRIM_THRESHOLD, int(os.environ[TRIM]))
                mallopt(M_MMAP_THRESHOLD, int(os.environ.get(MMAP, MMAP_BYTES)))
                ctypes.CDLL(None).malloc_trim(0)


def _mallopt() -> Callable[[int, int], int] | None:
    """How the C library is told, where somebody has told it to keep little; else None."""
    told = os.environ.get(TRIM, "")
    if not told.isdecimal() or int(told) >= KEPT_BYTES:
        return None
    return getattr(ctypes.CDLL(None), "mallopt", None)
