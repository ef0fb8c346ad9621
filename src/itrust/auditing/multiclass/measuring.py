"""Everything that an audit of several classes measures: one class against the rest, and all."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import smallest_tickets, tickets
from itrust.auditing.multiclass.parts import (
    ClassesMissed,
    ClassesOverall,
    ClassPart,
    TopLabel,
    adjusted,
    multiplied,
)
from itrust.auditing.multiclass.taken import ClassMatrix, class_matrix, pair_groups
from itrust.auditing.parts import Diagnosis, MeanBias
from itrust.bias import MAX_GROUPS, GroupTable, Redraws, group_plan, local_plan, slices_of
from itrust.calibration import (
    MulticlassResult,
    class_losses,
    mean_loss,
    multiclass_test,
    scores,
    student_quantile,
    top_label,
)
from itrust.data import Everywhere, MulticlassSample, Predicate, Sample
from itrust.engines import one_blas_thread
from itrust.tasks import evaluate_tasks, prevalence
from itrust.terms import CLASS_GROUP_LEVELS

HALVES = 2  # of the rows, in the search for slices
MOST_POINTS = 6_000  # of local bias, all classes together
FEWEST_POINTS = 100  # of a class
POINTS = 600  # of a class at most
SMALL_SHARE = 0.05  # of the rows: groups below make no headline
POWER = 0.8


@dataclass(frozen=True)
class ClassDraws:
    """What is the same for all classes."""

    alpha: float
    draws: int
    seed: int
    classes: int

    @property
    def share(self) -> float:
        """Of alpha, for one class."""
        return self.alpha / self.classes

    @property
    def draws_of_a_class(self) -> int:
        """As many as a share of alpha needs in each half of the rows."""
        return max(self.draws, math.ceil(HALVES / self.share) - 1)


def in_threads(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Do the same for every item, some at a time; answers are in the order of the items."""
    threads = min(len(items), os.cpu_count() or 1)
    if threads <= 1:
        return [work(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        # Settings of the one who calls, such as where progress is shown, hold in the threads.
        waiting = [pool.submit(copy_context().run, work, item) for item in items]
        return [future.result() for future in waiting]


def classes_test(sample: MulticlassSample, settings: ClassDraws) -> MulticlassResult:
    """The test of all classes given the covariates."""
    return multiclass_test(sample, draws=settings.draws, rng=settings.seed)


def class_parts(
    sample: MulticlassSample, test: MulticlassResult, settings: ClassDraws
) -> tuple[ClassPart, ...]:
    """Measure every class against the rest."""
    binary = [sample.one_class(name) for name in sample.classes]

    def measured(k: int) -> ClassPart:
        own = binary[k]
        return ClassPart(
            name=sample.classes[k],
            rows=int(own.y.sum()),
            test=test.classes[k],
            mean=_mean(own, settings),
            ece=scores.ece(own),
            curve=scores.reliability_curve(own, scores.EqualMass(10)),
            diagnosis=_diagnosis(own, settings),
        )

    return tuple(in_threads(measured, range(len(binary))))


def _mean(sample: Sample, settings: ClassDraws) -> MeanBias:
    """Mean prediction beside the rate, for all classes at once."""
    (rate,) = evaluate_tasks(
        sample.with_columns(()),
        [prevalence()],
        alpha=settings.share,
        draws=settings.draws_of_a_class,
        rng=settings.seed,
    )
    found = MeanBias.of(rate)
    pvalue = adjusted(found.pvalue, settings.classes, settings.alpha, found.lower, found.upper)
    return replace(found, pvalue=pvalue, alpha=settings.alpha)


def _diagnosis(sample: Sample, settings: ClassDraws) -> Diagnosis:
    """Local bias, groups and slices of one class, with its share of alpha."""
    redraws = Redraws.of(
        sample, alpha=settings.share, draws=settings.draws_of_a_class, rng=settings.seed
    )
    most = min(POINTS, max(FEWEST_POINTS, MOST_POINTS // settings.classes))
    at_hand = redraws.sample
    rows = smallest_tickets(tickets(0, at_hand.n), min(most, at_hand.n))
    points = at_hand if rows.size == at_hand.n else at_hand.take(np.sort(rows))
    bias = local_plan(redraws, points).made()
    groups: GroupTable | None = None
    names = [column.name for column in sample.columns]
    if names:
        levels = max(min(CLASS_GROUP_LEVELS, MAX_GROUPS // len(names) - 1), 1)
        groups = group_plan(redraws, tuple(names), crossings=False, most=levels).made()
    found = Diagnosis.of(bias, groups, slices_of(redraws))
    return multiplied(found, settings.classes, settings.alpha)


def classes_overall(
    sample: MulticlassSample, test: MulticlassResult, pairs: ClassMatrix, settings: ClassDraws
) -> ClassesOverall:
    """Judge calibration whatever the covariates: the top label, and all classes together."""
    top = top_label(sample)
    (rate,) = evaluate_tasks(
        top, [prevalence()], alpha=settings.alpha, draws=settings.draws, rng=settings.seed
    )
    own = pairs.canonical_pvalue
    brier, log_loss = (mean_loss(sample, losses) for losses in class_losses(sample))
    return ClassesOverall(
        top=TopLabel(
            MeanBias.of(rate),
            scores.ece(top),
            scores.reliability_curve(top, scores.EqualMass(10)),
        ),
        statistic=pairs.statistic,
        pvalue=float(np.maximum(own, test.pvalue)),
        unadjusted_pvalue=own,
        brier=brier,
        log_loss=log_loss,
    )


def pairs_of(
    sample: MulticlassSample, parts: Sequence[ClassPart], settings: ClassDraws
) -> ClassMatrix:
    """Which class is taken for which, and in which groups."""
    found = class_matrix(
        sample,
        alpha=settings.alpha,
        draws=settings.draws,
        seed=settings.seed,
    )
    tables = [part.diagnosis.groups or () for part in parts]
    return replace(found, places=pair_groups(sample.classes, tables, settings.alpha))


def classes_missed(
    sample: MulticlassSample, parts: Sequence[ClassPart], alpha: float
) -> ClassesMissed | None:
    """How small a bias of a class the intervals of its groups would have shown."""
    if not sample.design.rows_are_independent or np.isin(sample.p, (0.0, 1.0)).all():
        return None
    w = sample.weights_or_ones
    points, table = sample.points, parts[0].diagnosis.groups
    places: list[Predicate] = [Everywhere(), *(group.where for group in table or ())]
    p, total = sample.p, float(w.sum())
    variance = np.square(w)[:, None] * p * (1 - p)  # (n, K)
    tested = max(len(places) - 1, 1) * len(sample.classes)
    reach = float(student_quantile(alpha / (2 * tested), math.inf))
    alone = float(student_quantile(alpha / (2 * len(sample.classes)), math.inf))
    power = float(student_quantile(1 - POWER, math.inf))
    shifts = []
    for number, where in enumerate(places):
        inside = np.asarray(where.rows(points))
        mass = float(w[inside].sum())
        if number and mass < SMALL_SHARE * total:
            continue
        error = np.sqrt(variance[inside].sum(axis=0)) / mass
        critical = reach if number else alone
        shifts.append((where, mass / total, (critical + power) * error))
    where, share, worst = max(shifts, key=lambda own: float(own[2].max()))
    return ClassesMissed(
        shift=float(worst.max()),
        name=sample.classes[int(worst.argmax())],
        where=where,
        share=share,
        everywhere=float(shifts[0][2].max()),
        groups=len(shifts) - 1,
        min_rows=math.ceil(SMALL_SHARE * sample.n - 1e-9),
        power=POWER,
    )
