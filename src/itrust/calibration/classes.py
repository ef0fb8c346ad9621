"""The test of several classes, at hand or in files, by many checks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, Rng, as_seed, progress_bar
from itrust.calibration.adaptive import (
    BEYOND_DOUBT,
    BY_CLUSTER,
    checked_draws,
    null_warnings,
    prepared_test,
    refused_by,
)
from itrust.calibration.class_checks import ClassChecks, Contrasts, prepare_classes, taken_for
from itrust.calibration.evidence import attributed, described, findings_of, impossible_labels
from itrust.calibration.pipeline import Scores, pvalues_of, score_laws
from itrust.calibration.results import TOGETHER, ClassResult, Finding, MulticlassResult
from itrust.calibration.tails import largest_of, share_above, step_down, unadjusted_pvalues
from itrust.data import Extract, MulticlassSample, Rows
from itrust.engines import Engine, EngineChoice, as_engine, one_blas_thread
from itrust.nulls import Bernoulli, Copula, Null, Rademacher, RowwiseNull, carriers_of

MAX_LOADED_ROWS = 100_000  # of files that are read at once; more are read some at a time
SHOWS = 0.2  # p-values up to which findings are judged once more and described
NAN = float("nan")
OF_BOTH = {"statistic", "score", "null_distribution", "n", "names", "draws", "impossible", "checks"}
OF_BOTH |= {"engine", "weighted", "clusters", "refused", "is_exact", "assumption_warnings", "notes"}
ON_WORKERS = (
    "Dask tests several classes from files, three or more with independent rows and no null of "
    "one's own: klce_test(itrust.scan(...), ...); an audit of several classes and all else take "
    "engine='auto', and one class klce_test(scan.one_class({name}), ...)"
)


def multiclass_test(
    sample: MulticlassSample,
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
    sample : MulticlassSample or Scan
        Labels, probabilities of every class, and covariates. About 100,000 rows in files or more
        are read some at a time, once for every batch of draws and a few times for what is chosen
        from them, and give the numbers that they would give in memory; rows with clusters or
        strata, two classes, and a null of one's own take them into memory.
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
        Who passes over the rows. On Dask, workers read a scan of three classes or more
        with independent rows, and the p-value is that of one machine.
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
    begun, chosen = time.perf_counter(), as_engine(engine)
    source = _checked_source(sample, null, chosen)
    settings = checked_draws(draws), as_seed(rng), chosen, progress
    with one_blas_thread():  # else landmarks would depend on the number of threads
        whole = source.in_memory
        by = _of_two if whole is not None and len(whole.classes) == 2 else _by_checks
        found = by(source, null, *settings)
    return replace(found, elapsed=time.perf_counter() - begun)


def has_classes(sample: object) -> bool:
    """Whether this is a sample of several classes, or a scan of one."""
    return bool(getattr(sample, "several", False))


def _checked_source(sample: Any, null: object, engine: Engine) -> Any:
    """Rows of several classes at hand, or many independent ones in files; refuse anything else."""
    on_workers = engine.in_memory is not engine
    if not has_classes(sample):
        raise InputError(
            "expected an itrust.MulticlassSample, not a {kind}; make one with MulticlassSample(y, "
            "p, x) where p has one column a class",
            argument="sample",
            value=sample,
            kind=type(sample).__name__,
        )
    at_hand = sample.in_memory is not None
    simple = not at_hand and sample.is_simple and len(sample.classes) > 2 and null is None
    if on_workers and not simple:
        name = repr(sample.classes[1])
        raise InputError(ON_WORKERS, argument="engine", value=engine, name=name)
    if on_workers or at_hand:
        return sample
    many = sample.rows_expected > MAX_LOADED_ROWS
    return sample if simple and many else sample.load()


def class_laws(
    null: Null | None, sample: Rows | None, seed: int
) -> tuple[tuple[RowwiseNull, ...], BoolArray | None]:
    """The laws that classes are drawn by; a p-value is the largest of theirs.

    These are classes of independent rows, signs of clusters, or classes alike within them. Beside
    them stands, of every class, whether its sums over clusters are nearly symmetric.
    """
    if sample is None:  # rows in files are independent
        return (Bernoulli(),), None
    alone = sample.design.rows_are_independent
    if isinstance(null, Bernoulli) or (null is None and alone):
        return (Bernoulli(),), None
    if alone or not (null is None or isinstance(null, Rademacher | Copula)):
        raise InputError(
            "several classes take Bernoulli(), which redraws classes row by row, or "
            "Rademacher() or Copula() where rows have clusters, not {kind}(); other nulls are "
            "for one class, klce_test(sample.one_class(name), null=...)",
            argument="null",
            value=null,
            kind=type(null).__name__,
        )
    if sample.design.known_by_replicates:
        raise InputError(
            "a test of all classes needs to know the clusters, not replicate weights alone; "
            "name them, or test one class at a time with klce_test(sample.one_class(name))",
            argument="sample",
        )
    carriers = [carriers_of(sample.outcome(k)) for k in range(len(sample.classes))]
    even = np.array([own.symmetric and own.enough for own in carriers])
    too_few = not any(own.enough for own in carriers)  # which the result tells
    if isinstance(null, Rademacher) or (null is None and (too_few or even.all())):
        return (Rademacher(),), even
    return (null or Copula()).laws(sample, seed), even


def _facts(
    extract: Extract, together: bool, null: Null | None, draws: int, seed: int
) -> dict[str, Any]:
    """What the result tells about its run, however the statistics are made."""
    source, whole = extract.source, extract.source.in_memory
    rows = extract.some if whole is None else whole
    most = int(rows.counts.argmax())
    frequent, runs = rows.outcome(most), None
    if whole is None and extract.runs is not None:
        runs = extract.runs.outcome(most)
    warnings = null_warnings(frequent, Rademacher() if together else Bernoulli(), runs)
    notes = extract.notes if whole is None else whole.notes
    return {
        "names": source.names,
        "draws": draws,
        "seed": seed,
        "weighted": source.weights is not None,
        "clusters": frequent.clusters if together else None,
        "refused": refused_by(frequent) if together and null is None else None,
        "is_exact": rows.design.rows_are_independent,  # redraws by rows ignore clusters
        "elapsed": 0.0,
        "assumption_warnings": warnings,
        "notes": (*notes, *([BY_CLUSTER] if together else [])),
    }


def _by_checks(
    source: Any, null: Null | None, draws: int, seed: int, engine: Engine, progress: bool | None
) -> MulticlassResult:
    """By many checks of each class, of all together and between pairs."""
    whole: Rows | None = source.in_memory
    expected = source.rows_expected if whole is None else 1
    with progress_bar("reading", expected, progress) as advance:
        extract = engine.extract(source, None, advance)
    laws, even = class_laws(null, whole, seed)
    facts = _facts(extract, laws[0].keeps_clusters, null, draws, seed)
    checks = prepare_classes(extract, engine, draws)
    tables = score_laws(replace(checks, even=even), laws, draws, seed, progress)
    facts["engine"] = engine.describe(checks.survey, checks.joint)
    rows = extract.some if whole is None else whole
    return _result(rows, source.classes, checks, tables, seed, facts)


def _of_two(
    sample: Rows, null: Null | None, draws: int, seed: int, engine: Engine, progress: bool | None
) -> MulticlassResult:
    """Two classes are one question: the binary test of the second one."""
    binary = sample.one_class(sample.classes[1])
    settings: dict[str, Any] = {"draws": draws, "rng": seed, "engine": engine}
    made = prepared_test(binary, None, null, **settings, progress=progress).result
    if made.null_distribution is None or made.statistic_draws is None:
        raise InputError(
            "a sample of several classes needs a null that draws, not {kind}(); formulas are "
            "for klce_test(sample.one_class(name), null=...)",
            argument="null",
            value=null,
            kind=type(null).__name__,
        )
    positives = int(binary.y.sum())
    numbers = made.statistic, made.pvalue, made.pvalue
    counts = (sample.n - positives, positives)
    shown = (tuple(_mirrored(finding) for finding in made.findings), made.findings)
    return MulticlassResult(
        null_sd=float(made.statistic_draws.std()),
        together=ClassResult(TOGETHER, sample.n, *numbers),
        classes=tuple(
            ClassResult(name, count, *numbers, findings=findings)
            for name, count, findings in zip(sample.classes, counts, shown, strict=True)
        ),
        seed=seed,
        elapsed=0.0,
        **{name: getattr(made, name) for name in OF_BOTH},
    )


def _result(
    some: Rows,
    names: Sequence[Any],
    checks: ClassChecks,
    tables: Sequence[Scores],
    seed: int,
    facts: dict[str, Any],
) -> MulticlassResult:
    # The largest p-values of all laws count; what is shown is of the law that has the largest.
    pvalues = pvalues_of(tables)
    tally = tables[0].tally
    parts = [_parts(checks, own) for own in tables]
    of_parts, alone_parts = (
        np.max([by(part) for part in parts], axis=0) for by in (step_down, unadjusted_pvalues)
    )
    table = max(tables, key=lambda table: share_above(table.combined))
    combined, statistic = table.combined, float(table.statistic[:, 0].sum())
    if tally.impossible:  # no draw has such a label
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
    combined.flags.writeable = False
    refused = facts["refused"] is not None
    if refused:
        of_parts, alone_parts = np.full((2, len(of_parts)), NAN)
    impossible = impossible_labels(float(combined[0]), facts["draws"])
    classes = []
    for k, name in enumerate(names):
        shown = () if refused else _class_findings(checks, table, k, some, pvalues, seed)
        shown = (impossible, *shown) if tally.refuted[k] else shown
        value, own, p = map(float, (table.statistic[k, 0], alone_parts[1 + k], of_parts[1 + k]))
        classes.append(ClassResult(name, int(tally.positives[k]), value, own, p, shown))
    numbers = statistic, float(alone_parts[0]), float(of_parts[0])
    shown = () if refused else _together_findings(checks, table, *pvalues)
    facts["notes"] += _pair_notes(checks.contrasts, names)
    return MulticlassResult(
        statistic=statistic,
        null_sd=checks.joint.sd / tally.pair_weight,
        score=float(combined[0]),
        null_distribution=combined[1:],
        together=ClassResult(TOGETHER, tally.rows, *numbers, shown),
        classes=tuple(classes),
        pairs=() if refused else taken_for(checks, table, names, *pvalues),
        n=tally.rows,
        impossible=tally.impossible,
        checks=table.weights.size,
        **facts,
    )


def _parts(checks: ClassChecks, table: Scores) -> FloatArray:
    """The largest scores of all together, of every class, and of pairs, (K + 2, 1 + draws)."""
    refuted, rows = table.tally.refuted, [slice(0, checks.vectors.stop), *checks.classes]
    if checks.law.pairs.size:
        rows.append(checks.pairs)
    scores = np.vstack([largest_of(table.log_tails[own], table.log_weights[own]) for own in rows])
    lowest = float(scores[np.isfinite(scores)].min())
    scores = np.where(np.isfinite(scores), scores, lowest)  # a class that cannot vary shows nothing
    # No draw has a label that was called impossible, so it outranks every score.
    wrong = np.flatnonzero([refuted.any(), *(refuted > 0)])
    scores[wrong, 0] = max(float(scores.max()), 0.0) + BEYOND_DOUBT
    return scores


def _class_findings(
    checks: ClassChecks,
    table: Scores,
    k: int,
    some: Rows,
    pvalues: tuple[FloatArray, FloatArray],
    seed: int,
) -> tuple[Finding, ...]:
    """What the checks of one class show, adjusted for all checks."""
    rows, prepared = checks.classes[k], checks.prepared[k]
    scores = replace(
        table,
        log_tails=table.log_tails[rows],
        standardised=table.standardised[rows],
        statistic=table.statistic[k],
        entries=table.entries[rows],
        weights=table.weights[rows],
        is_single=table.is_single[rows],
    )
    adjusted, alone = pvalues
    findings = findings_of(scores, (adjusted[rows], alone[rows]))
    if not findings or min(finding.pvalue for finding in findings) > SHOWS:
        return findings
    findings = attributed(findings, prepared, scores, seed)
    return described(findings, some.outcome(k))


def _together_findings(
    checks: ClassChecks, table: Scores, adjusted: FloatArray, alone: FloatArray
) -> tuple[Finding, ...]:
    """Along which functions of the covariates the shares of all classes are off."""
    entries = [checks.contrasts.entries[g] for g in checks.law.vectors.tolist()]
    findings = [
        Finding(
            **entry.about | {"name": f"{entry.name}, all classes"},
            family="all classes",
            direction=0,
            weight=float(table.weights[at]),
            score=float(table.observed[at]),
            unadjusted_pvalue=float(alone[at]),
            pvalue=float(adjusted[at]),
        )
        for at, entry in enumerate(entries, start=checks.vectors.start)
    ]
    return tuple(sorted(findings, key=lambda finding: -finding.score))


def _pair_notes(contrasts: Contrasts, classes: Sequence[Any]) -> tuple[str, ...]:
    """Say so where only some pairs of classes are contrasted."""
    if not contrasts.left_out:
        return ()
    shown = len(contrasts.pairs)
    first, last = (
        " and ".join(str(classes[k]) for k in contrasts.pairs[at].tolist()) for at in (0, -1)
    )
    words = (
        f"{shown} of {shown + contrasts.left_out} pairs of classes are contrasted, those that the "
        "model gives probability together most (the largest mean products of their "
        f"probabilities), from {first} to {last}; whether classes of the other pairs are taken "
        "for each other is not tested"
    )
    return (words,)


def _mirrored(finding: Finding) -> Finding:
    """The same of the other one of two classes."""
    return replace(
        finding, direction=-finding.direction, too_low=finding.too_high, too_high=finding.too_low
    )
