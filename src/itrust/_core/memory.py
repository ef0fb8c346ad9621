"""How much memory a process may still take, as machine, container and limits tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")  # its first number: pages of address space
LIMITS = (  # of a container, and what it uses
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def free_memory() -> float:
    """Bytes that this process may still take; infinite where nothing tells."""
    return min((*_of_machine(), *_of_container(), *_of_process()), default=float("inf"))


def _of_machine() -> Iterator[float]:
    with suppress(OSError):
        for line in MEMINFO.read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                yield float(rest.split()[0]) * 1024
                return
    with suppress(OSError, ValueError, AttributeError):  # all of it, where only that is known
        yield float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")


def _of_container() -> Iterator[float]:
    for limit, used in LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            yield max(float(limit.read_text()) - float(used.read_text()), 0.0)


def _of_process() -> Iterator[float]:
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        used = int(STATM.read_text().split()[0]) * resource.getpagesize() if STATM.exists() else 0
        yield float(max(limit - used, 0))
