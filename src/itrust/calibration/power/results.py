"""What power computations give: the smallest bias that would be seen, the rows it would take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from itrust._core import InputError, Result, did_you_mean
from itrust.data import Predicate

SMALL_SHARE = 0.01  # regions below this share of the rows do not make the headline
MAX_PAIRS = 50  # that are listed in a dict


class _Facts:
    """Values with names, some of which are derived."""

    _derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            The attributes by name; a shift is a number, "over 0.5" or "no room".
        """
        names = (*vars(self), *self._derived)
        return {name: _plain(getattr(self, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "no room" if math.isnan(value) else "over 0.5"
    if isinstance(value, Predicate):
        return str(value)
    if isinstance(value, _Facts):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class RegionPower(_Facts):
    """How small a shift in one region is seen.

    Attributes
    ----------
    where : Predicate
        The rows of the region; `str(where)` reads well.
    share : float
        Of the rows.
    up, down : float
        Smallest shift of the truth above and below the prediction that is rejected with
        the wanted power; infinity if none up to 0.5 is, NaN if the probabilities leave
        no room for it.
    """

    where: Predicate
    share: float
    up: float
    down: float
    _derived = ("shift",)

    @property
    def shift(self) -> float:
        """The larger of the two that are possible; NaN if neither is."""
        possible = [shift for shift in (self.up, self.down) if not math.isnan(shift)]
        return max(possible, default=math.nan)

    @property
    def is_small(self) -> bool:
        """Whether the region has too few rows to make the headline."""
        return self.share < SMALL_SHARE


@dataclass(frozen=True)
class Coverage(_Facts):
    """Which regions a statement about the smallest bias is about: how many of each kind.

    Only regions with enough rows count.

    Attributes
    ----------
    min_rows : int
        Fewest rows of a region that counts: 1 % of all.
    groups : int
        Levels of categories, levels of numbers with at most 10 values, and rows without a value.
    tenths : int
        Tenths of numbers.
    pairs : int
        Pairs of such groups, or fifths of numbers, of two covariates.
    paired_groups, paired_fifths : bool
        Whether groups, and fifths of numbers, are among the pairs.
    uncrossed : tuple of str
        Covariates that are in no pair, because there are more than 20.
    uncut : tuple of str
        Covariates that are in no region at all, because there are more than 60.
    """

    min_rows: int
    groups: int
    tenths: int
    pairs: int
    paired_groups: bool
    paired_fifths: bool
    uncrossed: tuple[str, ...] = ()
    uncut: tuple[str, ...] = ()


@dataclass(frozen=True)
class IntraClusterCorrelation(_Facts):
    """How alike labels of a cluster are, given their probabilities.

    Attributes
    ----------
    estimate : float
        Mean correlation of the residuals of two rows of one cluster; it may be negative.
    lower, upper : float
        Confidence interval, within [-1, 1].
    stderr : float
        Standard error of the estimate.
    clusters : int
        Number of clusters.
    pairs : int
        Number of pairs of rows that share a cluster.
    confidence : float
        Of the interval.

    See Also
    --------
    intra_cluster_correlation : computes it.
    """

    estimate: float
    lower: float
    upper: float
    stderr: float
    clusters: int
    pairs: int
    confidence: float = 0.95


@dataclass(frozen=True)
class Clustering(_Facts):
    """How alike labels of a cluster are taken to be, and what that makes of the rows.

    Attributes
    ----------
    icc : float
        Intra-cluster correlation that the numbers rest on.
    least_icc : float
        The smallest one that they allow for, which is the worse one for contrasts within clusters:
        0 where the correlation was estimated and what was missed is asked.
    clusters : int
        Number of clusters.
    freedom : float
        Degrees of freedom: clusters less strata.
    design_effect : float
        Variance of the mean residual of all rows over what it would be if rows were independent.
    correlation : IntraClusterCorrelation or None
        The estimate behind `icc`; None where it was stated, or no cluster has two rows.
    """

    icc: float
    least_icc: float
    clusters: int
    freedom: float
    design_effect: float
    correlation: IntraClusterCorrelation | None = None

    @property
    def is_independent(self) -> bool:
        """Whether it was stated that labels of a cluster are independent."""
        return self.icc == 0 and self.correlation is None


class _Clustered:
    """What results say of clusters; rows are independent where there are none."""

    clustering: Clustering | None

    def _clustered_facts(self, rows: int) -> dict[str, Any]:
        return {
            "icc": self.icc,
            "design_effect": self.design_effect,
            "effective_rows": rows / self.design_effect,
            "clustering": None if self.clustering is None else self.clustering.to_dict(),
        }

    @property
    def icc(self) -> float | None:
        """Intra-cluster correlation that the numbers rest on; None without clusters."""
        return None if self.clustering is None else self.clustering.icc

    @property
    def design_effect(self) -> float:
        """How much larger clusters make the variance of the mean residual; 1 without them."""
        return 1.0 if self.clustering is None else self.clustering.design_effect


@dataclass(frozen=True, eq=False, repr=False)
class Detectable(_Clustered, Result):
    """Outcome of `detectable`: the smallest bias that this sample would have shown.

    Attributes
    ----------
    regions : tuple of RegionPower
        One for everywhere, each group and each tenth of each number; with more than 60
        covariates, of the first 60.
    pairs : tuple of RegionPower
        One for each pair of groups, or fifths of numbers, of two covariates, that has at least
        1 % of the rows; with more than 20 covariates, of the first 20.
    coverage : Coverage
        How many regions of which kind make the headline, and what was not looked at.
    power : float
        With which the biases are seen.
    alpha : float
        The size of the test.
    simulated : float
        Power found by simulation for the shift of the headline; NaN where nothing was simulated.
    simulations : int
        Number of simulated samples behind it.
    n : int
        Number of rows.
    draws : int
        Number of draws behind the critical score.
    seed : int
        Makes the same draws again.
    notes : tuple of str
        What the numbers take for granted.
    clustering : Clustering or None
        How alike labels of a cluster are taken to be; None if rows are independent.
    """

    regions: tuple[RegionPower, ...]
    pairs: tuple[RegionPower, ...]
    coverage: Coverage
    power: float
    alpha: float
    simulated: float
    simulations: int
    n: int
    draws: int
    seed: int
    notes: tuple[str, ...] = ()
    clustering: Clustering | None = None

    @property
    def effective_rows(self) -> float:
        """How many independent rows these rows count as, for the mean of all."""
        return self.n / self.design_effect

    @property
    def everywhere(self) -> RegionPower:
        """A shift of all rows."""
        return self.regions[0]

    @property
    def worst(self) -> RegionPower:
        """The region or pair, of those with 1 % of the rows or more, where the least is seen."""
        return worst_of((*self.regions, *self.pairs))

    @property
    def worst_pairs(self) -> tuple[RegionPower, ...]:
        """All pairs, those where the least is seen first; those without room come last."""
        return tuple(sorted(self.pairs, key=lambda pair: (math.isnan(pair.shift), -pair.shift)))

    def region(self, where: str) -> RegionPower:
        """Give one region by its words.

        Parameters
        ----------
        where : str
            Such as "everywhere", "region = south" or "region = south and age 30 to 41".

        Returns
        -------
        RegionPower
            The smallest shifts that are seen there.
        """
        region: RegionPower = region_named(where, (*self.regions, *self.pairs))
        return region

    def _facts(self) -> dict[str, Any]:
        return {
            "worst": self.worst.to_dict(),
            "everywhere": self.everywhere.to_dict(),
            "regions": [region.to_dict() for region in self.regions],
            "pairs": [pair.to_dict() for pair in self.worst_pairs[:MAX_PAIRS]],
            "coverage": self.coverage.to_dict(),
            **{name: getattr(self, name) for name in ("power", "alpha")},
            "simulated": self.simulated if self.simulations else None,
            **{
                name: getattr(self, name) for name in ("simulations", "n", "draws", "seed", "notes")
            },
            **self._clustered_facts(self.n),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each region and pair; nothing where a shift is no number."""
        columns = ("share", "up", "down", "shift")
        return [
            {"where": str(region.where), **{name: getattr(region, name) for name in columns}}
            for region in (*self.regions, *self.pairs)
        ]

    def __repr__(self) -> str:
        return f"<Detectable: worst {self.worst.shift:.3g} at {str(self.worst.where)!r}>"


def region_named(where: str, regions: Iterable[Any]) -> Any:
    """The region with these words."""
    others = []
    for region in regions:
        if str(region.where) == where:
            return region
        others.append(str(region.where))
    raise InputError(
        "there is no region {value}; {guess}",
        argument="where",
        value=where,
        details={"guess": did_you_mean(where, others)},
    )


def worst_of(regions: Sequence[RegionPower]) -> RegionPower:
    """The region with the largest shift, of those with enough rows; the first if there is none."""
    large = [r for r in regions if not r.is_small and not math.isnan(r.shift)]
    return max(large, key=lambda region: region.shift, default=regions[0])


@dataclass(frozen=True, eq=False, repr=False)
class SampleSize(_Clustered, Result):
    """Outcome of `sample_size`.

    Attributes
    ----------
    rows : int
        Labelled rows to collect, of the kind the pilot sample has.
    bias : float
        The shift of the truth against the prediction that they show.
    where : Predicate
        The region that needs the most rows.
    by_region : mapping of str to float
        Rows that each single region needs, by its words; beside them the pair of groups that needs
        the most, where that is more.
    power : float
        With which the bias is seen.
    alpha : float
        The size of the test.
    notes : tuple of str
        What the numbers take for granted.
    clustering : Clustering or None
        How alike labels of a cluster are taken to be; None if rows are independent.
    clusters : int or None
        Clusters of the same kind that have so many rows; None if rows are independent.
    """

    rows: int
    bias: float
    where: Predicate
    by_region: Mapping[str, float]
    power: float
    alpha: float
    notes: tuple[str, ...] = ()
    clustering: Clustering | None = None
    clusters: int | None = None

    @property
    def effective_rows(self) -> float:
        """How many independent rows they count as, for the mean of all."""
        return self.rows / self.design_effect

    def _facts(self) -> dict[str, Any]:
        return {**vars(self), "where": str(self.where), **self._clustered_facts(self.rows)}

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each region."""
        return [{"where": where, "rows": rows} for where, rows in self.by_region.items()]

    def __repr__(self) -> str:
        return f"<SampleSize: {self.rows:,} rows for a bias of {self.bias:g}>"
