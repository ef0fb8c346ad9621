"""What every engine does: survey the rows, plan a kernel, run the draws, describe itself.

A caller surveys a source once and hands the survey on. Nothing is written into the source, and
no caller needs to know which engine it has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from itrust._core import Advance, FloatArray
from itrust.data import FilePart, Pilot, Points, Source
from itrust.engines.moments import NullMoments
from itrust.engines.outcome import Columns, KernelOutcome, Outcome, pair_weight_of
from itrust.engines.passes import Additive, Drawing, Totals, Work
from itrust.engines.tally import checked_tally
from itrust.kernels import LocalKernel
from itrust.nulls import Null

BATCH_BYTES = 2**28  # of the numbers kept for a batch of draws
MIN_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known about the rows before a label is looked at; made by an engine.

    Attributes
    ----------
    source : Source
        The rows.
    rows : Pilot
        Random rows of the whole, at least as many as the engine needs.
    pilot : Pilot
        Those of them that the engine uses.
    parts : tuple of FilePart
        The pieces that other machines read; empty on one machine.
    """

    source: Source
    rows: Pilot
    pilot: Pilot
    parts: tuple[FilePart, ...] = ()

    @classmethod
    def of(cls, source: Source, size: int, min_rows: int = 0) -> Survey:
        """Choose random rows on this machine."""
        rows = source.pilot(max(size, min_rows))
        return cls(source, rows, rows.first(size))

    @property
    def n(self) -> int:
        """Number of rows in the whole."""
        return self.rows.n

    @cached_property
    def unit(self) -> float:
        """The size of the weights, by which they are divided."""
        return weight_unit(self.pilot)

    @property
    def points(self) -> Points:
        """Predictions and covariates of all rows in memory, or of the pilot rows of files."""
        whole = self.source.in_memory
        return self.pilot.points if whole is None else whole.points

    @property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes: those of the source, and about the columns of pilot rows."""
        if self.source.in_memory is not None:
            return self.source.notes
        notes = (said for column in self.pilot.points.columns for said in column.notes())
        return (*self.source.notes, *notes)


def weight_unit(pilot: Pilot) -> float:
    """The size of weights: the root of their mean square, in proportion to p(1 - p)."""
    p, variances = pilot.points.p, pilot.variances
    spread = float((p * (1 - p)).sum())
    return math.sqrt(variances.sum() / spread) if spread and variances.any() else 1.0


@dataclass(frozen=True)
class Purpose:
    """What a kernel is evaluated for; engines choose by it.

    Attributes
    ----------
    null : Null or None
        The null that the statistic is compared with; None where the statistic alone is wanted.
    draws : int
        How many draws the null makes; 0 for a formula.
    among_many : bool
        Whether many kernels are tested together, so that each should cost little.
    is_main : bool
        Whether the kernel gives the reported statistic; others lend power alone.
    """

    null: Null | None = None
    draws: int = 0
    among_many: bool = False
    is_main: bool = True


class Plan(ABC):
    """How one kernel will be evaluated; made by an engine without labels.

    Attributes
    ----------
    kernel : LocalKernel
        The kernel with its widths.
    """

    kernel: LocalKernel

    @property
    @abstractmethod
    def work(self) -> Work | None:
        """What a pass over the rows adds up; None where all rows are needed at once."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Numbers that are kept for each draw, beside the residuals of all rows."""

    @abstractmethod
    def moments(self, survey: Survey) -> NullMoments:
        """Moments of the form under the null, from what the survey knows."""

    @abstractmethod
    def can_vary(self, moments: NullMoments) -> bool:
        """Whether the form differs between draws."""

    @abstractmethod
    def matrix(self, points: Points) -> FloatArray:
        """Kernel values of some points as this plan has them, (n, n)."""

    @abstractmethod
    def outcome(
        self,
        sums: Additive | None,
        columns: Columns | None,
        *,
        diagonals: bool,
        advance: Advance | None,
    ) -> KernelOutcome:
        """The form of the data and of every draw.

        Parameters
        ----------
        sums : Additive or None
            What the pass has added up for `work`.
        columns : Columns or None
            The residuals of all rows, where `work` is None.
        diagonals : bool
            Whether the diagonal terms are wanted, too.
        advance : callable or None
            Told the number of rows done.
        """

    @abstractmethod
    def describe(self) -> str:
        """The plan in a few words."""


class Engine(ABC):
    """Who computes the quadratic forms."""

    @abstractmethod
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

    @abstractmethod
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

    def settled(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Engine:  # noqa: ARG002
        """The engine that would do the work: itself, unless it chooses between others."""
        return self

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
        unit = passing[0].unit if passing else survey.unit
        totals = self._pass(
            survey,
            passing,
            drawing if passing else Drawing(),
            unit,
            advance if passing else None,
        )
        pair_weight = pair_weight_of(survey.source, totals.tally, unit)
        checked_tally(totals.tally, pair_weight)
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

    @abstractmethod
    def _pass(
        self,
        survey: Survey,
        works: Sequence[Work],
        drawing: Drawing,
        unit: float,
        advance: Advance | None,
    ) -> Totals:
        """Add every piece of work up over all rows."""

    def describe(self, survey: Survey, plan: Plan) -> str:  # noqa: ARG002
        """Say in a few words how a kernel was evaluated.

        Parameters
        ----------
        survey : Survey
            From `survey`.
        plan : Plan
            From `plan`.

        Returns
        -------
        str
            Such as "tiles of 512".
        """
        return plan.describe()


def amount_of_work(survey: Survey, plans: Sequence[Plan], works: Sequence[Work] = ()) -> int:
    """Rows that one `run` reports: one round for the pass and one for each plan without work."""
    apart = sum(plan.work is None for plan in plans)
    passes = bool(works) or apart < len(plans)
    return survey.n * (int(passes) + apart)


def columns_at_once(survey: Survey, plans: Sequence[Plan], others: int = 0) -> int:
    """Draws that fit into memory at a time; `others` counts further numbers kept for each draw."""
    rows = others + 1 + sum(plan.rank for plan in plans)
    if any(plan.work is None for plan in plans):
        rows += survey.n
    return max(MIN_COLUMNS, BATCH_BYTES // (8 * rows))
