"""KLCE^2, the kernel local calibration error: the statistic, and the test of everything.

Vashistha and Farahi (AISTATS 2025); the same quadratic form as the kernel conditional moment
statistic of Muandet et al. (UAI 2020) with residual y - f and conditioning variable (f, x).
"""

from __future__ import annotations

import warnings
from typing import Any, overload

import numpy as np

from itrust._core import ApproximationWarning, InputError, Rng
from itrust.calibration.adaptive import Checks, checked_source, prepared_test, resolved_kernel
from itrust.calibration.classes import has_classes, multiclass_test
from itrust.calibration.interval import interval_test
from itrust.calibration.results import ROUGH, CalibrationResult, MulticlassResult
from itrust.data import MulticlassSample, Sample, Scan, Source
from itrust.engines import EngineChoice, KernelOutcome, as_engine, finite
from itrust.kernels import LocalKernel
from itrust.nulls import IntervalNull, Null

FOR_ONE_CLASS = (
    "several classes take the default checks; a {argument} is for one class, "
    "klce_test(sample.one_class(name), {argument}=...), not {value}"
)


def klce2(
    sample: Sample | Scan,
    kernel: LocalKernel | None = None,
    *,
    biased: bool = False,
    engine: EngineChoice = "auto",
) -> float:
    """Squared kernel local calibration error.

    sum over i != j of w_i e_i P_ij w_j e_j / sum over i != j of w_i w_j with e = y - p:
    unbiased, so it may be negative. The biased form takes in i = j on both sides and is
    never negative. Cost O(n^2) time, O(n) memory; above 20,000 rows by low rank, with
    0.1 % of the null standard deviation as the error asked for, and an `ApproximationWarning`
    where the certified error is above 5 % (`engine=Tiles()` for the last digit).

    Parameters
    ----------
    sample : Sample or Scan
        Labels, probabilities and covariates.
    kernel : LocalKernel, optional
        Default: built from (p, x), see `LocalKernel`.
    biased : bool
        Whether to take in i = j; needs all rows in memory.
    engine : "auto", Tiles, Factor or Dask
        Who computes; "auto" chooses by cost and error.

    Returns
    -------
    float
        KLCE^2.

    Examples
    --------
    Two rows, by hand: e = (-0.5, 0.5) and P_12 = exp(-(1/1)^2 / 2).

    >>> import itrust as it
    >>> from itrust.kernels import RBF, LocalKernel
    >>> s = it.Sample([0, 1], [0.5, 0.5], [0.0, 1.0])
    >>> round(it.klce2(s, LocalKernel(prob=RBF(0.1), x=RBF(1.0))), 6)
    -0.151633
    """
    source = checked_source(sample, "klce2")
    whole = source.in_memory
    if biased and whole is None:
        problem = "the biased form needs a Sample in memory; use scan.load()"
        raise InputError(problem, argument="sample", value=sample)
    resolved, found, pair_weight = _evaluated(source, kernel, engine)
    unbiased = float(finite(found.over_pairs)[0]) / pair_weight
    if not biased or whole is None:
        return unbiased
    diagonal = resolved.gram(whole.points).diagonal()
    squares = float(np.sum(np.square(whole.weights_or_ones * whole.residuals) * diagonal))
    return float((unbiased * whole.pair_weight + squares) / whole.weights_or_ones.sum() ** 2)


def null_sd(
    sample: Sample | Scan, kernel: LocalKernel | None = None, *, engine: EngineChoice = "auto"
) -> float:
    """Standard deviation of KLCE^2 if the model is calibrated, in closed form.

    Variance of the sum: 2 sum over i != j of (w_i w_j P_ij)^2 v_i v_j with v = p(1 - p). Uses
    no label. Cost as for `klce2`.

    Parameters
    ----------
    sample : Sample or Scan
        Probabilities and covariates; labels are not looked at.
    kernel : LocalKernel, optional
        Default: built from (p, x), see `LocalKernel`.
    engine : "auto", Tiles, Factor or Dask
        Who computes; "auto" chooses by cost and error.

    Returns
    -------
    float
        In the unit of KLCE^2.

    Examples
    --------
    >>> import itrust as it
    >>> s = it.simulate.survey(500, rng=0).sample
    >>> 0 < it.null_sd(s) < 0.001
    True
    """
    _, found, pair_weight = _evaluated(checked_source(sample, "null_sd"), kernel, engine)
    return float(np.sqrt(found.variance())) / pair_weight


def _evaluated(
    source: Source, kernel: LocalKernel | None, engine: EngineChoice
) -> tuple[LocalKernel, KernelOutcome, float]:
    """The kernel with its widths, its form on the data alone, and the sum of pair weights."""
    chosen = as_engine(engine)
    survey = chosen.survey(source)
    resolved = resolved_kernel(kernel, survey)
    plan = chosen.plan(survey, resolved)
    outcome = chosen.run(survey, [plan])
    (found,) = outcome.kernels
    certificate = found.certificate(outcome.pair_weight)
    if certificate and certificate.bound > ROUGH:
        warnings.warn(
            f"the kernel could only be approximated to {100 * certificate.bound:.2g} % of the null "
            f"standard deviation (sampled: {100 * certificate.sampled:.2g} %); engine=Tiles() is "
            f"exact, wider kernels are easier",
            ApproximationWarning,
            stacklevel=3,
        )
    return resolved, found, outcome.pair_weight


@overload
def klce_test(  # type: ignore[overload-overlap]
    sample: MulticlassSample,
    kernel: None = None,
    null: Null | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    *,
    progress: bool | None = None,
) -> MulticlassResult: ...


@overload
def klce_test(
    sample: Sample | Scan,
    kernel: LocalKernel | Checks | None = None,
    null: Null | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    *,
    progress: bool | None = None,
) -> CalibrationResult: ...


def klce_test(
    sample: Sample | Scan,
    kernel: LocalKernel | Checks | None = None,
    null: Null | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    *,
    progress: bool | None = None,
) -> CalibrationResult | MulticlassResult:
    """Test whether the probabilities are calibrated given the covariates.

    By default many checks are made at once (`default_dictionary`), and the largest score is
    compared with its redraws, so the size of the test is exact and no width has to be guessed; the
    result tells where the model is miscalibrated. `statistic` is KLCE^2 of the default kernel
    either way.

    Parameters
    ----------
    sample : Sample, Scan or MulticlassSample
        Labels, probabilities and covariates; of several classes, as `multiclass_test` takes them
        (a scan of several classes is loaded).
    kernel : LocalKernel, Dictionary or mapping of names to kernels, optional
        One kernel, `LocalKernel()` being the default one; or a dictionary of one's own. Several
        classes take the default checks.
    null : Null, optional
        Default: `Bernoulli()`, exact at every n for independent rows. With clusters, approximate:
        `Rademacher()` where sums over clusters are nearly symmetric, else `Copula()`; with
        replicate weights alone `Replicates`. Where clusters are too few for any of them the
        p-value is NaN, and `refused` says why.
        An interval null, such as `Selection(1.2)`, takes the features of a dictionary as directions
        along which labels are summed; its p-value is valid for every law inside the interval.
        Other nulls take one kernel.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same p-value: for any number of threads and any tile size.
    engine : "auto", Tiles, Factor or Dask
        `Tiles` takes a kernel as it is, cost n^2; `Factor` an approximation with a certified
        error, cost n. The p-value is exact for either. "auto" takes the cheaper one that
        keeps the error at 1 %: tiles up to a few thousand rows, the factor beyond that and for
        scans. One kernel whose rank does not suffice takes tiles up to 60,000 rows.
    progress : bool, optional
        Default: a bar in a terminal once the work has taken a second.

    Returns
    -------
    CalibrationResult or MulticlassResult
        P-value, statistic and findings; the latter for several classes.

    Examples
    --------
    >>> import itrust as it
    >>> r = it.klce_test(it.simulate.survey(1_000, rng=0).sample, draws=199, rng=0)
    >>> r.pvalue
    0.005
    >>> print(r.evidence()[0].name)
    age: trend where region = south
    """
    if has_classes(sample):
        if kernel is not None:
            raise InputError(FOR_ONE_CLASS, argument="kernel", value=kernel)
        return multiclass_test(sample, null, draws, rng, engine, progress=progress)  # type: ignore[arg-type]
    settings: dict[str, Any] = {"draws": draws, "rng": rng, "engine": engine, "progress": progress}
    if isinstance(null, IntervalNull):
        return interval_test(sample, kernel, null, **settings)
    return prepared_test(sample, kernel, null, **settings).result
