"""Directions along which labels are summed and compared with the largest sums a null allows.

A direction has one weight for every row, made without labels. It is taken with both signs. Those
that are never negative (levels, parts, the overall level) stay as they are; others are centred as
in the dictionary, and cut into their positive and their negative part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, BoolArray, FloatArray, InputError
from itrust.calibration.dictionary.default import direction_dictionary
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.data import Points
from itrust.engines import Survey
from itrust.terms import Features


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions that are ready for rows."""

    dictionary: Dictionary
    weights: FloatArray
    features: Features
    is_signed: BoolArray

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What the directions are called."""
        return self.dictionary.entries

    @property
    def overall(self) -> int | None:
        """The direction that is 1 in all rows; None if it is not among them."""
        return next((k for k, own in enumerate(self.features.products) if not own), None)

    @property
    def width(self) -> int:
        """Numbers that a row has: positive parts of all directions, negative parts of some."""
        return len(self.features) + int(self.is_signed.sum())

    def parts(self, points: Points, dtype: DTypeLike) -> AnyArray:
        """Positive parts of all directions, then negative parts of the signed ones, (width, n)."""
        whole = self.features.matrix(points, dtype)
        negative = np.maximum(-whole[self.is_signed], 0)
        return np.concatenate([np.maximum(whole, 0, out=whole), negative])

    def both_signs(self, high: AnyArray, low: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Put sums of the parts together, with labels at their highest and lowest."""
        k = len(self.features)
        up, down = high[:k].copy(), -low[:k]
        up[self.is_signed] -= low[k:]
        down[self.is_signed] += high[k:]
        return up, down


def make_directions(survey: Survey, checks: Dictionary | None) -> Directions:
    """Choose the directions from predictions and covariates alone."""
    points = survey.pilot.points
    dictionary = direction_dictionary(survey.points) if checks is None else _one_by_one(checks)
    products = [entry.features[0] for entry in dictionary.entries]
    is_signed = np.array([not all(term.is_positive for term in own) for own in products])
    features = Features.ranked(products, points)
    features = features.centred(points, survey.pilot.variances, is_signed)
    return Directions(dictionary, np.array(dictionary.weights()), features, is_signed)


def _one_by_one(checks: Dictionary) -> Dictionary:
    """A dictionary of the same features, each an entry of its own."""
    entries = []
    kernels = [entry.name for entry in checks.entries if entry.kernel is not None]
    for entry in checks.entries:
        for number, feature in enumerate(entry.features if entry.kernel is None else (), 1):
            name = entry.name if len(entry.features) == 1 else f"{entry.name}, part {number}"
            entries.append(replace(entry, name=name, features=(feature,), scales=(1.0,)))
    if not entries:
        raise InputError(
            "an interval null takes sums of labels along features, and none of the checks has any: "
            "a kernel's quadratic form is not monotone in the labels",
            argument="kernel",
            value=checks,
            hint="leave kernel= out, or pass a Dictionary with features",
        )
    notes = checks.notes
    if kernels:
        notes = (*notes, f"kernels take no part with an interval null: {', '.join(kernels)}")
    return Dictionary(tuple(entries), checks.shares, notes)
