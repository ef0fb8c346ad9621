"""How rows were drawn: clusters, strata, weights, replicate weights, and the variance they give.

Whatever is estimated from rows is, for many rows, a sum of their shares in it. Its variance is
that of sums over clusters around the mean of their stratum (Taylor linearisation), or that of the
estimates with every set of replicate weights.

What users bring is read here, too. A sample as it was drawn must allow a variance: clusters that
lie in one stratum, and two or more in each. Parts of a sample need not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from itrust._core import (
    AnyArray,
    Argument,
    BoolArray,
    Code,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    Row,
    Setting,
    Subject,
    as_generator,
    counted,
    did_you_mean,
    in_door_words,
    shown,
)
from itrust.data.encoding import (
    as_arrow,
    columns_of,
    encode_numbers,
    is_frame,
    levels_and_codes,
    refuse_missing_rows,
    refuse_rows,
    same_length,
    whole,
)
from itrust.data.selection import as_arrays, lacking_in, taken

METHODS = ("jk1", "jk2", "brr", "fay", "sdr", "bootstrap")
RANK_TOLERANCE = 1e-9
DIGITS = 9  # by which the replicate weights of two rows are told apart
ROUNDING = 1e-9
CLUSTER, STRATA, WEIGHTS = "cluster", "strata", "weights"
REPLICATES, METHOD = "replicate_weights", "replicate_method"
CERTAINTY = (
    "; if it was sure to be drawn (a certainty unit), give its rows or lower units as clusters"
)
NAME_THE_METHOD = (
    "say what made the replicate weights with {settings}, or jk1, jk2, brr, sdr, bootstrap"
)
MIN_MEAN, MAX_MEAN = 0.5, 2.0  # of replicate weights where every row has weight 1


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


@dataclass(frozen=True, eq=False)
class Ids:
    """Which unit each row belongs to, by one column or by several that are crossed."""

    # Of each its name, if any, the values that occur, and the place of each row's among them.
    columns: tuple[tuple[str | None, tuple[Any, ...], AnyArray], ...]

    @cached_property
    def codes(self) -> IntArray:
        """The number of each row's unit, (n,), from 0 without gaps."""
        (_, _, codes), *others = self.columns
        for _, levels, more in others:
            codes = np.unique(codes * len(levels) + more, return_inverse=True)[1]
        return np.asarray(codes, dtype=np.int64)

    def named(self, row: int) -> str:
        """The unit of a row in words, such as 7 or (7, 'b')."""
        ids = [levels[codes[row]] for _, levels, codes in self.columns]
        words = [str(v) if isinstance(v, date) else shown(whole(v)) for v in ids]
        return words[0] if len(words) == 1 else f"({', '.join(words)})"


def read_ids(values: object, argument: str, n: int) -> Ids:
    """Units from one column, or from several in a frame, a mapping or an array (n, k)."""
    named = is_frame(values)
    rows = isinstance(values, list | tuple) and any(isinstance(v, list | tuple) for v in values[:1])
    columns: Mapping[str, object] = {"": values}
    if named or rows or getattr(values, "ndim", 1) > 1:
        columns = columns_of(values, Subject(argument))
        if not columns:
            raise InputError("{argument} has no column", argument=argument)
    ids = []
    for name, column in columns.items():
        what = Subject(argument, name if named else None)
        levels, codes = levels_and_codes(as_arrow(column, what))
        same_length(what, codes.size, n)
        refuse_missing_rows(codes < 0, what)
        ids.append((what.column, levels, codes))
    return Ids(tuple(ids))


def read_weights(values: object, n: int, what: Subject) -> FloatArray:
    """Survey weights, (n,)."""
    weights = encode_numbers(values, what)
    same_length(what, weights.size, n)
    problem = "{subject} must not be negative; {row} has {value}"
    refuse_rows(weights < 0, problem, what, weights)
    return weights


def read_design(
    n: int,
    *,
    weights: object = None,
    cluster: object = None,
    strata: object = None,
    replicate_weights: object = None,
    replicate_method: object = None,
    as_drawn: bool = True,
) -> Design:
    """How n rows were drawn; unless all are there `as_drawn`, they need not allow a variance."""
    w = None if weights is None else read_weights(weights, n, Subject(WEIGHTS))
    units, groups = (
        None if values is None else read_ids(values, argument, n)
        for argument, values in ((CLUSTER, cluster), (STRATA, strata))
    )
    if as_drawn:
        _refuse_odd_design(n, w, units, groups)
    replicates, method, were_multiples = _read_replicates(replicate_weights, replicate_method, w, n)
    return Design(
        n,
        weights=w,
        cluster=None if units is None else units.codes,
        strata=None if groups is None else groups.codes,
        replicate_weights=replicates,
        replication=method,
        were_multiples=were_multiples,
    )


def refuse_odd_units(roles: Mapping[str, object]) -> None:
    """Raise where clusters and strata allow no variance before any row is left out."""
    given = as_arrays({name: roles.get(name) for name in (WEIGHTS, CLUSTER, STRATA)})
    if not {CLUSTER, STRATA} & given.keys():
        return
    masks = list(lacking_in(given).values())
    if any(mask.size != masks[0].size for mask in masks):
        return  # columns of different lengths are told as such, later
    rows = np.flatnonzero(~np.any(masks, axis=0))
    try:
        read_design(rows.size, **taken(given, rows))
    except InputError as error:
        raise error.renumbered(lambda row: int(rows[row])) from None


def _refuse_odd_design(
    n: int, weights: FloatArray | None, cluster: Ids | None, strata: Ids | None
) -> None:
    """Raise where clusters and strata as they were drawn allow no variance."""
    if cluster is not None and n > 1 and not cluster.codes.any():
        raise InputError(
            f"all {n:,} rows belong to one cluster, {{unit}}; {{argument}} needs two clusters or "
            "more, or leave it out",
            argument=CLUSTER,
            column=cluster.columns[0][0],
            count=1,
            unit=cluster.named(0),
        )
    if strata is None or n == 0:
        return
    units = np.arange(n) if cluster is None else cluster.codes
    first = np.unique(units, return_index=True)[1]
    if cluster is not None:
        _refuse_torn_clusters(cluster, strata, first)
    unit, lower = ("row", "") if cluster is None else ("cluster", CERTAINTY)
    problem = f"stratum {{stratum}} of {{argument}} has a single {unit} ({{row}}){{more}}, which "
    problem += f"gives no variance; collapse it with a neighbouring stratum{lower}"
    _refuse_strata(np.bincount(strata.codes[first]) == 1, strata, STRATA, problem)
    problem = "all rows of stratum {stratum} have weight 0 ({row} is the first){more}; leave them "
    problem += "out, or collapse it with a neighbouring stratum"
    _refuse_strata(np.bincount(strata.codes, weights) == 0, strata, WEIGHTS, problem)


def _refuse_strata(bad: BoolArray, strata: Ids, argument: str, problem: str) -> None:
    """Raise on the first of the strata that are marked."""
    if bad.any():
        row, others = int(np.argmax(bad[strata.codes])), int(bad.sum()) - 1
        more = f", as in {counted(others, 'other')} of {bad.size:,} strata" if others else ""
        raise InputError(
            problem,
            argument=argument,
            column=strata.columns[0][0] if argument == STRATA else None,
            row=row,
            value=strata.named(row),
            count=others + 1,
            stratum=strata.named(row),
            more=more,
        )


def _refuse_torn_clusters(cluster: Ids, strata: Ids, first: IntArray) -> None:
    torn = strata.codes != strata.codes[first][cluster.codes]
    if not torn.any():
        return
    row = int(np.argmax(torn))
    one = int(first[cluster.codes[row]])
    others = int(np.unique(cluster.codes[torn]).size) - 1
    names = [name for name, _, _ in (*strata.columns, *cluster.columns)]
    cure: Setting | Code = Setting(CLUSTER, list(dict.fromkeys(names)))
    if None in names:
        cure = Code("cluster={'stratum': strata, 'cluster': cluster}", "--cluster COL,COL")
    do = "does" if others == 1 else "do"
    more = f", and so {do} {counted(others, 'other cluster')}" if others else ""
    raise InputError(
        f"cluster {{unit}} lies in two strata, {{one}} ({{first}}) and {{other}} ({{row}}){more}",
        argument=CLUSTER,
        row=row,
        value=cluster.named(row),
        count=others + 1,
        hint="where clusters are numbered anew in each stratum, name them by both columns, {}",
        settings=[cure],
        details={"unit": cluster.named(row), "first": Row(one)}
        | {"one": strata.named(one), "other": strata.named(row)},
    )


def _read_replicates(
    values: object, method: object, weights: FloatArray | None, n: int
) -> tuple[FloatArray | None, Replication | None, bool]:
    """Sets of weights (n, R) in full, their method, and whether they came as multiples."""
    if (values is None) != (method is None):
        lacking = Setting(REPLICATES, ...) if values is None else Setting(METHOD, "fay:0.5")
        raise InputError(
            "{argument} needs {other}",
            argument=METHOD if values is None else REPLICATES,
            value=method,
            hint="name them with {settings}" if values is None else NAME_THE_METHOD,
            settings=[lacking],
            other=Argument(lacking.name),
        )
    if values is None:
        return None, None, False
    replication = Replication.of(method)
    columns = columns_of(values, Subject(REPLICATES))
    for column in list(columns.values())[:1]:
        as_arrow(column, Subject(REPLICATES))  # what is no column at all is told as such
    if len(columns) < 2:
        problem = "{argument} needs two sets of weights or more, one a column; this has {count}"
        raise InputError(problem, argument=REPLICATES, count=len(columns))
    sets = {name: read_weights(c, n, Subject(REPLICATES, name)) for name, c in columns.items()}
    empty = [name for name, replicate in sets.items() if not replicate.any()]
    if empty:
        problem = "{subject} is 0 in every row; leave it out"
        raise InputError(problem, argument=REPLICATES, column=empty[0])
    matrix = np.column_stack(list(sets.values()))
    mean = float(matrix.mean())
    if weights is None and not MIN_MEAN <= mean <= MAX_MEAN:
        raise InputError(
            f"{{argument}} have the mean {mean:,.6g}, but no weights are given, as if every row "
            "had weight 1",
            argument=REPLICATES,
            value=mean,
            hint="name the weights that they belong to with {settings}",
            settings=[Setting(WEIGHTS, ...)],
        )
    if weights is None:
        return matrix, replication, False
    # Whatever made them, every row keeps about its weight on average: of multiples, about 1.
    usual = matrix.mean(axis=1)
    if np.square(usual - 1).sum() < np.square(usual - weights).sum():
        return matrix * weights[:, None], replication, True
    return matrix, replication, False


def design_notes(design: Design) -> list[str]:
    """What a user may want to know of how the rows were drawn."""
    notes = []
    weights, replicates = design.weights, design.replicate_weights
    if weights is not None and (weights == 0).any():
        notes.append(
            f"weight 0 in {counted(int((weights == 0).sum()), 'row')}, which stay in the sample "
            "but count for nothing"
        )
        empty = 0 if design.cluster is None else int((design.totals(weights) == 0).sum())
        if empty:
            notes.append(f"weight 0 in every row of {counted(empty, 'cluster')}")
    plain_clusters = design.cluster is not None and design.strata is None and replicates is None
    if plain_clusters and design.clusters == design.n:
        notes.append(
            "every row is a cluster of its own, which is the same as independent rows: without "
            f"{in_door_words(Setting(CLUSTER))} the test is exact"
        )
    if replicates is not None and weights is not None:
        notes.append(
            "replicate weights are taken as multiples of the weights"
            if design.were_multiples
            else "replicate weights are taken as weights in full, not as multiples of the weights"
        )
        copies = int((replicates == weights[:, None]).all(axis=0).sum())
        if copies:
            notes.append(
                f"{counted(copies, 'set')} of replicate weights equal the weights: leave them out, "
                "unless they were added on purpose"
            )
    return notes
