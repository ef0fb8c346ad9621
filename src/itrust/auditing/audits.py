"""`audit`: reliance, competency, confidence, diagnosis and tasks in one go, and the verdict."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from itrust import __version__
from itrust._core import InputError, Result, Rng, as_seed, progress_bar
from itrust.auditing.verdict import Verdict, verdict_on
from itrust.bias import (
    MAX_VALUES,
    GroupTable,
    LocalBias,
    SliceTable,
    bias_groups,
    bias_slices,
    checked_reach,
    local_bias,
    names_of,
)
from itrust.calibration import (
    Detectable,
    Engine,
    KLCEResult,
    ReliabilityCurve,
    detectable,
    klce2,
    klce_test,
    scores,
)
from itrust.data import Sample, checked_sample
from itrust.kernels import LocalKernel
from itrust.nulls import Hoeffding
from itrust.tasks import (
    Task,
    TaskResult,
    as_tasks,
    checked_tasks,
    covered,
    evaluate_tasks,
)

SCHEMA = "itrust-audit/1"
STEPS = 6


@dataclass(frozen=True, eq=False)
class Reliance:
    """Whether the probabilities are calibrated at all.

    Attributes
    ----------
    test : KLCEResult
        Of the prediction alone.
    brier, log_loss, ece, mce, smooth_ece : float
    curve : ReliabilityCurve
    """

    test: KLCEResult
    brier: float
    log_loss: float
    ece: float
    mce: float
    smooth_ece: float
    curve: ReliabilityCurve

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        curve = {name: np.asarray(part).tolist() for name, part in vars(self.curve).items()}
        names = ("brier", "log_loss", "ece", "mce", "smooth_ece")
        numbers = {name: getattr(self, name) for name in names}
        return {"pvalue": self.test.pvalue, **numbers, "curve": curve}


@dataclass(frozen=True, eq=False)
class Confidence:
    """How sure that is, and what could have been missed.

    Attributes
    ----------
    detectable : Detectable or None
        The smallest biases that would have been seen; None where no label can vary.
    bound : float or None
        Hoeffding's distribution-free bound on the p-value of KLCE^2; None with weights or
        clusters.
    """

    detectable: Detectable | None
    bound: float | None

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        found = None if self.detectable is None else self.detectable.to_dict()
        return {"detectable": found, "hoeffding_bound": self.bound}


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Where, for whom and by how much they are wrong.

    Attributes
    ----------
    bias : LocalBias
    groups : GroupTable or None
        Every category, and every number with few values, by itself; None without any.
    slices : SliceTable
    """

    bias: LocalBias
    groups: GroupTable | None
    slices: SliceTable

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "local_bias": self.bias.to_dict(),
            "groups": None if self.groups is None else self.groups.to_dict(),
            "slices": self.slices.to_dict(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """Everything that `audit` found.

    Attributes
    ----------
    sample : Sample
    reliance : Reliance
    competency : KLCEResult
        Are they calibrated given the covariates?
    confidence : Confidence
    diagnosis : Diagnosis
    tasks : tuple of TaskResult
    verdict : Verdict
    alpha, tolerance : float
    """

    sample: Sample
    reliance: Reliance
    competency: KLCEResult
    confidence: Confidence
    diagnosis: Diagnosis
    tasks: tuple[TaskResult, ...]
    verdict: Verdict
    alpha: float
    tolerance: float
    draws: int
    seed: int
    elapsed: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.sample.n

    def _facts(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "version": __version__,
            "n": self.n,
            "on": list(self.competency.names),
            "verdict": self.verdict.name,
            "sentence": self.verdict.sentence,
            "carried_by": list(self.verdict.carried_by),
            "statistic": self.competency.statistic,
            "pvalue": self.competency.pvalue,
            "alpha": self.alpha,
            "tolerance": self.tolerance,
            "draws": self.draws,
            "seed": self.seed,
            "elapsed": self.elapsed,
            "reliance": self.reliance.to_dict(),
            "competency": self.competency.to_dict(),
            "confidence": self.confidence.to_dict(),
            "diagnosis": self.diagnosis.to_dict(),
            "tasks": [task.to_dict() for task in self.tasks],
        }

    def _rows(self) -> list[dict[str, Any]]:
        # `value` is the score or, for groups, slices and tasks, the bias.
        rows: list[dict[str, Any]] = [
            {"part": "reliance", "name": name, "value": getattr(self.reliance, name)}
            for name in ("brier", "log_loss", "ece", "mce", "smooth_ece")
        ]
        rows.insert(
            0, {"part": "verdict", "name": self.verdict.name, "says": self.verdict.sentence}
        )
        rows.append({"part": "reliance", "name": "test", "pvalue": self.reliance.test.pvalue})
        rows.append(
            {
                "part": "competency",
                "name": "KLCE^2",
                "value": self.competency.statistic,
                "pvalue": self.competency.pvalue,
            }
        )
        rows.extend(
            {"part": "finding", "name": found.name, "pvalue": found.pvalue, "says": found.says}
            for found in getattr(self.competency, "findings", ())[:20]
        )
        tables: list[tuple[str, Any]] = [("slice", self.diagnosis.slices), ("task", self.tasks)]
        if self.diagnosis.groups is not None:
            tables.insert(0, ("group", self.diagnosis.groups))
        for part, found in tables:
            rows.extend(
                {
                    "part": part,
                    "name": getattr(item, "name", None) or item.rule,
                    "value": item.bias,
                    "lower": item.lower,
                    "upper": item.upper,
                    "pvalue": item.pvalue,
                    "rows": getattr(item, "rows", None),
                    "plugin": getattr(item, "plugin", None),
                    "from_labels": getattr(item, "from_labels", None),
                    "says": getattr(item, "finding", None),
                }
                for item in found
            )
        columns = (
            *("part", "name", "value", "lower", "upper", "pvalue", "rows"),
            *("plugin", "from_labels", "says"),
        )
        return [{name: row.get(name) for name in columns} for row in rows]

    def to_html(self, path: str | os.PathLike[str], **settings: Any) -> Path:
        """Write the audit as one self-contained page: see `itrust.render.page.write`."""
        from itrust.render.page import write

        return write(self, path, **settings)

    def __repr__(self) -> str:
        return f"<Audit: {self.verdict.name}, n {self.n:,}>"


def audit(
    sample: Sample,
    tasks: Sequence[Task | str] | Task | str = (),
    *,
    on: str | Sequence[str] | None = None,
    alpha: float = 0.05,
    tolerance: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: Engine = "auto",
    progress: bool | None = None,
) -> Audit:
    """Judge a model's probabilities for inference about the covariates, and for your own numbers.

    Everything is validated before anything costly begins.

    Parameters
    ----------
    sample : Sample
    tasks : tasks or their text forms, optional
        `tasks.mean("age")`, or "mean(age)".
    on : names of covariates, optional
        What to judge the probabilities on; default: all of the sample.
    alpha : float
    tolerance : float
        The size of local bias that would matter. Tasks carry their own, in their own unit:
        `tasks.mean("age").matters_at(1.0)`.
    draws : int
    rng : int, Generator or None
    engine : as for `klce_test`
    progress : bool, optional
        A bar in a terminal by default.

    Examples
    --------
    >>> import itrust as it
    >>> a = it.audit(it.simulate.survey(3_000, rng=0).sample, ["mean(age)"], draws=199, rng=0)
    >>> a.verdict.name
    'untrustworthy'
    """
    checked_sample(sample)
    begun = time.perf_counter()
    draws, seed = checked_reach(draws, alpha, parts=2), as_seed(rng)
    if (
        isinstance(tolerance, bool)
        or not isinstance(tolerance, int | float)
        or not 0 < tolerance < 1
    ):
        raise InputError(f"tolerance must lie between 0 and 1, not {tolerance!r}")
    wanted = as_tasks(tasks)
    checked_tasks(sample, wanted)
    judged = sample if on is None else sample.only(*names_of(on))
    settings: dict[str, Any] = {"alpha": alpha, "draws": draws, "rng": seed}
    with progress_bar("audit", STEPS, progress) as advance:
        reliance = _reliance(judged, draws, seed)
        advance(1)
        test = reliance.test
        if judged.columns:
            test = klce_test(judged, draws=draws, rng=seed, engine=engine, progress=False)
        advance(1)
        confidence = _confidence(judged, test, alpha, draws, seed, engine)
        advance(1)
        bias = local_bias(judged, **settings)
        advance(1)
        few = [c.name for c in judged.columns if _few_values(c.values, c.is_category)]
        groups = bias_groups(judged, *few, crossings=False, **settings) if few else None
        slices = bias_slices(judged, **settings)
        advance(1)
        found = tuple(
            covered(result, judged.names) for result in evaluate_tasks(sample, wanted, **settings)
        )
        advance(1)
    verdict = verdict_on(
        test,
        bias,
        slices,
        confidence.detectable,
        found,
        alpha=alpha,
        tolerance=tolerance,
    )
    return Audit(
        sample=sample,
        reliance=reliance,
        competency=test,
        confidence=confidence,
        diagnosis=Diagnosis(bias, groups, slices),
        tasks=found,
        verdict=verdict,
        alpha=alpha,
        tolerance=float(tolerance),
        draws=draws,
        seed=seed,
        elapsed=time.perf_counter() - begun,
    )


def _few_values(values: Any, is_category: bool) -> bool:
    return is_category or np.unique(values[~np.isnan(values)]).size <= MAX_VALUES


def _reliance(sample: Sample, draws: int, seed: int) -> Reliance:
    bare = sample.with_columns(())
    return Reliance(
        test=klce_test(bare, draws=draws, rng=seed, progress=False),
        brier=scores.brier(bare),
        log_loss=scores.log_loss(bare),
        ece=scores.ece(bare),
        mce=scores.mce(bare),
        smooth_ece=scores.smooth_ece(bare),
        curve=scores.reliability_curve(bare, scores.EqualMass(10)),
    )


def _confidence(
    sample: Sample, test: KLCEResult, alpha: float, draws: int, seed: int, engine: Engine
) -> Confidence:
    still = bool(np.isin(sample.p, (0.0, 1.0)).all())
    found = None
    if not still:
        found = detectable(sample, alpha=alpha, draws=draws, checks=0, rng=seed, engine=engine)
    bound = None
    if sample.weights is None and sample.cluster is None:
        kernel = LocalKernel()
        statistic = test.statistic if test.names else klce2(sample, kernel)
        blocks = Hoeffding().blocks(sample.n)
        bound = float(np.exp(-blocks * max(statistic, 0.0) ** 2 / 2))
    return Confidence(found, bound)
