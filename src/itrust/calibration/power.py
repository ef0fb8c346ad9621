"""What a test could have missed: the smallest bias it would see, and the rows it would take.

The shifts are those of the single best entry, by normal approximation (`sensitivity`): with
several entries that see a shift, the power of the test is higher; with rare events (p = .03, 400
rows) simulated powers were .73 to .80 in tenths and groups where .8 was asked for. The headline is
always tried out by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, Rng, as_seed, did_you_mean
from itrust.calibration.adaptive import Places, as_dictionary
from itrust.calibration.evaluate import Engine, checked_engine
from itrust.calibration.klce import checked_draws, checked_source
from itrust.calibration.pipeline import Prepared, look, prepare
from itrust.calibration.sensitivity import Sensitivity
from itrust.data import Chunk, Points, Predicate, Sample, Scan, regions_of
from itrust.engines import weight_unit
from itrust.nulls import Bernoulli, RowwiseNull, redrawn_labels

ROWS = 2_048
SMALL_SHARE = 0.01  # regions below this share of the rows do not make the headline
CHECKS = 400
MAX_ROWS = 10**10


@dataclass(frozen=True)
class RegionPower:
    """How small a shift in one region is seen.

    Attributes
    ----------
    where : str
    share : float
        Of the rows.
    up, down : float
        Smallest shift of the truth above and below the prediction that is rejected with
        the wanted power; infinity if none up to 0.5 is, NaN if the probabilities leave
        no room for it.
    """

    where: str
    share: float
    up: float
    down: float

    @property
    def shift(self) -> float:
        """The larger of the two that are possible; NaN if neither is."""
        possible = [shift for shift in (self.up, self.down) if not math.isnan(shift)]
        return max(possible, default=math.nan)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: shifts are numbers, "over 0.5" or "no room"."""
        facts = {**vars(self), "shift": self.shift}
        return {name: _plain(value) for name, value in facts.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "no room" if math.isnan(value) else "over 0.5"


@dataclass(frozen=True, eq=False, repr=False)
class Detectable:
    """Outcome of `detectable`: the smallest bias that this sample would have shown.

    Attributes
    ----------
    regions : one for everywhere, each group and each tenth of each number
    power, alpha : float
    simulated : float
        Power found by simulation for the shift of the headline.
    checks : int
        Number of simulated samples behind it.
    """

    regions: tuple[RegionPower, ...]
    power: float
    alpha: float
    simulated: float
    checks: int
    n: int
    draws: int
    seed: int
    notes: tuple[str, ...]

    @property
    def everywhere(self) -> RegionPower:
        """A shift of all rows."""
        return self.regions[0]

    @property
    def worst(self) -> RegionPower:
        """The region, of those with 1 % of the rows or more, where the least is seen."""
        return self.regions[_worst(self.regions)]

    def region(self, where: str) -> RegionPower:
        """One region by its words."""
        for region in self.regions:
            if region.where == where:
                return region
        known = [region.where for region in self.regions]
        raise InputError(f"there is no region {where!r}; {did_you_mean(where, known)}")

    def to_dict(self) -> dict[str, Any]:
        """All facts, ready for JSON."""
        return {
            "worst": self.worst.to_dict(),
            "everywhere": self.everywhere.to_dict(),
            "regions": [region.to_dict() for region in self.regions],
            "power": self.power,
            "alpha": self.alpha,
            "simulated": self.simulated if self.checks else None,
            "checks": self.checks,
            "n": self.n,
            "draws": self.draws,
            "seed": self.seed,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"<Detectable: worst {_size(self.worst.shift)} at {self.worst.where!r}>"

    def __str__(self) -> str:
        head = (
            f"Smallest bias that these {self.n:,} rows would show with power {self.power:g} at "
            f"alpha {self.alpha:g}"
        )
        width = max(len(region.where) for region in self.regions)
        lines = [f"  {'where':<{width}}  {'rows':>7}  {'too low by':>10}  {'too high by':>11}"]
        for region in self.regions:
            small = "   few rows" if region.share < SMALL_SHARE else ""
            lines.append(
                f"  {region.where:<{width}}  {100 * region.share:>6.1f}%  {_size(region.up):>10}  "
                f"{_size(region.down):>11}{small}"
            )
        tail = [
            f"  worst: {_size(self.worst.shift)} at {self.worst.where}"
            + (
                f" (power {self.simulated:.2f} in {self.checks} simulated samples)"
                if self.checks
                else ""
            ),
            "  too low: the truth lies above the prediction. -: no room between 0 and 1.",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join([head, "", *lines, "", *tail])


def _size(shift: float) -> str:
    if math.isnan(shift):
        return "-"
    return f"{shift:.3f}" if math.isfinite(shift) else "over 0.5"


@dataclass(frozen=True, eq=False)
class SampleSize:
    """Outcome of `sample_size`.

    Attributes
    ----------
    rows : int
        Labelled rows to collect, of the kind the pilot sample has.
    bias : float
    where : str
        The region that needs the most.
    by_region : mapping of regions to rows
    """

    rows: int
    bias: float
    where: str
    by_region: dict[str, float]
    power: float
    alpha: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        several = len(self.by_region) > 1
        size = f"{self.rows:,} labelled rows show a bias of {self.bias:g}"
        place = "" if several else f", {self.where},"
        asked = f"with power {self.power:g} at alpha {self.alpha:g}"
        most = f"; most are needed for {self.where}" if several else ""
        return "\n".join([f"{size}{place} {asked}{most}", *(f"note: {n}" for n in self.notes)])


def detectable(
    sample: Sample | Scan,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    dictionary: Places | None = None,
    draws: int = 999,
    checks: int = CHECKS,
    rng: Rng = None,
    engine: Engine = "auto",
) -> Detectable:
    """Find the smallest shift that `klce_test` would have rejected, everywhere and by region.

    Regions: all rows, every level of every category, every tenth of every number. Labels are
    not looked at. The shift of the headline is tried out on `checks` simulated samples.

    Parameters
    ----------
    sample : Sample or Scan
    alpha, power : float
    dictionary : Dictionary or mapping of names to kernels, optional
        Default: that of `klce_test`.
    draws : int
    checks : int
        0 leaves the simulation out.
    rng : int, Generator or None
    engine : as for `klce_test`

    Examples
    --------
    >>> import itrust as it
    >>> d = it.detectable(it.simulate.survey(2_000, rng=0).sample, draws=199, checks=0, rng=0)
    >>> d.everywhere.shift < 0.05 < d.worst.shift
    True
    """
    if isinstance(checks, bool) or not isinstance(checks, int | np.integer) or checks < 0:
        raise InputError(f"checks must be a whole number, 0 or more, not {checks!r}")
    setting = Setting.of(sample, alpha, power, dictionary, draws, rng, engine)
    masks = setting.masks()
    regions = tuple(
        RegionPower(
            str(region), setting.share(region), *setting.sensitivity.smallest_both(inside, power)
        )
        for region, inside in masks
    )
    at = _worst(regions)
    simulated, worst = math.nan, regions[at]
    if checks and math.isfinite(worst.shift):
        sign = 1 if worst.shift == worst.up else -1
        simulated = setting.simulated_power(masks[at][0], sign * worst.shift, int(checks))
    return Detectable(
        regions=regions,
        power=power,
        alpha=alpha,
        simulated=simulated,
        checks=0 if math.isnan(simulated) else int(checks),
        n=setting.prepared.sample.n,
        draws=setting.draws,
        seed=setting.seed,
        notes=setting.notes,
    )


def _worst(regions: Sequence[RegionPower]) -> int:
    """Which region with enough rows has the largest shift."""
    large = [
        k
        for k, region in enumerate(regions)
        if region.share >= SMALL_SHARE and not math.isnan(region.shift)
    ]
    return max(large, key=lambda k: regions[k].shift, default=0)


def sample_size(
    sample: Sample | Scan,
    bias: float = 0.05,
    *,
    where: str | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    dictionary: Places | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: Engine = "auto",
) -> SampleSize:
    """How many labelled rows would show a bias of this size, in either direction.

    The rows at hand stand for those to come: predictions and covariates count. Labels are not
    looked at; where there are none yet, pass zeros.

    Parameters
    ----------
    sample : Sample or Scan
    bias : float
        Shift of the truth against the prediction.
    where : str, optional
        A region in the words of `detectable`, such as "everywhere" or "region = south";
        default: every region with 1 % of the rows or more.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(1_000, rng=0).sample
    >>> some = it.sample_size(town, 0.05, where="everywhere", draws=199, rng=0)
    >>> all_ = it.sample_size(town, 0.05, draws=199, rng=0)
    >>> 500 < some.rows < 2_500 < all_.rows
    True
    """
    if not isinstance(bias, int | float) or not 0 < bias < 1:
        raise InputError(f"bias must lie between 0 and 1, not {bias!r}")
    setting = Setting.of(sample, alpha, power, dictionary, draws, rng, engine)
    masks = setting.masks()
    known = [str(region) for region, _ in masks]
    if where is not None and where not in known:
        raise InputError(f"there is no region {where!r}; {did_you_mean(where, known)}")
    needed = {}
    for region, inside in masks:
        wanted = str(region) == where if where else setting.share(region) >= SMALL_SHARE
        if wanted:
            needed[str(region)] = max(
                setting.rows_needed(inside, sign * bias)
                for sign in setting.sensitivity.directions(inside, bias)
            )
    worst = max(needed, key=lambda region: needed[region])
    if not math.isfinite(needed[worst]):
        raise InputError(
            f"no number of rows up to {MAX_ROWS:,} shows a bias of {bias:g} at {worst!r}"
        )
    rows = math.ceil(needed[worst])
    return SampleSize(rows, float(bias), worst, needed, power, alpha, setting.notes)


@dataclass(frozen=True, eq=False)
class Setting:
    """A test that is ready, its critical score, and the rows that stand for all."""

    prepared: Prepared
    sensitivity: Sensitivity
    pilot: Points
    critical: float
    power: float
    draws: int
    seed: int
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        sample: Sample | Scan,
        alpha: float,
        power: float,
        dictionary: Places | None,
        draws: int,
        rng: Rng,
        engine: Engine,
    ) -> Setting:
        """Check everything, run the draws, and keep what the answers are made of."""
        checked_source(sample)
        checked_engine(engine)
        for name, value in (("alpha", alpha), ("power", power)):
            if not isinstance(value, int | float) or not 0 < value < 1:
                raise InputError(f"{name} must lie between 0 and 1, not {value!r}")
        draws, seed = checked_draws(draws), as_seed(rng)
        allowed = math.floor(alpha * (1 + draws) + 1e-9)
        if allowed < 1:
            raise InputError(f"alpha {alpha:g} needs more than {draws} draws to be reached")
        null = Bernoulli()
        places = as_dictionary(dictionary, sample, engine)
        prepared = prepare(sample, places, null, draws, engine)
        if not prepared.weights.size:
            raise InputError("every probability is 0 or 1, so no draw differs from another")
        looks = look(prepared, null, draws, seed)
        critical = float(np.sort(looks.combined[1:])[-allowed])
        pilot, variances = sample.pilot(ROWS)
        weights = _weights(pilot, variances / weight_unit(pilot, variances) ** 2)
        sensitivity = Sensitivity.of(prepared, looks, pilot, weights, critical)
        notes = (
            ("rows are taken as independent; with clusters less is seen",)
            if sample.clusters is not None
            else ()
        )
        return cls(prepared, sensitivity, pilot, critical, power, draws, seed, notes)

    def masks(self) -> list[tuple[Predicate, BoolArray]]:
        """Regions and the pilot rows inside them; those without rows are left out."""
        found = [(region, region.rows(self.pilot)) for region in regions_of(self._points)]
        return [(region, inside) for region, inside in found if inside.any()]

    def share(self, region: Predicate) -> float:
        """Share of the rows that lie inside."""
        return float(region.rows(self._points).mean())

    @property
    def _points(self) -> Points:
        """All rows where they are in memory, else those that stand for them."""
        sample = self.prepared.sample
        return sample.points if isinstance(sample, Sample) else self.pilot

    def rows_needed(self, inside: BoolArray, shift: float) -> float:
        """Rows at which a shift is seen with the wanted power."""
        low, high = 10.0, float(MAX_ROWS)
        reached = self.sensitivity.power(inside, np.array([shift]), high)[0] >= self.power
        if not reached:
            return math.inf
        while high / low > 1.002:
            middle = math.sqrt(low * high)
            enough = self.sensitivity.power(inside, np.array([shift]), middle)[0] >= self.power
            low, high = (low, middle) if enough else (middle, high)
        return high

    def simulated_power(self, region: Predicate, shift: float, checks: int) -> float:
        """Share of samples, drawn with the shift, that the test rejects."""
        moved = _Moved(region, shift)
        seed = as_seed(np.random.default_rng([self.seed, 1]))
        combined = look(self.prepared, moved, checks, seed).combined[1:]
        return float(np.mean(combined > self.critical))


def _weights(pilot: Points, variances: FloatArray) -> FloatArray:
    v = pilot.p * (1 - pilot.p)
    return np.sqrt(np.divide(variances, v, out=np.ones_like(v), where=v > 0))


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
