"""Little address space is reserved where a process may not have much of it (`ulimit -v`).

Such a limit counts what is reserved and never used. Arrow's allocator takes a gigabyte ahead, and
the C library 64 MB for every thread that allocates, so that an audit that holds 0.6 GB would
be refused 2 GB.
"""

from __future__ import annotations

import os
import sys

SCARCE = 2**34  # bytes of address space above which nothing has to be saved
POOL = "ARROW_DEFAULT_MEMORY_POOL"
M_ARENA_MAX, ARENAS = -8, 2  # of glibc's mallopt


def spare_address_space() -> bool:
    """Take the allocators that reserve little, if address space is limited.

    What the user has set in the environment stays.
    """
    if not _is_scarce():
        return False
    if POOL not in os.environ:
        os.environ[POOL] = "system"  # read when Arrow is loaded
        if "pyarrow" in sys.modules:
            pa = sys.modules["pyarrow"]
            pa.set_memory_pool(pa.system_memory_pool())
    if "MALLOC_ARENA_MAX" not in os.environ:
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_ARENA_MAX, ARENAS)
    return True


def _is_scarce() -> bool:
    try:
        import resource
    except ImportError:  # no such limits on this system
        return False
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return limit != resource.RLIM_INFINITY and limit < SCARCE
