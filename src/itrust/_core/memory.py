"""How much memory a process may still take, as machine and container tell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
# Of a container, in both versions: its limit, what it uses, and files the kernel would let go.
CONTAINERS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)


def free_memory() -> float:
    """Bytes that this process may still take; infinite where nothing tells."""
    return min((*_of_machine(), *_of_container()), default=float("inf"))


def _of_machine() -> Iterator[float]:
    with suppress(OSError, KeyError):
        yield _numbers(PROC / "meminfo")["MemAvailable:"] * 1024
        return
    with suppress(OSError, ValueError, AttributeError):  # all of it, where only that is known
        yield float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")


def _of_container() -> Iterator[float]:
    for limit, usage, inactive in CONTAINERS:
        with suppress(OSError, ValueError):  # "max" is no limit
            most, used = (float((CGROUP / name).read_text()) for name in (limit, usage))
            files = _numbers((CGROUP / usage).with_name("memory.stat")).get(inactive, 0.0)
            yield max(most - used + min(files, used), 0.0)


def _numbers(path: Path) -> dict[str, float]:
    """Names and numbers of a file of the kernel."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0]: float(words[1]) for words in lines if len(words) > 1}
