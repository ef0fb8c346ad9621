"""All classes together, with labels redrawn from the whole vector of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    IntArray,
    counted,
    progress_bar,
)
from itrust.calibration.adaptive import BEYOND_DOUBT
from itrust.calibration.evidence import impossible_labels
from itrust.calibration.inputs import (
    BY_CLUSTER,
    null_warnings,
    refused_by,
)
from itrust.calibration.multiclass.checks import (
    POINTS,
    prepare_classes,
)
from itrust.calibration.multiclass.drawing import ClassDrawing, drawing_of
from itrust.calibration.multiclass.findings import class_findings, prepared_class, together_findings
from itrust.calibration.multiclass.kernel import joint_statistics, judge_by_kernel
from itrust.calibration.multiclass.pairs import pair_notes, taken_for
from itrust.calibration.multiclass.passes import contrast_moments
from itrust.calibration.multiclass.results import TOGETHER, ClassResult, MulticlassResult, TakenFor
from itrust.calibration.multiclass.rows import CheckedRows, RowsOfClasses, StreamedRows
from itrust.calibration.multiclass.table import ClassTable, class_table, contrast_law
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.prepared import symmetric_checks
from itrust.data import MulticlassSample, MulticlassScan
from itrust.engines import (
    Engine,
    SharedKernel,
    partitions_of,
)
from itrust.kernels import LocalKernel
from itrust.nulls import (
    Bernoulli,
    Categorical,
    Null,
    Rademacher,
)


def judge_several(
    sample: MulticlassSample,
    kernel: LocalKernel | None,
    null: Null | None,
    draws: int,
    seed: int,
    engine: Engine,
    way: SharedKernel,
    progress: bool | None,
) -> MulticlassResult:
    """The test of a sample at hand, by many checks or by one kernel."""
    rows = CheckedRows.of(sample)
    drawing = drawing_of(null, sample, rows)
    chosen = drawing.null
    frequent = sample.one_class(sample.most_frequent)
    together = chosen.keeps_clusters
    warnings = null_warnings(frequent, Rademacher() if together else Bernoulli())
    common: dict[str, Any] = {
        "n": sample.n,
        "names": sample.names,
        "draws": draws,
        "seed": seed,
        "impossible": sample.impossible,
        "weighted": rows.weights is not None,
        "clusters": frequent.clusters if together else None,
        "refused": refused_by(frequent) if together and null is None else None,
        "is_exact": rows.units is None,  # redraws row by row know nothing of clusters
        "elapsed": 0.0,
        "assumption_warnings": warnings,
        "notes": (*sample.notes, *([BY_CLUSTER] if together else [])),
    }
    if kernel is not None:
        laws = drawing.laws(rows, seed)
        return judge_by_kernel(sample, kernel, laws, draws, seed, engine, common)
    tables = _tables(rows, drawing, draws, seed, way, progress)
    if way.in_full:
        laws = drawing.laws(rows, seed)
        tables = [
            table.with_statistics(joint_statistics(sample, own, draws, seed, engine))
            for table, own in zip(tables, laws, strict=True)
        ]
        common["engine"] = "tiles"
    return _result(rows, sample.classes, tables, seed, common)


def judge_files(
    scan: MulticlassScan, draws: int, seed: int, way: SharedKernel, progress: bool | None
) -> MulticlassResult:
    """The same for independent rows in files, which are read some at a time."""
    size = POINTS if way.factor is None else max(POINTS, way.factor.pilot)
    with progress_bar("reading", scan.rows_expected, progress) as advance:
        rows = StreamedRows.of(scan, size, advance, way.machines)
    frequent = rows.described_by(int(np.argmax(rows.facts.labels)))  # of random rows
    common: dict[str, Any] = {
        "n": rows.n,
        "names": scan.names,
        "draws": draws,
        "seed": seed,
        "impossible": rows.facts.never,
        "weighted": rows.is_weighted,
        "clusters": None,
        "refused": None,
        "is_exact": True,
        "elapsed": 0.0,
        "assumption_warnings": null_warnings(frequent, Bernoulli()),
        "notes": rows.survey.notes,
    }
    tables = _tables(rows, ClassDrawing(Categorical()), draws, seed, way, progress)
    if way.machines is not None:
        partitions = counted(partitions_of(rows.parts), "Dask partition")
        common["engine"] = f"{tables[0].checks.joint.describe()} on {partitions}"
    return _result(rows, scan.classes, tables, seed, common)


def _tables(
    rows: RowsOfClasses,
    drawing: ClassDrawing,
    draws: int,
    seed: int,
    way: SharedKernel,
    progress: bool | None,
) -> list[ClassTable]:
    """Scores of all checks under every law that a calibrated model may follow."""
    checks = prepare_classes(rows, draws, way.factor)
    symmetric: list[BoolArray] = []
    if drawing.null.keeps_clusters:
        checks = checks.for_signs() if isinstance(drawing.null, Rademacher) else checks
        symmetric = [symmetric_checks(prepared_class(checks, k)) for k in range(rows.classes)]
    law, laws = contrast_law(checks, contrast_moments(checks)), drawing.laws(rows, seed)
    known: dict[str, Any] = {"law": law, "is_even": drawing.even}
    with progress_bar("drawing", rows.n * len(laws), progress) as advance:
        return [class_table(checks, own, draws, seed, advance, symmetric, **known) for own in laws]


def _result(
    rows: RowsOfClasses,
    names: tuple[Any, ...],
    tables: Sequence[ClassTable],
    seed: int,
    common: dict[str, Any],
) -> MulticlassResult:
    # The largest p-values of all laws count; what is shown is of the law that has the largest.
    both = step_down, unadjusted_pvalues
    adjusted, own = (
        np.max([by(own.scaled.log_tails, own.log_weights) for own in tables], axis=0) for by in both
    )
    checks, facts = tables[0].checks, rows.facts
    parts = [_parts(own, facts.impossible) for own in tables]
    of_parts, own_parts = (np.max([by(part) for part in parts], axis=0) for by in both)
    table = max(tables, key=_share_above)
    combined = table.combined.copy()
    if facts.never:  # no draw has such a label
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
    classes = tuple(
        ClassResult(
            name=name,
            positives=int(facts.labels[k]),
            statistic=float(table.statistics[k, 0]),
            unadjusted_pvalue=float(own_parts[1 + k]),
            pvalue=float(of_parts[1 + k]),
            findings=class_findings(table, k, adjusted, own, seed),
        )
        for k, name in enumerate(names)
    )
    statistic = table.scaled.statistic
    together = ClassResult(
        TOGETHER,
        rows.n,
        float(statistic[0]),
        float(own_parts[0]),
        float(of_parts[0]),
        together_findings(table, adjusted, own),
    )
    combined.flags.writeable = False
    refused = common["refused"] is not None
    pairs: tuple[TakenFor, ...] = () if refused else taken_for(table, names, adjusted, own)
    if refused:
        nan = float("nan")
        together = replace(together, pvalue=nan, unadjusted_pvalue=nan, findings=())
        classes = tuple(replace(c, pvalue=nan, unadjusted_pvalue=nan, findings=()) for c in classes)
    told = impossible_labels(float(combined[0]), common["draws"])
    classes = tuple(
        replace(c, findings=(told, *c.findings)) if count else c
        for c, count in zip(classes, facts.impossible, strict=True)
    )
    common["notes"] += pair_notes(checks.contrasts, names)
    common.setdefault("engine", checks.joint.describe())
    return MulticlassResult(
        statistic=float(statistic[0]),
        null_sd=checks.joint.sd / checks.pair_weight,
        score=float(combined[0]),
        null_distribution=combined[1:],
        together=together,
        classes=classes,
        pairs=pairs,
        checks=table.weights.size,
        **common,
    )


def _share_above(table: ClassTable) -> float:
    """The p-value of the largest check under one law."""
    return float(unadjusted_pvalues(table.combined[None])[0])


def _parts(table: ClassTable, impossible: IntArray) -> FloatArray:
    """The largest scores of all together, of every class, and of pairs, (K + 2, 1 + draws)."""
    together = table.largest(slice(0, table.vectors.stop))
    found = [together, *(table.largest(rows) for rows in table.classes)]
    if table.pairs.start < table.pairs.stop:
        found.append(table.largest(table.pairs))
    scores = np.vstack(found)
    lowest = float(scores[np.isfinite(scores)].min())
    scores = np.where(np.isfinite(scores), scores, lowest)  # a class that cannot vary shows nothing
    # No draw has a label that was called impossible, so it outranks every score.
    refuted = np.flatnonzero([impossible.any(), *(impossible > 0)])
    scores[refuted, 0] = max(float(scores.max()), 0.0) + BEYOND_DOUBT
    return scores
