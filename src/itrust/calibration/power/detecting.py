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
from itertools import chain

from itrust._core import InputError, Rng, checked_count, checked_share, counted
from itrust.calibration.adaptive import Checks, PreparedTest
from itrust.calibration.inputs import checked_source
from itrust.calibration.power.clusters import assumed_clustering
from itrust.calibration.power.results import (
    SMALL_SHARE,
    Coverage,
    Detectable,
    RegionPower,
    SampleSize,
    region_named,
    worst_of,
)
from itrust.calibration.power.sensitivity import MAX_ROWS, Sensitivity, left_out
from itrust.data import Between, Population, Sample, Scan, without_labels
from itrust.engines import EngineChoice
from itrust.nulls import Bernoulli

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
        area = region_named(where, chain(regions, pairs))
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
        raise InputError(
            f"no number of rows up to {MAX_ROWS} shows a bias of {bias:g} at {{where}}",
            argument="bias",
            value=bias,
            details={"where": repr(str(worst))},
        )
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
