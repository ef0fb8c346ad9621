"""Checks of several classes on one scale: of each class, of all together, and between pairs.

All rows of the table share their draws, so the largest of them has an exact p-value, and step-down
adjusts every one for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from itrust._core import Advance, AnyArray, BoolArray, FloatArray, IntArray
from itrust.calibration.multiclass.checks import ClassChecks, ContrastMoments
from itrust.calibration.multiplicity import largest_of
from itrust.calibration.pipeline import MOMENT_DRAWS
from itrust.calibration.scaling import (
    ScaledChecks,
    log_tails_of,
    null_law,
    on_one_scale,
    scaled_by_draws,
)
from itrust.engines import Drawing, Outcome, Plan, RowwiseWork, Tally, Work, run_together
from itrust.nulls import CategoryDraws, Rademacher

ClassNull = CategoryDraws | Rademacher

# Shares of the weight, from a small power study; classes and pairs share theirs equally.
SHARES = {"form": 0.05, "vectors": 0.20, "classes": 0.45, "pairs": 0.30}
FEW_EVENTS = 1.0  # added to the null variance of a class in a group, in labels
RIDGE = 0.05  # added to null correlations before they are taken out
MIN_VARIANCE = 1.0  # of a contrast, in labels: below that hardly anything can be drawn


@dataclass(frozen=True, eq=False)
class ClassTable:
    """What every check shows, the data first."""

    checks: ClassChecks
    law: ContrastLaw
    weights: FloatArray
    scaled: ScaledChecks
    statistics: FloatArray
    is_single: BoolArray
    tally: Tally

    @property
    def vectors(self) -> slice:
        """Rows of functions of the covariates, all classes together."""
        return slice(1, 1 + self.law.vectors.size)

    @cached_property
    def classes(self) -> list[slice]:
        """Rows of every class."""
        ends = self.vectors.stop + np.cumsum([0, *(w.size for w in self.checks.weights)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def pairs(self) -> slice:
        """Rows of contrasts between two classes."""
        return slice(self.classes[-1].stop, self.weights.size)

    @cached_property
    def log_weights(self) -> FloatArray:
        """What is added to the log tails."""
        return np.asarray(np.log(self.weights))

    def largest(self, rows: slice) -> FloatArray:
        """The largest score of some checks for the data and every draw, (1 + draws,)."""
        return largest_of(self.scaled.log_tails[rows], self.log_weights[rows])

    @property
    def null_sd(self) -> float:
        """Of the statistic."""
        return self.checks.joint.sd / self.tally.pair_weight

    def with_statistics(self, statistics: FloatArray) -> ClassTable:
        """The same with the joint form of every class evaluated in another way."""
        total = statistics.sum(axis=0)
        sd = self.null_sd
        form = np.divide(total, sd, out=np.zeros_like(total), where=sd > 0)[None]
        skewness = np.array([self.checks.joint.skewness])
        tails, standardised, _, _ = _with_tails(form, np.array([sd]), skewness)
        scaled = replace(
            self.scaled,
            log_tails=np.concatenate([tails, self.scaled.log_tails[1:]]),
            standardised=np.concatenate([standardised, self.scaled.standardised[1:]]),
            statistic=total,
        )
        return replace(self, scaled=scaled, statistics=statistics)

    @cached_property
    def combined(self) -> FloatArray:
        """The largest score of all checks, (1 + draws,)."""
        return self.largest(slice(0, self.weights.size))


@dataclass(frozen=True, eq=False)
class ContrastLaw:
    """The null law of contrasts between classes; no label is looked at."""

    vectors: IntArray
    mixing: Sequence[FloatArray]
    means: FloatArray
    sds: FloatArray
    skews: FloatArray
    pairs: IntArray
    level: FloatArray
    sd: FloatArray
    skewness: FloatArray


def class_table(
    checks: ClassChecks,
    law: ContrastLaw,
    null: ClassNull,
    draws: int,
    seed: int,
    advance: Advance | None = None,
    symmetric: Sequence[BoolArray] = (),
    is_even: BoolArray | None = None,
) -> ClassTable:
    """Score the data and all draws by every check."""
    survey, part = checks.survey, ClassScoring(checks, law)
    batches = run_together(checks.engine, survey, [part], null, draws, seed, advance)
    scaled, statistics, tally = batches[0]
    singles = [bank.single >= 0 for bank in checks.banks]
    together = np.zeros(1 + law.vectors.size, dtype=bool)
    is_single = np.concatenate([together, *singles, np.ones(len(law.pairs), dtype=bool)])
    if null.keeps_clusters:
        drawing = Drawing(null, range(draws, draws + MOMENT_DRAWS), seed)
        outcome = checks.engine.run(survey, [], drawing, checks.works)
        others, _ = _scaled(checks, law, outcome)
        even = np.ones(len(checks.banks), dtype=bool) if is_even is None else is_even
        first, second = law.pairs[:, 0], law.pairs[:, 1]
        of_vectors = np.full(law.vectors.size, bool(even.all()))
        nearly = np.concatenate([[False], of_vectors, *symmetric, even[first] & even[second]])
        keeps = isinstance(null, Rademacher)
        scaled = scaled_by_draws(
            scaled, others.without_data(), is_single, nearly, keeps_residuals=keeps
        )
    return ClassTable(checks, law, _weights(checks, law), scaled, statistics, is_single, tally)


Batch = tuple[ScaledChecks, FloatArray, Tally]


@dataclass(frozen=True, eq=False)
class ClassScoring:
    """The checks of all classes as a part of a pass."""

    checks: ClassChecks
    law: ContrastLaw
    plans: Sequence[Plan] = ()

    def works(self, block: range) -> list[Work]:  # noqa: ARG002
        return self.checks.works

    @property
    def width(self) -> int:
        return self.checks.width

    def reduced(self, outcome: Outcome, block: range) -> Batch:  # noqa: ARG002
        return (*_scaled(self.checks, self.law, outcome), outcome.tally)

    def finished(self, found: Sequence[Batch]) -> Batch:
        scaled = [one if at == 0 else one.without_data() for at, (one, _, _) in enumerate(found)]
        statistics = [own if at == 0 else own[:, 1:] for at, (_, own, _) in enumerate(found)]
        return ScaledChecks.joined(scaled), np.concatenate(statistics, axis=1), found[0][2]


def _weights(checks: ClassChecks, law: ContrastLaw) -> FloatArray:
    """Of the joint form, vectors, checks of each class and pairs; they sum to 1."""
    lively = [w for w in checks.weights if w.size]
    of_classes = [w * (SHARES["classes"] / max(len(lively), 1)) for w in checks.weights]
    parts = [
        np.array([SHARES["form"]]),
        _alike(SHARES["vectors"], law.vectors.size),
        *of_classes,
        _alike(SHARES["pairs"], len(law.pairs)),
    ]
    weights = np.concatenate(parts)
    return np.asarray(weights / weights.sum())


def _alike(share: float, count: int) -> FloatArray:
    return np.full(count, share / max(count, 1))


def contrast_law(checks: ClassChecks) -> ContrastLaw:
    """The null law of contrasts, from sums over all rows; no label takes part."""
    work = RowwiseWork(checks.contrasts.moments, checks.unit, None)
    moments: ContrastMoments = checks.engine.run(checks.survey, [], None, [work]).works[0]
    vectors, mixing, laws = [], [], []
    for g, covariance in enumerate(moments.covariance):
        mixed = _whitening(covariance)
        if len(mixed):
            spread = mixed @ covariance @ mixed.T
            variance = 2 * float(np.sum(spread * spread))
            third = 8 * float(np.trace(spread @ spread @ spread))
            vectors.append(g)
            mixing.append(mixed)
            laws.append((float(np.trace(spread)), np.sqrt(variance), third / variance**1.5))
    pairs, level, sd, skewness = _pair_law(checks, moments)
    means, sds, skews = np.array(laws).reshape(-1, 3).T
    numbers = np.array(vectors, dtype=np.int64)
    return ContrastLaw(numbers, mixing, means, sds, skews, pairs, level, sd, skewness)


def _whitening(covariance: FloatArray) -> FloatArray:
    """What makes the sums of all classes uncorrelated, (q, K); rare classes count less."""
    variance = np.diag(covariance)
    varies = variance > 1e-12 * max(float(variance.max()), 1.0)
    if np.count_nonzero(varies) < 2:
        return np.empty((0, len(covariance)))
    sd = np.sqrt(variance[varies] + FEW_EVENTS)
    standard = covariance[np.ix_(varies, varies)] / np.outer(sd, sd)
    values, vectors = np.linalg.eigh(standard)
    kept = values > 1e-8 * values.max()
    mixed = np.zeros((int(kept.sum()), len(covariance)))
    mixed[:, varies] = vectors[:, kept].T / np.sqrt(values[kept] + RIDGE)[:, None] / sd
    return mixed


def _pair_law(
    checks: ClassChecks, moments: ContrastMoments
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Contrasts that can vary, what is taken off for the level, their sd and skewness."""
    contrasts = checks.contrasts
    if not len(contrasts.pairs):
        return np.empty((0, 3), dtype=np.int64), np.zeros(0), np.zeros(0), np.ones(0)
    a, b = contrasts.pairs.T
    variance, with_level = (
        part[:, a, a] + part[:, b, b] - part[:, a, b] - part[:, b, a]
        for part in (moments.covariance, moments.with_level)
    )  # (g, m)
    one, two, three = np.moveaxis(moments.cubes, -1, 0)
    third = one[:, a] - one[:, b] - 3 * (two[:, a] - two[:, b])
    third = third + 2 * (
        three[:, a] - three[:, b] - 3 * (moments.mixed[:, a, b] - moments.mixed[:, b, a])
    )
    safe = np.maximum(variance[0], 1e-300)
    level = np.where(contrasts.is_trend[:, None], with_level / safe, 0.0)
    variance = variance - np.where(contrasts.is_trend[:, None], with_level * level, 0.0)
    g, m = np.nonzero(variance >= MIN_VARIANCE)
    sd = np.sqrt(variance[g, m])
    return np.column_stack([a[m], b[m], g]), level[g, m], sd, third[g, m] / sd**3


def _scaled(
    checks: ClassChecks, law: ContrastLaw, outcome: Outcome
) -> tuple[ScaledChecks, FloatArray]:
    """Every check of one batch on its scale, and what every class contributes, (K, columns)."""
    *banks, joint, contrasts = outcome.works
    over_pairs = np.square(joint.forms).sum(axis=1) - joint.diagonals
    total = over_pairs.sum(axis=0)
    sd = checks.joint.sd
    parts: list[tuple[FloatArray, AnyArray, FloatArray, FloatArray]] = []
    form = np.divide(total, sd, out=np.zeros_like(total), where=sd > 0)[None]
    parts.append(_with_tails(form, np.array([sd]), np.array([checks.joint.skewness])))
    vectors = np.array(
        [
            np.square(mixing @ contrasts.forms[:, g]).sum(axis=0)
            for g, mixing in zip(law.vectors, law.mixing, strict=True)
        ]
    ).reshape(law.vectors.size, total.size)
    vectors = (vectors - law.means[:, None]) / law.sds[:, None]
    parts.append(_with_tails(vectors, law.sds, law.skews))
    for bank, own in zip(checks.banks, banks, strict=True):
        own_law = null_law(bank, own, [])
        parts.append((*on_one_scale(bank, own, [], own_law, precise=True), *own_law))
    parts.append(_with_tails(_contrasts(law, contrasts.forms), law.sd, law.skewness, single=True))
    tails, standardised, sds, skews = (np.concatenate(part) for part in zip(*parts, strict=True))
    scaled = ScaledChecks(tails, standardised, total / outcome.pair_weight, sds, skews)
    return scaled, over_pairs / outcome.pair_weight


def _contrasts(law: ContrastLaw, sums: FloatArray) -> FloatArray:
    """Standardised contrasts between two classes, (m, columns)."""
    a, b, g = law.pairs.T
    values = sums[a, g] - sums[b, g]
    trends = np.flatnonzero(law.level)
    values[trends] -= law.level[trends, None] * (sums[a[trends], 0] - sums[b[trends], 0])
    return np.asarray(values / law.sd[:, None])


def _with_tails(
    standardised: FloatArray, sd: FloatArray, skewness: FloatArray, *, single: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    tails = log_tails_of(standardised, skewness[:, None], np.full((len(sd), 1), single))
    return tails, standardised, sd, skewness
