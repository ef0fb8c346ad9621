"""The factor engine: one pass over the rows, linear in n, with a certified error."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from itrust._core import InputError
from itrust.data import Source
from itrust.engines.landmarks import make_plan
from itrust.engines.lowrank import LowRankPlan
from itrust.engines.passes import Job, Totals, Work, accumulate
from itrust.engines.plan import Purpose, Survey
from itrust.engines.products import Scratch
from itrust.engines.protocol import Engine, refuse_what_needs_all_rows
from itrust.engines.threads import available_threads, one_blas_thread, ordered_map
from itrust.kernels import LocalKernel

TOLERANCE = 0.01
# For kernels other than the main one, which lend power and no number to the report:
ROUGHLY, RANK_OF_OTHERS = 0.05, 128
LARGE_WORK = 2e10  # multiply-adds from which on the main one among many is no finer


@dataclass(frozen=True)
class Factor(Engine):
    """Low rank with a certificate: cost linear in the rows.

    Parameters
    ----------
    tolerance : float, optional
        Largest null error relative to the null standard deviation. Default: 1 %, but 5 % where a
        dictionary of checks meets many rows (from 40,000 with 999 draws). In the adaptive test this
        is for the default kernel; other kernels, which lend power only, get 5 % if it is smaller,
        and no certificate.
    max_rank : int
        Most landmarks for rows that share their categories. Where that does not suffice, the
        certificate says so; the p-value stays exact, for the approximate kernel.
    pilot : int
        Most rows from which landmarks are chosen.
    chunk : int
        Most rows in work at once.
    threads : int, optional
        Number of threads; default: the cores this process may use, or OMP_NUM_THREADS if that is
        smaller. The answer does not depend on it.
    """

    tolerance: float | None = None
    max_rank: int = 512
    pilot: int = 4_096
    chunk: int = 8_192
    threads: int | None = None

    def __post_init__(self) -> None:
        counts = (
            self.max_rank,
            self.pilot,
            self.chunk,
            1 if self.threads is None else self.threads,
        )
        if not 0 < (TOLERANCE if self.tolerance is None else self.tolerance) < 1 or min(counts) < 1:
            raise InputError(
                "{engine}: tolerance in (0, 1), the rest at least 1",
                argument="engine",
                value=self,
                details={"engine": repr(self)},
            )

    def _survey(self, source: Source, min_rows: int) -> Survey:
        return Survey.of(source, self.pilot, min_rows)

    def _plan(self, survey: Survey, kernel: LocalKernel, purpose: Purpose) -> LowRankPlan:
        # Landmarks come from random rows of the whole, always the same; no label is seen.
        refuse_what_needs_all_rows(kernel, purpose.null)
        asked = self._asked_for(purpose, survey.n)
        with one_blas_thread():  # else the landmarks would depend on the number of threads
            made = make_plan(
                kernel,
                survey.rows.first(asked.pilot),
                tolerance=asked.tolerance or TOLERANCE,
                max_rank=asked.max_rank,
                certified=purpose.is_main,
                rng=np.random.default_rng(0),
            )
        return replace(made, unit=survey.unit)  # one for all works of a pass

    def _asked_for(self, purpose: Purpose, n: int) -> Factor:
        """Give the engine with the tolerance and rank that a purpose deserves.

        Rougher for kernels that only lend power, and among many kernels where rows and draws
        are many and no tolerance was asked for.
        """
        tolerance = TOLERANCE if self.tolerance is None else self.tolerance
        if not purpose.is_main:
            rank = min(self.max_rank, RANK_OF_OTHERS)
            return replace(self, tolerance=max(tolerance, ROUGHLY), max_rank=rank)
        large = purpose.among_many and float(n) * purpose.draws * self.max_rank > LARGE_WORK
        return replace(self, tolerance=ROUGHLY if large and self.tolerance is None else tolerance)

    def _chunk_rows(self, n: int, works: Sequence[Work] = ()) -> int:
        """Rows at once: fewer when there are few, so that all threads have work."""
        wanted = [work.max_rows for work in works if work.max_rows is not None]
        return min(self.chunk, *wanted, max(1_024, n // 8))

    @property
    def factor_of_all(self) -> Factor:
        """Itself."""
        return self

    @property
    def _pilot_rows(self) -> int:
        return self.pilot

    def _pass(self, survey: Survey, job: Job) -> Totals:
        scratch = Scratch()
        work = ordered_map(
            lambda chunk: accumulate(job, chunk, scratch),
            survey.source.chunks(self._chunk_rows(survey.n, job.works)),
            self.threads or available_threads(),
        )
        total: Totals | None = None
        with closing(work):  # an interrupt must not leave threads to the garbage collector
            for part in work:
                total = part if total is None else total.absorbed(part)
                if job.advance:
                    job.advance(part.tally.rows)
        if total is None:
            raise InputError("there are no rows")
        return total
