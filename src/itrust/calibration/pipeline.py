"""From a survey to scores: every check of a dictionary on the data and on all draws.

There is one way for every test. Several checks are brought to one scale (`scaling`); a single
kernel is a dictionary of one check, which is compared as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from itrust._core import Advance, BoolArray, FloatArray, IntArray, progress_bar
from itrust.calibration.dictionary.bank import BankSums
from itrust.calibration.dictionary.entries import Entry
from itrust.calibration.prepared import Prepared, makes_draws
from itrust.calibration.scaling import ScaledChecks, null_law, on_one_scale, scaled_by_draws
from itrust.calibration.symmetry import symmetric_checks
from itrust.engines import (
    Certificate,
    Drawing,
    Outcome,
    Survey,
    Tally,
    amount_of_work,
    finite,
    tally_notes,
)
from itrust.nulls import AnalyticNull, Facts, Null, RowwiseNull

MOMENT_DRAWS = 199  # that give the scale where rows come in clusters


@dataclass(frozen=True, eq=False)
class Scores:
    """What every check shows, the data first.

    Attributes
    ----------
    entries : tuple of Entry
        The checks that can vary under the null.
    weights : (E,) array
        Of the checks; they sum to 1.
    log_tails : (E, 1 + draws) array
        Minus the log of the approximate null tail; KLCE^2 for a kernel that is tested alone.
    standardised : (E, 1 + draws) array
        The values behind them, divided by their null standard deviation.
    is_single : (E,) array
        Whether a check is the sum of residuals along a single feature, which has a sign.
    sd, skewness : (E,) arrays
        Of every check's value under the null, all rows: of the sum along a single feature, else
        of the form. NaN for a kernel that is tested alone.
    statistic : (1 + draws,) array
        KLCE^2 of the main kernel.
    tail : float or None
        What the formula of an analytic null gives.
    n, impossible : int
        Number of rows, and of rows with a label that the model gave probability 0.
    engine : str
        How the main kernel was evaluated.
    certificate : Certificate or None
        How far it can be from the true one.
    notes : tuple of str
        Data-quality notes, and what the dictionary has left out.
    """

    entries: tuple[Entry, ...]
    weights: FloatArray
    log_tails: FloatArray
    standardised: FloatArray
    is_single: BoolArray
    sd: FloatArray
    skewness: FloatArray
    statistic: FloatArray
    tail: float | None
    n: int
    impossible: int
    engine: str
    certificate: Certificate | None
    notes: tuple[str, ...]

    @cached_property
    def scores(self) -> FloatArray:
        """Tails plus the logs of the weights, (E, 1 + draws): the scale of comparison."""
        return self.log_tails + np.log(self.weights)[:, None]

    @property
    def combined(self) -> FloatArray:
        """The largest score of the data and of every draw, (1 + draws,).

        Maximum and soft maximum have the same power in the study; with the maximum the
        smallest adjusted p-value is that of the whole test.
        """
        if not self.entries:
            return np.zeros(self.statistic.size)
        return np.array(self.scores.max(axis=0))


def correlation_of_draws(scores: Scores, checks: IntArray) -> FloatArray:
    """Correlation of what some checks show in the draws, whatever its sign, (E, E)."""
    draws = scores.standardised[checks, 1:].copy()
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
    """Score the data and all draws by every check.

    Parameters
    ----------
    prepared : Prepared
        From `prepare` or `prepare_one`.
    null : Null or None
        What the draws are made by; None where the statistic alone is wanted.
    draws : int
        How many of them; a null that is a formula makes none.
    seed : int
        Same seed, same draws.
    progress : bool, optional
        Default: a bar in a terminal once the work has taken a second.
    symmetric : (E,) array of bool, optional
        From `symmetric_checks`, if it is known already.

    Returns
    -------
    Scores
        Of the data, then of every draw.
    """
    size, draws = prepared.columns_at_once, draws if makes_draws(null) else 0
    batches = [range(at, min(at + size, draws)) for at in range(0, max(draws, 1), size)]
    amount = amount_of_work(prepared.survey, prepared.plans, prepared.works) * len(batches)
    found: list[ScaledChecks] = []
    first: Outcome | None = None
    with progress_bar("drawing", amount, progress) as advance:
        for block in batches:
            outcome = _run(prepared, Drawing(null, block, seed), advance)
            first = first or outcome
            checks = (_alone if prepared.is_alone else _scaled)(prepared, outcome)
            found.append(checks if block.start == 0 else checks.without_data())
    assert first is not None
    checks = ScaledChecks.joined(found)
    if _is_clustered(prepared, null):
        drawing = Drawing(null, range(draws, draws + MOMENT_DRAWS), seed)
        with progress_bar("scale", 1, False) as advance:
            others = _scaled(prepared, _run(prepared, drawing, advance)).without_data()
        symmetric = symmetric_checks(prepared) if symmetric is None else symmetric
        keeps = null is not None and null.keeps_residuals
        checks = scaled_by_draws(
            checks, others, prepared.is_single, symmetric, keeps_residuals=keeps
        )
    return _gathered(prepared, null, checks, first)


def _is_clustered(prepared: Prepared, null: Null | None) -> bool:
    """Whether draws keep the dependence within clusters, so that they give the scale."""
    sample = prepared.survey.source.in_memory
    if null is None or prepared.is_alone or sample is None:
        return False
    return null.keeps_clusters and not sample.design.rows_are_independent


def score_laws(
    prepared: Prepared, null: Null, draws: int, seed: int, progress: bool | None = None
) -> tuple[Scores, ...]:
    """Score the data and all draws under every law that the null leaves open.

    Parameters
    ----------
    prepared, null, draws, seed, progress
        As for `score`.

    Returns
    -------
    tuple of Scores
        One for each law; one for nulls that leave nothing open.
    """
    laws: tuple[Null, ...] = (null,)
    if isinstance(null, RowwiseNull):
        laws = null.laws(prepared.survey.source, seed)
    symmetric = symmetric_checks(prepared) if _is_clustered(prepared, null) else None
    with progress_bar("drawing", len(laws), progress):
        return tuple(score(prepared, law, draws, seed, symmetric=symmetric) for law in laws)


def _run(prepared: Prepared, drawing: Drawing, advance: Advance) -> Outcome:
    return prepared.engine.run(
        prepared.survey,
        prepared.plans,
        drawing,
        prepared.works,
        diagonals=not prepared.is_alone,
        advance=advance,
    )


def _statistic(prepared: Prepared, outcome: Outcome) -> FloatArray:
    """KLCE^2 of the main kernel, (1 + draws,)."""
    return finite(outcome.kernels[prepared.main].over_pairs / outcome.pair_weight)


def _alone(prepared: Prepared, outcome: Outcome) -> ScaledChecks:
    statistic = _statistic(prepared, outcome)
    unknown = np.full(1, np.nan)
    return ScaledChecks(statistic[None], statistic[None], statistic, unknown, unknown)


def _scaled(prepared: Prepared, outcome: Outcome) -> ScaledChecks:
    bank: BankSums = outcome.works[0]
    kernels = [
        (found, found.refined(kernel.moments))
        for kernel, found in zip(prepared.kernels, outcome.kernels, strict=True)
        if kernel.entry is not None and kernel.moments is not None
    ]
    law = null_law(prepared.bank, bank, kernels)
    log_tails, standardised = on_one_scale(
        prepared.bank, bank, [found for found, _ in kernels], law
    )
    return ScaledChecks(log_tails, standardised, _statistic(prepared, outcome), *law)


def _gathered(
    prepared: Prepared, null: Null | None, checks: ScaledChecks, first: Outcome
) -> Scores:
    survey, main = prepared.survey, prepared.kernels[prepared.main].plan
    return Scores(
        entries=prepared.entries,
        weights=prepared.weights,
        is_single=prepared.is_single,
        tail=_tail(prepared, null, float(checks.statistic[0]), first),
        log_tails=checks.log_tails,
        standardised=checks.standardised,
        sd=checks.sd,
        skewness=checks.skewness,
        statistic=checks.statistic,
        n=first.tally.rows,
        impossible=first.tally.impossible,
        engine=prepared.engine.describe(survey, main),
        certificate=first.kernels[prepared.main].certificate(first.pair_weight),
        notes=(*_notes(survey, first.tally), *prepared.dictionary.notes),
    )


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
    return (*tally_notes(tally), *survey.notes)
