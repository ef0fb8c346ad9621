"""How rows were drawn: clusters, strata, weights, replicate weights, and the variance they give.

Whatever is estimated from rows is, for many rows, a sum of their shares in it. Its variance is
that of sums over clusters around the mean of their stratum (Taylor linearisation), or that of the
estimates with every set of replicate weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from itrust._core import AnyArray, FloatArray, InputError, IntArray, Rng, as_generator, did_you_mean

METHODS = ("jk1", "jk2", "brr", "fay", "sdr", "bootstrap")
RANK_TOLERANCE = 1e-9
DIGITS = 9  # by which the replicate weights of two rows are told apart
ROUNDING = 1e-9


@dataclass(frozen=True)
class Replication:
    """What replicate weights were made by, which says how far estimates with them spread.

    Parameters
    ----------
    method : {"jk1", "jk2", "brr", "fay", "sdr", "bootstrap"}
        Delete-one jackknife; paired jackknife; balanced repeated replication; Fay's form of it;
        successive differences; bootstrap.
    k : float
        Fay's factor, at least 0 and below 1; 0, the default, for all other methods.

    Examples
    --------
    >>> Replication.of("fay:0.5").scale(80)
    0.05
    """

    method: str
    k: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"{{argument}} must be one of {', '.join(METHODS)}, such as 'brr' or 'fay:0.5', "
                "not {value}",
                argument="replicate_method",
                value=self.method,
                hint=did_you_mean(str(self.method), list(METHODS)),
            )
        if not 0 <= self.k < 1 or (self.k > 0 and self.method != "fay"):
            raise InputError(
                "Fay's factor is at least 0 and below 1, and only for 'fay', as in 'fay:0.5'; this "
                "is {value}",
                argument="replicate_method",
                value=str(self),
            )

    @classmethod
    def of(cls, method: object) -> Self:
        """Read a method as it is typed, such as "brr" or "fay:0.5".

        Parameters
        ----------
        method : str or Replication
            The name, with Fay's factor after a colon.

        Returns
        -------
        Replication
            The method.
        """
        if isinstance(method, cls):
            return method
        name, _, factor = str(method).strip().lower().partition(":")
        if name == "fay" and not factor:
            problem = "Fay's method needs its factor, as in 'fay:0.5'"
            raise InputError(problem, argument="replicate_method", value=method)
        try:
            k = float(factor or 0.0)
        except ValueError:
            k = math.nan
        return cls(name, k)

    def scale(self, replicates: int) -> float:
        """Give what the sum of squared deviations is multiplied by.

        Parameters
        ----------
        replicates : int
            How many sets of weights there are.

        Returns
        -------
        float
            Such as 1 / R for balanced repeated replication.
        """
        r = float(replicates)
        others = {"jk1": (r - 1) / r, "jk2": 1.0, "sdr": 4 / r}
        return others.get(self.method, 1 / (r * (1 - self.k) ** 2))  # k is 0 but for Fay's

    def __str__(self) -> str:
        return f"{self.method}:{self.k:g}" if self.method == "fay" else self.method


@dataclass(frozen=True, eq=False)
class Design:
    """How the rows of a sample were drawn.

    Attributes
    ----------
    n : int
        Number of rows.
    weights : (n,) array of float or None
        Survey weights; None if every row counts alike.
    cluster : (n,) array of int or None
        The number of each row's cluster (primary sampling unit); None if rows are independent.
    strata : (n,) array of int or None
        The number of each row's stratum; None if there is one.
    replicate_weights : (n, R) array of float or None
        R sets of weights, each of which stands for another draw of clusters.
    replication : Replication or None
        What the replicate weights were made by.
    were_multiples : bool
        Whether the replicate weights came as multiples of the weights; they are kept in full.
    """

    n: int
    weights: FloatArray | None = None
    cluster: IntArray | None = None
    strata: IntArray | None = None
    replicate_weights: FloatArray | None = None
    replication: Replication | None = None
    were_multiples: bool = False

    def __post_init__(self) -> None:
        for array in (self.weights, self.cluster, self.strata, self.replicate_weights):
            if array is not None:
                array.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def is_simple(self) -> bool:
        """Whether rows are independent draws from one stratum."""
        return self.cluster is None and self.strata is None and self.replicate_weights is None

    def to_dict(self) -> dict[str, Any]:
        """Give what the design has, without the rows' own values, ready for JSON.

        Returns
        -------
        dict
            Numbers of clusters, strata and replicates, the method of these, whether rows have
            weights, and the degrees of freedom; None for what there is not.
        """
        sets = self.replicate_weights
        return {
            "weighted": self.weights is not None,
            "clusters": None if self.cluster is None else self.clusters,
            "strata": None if self.strata is None else self.stratum_count,
            "replicates": None if sets is None else int(sets.shape[1]),
            "replicate_method": None if self.replication is None else str(self.replication),
            "freedom": None if self.is_simple else self.freedom,
        }

    @property
    def rows_are_independent(self) -> bool:
        """Whether each row was drawn by itself, if within strata."""
        return self.cluster is None and self.replicate_weights is None

    @property
    def known_by_replicates(self) -> bool:
        """Whether replicate weights are all that tells about clusters."""
        return self.cluster is None and self.replicate_weights is not None

    @cached_property
    def _base(self) -> FloatArray:
        """The weights, (n,); 1 for every row where there are none."""
        return np.ones(self.n) if self.weights is None else self.weights

    def _multiples(self) -> FloatArray:
        """Replicate weights over the weights, (n, R); as they are where a weight is 0."""
        assert self.replicate_weights is not None
        safe = np.where(self._base > 0, self._base, 1.0)[:, None]
        return np.asarray(self.replicate_weights / safe)

    @cached_property
    def drawn_together(self) -> IntArray:
        """Which rows were drawn together, numbered from 0, (n,).

        Replicate weights without clusters tell it as well: rows of one cluster are left out, and
        counted more, together.
        """
        if not self.known_by_replicates:
            return self.units
        multiples = self._multiples()
        mixed = np.random.default_rng(0).random(multiples.shape[1])
        pattern = multiples @ mixed  # the same sum: the same pattern
        rounded = np.round(pattern / (float(np.abs(pattern).max()) or 1.0), DIGITS)
        return np.asarray(np.unique(rounded, return_inverse=True)[1], dtype=np.int64)

    @cached_property
    def units(self) -> IntArray:
        """Clusters numbered from 0, (n,); a row is one of its own where there are none."""
        if self.cluster is None:
            return np.arange(self.n)
        return np.asarray(np.unique(self.cluster, return_inverse=True)[1], dtype=np.int64)

    @cached_property
    def clusters(self) -> int:
        """Number of clusters; of rows, if they are independent."""
        return int(self.units.max()) + 1

    @cached_property
    def stratum_of_unit(self) -> IntArray:
        """Stratum of every cluster, numbered from 0; those of one cluster only are put together.

        A sample as it was drawn has none such, but a part of it may.
        """
        stratum = np.zeros(self.clusters, dtype=np.int64)
        if self.strata is None:
            return stratum
        stratum[self.units] = self.strata
        _, stratum, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
        lonely = sizes[stratum] == 1
        if np.count_nonzero(lonely) > 1:
            stratum[lonely] = sizes.size
        elif sizes.size > 1:  # one alone has nobody to differ from: it joins the smallest other
            stratum[lonely] = int(np.argmin(np.where(sizes == 1, np.inf, sizes)))
        return np.asarray(np.unique(stratum, return_inverse=True)[1], dtype=np.int64)

    @cached_property
    def stratum_sizes(self) -> FloatArray:
        """Number of clusters in every stratum."""
        return np.bincount(self.stratum_of_unit).astype(float)

    @property
    def stratum_count(self) -> int:
        """Number of strata, at least 1."""
        return int(self.stratum_sizes.size)

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom: clusters less strata, or the rank of replicate weights less one."""
        if self.replicate_weights is None:
            return float(max(self.clusters - self.stratum_count, 1))
        patterns = np.unique(self._multiples()[self._base > 0], axis=0)
        smallest = RANK_TOLERANCE * np.abs(patterns).max() * max(patterns.shape)
        return float(max(int(np.linalg.matrix_rank(patterns, tol=smallest)) - 1, 1))

    def totals(self, shares: AnyArray) -> FloatArray:
        """Sum shares of rows over clusters.

        Parameters
        ----------
        shares : (..., n) array
            Of the rows in one or several estimates.

        Returns
        -------
        (..., clusters) array
            Of the clusters.
        """
        rows = np.asarray(shares, dtype=float)
        if self.cluster is None:
            return rows
        flat = rows.reshape(-1, self.n)
        sums = np.array([np.bincount(self.units, row, self.clusters) for row in flat])
        return np.asarray(sums.reshape(*rows.shape[:-1], self.clusters))

    def centred(self, totals: FloatArray) -> FloatArray:
        """Take the mean of their stratum off the totals of clusters, and scale them.

        Parameters
        ----------
        totals : (..., clusters) array
            From `totals`.

        Returns
        -------
        (..., clusters) array
            Times sqrt(n_h / (n_h - 1)), so that the sum of their squares is the variance.
        """
        stratum, sizes = self.stratum_of_unit, self.stratum_sizes
        flat = np.asarray(totals, dtype=float).reshape(-1, self.clusters)
        means = np.stack([np.bincount(stratum, row, sizes.size) for row in flat]) / sizes
        factor = np.sqrt(sizes / np.maximum(sizes - 1, 1))
        return np.asarray(((flat - means[:, stratum]) * factor[stratum]).reshape(np.shape(totals)))

    def linearised_variance(self, shares: AnyArray) -> FloatArray:
        """Variance of a sum of shares over the rows, by Taylor linearisation.

        V = sum over strata of n_h / (n_h - 1) times the sum over clusters of
        (z_hc - mean of z_h)^2, with z the sums over clusters. Rows that an estimate does not count
        have the share 0 and stay: a domain is no sample of its own.

        Parameters
        ----------
        shares : (..., n) array
            Shares of the rows in one or several estimates; estimate - truth is about their sum.

        Returns
        -------
        (...) array
            The variance of each.

        Examples
        --------
        >>> import numpy as np
        >>> Design(4, cluster=np.array([0, 0, 1, 1])).linearised_variance([1.0, 0.0, 3.0, 0.0])
        array(4.)
        """
        return np.asarray(np.square(self.centred(self.totals(shares))).sum(axis=-1))

    @cached_property
    def replicate_deviations(self) -> FloatArray:
        """Replicate weights over the weights, less 1, times the root of the scale, (n, R).

        The sum of squares of a sum's products with them is its variance. Replicates are scaled to
        the total of the weights, as for a mean.
        """
        assert self.replicate_weights is not None
        assert self.replication is not None
        w = self._base
        replicates = self.replicate_weights * (w.sum() / self.replicate_weights.sum(axis=0))
        safe = np.where(w > 0, w, 1.0)[:, None]
        deviations = np.where(w[:, None] > 0, replicates / safe - 1, 0.0)
        return np.asarray(deviations * math.sqrt(self.replication.scale(replicates.shape[1])))

    def take(self, rows: Any) -> Design:
        """Keep some rows.

        Parameters
        ----------
        rows : index
            Positions of the rows.

        Returns
        -------
        Design
            Of those rows.
        """
        arrays = ("weights", "cluster", "strata", "replicate_weights")
        there = {name: array for name in arrays if (array := getattr(self, name)) is not None}
        taken = {name: array[rows] for name, array in there.items()}
        return replace(self, n=int(np.arange(self.n)[rows].size), **taken)

    def parts(self, shares: FloatArray, rng: Rng = None) -> IntArray:
        """Draw whole clusters at random into parts, within each stratum by itself.

        Parameters
        ----------
        shares : (k,) array
            The share of the clusters in each part; they sum to at most 1.
        rng : int, numpy.random.Generator or None
            The seed. Default: another draw in every call.

        Returns
        -------
        (n,) array of int
            The part of each row, from 0; -1 for rows that are left out. Every part has its share of
            each stratum's clusters, but for rounding, which evens out over the strata in a
            random order: every cluster has the same chance to be in a part.

        Examples
        --------
        >>> import numpy as np
        >>> pairs = Design(4, strata=np.array([0, 0, 1, 1]))
        >>> np.sort(pairs.parts(np.array([0.5, 0.5]), rng=0).reshape(2, 2))
        array([[0, 1],
               [0, 1]])
        """
        if self.known_by_replicates:
            return Design(self.n, cluster=self.drawn_together).parts(shares, rng)
        units = self.clusters
        generator = as_generator(rng)
        shuffled = generator.permutation(units)
        cuts = np.rint(np.cumsum([0.0, *shares]) * units).astype(int)
        part = np.full(units, -1)
        if self.stratum_count == 1:
            for k, (start, stop) in enumerate(pairwise(cuts)):
                part[shuffled[start:stop]] = k
            return np.asarray(part[self.units])
        wanted = np.append(shares, max(1 - float(np.sum(shares)), 0.0))
        labels = np.append(np.arange(len(shares)), -1)
        owed = np.zeros(wanted.size)
        in_strata = shuffled[np.argsort(self.stratum_of_unit[shuffled], kind="stable")]
        strata = np.split(in_strata, np.cumsum(self.stratum_sizes).astype(int)[:-1])
        # What rounding owes is paid to the next stratum, so their order must not be that of a list:
        # of rural and urban strata in turn, one part would get all of one kind.
        for number in generator.permutation(len(strata)):
            members = strata[number]
            owed += wanted * members.size
            counts = _rounded(owed, members.size)
            part[members] = np.repeat(labels, counts)
            owed -= counts
        return np.asarray(part[self.units])


def _rounded(owed: FloatArray, total: int) -> IntArray:
    """Whole numbers that sum to the total, near to what is owed; the largest remainders go up."""
    counts = np.maximum(np.floor(owed + ROUNDING), 0).astype(np.int64)
    while counts.sum() > total:
        counts[np.argmin(np.where(counts > 0, owed - counts, np.inf))] -= 1
    while counts.sum() < total:
        counts[np.argmax(owed - counts)] += 1
    return counts


def linear_moves(design: Design, shares: FloatArray) -> FloatArray:
    """How far every set of replicate weights moves a sum of shares, (R,).

    Every set is scaled to the total of the sample's weights, so that the scale of neither counts;
    the numbers that shares are of are ratios, which have none.
    """
    assert design.replicate_weights is not None
    base, sets = design._base, design.replicate_weights
    per_weight = np.divide(shares, base, out=np.zeros(design.n), where=base > 0)
    scale = float(base.sum()) / sets.sum(axis=0)
    return np.asarray((per_weight @ sets) * scale - shares.sum())


def design_variance(design: Design, shares: FloatArray, moves: FloatArray | None = None) -> float:
    """Variance of a number by the design: from replicate weights, or linearised."""
    if design.replicate_weights is None:
        return float(design.linearised_variance(shares))
    linear = linear_moves(design, shares)
    moves = linear if moves is None else np.where(np.isfinite(moves), moves, linear)
    assert design.replication is not None
    return design.replication.scale(moves.size) * float(moves @ moves)


def variance_units(design: Design) -> IntArray | None:
    """Which rows were drawn together, (n,); None if each was drawn by itself."""
    return None if design.rows_are_independent else design.drawn_together
