"""What would overturn an audit: tipping points of its evidence and of its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import WithFacts
from itrust.data import Sample
from itrust.engines import EngineChoice
from itrust.overturn import (
    KINDS,
    NumberRobustness,
    PrudentResult,
    Tipping,
    number_robustness,
    of_kind,
    robustness,
)
from itrust.tasks import TaskResult

MAX_ROWS = 20_000  # random ones of more: they tell tipping points closely, in a few seconds
ENOUGH_DRAWS = 199  # for an alpha of 0.05; tipping points of more differ by less than their error
DRAWS_ABOVE = 10  # draws that an alpha has to leave above the critical value


# Why it is not told what would overturn the evidence against the model.
NOT_REJECTED = "calibration is not rejected, so there is nothing to overturn"
DEPENDENT = (
    "rows are not independent draws, and it is not known how a violation would act on rows "
    "that go together"
)
SEVERAL_CLASSES = (
    "probabilities of several classes cannot move one by one; audit one class against the "
    "rest, with alpha divided by the number of classes"
)
NOT_IN_SUMS = (
    "sums of labels alone do not reject calibration, and nothing else can be judged under a "
    "violation"
)


@dataclass(frozen=True, eq=False)
class Overturning(WithFacts):
    """What would overturn an audit.

    Attributes
    ----------
    violations : tuple of Tipping
        For each kind of violation the size up to which calibration is rejected, with p-values;
        empty where `untold` says why.
    prudence : PrudentResult or None
        Whether a probability is shown to be too low somewhere; None where `untold` says why.
    numbers : tuple of NumberRobustness
        What would overturn the findings about the user's numbers.
    untold : str or None
        Why there are no violations: calibration is not rejected, rows depend on each other, classes
        are several, or sums of labels alone do not reject. None where there are.
    rows : int
        Rows that violations were judged on: all, or random ones of them.
    draws : int
        How often labels were drawn for that; 0 where they were not.
    checks : int
        Directions along which labels were compared; p-values are adjusted for all.
    """

    violations: tuple[Tipping, ...]
    prudence: PrudentResult | None
    numbers: tuple[NumberRobustness, ...]
    untold: str | None = None
    rows: int = 0
    draws: int = 0
    checks: int = 0

    def violation(self, kind: str) -> Tipping:
        """Look one kind of violation up.

        Parameters
        ----------
        kind : str
            Such as "selection".

        Returns
        -------
        Tipping
            Its curve and its tipping point, as of `Robustness.violation`. Refused where nothing is
            told: `untold` says why.
        """
        return of_kind(self.violations, kind, self.untold or "")

    def point(self, kind: str) -> float | None:
        """Say up to which size calibration is rejected.

        Parameters
        ----------
        kind : str
            Such as "selection".

        Returns
        -------
        float or None
            None where nothing is told.
        """
        if self.untold is not None and kind in KINDS:
            return None
        return self.violation(kind).point


def overturning_of(
    rows: Any,
    judged: Any,
    tasks: Sequence[TaskResult],
    *,
    refuted: bool,
    is_all: bool,
    alpha: float,
    draws: int,
    seed: int,
    engine: EngineChoice,
) -> Overturning:
    """Find what would overturn an audit."""
    if rows.several:
        untold = SEVERAL_CLASSES if refuted else NOT_REJECTED
        return Overturning((), None, (), untold)
    numbers = number_robustness(rows, tasks, is_all=is_all)
    if not refuted:
        return Overturning((), None, numbers, NOT_REJECTED)
    if not rows.design.is_simple:
        return Overturning((), None, numbers, DEPENDENT)
    enough = min(draws, max(ENOUGH_DRAWS, math.ceil(DRAWS_ABOVE / alpha) - 1))
    chosen = _some(judged, seed)
    found = robustness(chosen, alpha=alpha, draws=enough, rng=seed, engine=engine, progress=False)
    told: dict[str, Any] = {"rows": found.n, "draws": found.draws, "checks": found.checks}
    if found.pvalue > alpha:
        return Overturning((), None, numbers, NOT_IN_SUMS, **told)
    return Overturning(found.violations, found.prudence, numbers, **told)


def _some(sample: Sample, seed: int) -> Sample:
    """The rows, or random ones of many, chosen without a look at labels."""
    if sample.n <= MAX_ROWS:
        return sample
    chosen = np.random.default_rng([seed, sample.n]).choice(sample.n, MAX_ROWS, replace=False)
    return sample.take(np.sort(chosen))
