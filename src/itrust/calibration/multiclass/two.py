"""Two classes are one question, which the binary test answers."""

from __future__ import annotations

from dataclasses import replace

from itrust._core import (
    InputError,
)
from itrust.calibration.adaptive import prepared_test
from itrust.calibration.multiclass.results import TOGETHER, ClassResult, MulticlassResult
from itrust.calibration.results import Finding
from itrust.data import MulticlassSample
from itrust.engines import (
    Engine,
)
from itrust.kernels import LocalKernel
from itrust.nulls import (
    Null,
)


def judge_two(
    sample: MulticlassSample,
    kernel: LocalKernel | None,
    null: Null | None,
    draws: int,
    seed: int,
    engine: Engine,
    progress: bool | None,
) -> MulticlassResult:
    """The binary test of the second class, told for both."""
    binary = sample.one_class(sample.classes[1])
    made = prepared_test(
        binary, kernel, null, draws=draws, rng=seed, engine=engine, progress=progress
    ).result
    if made.null_distribution is None or made.statistic_draws is None:
        raise InputError(
            "a sample of several classes needs a null that draws, not {kind}(); formulas are for "
            "klce_test(sample.one_class(name), null=...)",
            argument="null",
            value=null,
            details={"kind": type(null).__name__},
        )
    positives = int(binary.y.sum())
    mirrored = tuple(_mirrored(finding) for finding in made.findings)
    numbers = made.statistic, made.pvalue, made.pvalue
    first = ClassResult(sample.classes[0], sample.n - positives, *numbers, findings=mirrored)
    second = ClassResult(sample.classes[1], positives, *numbers, findings=made.findings)
    return MulticlassResult(
        statistic=made.statistic,
        null_sd=float(made.statistic_draws.std()),
        score=made.score,
        null_distribution=made.null_distribution,
        together=ClassResult(TOGETHER, sample.n, *numbers),
        classes=(first, second),
        n=made.n,
        names=made.names,
        draws=made.draws,
        seed=seed,
        impossible=made.impossible,
        checks=made.checks,
        engine=made.engine,
        weighted=made.weighted,
        clusters=made.clusters,
        refused=made.refused,
        is_exact=made.is_exact,
        elapsed=made.elapsed,
        assumption_warnings=made.assumption_warnings,
        notes=made.notes,
    )


def _mirrored(finding: Finding) -> Finding:
    """The same of the other one of two classes."""
    return replace(
        finding,
        direction=-finding.direction,
        too_low=finding.too_high,
        too_high=finding.too_low,
    )
