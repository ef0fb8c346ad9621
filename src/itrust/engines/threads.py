"""Threads: how many to use, BLAS held to one in each, and many chunks through a few of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from threading import Lock
from typing import Any, TypeVar

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


Item = TypeVar("Item")
Answer = TypeVar("Answer")


def ordered_map(
    function: Callable[[Item], Answer], items: Iterable[Item], threads: int
) -> Generator[Answer, None, None]:
    """Apply a function in threads; no more items are under way than one for each thread and two.

    Items are taken from their source one by one, so a file is read as it is worked on, and
    answers come in the order of the items, so sums do not depend on the number of threads.
    """
    with one_blas_thread(), closing(items) if isinstance(items, Generator) else nullcontext():
        if threads == 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(threads) as pool:
            waiting: deque[Future[Answer]] = deque()
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) > threads + 1:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:  # an error or Ctrl-C: what has not begun shall not begin
                    future.cancel()
