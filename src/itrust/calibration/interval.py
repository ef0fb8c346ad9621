"""The test of an interval null: sums of labels against the largest that the null allows.

With y = 1{U < pi} and lo <= pi <= hi, the sum of phi y is at most the sum of phi+ 1{U < hi} less
that of phi- 1{U < lo}, for all directions phi at once. So the largest standardised sum of the data
is at most that of a draw made with its own U, which is exchangeable with the other draws: the
p-value is valid for every law inside the interval. Sums are standardised by the mean, the standard
deviation and the skewness of the law that favours their direction, in which there is no label.

A law can put the overall level near one of its ends, not near both: where they lie far apart, draws
count with one sign of it at a time, and the less favourable sign is taken.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import log_ndtr

from itrust._core import AnyArray, FloatArray, InputError, IntArray, Rng, as_seed, progress_bar
from itrust.calibration.adaptive import (
    BEYOND_DOUBT,
    checked_draws,
    checked_source,
    facts_of_run,
    null_warnings,
    resolved_kernel,
)
from itrust.calibration.dictionary.bank import Directions, make_directions, rows_within_memory
from itrust.calibration.dictionary.entries import Dictionary
from itrust.calibration.evidence import impossible_labels
from itrust.calibration.pipeline import SMALL_WORK, prepare_one, score
from itrust.calibration.results import CalibrationResult, Finding
from itrust.calibration.tails import normal_score, step_down, unadjusted_pvalues
from itrust.data import Rows, Sample, Scan, Source, called_impossible
from itrust.engines import EngineChoice, Outcome, Summing, Work, amount_of_work, as_engine, finite
from itrust.kernels import Kernel, LocalKernel
from itrust.nulls import IntervalNull, label_bits, labels_below

DRAWS_AT_ONCE = 512
NO_SPREAD = 1e-12  # standard deviation, relative to the largest possible sum
# By Hoeffding: minus the log of the chance to reach an end of the overall level from beyond the
# middle, from which on that chance (1e-9) is as small as the grain of the uniform numbers.
FAR_APART = 20.8


# What a pass adds up for G nulls, at the upper, then at the lower bounds. Sums of A parts for the
# data, (A, 1), and for draws, (G, 2, A, draws); their mean, variance and third central moment,
# (G, 2, 3, A); sums of the parts and of their squares, (A,); rows with impossible labels, (G,).
IntervalSums = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, IntArray]


@dataclass(frozen=True, eq=False)
class IntervalWork(Work):
    """Sums along directions for several nulls at once, on the same uniform numbers."""

    directions: Directions
    nulls: Sequence[IntervalNull]
    draws: range
    seed: int
    unit: float
    dtype: DTypeLike

    @property
    def max_rows(self) -> int:
        """Most rows in hand at a time, so that their features and draws fit into memory."""
        return rows_within_memory(max(8 * self.directions.width, 6 * DRAWS_AT_ONCE))

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> Summing:  # noqa: ARG002
        """Sum over a chunk, with draws of its own: two label matrices for each null."""
        parts = self.directions.parts(chunk.points, self.dtype)
        if chunk.weights is not None:
            parts *= weights.astype(parts.dtype)
        levels = np.array([null.bounds(chunk.p, chunk.rows)[::-1] for null in self.nulls])
        # The end that the label is near; 0 or 1 only where nothing else is possible.
        ends = np.where(chunk.y == 1, levels[:, 0], levels[:, 1])
        impossible = [called_impossible(chunk.y, end, chunk.weights).sum() for end in ends]
        observed, drawn = self._drawn(chunk, parts, levels)
        moments, largest = _moments(parts, levels), parts.sum(axis=1, dtype=np.float64)
        squares = np.einsum("ai,ai->a", parts, parts, dtype=np.float64)
        sums = observed, drawn, moments, largest, squares, np.array(impossible)
        return Summing((), lambda: sums)

    def _drawn(
        self, chunk: Rows, parts: AnyArray, levels: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Sums of the data, and of the draws at both bounds of every null."""
        rows, drawn = chunk.rows, np.empty((*levels.shape[:2], len(parts), len(self.draws)))
        numbers = np.empty((len(rows), 1 + min(DRAWS_AT_ONCE, len(self.draws))), parts.dtype)
        # The data are a column of every product: in double precision ties stay ties.
        numbers[:, 0] = chunk.y == 1
        observed = parts @ numbers[:, :1]
        for at in range(0, len(self.draws), DRAWS_AT_ONCE):
            block = self.draws[at : at + DRAWS_AT_ONCE]
            labels, bits = numbers[:, : 1 + len(block)], label_bits(rows, block, self.seed)
            sums: dict[bytes, AnyArray] = {}  # bounds that nulls share are multiplied once
            for place in np.ndindex(*levels.shape[:2]):
                key = levels[place].tobytes()
                if key not in sums:
                    labels[:, 1:] = labels_below(bits, levels[place], rows, block, self.seed)
                    sums[key] = parts @ labels
                    observed = sums[key][:, :1]
                drawn[place][:, at : at + len(block)] = sums[key][:, 1:]
        return observed.astype(np.float64), drawn


def _moments(parts: AnyArray, levels: FloatArray) -> FloatArray:
    moments = np.empty((*levels.shape[:2], 3, len(parts)))
    levels = levels.reshape(-1, levels.shape[2]).T
    variances = levels * (1 - levels)
    power = parts
    for k, column in enumerate((levels, variances, variances * (1 - 2 * levels))):
        if k:
            power = power * parts
        sums = power @ column.astype(parts.dtype)
        moments[:, :, k] = sums.T.reshape(-1, 2, len(parts))
    return moments


@dataclass(frozen=True, eq=False)
class BoundScores:
    """Scores of all directions for one null, the data first."""

    tails: FloatArray
    signs: IntArray
    weights: FloatArray
    impossible: int
    level: int | None
    level_tails: FloatArray

    @property
    def by_law(self) -> list[FloatArray]:
        """Tails for laws near one and near the other end of the overall level; one for all."""
        if self.level is None:
            return [self.tails]
        laws = [self.tails.copy(), self.tails.copy()]
        for tails, level_tails in zip(laws, self.level_tails, strict=True):
            tails[self.level, 1:] = level_tails[1:]
        return laws

    @property
    def combined(self) -> FloatArray:
        """The largest score of the data and of the draws, (1 + draws,).

        Where draws differ by the law they are sorted, and as large as those of either: as many
        reach the data as with the less favourable law.
        """
        shift = np.log(self.weights)[:, None]
        laws = [(tails + shift).max(axis=0) for tails in self.by_law]
        largest: FloatArray = laws[0]
        if len(laws) > 1:
            largest[1:] = np.max([np.sort(law[1:]) for law in laws], axis=0)
        if self.impossible:  # no draw has such a label
            largest[0] = max(float(largest.max()), 0.0) + BEYOND_DOUBT
        return largest

    def critical(self, alpha: float) -> float:
        """The score that data need for a p-value of at most alpha; infinite with too few draws."""
        drawn = np.sort(self.combined[1:])
        allowed = int(alpha * (1 + drawn.size) + 1e-9) - 1  # draws that may reach the data
        return float(drawn[-1 - allowed]) if allowed >= 0 else np.inf

    @property
    def pvalue(self) -> float:
        """(1 + draws at least as large) / (1 + draws)."""
        return float(unadjusted_pvalues(self.combined[None])[0])


def scores_of(directions: Directions, sums: IntervalSums, number: int) -> BoundScores:
    """Bring the sums of one null to one scale."""
    observed, drawn, all_moments, largest, squares, impossible = sums
    high, low = (np.concatenate([observed, own], axis=1) for own in drawn[number])
    at_high, at_low = all_moments[number]
    # Variances of both parts add up where means and third moments are subtracted.
    moments = directions.both_signs(at_high.T, at_low.T * [1, -1, 1])
    largest, _ = directions.both_signs(largest, -largest)
    both = zip(directions.both_signs(high, low), moments, strict=True)
    up, down = (_tails(values, own, largest) for values, own in both)
    level = directions.overall
    if level is not None:
        gap = (at_high[0, level] - at_low[0, level]) / 2
        if 2 * gap**2 < FAR_APART * squares[level]:
            level = None  # a law that the null allows can be near both ends of it
    if level is not None:  # neither sign says anything on the inner side of its mean
        least = max(float(_tails(own[:, :1], own, largest)[level, 0]) for own in moments)
        for tails in (up, down):
            np.maximum(tails[level], least, out=tails[level])
    return BoundScores(
        tails=np.maximum(up, down),
        signs=np.where(up[:, 0] >= down[:, 0], 1, -1),
        weights=directions.weights,
        impossible=int(impossible[number]),
        level=level,
        level_tails=np.array([up[level or 0], down[level or 0]]),
    )


def _tails(values: FloatArray, moments: FloatArray, largest: FloatArray) -> FloatArray:
    """Minus the log of the tails, which rise with the values, (K, columns)."""
    mean, variance, third = moments.T[:, :, None]
    sd = np.sqrt(np.maximum(variance, 0.0))
    varies = sd > NO_SPREAD * np.maximum(largest[:, None], 1.0)
    sd = np.where(varies, sd, 1.0)
    score = normal_score((values - mean) / sd, third / sd**3)
    return np.where(varies, -log_ndtr(-score), 0.0)


class IntervalRun:
    """Rows and directions, ready to be compared with any interval null; no label is looked at."""

    def __init__(
        self, source: Source, checks: Dictionary | None, draws: int, seed: int, engine: EngineChoice
    ) -> None:
        sample = source.in_memory
        alone = source.clusters is None if sample is None else sample.design.rows_are_independent
        if not alone:  # the coupling is one of independent labels
            raise InputError(
                "an interval null needs independent rows, and these come in clusters: labels would "
                "have to be drawn alike within clusters, by a correlation that is not known",
                argument="null",
                hint="keep one row of every cluster",
            )
        self.engine, self.draws, self.seed = as_engine(engine), draws, seed
        self.survey = self.engine.survey(source)
        self.directions = make_directions(self.survey, checks)

    def run(
        self,
        nulls: Sequence[IntervalNull],
        draws: int | None = None,
        *,
        progress: bool | None = None,
    ) -> tuple[list[BoundScores], Outcome]:
        """Scores for some nulls, with all draws or the first of them, by one pass over the rows."""
        for null in nulls:
            null.refuse_other_rows(self.survey.n)
        amount = float(self.survey.n) * self.directions.width * 2 * (1 + self.draws)
        work = IntervalWork(
            directions=self.directions,
            nulls=nulls,
            draws=range(self.draws if draws is None else min(draws, self.draws)),
            seed=self.seed,
            unit=self.survey.unit,
            dtype=np.float64 if amount <= SMALL_WORK else np.float32,
        )
        with progress_bar("drawing", amount_of_work(self.survey, (), [work]), progress) as advance:
            outcome = self.engine.run(self.survey, [], works=[work], advance=advance)
        (sums,) = outcome.works
        for values in sums:
            finite(values)
        return [scores_of(self.directions, sums, k) for k in range(len(nulls))], outcome


def interval_test(
    sample: Sample | Scan,
    kernel: LocalKernel | Dictionary | Mapping[str, LocalKernel | Kernel] | None,
    null: IntervalNull,
    *,
    draws: int,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    progress: bool | None = None,
) -> CalibrationResult:
    """Test an interval null along many directions."""
    begun = time.perf_counter()
    if kernel is not None and not isinstance(kernel, Dictionary):
        raise InputError(
            "an interval null takes sums of labels along features, not {value}: a kernel's "
            "quadratic form is not monotone in the labels",
            argument="kernel",
            value=kernel,
            hint="leave kernel= out, or pass a Dictionary with features",
        )
    source = checked_source(sample, "klce_test")
    run = IntervalRun(source, kernel, checked_draws(draws), as_seed(rng), engine)
    warnings = null_warnings(source, null)
    (scores,), _ = run.run([null], progress=progress)
    prepared = prepare_one(run.survey, run.engine, resolved_kernel(None, run.survey), None, 0)
    alone = score(prepared, None, 0, run.seed, progress)
    combined = scores.combined
    combined.flags.writeable = False
    result = CalibrationResult(
        **facts_of_run(prepared, alone, null),
        score=float(combined[0]),
        null_distribution=combined[1:],
        statistic_draws=None,
        tail=None,
        findings=bound_findings(run.directions, scores),
        checks=len(run.directions.entries),
        dictionary=run.directions.dictionary,
        is_adaptive=True,
        draws=run.draws,
        seed=run.seed,
        impossible=scores.impossible,
        assumption_warnings=warnings,
        notes=(*alone.notes, *run.directions.dictionary.notes),
    )
    return replace(result, elapsed=time.perf_counter() - begun)


def bound_findings(directions: Directions, scores: BoundScores) -> tuple[Finding, ...]:
    """What every direction shows, the largest score first."""
    shift = np.log(scores.weights)
    observed = scores.tails[:, 0] + shift
    laws = scores.by_law
    adjusted = np.max([step_down(tails, shift) for tails in laws], axis=0)
    unadjusted = np.max([unadjusted_pvalues(tails) for tails in laws], axis=0)
    findings: list[Finding] = []
    if scores.impossible:
        findings.append(impossible_labels(float(scores.combined[0]), scores.tails.shape[1] - 1))
    for k in np.argsort(-observed, kind="stable").tolist():
        entry = directions.entries[k]
        findings.append(
            Finding(
                **entry.about,
                family=entry.family,
                direction=int(scores.signs[k]),
                weight=float(scores.weights[k]),
                score=float(observed[k]),
                unadjusted_pvalue=float(unadjusted[k]),
                pvalue=float(adjusted[k]),
                is_bound=True,
            )
        )
    return tuple(findings)
