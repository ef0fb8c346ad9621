"""Which null fits some rows: the one that every test and every interval takes by default."""

from __future__ import annotations

from itrust.nulls.base import RowwiseNull
from itrust.nulls.simulated import Bernoulli, Rademacher


def fitting_null(clusters: int | None) -> RowwiseNull:
    """Give the null that keeps what is known about the dependence of rows.

    Parameters
    ----------
    clusters : int or None
        How many clusters the rows come in; None if they are independent.

    Returns
    -------
    RowwiseNull
        Labels redrawn from the probabilities, which is exact for independent rows; with clusters,
        signs flipped by cluster.

    Examples
    --------
    >>> fitting_null(None), fitting_null(40)
    (Bernoulli(), Rademacher())
    """
    return Bernoulli() if clusters is None else Rademacher()
