"""The test of one probability a row: many checks at once by default, one kernel if it is named."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from itrust._core import InputError, Rng, as_seed
from itrust.calibration.attribution import attributed
from itrust.calibration.dictionary.default import default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary
from itrust.calibration.evidence import (
    described,
    finding_of_one,
    findings_of_laws,
    impossible_labels,
)
from itrust.calibration.inputs import (
    checked_draws,
    checked_null,
    checked_source,
    cluster_notes,
    null_warnings,
    refused_by,
    resolved_kernel,
)
from itrust.calibration.multiplicity import share_above
from itrust.calibration.pipeline import Scores, score_laws
from itrust.calibration.prepared import Prepared, prepare, prepare_one
from itrust.calibration.results import CalibrationResult, Finding, Refusal
from itrust.data import Sample, Scan, Source
from itrust.engines import Engine, EngineChoice, Survey, as_engine
from itrust.kernels import Kernel, LocalKernel
from itrust.nulls import Null, RowwiseNull

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
    kernel = Dictionary.of(kernel) if isinstance(kernel, Mapping) else kernel
    several = isinstance(kernel, Dictionary)
    if several and not isinstance(null, RowwiseNull):
        raise InputError(
            "{kind}() takes one kernel; a dictionary needs Bernoulli() or Rademacher()",
            argument="null",
            value=null,
            details={"kind": type(null).__name__},
        )
    if kernel is not None and not several and not isinstance(kernel, LocalKernel):
        raise InputError(WRONG_KERNEL, argument="kernel", value=kernel)
    survey = chosen.survey(source, PILOT_ROWS)
    if isinstance(kernel, LocalKernel) or not isinstance(null, RowwiseNull):
        one = kernel if isinstance(kernel, LocalKernel) else None
        prepared = prepare_one(survey, chosen, resolved_kernel(one, survey), null, draws)
    else:
        prepared = planned_test(chosen, survey, null, draws, kernel)
    warnings = null_warnings(source, null)
    laws = score_laws(prepared, null, draws, seed, progress)
    refused = refused_by(source) if asked is None else None
    made = result_of_laws(prepared, laws, null, seed, warnings=warnings, refused=refused)
    return replace(made, result=replace(made.result, elapsed=time.perf_counter() - begun))


def planned_test(
    engine: Engine, survey: Survey, null: Null, draws: int, checks: Checks | None = None
) -> Prepared:
    """Prepare the checks of a test over a dictionary; no label is looked at."""
    dictionary, default = as_dictionary(checks, survey), resolved_kernel(None, survey)
    return prepare(survey, engine, dictionary, null, draws, default)


def result_of_laws(
    prepared: Prepared,
    laws: Sequence[Scores],
    null: Null,
    seed: int,
    *,
    warnings: tuple[str, ...] = (),
    refused: Refusal | None = None,
    some: Sample | None = None,
) -> PreparedTest:
    """Make the result of a test from the scores of its checks."""
    scores = max(
        laws, key=lambda law: share_above(law.combined)
    )  # the law that a rejection has to refute
    rows = prepared.survey.source.in_memory if some is None else some
    result = _result(prepared, scores, laws, null, seed, warnings, refused, rows)
    return PreparedTest(result, prepared, scores)


def _independent(source: Source) -> bool:
    """Whether rows are independent, as far as the design and the predictions say."""
    sample = source.in_memory
    if sample is None:
        return source.clusters is None
    return sample.design.rows_are_independent and not sample.folds


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
    >>> print(it.default_dictionary(it.simulate.survey(500, rng=0).sample))
    Dictionary of 62 entries
      overall          0.18  'overall level'
      prediction       0.14  'prediction: slope', 'prediction: quadratic', ... (4 in all)
      linear           0.12  'income: trend', 'age: trend', ... (5 in all)
      curved           0.02  'income: quadratic', 'income: cubic', ... (4 in all)
      smooth           0.03  'income alone', 'income alone, fine', ... (4 in all)
      parts            0.02  'income 7000 to 25900', 'income 26000 to 31900', ... (20 in all)
      tails            0.08  'income 7000 to 17900', 'income 130000 to 227100', ... (4 in all)
      with prediction  0.01  'income x prediction', 'age x prediction', ... (3 in all)
      group effects    0.16  'region alone'
      joint            0.19  'all trends together', 'all quadratics together'
      pairs            0.03  'income x age: trend', 'region x income', ... (10 in all)
      full             0.01  'everything together', 'everything together, width x 2', ... (4 in all)
    """
    return default_dictionary_for(as_engine(engine).survey(checked_source(sample)).points)


def _result(
    prepared: Prepared,
    scores: Scores,
    laws: Sequence[Scores],
    null: Null,
    seed: int,
    warnings: tuple[str, ...],
    refused: Refusal | None,
    some: Sample | None,
) -> CalibrationResult:
    source, draws = prepared.survey.source, scores.statistic.size - 1
    combined = scores.combined
    found: tuple[Finding, ...] = ()
    if not prepared.is_alone:
        found = attributed(findings_of_laws(scores, laws), prepared, scores, seed)
        found = described(found, some)
    checks = 1 if prepared.is_alone else len(found)
    if refused is not None:
        found = ()
    if scores.impossible and not prepared.is_alone:
        # No draw has such a label, so this outranks every score.
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
        found = (impossible_labels(float(combined[0]), draws), *found)
    combined.flags.writeable = scores.statistic.flags.writeable = False
    drawn = scores.tail is None
    result = CalibrationResult(
        statistic=float(scores.statistic[0]),
        score=float(combined[0]),
        null_distribution=combined[1:] if drawn else None,
        statistic_draws=scores.statistic[1:] if drawn else None,
        tail=scores.tail,
        findings=found,
        checks=checks,
        dictionary=prepared.dictionary,
        is_adaptive=not prepared.is_alone,
        n=scores.n,
        draws=draws,
        names=source.names,
        kernel=prepared.main_kernel,
        null=null,
        seed=seed if drawn else None,
        engine=scores.engine,
        certificate=scores.certificate,
        elapsed=0.0,
        weighted=source.weights is not None,
        clusters=source.clusters,
        impossible=scores.impossible,
        refused=refused,
        independent=_independent(source),
        assumption_warnings=warnings,
        notes=(*scores.notes, *(cluster_notes(source, null) if refused is None else ())),
    )
    if result.is_adaptive or refused is not None:
        return result
    return replace(result, findings=finding_of_one(scores, result.pvalue))
