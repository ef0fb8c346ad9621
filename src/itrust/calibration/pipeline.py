"""From a survey to scores: every check of a dictionary on the data and on all draws.

There is one way for every test. Several checks are brought to one scale (`scaling`); a single
kernel is a dictionary of one check, which is compared as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from itrust._core import BoolArray, FloatArray, IntArray, progress_bar
from itrust.calibration.dictionary.bank import BankSums
from itrust.calibration.dictionary.entries import Entry
from itrust.calibration.multiplicity import largest_of
from itrust.calibration.prepared import Prepared, makes_draws, symmetric_checks
from itrust.calibration.scaling import ScaledChecks, null_law, on_one_scale, scaled_by_draws
from itrust.engines import (
    Certificate,
    Drawing,
    Outcome,
    Plan,
    Survey,
    Tally,
    Work,
    finite,
    run_together,
    work_of_parts,
)
from itrust.nulls import AnalyticNull, Facts, Null, RowwiseNull

MOMENT_DRAWS = 199  # that give the scale where rows come in clusters


@dataclass(frozen=True, eq=False)
class Scores(ScaledChecks):
    """What every check shows, the data first."""

    entries: tuple[Entry, ...]
    weights: FloatArray
    is_single: BoolArray
    n: int
    impossible: int = 0
    tail: float | None = None
    engine: str = ""
    certificate: Certificate | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def log_weights(self) -> FloatArray:
        """What is added to the tails, (E,): the sums are the scale of comparison, the scores."""
        return np.asarray(np.log(self.weights))

    @cached_property
    def observed(self) -> FloatArray:
        """The score of every check on the data, (E,)."""
        return np.asarray(self.log_tails[:, 0] + self.log_weights)

    @property
    def combined(self) -> FloatArray:
        """The largest score of the data and of every draw, (1 + draws,).

        Maximum and soft maximum have the same power in the study; with the maximum the
        smallest adjusted p-value is that of the whole test.
        """
        if not self.entries:
            return np.zeros(self.statistic.size)
        return largest_of(self.log_tails, self.log_weights)


def correlation_of_draws(scores: Scores, checks: IntArray) -> FloatArray:
    """Correlation of what some checks show in the draws, whatever its sign, (E, E)."""
    draws = scores.standardised[checks, 1:].astype(np.float64)
    draws[scores.is_single[checks]] **= 2
    draws -= draws.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(draws, axis=1)
    draws /= np.where(norms > 0, norms, 1.0)[:, None]
    return np.asarray(draws @ draws.T)


def score(
    prepared: Prepared,
    null: Null | None,
    draws: int,
    seed: int,
    progress: bool | None = None,
    *,
    symmetric: BoolArray | None = None,
) -> Scores:
    """Score the data and all draws by every check."""
    draws = draws if makes_draws(null) else 0
    part = Scoring(prepared, null)
    amount = work_of_parts(prepared.survey, [part], draws)
    with progress_bar("drawing", amount, progress) as advance:
        (found,) = run_together(
            prepared.engine, prepared.survey, [part], null, draws, seed, advance
        )
    scores: Scores = found
    if not _is_clustered(prepared, null):
        return scores
    drawing = Drawing(null, range(draws, draws + MOMENT_DRAWS), seed)
    with progress_bar("scale", 1, False) as advance:
        outcome = prepared.engine.run(
            prepared.survey, prepared.plans, drawing, prepared.works, advance=advance
        )
    others = _scaled(prepared, outcome).without_data()
    symmetric = symmetric_checks(prepared) if symmetric is None else symmetric
    keeps = null is not None and null.keeps_residuals
    checks = scaled_by_draws(scores, others, prepared.is_single, symmetric, keeps_residuals=keeps)
    return replace(scores, **vars(checks))


@dataclass(frozen=True, eq=False)
class Scoring:
    """The checks of a test as a part of a pass: `Scores` on the scale of independent rows."""

    prepared: Prepared
    null: Null | None

    @property
    def plans(self) -> list[Plan]:
        return self.prepared.plans

    def works(self, block: range) -> list[Work]:  # noqa: ARG002
        return self.prepared.works

    @property
    def width(self) -> int:
        return self.prepared.bank.width

    def reduced(self, outcome: Outcome, block: range) -> ScaledChecks:
        prepared = self.prepared
        if prepared.is_alone:
            checks = _alone(prepared, outcome)
        else:
            precise = _is_clustered(prepared, self.null)
            checks = _scaled(prepared, outcome, precise=precise)
        if block.start:
            return checks.without_data()
        survey, main = prepared.survey, prepared.kernels[prepared.main].plan
        return Scores(
            **vars(checks),
            entries=prepared.entries,
            weights=prepared.weights,
            is_single=prepared.is_single,
            n=outcome.tally.rows,
            impossible=outcome.tally.impossible,
            tail=_tail(prepared, self.null, float(checks.statistic[0]), outcome),
            engine=prepared.engine.describe(survey, main),
            certificate=outcome.kernels[prepared.main].certificate(outcome.pair_weight),
            notes=(*_notes(survey, outcome.tally), *prepared.dictionary.notes),
        )

    def finished(self, found: Sequence[ScaledChecks]) -> Scores:
        first = found[0]
        assert isinstance(first, Scores)
        return first if len(found) == 1 else replace(first, **vars(ScaledChecks.joined(found)))


def _is_clustered(prepared: Prepared, null: Null | None) -> bool:
    """Whether draws keep the dependence within clusters, so that they give the scale."""
    sample = prepared.survey.source.in_memory
    if null is None or prepared.is_alone or sample is None:
        return False
    return null.keeps_clusters and not sample.design.rows_are_independent


def score_laws(
    prepared: Prepared, null: Null, draws: int, seed: int, progress: bool | None = None
) -> tuple[Scores, ...]:
    """Score the data and all draws under every law that the null leaves open."""
    laws: tuple[Null, ...] = (null,)
    if isinstance(null, RowwiseNull):
        laws = null.laws(prepared.survey.source, seed)
    symmetric = symmetric_checks(prepared) if _is_clustered(prepared, null) else None
    with progress_bar("drawing", len(laws), progress):
        return tuple(score(prepared, law, draws, seed, symmetric=symmetric) for law in laws)


def _statistic(prepared: Prepared, outcome: Outcome) -> FloatArray:
    """KLCE^2 of the main kernel, (1 + draws,)."""
    return finite(outcome.kernels[prepared.main].over_pairs / outcome.pair_weight)


def _alone(prepared: Prepared, outcome: Outcome) -> ScaledChecks:
    statistic = _statistic(prepared, outcome)
    unknown = np.full(1, np.nan)
    return ScaledChecks(statistic[None], statistic[None], statistic, unknown, unknown)


def _scaled(prepared: Prepared, outcome: Outcome, *, precise: bool = True) -> ScaledChecks:
    bank: BankSums = outcome.works[0]
    kernels = [
        (found, found.refined(kernel.moments))
        for kernel, found in zip(prepared.kernels, outcome.kernels, strict=True)
        if kernel.entry is not None and kernel.moments is not None
    ]
    law = null_law(prepared.bank, bank, kernels)
    log_tails, standardised = on_one_scale(
        prepared.bank, bank, [found for found, _ in kernels], law, precise=precise
    )
    return ScaledChecks(log_tails, standardised, _statistic(prepared, outcome), *law)


def _tail(prepared: Prepared, null: Null | None, statistic: float, first: Outcome) -> float | None:
    """What the formula of an analytic null gives."""
    if not isinstance(null, AnalyticNull):
        return None
    found = first.kernels[prepared.main]
    return null.tail(
        Facts(
            statistic,
            float(found.over_pairs[0]),
            first.tally.rows,
            prepared.survey.source.weights is not None,
            prepared.main_kernel.supremum,
            found.spectrum,
            found.offset,
        )
    )


def _notes(survey: Survey, tally: Tally) -> tuple[str, ...]:
    """Data-quality notes: a pass tells about rows in files what a sample knows by itself."""
    if survey.source.in_memory is not None:
        return survey.notes
    return (*tally.notes, *survey.notes)
