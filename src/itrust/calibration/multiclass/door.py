"""Several classes: which test answers, of two classes, of several, of rows in files."""

from __future__ import annotations

import time
from dataclasses import replace

from itrust._core import (
    InputError,
    Rng,
    as_seed,
)
from itrust.calibration.inputs import (
    checked_draws,
)
from itrust.calibration.multiclass.results import MulticlassResult
from itrust.calibration.multiclass.several import judge_files, judge_several
from itrust.calibration.multiclass.two import judge_two
from itrust.data import MulticlassSample, MulticlassScan
from itrust.engines import (
    Engine,
    EngineChoice,
    as_engine,
    one_blas_thread,
    shared_kernel,
)
from itrust.kernels import LocalKernel
from itrust.nulls import (
    Null,
)

MAX_LOADED_ROWS = 100_000  # of files that are read at once; more are read some at a time


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
            found = judge_files(sample, draws, seed, way, progress)
        elif len(sample.classes) == 2:
            found = judge_two(sample, kernel, null, draws, seed, chosen, progress)
        else:
            found = judge_several(sample, kernel, null, draws, seed, chosen, way, progress)
    return replace(found, elapsed=time.perf_counter() - begun)


def has_classes(sample: object) -> bool:
    """Whether this is a sample of several classes, or a scan of one."""
    return bool(getattr(sample, "several", False))


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
