"""`robustness`: what would overturn the evidence."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from itrust._core import InputError, Rng, as_seed, checked_alpha
from itrust.calibration import (
    IntervalRun,
    bound_findings,
    checked_draws,
    checked_source,
    null_warnings,
)
from itrust.data import MulticlassSample, MulticlassScan, Sample, Scan
from itrust.engines import EngineChoice
from itrust.nulls import Prudent, Tolerance
from itrust.overturn.numbers import NumberRobustness, number_robustness
from itrust.overturn.results import PrudentResult, Robustness
from itrust.overturn.tipping import tipping_points
from itrust.tasks import Task, as_tasks, evaluate_tasks


def robustness(
    sample: Sample | Scan,
    tasks: Sequence[Task | str] | Task | str = (),
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    progress: bool | None = None,
) -> Robustness:
    """Tell what would overturn the evidence against calibration.

    Rows may have been selected by something that tells about the label, labels may be in error, and
    a small bias may not matter. Each lets the label's probability lie in an interval around the
    prediction. For each kind the result has the largest violation at which the evidence stands: the
    p-value is valid for every law inside the interval, at every n.

    Parameters
    ----------
    sample : Sample or Scan
        Labels, probabilities and covariates of independent rows.
    tasks : tasks or their text forms
        Numbers whose findings are judged, too, such as "mean(age)"; default: none.
    alpha : float
        Error that is allowed.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same result.
    engine : "auto", Tiles, Factor or Dask
        Who passes over the rows.
    progress : bool, optional
        Default: a bar in a terminal once the work has taken a second.

    Returns
    -------
    Robustness
        Tipping points with what carried them, and the question of prudence.

    Examples
    --------
    >>> import itrust as it
    >>> r = it.robustness(it.simulate.survey(1_000, rng=0).sample, draws=199, rng=0)
    >>> r.violation("selection")
    <Tipping: selection, 1.45>
    """
    begun = time.perf_counter()
    if isinstance(sample, (MulticlassSample, MulticlassScan)):
        raise InputError(
            "{argument} has several classes, whose probabilities cannot move one by one; ask about "
            "one class at a time, with alpha divided by the number of classes",
            argument="sample",
            value=sample,
            hint="robustness(sample.one_class(name), alpha=...)",
        )
    source, alpha = checked_source(sample, "robustness"), checked_alpha(alpha)
    run = IntervalRun(source, None, checked_draws(draws), as_seed(rng), engine)
    warnings = null_warnings(source, Tolerance(0.0))
    (neutral, prudent), outcome = run.run([Tolerance(0.0), Prudent()], progress=progress)
    violations = tipping_points(run, neutral, alpha, progress=progress)
    notes = run.survey.notes
    if source.in_memory is None:
        notes = (*outcome.tally.notes, *notes)
    return Robustness(
        n=outcome.tally.rows,
        alpha=alpha,
        draws=run.draws,
        seed=run.seed,
        names=source.names,
        pvalue=neutral.pvalue,
        checks=len(run.directions.entries),
        impossible=neutral.impossible,
        violations=violations,
        prudence=PrudentResult(
            prudent.pvalue, bound_findings(run.directions, prudent)[0], prudent.impossible
        ),
        numbers=_numbers(
            sample,
            tasks,
            {"alpha": alpha, "draws": run.draws, "rng": run.seed, "engine": engine},
        ),
        elapsed=time.perf_counter() - begun,
        warnings=warnings,
        notes=(*notes, *run.directions.dictionary.notes),
    )


def _numbers(
    sample: Sample | Scan,
    tasks: Sequence[Task | str] | Task | str,
    settings: Mapping[str, Any],
) -> tuple[NumberRobustness, ...]:
    """What would overturn what is said of every number; ranges are from the rows at hand."""
    wanted = as_tasks(tasks)
    if not wanted:
        return ()
    results = evaluate_tasks(sample, wanted, **settings)
    rows = sample.extract().some if isinstance(sample, Scan) else sample
    return number_robustness(rows, results, is_all=rows.n == results[0].n)
