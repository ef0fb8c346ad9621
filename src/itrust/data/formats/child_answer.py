"""The side of a reader that runs in a process of its own: one request, one answer.

The answer is a line of JSON and, unless something went wrong, a stream of Arrow. This module is
loaded without the package, which takes longer to load than most files take to be read.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

STATM = Path("/proc/self/statm")  # its first number: pages of address space
PANIC = "PanicException"  # of Rust; it is no Exception, and nobody can import it


def serve(module: str, request: str, room: str) -> None:
    """Let a module read what is requested, with so many bytes of memory, and write the answer."""
    reader = import_module(module)
    limit_memory(int(room))
    out = sys.stdout.buffer
    try:
        about, table = reader.read(**json.loads(request))
    except MemoryError:
        _tell(out, {"unreadable": "there is not enough memory for what it says that it holds"})
    except reader.ERRORS as error:
        _tell(out, {"unreadable": (str(error).splitlines() or [type(error).__name__])[0]})
    except BaseException as error:
        if type(error).__name__ != PANIC:
            _tell(out, {"failed": traceback.format_exc()})
        else:
            _tell(out, {"unreadable": "its reader gave up on it"})
    else:
        _tell(out, {"about": about})
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)


def limit_memory(room: int) -> None:
    """Let this process take so many bytes more than it has, where the system can be told."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    if STATM.exists():
        used = int(STATM.read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = used + room
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _tell(out: Any, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()
