"""Places that one half of the rows chooses and the other half measures.

A place that was chosen because its bias looks large looks larger than it is. Here one half of the
rows shows, with a band of its own, where the bias is at least of some size, and what the bias is
there is the mean of the other half's rows, which had no part in the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from itrust._core import BoolArray, smallest_tickets, tickets
from itrust.bias.local import LocalBias, estimated_at
from itrust.bias.neighbours import Neighbours
from itrust.bias.places import average
from itrust.bias.slices import halves_of

MAX_PLACES = 500  # of the points, drawn without a look at labels


@dataclass(frozen=True)
class MeasuredPlace:
    """A point of a local bias, chosen by one half of the rows and measured by the other."""

    point: int
    bias: float
    lower: float
    upper: float
    neighbours: float


def beyond(bias: LocalBias, sign: int, tolerance: float) -> BoolArray:
    """Points whose band shows a bias of this sign and at least this size, (m,)."""
    least = np.nan_to_num(sign * bias.band.at_least)
    return np.asarray((least > 0) & (least >= tolerance))


def most_rows(bias: LocalBias, among: BoolArray) -> int:
    """The point with the most neighbours: a choice that does not look for the largest value."""
    return int(np.argmax(np.where(among, bias.size, -1.0)))


def measured_places(bias: LocalBias, tolerance: float) -> tuple[MeasuredPlace, ...]:
    """Places with a bias of at least `tolerance`: one where the model is too low, one too high.

    One half of the rows chooses, always the same: to let the other half choose where this one
    shows nothing would measure on rows that are known to show little.
    """
    halves = halves_of(bias.sample, bias.redraws.seed, purpose=3)
    if not halves:
        return ()
    chooser, other = halves
    some = np.sort(smallest_tickets(tickets(1, len(bias)), MAX_PLACES))
    points = bias.points.take(some)
    places = estimated_at(
        points,
        None,
        replace(bias.redraws, sample=chooser, extract=None),
        whole=chooser,
        kernel=bias.kernel,
        cut=bias.cut,
        min_neighbours=bias.min_neighbours,
        notes=(),
    )
    weights = Neighbours(points, bias.kernel, bias.cut)
    means = average(other, weights, (), draws=0, seed=0, title="other half")
    enough = np.nan_to_num(means.moments.size) >= bias.min_neighbours
    found = []
    for sign in (1, -1):
        shown = beyond(places, sign, tolerance) & enough
        if shown.any():
            k = most_rows(places, shown)
            found.append(
                MeasuredPlace(
                    point=int(some[k]),
                    bias=float(means.values[k]),
                    lower=float(places.band.lower[k]),
                    upper=float(places.band.upper[k]),
                    neighbours=float(min(places.size[k], means.moments.size[k])),
                )
            )
    return tuple(found)
