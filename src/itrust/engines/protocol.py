"""What every engine does: survey the rows, plan a kernel, run the draws, describe itself.

A caller surveys a source once and hands the survey on. Nothing is written into the source, and
no caller needs to know which engine it has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, ClassVar, Protocol

from itrust._core import Advance, InputError
from itrust.data import Extract, Source
from itrust.engines.passes import Drawing, Job, Totals, Work
from itrust.engines.plan import (
    Columns,
    Outcome,
    Plan,
    Purpose,
    Survey,
    amount_of_work,
    columns_at_once,
    pair_weight_of,
)
from itrust.kernels import LocalKernel
from itrust.nulls import CategoryDraws, Null, RowwiseNull, SimulatedNull


class Engine(ABC):
    """Who computes the quadratic forms.

    An engine of one's own implements `_survey`, `_plan` and `_pass`, and `_describe` if it has
    more to say than its plans. `_pass` takes a `Job` and gives its `Totals`, which
    `accumulate_all` adds up over chunks of rows; all three are in `itrust.engines`.
    """

    def survey(self, source: Source, min_rows: int = 0) -> Survey:
        """Count the rows and choose random ones, in one pass where they are in files.

        Parameters
        ----------
        source : Source
            Rows in memory or in files.
        min_rows : int
            Choose at least so many rows, where there are as many.

        Returns
        -------
        Survey
            What the other methods take.
        """
        return self._survey(source, min_rows)

    def extract(
        self, source: Source, size: int | None = None, advance: Advance | None = None
    ) -> Extract:
        """Count the rows and keep random ones with their labels, in one pass over files.

        Parameters
        ----------
        source : Source
            Rows in memory or in files.
        size : int, optional
            How many rows are kept at most; default: 100,000.
        advance : callable, optional
            Told the number of rows that were read.

        Returns
        -------
        Extract
            What must see rows at hand takes these.
        """
        return self._extract(source, size, advance)

    @property
    def in_memory(self) -> Engine:
        """Who takes over where all rows are at hand: itself, unless it reads files only."""
        return self

    takes_kernels_in_full: ClassVar[bool] = False

    @property
    def factor_of_all(self) -> Any:
        """The `Factor` that makes a kernel which several outcomes share; None: the default."""
        return None

    def survey_of(self, extract: Extract) -> Survey:
        """Choose random rows among those at hand, in place of `survey`.

        Parameters
        ----------
        extract : Extract
            From `extract`.

        Returns
        -------
        Survey
            What the other methods take.
        """
        return Survey.of_extract(extract, self._pilot_rows)

    def plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose | None = None) -> Plan:
        """Decide how a kernel is evaluated, from predictions and covariates alone.

        Parameters
        ----------
        survey : Survey
            From `survey`.
        kernel : LocalKernel
            With its widths.
        purpose : Purpose, optional
            What for; default: for the statistic alone.

        Returns
        -------
        Plan
            What `run` takes.
        """
        return self._plan(survey, kernel, purpose or Purpose())

    def settled(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Engine:
        """Give the engine that would do the work: itself, unless it chooses between others.

        Parameters
        ----------
        survey : Survey
            Of the rows in question.
        kernel : LocalKernel
            The kernel in question.
        purpose : Purpose
            What the kernel is evaluated for.

        Returns
        -------
        Engine
            One that makes no choices.
        """
        return self._settled(survey, kernel, purpose)

    def describe(self, survey: Survey, plan: Any) -> str:
        """Say in a few words how a kernel was evaluated.

        Parameters
        ----------
        survey : Survey
            That the plan was made for.
        plan : Plan, or work that describes itself
            How the kernel was evaluated.

        Returns
        -------
        str
            Such as "tiles of 512".
        """
        return self._describe(survey, plan)

    def run(
        self,
        survey: Survey,
        plans: Sequence[Plan],
        drawing: Drawing | None = None,
        works: Sequence[Work] = (),
        *,
        diagonals: bool = True,
        advance: Advance | None = None,
    ) -> Outcome:
        """Take the data and all draws through every plan, in one pass over the rows.

        Parameters
        ----------
        survey : Survey
            From `survey`.
        plans : sequence of Plan
            From `plan`.
        drawing : Drawing, optional
            The draws to make; default: the data alone.
        works : sequence of Work
            What else to add up on the way.
        diagonals : bool
            Whether the diagonal terms of the forms are wanted.
        advance : callable, optional
            Told the number of rows done, see `amount_of_work`.

        Returns
        -------
        Outcome
            The forms of every plan and the sums of every piece of work, the data first.
        """
        drawing = drawing or Drawing()
        passing = [*works, *(plan.work for plan in plans if plan.work is not None)]
        unit = passing[0].unit if passing else 1.0
        if not all(math.isclose(work.unit, unit, rel_tol=1e-9) for work in passing):
            raise ValueError("pieces of work of one pass take weights in one unit")
        job = Job(passing, drawing, unit, advance) if passing else Job((), Drawing(), unit)
        totals = self._pass(survey, job)
        pair_weight = pair_weight_of(survey.source, totals.tally, unit)
        totals.tally.refuse(pair_weight)
        columns = None
        whole = survey.source.in_memory
        if whole is not None and any(plan.work is None for plan in plans):
            columns = Columns.of(whole, drawing, unit)
        sums = iter(totals.parts[len(works) :])
        return Outcome(
            tally=totals.tally,
            pair_weight=pair_weight,
            works=totals.parts[: len(works)],
            kernels=tuple(
                plan.outcome(
                    None if plan.work is None else next(sums),
                    columns,
                    diagonals=diagonals,
                    advance=advance,
                )
                for plan in plans
            ),
        )

    @property
    def _pilot_rows(self) -> int:
        """Rows that landmarks are chosen from."""
        return 4_096

    @abstractmethod
    def _survey(self, source: Source, min_rows: int) -> Survey: ...

    def _extract(self, source: Source, size: int | None, advance: Advance | None) -> Extract:
        return source.extract(size, advance)

    @abstractmethod
    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Plan: ...

    @abstractmethod
    def _pass(self, survey: Survey, job: Job) -> Totals:
        """Add every piece of work up over all rows."""

    def _settled(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Engine:  # noqa: ARG002
        return self

    def _describe(self, survey: Survey, plan: Any) -> str:  # noqa: ARG002
        return str(plan.describe())


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
    null: Null | CategoryDraws | None,
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


def what_needs_all_rows(kernel: LocalKernel, null: Null | None) -> str | None:
    """What about a test rules a stream of chunks out, if anything."""
    if kernel.is_positional:
        return "a precomputed matrix"
    whole = isinstance(null, SimulatedNull) and not isinstance(null, RowwiseNull)
    return f"{type(null).__name__}()" if whole else None


def refuse_what_needs_all_rows(kernel: LocalKernel, null: Null | None) -> None:
    """Refuse kernels and nulls that need all rows at once."""
    needy = what_needs_all_rows(kernel, null)
    if needy:
        raise InputError(
            "{needy} needs all rows at once; use a Sample in memory (scan.load()) with "
            "itrust.engines.Tiles()",
            argument="engine",
            details={"needy": needy},
        )
