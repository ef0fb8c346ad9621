"""The test of one outcome: what it is given, checked before anything costly, and what it gives."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from itrust._core import InputError, Rng, as_seed, checked_count, counted
from itrust.calibration.assumptions import assumption_notes
from itrust.calibration.dictionary.default import default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary
from itrust.calibration.evidence import (
    attributed,
    described,
    finding_of,
    findings_of,
    impossible_labels,
)
from itrust.calibration.pipeline import (
    Prepared,
    Scores,
    prepare,
    prepare_one,
    pvalues_of,
    score_laws,
)
from itrust.calibration.results import CalibrationResult, Finding, Refusal
from itrust.calibration.tails import share_above
from itrust.data import Sample, Scan, Source, checked_sample, clusters_in_files, is_binary_scan
from itrust.engines import Engine, EngineChoice, Survey, as_engine
from itrust.kernels import Kernel, LocalKernel
from itrust.nulls import IntervalNull, Null, RowwiseNull, carriers_of, fitting_null

FEW_CLUSTERS = 20
BY_CLUSTER = (
    "the p-value is approximate, by clusters; KLCE^2 itself includes pairs within a cluster, which "
    "dependence alone can make positive"
)


def checked_source(source: object, call: str | None = None) -> Sample | Scan:
    """Pass a Sample or a Scan of independent rows on; refuse anything else, with the right call."""
    if not is_binary_scan(source):
        return checked_sample(source, call)
    if not source.is_simple:
        raise clusters_in_files()
    return source


def checked_draws(draws: object) -> int:
    """Pass a number of draws on; refuse anything else."""
    return checked_count(draws, "draws")


def checked_null(null: Null | None, source: Source) -> Null:
    """The null that was asked for, or the one that fits the rows."""
    if null is None:
        return fitting_null(source)
    if not isinstance(null, Null):
        problem = "{argument} must be one of itrust.nulls, such as Bernoulli(), not {value}"
        raise InputError(problem, argument="null", value=null)
    if isinstance(null, IntervalNull):
        problem = "{argument} is an interval null, which klce_test alone takes, not {value}"
        raise InputError(problem, argument="null", value=null)
    return null


def resolved_kernel(kernel: LocalKernel | None, survey: Survey) -> LocalKernel:
    """The kernel with its widths, from predictions and covariates alone; None: the default one."""
    if kernel is not None and not isinstance(kernel, LocalKernel):
        problem = "{argument} must be a LocalKernel(prob=..., x=...), not {value}"
        raise InputError(problem, argument="kernel", value=kernel)
    return (kernel or LocalKernel()).resolve(survey.points)


def null_warnings(source: Source, null: Null, runs: Sample | None = None) -> tuple[str, ...]:
    """Warn where the data contradict the assumptions of the null."""
    warnings, clusters, sample = assumption_notes(source, runs), source.clusters, source.in_memory
    if null.keeps_clusters:
        if clusters is None or clusters >= FEW_CLUSTERS:
            return warnings
        few = counted(clusters, "cluster")
        return (*warnings, f"{few} are few for an approximation: what is said of them is rough")
    if clusters is None if sample is None else sample.design.rows_are_independent:
        return warnings
    name = type(null).__name__
    return (*warnings, f"{name}() takes rows as independent and ignores the clusters")


def refused_by(source: Source) -> Refusal | None:
    """Why no p-value can be given for rows in clusters; None where one can."""
    sample = source.in_memory
    if sample is None or sample.design.rows_are_independent:
        return None
    found = carriers_of(sample)
    if found.enough:
        return None
    by_replicates = sample.design.known_by_replicates
    return Refusal(found.clusters, found.effective, found.needed, by_replicates)


BEYOND_DOUBT = 690.0  # minus the log of a tail that is next to nothing
PILOT_ROWS = 2_048  # that stand for all where power is computed

WRONG_KERNEL = (
    "{argument} must be a LocalKernel(prob=..., x=...), a Dictionary or a mapping of names to "
    "kernels, not {value}"
)

Checks = Dictionary | Mapping[str, LocalKernel | Kernel]


@dataclass(frozen=True, eq=False)
class PreparedTest:
    """A test that was made, with what it was made of: others can go on from there."""

    result: CalibrationResult
    prepared: Prepared
    scores: Scores


def prepared_test(
    sample: Sample | Scan,
    kernel: LocalKernel | Checks | None = None,
    null: Null | None = None,
    *,
    draws: int,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    progress: bool | None = None,
) -> PreparedTest:
    """The same test, together with what it was made of."""
    begun = time.perf_counter()
    source, chosen = checked_source(sample, "klce_test"), as_engine(engine)
    draws, seed = checked_draws(draws), as_seed(rng)
    asked, null = null, checked_null(null, source)
    is_rowwise = isinstance(null, RowwiseNull)
    if isinstance(kernel, Dictionary | Mapping) and not is_rowwise:
        raise InputError(
            "{kind}() takes one kernel; a dictionary needs Bernoulli() or Rademacher()",
            argument="null",
            value=null,
            details={"kind": type(null).__name__},
        )
    if not isinstance(kernel, LocalKernel | Dictionary | Mapping | None):
        raise InputError(WRONG_KERNEL, argument="kernel", value=kernel)
    survey = chosen.survey(source)
    if isinstance(kernel, Dictionary | Mapping) or (kernel is None and is_rowwise):
        prepared = planned_test(chosen, survey, null, draws, kernel)
    else:
        prepared = prepare_one(survey, chosen, resolved_kernel(kernel, survey), null, draws)
    warnings = null_warnings(source, null)
    laws = null.laws(source, seed) if isinstance(null, RowwiseNull) else (null,)
    scores = score_laws(prepared, laws, draws, seed, progress)
    refused = refused_by(source) if asked is None else None
    made = result_of_laws(prepared, scores, seed, warnings=warnings, refused=refused)
    return replace(made, result=replace(made.result, elapsed=time.perf_counter() - begun))


def planned_test(
    engine: Engine, survey: Survey, null: Null, draws: int, checks: Checks | None = None
) -> Prepared:
    """Prepare the checks of a test over a dictionary; no label is looked at."""
    return prepare(survey, engine, as_dictionary(checks, survey), null, draws)


def result_of_laws(
    prepared: Prepared,
    laws: Sequence[Scores],
    seed: int,
    *,
    warnings: tuple[str, ...] = (),
    refused: Refusal | None = None,
    some: Sample | None = None,
) -> PreparedTest:
    """Make the result of a test from the scores of its checks."""
    # The law that a rejection has to refute.
    scores = max(laws, key=lambda law: share_above(law.combined))
    source, draws, is_alone = prepared.survey.source, scores.statistic.size - 1, prepared.is_alone
    whole = source.in_memory
    combined, checks, findings = scores.combined, 1, tuple[Finding, ...]()
    if not is_alone:
        findings = findings_of(scores, pvalues_of(laws))
        checks = len(findings)
        findings = attributed(findings, prepared, scores, seed) if refused is None else ()
        findings = described(findings, whole if some is None else some)
        if scores.tally.impossible:  # no draw has such a label, so this outranks every score
            combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
            findings = (impossible_labels(float(combined[0]), draws), *findings)
    combined.flags.writeable = scores.statistic.flags.writeable = False
    drawn, null = scores.tail is None, prepared.null
    by_cluster = null is not None and null.keeps_clusters and source.clusters is not None
    result = CalibrationResult(
        **facts_of_run(prepared, scores, null),
        score=float(combined[0]),
        null_distribution=combined[1:] if drawn else None,
        statistic_draws=scores.statistic[1:] if drawn else None,
        tail=scores.tail,
        findings=findings,
        checks=checks,
        dictionary=prepared.dictionary,
        is_adaptive=not is_alone,
        draws=draws,
        seed=seed if drawn else None,
        impossible=scores.tally.impossible,
        refused=refused,
        assumption_warnings=warnings,
        notes=(*scores.notes, *([BY_CLUSTER] if by_cluster and refused is None else [])),
    )
    if is_alone and refused is None:
        shown = finding_of(scores, 0, result.pvalue, result.pvalue)
        result = replace(result, findings=(shown,))
    return PreparedTest(result, prepared, scores)


def facts_of_run(prepared: Prepared, scores: Scores, null: Null | None) -> dict[str, Any]:
    """What a result tells of the rows, the statistic and who computed it."""
    source, whole = prepared.survey.source, prepared.survey.source.in_memory
    independent = source.clusters is None
    if whole is not None:  # as far as the design and the predictions say
        independent = whole.design.rows_are_independent and not whole.folds
    return {
        "statistic": float(scores.statistic[0]),
        "n": scores.tally.rows,
        "names": source.names,
        "kernel": prepared.main_kernel,
        "null": null,
        "engine": scores.engine,
        "certificate": scores.certificate,
        "elapsed": 0.0,
        "weighted": source.weights is not None,
        "clusters": source.clusters,
        "independent": independent,
    }


def as_dictionary(checks: object, survey: Survey) -> Dictionary:
    """The dictionary that was asked for, None being the default one."""
    if checks is None:
        return default_dictionary_for(survey.points)
    if isinstance(checks, Mapping):
        return Dictionary.of(checks)
    if isinstance(checks, Dictionary):
        return checks
    raise InputError(WRONG_KERNEL, argument="kernel", value=checks)


def default_dictionary(sample: Sample | Scan, engine: EngineChoice = "auto") -> Dictionary:
    """Build the checks that `klce_test` makes by default, from predictions and covariates alone.

    Parameters
    ----------
    sample : Sample or Scan
        Probabilities and covariates; labels are not looked at.
    engine : "auto", Tiles, Factor or Dask
        Who reads rows in files.

    Returns
    -------
    Dictionary
        From coarse to fine, one family for each kind of check.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(500, rng=0).sample
    >>> print(it.default_dictionary(town))  # doctest: +ELLIPSIS
    Dictionary of 49 entries
      overall          0.10  'overall level'
      prediction       0.07  'prediction: slope', 'prediction: quadratic', ... (4 in all)
      linear           0.25  'income: trend', 'age: trend', ... (5 in all)
      curved           0.04  'income: quadratic', 'income: cubic', ... (4 in all)
      smooth           0.01  'income alone', 'income alone, fine', ... (4 in all)
      with prediction  0.00  'income x prediction', 'age x prediction', ... (3 in all)
      group effects    0.25  'region alone'
      joint            0.12  'all trends together', 'all quadratics together'
      pairs            0.01  'income x age: trend', 'region x income', ... (10 in all)
      ranges           0.03  'prediction: ranges', 'income: ranges', ... (4 in all)
      regions          0.10  'prediction x income: regions', ... (6 in all)
      triples          0.01  'region x income x age: triples'
      full             0.01  'everything together', 'everything together, width x 2', ... (4 in all)
    """
    return default_dictionary_for(as_engine(engine).survey(checked_source(sample)).points)
