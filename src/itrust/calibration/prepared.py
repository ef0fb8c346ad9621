"""What can be known before a label is looked at: features, plans and weights of the checks.

Where signs of clusters are flipped, each check is measured by how far its flips spread. Where no
event may happen by chance, as in a small group with rare events, flips spread next to nothing,
and the check would be the most striking one: there the spread that the probabilities expect counts
where it is larger (`symmetric_checks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, IntArray, did_you_mean
from itrust.calibration.dictionary.bank import Bank, make_bank
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.data import Sample
from itrust.engines import Engine, NullMoments, Plan, Purpose, Survey, Work
from itrust.kernels import LocalKernel
from itrust.nulls import Null, SimulatedNull, is_symmetric

SMALL_WORK = 2e9  # multiply-adds up to which double precision costs nothing
ROWS_AT_ONCE = 65_536


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


def symmetric_checks(prepared: Prepared) -> BoolArray:
    """Mark the checks whose features all have nearly symmetric sums over clusters, (E,).

    Whether labels of a cluster are independent or all one, the squared skewness of a feature's sum
    must be small and many clusters must carry it. Kernels, which look at small places, are not
    marked, and neither are checks of rows in files or of rows whose clusters are not named.
    """
    found = np.zeros(prepared.weights.size, dtype=bool)
    sample = prepared.survey.source.in_memory
    bank = prepared.bank
    if sample is None or not bank.entries or sample.design.known_by_replicates:
        return found
    features = _symmetric_features(prepared, sample.outcome(bank.outcome))
    for k in range(len(bank.entries)):
        found[k] = features[bank.features_of(k)[0]].all()
    return found


def _symmetric_features(prepared: Prepared, sample: Sample) -> BoolArray:
    """The same for every feature and mixture of features, (R + Q,)."""
    width, units = prepared.bank.selector.shape[1], sample.design.units
    order = np.argsort(units, kind="stable")
    alone, together = np.zeros((3, width)), np.zeros((3, width))
    for rows in _whole_clusters(units[order], min(prepared.bank.max_rows, ROWS_AT_ONCE)):
        chosen = order[rows]
        p, w = sample.p[chosen], sample.weights_or_ones[chosen]
        f = prepared.bank.matrix(sample.points.take(chosen)) * w
        v = p * (1 - p)
        first = np.flatnonzero(np.diff(units[chosen], prepend=-1))
        parts = np.square(f) * v, f, np.abs(f), np.abs(f) * p
        spread, mass, size, predicted = (np.add.reduceat(part, first, axis=1) for part in parts)
        third = f**3 @ (v * (1 - 2 * p))
        alone += np.stack([spread.sum(axis=1), third, np.square(spread).sum(axis=1)])
        # If a cluster had one label, its probability being the mean over the feature's size.
        mean = np.divide(predicted, size, out=np.zeros_like(size), where=size > 0)
        variance = mass**2 * mean * (1 - mean)
        skew = variance * mass * (1 - 2 * mean)
        sums = variance.sum(axis=1), skew.sum(axis=1), np.square(variance).sum(axis=1)
        together += np.stack(sums)
    return np.asarray(is_symmetric(*alone) & is_symmetric(*together))


def _whole_clusters(units: IntArray, size: int) -> Iterator[slice]:
    """Some rows at a time, of units in ascending order, that are never torn apart."""
    ends = np.append(np.flatnonzero(np.diff(units)) + 1, units.size)
    at = 0
    while at < units.size:
        last = int(np.searchsorted(ends, at + size, side="right")) - 1
        stop = int(ends[last]) if last >= 0 and ends[last] > at else int(ends[ends > at][0])
        yield slice(at, stop)
        at = stop
