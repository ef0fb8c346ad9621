"""Work on a Dask cluster: one eye on the tasks, one on the cluster, so that no failure is a hang.

Dask itself waits for ever where no worker is left, and tells of the rest in errors of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import suppress
from operator import add
from typing import Any, Self, TypeVar

from itrust._core import ClusterError, InputError

Item = TypeVar("Item")

POLL_SECONDS = 0.02  # between looks at the tasks, which cost next to nothing
LOOK_SECONDS = 1.0  # between looks at the cluster, which are messages
VERSION = "itrust.__version__"
CURE = "install the same packages on the scheduler and on all workers"


class Cluster:
    """The tasks of one piece of work; those that are not done at its end are taken back."""

    def __init__(self, client: Any, patience: float) -> None:
        self.client, self.patience = client, patience
        self._held: list[Any] = []
        self._waiting: dict[int, Any] = {}
        self._alone_since: float | None = None
        self._next_look = 0.0

    def __enter__(self) -> Self:
        self._refuse_other_versions()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # an error or Ctrl-C: what is under way shall stop
            self._take_back([*self._held, *self._waiting.values()])

    def map(self, function: Callable[..., Any], *items: Sequence[Any], **how: Any) -> list[Any]:
        """Ask for a function of every item."""
        self._refuse_lost_scheduler()
        futures: list[Any] = self.client.map(function, *items, pure=False, **how)
        return futures

    def wait(self, futures: list[Any], done: Callable[[int], None] | None = None) -> None:
        """Wait until all answers are there; raise the error of the first call that has one."""
        error: BaseException | None = None
        self._waiting = dict(enumerate(futures))
        futures.clear()
        while self._waiting:
            for number, future in tuple(self._waiting.items()):
                status = future.status
                if number not in self._waiting or status in ("pending", "lost"):
                    continue
                if status == "cancelled":
                    raise self._lost()
                if status == "error":
                    error = self._told(future.exception(timeout=self.patience))
                    if not isinstance(error, InputError):
                        raise error
                    # The first wrong rows are told, as on one machine: wait for those before.
                    late = [self._waiting.pop(k) for k in tuple(self._waiting) if k > number]
                    wanted = {id(future) for future in self._waiting.values()}
                    self._take_back(f for f in [*self._held, *late] if id(f) not in wanted)
                elif done:
                    done(number)
                del self._waiting[number]
            if self._waiting:
                time.sleep(POLL_SECONDS)
                self._look()
        if error is not None:
            raise error

    def answers(self, futures: list[Any], done: Callable[[int], None] | None = None) -> list[Any]:
        """Wait for answers and fetch them."""
        self._held = list(futures)
        self.wait(futures, done)
        return self._fetched()

    def sum(
        self,
        function: Callable[..., Any],
        items: Sequence[Any],
        done: Callable[[int], None],
        **how: Any,
    ) -> Any:
        """Add up a function of every item, in pairs, on the workers."""
        leaves = self.map(function, items, **how)
        self._held = self._pairwise(list(leaves))
        self.wait(leaves, done)
        self.wait(list(self._held))
        return self._fetched()[0]

    def _pairwise(self, level: list[Any]) -> list[Any]:
        """The sum of answers that are still to come."""
        while len(level) > 1:
            odd = level[len(level) // 2 * 2 :]
            firsts, seconds = level[: len(level) - len(odd) : 2], level[1::2]
            # Before leaves that have not begun, so that few answers are held at a time.
            level = [*self.map(add, firsts, seconds, priority=1), *odd]
        return level

    def _fetched(self) -> list[Any]:
        fetched: list[Any] = self._watched(self.client.gather(self._held, asynchronous=True))
        self._held = []
        return fetched

    def spread(self, future: Any) -> None:
        """Put an answer on every worker, else all the work with it queues where it lies."""
        self.wait([future])
        # A worker lost meanwhile confuses the scheduler, and work goes on where the answer is.
        with suppress(AssertionError, LookupError, ValueError):
            self._watched(self.client.replicate([future], asynchronous=True))

    def _watched(self, message: Coroutine[Any, Any, Any]) -> Any:
        """What the cluster answers to a message, unless it is lost meanwhile."""
        answer = asyncio.run_coroutine_threadsafe(message, self.client.loop.asyncio_loop)
        try:
            while not wait([answer], LOOK_SECONDS).done:
                self._look()
        finally:
            answer.cancel()
        if answer.cancelled():
            raise self._lost()
        error = answer.exception()
        if error is not None:
            raise self._told(error)
        return answer.result()

    def _look(self) -> None:
        """Raise if the cluster cannot do the work any more."""
        self._refuse_lost_scheduler()
        now = time.monotonic()
        if now < self._next_look:
            return
        if self._threads():
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now > self._alone_since + self.patience:
            raise ClusterError(
                f"no Dask worker is left, and none came within {self.patience:g} s; their logs may "
                f"say why"
            )
        self._next_look = time.monotonic() + LOOK_SECONDS

    def _threads(self) -> dict[str, int]:
        """How many threads each worker has."""
        asked = self.client.nthreads(asynchronous=True)
        answer = asyncio.run_coroutine_threadsafe(asked, self.client.loop.asyncio_loop)
        try:
            return dict(answer.result(self.patience))
        except OSError:  # a time-out is one, too
            answer.cancel()
            raise self._lost() from None

    def _refuse_lost_scheduler(self) -> None:
        if self.client.status != "running":
            raise self._lost()

    def _lost(self) -> ClusterError:
        if self.client.status in ("closing", "closed"):
            return ClusterError("the Dask client is closed; connect a new one to a running cluster")
        return ClusterError(
            "the connection to the Dask scheduler was lost, or the work was cancelled there; "
            "see whether the cluster still runs"
        )

    def _refuse_other_versions(self) -> None:
        """Raise where some worker has no itrust: it would die of the first task."""
        from pydoc import locate  # a function that workers have in any case

        self._refuse_lost_scheduler()
        here = locate(VERSION)
        asked = self.client.run(locate, VERSION, on_error="return", asynchronous=True)
        for worker, version in self._watched(asked).items():
            if version != here and not isinstance(version, OSError):  # that one is gone
                has = f"itrust {version}" if isinstance(version, str) else "no itrust"
                raise ClusterError(
                    f"the Dask worker at {worker} has {has}, this process has {here}; {CURE}"
                )

    def _told(self, error: BaseException) -> BaseException:
        """An error in our words, where it is about the cluster; any other as it is."""
        name, cause = type(error).__name__, error.__cause__ or error
        if isinstance(error, OSError):
            return self._lost()
        if name == "KilledWorker":
            return ClusterError(
                "the Dask workers that took up the same rows died, one after the other; their "
                "logs may say why (memory?)"
            )
        if isinstance(cause, ImportError):
            return ClusterError(f"the Dask cluster cannot load the work ({cause}); {CURE}")
        if type(error).__module__.startswith("distributed"):
            return ClusterError(f"the Dask cluster gave up ({name}: {error})")
        return error

    def _take_back(self, futures: Iterable[Any]) -> None:
        """Let go of tasks. To cancel those that others wait for would upset the scheduler."""
        for future in futures:
            future.release()


def while_wanted(items: Iterable[Item]) -> Iterator[Item]:
    """Items of a task on a worker, until the task is taken back.

    Dask cannot stop a function that runs; one that asks can stop itself.
    """
    from distributed import Reschedule, get_worker

    worker = get_worker()
    key = worker.get_current_task()
    for item in items:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise Reschedule  # nothing is, unless somebody wants it again
        yield item
