"""What every engine does: survey the rows, plan a kernel, run the draws, describe itself.

A caller surveys a source once and hands the survey on. Nothing is written into the source, and
no caller needs to know which engine it has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np

from itrust._core import Advance, FloatArray, InputError, IntArray, WithFacts
from itrust.data import Extract, FilePart, Pilot, Points, Sample, Source, covariate_notes
from itrust.engines.passes import Drawing, Job, Tally, Totals, Work
from itrust.kernels import Gram, LocalKernel, split_match
from itrust.nulls import Null, SimulatedNull

PILOT = 4_096  # rows that landmarks are chosen from
POINTS = 20_000  # rows that kernels, widths and checks are chosen from


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known about the rows before a label is looked at; made by an engine."""

    source: Source
    rows: Pilot
    pilot: Pilot
    parts: tuple[FilePart, ...] = ()

    @classmethod
    def of(cls, source: Source, size: int) -> Survey:
        """Choose random rows on this machine."""
        rows = source.pilot(max(size, POINTS))
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
        """Predictions and covariates of all rows, or of 20,000 random ones."""
        return self.rows.first(POINTS).points

    @property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes: those of the source, and about the columns of pilot rows."""
        if self.source.in_memory is not None:
            return self.source.notes
        return (*self.source.notes, *self.rows.notes, *covariate_notes(self.points))


def weight_unit(pilot: Pilot) -> float:
    """Give the size of weights: the root of their mean square, in proportion to p(1 - p)."""
    p, variances = pilot.points.p, pilot.variances
    spread = float((p * (1 - p)).sum())
    return math.sqrt(variances.sum() / spread) if spread and variances.any() else 1.0


@dataclass(frozen=True, eq=False)
class Certificate(WithFacts):
    """How far the approximate kernel can be from the true one; p-values are exact for it.

    Attributes
    ----------
    rank : int
        Number of features that stand in the kernel's place.
    bound : float
        Under the null, the error's standard deviation is at most this share of the
        statistic's own. Uses no label. In single precision a small part of it, for rounding, is
        estimated from some rows.
    sampled : float
        That share itself, estimated from sampled pairs of rows.
    worst_case : (float, float)
        The true KLCE^2 minus the computed one lies between these, for the observed labels.
    precision : str
        Of the features: "float32" or "float64".
    """

    rank: int
    bound: float
    sampled: float
    worst_case: tuple[float, float]
    precision: str


MAX_ROWS_OF_TRIANGLES = 512  # of rows that share their exact matches


@dataclass(frozen=True, eq=False)
class NullMoments:
    """Null moments of some forms: where the tail of each begins and how long it is.

    For an entry of one feature phi, of the sum of w e phi; for others, of the sum over i != j of
    w_i e_i P_ij w_j e_j. All are closed forms in p, so no label is looked at.
    """

    expected: FloatArray
    variance: FloatArray
    triangles: FloatArray
    pairs: FloatArray
    cubic: FloatArray

    @classmethod
    def of_one(cls, *moments: float) -> NullMoments:
        """Put the moments of a single kernel, which has no cubic one, into arrays."""
        return cls(*(np.array([moment]) for moment in (*moments, 0.0)))

    def skewness_of_singles(self, expected: FloatArray) -> FloatArray:
        """Give the skewness of the sums along single features, all rows."""
        return np.asarray(self.cubic / self.expected**1.5 / np.sqrt(expected / self.expected))

    def of_forms(self, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give standard deviation and skewness of the forms, all rows."""
        ratio = expected / self.expected
        variance = self.variance * ratio**2
        third = self.triangles * ratio**3 + self.pairs * ratio**2
        some = np.maximum(variance, np.finfo(float).tiny ** 0.5)  # single features have none
        return np.sqrt(variance), np.maximum(third / some**1.5, 0.0)

    def take(self, kept: IntArray) -> NullMoments:
        """Keep some entries."""
        return NullMoments(**{name: values[kept] for name, values in vars(self).items()})


def third_moments(p: FloatArray, variances: FloatArray) -> FloatArray:
    """Give E (w e)^3 = w^3 v (1 - 2p), from w^2 v."""
    v = p * (1 - p)
    w = np.sqrt(np.divide(variances, v, out=np.zeros_like(v), where=v > 0))
    return np.asarray(variances * w * (1 - 2 * p))


def triangles_of(gram: Gram, v: FloatArray) -> float:
    """8 sum over distinct i, j, k of P_ij P_jk P_ki v_i v_j v_k, sampled group by group.

    Rows that share their exact matches form a group, and of a large group some rows stand for
    all.
    """
    _, match = split_match(gram)
    codes = np.zeros(v.size, dtype=np.int64) if match is None else match.left
    triangles = 0.0
    for rows in rows_by_code(codes):
        some = rows[some_of(rows.size)]
        root = np.sqrt(v[some])
        a = gram.block(some, some) * root * root[:, None]
        np.fill_diagonal(a, 0.0)
        # Twice the same matrix, which BLAS sees: half of the product is enough.
        triangles += 8 * float(np.sum(a * (a @ a.T))) * (rows.size / some.size) ** 3
    return triangles


def rows_by_code(codes: IntArray) -> list[IntArray]:
    """The rows of every code, in order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def some_of(size: int) -> IntArray:
    """Positions of the rows of a group that stand for all of it."""
    return np.linspace(0, size - 1, min(size, MAX_ROWS_OF_TRIANGLES)).astype(np.int64)


# Weighted residuals of all rows, data first, and their squares, (n, 1 + draws); null variances.
Columns = tuple[FloatArray, FloatArray, FloatArray]


def columns_of(sample: Sample, drawing: Drawing, unit: float) -> Columns:
    """Make the draws."""
    # The data are a column of the same product as the draws, so that ties stay ties.
    residuals = np.empty((sample.n, drawing.columns))
    residuals[:, 0] = sample.residuals
    if isinstance(drawing.null, SimulatedNull):
        drawing.null.fill(residuals[:, 1:], sample, drawing.draws, drawing.seed)
    weights, p = sample.weights_or_ones / unit, sample.p
    if sample.weights is not None:
        residuals *= weights[:, None]
    return residuals, np.square(residuals), np.square(weights) * p * (1 - p)


@dataclass(frozen=True, eq=False)
class KernelOutcome(ABC):
    """What a run gives for one kernel.

    Sum over i != j of e_i P_ij e_j for the data and every draw, (1 + draws,), that over i = j, and
    the mean of the latter under the null.
    """

    over_pairs: FloatArray
    diagonal: FloatArray
    expected: float

    @abstractmethod
    def variance(self) -> float:
        """Variance of the form under the null, from all rows."""

    @abstractmethod
    def spectrum(self) -> FloatArray:
        """Weights l_j of the limit law, that of sum l_j (z_j^2 - 1)."""

    def refined(self, moments: NullMoments) -> NullMoments:
        """Put moments that all rows have told in the place of those from pilot rows."""
        return moments

    def certificate(self, pair_weight: float) -> Certificate | None:  # noqa: ARG002
        """Tell how far the kernel is from the true one; None where it is the true one."""
        return None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run has found."""

    tally: Tally
    pair_weight: float
    works: tuple[Any, ...]
    kernels: tuple[KernelOutcome, ...]


def finite(sums: FloatArray) -> FloatArray:
    """Pass sums on; refuse what overflowed."""
    if not np.isfinite(sums).all():
        raise InputError("the statistic is not finite; rescale the columns that the kernel sees")
    return sums


BATCH_BYTES = 2**26  # of the numbers kept for a batch of draws; every chunk in work has as many
MIN_COLUMNS = 256


@dataclass(frozen=True)
class Purpose:
    """What a kernel is evaluated for; engines choose by it."""

    null: Null | None = None
    draws: int = 0
    among_many: bool = False
    is_main: bool = True


class Plan(ABC):
    """How one kernel will be evaluated; made by an engine without labels."""

    kernel: LocalKernel

    @property
    def work(self) -> Work | None:
        """What a pass over the rows adds up; None where all rows are needed at once."""
        return None

    @property
    def rank(self) -> int:
        """Numbers that are kept for each draw, beside the residuals of all rows."""
        return 0

    @abstractmethod
    def moments(self, survey: Survey) -> NullMoments:
        """Give moments of the form under the null, of all rows or, with features, of pilot rows."""

    def can_vary(self, moments: NullMoments) -> bool:
        """Tell whether the form differs between draws."""
        return bool(moments.variance[0] > 0)

    @abstractmethod
    def matrix(self, points: Points) -> FloatArray:
        """Give kernel values of some points as this plan has them."""

    @abstractmethod
    def outcome(self, sums: Any, advance: Advance | None = None) -> KernelOutcome:
        """Give the form of the data and of every draw, from sums or the `Columns` of all rows."""

    @abstractmethod
    def describe(self) -> str:
        """The plan in a few words."""


def amount_of_work(survey: Survey, plans: Sequence[Plan], works: Sequence[Work] = ()) -> int:
    """Give the number of rows that one `run` reports."""
    apart = sum(plan.work is None for plan in plans)
    passes = bool(works) or apart < len(plans)
    return survey.n * (int(passes) + apart)


def columns_at_once(survey: Survey, plans: Sequence[Plan], others: int = 0) -> int:
    """Give the number of draws that fit into memory at a time."""
    rows = others + 1 + sum(plan.rank for plan in plans)
    if any(plan.work is None for plan in plans):
        rows += survey.n
    return max(MIN_COLUMNS, BATCH_BYTES // (8 * rows))


class Engine(ABC):
    """Who computes the quadratic forms.

    An engine of one's own implements `_plan` and `_pass`, `survey` if rows are not chosen on this
    machine, and `describe` if it has more to say than its plans. `_pass` takes a `Job` and gives
    its `Totals`, which `accumulate_all` adds up over chunks of rows; all three are in
    `itrust.engines`.
    """

    @property
    def in_memory(self) -> Engine:
        """Who takes over where all rows are at hand: itself, unless it reads files only."""
        return self

    @property
    def factor_of_all(self) -> Any:
        """The `Factor` that makes a kernel which several outcomes share; None: the default."""
        return None

    def survey(self, source: Source) -> Survey:
        """Count the rows and choose random ones, in one pass where they are in files.

        Parameters
        ----------
        source : Source
            Rows in memory or in files.

        Returns
        -------
        Survey
            What the other methods take.
        """
        return Survey.of(source, self._pilot)

    def extract(
        self, source: Source, size: int | None = None, advance: Advance | None = None
    ) -> Extract:
        """Count the rows and keep random ones with their labels, in one pass.

        Parameters
        ----------
        source : Rows or Scan
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
        return source.extract(size, advance)

    def survey_of(self, extract: Extract) -> Survey:
        """Choose random rows among those at hand, in place of `survey`; no pass is made.

        Parameters
        ----------
        extract : Extract
            From `extract`.

        Returns
        -------
        Survey
            What the other methods take.
        """
        rows = extract.pilot(max(self._pilot, POINTS))
        return Survey(extract.source, rows, rows.first(self._pilot), extract.parts)

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

    def describe(self, survey: Survey, plan: Any) -> str:  # noqa: ARG002
        """Say in a few words how a kernel was evaluated.

        Parameters
        ----------
        survey : Survey
            That the plan was made for.
        plan : Plan
            How the kernel was evaluated.

        Returns
        -------
        str
            Such as "tiles of 512".
        """
        return str(plan.describe())

    def run(
        self,
        survey: Survey,
        plans: Sequence[Plan],
        drawing: Drawing | None = None,
        works: Sequence[Work] = (),
        *,
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
        alone = advance if passing else None
        tally, parts = self._pass(survey, (passing, drawing if passing else Drawing()), alone)
        whole, columns = survey.source.in_memory, None
        pair_weight = tally.pair_weight
        if whole is not None and tally.positives.size == 1:  # then nothing cancels
            pair_weight = whole.pair_weight / (unit**2 if whole.weights is not None else 1.0)
        tally.refuse(pair_weight)
        if whole is not None and any(plan.work is None for plan in plans):
            columns = columns_of(whole, drawing, unit)
        sums = iter(parts[len(works) :])
        kernels = tuple(
            plan.outcome(columns if plan.work is None else next(sums), advance) for plan in plans
        )
        return Outcome(tally, pair_weight, parts[: len(works)], kernels)

    @property
    def _pilot(self) -> int:
        """Rows that landmarks are chosen from."""
        return PILOT if self.factor_of_all is None else int(self.factor_of_all.pilot)

    @abstractmethod
    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Plan: ...

    @abstractmethod
    def _pass(self, survey: Survey, job: Job, advance: Advance | None) -> Totals:
        """Add every piece of work up over all rows."""


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
    works = [*chain(*(part.works(range(0)) for part in parts))]
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
    batches: list[list[Any]] = [[] for _ in parts]
    for block in blocks_of(survey, parts, draws):
        works = [part.works(block) for part in parts]
        drawing = Drawing(null, block, seed)
        outcome = engine.run(survey, plans, drawing, list(chain(*works)), advance=advance)
        kernels, sums = iter(outcome.kernels), iter(outcome.works)
        for batch, part, work in zip(batches, parts, works, strict=True):
            share = replace(
                outcome,
                works=tuple(islice(sums, len(work))),
                kernels=tuple(islice(kernels, len(part.plans))),
            )
            batch.append(part.reduced(share, block))
    return [part.finished(batch) for part, batch in zip(parts, batches, strict=True)]
