"""Places that one half of the rows chooses and the other half measures.

A place that was chosen because its bias looks large looks larger than it is. Here each half of the
rows shows, with a band of its own, where the bias is at least of some size, and what the bias is
there is the mean of the other half's rows, which had no part in the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from itrust._core import BoolArray, FloatArray, IntArray, smallest_tickets, tickets
from itrust.bias.local import LocalBias, estimated_at
from itrust.bias.neighbours import Neighbours
from itrust.bias.slices import HALVES, halves_of
from itrust.bias.smoothing import average

MAX_PLACES = 500  # of the points, drawn without a look at labels


@dataclass(frozen=True)
class MeasuredPlace:
    """A point of a local bias, chosen by one half of the rows and measured by the other.

    Attributes
    ----------
    point : int
        Number of the point.
    bias : float
        Local bias there, on the rows that did not choose it.
    lower, upper : float
        Interval on the rows that chose it, for all points and both halves together.
    """

    point: int
    bias: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class _Half:
    """What one half of the rows shows, and what the other half measures at the same points."""

    places: LocalBias
    measured: FloatArray
    enough: BoolArray

    def best(self, sign: int, tolerance: float) -> int | None:
        """The point with the most rows among those shown to be off by `tolerance`."""
        cleared = beyond(self.places, sign, tolerance) & self.enough
        return most_rows(self.places, cleared) if cleared.any() else None


def beyond(bias: LocalBias, sign: int, tolerance: float) -> BoolArray:
    """Points whose band shows a bias of this sign and at least this size, (m,)."""
    least = np.nan_to_num(sign * bias.band.at_least)
    return np.asarray((least > 0) & (least >= tolerance))


def most_rows(bias: LocalBias, among: BoolArray) -> int:
    """The point with the most neighbours: a choice that does not look for the largest value."""
    return int(np.argmax(np.where(among, bias.size, -1.0)))


def measured_places(bias: LocalBias, tolerance: float) -> tuple[MeasuredPlace, ...]:
    """Places with a bias of at least `tolerance`: one where the model is too low, one too high.

    Each half is allowed half of the error. The second half chooses only where the first shows
    nothing, so that nobody has to choose between the two by what they measured.
    """
    some = np.sort(smallest_tickets(tickets(1, len(bias)), MAX_PLACES))
    halves = list(_both(bias, some))
    found = []
    for sign in (1, -1):
        chosen = ((half, half.best(sign, tolerance)) for half in halves)
        half, k = next(((half, k) for half, k in chosen if k is not None), (None, None))
        if half is not None and k is not None:
            band = half.places.band
            ends = float(band.lower[k]), float(band.upper[k])
            found.append(MeasuredPlace(int(some[k]), float(half.measured[k]), *ends))
    return tuple(found)


def _both(bias: LocalBias, some: IntArray) -> Iterator[_Half]:
    points = bias.points.take(some)
    parts = halves_of(bias.sample, bias.redraws.seed, purpose=3)
    for number in range(len(parts)):
        own, other = parts[number], parts[1 - number]
        redraws = replace(bias.redraws, sample=own, alpha=bias.alpha / HALVES)
        places = estimated_at(
            points,
            None,
            redraws,
            whole=own,
            kernel=bias.kernel,
            cut=bias.cut,
            min_neighbours=bias.min_neighbours,
            notes=(),
        )
        weights = Neighbours(points, bias.kernel, bias.cut)
        means = average(other, weights, bias.redraws.null, draws=0, seed=0, title="other half")
        enough = np.nan_to_num(means.moments.size) >= bias.min_neighbours
        yield _Half(places, means.values, enough)
