"""What power computations give: the smallest bias that would be seen, the rows it would take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from itrust._core import InputError, Result, did_you_mean
from itrust.data import Predicate

SMALL_SHARE = 0.01  # regions below this share of the rows do not make the headline


@dataclass(frozen=True)
class RegionPower:
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

    @property
    def shift(self) -> float:
        """The larger of the two that are possible; NaN if neither is."""
        possible = [shift for shift in (self.up, self.down) if not math.isnan(shift)]
        return max(possible, default=math.nan)

    @property
    def is_small(self) -> bool:
        """Whether the region has too few rows to make the headline."""
        return self.share < SMALL_SHARE

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            Shifts are numbers, "over 0.5" or "no room".
        """
        facts = {**vars(self), "where": str(self.where), "shift": self.shift}
        return {name: _plain(value) for name, value in facts.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "no room" if math.isnan(value) else "over 0.5"


@dataclass(frozen=True, eq=False, repr=False)
class Detectable(Result):
    """Outcome of `detectable`: the smallest bias that this sample would have shown.

    Attributes
    ----------
    regions : tuple of RegionPower
        One for everywhere, each group and each tenth of each number.
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
    """

    regions: tuple[RegionPower, ...]
    power: float
    alpha: float
    simulated: float
    simulations: int
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
        return self.regions[worst_of(self.regions)]

    def region(self, where: str) -> RegionPower:
        """Give one region by its words.

        Parameters
        ----------
        where : str
            Such as "everywhere" or "region = south".

        Returns
        -------
        RegionPower
            The smallest shifts that are seen there.
        """
        for region in self.regions:
            if str(region.where) == where:
                return region
        known = [str(region.where) for region in self.regions]
        raise InputError(
            "there is no region {value}; {guess}",
            argument="where",
            value=where,
            details={"guess": did_you_mean(where, known)},
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "worst": self.worst.to_dict(),
            "everywhere": self.everywhere.to_dict(),
            "regions": [region.to_dict() for region in self.regions],
            "power": self.power,
            "alpha": self.alpha,
            "simulated": self.simulated if self.simulations else None,
            "simulations": self.simulations,
            "n": self.n,
            "draws": self.draws,
            "seed": self.seed,
            "notes": self.notes,
        }

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each region; nothing where a shift is no number."""
        columns = ("share", "up", "down", "shift")
        return [
            {"where": str(region.where), **{name: getattr(region, name) for name in columns}}
            for region in self.regions
        ]

    def __repr__(self) -> str:
        return f"<Detectable: worst {self.worst.shift:.3g} at {str(self.worst.where)!r}>"


def worst_of(regions: Sequence[RegionPower]) -> int:
    """Which region with enough rows has the largest shift."""
    large = [
        k
        for k, region in enumerate(regions)
        if not region.is_small and not math.isnan(region.shift)
    ]
    return max(large, key=lambda k: regions[k].shift, default=0)


@dataclass(frozen=True, eq=False, repr=False)
class SampleSize(Result):
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
        Rows that each region needs, by its words.
    power : float
        With which the bias is seen.
    alpha : float
        The size of the test.
    notes : tuple of str
        What the numbers take for granted.
    """

    rows: int
    bias: float
    where: Predicate
    by_region: Mapping[str, float]
    power: float
    alpha: float
    notes: tuple[str, ...] = ()

    def _facts(self) -> dict[str, Any]:
        return {**vars(self), "where": str(self.where)}

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each region."""
        return [{"where": where, "rows": rows} for where, rows in self.by_region.items()]

    def __repr__(self) -> str:
        return f"<SampleSize: {self.rows:,} rows for a bias of {self.bias:g}>"
