"""Where the evidence tips: few sizes are drawn, and closed forms say which.

Moments of every direction are closed forms, so the score of the data is known at every size without
a draw, and the critical value hardly changes with the size: draws at one size predict the crossing
at others. Draws on both sides of it, on the same uniform numbers, settle it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, Rng, as_seed, checked_alpha
from itrust.calibration import (
    BoundScores,
    Finding,
    IntervalRun,
    bound_findings,
    checked_draws,
    checked_source,
    null_warnings,
)
from itrust.data import Sample, Scan
from itrust.engines import EngineChoice
from itrust.nulls import Prudent, Tolerance
from itrust.overturn.numbers import NumberRobustness, number_robustness
from itrust.overturn.results import KINDS, PrudentResult, Robustness, Tipping, Violation
from itrust.tasks import Task, as_tasks, evaluate_tasks

STEPS = 2_048  # sizes from the neutral one to the end
COARSE = 32  # of them, where the score of the data is computed
MARGIN = 0.05  # of a score on either side of the crossing: about .02 standard errors of the size
CURVE = (0.004, 0.2, 0.6)  # predicted p-values of sizes that are drawn for the curve
CURVE_DRAWS = 199
MAX_ROUNDS = 16


@dataclass
class Search:
    """The search for one tipping point: indices of sizes, 0 being the neutral one."""

    kind: str
    violation: Violation
    alpha: float
    pvalues: dict[int, float]
    finding: Finding | None
    indices: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    scores: FloatArray = field(default_factory=lambda: np.zeros(1))
    critical: float = math.inf
    width: int = 1
    curve: dict[int, float] = field(default_factory=dict)

    @property
    def low(self) -> int:
        """The largest size up to which all that was drawn is rejected; -1: none."""
        kept = -1
        for index in sorted(self.pvalues):
            if self.pvalues[index] > self.alpha:
                break
            kept = index
        return kept

    @property
    def high(self) -> int:
        """The smallest size that was drawn and is not rejected; one beyond the end: none."""
        above = [index for index, pvalue in self.pvalues.items() if pvalue > self.alpha]
        return min(above, default=STEPS + 1)

    def crossing(self, score: float) -> int:
        """The size at which the score of the data falls to this one; the end if it does not."""
        below = np.flatnonzero(self.scores < score)
        if not below.size:
            return STEPS
        at = int(below[0])
        if at == 0:
            return 0
        a, b = float(self.scores[at - 1]), float(self.scores[at])
        start, stop = int(self.indices[at - 1]), int(self.indices[at])
        return int(start + (a - score) / (a - b) * (stop - start))

    def wanted(self) -> list[int]:
        """Sizes to draw next; none where the crossing is known well enough."""
        low, high = self.low, self.high
        if low < 0 or low == STEPS:
            return []
        drawn = len(self.pvalues)
        asked = [self.crossing(self.critical)]
        if drawn > 1:
            ends = [self.crossing(self.critical + k * MARGIN) for k in (1, -1)]
            own = max(1, (ends[1] - ends[0]) // 2)
            self.width = max(self.width, own)
            if high - low <= 2 * own + 1:
                return []
            if drawn == 2:
                asked = [asked[0] - own, asked[0] + own]
            else:  # the prediction was off: go on from what is known, ever faster
                self.width *= 2
                outward = low + self.width if high > STEPS else high - self.width
                asked = [outward if high > STEPS or low == 0 else (low + high) // 2]
        inside = {min(max(index, low + 1), min(high - 1, STEPS)) for index in asked}
        return sorted(index for index in inside if index not in self.pvalues)

    def size(self, index: int) -> float:
        """The size of an index."""
        return self.violation.size(index / STEPS)

    def take(self, index: int, scores: BoundScores, finding: Finding) -> None:
        """Note what the draws of one size show."""
        self.pvalues[index] = scores.pvalue
        self.critical = scores.critical(self.alpha)
        if index == self.low:
            self.finding = finding

    def found(self) -> Tipping:
        """The curve, made monotone, and the point, which is that of the search alone.

        What is valid at the point is valid at smaller sizes, whose laws are among those of the
        point. So few draws at a smaller size say no more than the point does.
        """
        low = self.low
        most = max((p for index, p in self.pvalues.items() if index <= low), default=1.0)
        curve = {index: min(p, most) if index < low else p for index, p in self.curve.items()}
        drawn = {**curve, **self.pvalues}
        indices = sorted(drawn)
        raw = [drawn[index] for index in indices]
        return Tipping(
            kind=self.kind,
            neutral=self.violation.neutral,
            sizes=np.array([self.size(index) for index in indices]),
            pvalues=np.maximum.accumulate(np.array(raw)),
            point=None if low < 0 else self.size(low),
            beyond=low == STEPS,
            finding=self.finding if low >= 0 else None,
        )


def tipping_points(
    run: IntervalRun,
    neutral: BoundScores,
    alpha: float,
    kinds: Sequence[str] = tuple(KINDS),
    progress: bool | None = None,
) -> tuple[Tipping, ...]:
    """Search the tipping points of several kinds of violation, all in the same passes."""
    first = bound_findings(run.directions, neutral)[0]
    searches = [Search(k, KINDS[k], alpha, {0: neutral.pvalue}, first) for k in kinds]
    if neutral.pvalue > alpha:
        return tuple(search.found() for search in searches)
    _predict(run, neutral, searches, progress)
    for _ in range(MAX_ROUNDS):
        asked = [(search, index) for search in searches for index in search.wanted()]
        if not asked:
            break
        for search, index, scores in _drawn(run, asked, None, progress):
            search.take(index, scores, bound_findings(run.directions, scores)[0])
    asked = [(search, index) for search in searches for index in _curve(search, neutral)]
    for search, index, scores in _drawn(run, asked, CURVE_DRAWS, progress):
        search.curve[index] = scores.pvalue
    return _agreed(tuple(search.found() for search in searches))


def _agreed(found: tuple[Tipping, ...]) -> tuple[Tipping, ...]:
    """Let errors of one direction stand at least as long as those of both, which include them."""
    both = next((one for one in found if one.kind == "label_error"), None)
    if both is None or both.point is None:
        return found
    return tuple(
        one.at_least(both) if one.kind in ("false_positives", "false_negatives") else one
        for one in found
    )


def _drawn(
    run: IntervalRun, asked: Sequence[tuple[Search, int]], draws: int | None, progress: bool | None
) -> list[tuple[Search, int, BoundScores]]:
    if not asked:
        return []
    nulls = [search.violation.null(search.size(index)) for search, index in asked]
    found, _ = run.run(nulls, draws, progress=progress)
    return [(*one, scores) for one, scores in zip(asked, found, strict=True)]


def _curve(search: Search, neutral: BoundScores) -> list[int]:
    """Sizes for the curve, below the point and above it."""
    drawn = neutral.combined[1:]
    low, high = search.low, search.high
    asked = [search.crossing(float(np.quantile(drawn, 1 - share))) for share in CURVE]
    inside = {index for index in asked if 0 < index < low - 1 or high + 1 < index <= STEPS}
    return sorted(inside - set(search.pvalues))


def _predict(
    run: IntervalRun, neutral: BoundScores, searches: Sequence[Search], progress: bool | None
) -> None:
    """Compute the score of the data at some sizes, and guess the critical value."""
    indices = np.unique(np.rint(np.linspace(0, 1, COARSE) ** 2 * STEPS).astype(np.int64))
    nulls = [s.violation.null(s.size(index)) for s in searches for index in indices]
    found, _ = run.run(nulls, 0, progress=progress)
    scores = np.array([one.combined[0] for one in found]).reshape(len(searches), -1)
    # At the neutral size both signs of a direction exclude each other; elsewhere the critical value
    # is larger, and at most that of Bonferroni.
    least, most = neutral.critical(searches[0].alpha), math.log(2 / searches[0].alpha)
    for search, own in zip(searches, scores, strict=True):
        search.indices, search.scores = indices, np.minimum.accumulate(own)
        search.critical = (least + max(least, most)) / 2


def robustness(
    sample: Sample | Scan,
    tasks: Sequence[Task | str] | Task | str = (),
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    progress: bool | None = None,
) -> Robustness:
    """Tell what would overturn the evidence against calibration.

    Rows may have been selected by something that tells about the label, labels may be in error, and
    a small bias may not matter. Each lets the label's probability lie in an interval around the
    prediction. For each kind the result has the largest violation at which the evidence stands: the
    p-value is valid for every law inside the interval, at every n.

    Parameters
    ----------
    sample : Sample or Scan
        Labels, probabilities and covariates of independent rows.
    tasks : tasks or their text forms
        Numbers whose findings are judged, too, such as "mean(age)"; default: none.
    alpha : float
        Error that is allowed.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same result.
    engine : "auto", Tiles, Factor or Dask
        Who passes over the rows.
    progress : bool, optional
        Default: a bar in a terminal once the work has taken a second.

    Returns
    -------
    Robustness
        Tipping points with what carried them, and the question of prudence.

    Examples
    --------
    >>> import itrust as it
    >>> r = it.robustness(it.simulate.survey(1_000, rng=0).sample, draws=199, rng=0)
    >>> r.violation("selection")
    <Tipping: selection, 1.45>
    """
    begun = time.perf_counter()
    if getattr(sample, "several", False):
        problem = (
            "{argument} has several classes, whose probabilities cannot move one by one; ask about "
            "one class at a time, with alpha divided by the number of classes"
        )
        raise InputError(
            problem,
            argument="sample",
            value=sample,
            hint="robustness(sample.one_class(name), alpha=...)",
        )
    source, alpha = checked_source(sample, "robustness"), checked_alpha(alpha)
    wanted = as_tasks(tasks)
    run = IntervalRun(source, None, checked_draws(draws), as_seed(rng), engine)
    warnings = null_warnings(source, Tolerance(0.0))
    (neutral, prudent), outcome = run.run([Tolerance(0.0), Prudent()], progress=progress)
    violations = tipping_points(run, neutral, alpha, progress=progress)
    notes = run.survey.notes
    if source.in_memory is None:
        notes = (*outcome.tally.notes, *notes)
    numbers: tuple[NumberRobustness, ...] = ()
    if wanted:  # ranges are from the rows at hand
        results = evaluate_tasks(
            sample, wanted, alpha=alpha, draws=run.draws, rng=run.seed, engine=engine
        )
        rows = sample.extract().some if isinstance(sample, Scan) else sample
        numbers = number_robustness(rows, results, is_all=rows.n == results[0].n)
    return Robustness(
        n=outcome.tally.rows,
        alpha=alpha,
        draws=run.draws,
        seed=run.seed,
        names=source.names,
        pvalue=neutral.pvalue,
        checks=len(run.directions.entries),
        impossible=neutral.impossible,
        violations=violations,
        prudence=PrudentResult(
            prudent.pvalue, bound_findings(run.directions, prudent)[0], prudent.impossible
        ),
        numbers=numbers,
        elapsed=time.perf_counter() - begun,
        warnings=warnings,
        notes=(*notes, *run.directions.dictionary.notes),
    )
