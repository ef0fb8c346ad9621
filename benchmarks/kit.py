"""What the benchmarks share: cells in processes of their own, peak memory, tables."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.table import Table


def peak_mb() -> float:
    """The most memory that this process has held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_own_process(file: str, name: str, *settings: object) -> dict[str, float]:
    """What a function of a benchmark gives, in a process of its own: so is its peak memory."""
    done = subprocess.run(
        [sys.executable, file, name, *map(str, settings)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def run(main: Callable[[], None], **cells: Callable[..., dict[str, float]]) -> None:
    """Run the benchmark or, if it was called with a cell's name and settings, that cell."""
    if len(sys.argv) == 1:
        main()
        return
    name, *settings = sys.argv[1:]
    given = [int(text) if text.isdigit() else text for text in settings]
    print(json.dumps(cells[name](*given)))


def show(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; rows may be made while it waits."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def against(plain: float | None, mine: float) -> tuple[str, str]:
    """Seconds of the plain way and how many times ours they are; nothing where it was not run."""
    return ("-", "-") if plain is None else (f"{plain:.1f}", f"{plain / mine:.1f}")
