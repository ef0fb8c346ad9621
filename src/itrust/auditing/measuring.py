"""Everything that an audit measures, by as few passes over the rows as possible.

Rows that are independent draws take one way, whether they are in memory, in files or on many
machines: a first pass counts them and keeps random ones at hand, and one main pass makes the
test, the test of the prediction alone, local bias, groups and numbers on the same redrawn labels.
Rows of a design, whose clusters have to stay whole, are judged part by part in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import Begin, progress_bar
from itrust.auditing.charts import HistogramChart
from itrust.auditing.overall import OverallPart, overall_of
from itrust.auditing.parts import Diagnosis, MeanBias, Missed, Overall, Unknown
from itrust.auditing.stages import Stage
from itrust.auditing.validating import ValidationPart, validation_of
from itrust.bias import (
    MAX_GROUPS,
    GroupTable,
    LocalBias,
    PlacesPart,
    Question,
    Redraws,
    bias_slices,
    group_plan,
    local_bias,
    local_plan,
    slice_plan,
    slices_of,
)
from itrust.calibration import (
    MIN_CLUSTERS,
    PreparedTest,
    Scoring,
    Validation,
    detectable_by,
    null_warnings,
    planned_test,
    prepared_test,
    result_of_laws,
    scores,
)
from itrust.data import MAX_VALUES, Column, Extract, Sample
from itrust.engines import Engine, EngineChoice, run_together, work_of_parts
from itrust.nulls import Bernoulli, Hoeffding
from itrust.tasks import Task, TaskResult, evaluate_tasks, prevalence, task_part
from itrust.terms import GROUP_LEVELS


@dataclass(frozen=True, eq=False)
class Measured:
    """What an audit has found, before it is judged."""

    overall: Overall
    made: PreparedTest
    missed: Missed
    diagnosis: Diagnosis
    tasks: tuple[TaskResult, ...]
    n: int
    histogram: HistogramChart
    validation: Validation | None = None


@dataclass(frozen=True)
class AuditDraws:
    """What is the same for all parts of an audit."""

    alpha: float
    draws: int
    seed: int
    validation: bool = True
    grades: str | None = None


def measured_together(
    extract: Extract,
    names: Sequence[str],
    tasks: Sequence[Task],
    settings: AuditDraws,
    engine: Engine,
    begin: Begin,
) -> Measured:
    """Measure independent rows: one pass for everything that is a sum over rows."""
    alpha, draws, seed = settings.alpha, settings.draws, settings.seed
    judged, bare = extract.only(names), extract.only(())
    survey, null = engine.survey_of(extract), Bernoulli()
    redraws = {
        part: Redraws.of_extract(own, alpha=alpha, draws=draws, seed=seed, engine=engine)
        for part, own in (("judged", judged), ("all", extract))
    }
    begin(Stage.PLAN)
    warnings = null_warnings(judged.some, null, judged.runs)
    alone = planned_test(engine, engine.survey_of(bare), null, draws)
    given = planned_test(engine, engine.survey_of(judged), null, draws) if names else alone
    local = local_plan(redraws["judged"])
    few = [name for name in names if _is_grouped(judged, name)]
    groups = None
    if few:
        groups = _groups_planned(redraws["judged"], few)
    slices = None if extract.is_all else slice_plan(redraws["judged"])
    sets = [plan.places for plan in (local, groups, slices) if plan is not None]
    numbers = task_part(redraws["all"], [prevalence(), *tasks])
    overall = OverallPart(bare, survey.unit)
    printed = None
    if settings.validation and not extract.is_all:
        printed = ValidationPart(bare, survey.unit, settings.grades)
    parts: list[Any] = [
        overall,
        numbers,
        PlacesPart.of(sets, extract.n, draws, seed, survey.unit),
        *([] if printed is None else [printed]),
        Scoring(alone, null),
        *([Scoring(given, null)] if names else []),
    ]
    begin(Stage.PASS)
    with progress_bar("pass", work_of_parts(survey, parts, draws)) as advance:
        found = run_together(engine, survey, parts, null, draws, seed, advance)
    sums, drawn, averages, *scored = found
    begin(Stage.FINDINGS)
    validation = None
    if printed is not None:
        validation = printed.validated(scored.pop(0), alpha, draws, seed)
    elif settings.validation:
        validation = validation_of(extract.some, alpha, draws, seed, settings.grades)
    of_alone = result_of_laws(alone, scored[:1], null, seed, some=bare.some)
    made = of_alone
    if names:
        made = result_of_laws(given, scored[1:], null, seed, warnings=warnings, some=judged.some)
    begin(Stage.MISSED)
    missed = _missed(judged.some, made, alpha)
    begin(Stage.PARTS)
    at_places = iter(averages)
    bias = local.finished(next(at_places))
    table = None if groups is None else groups.finished(next(at_places))
    if slices is None:
        parts_found = slices_of(redraws["judged"])
    else:
        parts_found = slices.finished(next(at_places))
    families = [slice(0, 1), slice(1, None)] if tasks else [slice(0, 1)]
    rate, *results = numbers.results(drawn, families)
    return Measured(
        overall=overall_of(sums, MeanBias.of(rate), of_alone.result, made.result),
        made=made,
        missed=missed,
        diagnosis=Diagnosis.of(bias, table, parts_found),
        tasks=tuple(results),
        n=extract.n,
        histogram=overall.histogram(sums),
        validation=validation,
    )


def measured_by_design(
    sample: Sample,
    judged: Sample,
    tasks: Sequence[Task],
    settings: AuditDraws,
    engine: EngineChoice,
    begin: Begin,
) -> Measured:
    """Measure rows of a design, part by part."""
    common: dict[str, Any] = {
        "alpha": settings.alpha,
        "draws": settings.draws,
        "rng": settings.seed,
    }
    drawing: dict[str, Any] = {"draws": settings.draws, "rng": settings.seed}
    begin(Stage.OVERALL)
    bare = judged.with_columns(())
    alone = made = prepared_test(bare, **drawing)
    if judged.columns:
        begin(Stage.GIVEN)
        made = prepared_test(judged, **drawing, engine=engine)
    (rate,) = evaluate_tasks(bare, [prevalence()], **common)
    overall = Overall(
        test=alone.result,
        pvalue=float(np.maximum(alone.result.pvalue, made.result.pvalue)),
        mean=MeanBias.of(rate),
        brier=scores.brier(bare),
        log_loss=scores.log_loss(bare),
        ece=scores.ece(bare),
        mce=scores.mce(bare),
        smooth_ece=scores.smooth_ece(bare),
        curve=scores.reliability_curve(bare, scores.EqualMass(10)),
    )
    begin(Stage.MISSED)
    missed = _missed(judged, made, settings.alpha)
    begin(Stage.LOCAL)
    bias: LocalBias = local_bias(judged, **common)
    few = [column.name for column in judged.columns if _has_groups(column)]
    begin(Stage.PARTS, 2 if few else 1)
    groups = None
    if few:
        groups = _groups_planned(Redraws.of(judged, **common), few).made()
    slices = bias_slices(judged, **common)
    if tasks:
        begin(Stage.TASKS)
    return Measured(
        overall=overall,
        made=made,
        missed=missed,
        diagnosis=Diagnosis.of(bias, groups, slices),
        tasks=evaluate_tasks(sample, tasks, **common),
        n=sample.n,
        histogram=HistogramChart.of(sample.p),
        validation=validation_of(
            sample, settings.alpha, settings.draws, settings.seed, settings.grades
        )
        if settings.validation
        else None,
    )


def _groups_planned(redraws: Redraws, names: Sequence[str]) -> Question[GroupTable]:
    """The values of each covariate; of a category with many levels the most frequent ones."""
    most = MAX_GROUPS // len(names) - 1  # rows without a value are a group, too
    most = max(min(GROUP_LEVELS, most), 1)
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


def _unknown(sample: Sample) -> Unknown | None:
    """Why it cannot be known what was missed, if it cannot."""
    if np.isin(sample.p, (0.0, 1.0)).all():
        return Unknown.NO_VARIATION
    if sample.design.known_by_replicates:
        return Unknown.REPLICATES
    if sample.clusters is None:
        return None
    if sample.clusters < MIN_CLUSTERS:
        return Unknown.FEW_CLUSTERS
    return Unknown.ALIKE_LABELS if np.ptp(sample.y) == 0 else None
