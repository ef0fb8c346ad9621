"""What `engine="auto"` means: tiles or a factor, by cost and by the label-free certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from itrust._core import InputError
from itrust.data import Source
from itrust.engines.factor import TOLERANCE, Factor, what_needs_all_rows
from itrust.engines.lowrank import LowRankPlan
from itrust.engines.passes import Job, Totals
from itrust.engines.plan import Engine, Plan, Purpose, Survey
from itrust.engines.tiles import MAX_DENSE_ROWS, Tiles
from itrust.kernels import LocalKernel
from itrust.nulls import AnalyticNull

MAX_ROWS_FOR_EXACT = 20_000  # the statistic alone
MAX_ROWS_FOR_TILES = 60_000  # where the rank does not suffice
MAX_ROWS_FOR_MANY_TILES = 8_000  # the same where many kernels are tested together
MAX_ROWS_FOR_OTHER_TILES = 3_000  # and for those of them that lend power only
FINE = 0.001  # tolerance for the statistic alone
# Seconds, measured on two AVX-512 cores; only their ratios matter.
KERNEL_VALUE, FLOP_64, FLOP_32, REDRAW, PLAN = 2e-9, 7e-12, 3.5e-12, 2e-9, 0.04

EngineChoice = Engine | Literal["auto"]


def as_engine(engine: object) -> Engine:
    """The engine that was asked for; refuse what is none."""
    if isinstance(engine, Engine):
        return engine
    if engine != "auto":
        raise InputError(
            "{argument} must be 'auto' or one of itrust.engines (Tiles(), Factor(), Dask(client)), "
            "not {value}",
            argument="engine",
            value=engine,
        )
    return Auto()


@dataclass(frozen=True)
class Auto(Engine):
    """The cheaper one of `Tiles` and `Factor` that keeps the error at 1 %.

    Rows in files take the factor; so do many rows, unless the rank does not suffice for one
    kernel on up to 60,000 rows. What needs all rows at once takes tiles. A dictionary of checks on
    many rows takes the factor with an error of 5 % (`Factor`).
    """

    def _survey(self, source: Source, min_rows: int) -> Survey:
        return Survey.of(source, Factor.pilot, min_rows)

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> Plan:
        n, null = survey.n, purpose.null
        factor = Factor()._asked_for(purpose, n)
        if null is None:  # the statistic alone
            factor = replace(factor, tolerance=FINE)
        if survey.source.in_memory is None:
            return factor.plan(survey, kernel, purpose)
        exact = Tiles().plan(survey, kernel, purpose)
        dense = not isinstance(null, AnalyticNull) or n <= MAX_DENSE_ROWS
        if what_needs_all_rows(kernel, null):
            return exact
        if null is None and n <= MAX_ROWS_FOR_EXACT:  # tiles are cheap for long
            return exact
        if null is not None and dense and _tile_seconds(n, purpose.draws) < PLAN:
            return exact
        # With few rows, choosing landmarks from many would take longer than using them.
        factor = replace(factor, pilot=min(Factor.pilot, max(1_500, n // 3)))
        plan = factor._plan(survey, kernel, purpose)
        return exact if dense and _tiles_are_better(n, plan, factor, purpose) else plan

    def _pass(self, survey: Survey, job: Job) -> Totals:
        return Factor()._pass(survey, job)


def _tile_seconds(n: int, draws: int) -> float:
    return n**2 / 2 * (KERNEL_VALUE + 2 * (1 + draws) * FLOP_64)


def _tiles_are_better(n: int, plan: LowRankPlan, factor: Factor, purpose: Purpose) -> bool:
    draws = purpose.draws
    tolerance = factor.tolerance or TOLERANCE
    if not purpose.is_main and plan.sampled_error > tolerance:
        return n <= MAX_ROWS_FOR_OTHER_TILES
    if purpose.is_main and plan.error > tolerance:
        return n <= (MAX_ROWS_FOR_MANY_TILES if purpose.among_many else MAX_ROWS_FOR_TILES)
    landmarks = len(plan.landmarks) / max(len(plan.blocks), 1)
    rank = plan.rank / max(len(plan.blocks), 1)
    row = landmarks * (KERNEL_VALUE + 2 * rank * FLOP_32)
    row += 2 * rank * (rank + 1 + draws) * FLOP_32 + draws * REDRAW
    return n * row > _tile_seconds(n, draws)
