"""Multicalibration of several classes: shifts of one class in one group, back onto the simplex."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from itrust._core import FloatArray, InputError, IntArray
from itrust.recalibrate.multicalibration import (
    CELLS,
    MAX_PATCHES,
    Cells,
    Group,
    Patch,
    Patching,
)
from itrust.recalibrate.multiclass.one_vs_rest import WrappedMethod
from itrust.recalibrate.multiclass.rows import ClassPoints, ClassRows
from itrust.recalibrate.saved import FLAG
from itrust.recalibrate.shapes import ListOf, ListWith, Number, Record, Whole, inside, unfit

POSITION = Whole(0, 10**9)
POSITIONS = ListOf(POSITION)
CLASS_PATCH = ListWith((POSITION, POSITIONS, POSITIONS, POSITION, Number(-1, 1)))


class PatchedClasses(WrappedMethod):
    """What `Multicalibration` and `ProportionalMulticalibration` learn of several classes.

    A category is a class, a group and a bin of the class's probability. Its rows are shifted in
    this class by what the method shifts two labels by, and then each goes to the nearest row that
    is not negative and sums to 1. Of a row's squared distance from its label, the shift takes more
    than the square of the tolerance on average, and the way back nothing, so it ends.
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

    def _fit_classes(self, rows: ClassRows) -> None:
        method = self.method
        if getattr(method, "discretised", False):
            raise InputError(
                "means of bins do not sum to 1 over classes; leave {argument} at False",
                argument="discretised",
                value=True,
            )
        self.patcher_ = method = clone(method)
        method.cells_ = [Cells.of(column, method.parts) for column in rows.carrier.columns]
        codes = method._codes(rows.points.one(0))
        w, p = rows.w, rows.p.copy()
        pairs = [
            (group, np.flatnonzero(group.members(codes))) for group in method._groups(codes)
        ]
        pairs = [(group, own) for group, own in pairs if w[own].sum() >= method.gamma * w.sum()]
        self.patches_: list[tuple[int, Patch]] = []
        self.sweeps_, self.converged_ = 0, False
        while not self.converged_ and self.sweeps_ < method.max_sweeps:
            before = len(self.patches_)
            for group, own in pairs:
                for code in range(len(rows.classes)):
                    self._patch_group(group, own, code, rows, p)
            self.sweeps_ += 1
            self.converged_ = len(self.patches_) == before

    def _patch_group(
        self, group: Group, own: IntArray, code: int, rows: ClassRows, p: FloatArray
    ) -> None:
        method, w = self.patcher_, rows.w
        mass = float(w[own].sum())
        for number in np.unique(method._bin(p[own, code])):
            here = own[method._bin(p[own, code]) == number]
            weight = float(w[here].sum())
            if here.size < method.min_rows or weight < method.alpha / method.bins * mass:
                continue
            rate = float(w[here] @ (rows.codes[here] == code)) / weight
            gap = rate - float(w[here] @ p[here, code]) / weight
            if abs(gap) > method._tolerance(rate):
                shift = method._step() * gap
                p[here] = shifted(p[here], code, shift)
                self.patches_.append((code, Patch(group, int(number), shift)))

    def _predict_classes(self, points: ClassPoints) -> FloatArray:
        codes, p = self.patcher_._codes(points.one(0)), points.p.copy()
        members: dict[Group, IntArray] = {}
        for code, patch in self.patches_:
            if patch.group not in members:
                members[patch.group] = np.flatnonzero(patch.group.members(codes))
            rows = members[patch.group]
            here = rows[self.patcher_._bin(p[rows, code]) == patch.bin]
            p[here] = shifted(p[here], code, patch.shift)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _learned(self) -> dict[str, Any]:
        return {
            "cells": self.patcher_._saved_cells(),
            "patches": [
                [code, p.group.columns, p.group.cells, p.bin, p.shift] for code, p in self.patches_
            ],
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
        self.patches_ = [
            (code, Patch(Group(tuple(columns), tuple(cells)), number, shift))
            for code, columns, cells, number, shift in learned["patches"]
        ]
        for at, (code, patch) in enumerate(self.patches_):
            place = inside("learned.patches", at)
            if code >= len(self.classes_):
                unfit(f"{place}[0]", f"must be below the number of classes, {len(self.classes_)}")
            method._refuse_odd_patch(patch, place, first=1)
        self.sweeps_, self.converged_ = learned["sweeps"], learned["converged"]


def shifted(p: FloatArray, code: int, shift: float) -> FloatArray:
    """Rows (n, K) with one class moved, and then the nearest rows that are probabilities.

    >>> import numpy as np
    >>> shifted(np.array([[0.5, 0.4, 0.1]]), 0, 0.3).round(2)
    array([[0.65, 0.3 , 0.05]])
    """
    moved = p.copy()
    moved[:, code] += shift
    return nearest_probabilities(moved)


def nearest_probabilities(v: FloatArray) -> FloatArray:
    """For every row of (n, K) the nearest one that is not negative and sums to 1."""
    falling = -np.sort(-v, axis=1)
    over = (np.cumsum(falling, axis=1) - 1) / np.arange(1, v.shape[1] + 1)
    last = (falling > over).sum(axis=1) - 1
    return np.asarray(np.maximum(v - over[np.arange(len(v)), last][:, None], 0.0))
