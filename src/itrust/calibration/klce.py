"""KLCE^2, the kernel local calibration error, and its test with one kernel.

Vashistha and Farahi (AISTATS 2025); the same quadratic form as the kernel conditional moment
statistic of Muandet et al. (UAI 2020) with residual y - f and conditioning variable (f, x).
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from itrust._core import ApproximationWarning, InputError
from itrust.calibration.assumptions import assumption_notes
from itrust.calibration.evaluate import Engine, choose_engine, evaluate
from itrust.calibration.results import ROUGH, KLCEResult
from itrust.data import Sample, Scan, checked_sample
from itrust.engines import Certificate, Dask, Factor, KernelWork, Tiles
from itrust.kernels import LocalKernel, PowerGram
from itrust.nulls import AnalyticNull, Bernoulli, Facts, Null, Rademacher

FEW_CLUSTERS = 20
SIGNS_BY_CLUSTER = (
    "signs are flipped by cluster; KLCE^2 itself includes pairs within a cluster, which "
    "dependence alone can make positive"
)


def klce2(
    sample: Sample | Scan,
    kernel: LocalKernel | None = None,
    *,
    biased: bool = False,
    engine: Engine = "auto",
) -> float:
    """Squared kernel local calibration error.

    sum over i != j of w_i e_i P_ij w_j e_j / sum over i != j of w_i w_j with e = y - p:
    unbiased, so it may be negative. The biased form takes in i = j on both sides and is
    never negative. Cost O(n^2) time, O(n) memory; above 20,000 rows by low rank, with
    0.1 % of the null standard deviation as the error asked for, and an `ApproximationWarning`
    where the certified error is above 5 % (`engine=Tiles()` for the last digit).

    Parameters
    ----------
    sample : Sample
    kernel : LocalKernel, optional
        Default: built from (p, x), see `LocalKernel`.
    biased : bool
    engine : "auto", Tiles or Factor

    Examples
    --------
    Two rows, by hand: e = (-0.5, 0.5) and P_12 = exp(-(1/1)^2 / 2).

    >>> import itrust as it
    >>> from itrust.kernels import RBF, LocalKernel
    >>> s = it.Sample([0, 1], [0.5, 0.5], [0.0, 1.0])
    >>> round(it.klce2(s, LocalKernel(prob=RBF(0.1), x=RBF(1.0))), 6)
    -0.151633
    """
    resolved = resolved_kernel(kernel, checked_source(sample), engine)
    if biased and isinstance(sample, Scan):
        raise InputError("the biased form needs a Sample in memory; use scan.load()")
    found = evaluate(sample, resolved, None, 0, 0, engine)
    if found.certificate:
        _warn_if_rough(found.certificate)
    unbiased = float(found.over_pairs[0]) / found.pair_weight
    if not biased:
        return unbiased
    assert isinstance(sample, Sample)
    diagonal = resolved.gram(sample.points).diagonal()
    squares = float(np.sum(np.square(sample.weights_or_ones * sample.residuals) * diagonal))
    return (unbiased * sample.pair_weight + squares) / float(sample.weights_or_ones.sum()) ** 2


def null_sd(
    sample: Sample | Scan, kernel: LocalKernel | None = None, *, engine: Engine = "auto"
) -> float:
    """Standard deviation of KLCE^2 if the model is right, in closed form.

    Variance of the sum: 2 sum over i != j of (w_i w_j P_ij)^2 v_i v_j with v = p(1 - p). Uses
    no label. Cost as for `klce2`.
    """
    resolved = resolved_kernel(kernel, checked_source(sample), engine)
    if isinstance(engine, Dask):
        raise InputError("null_sd runs on one machine; use engine='auto'")
    chosen = choose_engine(sample, resolved, None, 0, engine)
    if isinstance(chosen, Tiles):
        assert isinstance(sample, Sample)
        v = np.square(sample.weights_or_ones) * sample.p * (1 - sample.p)
        gram = PowerGram(resolved.gram(sample.points), 2)
        variance = 2 * float(chosen.forms(gram, v[:, None])[0])
    else:
        factor, plan = chosen
        totals = factor.run(sample, [KernelWork(plan)], None, 0, 0)
        (sums,), pair_weight = totals.parts, totals.tally.pair_weight
        _warn_if_rough(sums.certificate(plan, pair_weight))
        return float(np.sqrt(2 * sums.norm2)) / pair_weight
    return float(np.sqrt(variance)) / sample.pair_weight


def single_kernel_test(
    sample: Sample | Scan,
    kernel: LocalKernel | None,
    null: Null,
    draws: int,
    seed: int,
    engine: Engine = "auto",
    progress: bool | None = None,
) -> KLCEResult:
    """The test with one kernel: KLCE^2 against its null."""
    begun = time.perf_counter()
    resolved = resolved_kernel(kernel, sample, engine)
    doubts = doubts_about(sample, null)
    found = evaluate(sample, resolved, null, draws, seed, engine, progress)
    values = found.over_pairs / found.pair_weight
    values.flags.writeable = False
    statistic = float(values[0])
    tail = None
    if isinstance(null, AnalyticNull):
        over_pairs = float(found.over_pairs[0])
        weighted = sample.weights is not None
        extent = (found.n, weighted, resolved.supremum)
        tail = null.tail(Facts(statistic, over_pairs, *extent, found.spectrum, found.offset))
    return KLCEResult(
        statistic=statistic,
        null_distribution=values[1:] if tail is None else None,
        tail=tail,
        n=found.n,
        draws=values.size - 1,
        names=sample.names,
        kernel=resolved,
        null=null,
        seed=seed if tail is None else None,
        engine=found.engine,
        certificate=found.certificate,
        elapsed=time.perf_counter() - begun,
        weighted=sample.weights is not None,
        clusters=sample.clusters,
        impossible=found.impossible,
        doubts=doubts,
        notes=(*found.notes, *cluster_notes(sample, null)),
    )


def _warn_if_rough(certificate: Certificate) -> None:
    if certificate.bound > ROUGH:
        warnings.warn(
            f"the kernel could only be approximated to {100 * certificate.bound:.2g} % of the null "
            f"standard deviation (sampled: {100 * certificate.sampled:.2g} %); engine=Tiles() is "
            f"exact, wider kernels are easier",
            ApproximationWarning,
            stacklevel=3,
        )


def resolved_kernel(
    kernel: LocalKernel | None, sample: Sample | Scan, engine: Engine = "auto"
) -> LocalKernel:
    """The kernel with its widths, from (p, x) alone."""
    if kernel is not None and not isinstance(kernel, LocalKernel):
        raise InputError(f"kernel must be a LocalKernel(prob=..., x=...), not {kernel!r}")
    if isinstance(sample, Sample):
        return (kernel or LocalKernel()).resolve(sample.points)
    if isinstance(engine, Dask):
        engine.survey(sample)  # so that the pilot rows are sampled on the workers
        engine = engine.factor
    size = engine.pilot if isinstance(engine, Factor) else Factor.pilot
    return (kernel or LocalKernel()).resolve(sample.pilot(size)[0])


def checked_draws(draws: object) -> int:
    """Pass a number of draws on; refuse anything else."""
    if not isinstance(draws, int | np.integer) or isinstance(draws, bool) or draws < 1:
        raise InputError(f"draws must be a whole number of at least 1, not {draws!r}")
    return int(draws)


def checked_null(null: Null | None, sample: Sample | Scan) -> Null:
    """The null that was asked for, or the one that fits the sample."""
    if null is None:
        return Bernoulli() if sample.clusters is None else Rademacher()
    if not isinstance(null, Null):
        raise InputError(f"null must be one of itrust.nulls, such as Bernoulli(), not {null!r}")
    return null


def doubts_about(sample: Sample | Scan, null: Null) -> tuple[str, ...]:
    """What speaks against the assumptions of the null."""
    found = assumption_notes(sample)
    if sample.clusters is None or isinstance(null, Rademacher):
        return found
    return (
        *found,
        f"{type(null).__name__}() takes rows as independent and ignores the clusters",
    )


def cluster_notes(sample: Sample | Scan, null: Null) -> list[str]:
    """What flipped signs mean for a sample with clusters."""
    if sample.clusters is None or not isinstance(null, Rademacher):
        return []
    notes = [SIGNS_BY_CLUSTER]
    if sample.clusters < FEW_CLUSTERS:
        outcomes = 2 ** (sample.clusters - 1)
        notes.append(
            f"{sample.clusters} clusters are few for an approximation: signs can be flipped in "
            f"{outcomes:,} ways only, so no p-value below about {1 / outcomes:.2g} means anything"
        )
    return notes


def checked_source(source: object) -> Sample | Scan:
    """Pass a Sample or a Scan on; refuse anything else."""
    return source if isinstance(source, Scan) else checked_sample(source)
