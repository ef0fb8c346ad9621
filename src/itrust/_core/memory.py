"""How much memory a process may still take, as machine, container and limits tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SCARCE = 2**34  # bytes of address space above which nothing has to be saved
PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
# Of a container, in both versions: its limit, what it uses, and files the kernel would let go.
CONTAINERS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)


def free_memory() -> float:
    """Bytes that this process may still take; infinite where nothing tells."""
    return min((*_of_machine(), *_of_container(), *_of_process()), default=float("inf"))


def spare_address_space() -> None:
    """Let Arrow reserve nothing ahead where a process may have little (`ulimit -v`).

    Such a limit counts what is reserved and never used, and Arrow's allocator takes a gigabyte.
    """
    if _address_space() < SCARCE:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # read when Arrow is loaded


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


def _of_process() -> Iterator[float]:
    with suppress(OSError):  # the first number: pages of address space
        used = int((PROC / "self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        yield max(_address_space() - used, 0.0)


def _address_space() -> float:
    if sys.platform == "win32":
        return float("inf")
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return float("inf") if limit == resource.RLIM_INFINITY else float(limit)


def _numbers(path: Path) -> dict[str, float]:
    """Names and numbers of a file of the kernel."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0]: float(words[1]) for words in lines if len(words) > 1}
