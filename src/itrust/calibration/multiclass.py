"""More than two classes: probabilities (n, K), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the size of the test is exact and the classes share their draws.
Two classes are one question, which the binary test answers.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, Rng, as_seed, listed, progress_bar
from itrust.calibration.adaptive import BEYOND_DOUBT, prepared_test
from itrust.calibration.attribution import attributed
from itrust.calibration.evidence import findings_of
from itrust.calibration.extremes import described
from itrust.calibration.inputs import (
    BY_CLUSTER,
    checked_draws,
    null_warnings,
    refused_by,
    resolved_kernel,
)
from itrust.calibration.multiclass_checks import (
    CheckedRows,
    ClassChecks,
    joint_form,
    joint_points,
    prepare_classes,
)
from itrust.calibration.multiclass_pairs import taken_for
from itrust.calibration.multiclass_pass import ClassNull
from itrust.calibration.multiclass_results import ClassResult, MulticlassResult, TakenFor
from itrust.calibration.multiclass_scores import ClassTable, class_table
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.pipeline import Scores, score
from itrust.calibration.prepared import Prepared, prepare_one
from itrust.calibration.results import Finding
from itrust.calibration.symmetry import symmetric_checks
from itrust.data import MulticlassSample
from itrust.engines import (
    Auto,
    Engine,
    EngineChoice,
    SharedKernel,
    as_engine,
    one_blas_thread,
    shared_kernel,
)
from itrust.kernels import LocalKernel
from itrust.nulls import Bernoulli, Categorical, Null, Rademacher, carriers_of

SHOWS = 0.2  # p-values up to which findings are judged once more and described
TOGETHER = "all together"


def multiclass_test(
    sample: MulticlassSample,
    kernel: LocalKernel | None = None,
    null: Null | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    *,
    progress: bool | None = None,
) -> MulticlassResult:
    """Test all classes at once: each against the rest, pairs of classes, and all together.

    The same as `klce_test` for a sample of several classes. Labels are redrawn from the categorical
    law of each row, the same draws for every check. Two classes give the numbers of the binary
    test of the second one.

    Parameters
    ----------
    sample : MulticlassSample
        Labels, probabilities of every class, and covariates.
    kernel : LocalKernel, optional
        One kernel of each class's own probability and the covariates: the statistic is the sum of
        its KLCE^2 over classes. Default: many checks (see the theory).
    null : Null, optional
        `Bernoulli()` redraws classes, as if rows were independent; `Rademacher()` flips the signs
        of all residuals of a cluster, approximate. Default: the latter where rows have clusters.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same p-value.
    engine : "auto", Tiles or Factor
        Who evaluates the kernel on all probabilities and covariates.
    progress : bool, optional
        Default: a bar in a terminal once the work has taken a second.

    Returns
    -------
    MulticlassResult
        P-values of all classes together and of each class, adjusted for all.

    Examples
    --------
    >>> import numpy as np, itrust as it
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=600)
    >>> truth = np.column_stack([np.exp(x), np.exp(-x), np.ones(600)])
    >>> truth /= truth.sum(axis=1, keepdims=True)
    >>> y = [rng.choice(3, p=row) for row in truth]
    >>> good = it.multiclass_test(it.MulticlassSample(y, truth, x), draws=199, rng=0)
    >>> bad = it.multiclass_test(it.MulticlassSample(y, truth[:, ::-1], x), draws=199, rng=0)
    >>> good.pvalue > 0.05 > bad.pvalue
    True
    """
    begun = time.perf_counter()
    sample, chosen = checked_classes(sample), as_engine(engine)
    way = shared_kernel(chosen)
    draws, seed = checked_draws(draws), as_seed(rng)
    if kernel is not None and not isinstance(kernel, LocalKernel):
        raise InputError(
            "several classes take one LocalKernel(prob=..., x=...) or the default checks, not "
            "{value}; a dictionary is for one class, klce_test(sample.one_class(name), kernel=...)",
            argument="kernel",
            value=kernel,
        )
    if len(sample.classes) == 2:
        found = _of_two(sample, kernel, null, draws, seed, chosen, progress)
    else:
        with one_blas_thread():  # else landmarks would depend on the number of threads
            found = _of_several(sample, kernel, null, draws, seed, chosen, way, progress)
    return replace(found, elapsed=time.perf_counter() - begun)


def has_classes(sample: object) -> bool:
    """Whether this is a sample of several classes, or a scan of one."""
    is_scan = hasattr(sample, "classes") and callable(getattr(sample, "load", None))
    return isinstance(sample, MulticlassSample) or is_scan


def checked_classes(sample: object) -> MulticlassSample:
    """Pass a sample of several classes on, load one from files; refuse anything else."""
    if has_classes(sample) and not isinstance(sample, MulticlassSample):
        sample = sample.load()  # type: ignore[attr-defined]
    if not isinstance(sample, MulticlassSample):
        raise InputError(
            "expected an itrust.MulticlassSample, not a {kind}; make one with MulticlassSample(y, "
            "p, x) where p has one column a class",
            argument="sample",
            value=sample,
            details={"kind": type(sample).__name__},
        )
    return sample


def _checked_null(null: Null | None, sample: MulticlassSample, rows: CheckedRows) -> ClassNull:
    """Who draws: classes of independent rows, signs of clusters."""
    if isinstance(null, Bernoulli) or (null is None and rows.units is None):
        return Categorical(rows.p)
    if rows.units is None or not (null is None or isinstance(null, Rademacher)):
        raise InputError(
            "several classes take Bernoulli(), which redraws classes row by row, or Rademacher() "
            "where rows have clusters, not {kind}(); other nulls are for one class, "
            "klce_test(sample.one_class(name), null=...)",
            argument="null",
            value=null,
            details={"kind": type(null).__name__},
        )
    binary = [sample.one_class(name) for name in sample.classes]
    if binary[0].design.known_by_replicates:
        raise InputError(
            "a test of all classes needs to know the clusters, not replicate weights alone; name "
            "them, or test one class at a time with klce_test(sample.one_class(name))",
            argument="sample",
        )
    carriers = [carriers_of(one) for one in binary]
    rare = [
        name
        for name, own in zip(sample.classes, carriers, strict=True)
        if not (own.symmetric and own.enough)
    ]
    if not any(own.enough for own in carriers):  # too few clusters, which the result tells
        return Rademacher()
    if null is None and rare:
        raise InputError(
            "sums over clusters are too skewed for a test of all classes where a class is as rare "
            "as {rare} here; test one class at a time with klce_test(sample.one_class(name))",
            argument="sample",
            details={"rare": listed(rare)},
        )
    return Rademacher()


def _of_two(
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


def _of_several(
    sample: MulticlassSample,
    kernel: LocalKernel | None,
    null: Null | None,
    draws: int,
    seed: int,
    engine: Engine,
    way: SharedKernel,
    progress: bool | None,
) -> MulticlassResult:
    rows = CheckedRows.of(sample)
    chosen = _checked_null(null, sample, rows)
    frequent = sample.one_class(sample.most_frequent)
    together = isinstance(chosen, Rademacher)
    warnings = null_warnings(frequent, chosen if isinstance(chosen, Rademacher) else Bernoulli())
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
        return _by_kernel(sample, kernel, chosen, draws, seed, engine, common)
    checks = prepare_classes(rows, draws, way.factor)
    symmetric: list[BoolArray] = []
    if together:
        checks = checks.for_signs()
        symmetric = [symmetric_checks(_prepared(sample, checks, k)) for k in range(rows.classes)]
    with progress_bar("drawing", rows.n, progress) as advance:
        table = class_table(checks, chosen, draws, seed, advance, symmetric)
    if way.in_full:
        table = table.with_statistics(joint_statistics(sample, chosen, draws, seed, engine))
    common["engine"] = "tiles" if way.in_full else checks.joint.describe()
    return _result(sample, checks, table, seed, common)


def _result(
    sample: MulticlassSample,
    checks: ClassChecks,
    table: ClassTable,
    seed: int,
    common: dict[str, Any],
) -> MulticlassResult:
    both = step_down, unadjusted_pvalues
    adjusted, own = (by(table.scaled.log_tails, table.log_weights) for by in both)
    parts = _parts(table)
    of_parts, own_parts = (by(parts) for by in both)
    combined = table.combined.copy()
    if sample.impossible:  # no draw has such a label
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
    counts = np.bincount(sample.codes, minlength=len(sample.classes))
    classes = tuple(
        ClassResult(
            name=name,
            positives=int(counts[k]),
            statistic=float(table.statistics[k, 0]),
            unadjusted_pvalue=float(own_parts[1 + k]),
            pvalue=float(of_parts[1 + k]),
            findings=_class_findings(sample, table, k, adjusted, own, seed),
        )
        for k, name in enumerate(sample.classes)
    )
    statistic = table.scaled.statistic
    together = ClassResult(
        TOGETHER,
        sample.n,
        float(statistic[0]),
        float(own_parts[0]),
        float(of_parts[0]),
        _together_findings(table, adjusted, own),
    )
    combined.flags.writeable = False
    refused = common["refused"] is not None
    pairs: tuple[TakenFor, ...] = () if refused else taken_for(table, sample.classes, adjusted, own)
    if refused:
        nan = float("nan")
        together = replace(together, pvalue=nan, unadjusted_pvalue=nan, findings=())
        classes = tuple(replace(c, pvalue=nan, unadjusted_pvalue=nan, findings=()) for c in classes)
    unit = checks.rows.weights_or_ones / checks.unit
    pair_weight = float(unit.sum() ** 2 - np.square(unit).sum())
    return MulticlassResult(
        statistic=float(statistic[0]),
        null_sd=checks.joint.sd / pair_weight,
        score=float(combined[0]),
        null_distribution=combined[1:],
        together=together,
        classes=classes,
        pairs=pairs,
        checks=table.weights.size,
        **common,
    )


def _parts(table: ClassTable) -> FloatArray:
    """The largest scores of all together, of every class, and of pairs, (K + 2, 1 + draws)."""
    together = table.largest(slice(0, table.vectors.stop))
    found = [together, *(table.largest(rows) for rows in table.classes)]
    if table.pairs.start < table.pairs.stop:
        found.append(table.largest(table.pairs))
    scores = np.vstack(found)
    lowest = float(scores[np.isfinite(scores)].min())
    return np.where(np.isfinite(scores), scores, lowest)  # a class that cannot vary shows nothing


def _class_findings(
    sample: MulticlassSample,
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
        n=sample.n,
        impossible=0,
        engine="",
        certificate=None,
        notes=(),
    )
    found = findings_of(scores, adjusted[rows], own[rows])
    if not found or min(finding.pvalue for finding in found) > SHOWS:
        return found
    prepared = _prepared(sample, checks, k)
    return described(attributed(found, prepared, scores, seed), sample.one_class(sample.classes[k]))


def _prepared(sample: MulticlassSample, checks: ClassChecks, k: int) -> Prepared:
    """The checks of one class as the binary test has them."""
    engine = Auto()
    return Prepared(
        survey=engine.survey(sample.one_class(sample.classes[k])),
        engine=engine,
        dictionary=checks.dictionary,
        weights=checks.weights[k],
        is_alone=False,
        bank=checks.banks[k],
        kernels=(),
        main=0,
    )


def _together_findings(
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


def joint_statistics(
    sample: MulticlassSample, null: ClassNull, draws: int, seed: int, engine: Engine
) -> FloatArray:
    """KLCE^2 of every class with the joint kernel for the data and all draws, (K, 1 + draws).

    Parameters
    ----------
    sample : MulticlassSample
        The rows.
    null : Categorical or Rademacher
        Who draws.
    draws, seed : int
        How many draws, and from which seed.
    engine : Engine
        Who evaluates the kernel.

    Returns
    -------
    (K, 1 + draws) array
        The data first.
    """
    rows = CheckedRows.of(sample)
    form = joint_form(rows, rows.unit)
    columns = joint_points(rows, form.names, slice(None)).columns
    found = []
    for k, name in enumerate(sample.classes):
        wide = sample.one_class(name).with_columns(columns)
        own = null if isinstance(null, Rademacher) else null.of_class(k)
        prepared = prepare_one(engine.survey(wide), engine, form.kernel, own, draws)
        found.append(score(prepared, own, draws, seed).statistic)
    return np.array(found)


def _by_kernel(
    sample: MulticlassSample,
    kernel: LocalKernel,
    null: ClassNull,
    draws: int,
    seed: int,
    engine: Engine,
    common: dict[str, Any],
) -> MulticlassResult:
    """One kernel for every class: the sum over classes is compared with its draws."""
    found = []
    for k, name in enumerate(sample.classes):
        survey = engine.survey(sample.one_class(name))
        own = null if isinstance(null, Rademacher) else null.of_class(k)
        prepared = prepare_one(survey, engine, resolved_kernel(kernel, survey), own, draws)
        found.append(score(prepared, own, draws, seed).statistic)
    statistics = np.array([np.sum(found, axis=0), *found])
    standard, total = _standard(statistics), statistics[0]
    counts = np.bincount(sample.codes, minlength=len(sample.classes))
    parts = [
        ClassResult(name, int(count), float(value), float(alone), float(p))
        for name, count, value, alone, p in zip(
            (TOGETHER, *sample.classes),
            (sample.n, *counts),
            statistics[:, 0],
            unadjusted_pvalues(standard),
            step_down(standard),
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


def _standard(statistics: FloatArray) -> FloatArray:
    """Divided by their spread, that of data and draws alike."""
    sd = statistics.std(axis=1, keepdims=True)
    return np.asarray(np.divide(statistics, sd, out=np.zeros_like(statistics), where=sd > 0))
