"""`klce_test`: one door for one probability a row and for those of several classes."""

from __future__ import annotations

from typing import overload

from itrust._core import Rng
from itrust.calibration.adaptive import Checks, prepared_test
from itrust.calibration.interval import interval_test
from itrust.calibration.multiclass import MulticlassResult, has_classes, multiclass_test
from itrust.calibration.results import CalibrationResult
from itrust.data import MulticlassSample, Sample, Scan
from itrust.engines import EngineChoice
from itrust.kernels import LocalKernel
from itrust.nulls import IntervalNull, Null


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


@overload
def klce_test(
    sample: MulticlassSample,
    kernel: LocalKernel | Checks | None = None,
    null: Null | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    *,
    progress: bool | None = None,
) -> MulticlassResult: ...


def klce_test(
    sample: Sample | Scan | MulticlassSample,
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
        One kernel, `LocalKernel()` being the default one; or a dictionary of one's own.
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
        return multiclass_test(sample, kernel, null, draws, rng, engine, progress=progress)  # type: ignore[arg-type]
    if isinstance(null, IntervalNull):
        return interval_test(
            sample,  # type: ignore[arg-type]
            kernel,
            null,
            draws=draws,
            rng=rng,
            engine=engine,
            progress=progress,
        )
    return prepared_test(
        sample,  # type: ignore[arg-type]
        kernel,
        null,
        draws=draws,
        rng=rng,
        engine=engine,
        progress=progress,
    ).result
