"""What a test could have missed: the smallest bias it would see, and the rows it would take.

A shift of the probabilities in some region moves every entry of the dictionary by an amount that
is known in closed form, and so is the spread about it. The test rejects when any entry reaches its
critical value; the power computed is that of the single best entry, by normal approximation. Where
several entries see the shift, the test has more; where events are rare, it can have a little
less (.7 where .8 was asked for, with 400 rows at p = .03). Nothing here looks at a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from itrust.adaptive import Places, as_dictionary
from itrust.engine.bank import ROWS_FOR_KERNELS, Bank
from itrust.engine.plan import Plan, low_rank, weight_unit
from itrust.errors import InputError, did_you_mean
from itrust.evaluate import Engine, checked_engine
from itrust.files import Scan
from itrust.klce import checked_draws, checked_source
from itrust.looks import Looks, Prepared, look, prepare
from itrust.nulls import Bernoulli, RowwiseNull
from itrust.nulls.simulated import redrawn_labels
from itrust.points import Chunk, Points
from itrust.regions import Region, regions_of
from itrust.sample import Sample
from itrust.seeds import Rng, as_seed
from itrust.tails import pearson3_log_sf
from itrust.typing import BoolArray, FloatArray, IntArray

SHIFTS = np.array(
    [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.11, 0.15, 0.2, 0.3, 0.4, 0.5]
)
ROWS = 2_048
SMALL_SHARE = 0.01  # regions below this share of the rows do not make the headline
ROOM = 0.8  # of a shift that must fit between 0 and 1 on average
CHECKS = 400
MOST_ROWS = 10**10


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
    power, level : float
    simulated : float
        Power found by simulation for the shift of the headline.
    checks : int
        Number of simulated samples behind it.
    """

    regions: tuple[RegionPower, ...]
    power: float
    level: float
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
            "level": self.level,
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
            f"level {self.level:g}"
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
    level: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        several = len(self.by_region) > 1
        size = f"{self.rows:,} labelled rows show a bias of {self.bias:g}"
        place = "" if several else f", {self.where},"
        asked = f"with power {self.power:g} at level {self.level:g}"
        most = f"; most are needed for {self.where}" if several else ""
        return "\n".join([f"{size}{place} {asked}{most}", *(f"note: {n}" for n in self.notes)])


def detectable(
    sample: Sample | Scan,
    *,
    level: float = 0.05,
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
    level, power : float
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
    setting = _Setting.of(sample, level, power, dictionary, draws, rng, engine)
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
        level=level,
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
    level: float = 0.05,
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
    setting = _Setting.of(sample, level, power, dictionary, draws, rng, engine)
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
            f"no number of rows up to {MOST_ROWS:,} shows a bias of {bias:g} at {worst!r}"
        )
    rows = math.ceil(needed[worst])
    return SampleSize(rows, float(bias), worst, needed, power, level, setting.notes)


@dataclass(frozen=True, eq=False)
class _Setting:
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
        level: float,
        power: float,
        dictionary: Places | None,
        draws: int,
        rng: Rng,
        engine: Engine,
    ) -> _Setting:
        checked_source(sample)
        checked_engine(engine)
        for name, value in (("level", level), ("power", power)):
            if not isinstance(value, int | float) or not 0 < value < 1:
                raise InputError(f"{name} must lie between 0 and 1, not {value!r}")
        draws, seed = checked_draws(draws), as_seed(rng)
        allowed = math.floor(level * (1 + draws) + 1e-9)
        if allowed < 1:
            raise InputError(f"level {level:g} needs more than {draws} draws to be reached")
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

    def masks(self) -> list[tuple[Region, BoolArray]]:
        """Regions and the pilot rows inside them; those without rows are left out."""
        found = [(region, region.rows(self.pilot)) for region in regions_of(self._points)]
        return [(region, inside) for region, inside in found if inside.any()]

    def share(self, region: Region) -> float:
        """Share of the rows that lie inside."""
        return float(region.rows(self._points).mean())

    @property
    def _points(self) -> Points:
        """All rows where they are in memory, else those that stand for them."""
        sample = self.prepared.sample
        return sample.points if isinstance(sample, Sample) else self.pilot

    def rows_needed(self, inside: BoolArray, shift: float) -> float:
        """Rows at which a shift is seen with the wanted power."""
        low, high = 10.0, float(MOST_ROWS)
        reached = self.sensitivity.power(inside, np.array([shift]), high)[0] >= self.power
        if not reached:
            return math.inf
        while high / low > 1.002:
            middle = math.sqrt(low * high)
            enough = self.sensitivity.power(inside, np.array([shift]), middle)[0] >= self.power
            low, high = (low, middle) if enough else (middle, high)
        return high

    def simulated_power(self, region: Region, shift: float, checks: int) -> float:
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

    region: Region
    shift: float
    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = "labels drawn from shifted probabilities"

    def draw(self, chunk: Chunk, draws: range, seed: int) -> BoolArray:
        """Labels of the rows, (n, draws)."""
        inside = self.region.rows(chunk.points)
        truth = np.where(inside, np.clip(chunk.p + self.shift, 0.0, 1.0), chunk.p)
        return redrawn_labels(truth, chunk.rows, draws, seed)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Power of the best entry against a shift of some rows, by normal approximation.

    Attributes
    ----------
    critical_up, critical_down : (E,) arrays
        Standardised values that reach the critical score, on the positive and negative side.
    """

    prepared: Prepared
    p: FloatArray
    weights: FloatArray
    features: FloatArray
    squares: FloatArray
    expected: FloatArray
    single_scales: FloatArray
    moments: dict[int, tuple[IntArray, FloatArray]]
    kernels: tuple[_Dense, ...]
    critical_up: FloatArray
    critical_down: FloatArray
    critical_normal: FloatArray
    n: int

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        looks: Looks,
        pilot: Points,
        weights: FloatArray,
        critical: float,
    ) -> Sensitivity:
        """From a prepared test and rows that stand for all."""
        bank = prepared.bank
        features = np.asarray(bank.matrix(pilot), dtype=float)
        few = pilot.take(slice(0, ROWS_FOR_KERNELS))
        squares = bank.selector @ np.square(features)
        v = np.square(weights) * pilot.p * (1 - pilot.p)
        kernels = []
        sds = iter(looks.sd[len(bank.entries) :] / looks.n)
        for kernel in prepared.kernels:
            if kernel.entry is not None:
                if kernel.kernel.is_positional:
                    raise InputError("a precomputed matrix cannot say what other rows would show")
                everything = slice(None)
                matrix = (
                    low_rank(kernel.how, few)
                    if isinstance(kernel.how, Plan)
                    else kernel.kernel.gram(few).block(everything, everything)
                )
                kernels.append(_Dense.of(matrix, v[: len(few)], next(sds)))
        needed = critical - np.log(prepared.weights)
        two_sided = np.where(looks.single, np.log(2), 0.0)
        up, down, normal = (
            _inverse_tail(needed + two_sided, np.maximum(sign * looks.skewness, 0.0))
            for sign in (1, -1, 0)
        )
        return cls(
            prepared=prepared,
            p=pilot.p,
            weights=weights,
            features=features,
            squares=squares,
            expected=squares @ v,
            single_scales=np.sqrt(np.asarray(bank.selector.sum(axis=1)).ravel()),
            moments=_moments(bank, features, v),
            kernels=tuple(kernels),
            critical_up=up,
            critical_down=down,
            critical_normal=np.where(looks.single, normal, up),
            n=looks.n,
        )

    def directions(self, inside: BoolArray, shift: float = 0.05) -> tuple[int, ...]:
        """Ways in which probabilities can be shifted by that much; the better one at least."""
        p = self.p[inside]
        room = {sign: np.abs(np.clip(p + sign * shift, 0, 1) - p).mean() for sign in (1, -1)}
        able = tuple(sign for sign in room if room[sign] >= ROOM * shift)
        return able or (max(room, key=lambda sign: room[sign]),)

    def smallest_both(self, inside: BoolArray, wanted: float) -> tuple[float, float]:
        """The smallest shifts up and down that are seen; NaN for a way without room.

        Where neither way has room (probabilities near 0 and near 1 side by side), the way with
        more of it is taken, and the shift is the one that the rows have on average.
        """
        up, down = (self.smallest(inside, sign, wanted) for sign in (1, -1))
        if not (math.isnan(up) and math.isnan(down)):
            return up, down
        sign = self.directions(inside)[0]
        shift = self.smallest(inside, sign, wanted, cramped=True)
        if math.isfinite(shift):
            p = self.p[inside]
            shift = float(np.abs(np.clip(p + sign * shift, 0, 1) - p).mean())
        return (shift, math.nan) if sign > 0 else (math.nan, shift)

    def smallest(
        self, inside: BoolArray, sign: int, wanted: float, *, cramped: bool = False
    ) -> float:
        """The smallest shift one way that is seen with the wanted power.

        Only shifts that fit between 0 and 1 count, unless `cramped`: NaN if those that fit are
        not seen, infinity if 0.5 fits and is not seen.
        """
        p = self.p[inside, None]
        moved = np.abs(np.clip(p + sign * SHIFTS, 0, 1) - p).mean(axis=0)
        shifts = SHIFTS if cramped else SHIFTS[moved >= ROOM * SHIFTS]
        if shifts.size == 0:
            return math.nan
        low, high = _first_reached(shifts, self.power(inside, sign * shifts), wanted)
        if not math.isfinite(high):
            return math.inf if shifts[-1] == SHIFTS[-1] else math.nan
        between = np.linspace(low, high, 21)[1:]
        return _first_reached(between, self.power(inside, sign * between), wanted)[1]

    def power(self, inside: BoolArray, shifts: FloatArray, rows: float | None = None) -> FloatArray:
        """Power against each shift, (k,), with as many rows as asked for."""
        n = self.n if rows is None else rows
        up, down = (self._critical(side, n) for side in (self.critical_up, self.critical_down))
        moving = np.flatnonzero(inside)
        truth = np.clip(self.p[moving, None] + shifts, 0.0, 1.0)
        found = [self._of_features(moving, truth, n / self.p.size, up, down)]
        few = moving < ROWS_FOR_KERNELS
        for kernel, needed in zip(self.kernels, up[len(self.prepared.bank.entries) :], strict=True):
            found.append(self._of_kernel(kernel, moving[few], truth[few], n, float(needed)))
        return np.asarray(np.concatenate(found).max(axis=0))

    def _critical(self, side: FloatArray, n: float) -> FloatArray:
        """Critical values with n rows: the skewness of a sum shrinks with their root."""
        return self.critical_normal + (side - self.critical_normal) * math.sqrt(self.n / n)

    def _of_features(
        self,
        moving: IntArray,
        truth: FloatArray,
        scale: float,
        critical_up: FloatArray,
        critical_down: FloatArray,
    ) -> FloatArray:
        """Power of every entry made of features, (E, k)."""
        bank = self.prepared.bank
        if not bank.entries:
            return np.zeros((1, truth.shape[1]))
        w, p = self.weights[moving, None], self.p[moving, None]
        moved, squares = truth - p, self.squares[:, moving]
        means = scale * (self.features[:, moving] @ (w * moved))  # (R, k)
        own = scale * (squares @ (w * moved) ** 2)  # the shift's part in the diagonal
        expected = scale * self.expected[:, None]
        spread = expected + scale * (squares @ (w**2 * (truth * (1 - truth) - p * (1 - p))))
        swollen = np.maximum((spread + own) / expected, 1.0)
        up, down = (c[: len(bank.entries), None] for c in (critical_up, critical_down))
        power = np.empty(swollen.shape)
        at = np.flatnonzero(bank.single >= 0)
        mean = means[bank.single[at]] * self.single_scales[at, None]
        unit = np.sqrt(expected[at] * swollen[at])
        sd = np.sqrt(np.maximum(spread[at], 0.0)) / unit + 1e-12
        power[at] = ndtr((mean / unit - up[at]) / sd) + ndtr((-mean / unit - down[at]) / sd)
        at = np.flatnonzero(bank.single < 0)
        if at.size:
            null_sd = bank.shapes.take(at).of_forms(expected[at, 0])[0][:, None]
            value = bank.selector[at] @ np.square(means) - own[at]
            noise = scale * np.stack([self._noise(k, means) for k in at.tolist()])
            total_sd = np.sqrt((null_sd * spread[at] / expected[at]) ** 2 + noise)
            power[at] = ndtr((value - up[at] * null_sd * swollen[at]) / total_sd)
        return power

    def _noise(self, entry: int, means: FloatArray) -> FloatArray:
        """4 mu' C mu for the features of one entry, (k,); C of the rows that stand for all."""
        columns, moments = self.moments[entry]
        chosen = means[columns]
        return np.asarray(4 * np.einsum("rk,rk->k", chosen, moments @ chosen))

    def _of_kernel(
        self,
        kernel: _Dense,
        moving: IntArray,
        truth: FloatArray,
        n: float,
        critical: float,
    ) -> FloatArray:
        """Power of a kernel that is known on some rows, (1, k)."""
        scale = n / len(kernel.v)
        w, v, diagonal = self.weights[moving, None], kernel.v, kernel.diagonal
        p = self.p[moving, None]
        moved = w * (truth - p)
        smoothed = kernel.matrix[:, moving] @ moved
        own = diagonal[moving] @ moved**2
        value = scale**2 * (np.sum(moved * smoothed[moving], axis=0) - own)
        spread = kernel.expected + diagonal[moving] @ (w**2 * (truth * (1 - truth) - p * (1 - p)))
        swollen = np.maximum((spread + own) / kernel.expected, 1.0)
        null_sd = n * kernel.null_sd
        noise = 4 * scale**3 * (v @ np.square(smoothed))
        total_sd = np.sqrt((null_sd * spread / kernel.expected) ** 2 + noise) + 1e-300
        return np.asarray(ndtr((value - critical * null_sd * swollen) / total_sd))[None]


@dataclass(frozen=True, eq=False)
class _Dense:
    """A kernel on some rows; its null sd, from all rows, is that of one row and grows with n."""

    matrix: FloatArray
    diagonal: FloatArray
    v: FloatArray
    expected: float
    null_sd: float

    @classmethod
    def of(cls, matrix: FloatArray, v: FloatArray, null_sd: float) -> _Dense:
        diagonal = np.diagonal(matrix).copy()
        return cls(matrix, diagonal, v, float(diagonal @ v), null_sd)


def _moments(
    bank: Bank, features: FloatArray, v: FloatArray
) -> dict[int, tuple[IntArray, FloatArray]]:
    """For entries of several features: which, and L C L with C = F'VF and L their scales^2."""
    found = {}
    for entry in np.flatnonzero(bank.single < 0).tolist():
        row = slice(bank.selector.indptr[entry], bank.selector.indptr[entry + 1])
        columns: IntArray = bank.selector.indices[row].astype(np.int64)
        scales: FloatArray = bank.selector.data[row]
        f = features[columns]
        found[entry] = columns, scales[:, None] * ((f * v) @ f.T) * scales
    return found


def _inverse_tail(needed: FloatArray, skewness: FloatArray) -> FloatArray:
    """Z with -log P(Z >= z) = needed, by bisection."""
    low, high = np.full(needed.shape, -2.0), np.full(needed.shape, 4.0)
    while (short := -pearson3_log_sf(high, skewness) < needed).any():
        high = np.where(short, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        above = -pearson3_log_sf(middle, skewness) >= needed
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def _first_reached(shifts: FloatArray, powers: FloatArray, wanted: float) -> tuple[float, float]:
    """The shifts between which the power first reaches what is wanted."""
    reached = np.flatnonzero(powers >= wanted)
    if reached.size == 0:
        return math.inf, math.inf
    at = int(reached[0])
    return float(shifts[at - 1]) if at else 0.0, float(shifts[at])
