"""Multicalibration of several classes: shifts of classes in a group, back to rows of sum 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    ListOf,
    ListWith,
    Number,
    Numbers,
    Record,
    Whole,
    inside,
    same_size,
)
from itrust.recalibrate.multicalibration import (
    CELLS,
    MAX_MEMBERS,
    MAX_PATCHES,
    Cells,
    Group,
    Patch,
    Patching,
)
from itrust.recalibrate.multiclass.one_vs_rest import WrappedMethod
from itrust.recalibrate.multiclass.rows import ClassPoints, FittedRows
from itrust.recalibrate.saved import FLAG

POSITION = Whole(0, 10**9)
POSITIONS = ListOf(POSITION)
CLASS_PATCH = ListWith((POSITIONS, POSITIONS, ListOf(Numbers(Number(-1, 1)), at_least=3)))


@dataclass(frozen=True, eq=False)
class ClassPatch:
    """Shifts of the probabilities of one group, by class and bin, (K, bins)."""

    group: Group
    shifts: FloatArray

    def __call__(self, p: FloatArray, bins: IntArray) -> FloatArray:
        """Rows of the group (n, K), whose probabilities lie in these bins, after the shifts."""
        return nearest_probabilities(p + self.shifts[np.arange(p.shape[1]), bins])


class PatchedClasses(WrappedMethod):
    """What `Multicalibration` and `ProportionalMulticalibration` learn of several classes.

    A category is a class, a group and a bin of the class's probability. All categories of a group
    are shifted at once, each by what the method would shift it by with two labels, and then every
    row goes to the nearest one that is not negative and sums to 1. The shifts lower the squared
    distance of the rows from their labels, and the way back does not raise it, so it ends.

    With two labels every category counts that is off by more than alpha, be it by chance. Classes
    times groups times bins are so many categories that chance alone has most of the shifts, and
    new rows are worse off: so a category has to be off by sqrt(2 log m) standard deviations of
    redrawn labels, too, which the largest of m means of noise hardly reach (Donoho and Johnstone
    1994); m counts the categories with enough rows, of groups of as many columns.
    """

    _LEARNED = Record(
        {
            "cells": ListOf(CELLS),
            "patches": ListOf(CLASS_PATCH, at_most=MAX_PATCHES),
            "sweeps": POSITION,
            "converged": FLAG,
        }
    )
    method: Patching
    _seconds = 4.0

    def _fit_classes(self, rows: FittedRows) -> None:
        if getattr(self.method, "discretised", False):
            raise InputError(
                "means of bins do not sum to 1 over classes; leave {argument} at False",
                argument="discretised",
                value=True,
            )
        self.patcher_ = method = clone(self.method)
        method.cells_ = [Cells.of(column, method.parts) for column in rows.carrier.columns]
        codes = method._codes(rows.points.one(0))
        w, p = rows.w, rows.p.copy()
        onehot = np.eye(len(rows.classes))[rows.codes]
        pairs = [(group, np.flatnonzero(group.members(codes))) for group in method._groups(codes)]
        pairs = [(group, own) for group, own in pairs if w[own].sum() >= method.gamma * w.sum()]
        beyond = self._limits(pairs, p, w)
        self.patches_: list[ClassPatch] = []
        self.sweeps_, self.converged_ = 0, False
        while not self.converged_ and self.sweeps_ < method.max_sweeps:
            before = len(self.patches_)
            for group, own in pairs:
                bins = method._bin(p[own])
                limit = beyond[len(group.columns)]
                shifts = self._shifts(onehot[own], p[own], bins, w[own], limit)
                patch = ClassPatch(group, shifts)
                if patch.shifts.any():
                    p[own] = patch(p[own], bins)
                    self.patches_.append(patch)
            self.sweeps_ += 1
            self.converged_ = len(self.patches_) == before

    def _limits(
        self, pairs: Sequence[tuple[Group, IntArray]], p: FloatArray, w: FloatArray
    ) -> dict[int, float]:
        """By how many columns a group is made of: 2 log m, for m categories with enough rows."""
        method, counts = self.patcher_, dict[int, int]()
        for group, own in pairs:
            order = len(group.columns)
            for bins in method._bin(p[own]).T:
                number = np.bincount(bins, minlength=method.bins)
                mass = np.bincount(bins, w[own], minlength=method.bins)
                enough = self._is_enough(number, mass, float(w[own].sum()))
                counts[order] = counts.get(order, 0) + int(enough.sum())
        return {order: 2 * math.log(max(number, 2)) for order, number in counts.items()}

    def _is_enough(self, number: IntArray, mass: FloatArray | IntArray, total: float) -> BoolArray:
        """Which bins of a group have the rows that a category needs, (bins,)."""
        method = self.patcher_
        return np.asarray(
            (number >= method.min_rows) & (mass >= method.alpha / method.bins * total) & (mass > 0)
        )

    def _shifts(
        self, onehot: FloatArray, p: FloatArray, bins: IntArray, w: FloatArray, beyond: float
    ) -> FloatArray:
        """By how much each class and bin of a group is shifted, (K, bins).

        Only where the squared gap is more than `beyond` times its variance: by the probabilities,
        or by the rate of labels where these say more, for shifts may have led to 0 or 1.
        """
        method = self.patcher_
        shifts = np.zeros((p.shape[1], method.bins))
        for code, shift in enumerate(shifts):
            own = bins[:, code]
            number = np.bincount(own, minlength=method.bins)
            spread = p[:, code] * (1 - p[:, code])
            mass, labels, told, squares, noise = (
                np.bincount(own, v, minlength=method.bins)
                for v in (w, w * onehot[:, code], w * p[:, code], w**2, w**2 * spread)
            )
            for k in np.flatnonzero(self._is_enough(number, mass, float(w.sum()))):
                rate, gap = labels[k] / mass[k], (labels[k] - told[k]) / mass[k]
                variance = max(noise[k], rate * (1 - rate) * squares[k]) / mass[k] ** 2
                if abs(gap) > method._tolerance(rate) and gap**2 > beyond * variance:
                    shift[k] = method._step() * gap
        return shifts

    def _predict_classes(self, points: ClassPoints) -> FloatArray:
        codes, p = self.patcher_._codes(points.one(0)), points.p.copy()
        members: dict[Group, IntArray] = {}
        held = 0
        for patch in self.patches_:
            if patch.group not in members:
                if held > MAX_MEMBERS:
                    members, held = {}, 0
                members[patch.group] = np.flatnonzero(patch.group.members(codes))
                held += members[patch.group].size
            rows = members[patch.group]
            p[rows] = patch(p[rows], self.patcher_._bin(p[rows]))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _learned(self) -> dict[str, Any]:
        return {
            "cells": self.patcher_._saved_cells(),
            "patches": [[p.group.columns, p.group.cells, p.shifts] for p in self.patches_],
            "sweeps": self.sweeps_,
            "converged": self.converged_,
        }

    def _restore(self, learned: dict[str, Any]) -> None:
        self.patcher_ = method = clone(self.method)
        method.columns_ = self.columns_
        method.cells_ = [
            Cells(cells["name"], tuple(cells["levels"]), tuple(cells["edges"].tolist()))
            for cells in learned["cells"]
        ]
        method._refuse_odd_cells()
        self.patches_ = []
        for at, (columns, cells, shifts) in enumerate(learned["patches"]):
            place, group = inside("learned.patches", at), Group(tuple(columns), tuple(cells))
            method._refuse_odd_patch(Patch(group, 0, 0.0), place)
            same_size(f"{place}[2]", len(shifts), "classes", len(self.classes_))
            for code, own in enumerate(shifts):
                same_size(f"{place}[2][{code}]", own.size, "settings.bins", method.bins)
            self.patches_.append(ClassPatch(group, np.array(shifts)))
        self.sweeps_, self.converged_ = learned["sweeps"], learned["converged"]


def nearest_probabilities(v: FloatArray) -> FloatArray:
    """For every row of (n, K) the nearest one that is not negative and sums to 1.

    >>> import numpy as np
    >>> nearest_probabilities(np.array([[0.8, 0.4, 0.1]])).round(2)
    array([[0.7, 0.3, 0. ]])
    """
    falling = -np.sort(-v, axis=1)
    over = (np.cumsum(falling, axis=1) - 1) / np.arange(1, v.shape[1] + 1)
    last = (falling > over).sum(axis=1) - 1
    return np.asarray(np.maximum(v - over[np.arange(len(v)), last][:, None], 0.0))
