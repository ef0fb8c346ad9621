"""KLCE^2, the kernel local calibration error, and its standard deviation under the null.

Vashistha and Farahi (AISTATS 2025); the same quadratic form as the kernel conditional moment
statistic of Muandet et al. (UAI 2020) with residual y - f and conditioning variable (f, x).
"""

from __future__ import annotations

import warnings

import numpy as np

from itrust._core import ApproximationWarning, InputError
from itrust.calibration.inputs import checked_source, resolved_kernel
from itrust.calibration.results import ROUGH
from itrust.data import Sample, Scan, Source
from itrust.engines import EngineChoice, KernelOutcome, as_engine, finite
from itrust.kernels import LocalKernel


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
        raise InputError(
            "the biased form needs a Sample in memory; use scan.load()",
            argument="sample",
            value=sample,
        )
    resolved, found, pair_weight = _evaluated(source, kernel, engine)
    unbiased = float(finite(found.over_pairs)[0]) / pair_weight
    if not biased or whole is None:
        return unbiased
    diagonal = resolved.gram(whole.points).diagonal()
    squares = float(np.sum(np.square(whole.weights_or_ones * whole.residuals) * diagonal))
    return (unbiased * whole.pair_weight + squares) / float(whole.weights_or_ones.sum()) ** 2


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
    outcome = chosen.run(survey, [plan], diagonals=False)
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
