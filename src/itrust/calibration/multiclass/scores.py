"""How good are probabilities of several classes, whatever the covariates? Losses and top label."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray, IntArray, tickets
from itrust.data import MulticlassSample, Sample

TIE = 1e-12  # probabilities that differ by no more than rounding


def top_label(sample: MulticlassSample) -> Sample:
    """Make a sample of whether the class with the largest probability is right.

    Examples
    --------
    >>> import itrust as it
    >>> undecided = it.Sample(["a"] * 900, [[0.5, 0.5]] * 900, classes=["a", "b"])
    >>> top = top_label(undecided)
    >>> float(top.p.mean()), round(float(top.y.mean()), 1)
    (0.5, 0.5)
    """
    chosen = _largest(sample)
    design = sample.design
    return Sample(
        (sample.codes == chosen).astype(float),
        np.clip(sample.p[np.arange(sample.n), chosen], 0.0, 1.0),
        weights=design.weights,
        cluster=design.cluster,
        strata=design.strata,
        replicate_weights=design.replicate_weights,
        replicate_method=design.replication,
    )


def _largest(sample: MulticlassSample) -> IntArray:
    """Positions of the largest probabilities; of those that tie, one by lot, (n,)."""
    names = [(type(name).__name__, str(name)) for name in sample.classes]
    order = np.array(sorted(range(len(names)), key=names.__getitem__))
    tied = sample.p[:, order] >= sample.p.max(axis=1, keepdims=True) - TIE
    wanted = np.floor(tickets(0, sample.n) * tied.sum(axis=1))
    return np.asarray(order[(np.cumsum(tied, axis=1) > wanted[:, None]).argmax(axis=1)])


def class_losses(sample: MulticlassSample) -> tuple[FloatArray, FloatArray]:
    """Brier's and the logarithmic loss of every row, (n,) each."""
    own = sample.p[np.arange(sample.n), sample.codes]
    squares = (np.square(sample.p).sum(axis=1) - 2 * own + 1) / 2
    with np.errstate(divide="ignore"):
        return np.asarray(squares), np.asarray(-np.log(own))


def mean_loss(sample: MulticlassSample, losses: FloatArray) -> float:
    """Mean of a loss by the weights of the rows."""
    w = sample.weights_or_ones
    return float(w[w > 0] @ losses[w > 0] / w.sum())
