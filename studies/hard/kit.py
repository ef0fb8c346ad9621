"""What the sections of the adversary's study share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Output = TypeVar("Output")
FIRST_SEED = 1_000  # methods were chosen with smaller ones


@dataclass(frozen=True)
class Section:
    """One part of the page: its name on the command line, its title, and who makes its text.

    `make` takes a pool of processes and the number of runs, and gives Markdown: what was asked, a
    table with the truth beside the result, and what it shows.
    """

    name: str
    title: str
    runs: int
    make: Callable[[ProcessPoolExecutor, int], str]


def repeated(
    pool: ProcessPoolExecutor, run: Callable[[int], Output], runs: int, chunk: int = 5
) -> list[Output]:
    """The results of `run(seed)` for as many seeds, on all cores."""
    return list(pool.map(run, range(FIRST_SEED, FIRST_SEED + runs), chunksize=chunk))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def share(hits: Iterable[object], digits: int = 3) -> str:
    """The share of hits, as .043."""
    return decimal(float(np.mean([bool(hit) for hit in hits])), digits)


def decimal(value: float, digits: int = 3) -> str:
    """Fixed decimals without a zero before the point."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text
