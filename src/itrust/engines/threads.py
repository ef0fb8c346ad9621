"""How many threads to use, and BLAS held to one inside each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_users = 0
_controller: ThreadpoolController | None = None
_limiter: Any = None


def available_threads() -> int:
    """Cores this process may use, or OMP_NUM_THREADS if that is smaller."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(cores, int(asked)) if asked.isdecimal() and int(asked) > 0 else cores


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; the limit is the process's, so the last user lifts it.

    The libraries are looked up once, since that takes milliseconds.
    """
    global _users, _controller, _limiter
    with _lock:
        _users += 1
        if _users == 1:
            _controller = _controller or ThreadpoolController()
            _limiter = _controller.limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limiter.restore_original_limits()
