"""Many chunks through a few threads: bounded memory, answers in the order of the chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from itrust.engines.threads import one_blas_thread

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@contextmanager
def _closed_after(items: Iterable[Item]) -> Iterator[None]:
    try:
        yield
    finally:
        if isinstance(items, Generator):
            items.close()


def ordered_map(
    function: Callable[[Item], Answer], items: Iterable[Item], threads: int
) -> Generator[Answer, None, None]:
    """Apply a function in threads; no more items are under way than one for each thread and two.

    Items are taken from their source one by one, so a file is read as it is worked on, and
    answers come in the order of the items, so sums do not depend on the number of threads.
    """
    with one_blas_thread(), _closed_after(items):
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
