"""How much memory a process may still take, as machine, container and limits tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")  # its first number: pages of address space
CGROUPS = Path("/sys/fs/cgroup")
# Of a container: its limit, what it uses, and what of that are files the kernel would let go.
LIMITS = (
    (CGROUPS / "memory.max", CGROUPS / "memory.current", "inactive_file"),
    (
        CGROUPS / "memory/memory.limit_in_bytes",
        CGROUPS / "memory/memory.usage_in_bytes",
        "total_inactive_file",
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
    for limit, used, given_back in LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            most, taken = float(limit.read_text()), float(used.read_text())
            cached = min(_of_files(used.with_name("memory.stat"), given_back), taken)
            yield max(most - taken + cached, 0.0)


def _of_files(stat: Path, name: str) -> float:
    """One number of `memory.stat`; 0 where it is not told."""
    with suppress(OSError):
        for line in stat.read_text().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    return 0.0


def _of_process() -> Iterator[float]:
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        used = int(STATM.read_text().split()[0]) * resource.getpagesize() if STATM.exists() else 0
        yield float(max(limit - used, 0))
