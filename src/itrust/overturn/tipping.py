"""Where the evidence tips: few sizes are drawn, and closed forms say which.

Moments of every direction are closed forms, so the score of the data is known at every size without
a draw, and the critical value hardly changes with the size: draws at one size predict the crossing
at others. Draws on both sides of it, on the same uniform numbers, settle it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.calibration import BoundScores, Finding, IntervalRun, bound_findings
from itrust.overturn.results import KINDS, Tipping, Violation

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
    run: IntervalRun,
    asked: Sequence[tuple[Search, int]],
    draws: int | None,
    progress: bool | None,
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
