"""What a test could have missed: the smallest bias it would see, and the rows it would take.

The shifts are those of the checks that see a region best, by normal approximation (`sensitivity`):
with more checks that see a shift, the power of the test is higher; with rare events (p = .03, 400
rows) simulated powers were .73 to .80 in tenths and groups where .8 was asked for. The headline is
always tried out by simulation.

With clusters the variances behind them are those of `clustering`, for a correlation of labels that
is stated or estimated; a simulation is not made, for it would have independent rows. They are
those of a test that divides every check by its own standard deviation with clusters. Flipped signs
alone do not: checks of whole clusters vary more and crowd out differences within clusters, for
which such a test has less power (.55 where .8 was asked for, a group in 60 clusters of 20 rows).

Regions are counted from predictions and covariates; labels are not looked at. Pairs of regions
explode with the number of covariates, so only the first ones are crossed, numbers by their fifths,
and only pairs with at least 1 % of the rows are kept: at most 100 for two covariates. Where
covariates are very many, only the first ones are cut at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from itrust._core import (
    InputError,
    Result,
    Rng,
    WithFacts,
    checked_count,
    checked_share,
    counted,
    place_of,
)
from itrust.calibration.adaptive import Checks, PreparedTest, checked_source
from itrust.calibration.power.clusters import Clustering, assumed_clustering
from itrust.calibration.power.sensitivity import MAX_ROWS, SMALL_SHARE, Sensitivity, left_out
from itrust.data import Between, Population, Predicate, Sample, Scan, without_labels
from itrust.engines import EngineChoice
from itrust.nulls import Bernoulli

MAX_PAIRS = 50  # that are listed in a dict


@dataclass(frozen=True)
class RegionPower(WithFacts):
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

    def _facts(self) -> dict[str, Any]:
        """A shift is a number, "over 0.5" or "no room"."""
        shifts = {name: _shown(getattr(self, name)) for name in ("up", "down", "shift")}
        return {"where": str(self.where), "share": self.share, **shifts}

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
class Coverage(WithFacts):
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


def _shown(shift: float) -> float | str:
    if math.isfinite(shift):
        return shift
    return "no room" if math.isnan(shift) else "over 0.5"


class _Plan(Result):
    """What results say of rows in clusters; rows are independent where there are none."""

    clustering: Clustering | None

    @property
    def _size(self) -> int:
        """Rows that the plan is about."""
        raise NotImplementedError

    def _of_clusters(self) -> dict[str, Any]:
        names = ("icc", "design_effect", "effective_rows", "clustering")
        return {name: getattr(self, name) for name in names}

    @property
    def effective_rows(self) -> float:
        """How many independent rows these rows count as, for the mean of all."""
        return self._size / self.design_effect

    @property
    def icc(self) -> float | None:
        """Intra-cluster correlation that the numbers rest on; None without clusters."""
        return None if self.clustering is None else self.clustering.icc

    @property
    def design_effect(self) -> float:
        """How much larger clusters make the variance of the mean residual; 1 without them."""
        return 1.0 if self.clustering is None else self.clustering.design_effect


@dataclass(frozen=True, eq=False, repr=False)
class Detectable(_Plan):
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
    corners : tuple of (float, float)
        Shares of the rows, and the bias of a rectangle of two covariates with so many that is
        seen, wherever it lies; empty where none are scanned, and with clusters.
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
    corners: tuple[tuple[float, float], ...]
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
    def _size(self) -> int:
        return self.n

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
            "worst": self.worst,
            "everywhere": self.everywhere,
            **vars(self),
            "pairs": self.worst_pairs[:MAX_PAIRS],
            "corners": [dict(zip(("share", "shift"), own, strict=True)) for own in self.corners],
            **self._of_clusters(),
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


def region_named(where: str, regions: Sequence[Any]) -> Any:
    """The region with these words."""
    words = [str(region.where) for region in regions]
    return regions[place_of(where, words, "there is no region {value}; {guess}", argument="where")]


def worst_of(regions: Sequence[RegionPower]) -> RegionPower:
    """The region with the largest shift, of those with enough rows; the first if there is none."""
    large = [r for r in regions if not r.is_small and not math.isnan(r.shift)]
    return max(large, key=lambda region: region.shift, default=regions[0])


@dataclass(frozen=True, eq=False, repr=False)
class SampleSize(_Plan):
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
    def _size(self) -> int:
        return self.rows

    def _facts(self) -> dict[str, Any]:
        return {**vars(self), "where": str(self.where), **self._of_clusters()}

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each region."""
        return [{"where": where, "rows": rows} for where, rows in self.by_region.items()]

    def __repr__(self) -> str:
        return f"<SampleSize: {self.rows:,} rows for a bias of {self.bias:g}>"


SIMULATED_SAMPLES = 400


def detectable(
    sample: Sample | Scan | Population,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    dictionary: Checks | None = None,
    draws: int = 999,
    simulations: int = SIMULATED_SAMPLES,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    icc: float | None = None,
) -> Detectable:
    """Find the smallest shift that `klce_test` would have rejected, everywhere and by region.

    Regions: all rows, every level of every category, every tenth of every number, and every pair
    of levels of two covariates (of numbers, of their fifths) that has at least 1 % of the rows.
    Regions are those of the first 60 covariates, pairs those of the first 20; `coverage` names the
    others. Labels are not looked at. The shift of the headline is tried out on `simulations`
    simulated samples.

    With clusters, labels of a cluster are taken to be correlated, and rows count for less: by the
    design effect of every check (`itrust.calibration.intra_cluster_correlation`), with Student's
    law for the number of clusters. The shifts are approximate then, and no samples are simulated.

    Parameters
    ----------
    sample : Sample, Scan or Population
        Probabilities and covariates; labels are looked at for `icc` only, so that rows without
        labels do as well: what is found holds for as many labelled rows.
    alpha : float
        The size of the test.
    power : float
        With which a shift shall be seen.
    dictionary : Dictionary or mapping of names to kernels, optional
        Default: that of `klce_test`.
    draws : int
        Number of draws behind the critical score.
    simulations : int
        Number of simulated samples; 0 leaves the simulation out, and so do clusters.
    rng : int, Generator or None
        Same seed, same answer.
    engine : "auto", Tiles, Factor or Dask
        As for `klce_test`.
    icc : float, optional
        Intra-cluster correlation of the labels, from 0 (rows are independent) to 1. Default, with
        clusters: anything from 0 to the upper end of its 95 % interval from the labels, whichever
        is worse for a check, because "would have been seen" must hold for any correlation that the
        labels leave open; it takes 10 clusters.

    Returns
    -------
    Detectable
        The smallest shifts by region.

    Examples
    --------
    >>> import itrust as it
    >>> d = it.detectable(it.simulate.survey(2_000, rng=0).sample, draws=199, simulations=0, rng=0)
    >>> d.everywhere.shift < 0.05 < d.worst.shift
    True
    """
    simulations = checked_count(simulations, "simulations", at_least=0)
    source = _source_of(sample, "detectable")
    clustering = assumed_clustering(source, icc, careful=True)
    sensitivity = Sensitivity.of(source, alpha, power, dictionary, draws, rng, engine, clustering)
    return _detectable(sensitivity, simulations)


def detectable_by(
    test: PreparedTest,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    simulations: int = 0,
    icc: float | None = None,
) -> Detectable:
    """The same for a test that was made already: what it prepared and drew serves again."""
    result, prepared = test.result, test.prepared
    if not result.is_adaptive:
        raise InputError(
            "{argument} must be made over a dictionary, not one kernel", argument="test"
        )
    clustering = assumed_clustering(prepared.survey.source, icc, careful=True)
    scores = test.scores if isinstance(result.null, Bernoulli) else None
    seed = result.seed if result.seed is not None else 0
    sensitivity = Sensitivity(prepared, scores, alpha, power, result.draws, seed, clustering)
    return _detectable(sensitivity, simulations)


def _detectable(sensitivity: Sensitivity, simulations: int) -> Detectable:
    regions, pairs = (
        tuple(RegionPower(area.where, area.share, *sensitivity.smallest_both(area)) for area in own)
        for own in (sensitivity.regions(), sensitivity.pairs())
    )
    survey = sensitivity.prepared.survey
    simulated, worst = math.nan, worst_of((*regions, *pairs))
    if simulations and sensitivity.noise is None and math.isfinite(worst.shift):
        shift = worst.shift if worst.shift == worst.up else -worst.shift
        simulated = sensitivity.simulated_power(worst.where, shift, simulations)
    parts = [isinstance(region.where, Between) for region in regions[1:] if not region.is_small]
    paired = {isinstance(leaf, Between) for pair in pairs for leaf in pair.where.leaves()}
    uncut, uncrossed = left_out(survey.points)
    return Detectable(
        regions=regions,
        pairs=pairs,
        coverage=Coverage(
            min_rows=math.ceil(SMALL_SHARE * survey.n - 1e-9),
            groups=parts.count(False),
            tenths=parts.count(True),
            pairs=len(pairs),
            paired_groups=False in paired,
            paired_fifths=True in paired,
            uncrossed=uncrossed,
            uncut=uncut,
        ),
        corners=sensitivity.corners(),
        power=sensitivity.wanted,
        alpha=sensitivity.alpha,
        simulated=simulated,
        simulations=0 if math.isnan(simulated) else simulations,
        n=survey.n,
        draws=sensitivity.draws,
        seed=sensitivity.seed,
        clustering=sensitivity.clustering,
    )


def sample_size(
    sample: Sample | Scan | Population,
    bias: float = 0.05,
    *,
    where: str | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    dictionary: Checks | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    icc: float | None = None,
) -> SampleSize:
    """How many labelled rows would show a bias of this size, in either direction.

    The rows at hand stand for those to come: predictions and covariates count. Labels are not
    looked at; where there are none yet, pass a `Population`. With clusters, more clusters of the
    same kind are counted, and labels tell how alike those of a cluster are, unless `icc` is stated.

    Parameters
    ----------
    sample : Sample, Scan or Population
        Probabilities and covariates of rows such as those to come, with labels or without.
    bias : float
        Shift of the truth against the prediction.
    where : str, optional
        A region in the words of `detectable`, such as "everywhere" or "region = south";
        default: every region, and every pair of groups, with 1 % of the rows or more.
    alpha, power : float
        The size of the test, and the power with which the bias shall be seen.
    dictionary : Dictionary or mapping of names to kernels, optional
        Default: that of `klce_test`.
    draws : int
        Number of draws behind the critical score.
    rng : int, Generator or None
        Same seed, same numbers of rows; None: another seed in each call.
    engine : "auto", Tiles, Factor or Dask
        As for `klce_test`.
    icc : float, optional
        Intra-cluster correlation of the labels, from 0 to 1. Default, with clusters: as estimated
        from the labels, 0 if that is below; a plan takes the likeliest value, not the worst.

    Returns
    -------
    SampleSize
        Rows in all and by region; with clusters, their number too.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(1_000, rng=0).sample
    >>> some = it.sample_size(town, 0.05, where="everywhere", draws=199, rng=0)
    >>> all_ = it.sample_size(town, 0.05, draws=199, rng=0)
    >>> 500 < some.rows < 2_500 < all_.rows
    True

    Before anything is labelled:

    >>> x = {"region": ["north", "south"] * 200}
    >>> frame = it.Population([0.2, 0.3, 0.6, 0.7] * 100, x)
    >>> it.sample_size(frame, 0.1, draws=199, rng=0)
    <SampleSize: ...>
    """
    bias = checked_share(bias, "bias")
    source = _source_of(sample, "sample_size")
    clustering = assumed_clustering(source, icc, careful=False)
    sensitivity = Sensitivity.of(source, alpha, power, dictionary, draws, rng, engine, clustering)
    regions, pairs = sensitivity.regions(), sensitivity.pairs()
    n, points = sensitivity.prepared.survey.n, sensitivity.prepared.survey.points
    uncut = left_out(points)[0] if where is None else ()
    if where is not None:
        area = region_named(where, [*regions, *pairs])
        needed = {area.where: sensitivity.rows_needed(area, bias)}
    else:
        large = (area for area in regions if area.share >= SMALL_SHARE)
        needed = {area.where: sensitivity.rows_needed(area, bias) for area in large}
        most, neediest = max(needed.values()), None
        for area in pairs:  # the one that needs the most rows, if it needs more
            if not sensitivity.is_seen(area, bias, most):
                most, neediest = sensitivity.rows_needed(area, bias), area.where
        if neediest is not None:
            needed[neediest] = most
    worst = max(needed, key=lambda region: needed[region])
    if not math.isfinite(needed[worst]):
        problem = f"no number of rows up to {MAX_ROWS} shows a bias of {bias:g} at {{where}}"
        raise InputError(problem, argument="bias", value=bias, where=repr(str(worst)))
    rows = math.ceil(needed[worst])
    note = f"no region of {counted(len(uncut), 'further covariate')} was looked at"
    return SampleSize(
        rows,
        bias,
        worst,
        {str(region): number for region, number in needed.items()},
        power,
        alpha,
        (note,) if uncut else (),
        clustering=clustering,
        clusters=None if clustering is None else math.ceil(rows * clustering.clusters / n),
    )


def _source_of(rows: object, call: str) -> Sample | Scan:
    """Rows with labels, or with placeholders for them, which nothing here looks at."""
    return without_labels(rows) if isinstance(rows, Population) else checked_source(rows, call)
