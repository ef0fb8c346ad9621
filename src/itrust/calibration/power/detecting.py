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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    as_seed,
    checked_count,
    checked_share,
    counted,
)
from itrust.calibration.adaptive import PILOT_ROWS, Checks, PreparedTest, as_dictionary
from itrust.calibration.inputs import checked_draws, checked_source, resolved_kernel
from itrust.calibration.pipeline import Scores, score
from itrust.calibration.power.clusters import ClusterLaw, assumed_clustering
from itrust.calibration.power.results import (
    SMALL_SHARE,
    Clustering,
    Coverage,
    Detectable,
    RegionPower,
    SampleSize,
    region_named,
    worst_of,
)
from itrust.calibration.power.sensitivity import Area, Sensitivity
from itrust.calibration.prepared import Prepared, prepare
from itrust.data import (
    Between,
    Chunk,
    Everywhere,
    Points,
    Population,
    Predicate,
    Sample,
    Scan,
    cut_of,
    without_labels,
)
from itrust.engines import EngineChoice, as_engine, weight_unit
from itrust.nulls import Bernoulli, RowwiseNull, redrawn_labels

SIMULATED_SAMPLES = 400
MAX_ROWS = 10**10
TENTHS, FIFTHS = 10, 5
MAX_CUT = 60  # covariates that are looked at one by one, the first ones
MAX_CROSSED = 20  # covariates that are crossed with one another, the first ones
NOWHERE = -1
Codes = NDArray[np.integer]  # small ones, for there may be many rows


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
    sample = _source_of(sample, "detectable")
    clustering = assumed_clustering(sample, icc, careful=True)
    setting = PowerSetting.of(sample, alpha, power, dictionary, draws, rng, engine, clustering)
    return _detectable(setting, simulations)


def detectable_by(
    test: PreparedTest,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    simulations: int = 0,
    icc: float | None = None,
) -> Detectable:
    """The same for a test that was made already: what it prepared and drew serves again."""
    if not test.result.is_adaptive:
        raise InputError(
            "{argument} must be made over a dictionary, not one kernel", argument="test"
        )
    clustering = assumed_clustering(test.prepared.survey.source, icc, careful=True)
    return _detectable(PowerSetting.of_test(test, alpha, power, clustering), simulations)


def _detectable(setting: PowerSetting, simulations: int) -> Detectable:
    regions, pairs = (
        tuple(
            RegionPower(
                area.where, area.share, *setting.sensitivity.smallest_both(area, setting.power)
            )
            for area in areas
        )
        for areas in (setting.regions(), setting.pairs())
    )
    n, (uncut, uncrossed) = setting.prepared.survey.n, setting.left_out
    simulated, worst = math.nan, worst_of((*regions, *pairs))
    if simulations and setting.sensitivity.law is None and math.isfinite(worst.shift):
        sign = 1 if worst.shift == worst.up else -1
        simulated = setting.simulated_power(worst.where, sign * worst.shift, simulations)
    parts = [isinstance(region.where, Between) for region in regions[1:] if not region.is_small]
    paired = {isinstance(leaf, Between) for pair in pairs for leaf in pair.where.leaves()}
    coverage = Coverage(
        min_rows=math.ceil(SMALL_SHARE * n - 1e-9),
        groups=parts.count(False),
        tenths=parts.count(True),
        pairs=len(pairs),
        paired_groups=False in paired,
        paired_fifths=True in paired,
        uncrossed=uncrossed,
        uncut=uncut,
    )
    return Detectable(
        regions=regions,
        pairs=pairs,
        coverage=coverage,
        power=setting.power,
        alpha=setting.alpha,
        simulated=simulated,
        simulations=0 if math.isnan(simulated) else simulations,
        n=n,
        draws=setting.draws,
        seed=setting.seed,
        clustering=setting.clustering,
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
    sample = _source_of(sample, "sample_size")
    clustering = assumed_clustering(sample, icc, careful=False)
    setting = PowerSetting.of(sample, alpha, power, dictionary, draws, rng, engine, clustering)
    regions, pairs = setting.regions(), setting.pairs()
    if where is not None:
        area = region_named(where, chain(regions, pairs))
        needed = {area.where: setting.rows_needed(area, bias)}
    else:
        large = (area for area in regions if area.share >= SMALL_SHARE)
        needed = {area.where: setting.rows_needed(area, bias) for area in large}
        most, neediest = max(needed.values()), None
        for area in pairs:  # the one that needs the most rows, if it needs more
            if not setting.is_seen(area, bias, most):
                most, neediest = setting.rows_needed(area, bias), area.where
        if neediest is not None:
            needed[neediest] = most
    worst = max(needed, key=lambda region: needed[region])
    if not math.isfinite(needed[worst]):
        raise InputError(
            "no number of rows up to {most} shows a bias of {bias} at {where}",
            argument="bias",
            value=bias,
            details={"most": MAX_ROWS, "bias": f"{bias:g}", "where": repr(str(worst))},
        )
    by_region = {str(region): rows for region, rows in needed.items()}
    rows = math.ceil(needed[worst])
    clusters = None
    if clustering is not None:
        clusters = math.ceil(rows * clustering.clusters / setting.prepared.survey.n)
    uncut = setting.left_out[0] if where is None else ()
    notes = (f"no region of {counted(len(uncut), 'further covariate')} was looked at",)
    return SampleSize(
        rows,
        bias,
        worst,
        by_region,
        power,
        alpha,
        notes if uncut else (),
        clustering=clustering,
        clusters=clusters,
    )


def _source_of(rows: object, call: str) -> Sample | Scan:
    """Rows with labels, or with placeholders for them, which nothing here looks at."""
    if isinstance(rows, Population):
        return without_labels(rows)
    return checked_source(rows, call)


@dataclass(frozen=True, eq=False)
class Cut:
    """Regions that share no row."""

    parts: tuple[Predicate, ...]
    codes: Codes
    pilot: Codes

    @classmethod
    def of(cls, parts: Sequence[Predicate], points: Points, pilot: Points) -> Cut:
        """Mark the rows of regions that share none."""
        return cls(tuple(parts), _codes(parts, points), _codes(parts, pilot))

    @property
    def shares(self) -> FloatArray:
        """Shares of the rows, (G,)."""
        return _counts(self.codes, len(self.parts)) / max(self.codes.size, 1)

    @property
    def members(self) -> csr_array:
        """1 where a row that stands for others lies inside a region, (G, m)."""
        rows = np.flatnonzero(self.pilot != NOWHERE)
        shape = len(self.parts), self.pilot.size
        return csr_array((np.ones(rows.size), (self.pilot[rows], rows)), shape=shape)

    def only(self, kept: IntArray) -> Cut:
        """Keep some of the regions."""
        parts = tuple(self.parts[k] for k in kept.tolist())
        new = _new_codes(len(self.parts), kept)
        return Cut(parts, new[self.codes], new[self.pilot])

    def crossed(self, other: Cut, min_share: float) -> Cut:
        """Pairs of regions with enough rows, and with one at least that stands for them."""
        wide = len(other.parts)
        number = len(self.parts) * wide
        codes, pilot = (
            np.where((a == NOWHERE) | (b == NOWHERE), NOWHERE, a * np.int64(wide) + b)
            for a, b in ((self.codes, other.codes), (self.pilot, other.pilot))
        )
        enough = _counts(codes, number) >= min_share * codes.size
        kept = np.flatnonzero(enough & (_counts(pilot, number) > 0))
        parts = tuple(self.parts[k // wide] & other.parts[k % wide] for k in kept.tolist())
        new = _new_codes(number, kept)
        return Cut(parts, new[codes], new[pilot])


def _codes(parts: Sequence[Predicate], points: Points) -> Codes:
    codes = np.full(len(points), NOWHERE, dtype=np.int16)
    for code, part in enumerate(parts):
        codes[part.rows(points)] = code
    return codes


def _new_codes(number: int, kept: IntArray) -> Codes:
    """Codes of the kept ones in a row, (number + 1,); the last place is that of -1."""
    new = np.full(number + 1, NOWHERE, dtype=np.int16)
    new[kept] = np.arange(kept.size)
    return new


def _counts(codes: Codes, number: int) -> IntArray:
    """How many rows lie in each region, (number,)."""
    return np.bincount(codes[codes != NOWHERE], minlength=number)


def cuts_of(points: Points, pilot: Points) -> Iterator[Cut]:
    """All rows, then every covariate by itself: levels of a category, tenths of a number."""
    yield Cut.of((Everywhere(),), points, pilot)
    for _, parts in islice(_with_parts(points), MAX_CUT):
        cut = Cut.of(parts, points, pilot)
        yield cut.only(np.flatnonzero(_counts(cut.pilot, len(cut.parts)) > 0))


def pairs_of(points: Points, pilot: Points) -> Iterator[Cut]:
    """Pairs of parts of two covariates with at least 1 % of the rows, numbers in fifths."""
    cuts = []
    for _, parts in islice(_with_parts(points, FIFTHS), MAX_CROSSED):
        cut = Cut.of(parts, points, pilot)
        cuts.append(cut.only(np.flatnonzero(cut.shares >= SMALL_SHARE)))
    for one, other in combinations(cuts, 2):
        yield one.crossed(other, SMALL_SHARE)


def left_out(points: Points) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the covariates of which no part, and no pair of parts, is looked at."""
    uncut = islice(_with_parts(points), MAX_CUT, None)
    uncrossed = islice(_with_parts(points, FIFTHS), MAX_CROSSED, None)
    return tuple(name for name, _ in uncut), tuple(name for name, _ in uncrossed)


def _with_parts(points: Points, parts: int = TENTHS) -> Iterator[tuple[str, list[Predicate]]]:
    """Covariates that differ between rows, in order, and their parts."""
    cuts = ((column.name, list(cut_of(column, parts))) for column in points.columns)
    return ((name, found) for name, found in cuts if found)


@dataclass(frozen=True, eq=False)
class PowerSetting:
    """A test that is ready, its critical score, and the rows that stand for all."""

    prepared: Prepared
    sensitivity: Sensitivity
    pilot: Points
    critical: float
    alpha: float
    power: float
    draws: int
    seed: int
    clustering: Clustering | None = None

    @classmethod
    def of(
        cls,
        sample: Sample | Scan,
        alpha: float = 0.05,
        power: float = 0.8,
        checks: Checks | None = None,
        draws: int = 999,
        rng: Rng = None,
        engine: EngineChoice = "auto",
        clustering: Clustering | None = None,
    ) -> PowerSetting:
        """Prepare the test that `klce_test` would make, and run its draws."""
        source, chosen = checked_source(sample), as_engine(engine)
        draws, seed = checked_draws(draws), as_seed(rng)
        _allowed(alpha, power, draws)
        survey = chosen.survey(source, PILOT_ROWS)
        default = resolved_kernel(None, survey)
        dictionary = as_dictionary(checks, survey)
        prepared = prepare(survey, chosen, dictionary, Bernoulli(), draws, default)
        return cls.from_prepared(prepared, None, alpha, power, draws, seed, clustering)

    @classmethod
    def of_test(
        cls, test: PreparedTest, alpha: float, power: float, clustering: Clustering | None
    ) -> PowerSetting:
        """Go on from a test; its draws serve again where they were made from probabilities."""
        result = test.result
        seed = result.seed if result.seed is not None else 0
        reused = test.scores if isinstance(result.null, Bernoulli) else None
        return cls.from_prepared(
            test.prepared, reused, alpha, power, result.draws, seed, clustering
        )

    @classmethod
    def from_prepared(
        cls,
        prepared: Prepared,
        scores: Scores | None,
        alpha: float,
        power: float,
        draws: int,
        seed: int,
        clustering: Clustering | None,
    ) -> PowerSetting:
        """Find the critical score; without scores, draw."""
        prepared = prepared.for_null(Bernoulli())
        if not prepared.weights.size:
            raise InputError("every probability is 0 or 1, so no draw differs from another")
        if scores is None:
            scores = score(prepared, Bernoulli(), draws, seed)
        critical = float(np.sort(scores.combined[1:])[-_allowed(alpha, power, draws)])
        pilot = prepared.survey.rows.first(PILOT_ROWS)
        shuffled = np.argsort(pilot.tickets)  # so that the first of them stand for all, too
        points = pilot.points.take(shuffled)
        v = pilot.points.p * (1 - pilot.points.p)
        variances = pilot.variances / weight_unit(pilot) ** 2
        weights = np.sqrt(np.divide(variances, v, out=np.ones_like(v), where=v > 0))[shuffled]
        law, whole = None, prepared.survey.source.in_memory
        if not (clustering is None or clustering.is_independent or whole is None):
            law = ClusterLaw.of(clustering, whole, prepared.bank)
        sensitivity = Sensitivity.of(prepared, scores, points, weights, critical, law)
        return cls(prepared, sensitivity, points, critical, alpha, power, draws, seed, clustering)

    def regions(self) -> list[Area]:
        """All rows, then the parts of every covariate; those without rows are left out."""
        cuts = cuts_of(self.prepared.survey.points, self.pilot)
        return [area for cut in cuts for area in self._areas(cut)]

    def pairs(self) -> Iterator[Area]:
        """Pairs of parts of two covariates that hold at least 1 % of the rows, some at a time."""
        for cut in pairs_of(self.prepared.survey.points, self.pilot):
            yield from self._areas(cut)

    def _areas(self, cut: Cut) -> list[Area]:
        return self.sensitivity.areas(cut.parts, cut.members, cut.shares)

    @property
    def left_out(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Covariates that no region, and no pair, is about, because there are too many."""
        return left_out(self.prepared.survey.points)

    def is_seen(self, area: Area, bias: float, rows: float) -> bool:
        """Whether so many rows show a bias in every direction it can have."""
        if not math.isfinite(rows):
            return True
        shifts = bias * np.array(self.sensitivity.directions(area, bias))
        return bool((self.sensitivity.power(area, shifts, rows) >= self.power).all())

    def rows_needed(self, area: Area, bias: float) -> float:
        """Rows at which a bias is seen with the wanted power, whichever direction it has."""
        low, high = 10.0, float(MAX_ROWS)
        if not self.is_seen(area, bias, high):
            return math.inf
        while high / low > 1.002:
            middle = math.sqrt(low * high)
            enough = self.is_seen(area, bias, middle)
            low, high = (low, middle) if enough else (middle, high)
        return high

    def simulated_power(self, region: Predicate, shift: float, simulations: int) -> float:
        """Share of samples, drawn with the shift, that the test rejects."""
        seed = as_seed(np.random.default_rng([self.seed, 1]))
        combined = score(self.prepared, _Moved(region, shift), simulations, seed).combined[1:]
        return float(np.mean(combined > self.critical))


def _allowed(alpha: float, power: float, draws: int) -> int:
    """Which of the largest draws is the critical one."""
    checked_share(alpha, "alpha")
    checked_share(power, "power")
    number = math.floor(alpha * (1 + draws) + 1e-9)
    if number < 1:
        raise InputError(
            "{argument} {alpha} needs more than {draws} draws to be reached",
            argument="alpha",
            value=alpha,
            details={"alpha": f"{alpha:g}", "draws": str(draws)},
        )
    return number


@dataclass(frozen=True)
class _Moved(RowwiseNull):
    """Labels from probabilities that are shifted in a region."""

    region: Predicate
    shift: float
    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = "labels drawn from shifted probabilities"

    def draw(self, chunk: Chunk, draws: range, seed: int) -> BoolArray:
        """Labels of the rows, (n, draws)."""
        inside = self.region.rows(chunk.points)
        truth = np.where(inside, np.clip(chunk.p + self.shift, 0.0, 1.0), chunk.p)
        return redrawn_labels(truth, chunk.rows, draws, seed)
