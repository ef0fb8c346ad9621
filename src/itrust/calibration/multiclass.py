"""More than two classes: probabilities (n, K), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the size of the test is exact and the classes share their draws.
Two classes are one question, which the binary test answers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, Rng, as_seed, progress_bar
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
    ClassChecks,
    ClassRows,
    joint_form,
    joint_points,
    prepare_classes,
)
from itrust.calibration.multiclass_pairs import taken_for
from itrust.calibration.multiclass_results import ClassResult, MulticlassResult, TakenFor
from itrust.calibration.multiclass_scores import ClassTable, class_tables
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.pipeline import Scores, score
from itrust.calibration.prepared import Prepared, prepare_one
from itrust.calibration.results import Finding
from itrust.data import MulticlassSample, Sample
from itrust.engines import Auto, Engine, EngineChoice, Factor, Tiles, as_engine
from itrust.kernels import LocalKernel
from itrust.nulls import Bernoulli, Categorical, Copula, Null

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
        `Bernoulli()` redraws classes as if rows were independent, `Copula(rho)` alike within
        clusters; the default is the one that fits.
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
    sample, chosen = checked_classes(sample), _checked_engine(engine)
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
        found = _of_several(sample, kernel, null, draws, seed, chosen, progress)
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


def _checked_engine(engine: EngineChoice) -> Engine:
    chosen = as_engine(engine)
    if not isinstance(chosen, Auto | Factor | Tiles):
        raise InputError(
            "several classes are tested on one machine, with engine='auto', Tiles() or Factor(), "
            "not {kind}()",
            argument="engine",
            value=engine,
            details={"kind": type(chosen).__name__},
        )
    return chosen


def _checked_null(null: Null | None, rows: ClassRows) -> tuple[Categorical, bool]:
    """Who draws, and whether its correlation is open."""
    if null is None:
        return Categorical(rows.p, rows.units), True
    if isinstance(null, Bernoulli):
        return Categorical(rows.p), False
    if isinstance(null, Copula) and rows.units is not None:
        return Categorical(rows.p, rows.units, null.rho or 0.0), null.rho is None
    raise InputError(
        "several classes take Bernoulli(), which redraws classes row by row, or Copula() where "
        "rows have clusters, not {kind}(); other nulls are for one class, "
        "klce_test(sample.one_class(name), null=...)",
        argument="null",
        value=null,
        details={"kind": type(null).__name__},
    )


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
    numbers = {
        "statistic": made.statistic,
        "unadjusted_pvalue": made.pvalue,
        "pvalue": made.pvalue,
    }
    first = ClassResult(sample.classes[0], sample.n - positives, **numbers, findings=mirrored)
    second = ClassResult(sample.classes[1], positives, **numbers, findings=made.findings)
    return MulticlassResult(
        statistic=made.statistic,
        null_sd=float(made.statistic_draws.std()),
        score=made.score,
        null_distribution=made.null_distribution,
        together=ClassResult(TOGETHER, sample.n, **numbers),
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
    progress: bool | None,
) -> MulticlassResult:
    rows = ClassRows.of(sample)
    law, is_open = _checked_null(null, rows)
    frequent = sample.one_class(sample.most_frequent)
    refused = refused_by(frequent) if null is None else None
    kept = Bernoulli() if law.units is None else Copula()
    warnings = null_warnings(frequent, kept)
    laws = law.laws(rows.codes, seed) if is_open else (law,)
    common: dict[str, Any] = {
        "n": sample.n,
        "names": sample.names,
        "draws": draws,
        "seed": seed,
        "impossible": sample.impossible,
        "weighted": rows.weights is not None,
        "clusters": frequent.clusters if law.units is not None else None,
        "refused": refused,
        "elapsed": 0.0,
        "assumption_warnings": warnings,
        "notes": (*sample.notes, *([BY_CLUSTER] if law.units is not None else [])),
    }
    if kernel is not None:
        return _by_kernel(sample, rows, kernel, laws, draws, seed, engine, common)
    checks = prepare_classes(rows, draws, engine if isinstance(engine, Factor) else None)
    with progress_bar("drawing", len(laws) * rows.n, progress) as advance:
        tables = class_tables(checks, laws, draws, seed, advance)
    if isinstance(engine, Tiles):
        tables = tuple(
            table.with_statistics(joint_statistics(sample, law, draws, seed, engine))
            for table, law in zip(tables, laws, strict=True)
        )
    return _result(sample, checks, tables, seed, engine, common)


def _result(
    sample: MulticlassSample,
    checks: ClassChecks,
    tables: Sequence[ClassTable],
    seed: int,
    engine: Engine,
    common: dict[str, Any],
) -> MulticlassResult:
    adjusted, own = (
        np.max([by(t.scaled.log_tails, t.log_weights) for t in tables], axis=0)
        for by in (step_down, unadjusted_pvalues)
    )
    table = max(tables, key=lambda t: float(unadjusted_pvalues(t.combined[None])[0]))
    parts = [_parts(t) for t in tables]
    of_parts, own_parts = (
        np.max([by(part) for part in parts], axis=0) for by in (step_down, unadjusted_pvalues)
    )
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
        engine=_told(engine, checks),
        **common,
    )


def _told(engine: Engine, checks: ClassChecks) -> str:
    return f"tiles of {engine.tile}" if isinstance(engine, Tiles) else checks.joint.describe()


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
    binary, engine = sample.one_class(sample.classes[k]), Auto()
    prepared = Prepared(
        survey=engine.survey(binary),
        engine=engine,
        dictionary=checks.dictionaries[k],
        weights=table.weights[rows],
        is_alone=False,
        bank=checks.banks[k],
        kernels=(),
        main=0,
    )
    return described(attributed(found, prepared, scores, seed), binary)


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
    sample: MulticlassSample, law: Categorical, draws: int, seed: int, engine: Engine
) -> FloatArray:
    """KLCE^2 of every class with the joint kernel for the data and all draws, (K, 1 + draws).

    Parameters
    ----------
    sample : MulticlassSample
        The rows.
    law : Categorical
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
    rows = ClassRows.of(sample)
    form = joint_form(rows, rows.unit)
    columns = joint_points(rows, form.names, slice(None)).columns
    found = []
    for k, name in enumerate(sample.classes):
        wide = sample.one_class(name).with_columns(columns)
        null = law.of_class(k)
        prepared = prepare_one(engine.survey(wide), engine, form.kernel, null, draws)
        found.append(score(prepared, null, draws, seed).statistic)
    return np.array(found)


def _by_kernel(
    sample: MulticlassSample,
    rows: ClassRows,
    kernel: LocalKernel,
    laws: Sequence[Categorical],
    draws: int,
    seed: int,
    engine: Engine,
    common: dict[str, Any],
) -> MulticlassResult:
    """One kernel for every class: the sum over classes is compared with its draws."""
    binary = [sample.one_class(name) for name in sample.classes]
    found = [_kernel_statistics(binary, kernel, law, draws, seed, engine) for law in laws]
    totals = [statistics.sum(axis=0) for statistics in found]
    worst = max(range(len(laws)), key=lambda k: float(unadjusted_pvalues(totals[k][None])[0]))
    total = totals[worst]
    standard = [_standard(np.vstack([s.sum(axis=0), s])) for s in found]
    adjusted, own = (
        np.max([by(part) for part in standard], axis=0) for by in (step_down, unadjusted_pvalues)
    )
    parts = [
        ClassResult(name, count, float(value), float(alone), float(p))
        for name, count, value, alone, p in zip(
            (TOGETHER, *sample.classes),
            (rows.n, *np.bincount(rows.codes, minlength=rows.classes).tolist()),
            (total[0], *found[worst][:, 0]),
            own,
            adjusted,
            strict=True,
        )
    ]
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


def _kernel_statistics(
    binary: Sequence[Sample],
    kernel: LocalKernel,
    law: Categorical,
    draws: int,
    seed: int,
    engine: Engine,
) -> FloatArray:
    found = []
    for k, sample in enumerate(binary):
        survey, null = engine.survey(sample), law.of_class(k)
        prepared = prepare_one(survey, engine, resolved_kernel(kernel, survey), null, draws)
        found.append(score(prepared, null, draws, seed).statistic)
    return np.array(found)


def _standard(statistics: FloatArray) -> FloatArray:
    """Divided by their spread, that of data and draws alike."""
    sd = statistics.std(axis=1, keepdims=True)
    return np.asarray(np.divide(statistics, sd, out=np.zeros_like(statistics), where=sd > 0))
