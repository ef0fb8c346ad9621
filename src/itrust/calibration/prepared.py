"""What can be known before a label is looked at: features, plans and weights of the checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, did_you_mean
from itrust.calibration.dictionary.bank import Bank, make_bank
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.engines import (
    Engine,
    NullMoments,
    Plan,
    Purpose,
    Survey,
    Work,
)
from itrust.kernels import LocalKernel
from itrust.nulls import Null, SimulatedNull

SMALL_WORK = 2e9  # multiply-adds up to which double precision costs nothing


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """A kernel, how it is evaluated, and its null moments as far as they are known."""

    entry: Entry | None
    plan: Plan
    moments: NullMoments | None


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that can be known before a label is looked at.

    Made by `prepare` or `prepare_one`; `score` then reads the labels.
    """

    survey: Survey
    engine: Engine
    dictionary: Dictionary
    weights: FloatArray
    is_alone: bool
    bank: Bank
    kernels: tuple[PlannedKernel, ...]
    main: int

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

    def for_null(self, null: Null) -> Prepared:
        """The same checks on the scale of another null."""
        return replace(self, bank=replace(self.bank, is_studentised=null.keeps_residuals))

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
    """Choose features, landmarks and plans for many checks, without labels."""
    _refuse_strange(dictionary, survey.source.names)
    made_of_features = [entry for entry in dictionary.entries if entry.kernel is None]
    bank = make_bank(made_of_features, survey.pilot, survey.unit)
    work = float(survey.n) * bank.width * (1 + draws)
    precise = np.float64 if work <= SMALL_WORK else np.float32
    bank = replace(bank, dtype=precise, is_studentised=null.keeps_residuals)
    purpose = Purpose(null, draws, among_many=True)
    kernels, main = _planned(survey, engine, dictionary, default, purpose)
    entries = (*bank.entries, *(k.entry for k in kernels if k.entry))
    weights = replace(dictionary, entries=entries).weights() if entries else ()
    return Prepared(
        survey=survey,
        engine=engine,
        dictionary=dictionary,
        weights=np.array(weights),
        is_alone=False,
        bank=bank,
        kernels=kernels,
        main=main,
    )


def prepare_one(
    survey: Survey, engine: Engine, kernel: LocalKernel, null: Null | None, draws: int
) -> Prepared:
    """The same for a single kernel, which is a dictionary of one check."""
    dictionary = Dictionary.of_one(kernel, survey.source.names)
    plan = engine.plan(survey, kernel, Purpose(null, draws if makes_draws(null) else 0))
    return Prepared(
        survey=survey,
        engine=engine,
        dictionary=dictionary,
        weights=np.ones(1),
        is_alone=True,
        bank=make_bank([], survey.pilot, survey.unit),
        kernels=(PlannedKernel(dictionary.entries[0], plan, None),),
        main=0,
    )


def makes_draws(null: Null | None) -> bool:
    """Whether a null draws; others are formulas, or there is none."""
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
