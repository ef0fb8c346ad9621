"""KLCE^2, the kernel local calibration error, and its test with one kernel.

Vashistha and Farahi (AISTATS 2025); the same quadratic form as the kernel conditional moment
statistic of Muandet et al. (UAI 2020) with residual y - f and conditioning variable (f, x).
"""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from itrust.assumptions import assumption_notes
from itrust.engine import Tiles
from itrust.errors import InputError
from itrust.kernels import LocalKernel
from itrust.kernels.grams import Gram, SquaredGram
from itrust.nulls import AnalyticNull, Bernoulli, Null, Rademacher, SimulatedNull
from itrust.progress import progress_bar
from itrust.results import KLCEResult
from itrust.sample import Sample, checked_sample
from itrust.seeds import Rng, as_seed
from itrust.typing import FloatArray

BATCH_BYTES = 2**28  # residual columns held at once
FEW_CLUSTERS = 20
SIGNS_BY_CLUSTER = (
    "signs are flipped by cluster; KLCE^2 itself includes pairs within a cluster, which "
    "dependence alone can make positive"
)

Engine = Tiles | Literal["auto"]


def klce2(
    sample: Sample,
    kernel: LocalKernel | None = None,
    *,
    biased: bool = False,
    engine: Engine = "auto",
) -> float:
    """Squared kernel local calibration error.

    sum over i != j of w_i e_i P_ij w_j e_j / sum over i != j of w_i w_j with e = y - p:
    unbiased, so it may be negative. The biased form takes in i = j on both sides and is
    never negative. Cost O(n^2) time, O(n) memory.

    Parameters
    ----------
    sample : Sample
    kernel : LocalKernel, optional
        Default: built from (p, x), see `LocalKernel`.
    biased : bool
    engine : "auto" or Tiles

    Examples
    --------
    Two rows, by hand: e = (-0.5, 0.5) and P_12 = exp(-(1/1)^2 / 2).

    >>> import itrust as it
    >>> from itrust.kernels import RBF, LocalKernel
    >>> s = it.Sample([0, 1], [0.5, 0.5], [0.0, 1.0])
    >>> round(it.klce2(s, LocalKernel(prob=RBF(0.1), x=RBF(1.0))), 6)
    -0.151633
    """
    gram = _resolved(kernel, checked_sample(sample)).gram(sample.points)
    pairs = _sum_over_pairs(sample, gram, _tiles(engine))
    if not biased:
        return pairs / sample.pair_weight
    squares = (sample.weights_or_ones * sample.residuals) ** 2 * gram.diagonal()
    return (pairs + float(squares.sum())) / float(sample.weights_or_ones.sum()) ** 2


def _sum_over_pairs(sample: Sample, gram: Gram, tiles: Tiles) -> float:
    weighted = sample.weights_or_ones * sample.residuals
    return float(_finite(tiles.forms(gram, weighted[:, None]))[0])


def null_sd(sample: Sample, kernel: LocalKernel | None = None, *, engine: Engine = "auto") -> float:
    """Standard deviation of KLCE^2 if the model is right, in closed form.

    Variance of the sum: 2 sum over i != j of (w_i w_j P_ij)^2 v_i v_j with v = p(1 - p). Uses
    no label. Cost O(n^2).
    """
    gram = SquaredGram(_resolved(kernel, checked_sample(sample)).gram(sample.points))
    v = sample.weights_or_ones**2 * sample.p * (1 - sample.p)
    variance = 2 * float(_tiles(engine).forms(gram, v[:, None])[0])
    return float(np.sqrt(variance)) / sample.pair_weight


def klce_test(
    sample: Sample,
    kernel: LocalKernel | None = None,
    null: Null | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: Engine = "auto",
    *,
    progress: bool | None = None,
) -> KLCEResult:
    """Test whether the probabilities are right given the covariates.

    Parameters
    ----------
    sample : Sample
    kernel : LocalKernel, optional
        Default: built from (p, x), see `LocalKernel`.
    null : Null, optional
        Default: `Bernoulli()`, exact at every n; with clusters `Rademacher()`, approximate.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same p-value: for any number of threads and any tile size.
    engine : "auto" or Tiles
    progress : bool, optional
        Default: a bar in a terminal once the work has taken a second.

    Examples
    --------
    >>> import itrust as it
    >>> r = it.klce_test(it.simulate.survey(1_000, rng=0).sample, draws=199, rng=0)
    >>> r.pvalue
    0.005
    """
    checked_sample(sample)
    if not isinstance(draws, int | np.integer) or isinstance(draws, bool) or draws < 1:
        raise InputError(f"draws must be a whole number of at least 1, not {draws!r}")
    begun = time.perf_counter()
    tiles, seed = _tiles(engine), as_seed(rng)
    null = _checked_null(null, sample)
    resolved = _resolved(kernel, sample)
    doubts = (*assumption_notes(sample), *_ignored_clusters(sample, null))
    gram = resolved.gram(sample.points)
    drawn: FloatArray | None = None
    tail: float | None = None
    if isinstance(null, SimulatedNull):
        values = _simulate(sample, gram, null, int(draws), seed, tiles, progress)
        values.flags.writeable = False
        statistic, drawn = float(values[0]), values[1:]
    elif isinstance(null, AnalyticNull):
        statistic = _sum_over_pairs(sample, gram, tiles) / sample.pair_weight
        tail = null.tail(statistic, sample, gram, resolved.supremum)
    return KLCEResult(
        statistic=statistic,
        null_distribution=drawn,
        tail=tail,
        n=sample.n,
        draws=0 if drawn is None else drawn.size,
        names=sample.names,
        kernel=resolved,
        null=null,
        seed=None if drawn is None else seed,
        engine=str(tiles),
        elapsed=time.perf_counter() - begun,
        weighted=sample.weights is not None,
        clusters=sample.clusters,
        impossible=int(sample.impossible.size),
        doubts=doubts,
        notes=(*sample.notes, *_cluster_notes(sample, null)),
    )


def _simulate(
    sample: Sample,
    gram: Gram,
    null: SimulatedNull,
    draws: int,
    seed: int,
    tiles: Tiles,
    progress: bool | None,
) -> FloatArray:
    """KLCE^2 of the data, then of every draw, shape (1 + draws,)."""
    n = sample.n
    batch = max(64, BATCH_BYTES // (8 * n))
    batches = [range(at, min(at + batch, draws)) for at in range(0, draws, batch)]
    sums = []
    with progress_bar("redrawing", len(batches) * n * (n + tiles.tile) / 2, progress) as advance:
        for block in batches:
            # The data are a column of the same product as the draws, so that ties stay ties.
            data = int(block.start == 0)
            residuals = np.empty((n, data + len(block)))
            residuals[:, :data] = sample.residuals[:, None]
            null.fill(residuals[:, data:], sample, block, seed)
            if sample.weights is not None:
                residuals *= sample.weights_or_ones[:, None]
            sums.append(tiles.forms(gram, residuals, advance))
    return _finite(np.concatenate(sums)) / sample.pair_weight


def _finite(sums: FloatArray) -> FloatArray:
    if not np.isfinite(sums).all():
        raise InputError("the statistic is not finite; rescale the columns that the kernel sees")
    return sums


def _resolved(kernel: LocalKernel | None, sample: Sample) -> LocalKernel:
    if kernel is not None and not isinstance(kernel, LocalKernel):
        raise InputError(f"kernel must be a LocalKernel(prob=..., x=...), not {kernel!r}")
    return (kernel or LocalKernel()).resolve(sample.points)


def _tiles(engine: Engine) -> Tiles:
    if engine == "auto":
        return Tiles()
    if not isinstance(engine, Tiles):
        raise InputError(f"engine must be 'auto' or itrust.engine.Tiles(...), not {engine!r}")
    return engine


def _checked_null(null: Null | None, sample: Sample) -> Null:
    if null is None:
        return Bernoulli() if sample.cluster is None else Rademacher()
    if not isinstance(null, Null):
        raise InputError(f"null must be one of itrust.nulls, such as Bernoulli(), not {null!r}")
    return null


def _ignored_clusters(sample: Sample, null: Null) -> tuple[str, ...]:
    if sample.cluster is None or isinstance(null, Rademacher):
        return ()
    return (f"{type(null).__name__}() takes rows as independent and ignores the clusters",)


def _cluster_notes(sample: Sample, null: Null) -> list[str]:
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
