"""Several questions answered by one pass over the rows, on the same redrawn labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Protocol

from itrust._core import Advance
from itrust.engines.outcome import Outcome
from itrust.engines.passes import Drawing, Work
from itrust.engines.plan import Plan, amount_of_work, columns_at_once
from itrust.engines.protocol import Engine
from itrust.engines.survey import Survey
from itrust.nulls import Null


class Part(Protocol):
    """One of several questions: what it sums over the rows, and what it makes of the sums."""

    @property
    def plans(self) -> Sequence[Plan]:
        """Kernels that it evaluates."""

    def works(self, block: range) -> Sequence[Work]:
        """What else it adds up with the draws of these numbers."""

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw, beside those of the plans."""

    def reduced(self, outcome: Outcome, block: range) -> Any:
        """Make what is kept of one batch of draws; the first batch begins with draw 0."""

    def finished(self, found: Sequence[Any]) -> Any:
        """Put the batches together."""


def blocks_of(survey: Survey, parts: Sequence[Part], draws: int) -> list[range]:
    """Cut draws into batches that fit into memory, one at least."""
    plans = [plan for part in parts for plan in part.plans]
    size = columns_at_once(survey, plans, sum(part.width for part in parts))
    return [range(at, min(at + size, draws)) for at in range(0, max(draws, 1), size)]


def work_of_parts(survey: Survey, parts: Sequence[Part], draws: int) -> int:
    """Give the number of rows that `run_together` reports."""
    plans = [plan for part in parts for plan in part.plans]
    works = [work for part in parts for work in part.works(range(0))]
    return amount_of_work(survey, plans, works) * len(blocks_of(survey, parts, draws))


def run_together(
    engine: Engine,
    survey: Survey,
    parts: Sequence[Part],
    null: Null | None,
    draws: int,
    seed: int,
    advance: Advance | None = None,
) -> list[Any]:
    """Answer several questions by one pass over the rows, or a few where draws are very many."""
    plans = [plan for part in parts for plan in part.plans]
    found: list[list[Any]] = [[] for _ in parts]
    for block in blocks_of(survey, parts, draws):
        drawing = Drawing(null, block, seed)
        works = [part.works(block) for part in parts]
        outcome = engine.run(survey, plans, drawing, list(chain(*works)), advance=advance)
        kernels, sums = iter(outcome.kernels), iter(outcome.works)
        for own, part, work in zip(found, parts, works, strict=True):
            share = replace(
                outcome,
                works=tuple(islice(sums, len(work))),
                kernels=tuple(islice(kernels, len(part.plans))),
            )
            own.append(part.reduced(share, block))
    return [part.finished(own) for part, own in zip(parts, found, strict=True)]
