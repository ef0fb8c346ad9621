"""One kernel for every class, and the joint kernel evaluated in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from itrust._core import (
    FloatArray,
)
from itrust.calibration.inputs import (
    resolved_kernel,
)
from itrust.calibration.multiclass.checks import (
    joint_form,
    joint_points,
)
from itrust.calibration.multiclass.passes import ClassNull
from itrust.calibration.multiclass.results import TOGETHER, ClassResult, MulticlassResult
from itrust.calibration.multiclass.rows import CheckedRows
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.pipeline import score
from itrust.calibration.prepared import prepare_one
from itrust.data import MulticlassSample
from itrust.engines import (
    Engine,
)
from itrust.kernels import LocalKernel
from itrust.nulls import (
    Rademacher,
)


def joint_statistics(
    sample: MulticlassSample, null: ClassNull, draws: int, seed: int, engine: Engine
) -> FloatArray:
    """KLCE^2 of every class with the joint kernel for the data and all draws, (K, 1 + draws)."""
    rows = CheckedRows.of(sample)
    form = joint_form(rows, rows.unit)
    columns = joint_points(rows, form.names).columns
    found = []
    for k, name in enumerate(sample.classes):
        wide = sample.one_class(name).with_columns(columns)
        own = null if isinstance(null, Rademacher) else null.of_class(k)
        prepared = prepare_one(engine.survey(wide), engine, form.kernel, own, draws)
        found.append(score(prepared, own, draws, seed).statistic)
    return np.array(found)


def judge_by_kernel(
    sample: MulticlassSample,
    kernel: LocalKernel,
    laws: Sequence[ClassNull],
    draws: int,
    seed: int,
    engine: Engine,
    common: dict[str, Any],
) -> MulticlassResult:
    """One kernel for every class: the sum over classes is compared with its draws."""
    of_laws = [_of_kernel(sample, kernel, null, draws, seed, engine) for null in laws]
    standards = [_standard(statistics) for statistics in of_laws]
    total = max((statistics[0] for statistics in of_laws), key=_share_of)
    counts = np.bincount(sample.codes, minlength=len(sample.classes))
    parts = [
        ClassResult(name, int(count), float(value), float(alone), float(p))
        for name, count, value, alone, p in zip(
            (TOGETHER, *sample.classes),
            (sample.n, *counts),
            of_laws[0][:, 0],
            np.max([unadjusted_pvalues(standard) for standard in standards], axis=0),
            np.max([step_down(standard) for standard in standards], axis=0),
            strict=True,
        )
    ]
    if common["refused"] is not None:
        nan = float("nan")
        parts = [replace(part, pvalue=nan, unadjusted_pvalue=nan) for part in parts]
    return MulticlassResult(
        statistic=float(total[0]),
        null_sd=float(total[1:].std()),
        score=float(total[0]),
        null_distribution=total[1:],
        together=parts[0],
        classes=tuple(parts[1:]),
        engine=type(engine).__name__.lower(),
        **common,
    )


def _of_kernel(
    sample: MulticlassSample,
    kernel: LocalKernel,
    null: ClassNull,
    draws: int,
    seed: int,
    engine: Engine,
) -> FloatArray:
    """KLCE^2 of all classes and of each one for the data and all draws, (1 + K, 1 + draws)."""
    found = []
    for k, name in enumerate(sample.classes):
        survey = engine.survey(sample.one_class(name))
        own = null if isinstance(null, Rademacher) else null.of_class(k)
        prepared = prepare_one(survey, engine, resolved_kernel(kernel, survey), own, draws)
        found.append(score(prepared, own, draws, seed).statistic)
    return np.array([np.sum(found, axis=0), *found])


def _share_of(statistic: FloatArray) -> float:
    """The p-value of one statistic under one law."""
    return float(unadjusted_pvalues(statistic[None])[0])


def _standard(statistics: FloatArray) -> FloatArray:
    """Divided by their spread, that of data and draws alike."""
    sd = statistics.std(axis=1, keepdims=True)
    return np.asarray(np.divide(statistics, sd, out=np.zeros_like(statistics), where=sd > 0))
