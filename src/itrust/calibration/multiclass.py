"""More than two classes: probabilities (n, K), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the size of the test is exact and the classes share their draws.
Two classes are one question, which the binary test answers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    as_seed,
    counted,
    progress_bar,
)
from itrust.calibration.adaptive import BEYOND_DOUBT, prepared_test
from itrust.calibration.attribution import attributed
from itrust.calibration.evidence import findings_of, impossible_labels
from itrust.calibration.extremes import described
from itrust.calibration.inputs import (
    BY_CLUSTER,
    checked_draws,
    null_warnings,
    refused_by,
    resolved_kernel,
)
from itrust.calibration.multiclass_checks import (
    POINTS,
    ClassChecks,
    joint_form,
    joint_points,
    prepare_classes,
)
from itrust.calibration.multiclass_pairs import pair_notes, taken_for
from itrust.calibration.multiclass_pass import ClassNull, contrast_moments
from itrust.calibration.multiclass_results import ClassResult, MulticlassResult, TakenFor
from itrust.calibration.multiclass_rows import CheckedRows, RowsOfClasses, StreamedRows
from itrust.calibration.multiclass_scores import ClassTable, class_table, contrast_law
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.pipeline import Scores, score
from itrust.calibration.prepared import Prepared, prepare_one
from itrust.calibration.results import Finding
from itrust.calibration.symmetry import symmetric_checks
from itrust.data import MulticlassSample, MulticlassScan
from itrust.engines import (
    Auto,
    Engine,
    EngineChoice,
    SharedKernel,
    as_engine,
    one_blas_thread,
    partitions_of,
    shared_kernel,
)
from itrust.kernels import LocalKernel
from itrust.nulls import (
    Bernoulli,
    Categorical,
    CategoricalCopula,
    Copula,
    Null,
    Rademacher,
    carriers_of,
)

MAX_LOADED_ROWS = 100_000  # of files that are read at once; more are read some at a time
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
    sample : MulticlassSample or MulticlassScan
        Labels, probabilities of every class, and covariates. About 100,000 rows in files or more
        are read some at a time, once for every batch of draws and a few times for what is chosen
        from them, and give the numbers that they would give in memory; rows with clusters or
        strata, two classes, and a kernel or a null of one's own take them into memory.
    kernel : LocalKernel, optional
        One kernel of each class's own probability and the covariates: the statistic is the sum of
        its KLCE^2 over classes. Default: many checks (see the theory).
    null : Null, optional
        `Bernoulli()` redraws classes, as if rows were independent; `Rademacher()` flips the signs
        of all residuals of a cluster, approximate; `Copula()` redraws classes alike within
        clusters, approximate. Default: the first where rows are independent; with clusters the
        second where the sums of every class over clusters are nearly symmetric, else the third.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same p-value.
    engine : "auto", Tiles, Factor or Dask
        Who evaluates the kernel on all probabilities and covariates. On Dask, workers read a
        MulticlassScan of three classes or more with independent rows, and the p-value is that
        of one machine.
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
    chosen = as_engine(engine)
    way = shared_kernel(chosen)
    streamed = kernel is None and null is None and not way.in_full and _can_be_streamed(sample)
    if way.machines is not None:
        _refuse_what_workers_cannot(sample, kernel, null, chosen)
    elif not streamed:
        sample = checked_classes(sample)
    draws, seed = checked_draws(draws), as_seed(rng)
    if kernel is not None and not isinstance(kernel, LocalKernel):
        raise InputError(
            "several classes take one LocalKernel(prob=..., x=...) or the default checks, not "
            "{value}; a dictionary is for one class, klce_test(sample.one_class(name), kernel=...)",
            argument="kernel",
            value=kernel,
        )
    with one_blas_thread():  # else landmarks would depend on the number of threads
        if not isinstance(sample, MulticlassSample):
            found = _of_files(sample, draws, seed, way, progress)
        elif len(sample.classes) == 2:
            found = _of_two(sample, kernel, null, draws, seed, chosen, progress)
        else:
            found = _of_several(sample, kernel, null, draws, seed, chosen, way, progress)
    return replace(found, elapsed=time.perf_counter() - begun)


def has_classes(sample: object) -> bool:
    """Whether this is a sample of several classes, or a scan of one."""
    is_scan = hasattr(sample, "classes") and callable(getattr(sample, "load", None))
    return isinstance(sample, MulticlassSample) or is_scan


def _can_be_streamed(sample: object) -> bool:
    """Whether this names many independent rows of several classes in files."""
    if not isinstance(sample, MulticlassScan) or len(sample.classes) == 2 or not sample.is_simple:
        return False
    return sample.rows_expected > MAX_LOADED_ROWS


def _refuse_what_workers_cannot(
    sample: object, kernel: object, null: object, engine: Engine
) -> None:
    """Raise unless these are independent rows of three classes or more, for the default test."""
    if not isinstance(sample, MulticlassScan):
        raise InputError(
            "Dask tests several classes from files: klce_test(itrust.scan(...), ...); an "
            "audit of several classes and rows in memory take engine='auto'",
            argument="engine",
            value=engine,
        )
    if len(sample.classes) == 2:
        raise InputError(
            "two classes are one question: on Dask, use klce_test(scan.one_class({name}), ...)",
            argument="sample",
            value=sample,
            details={"name": repr(sample.classes[1])},
        )
    if not sample.is_simple:
        raise InputError(
            "rows of several classes with clusters, strata or replicate weights are tested in "
            "memory; use engine='auto'",
            argument="engine",
            value=engine,
        )
    given = {"kernel": kernel, "null": null}
    for argument, value in given.items():
        if value is not None:
            raise InputError(
                "a {argument} of one's own for several classes is for rows in memory; use "
                "engine='auto', or one class, klce_test(scan.one_class(name), {argument}=...)",
                argument=argument,
                value=value,
            )


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


def _checked_null(null: Null | None, sample: MulticlassSample, rows: CheckedRows) -> _Drawing:
    """Who draws: classes of independent rows, signs of clusters, or classes alike within them."""
    if isinstance(null, Bernoulli) or (null is None and rows.units is None):
        return _Drawing(Categorical(rows.p))
    if rows.units is None or not (null is None or isinstance(null, Rademacher | Copula)):
        raise InputError(
            "several classes take Bernoulli(), which redraws classes row by row, or Rademacher() "
            "or Copula() where rows have clusters, not {kind}(); other nulls are for one class, "
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
    even = np.array([own.symmetric and own.enough for own in carriers])
    too_few = not any(own.enough for own in carriers)  # which the result tells
    if isinstance(null, Rademacher) or (null is None and (too_few or even.all())):
        return _Drawing(Rademacher(), even)
    rho = null.rho if isinstance(null, Copula) else None
    alike = CategoricalCopula.alike(rows.p, rows.units, 0.0 if rho is None else rho)
    return _Drawing(alike, even, is_open=rho is None)


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Who draws, and what is known of clusters.

    `even` tells of every class whether its sums over clusters are nearly symmetric; `is_open`
    whether correlations within clusters are to be found from the labels.
    """

    null: ClassNull
    even: BoolArray | None = None
    is_open: bool = False

    def laws(self, rows: RowsOfClasses, seed: int) -> tuple[ClassNull, ...]:
        """The laws that a calibrated model may follow; a p-value is the largest of theirs."""
        if self.is_open and isinstance(self.null, CategoricalCopula):
            whole = rows.at_hand
            assert whole is not None  # rows in files have no clusters
            return self.null.laws(whole.codes, whole.weights, seed)
        return (self.null,)


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
    drawing = _checked_null(null, sample, rows)
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
        return _by_kernel(sample, kernel, laws, draws, seed, engine, common)
    tables = _tables(rows, drawing, draws, seed, way, progress)
    if way.in_full:
        laws = drawing.laws(rows, seed)
        tables = [
            table.with_statistics(joint_statistics(sample, own, draws, seed, engine))
            for table, own in zip(tables, laws, strict=True)
        ]
        common["engine"] = "tiles"
    return _result(rows, sample.classes, tables, seed, common)


def _of_files(
    scan: MulticlassScan, draws: int, seed: int, way: SharedKernel, progress: bool | None
) -> MulticlassResult:
    """The same for independent rows in files, which are read some at a time."""
    size = POINTS if way.factor is None else max(POINTS, way.factor.pilot)
    with progress_bar("reading", scan.rows_expected, progress) as advance:
        rows = StreamedRows.of(scan, size, advance, way.machines)
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
        "assumption_warnings": (),
        "notes": rows.survey.notes,
    }
    tables = _tables(rows, _Drawing(Categorical()), draws, seed, way, progress)
    if way.machines is not None:
        partitions = counted(partitions_of(rows.parts), "Dask partition")
        common["engine"] = f"{tables[0].checks.joint.describe()} on {partitions}"
    return _result(rows, scan.classes, tables, seed, common)


def _tables(
    rows: RowsOfClasses,
    drawing: _Drawing,
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
        symmetric = [symmetric_checks(_prepared(checks, k)) for k in range(rows.classes)]
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
            findings=_class_findings(table, k, adjusted, own, seed),
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
        _together_findings(table, adjusted, own),
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


def _class_findings(
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
    prepared = _prepared(checks, k)
    return described(attributed(found, prepared, scores, seed), checks.rows.described_by(k))


def _prepared(checks: ClassChecks, k: int) -> Prepared:
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
    null : CategoryDraws or Rademacher
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
    columns = joint_points(rows, form.names).columns
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
