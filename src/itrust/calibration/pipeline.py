"""From a survey to scores: every check of a dictionary on the data and on all draws.

There is one way for every test. Several checks are brought to one scale (`scaling`); a single
kernel is a dictionary of one check, which is compared as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from itrust._core import (
    Advance,
    BoolArray,
    FloatArray,
    InputError,
    did_you_mean,
    progress_bar,
)
from itrust.calibration.dictionary.bank import Bank, BankSums, make_bank
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.calibration.scaling import ScaledChecks, null_law, on_one_scale
from itrust.engines import (
    Certificate,
    Drawing,
    Engine,
    NullMoments,
    Outcome,
    Plan,
    Purpose,
    Survey,
    Tally,
    Work,
    amount_of_work,
    columns_at_once,
    finite,
    tally_notes,
)
from itrust.kernels import LocalKernel
from itrust.nulls import AnalyticNull, Facts, Null, SimulatedNull

SMALL_WORK = 2e10  # multiply-adds up to which double precision costs nothing


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """A kernel, how it is evaluated, and its null moments as far as they are known.

    Attributes
    ----------
    entry : Entry or None
        The check it belongs to; None where it gives the statistic alone.
    plan : Plan
        From the engine.
    moments : NullMoments or None
        None where the kernel is tested alone and needs no scale.
    """

    entry: Entry | None
    plan: Plan
    moments: NullMoments | None


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that can be known before a label is looked at.

    Attributes
    ----------
    survey : Survey
        The rows and some random ones of them.
    engine : Engine
        Who computes.
    dictionary : Dictionary
        The checks that were asked for.
    bank : Bank
        The checks that are made of features.
    kernels : tuple of PlannedKernel
        The checks that are kernels, and the one that gives the statistic.
    main : int
        Which of the kernels gives the statistic.
    weights : (E,) array
        Of the checks that can vary; they sum to 1.
    is_alone : bool
        Whether a single kernel is tested by its statistic, without a scale.
    """

    survey: Survey
    engine: Engine
    dictionary: Dictionary
    bank: Bank
    kernels: tuple[PlannedKernel, ...]
    main: int
    weights: FloatArray
    is_alone: bool

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The checks that can vary: those made of features, then kernels."""
        return (*self.bank.entries, *(k.entry for k in self.kernels if k.entry))

    @property
    def main_kernel(self) -> LocalKernel:
        """The kernel that gives the statistic."""
        return self.kernels[self.main].plan.kernel

    @property
    def plans(self) -> list[Plan]:
        """How the kernels are evaluated."""
        return [kernel.plan for kernel in self.kernels]

    @property
    def works(self) -> list[Work]:
        """What a pass over the rows adds up beside the kernels."""
        return [] if self.is_alone else [self.bank]

    @property
    def columns_at_once(self) -> int:
        """Draws in work at a time."""
        features = len(self.bank.features) + len(self.bank.entries)
        return columns_at_once(self.survey, self.plans, features)

    @property
    def is_single(self) -> BoolArray:
        """Whether a check is the sum of residuals along a single feature, (E,)."""
        found = np.zeros(self.weights.size, dtype=bool)
        found[: self.bank.single.size] = self.bank.single >= 0
        return found


def prepare(
    survey: Survey,
    engine: Engine,
    dictionary: Dictionary,
    null: Null,
    draws: int,
    default: LocalKernel,
) -> Prepared:
    """Choose features, landmarks and plans for many checks, from predictions and covariates alone.

    Parameters
    ----------
    survey : Survey
        Made by the engine.
    engine : Engine
        Who computes.
    dictionary : Dictionary
        The checks.
    null : Null
        What the draws are made by.
    draws : int
        How many of them.
    default : LocalKernel
        The kernel of the statistic, with its widths.

    Returns
    -------
    Prepared
        Ready for `score`.
    """
    _refuse_strange(dictionary, survey.source.names)
    made_of_features = [entry for entry in dictionary.entries if entry.kernel is None]
    bank = make_bank(made_of_features, survey.pilot, survey.unit)
    work = float(survey.n) * (len(bank.features) + len(bank.entries)) * (1 + draws)
    bank = replace(bank, dtype=np.float64 if work <= SMALL_WORK else np.float32)
    purpose = Purpose(null, draws, among_many=True)
    kernels, main = _planned(survey, engine, dictionary, default, purpose)
    entries = (*bank.entries, *(k.entry for k in kernels if k.entry))
    weights = replace(dictionary, entries=entries).weights() if entries else ()
    return Prepared(
        survey=survey,
        engine=engine,
        dictionary=dictionary,
        bank=bank,
        kernels=kernels,
        main=main,
        weights=np.array(weights),
        is_alone=False,
    )


def prepare_one(
    survey: Survey, engine: Engine, kernel: LocalKernel, null: Null | None, draws: int
) -> Prepared:
    """The same for a single kernel, which is a dictionary of one check.

    Parameters
    ----------
    survey : Survey
        Made by the engine.
    engine : Engine
        Who computes.
    kernel : LocalKernel
        With its widths.
    null : Null or None
        What the statistic is compared with; None where the statistic alone is wanted.
    draws : int
        How many draws are made.

    Returns
    -------
    Prepared
        Ready for `score`.
    """
    dictionary = Dictionary.of_one(kernel, survey.source.names)
    plan = engine.plan(survey, kernel, Purpose(null, draws if _draws(null) else 0))
    return Prepared(
        survey=survey,
        engine=engine,
        dictionary=dictionary,
        bank=make_bank([], survey.pilot, survey.unit),
        kernels=(PlannedKernel(dictionary.entries[0], plan, None),),
        main=0,
        weights=np.ones(1),
        is_alone=True,
    )


def _draws(null: Null | None) -> bool:
    return isinstance(null, SimulatedNull)


def _refuse_strange(dictionary: Dictionary, names: Sequence[str]) -> None:
    strange = [name for name in dictionary.covariates if name not in names]
    if strange:
        raise InputError(
            f"the dictionary reads {strange[0]!r}, which the sample lacks",
            hint=did_you_mean(strange[0], list(names)),
        )


def _planned(
    survey: Survey, engine: Engine, dictionary: Dictionary, default: LocalKernel, purpose: Purpose
) -> tuple[tuple[PlannedKernel, ...], int]:
    """The checks that are kernels, and the default kernel for the statistic."""
    listed: list[tuple[Entry | None, LocalKernel]] = [
        (entry, entry.kernel.resolve(survey.pilot.points, partial=True))
        for entry in dictionary.entries
        if entry.kernel is not None
    ]
    if default not in [kernel for _, kernel in listed]:
        listed.append((None, default))
    found: list[PlannedKernel] = []
    main = 0
    for entry, kernel in listed:
        is_main = kernel == default
        plan = engine.plan(survey, kernel, replace(purpose, is_main=is_main))
        moments = plan.moments(survey)
        can_vary = plan.can_vary(moments)
        if is_main:
            main = len(found)
        if can_vary or is_main:
            found.append(PlannedKernel(entry if can_vary else None, plan, moments))
    return tuple(found), main


@dataclass(frozen=True, eq=False)
class Scores:
    """What every check shows, the data first.

    Attributes
    ----------
    entries : tuple of Entry
        The checks that can vary.
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


def score(
    prepared: Prepared, null: Null | None, draws: int, seed: int, progress: bool | None = None
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

    Returns
    -------
    Scores
        Of the data, then of every draw.
    """
    size, draws = prepared.columns_at_once, draws if _draws(null) else 0
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
    return _gathered(prepared, null, ScaledChecks.joined(found), first)


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
        log_tails=checks.log_tails,
        standardised=checks.standardised,
        is_single=prepared.is_single,
        sd=checks.sd,
        skewness=checks.skewness,
        statistic=checks.statistic,
        tail=_tail(prepared, null, float(checks.statistic[0]), first),
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
