"""Everything that an audit measures, by as few passes over the rows as possible.

Rows that are independent draws take one way, whether they are in memory, in files or on many
machines: a first pass counts them and keeps random ones at hand, and one main pass makes the
test, the test of the prediction alone, local bias, groups and numbers on the same redrawn labels.
Rows of a design, whose clusters have to stay whole, are judged part by part in memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import Begin, progress_bar
from itrust.auditing.charts import HistogramChart
from itrust.auditing.pairs import ClassMatrix, class_matrix, pair_groups
from itrust.auditing.parts import (
    ALIKE_LABELS,
    FEW_CLUSTERS,
    NO_VARIATION,
    REPLICATES,
    Diagnosis,
    GroupPower,
    MeanBias,
    Missed,
    OutcomePart,
    Overall,
    adjusted,
    multiplied,
)
from itrust.auditing.sums import (
    SummingPart,
    overall_of,
    overall_sums,
    partition_of,
    tallied_of,
    validation_of,
)
from itrust.auditing.verdict import NEARLY_ALL, share_within
from itrust.bias import (
    MAX_GROUPS,
    GroupTable,
    PlacesPart,
    Question,
    Redraws,
    group_plan,
    local_plan,
    slices_of,
)
from itrust.calibration import (
    MIN_CLUSTERS,
    CalibrationResult,
    ClassResult,
    MulticlassResult,
    PreparedTest,
    Scores,
    class_losses,
    detectable_by,
    intercept_and_slope,
    mean_loss,
    multiclass_test,
    null_warnings,
    planned_test,
    prepared_test,
    result_of_laws,
    scores,
    student_quantile,
    top_label,
    validation,
)
from itrust.data import MAX_VALUES, Column, Everywhere, Extract, MulticlassSample, Predicate, Sample
from itrust.engines import Engine, EngineChoice, one_blas_thread, run_together, work_of_parts
from itrust.nulls import Bernoulli, Hoeffding
from itrust.tasks import Task, TaskResult, evaluate_tasks, prevalence, task_part
from itrust.terms import CLASS_GROUP_LEVELS, GROUP_LEVELS

MOST_POINTS = 6_000  # of local bias, all classes together
FEWEST_POINTS = 100  # of a class
POINTS = 600  # of an outcome at most
SMALL_SHARE = 0.05  # of the rows: groups below make no headline
POWER = 0.8
MOST_DRAWS = 9_999
MOST_REDRAWN = 2e9  # labels, beyond which no more draws are made
NEAR, EDGE = 3.0, 0.02  # standard errors of draws, and share of points, that may go either way


@dataclass(frozen=True)
class AuditDraws:
    """What is the same for all parts of an audit."""

    alpha: float
    draws: int
    seed: int
    validation: bool = True
    grades: str | None = None
    outcomes: int = 1

    @property
    def share(self) -> float:
        """Of alpha, for one outcome."""
        return self.alpha / self.outcomes

    @property
    def draws_of_one(self) -> int:
        """As many as a share of alpha needs."""
        return max(self.draws, math.ceil(1 / self.share) - 1)

    def raised(self, n: int) -> AuditDraws | None:
        """Ten times as many draws; None where these are enough, or rows too many."""
        draws = min(10 * (self.draws + 1) - 1, MOST_DRAWS)
        if draws <= self.draws or float(n) * draws > MOST_REDRAWN:
            return None
        return replace(self, draws=draws)


def unsettled(found: Mapping[str, Any], settings: AuditDraws, tolerance: float) -> bool:
    """Whether other draws could give another verdict."""
    alpha, near = settings.alpha, NEAR / math.sqrt(1 + settings.draws)
    pvalue = found["test"].pvalue
    if abs(pvalue - alpha) <= near * math.sqrt(alpha * (1 - alpha)):
        return True
    share = min(share_within(own.diagnosis.bias, tolerance) for own in found["parts"])
    if abs(found["missed"].shift - tolerance) <= near * tolerance or abs(share - NEARLY_ALL) < EDGE:
        return True
    shown = [part for own in found["parts"] for part in own.diagnosis.shown]
    top = max(shown, key=lambda part: abs(part.at_least), default=None)
    return top is not None and abs(abs(top.at_least) - tolerance) <= near * top.stderr


def measured_together(
    extract: Extract,
    names: Sequence[str],
    tasks: Sequence[Task],
    settings: AuditDraws,
    engine: Engine,
    begin: Begin,
) -> dict[str, Any]:
    """Measure independent rows: one pass for everything that is a sum over rows."""
    alpha, draws, seed = settings.alpha, settings.draws, settings.seed
    judged, bare = extract.only(names), extract.only(())
    survey, null = engine.survey_of(extract), Bernoulli()
    redraws = {
        part: Redraws.of_extract(own, alpha=alpha, draws=draws, seed=seed, engine=engine)
        for part, own in (("judged", judged), ("all", extract))
    }
    begin("plan")
    warnings = null_warnings(judged.some, null, judged.runs)
    alone = planned_test(engine, engine.survey_of(bare), null, draws)
    given = planned_test(engine, engine.survey_of(judged), null, draws) if names else alone
    local = local_plan(redraws["judged"], every=POINTS)
    few = [name for name in names if _is_grouped(judged, name)]
    groups = None
    if few:
        groups = _groups_planned(redraws["judged"], few)
    sets = [plan.places for plan in (local, groups) if plan is not None]
    numbers = task_part(redraws["all"], [prevalence(), *tasks])
    (bars, contribution), cuts = overall_sums(bare), None
    if not extract.is_all:
        cuts = partition_of(bare.some, settings)
    parts: list[Any] = [
        SummingPart(contribution, survey.unit),
        numbers,
        PlacesPart.of(sets, extract.n, draws, seed, survey.unit),
        *([] if cuts is None else [SummingPart(cuts, survey.unit)]),
        alone,
        *([given] if names else []),
    ]
    begin("pass")
    with progress_bar("pass", work_of_parts(survey, parts, draws)) as advance:
        found = run_together(engine, survey, parts, null, draws, seed, advance)
    sums, drawn, averages, *scored = found
    begin("findings")
    tallied = scored.pop(0).tallied(cuts) if cuts else tallied_of(extract.some, settings)
    of_alone = result_of_laws(alone, scored[:1], seed, some=bare.some)
    made = of_alone
    if names:
        made = result_of_laws(given, scored[1:], seed, warnings=warnings, some=judged.some)
    begin("missed")
    missed = _missed(judged.some, made, alpha)
    begin("parts")
    at_places = iter(averages)
    bias = local.finished(next(at_places))
    table = None if groups is None else groups.finished(next(at_places))
    slices = slices_of(redraws["judged"], scored[-1:], table.shown if table else ())
    families = [slice(0, 1), slice(1, None)] if tasks else [slice(0, 1)]
    rate, *results = numbers.results(drawn, families)
    overall = overall_of(sums, MeanBias.of(rate), of_alone.result, made.result)
    diagnosis = Diagnosis.of(bias, table, slices, made.result)
    rows = int(extract.census.labels[1])
    return {
        "test": made.result,
        "parts": _of_one(extract.some, rows, made.result, overall, tallied, diagnosis),
        "overall": overall,
        "missed": missed,
        "tasks": results,
        "n": extract.n,
        "histogram": HistogramChart.of_counts(bars, sums.counts),
        "validation": validation_of(tallied, settings, bare.some.folds),
    }


def _of_one(
    rows: Sample,
    positives: int,
    test: CalibrationResult,
    overall: Overall,
    tallied: validation.Tallied,
    diagnosis: Diagnosis,
) -> tuple[OutcomePart]:
    """What was found about one outcome."""
    name, mean, curve = rows.values[1], overall.mean, overall.curve
    _, slope = intercept_and_slope(tallied, 1 - diagnosis.slices.alpha)
    return (OutcomePart(name, positives, test, mean, overall.ece, curve, slope, diagnosis),)


def measured_by_design(
    sample: Sample,
    judged: Sample,
    tasks: Sequence[Task],
    settings: AuditDraws,
    engine: EngineChoice,
    begin: Begin,
) -> dict[str, Any]:
    """Measure rows of a design, part by part."""
    drawing: dict[str, Any] = {"draws": settings.draws, "rng": settings.seed}
    begin("overall")
    bare = judged.with_columns(())
    alone = made = prepared_test(bare, **drawing)
    if judged.columns:
        begin("given")
        made = prepared_test(judged, **drawing, engine=engine)
    overall = Overall(
        mean=_mean(bare, settings),
        statistic=alone.result.statistic,
        pvalue=float(np.maximum(alone.result.pvalue, made.result.pvalue)),
        unadjusted_pvalue=alone.result.pvalue,
        brier=scores.brier(bare),
        log_loss=scores.log_loss(bare),
        **_errors(bare),
        test=alone.result,
    )
    begin("missed")
    missed = _missed(judged, made, settings.alpha)
    begin("parts")
    tallied = tallied_of(sample, settings)
    diagnosis = _diagnosis(judged, settings, made.result, made.scores)
    if tasks:
        begin("tasks")
    return {
        "test": made.result,
        "parts": _of_one(sample, int(sample.y.sum()), made.result, overall, tallied, diagnosis),
        "overall": overall,
        "missed": missed,
        "tasks": evaluate_tasks(sample, tasks, alpha=settings.alpha, **drawing),
        "n": sample.n,
        "histogram": HistogramChart.of(sample.p),
        "validation": validation_of(tallied, settings, sample.folds),
    }


def _groups_planned(
    redraws: Redraws, names: Sequence[str], levels: int = GROUP_LEVELS
) -> Question[GroupTable]:
    """The values of each covariate; of a category with many levels the most frequent ones."""
    most = max(min(levels, MAX_GROUPS // len(names) - 1), 1)  # rows without a value are a group
    return group_plan(redraws, tuple(names), crossings=False, most=most)


def _is_grouped(extract: Extract, name: str) -> bool:
    """Whether every value is a group: of a category, or of few numbers that may be codes."""
    column, counts = extract.some.column(name), extract.census.counts[name]
    if column.is_category or column.declared:
        return column.is_category and counts.values is not None
    return counts.values is not None


def _has_groups(column: Column) -> bool:
    """The same for rows in memory."""
    if column.is_category or column.declared:
        return column.is_category
    return np.unique(column.values[~column.missing]).size <= MAX_VALUES


def _missed(sample: Sample, made: PreparedTest, alpha: float) -> Missed:
    """What the test prepared and drew serves again; the sample holds all rows, or some."""
    unknown = _unknown(sample)
    found = None if unknown else detectable_by(made, alpha=alpha)
    bound = None
    if sample.weights is None and sample.design.rows_are_independent:
        blocks = Hoeffding().blocks(made.result.n)
        bound = float(np.exp(-blocks * max(made.result.statistic, 0.0) ** 2 / 2))
    return Missed(found, bound, unknown)


def _unknown(sample: Sample) -> str | None:
    """Why it cannot be known what was missed, if it cannot."""
    if np.isin(sample.p, (0.0, 1.0)).all():
        return NO_VARIATION
    if sample.design.known_by_replicates:
        return REPLICATES
    if sample.clusters is None:
        return None
    if sample.clusters < MIN_CLUSTERS:
        return FEW_CLUSTERS
    return ALIKE_LABELS if np.ptp(sample.y) == 0 else None


def measured_classes(
    sample: MulticlassSample,
    judged: MulticlassSample,
    tasks: Sequence[Task],
    settings: AuditDraws,
    begin: Begin,
) -> dict[str, Any]:
    """Measure several classes: all together, each against the rest, and pairs of them."""
    alpha, draws, seed = settings.alpha, settings.draws, settings.seed
    begin("given")
    test = multiclass_test(judged, draws=draws, rng=seed)
    begin("classes")
    parts = _class_parts(judged, test, settings)
    begin("pairs")
    pairs = class_matrix(judged, alpha=alpha, draws=draws, seed=seed)
    tables = [part.diagnosis.groups or () for part in parts]
    pairs = replace(pairs, places=pair_groups(sample.classes, tables, alpha))
    certain = bool(np.isin(judged.p, (0.0, 1.0)).all())
    missed = Missed(unknown=NO_VARIATION if certain else None)
    if not certain:
        missed = Missed(groups=_power_of_groups(judged, parts, alpha))
    results: Sequence[TaskResult] = ()
    if tasks:
        begin("tasks")
        results = evaluate_tasks(sample, tasks, alpha=alpha, draws=draws, rng=seed)
    return {
        "test": test,
        "parts": parts,
        "overall": _classes_overall(judged, test, pairs, settings),
        "missed": missed,
        "tasks": results,
        "n": sample.n,
        "pairs": pairs,
        "validation": None,
    }


def in_threads(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Do the same for every item, some at a time; answers are in the order of the items."""
    threads = min(len(items), os.cpu_count() or 1)
    if threads <= 1:
        return [work(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        # Settings of the one who calls, such as where progress is shown, hold in the threads.
        waiting = [pool.submit(copy_context().run, work, item) for item in items]
        return [future.result() for future in waiting]


def _class_parts(
    sample: MulticlassSample, test: MulticlassResult, settings: AuditDraws
) -> tuple[OutcomePart, ...]:
    """Measure every class against the rest."""
    binary = [sample.one_class(name) for name in sample.classes]

    def measured(k: int) -> OutcomePart:
        own = binary[k]
        return OutcomePart(
            name=sample.classes[k],
            rows=int(own.y.sum()),
            test=test.classes[k],
            mean=_mean(own, settings),
            ece=scores.ece(own),
            curve=scores.reliability_curve(own, scores.EqualMass(10)),
            slope=intercept_and_slope(tallied_of(own, settings), 1 - settings.share)[1],
            diagnosis=_diagnosis(own, settings, test.classes[k]),
        )

    return tuple(in_threads(measured, range(len(binary))))


def _mean(sample: Sample, settings: AuditDraws) -> MeanBias:
    """Mean prediction beside the rate, for all outcomes at once."""
    (rate,) = evaluate_tasks(
        sample.with_columns(()),
        [prevalence()],
        alpha=settings.share,
        draws=settings.draws_of_one,
        rng=settings.seed,
    )
    found = MeanBias.of(rate)
    pvalue = adjusted(found.pvalue, settings.outcomes, settings.alpha, found.lower, found.upper)
    return replace(found, pvalue=pvalue, alpha=settings.alpha)


def _diagnosis(
    sample: Sample,
    settings: AuditDraws,
    test: CalibrationResult | ClassResult,
    made: Scores | None = None,
) -> Diagnosis:
    """Local bias, groups and slices of one outcome, with its share of alpha."""
    several = settings.outcomes > 1
    redraws = Redraws.of(
        sample, alpha=settings.share, draws=settings.draws_of_one, rng=settings.seed
    )
    most = min(POINTS, max(FEWEST_POINTS, MOST_POINTS // settings.outcomes))
    bias = local_plan(redraws, every=most).made()
    names = [column.name for column in sample.columns if several or _has_groups(column)]
    levels = CLASS_GROUP_LEVELS if several else GROUP_LEVELS
    groups = _groups_planned(redraws, names, levels).made() if names else None
    slices = slices_of(redraws, None if made is None else [made], groups.shown if groups else ())
    found = Diagnosis.of(bias, groups, slices, test)
    return multiplied(found, settings.outcomes, settings.alpha) if several else found


def _classes_overall(
    sample: MulticlassSample, test: MulticlassResult, pairs: ClassMatrix, settings: AuditDraws
) -> Overall:
    """Judge calibration whatever the covariates: the top label, and all classes together."""
    top = top_label(sample)
    (rate,) = evaluate_tasks(
        top, [prevalence()], alpha=settings.alpha, draws=settings.draws, rng=settings.seed
    )
    brier, log_loss = (mean_loss(sample, losses) for losses in class_losses(sample))
    return Overall(
        mean=MeanBias.of(rate),
        statistic=pairs.statistic,
        pvalue=float(np.maximum(pairs.canonical_pvalue, test.pvalue)),
        unadjusted_pvalue=pairs.canonical_pvalue,
        brier=brier,
        log_loss=log_loss,
        **_errors(top),
    )


def _errors(sample: Sample) -> dict[str, Any]:
    """Calibration errors with bins and without, and the reliability curve."""
    return {
        "ece": scores.ece(sample),
        "mce": scores.mce(sample),
        "smooth_ece": scores.smooth_ece(sample),
        "curve": scores.reliability_curve(sample, scores.EqualMass(10)),
    }


def _power_of_groups(
    sample: MulticlassSample, parts: Sequence[OutcomePart], alpha: float
) -> GroupPower | None:
    """How small a bias of a class the intervals of its groups would have shown."""
    if not sample.design.rows_are_independent:
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
    return GroupPower(
        shift=float(worst.max()),
        name=sample.classes[int(worst.argmax())],
        where=where,
        share=share,
        everywhere=float(shifts[0][2].max()),
        groups=len(shifts) - 1,
        min_rows=math.ceil(SMALL_SHARE * sample.n - 1e-9),
        power=POWER,
    )
