"""Checks of several classes on one scale: of each class, of all together, and between pairs.

All rows of the table share their draws, so the largest of them has an exact p-value, and step-down
adjusts every one for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr

from itrust._core import Advance, AnyArray, BoolArray, FloatArray, IntArray
from itrust.calibration.dictionary.entries import Shape
from itrust.calibration.multiclass.checks import ClassChecks, Contrasts
from itrust.calibration.multiclass.results import TakenFor
from itrust.calibration.multiplicity import largest_of
from itrust.calibration.pipeline import (
    MOMENT_DRAWS,
    ScaledChecks,
    Scores,
    log_tails_of,
    on_one_scale,
)
from itrust.data import Rows
from itrust.engines import Additive, Drawing, Outcome, Plan, RowwiseWork, Tally, Work, run_together
from itrust.nulls import CategoryDraws, Rademacher

ClassNull = CategoryDraws | Rademacher

# Shares of the weight, from a small power study; classes and pairs share theirs equally.
SHARES = {"form": 0.05, "vectors": 0.20, "classes": 0.45, "pairs": 0.30}
JUDGED = 0.2  # contrasts with larger p-values keep these
MAX_JUDGED = 60
CLEAR = 2.58  # null standard deviations by which each class has to be off


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassScores(Scores):
    """What every check of all classes shows; the statistic is of each class, (K, 1 + draws)."""

    checks: ClassChecks
    tally: Tally

    @property
    def vectors(self) -> slice:
        """Rows of functions of the covariates, all classes together."""
        return slice(1, 1 + self.checks.law.vectors.size)

    @cached_property
    def classes(self) -> list[slice]:
        """Rows of every class."""
        sizes = [own.weights.size for own in self.checks.prepared]
        ends = self.vectors.stop + np.cumsum([0, *sizes])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def pairs(self) -> slice:
        """Rows of contrasts between two classes."""
        return slice(self.classes[-1].stop, self.weights.size)

    def largest(self, rows: slice) -> FloatArray:
        """The largest score of some checks for the data and every draw, (1 + draws,)."""
        return largest_of(self.log_tails[rows], self.log_weights[rows])

    @property
    def null_sd(self) -> float:
        """Of the statistic of all classes together."""
        return self.checks.joint.sd / self.tally.pair_weight

    def of_class(self, k: int) -> Scores:
        """The checks of one class as the test of one outcome has them."""
        rows = self.classes[k]
        return Scores(
            self.log_tails[rows],
            self.standardised[rows],
            self.statistic[k],
            self.sd[rows],
            self.skewness[rows],
            entries=self.checks.prepared[k].entries,
            weights=self.weights[rows],
            is_single=self.is_single[rows],
            n=self.n,
        )

    def with_statistic(self, statistic: FloatArray) -> ClassScores:
        """The same with the joint form of every class evaluated in another way."""
        form, standardised, _, _ = _form(self.checks, statistic.sum(axis=0), self.null_sd)
        return replace(
            self,
            log_tails=np.concatenate([form, self.log_tails[1:]]),
            standardised=np.concatenate([standardised, self.standardised[1:]]),
            statistic=statistic,
        )


def class_scores(
    checks: ClassChecks,
    null: ClassNull,
    draws: int,
    seed: int,
    advance: Advance | None = None,
    is_even: BoolArray | None = None,
) -> ClassScores:
    """Score the data and all draws by every check."""
    survey, law, part = checks.survey, checks.law, ClassScoring(checks)
    (scores,) = run_together(checks.engine, survey, [part], null, draws, seed, advance)
    made: ClassScores = scores
    if not null.keeps_clusters:
        return made
    drawing = Drawing(null, range(draws, draws + MOMENT_DRAWS), seed)
    others = _scaled(checks, checks.engine.run(survey, [], drawing, checks.works))
    even = np.ones(len(checks.prepared), dtype=bool) if is_even is None else is_even
    of_vectors = np.full(law.vectors.size, bool(even.all()))
    of_pairs = even[law.pairs[:, :2]].all(axis=1)
    symmetric = np.concatenate([[False], of_vectors, *checks.symmetric, of_pairs])
    keeps = isinstance(null, Rademacher)
    return made.on_scale_of(others, symmetric, keeps_residuals=keeps)


@dataclass(frozen=True, eq=False)
class ClassScoring:
    """The checks of all classes as a part of a pass."""

    checks: ClassChecks
    plans: Sequence[Plan] = ()

    def works(self, block: range) -> list[Work]:  # noqa: ARG002
        return self.checks.works

    @property
    def width(self) -> int:
        return self.checks.width

    def reduced(self, outcome: Outcome, block: range) -> ScaledChecks:
        checks, tally = self.checks, outcome.tally
        scaled = _scaled(checks, outcome)
        if block.start:
            return scaled
        singles = [own.is_single for own in checks.prepared]
        together = np.zeros(1 + checks.law.vectors.size, dtype=bool)
        is_single = np.concatenate([together, *singles, np.ones(len(checks.law.pairs), dtype=bool)])
        weights = _weights(checks)
        facts = {"weights": weights, "is_single": is_single, "n": tally.rows}
        return ClassScores(**vars(scaled), **facts, checks=checks, tally=tally)  # type: ignore[arg-type]

    def finished(self, batches: Sequence[ScaledChecks]) -> ClassScores:
        first, *others = batches
        assert isinstance(first, ClassScores)
        return first.with_batches(others)


def _weights(checks: ClassChecks) -> FloatArray:
    """Of the joint form, vectors, checks of each class and pairs; they sum to 1."""
    of_classes = [own.weights for own in checks.prepared]
    lively = max(sum(w.size > 0 for w in of_classes), 1)
    vectors, pairs = checks.law.vectors.size, len(checks.law.pairs)
    parts = [
        np.array([SHARES["form"]]),
        np.full(vectors, SHARES["vectors"] / max(vectors, 1)),
        *(w * (SHARES["classes"] / lively) for w in of_classes),
        np.full(pairs, SHARES["pairs"] / max(pairs, 1)),
    ]
    weights = np.concatenate(parts)
    return np.asarray(weights / weights.sum())


ScaledPart = tuple[FloatArray, AnyArray, FloatArray, FloatArray]


def _scaled(checks: ClassChecks, outcome: Outcome) -> ScaledChecks:
    """Every check of one batch on its scale, and what every class contributes, (K, columns)."""
    law, (*banks, joint, contrasts) = checks.law, outcome.works
    over_pairs = np.square(joint.forms).sum(axis=1) - joint.diagonals
    total = over_pairs.sum(axis=0)
    vectors = np.array(
        [
            np.square(mixing @ contrasts.forms[:, g]).sum(axis=0)
            for g, mixing in zip(law.vectors, law.mixing, strict=True)
        ]
    ).reshape(law.vectors.size, total.size)
    vectors = (vectors - law.means[:, None]) / law.sds[:, None]
    a, b, g = law.pairs.T
    sums = contrasts.forms
    pairs = sums[a, g] - sums[b, g]
    trends = np.flatnonzero(law.level)
    pairs[trends] -= law.level[trends, None] * (sums[a[trends], 0] - sums[b[trends], 0])
    parts: list[ScaledPart] = [
        _form(checks, total, checks.joint.sd),
        _with_tails(vectors, law.sds, law.skews),
        *(on_one_scale(own.bank, some) for own, some in zip(checks.prepared, banks, strict=True)),
        _with_tails(pairs / law.sd[:, None], law.sd, law.skewness, single=True),
    ]
    tails, standardised, sd, skewness = (np.concatenate(own) for own in zip(*parts, strict=True))
    return ScaledChecks(tails, standardised, over_pairs / outcome.pair_weight, sd, skewness)


def _form(checks: ClassChecks, total: FloatArray, sd: float) -> ScaledPart:
    """The joint form of all classes."""
    form = np.divide(total, sd, out=np.zeros_like(total), where=sd > 0)[None]
    return _with_tails(form, np.array([sd]), np.array([checks.joint.skewness]))


def _with_tails(
    standardised: FloatArray, sd: FloatArray, skewness: FloatArray, *, single: bool = False
) -> ScaledPart:
    tails = log_tails_of(standardised, skewness[:, None], np.full((len(sd), 1), single))
    return tails, standardised, sd, skewness


def taken_for(
    table: ClassScores, classes: Sequence[Any], adjusted: FloatArray, alone: FloatArray
) -> tuple[TakenFor, ...]:
    """What every contrast between two classes shows, the largest scores first."""
    law, first, scores = table.checks.law, table.pairs.start, table.observed[table.pairs]
    sides = law.pairs[:, :2].copy()  # the class that is too low, and the one too high
    swapped = table.standardised[table.pairs, 0] < 0
    sides[swapped] = sides[swapped, ::-1]
    order = np.argsort(-scores, kind="stable").tolist()
    judged = [number for number in order[:MAX_JUDGED] if adjusted[first + number] <= JUDGED]
    facts = _observed(table.checks, judged, sides[judged]) if judged else []
    contrasts: list[TakenFor] = []
    for at, number in enumerate(order):
        entry = table.checks.contrasts.entries[law.pairs[number, 2]]
        is_trend = entry.shape is Shape.TREND
        pvalue, moved, both = float(adjusted[first + number]), float("nan"), False
        if at < len(facts):  # those that are judged come first
            low, high, z, gone = facts[at]
            both = low >= CLEAR and high <= -CLEAR
            pvalue = max(pvalue, 2 * float(ndtr(-abs(z))))
            moved = moved if is_trend else gone
        actual, predicted = (classes[k] for k in sides[number])
        contrasts.append(
            TakenFor(
                actual=actual,
                predicted=predicted,
                name=entry.name,
                covariates=entry.covariates,
                where=entry.where,
                shape=entry.shape,
                direction=int(is_trend),
                moved=moved,
                both_sides=both,
                score=float(scores[number]),
                unadjusted_pvalue=float(alone[first + number]),
                pvalue=pvalue,
            )
        )
    return tuple(contrasts)


@dataclass(frozen=True, eq=False)
class _PairSums(Additive):
    """Sums over rows along the functions of m contrasts, less what their levels take off.

    Of `phi e` and `phi^2 p (1 - p)` for both classes, (m, 2), of the contrast and its squares, by
    clusters where there are any; and of the function as it is, alone and times both residuals.
    """

    sides: FloatArray
    variances: FloatArray
    contrast: FloatArray
    squares: FloatArray
    mass: FloatArray
    plain: FloatArray


def _observed(checks: ClassChecks, judged: Sequence[int], sides: IntArray) -> list[list[float]]:
    """What the observed residuals of some contrasts show, in one pass over the rows, (m, 4).

    Both classes in null standard deviations, the contrast in observed ones, and the mean
    probability that should have gone to the actual class.
    """
    functions, places = np.unique(checks.law.pairs[judged, 2], return_inverse=True)
    whole = checks.survey.source.in_memory
    clusters = None if whole is None or whole.cluster is None else int(whole.cluster.max()) + 1
    contrasts, levels = checks.contrasts.some(functions.tolist()), checks.law.level[judged]
    summing = partial(_pair_sums, contrasts, sides, places, levels, clusters)
    work = RowwiseWork(summing, checks.joint.unit, None)
    sums: _PairSums = checks.engine.run(checks.survey, [], None, [work]).works[0]
    by_cluster = sums.squares.shape[1] > 1
    spread = np.square(sums.squares).sum(axis=1) if by_cluster else sums.squares[:, 0]
    lacks, extra = sums.plain.T
    numbers = (
        *_ratio(sums.sides, np.sqrt(sums.variances)).T,
        _ratio(sums.contrast, np.sqrt(spread)),
        _ratio(np.maximum(np.minimum(lacks, -extra), 0.0), sums.mass),
    )
    facts: list[list[float]] = np.column_stack(numbers).tolist()
    return facts


def _ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _pair_sums(
    contrasts: Contrasts,
    sides: IntArray,
    places: IntArray,
    levels: FloatArray,
    clusters: int | None,
    rows: Rows,
    w: FloatArray,
) -> _PairSums:
    """What some rows contribute to the sums of contrasts."""
    plain = (contrasts.features.matrix(rows.points) * w)[places]  # (m, n)
    phi = plain - levels[:, None] * w
    e, p = rows.residuals[:, sides], rows.predictions[:, sides]  # (n, m, 2)
    parts = phi * (e[..., 0] - e[..., 1]).T
    squares = np.square(parts).sum(axis=1, keepdims=True)
    if rows.cluster is not None:
        squares = np.array([np.bincount(rows.cluster, own, clusters or 0) for own in parts])
    return _PairSums(
        sides=np.einsum("mn,nms->ms", phi, e),
        variances=np.einsum("mn,nms->ms", np.square(phi), p * (1 - p)),
        contrast=parts.sum(axis=1),
        squares=squares,
        mass=plain.sum(axis=1),
        plain=np.einsum("mn,nms->ms", plain, e),
    )
