"""What the checks of one class, and of all together, show."""

from __future__ import annotations

from dataclasses import replace

from itrust._core import (
    FloatArray,
)
from itrust.calibration.attribution import attributed
from itrust.calibration.evidence import described, findings_of
from itrust.calibration.multiclass.checks import (
    ClassChecks,
)
from itrust.calibration.multiclass.rows import StreamedRows
from itrust.calibration.multiclass.table import ClassTable
from itrust.calibration.pipeline import Scores
from itrust.calibration.prepared import Prepared
from itrust.calibration.results import Finding
from itrust.engines import (
    Auto,
    Engine,
)

SHOWS = 0.2  # p-values up to which findings are judged once more and described


def class_findings(
    table: ClassTable,
    k: int,
    adjusted: FloatArray,
    own: FloatArray,
    seed: int,
) -> tuple[Finding, ...]:
    """What the checks of one class show, adjusted for all checks."""
    rows, checks = table.classes[k], table.checks
    if rows.start == rows.stop:
        return ()
    scaled = table.scaled
    scores = Scores(
        entries=checks.banks[k].entries,
        weights=table.weights[rows],
        log_tails=scaled.log_tails[rows],
        standardised=scaled.standardised[rows],
        is_single=table.is_single[rows],
        sd=scaled.sd[rows],
        skewness=scaled.skewness[rows],
        statistic=table.statistics[k],
        tail=None,
        n=checks.rows.n,
        impossible=0,
        engine="",
        certificate=None,
        notes=(),
    )
    found = findings_of(scores, adjusted[rows], own[rows])
    if not found or min(finding.pvalue for finding in found) > SHOWS:
        return found
    prepared = prepared_class(checks, k)
    return described(attributed(found, prepared, scores, seed), checks.rows.described_by(k))


def prepared_class(checks: ClassChecks, k: int) -> Prepared:
    """The checks of one class as the binary test has them."""
    rows = checks.rows
    engine: Engine = Auto()
    survey = engine.survey(rows.one_class(k))
    if isinstance(rows, StreamedRows) and rows.machines is not None:
        survey, engine = replace(survey, parts=rows.parts), rows.machines
    return Prepared(
        survey=survey,
        engine=engine,
        dictionary=checks.dictionary,
        weights=checks.weights[k],
        is_alone=False,
        bank=checks.banks[k],
        kernels=(),
        main=0,
    )


def together_findings(
    table: ClassTable, adjusted: FloatArray, own: FloatArray
) -> tuple[Finding, ...]:
    """Along which functions of the covariates the shares of all classes are off."""
    start = table.vectors.start
    found = []
    for at, g in enumerate(table.law.vectors.tolist(), start=start):
        entry = table.checks.contrasts.entries[g]
        found.append(
            Finding(
                name=f"{entry.name}, all classes",
                family="all classes",
                covariates=entry.covariates,
                where=entry.where,
                shape=entry.shape,
                direction=0,
                weight=float(table.weights[at]),
                score=float(table.scaled.log_tails[at, 0] + table.log_weights[at]),
                unadjusted_pvalue=float(own[at]),
                pvalue=float(adjusted[at]),
            )
        )
    return tuple(sorted(found, key=lambda finding: -finding.score))
