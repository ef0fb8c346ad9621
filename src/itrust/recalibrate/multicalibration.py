"""Recalibration of groups: multicalibration and its proportional form, by patches; `MCGrad`.

A *category* is a group of rows with predictions in one of the bins. While some category that is
large enough has a mean label too far from its mean prediction, its predictions are shifted by the
difference. The shifts are kept, and replayed on new rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from itrust._core import (
    LARGEST_FLOAT,
    EntryShape,
    FloatArray,
    InputError,
    IntArray,
    ListOf,
    ListWith,
    Made,
    Number,
    Numbers,
    Record,
    SavedLevel,
    Text,
    inside,
    same_size,
    tuple_of,
    unfit,
)
from itrust.data import Column, Points, Rows
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.saved import COUNT, FLAG, POSITION, PROBABILITY, SHARE
from itrust.terms import COLUMN_LEVELS, frequent_values

COUNTS = ("min_rows", "bins", "parts", "crossings", "max_sweeps")
SHARED: dict[str, EntryShape] = {"alpha": SHARE, "gamma": SHARE, **dict.fromkeys(COUNTS, COUNT)}
MAX_PATCHES = 1_000_000
MAX_MEMBERS = 2**24  # rows of groups that are remembered between patches
FOLDS = 5  # of the cross-validation by which the package MCGrad finds when to stop
PREDICTION, LABEL, WEIGHT = "itrust p", "itrust y", "itrust w"
EDGES = Numbers(Number(-LARGEST_FLOAT, LARGEST_FLOAT), apart=True)


@dataclass(frozen=True)
class Cells:
    """How one covariate is cut: its levels, or intervals of a number closed on the right."""

    name: str
    levels: tuple[Any, ...] = ()
    edges: tuple[float, ...] = ()

    @classmethod
    def of(cls, column: Column, parts: int) -> Cells:
        """Levels of a category, most frequent first; values of a number that has few; quantiles."""
        if column.is_category:
            codes = frequent_values(column)[0][:COLUMN_LEVELS]
            return cls(column.name, tuple(column.levels[code] for code in codes))
        present = column.values[~column.missing]
        values = np.unique(present)
        if values.size <= parts:
            return cls(column.name, tuple(float(value) for value in values))
        cuts = np.quantile(present, np.linspace(0, 1, parts + 1)[1:-1], method="inverted_cdf")
        inner = np.unique(cuts[cuts < values[-1]])
        return cls(column.name, edges=tuple(float(cut) for cut in inner))

    @property
    def number(self) -> int:
        """Of cells, one for missing values among them."""
        return (len(self.levels) or len(self.edges) + 1) + 1

    def codes(self, column: Column) -> IntArray:
        """The cell of every row, (n,); -1 where the value is in none of them."""
        if self.levels and column.is_category:
            at = {level: code for code, level in enumerate(self.levels)}
            lookup = np.array([at.get(level, -1) for level in column.levels] + [self.number - 1])
            codes = lookup[column.values]
        elif self.levels:
            known = np.array(self.levels)
            order = np.argsort(known)
            at_most = np.minimum(np.searchsorted(known[order], column.values), known.size - 1)
            codes = np.where(known[order][at_most] == column.values, order[at_most], -1)
        else:
            codes = np.searchsorted(np.array(self.edges), column.values)
        return np.asarray(np.where(column.missing, self.number - 1, codes), dtype=np.int64)


Group = tuple[tuple[int, ...], tuple[int, ...]]  # a cell of each of some columns; none: all rows
Patch = tuple[tuple[int, ...], tuple[int, ...], int, float]  # a group, a bin, and the shift there


def _members(group: Group, codes: Sequence[IntArray]) -> IntArray:
    """The rows of a group."""
    inside = np.ones(codes[0].size if codes else 0, dtype=bool)
    for column, cell in zip(*group, strict=True):
        inside &= codes[column] == cell
    return np.flatnonzero(inside)


CELLS = Record(
    {
        "name": Text(),
        "levels": tuple_of(SavedLevel()),
        "edges": Made(EDGES, lambda cuts: tuple(cuts.tolist()), np.array),
    },
    make=Cells,
)
PATCH = ListWith((tuple_of(POSITION), tuple_of(POSITION), POSITION, Number(-1, 1)))


class Multicalibration(Recalibrator):
    """Multicalibration (Hebert-Johnson, Kim, Reingold and Rothblum 2018), on finite groups.

    Bins of width lambda = 1 / bins. Groups hold at least gamma of all rows. A category S_v, rows of
    group S with predictions in bin v, counts if it has at least alpha lambda of S; it is shifted
    while its mean label and its mean prediction are more than alpha apart. Each shift lowers the
    Brier score on these rows by more than alpha^2 times the share of the category, so it ends.

    Parameters
    ----------
    alpha : float
        Largest distance between the mean label and the mean prediction of a category that is left
        as it is, between 0 and 1.
    gamma : float
        Smallest share of all rows that makes a group, above 0 and at most 1.
    min_rows : int
        Smallest number of rows of a category. The authors' rule has no such limit, and lets single
        rows of a small sample be shifted to their own label; 1 turns the limit off.
    bins : int
        Number of bins of the prediction, one over lambda.
    parts : int
        Number of intervals of equal frequency that a number is cut into.
    crossings : int
        Groups are cells of up to this many covariates at once.
    discretised : bool
        Whether to end, as the authors' algorithm does, by giving all rows of a bin their mean.
        That costs resolution and serves the proof, so by default it is not done.
    max_sweeps : int
        Largest number of rounds through all categories.

    Attributes
    ----------
    converged_ : bool
        Whether the last round had nothing to shift.
    sweeps_ : int
        Number of rounds that were made.
    patches_ : list of tuple
        The shifts, in order: columns and cells of the group, the bin and the shift.
    levels_ : (bins,) array of float
        Mean prediction of every bin after all shifts.

    Examples
    --------
    >>> import itrust as it
    >>> few = it.simulate.survey(2_000, rng=0).sample
    >>> it.recalibrate.Multicalibration().fit(few).converged_
    True
    """

    discretised: bool
    rho = eta = 1.0  # no distance is told as a share of the mean label, and shifts are whole
    reads_covariates = True
    _seconds = 4.0
    _SETTINGS: ClassVar[dict[str, EntryShape]] = {**SHARED, "discretised": FLAG}
    _LEARNED = Record(
        {
            "cells": ListOf(CELLS),
            "patches": ListOf(PATCH, at_most=MAX_PATCHES),
            "sweeps": POSITION,
            "converged": FLAG,
            "levels": Numbers(PROBABILITY),
        }
    )

    def __init__(
        self,
        alpha: float = 0.05,
        gamma: float = 0.05,
        min_rows: int = 20,
        bins: int = 10,
        parts: int = 5,
        crossings: int = 2,
        discretised: bool = False,
        max_sweeps: int = 100,
    ) -> None:
        self.alpha, self.gamma, self.min_rows = alpha, gamma, min_rows
        self.bins, self.parts, self.crossings = bins, parts, crossings
        self.discretised, self.max_sweeps = discretised, max_sweeps

    def _fit(self, rows: Rows) -> None:
        self.cells_ = [Cells.of(column, self.parts) for column in rows.columns]
        codes = self._codes(rows.points)
        y, w, p = rows.y, rows.weights_or_ones, rows.p.copy()
        self.patches_: list[Patch] = []
        self.sweeps_, self.converged_ = 0, False
        pairs = [(group, _members(group, codes)) for group in self._groups(codes)]
        pairs = [(group, rows) for group, rows in pairs if w[rows].sum() >= self.gamma * w.sum()]
        while not self.converged_ and self.sweeps_ < self.max_sweeps:
            before = len(self.patches_)
            for group, members in pairs:
                self._patch_group(group, members, y, w, p)
            self.sweeps_ += 1
            self.converged_ = len(self.patches_) == before
        self.levels_ = self._averaged(p, w)

    def _patch_group(
        self, group: Group, rows: IntArray, y: FloatArray, w: FloatArray, p: FloatArray
    ) -> None:
        mass = float(w[rows].sum())
        for number in range(self.bins):
            inside = rows[self._bin(p[rows]) == number]
            weight = float(w[inside].sum())
            if inside.size < self.min_rows or weight < self.alpha / self.bins * mass:
                continue
            rate = float(w[inside] @ y[inside]) / weight
            gap = rate - float(w[inside] @ p[inside]) / weight
            if abs(gap) > self.alpha * max(rate, self.rho):
                shift = self.eta * gap
                p[inside] = np.clip(p[inside] + shift, 0.0, 1.0)
                self.patches_.append((*group, number, shift))

    def _bin(self, p: FloatArray) -> IntArray:
        """Bins of width 1 / bins, closed on the left, the last one on both sides."""
        return np.minimum((p * self.bins + 1e-12).astype(np.int64), self.bins - 1)

    def _averaged(self, p: FloatArray, w: FloatArray) -> FloatArray:
        """Mean prediction of every bin; the middle of an empty one."""
        codes = self._bin(p)
        mass, total = (np.bincount(codes, v, minlength=self.bins) for v in (w, w * p))
        middle = (np.arange(self.bins) + 0.5) / self.bins
        return np.divide(total, mass, out=middle, where=mass > 0)

    def _codes(self, points: Points) -> list[IntArray]:
        columns = {column.name: column for column in points.columns}
        codes = [cells.codes(columns[cells.name]) for cells in self.cells_]
        return codes or [np.zeros(len(points), dtype=np.int64)]

    def _groups(self, codes: Sequence[IntArray]) -> Iterator[Group]:
        """All rows, every cell that holds rows, then crossings of two columns and more."""
        yield (), ()
        for order in range(1, min(self.crossings, len(self.cells_)) + 1):
            for columns in combinations(range(len(self.cells_)), order):
                stacked = np.column_stack([codes[column] for column in columns])
                for cells in np.unique(stacked[(stacked >= 0).all(axis=1)], axis=0):
                    yield columns, tuple(int(cell) for cell in cells)

    def _predict(self, rows: Rows) -> FloatArray:
        codes, p = self._codes(rows.points), rows.p.copy()
        members: dict[Group, IntArray] = {}
        remembered = 0
        for columns, cells, number, shift in self.patches_:
            group = columns, cells
            if group not in members:
                if remembered > MAX_MEMBERS:
                    members, remembered = {}, 0
                members[group] = _members(group, codes)
                remembered += members[group].size
            inside = members[group]
            here = inside[self._bin(p[inside]) == number]
            p[here] = np.clip(p[here] + shift, 0.0, 1.0)
        return (self.levels_[self._bin(p)] if self.discretised else p)[:, None]

    def _refuse_misfit(self) -> None:
        self._refuse_odd_cells()
        for at, patch in enumerate(self.patches_):
            self._refuse_odd_patch(patch, inside("learned.patches", at))
        same_size("learned.levels", self.levels_.size, "settings.bins", self.bins)

    def _refuse_odd_cells(self) -> None:
        """Refuse cells that are not those of the columns."""
        if [cells.name for cells in self.cells_] != list(self.columns_):
            unfit("learned.cells", "must have the names of columns, in the same order")
        for at, cells in enumerate(self.cells_):
            place, kind = inside("learned.cells", at), self.columns_[cells.name]
            if kind == "category" and cells.edges:
                unfit(f"{place}.edges", "must be empty: the column is a category")
            if kind != "category" and not all(type(v) in (int, float) for v in cells.levels):
                unfit(f"{place}.levels", f"must be numbers: the column is a {kind}")

    def _refuse_odd_patch(self, patch: Patch, place: str) -> None:
        """Refuse a patch of a cell or a bin that there is not."""
        columns, cells, number, _ = patch
        places = [inside(place, at) for at in range(3)]
        same_size(places[1], len(cells), places[0], len(columns))
        if any(column >= len(self.cells_) for column in columns):
            unfit(places[0], f"must be positions below {len(self.cells_)}, one for each column")
        if any(cell >= self.cells_[c].number for c, cell in zip(columns, cells, strict=True)):
            unfit(places[1], "names a cell that its column does not have")
        if number >= self.bins:
            unfit(places[2], f"must be below settings.bins, {self.bins:,}, not {number:,}")


class ProportionalMulticalibration(Multicalibration):
    """Proportional multicalibration (La Cava, Lett and Wan 2023), on finite groups.

    As multicalibration, but the distance between mean label and mean prediction may be at most
    alpha times the mean label: what is small for a common outcome is large for a rare one.

    Parameters
    ----------
    alpha : float
        Largest distance, as a share of the mean label of a category, that is left as it is.
    gamma : float
        Smallest share of all rows that makes a group; a category counts if it has at least
        alpha / bins of its group.
    rho : float
        Mean labels below rho are taken as rho in the tolerance; without it a category of almost no
        positive labels would never be done.
    eta : float
        Share of the distance that a shift removes; all of it by default.
    min_rows, bins, parts, crossings, max_sweeps : int
        As in `Multicalibration`, with the same defaults.

    Attributes
    ----------
    patches_ : list of tuple
        The shifts, as in `Multicalibration`, in the order in which they are applied.
    converged_ : bool
        Whether no category was left to shift, after `sweeps_` rounds of at most `max_sweeps`.
    sweeps_ : int
        How many rounds there were.

    Examples
    --------
    >>> import itrust as it
    >>> few = it.simulate.survey(2_000, rng=0).sample
    >>> len(it.recalibrate.ProportionalMulticalibration(alpha=0.3).fit(few).patches_)
    13
    """

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {**SHARED, "rho": SHARE, "eta": SHARE}
    discretised = False

    def __init__(
        self,
        alpha: float = 0.1,
        gamma: float = 0.05,
        rho: float = 0.1,
        eta: float = 1.0,
        min_rows: int = 20,
        bins: int = 10,
        parts: int = 5,
        crossings: int = 2,
        max_sweeps: int = 100,
    ) -> None:
        self.alpha, self.gamma, self.rho, self.eta = alpha, gamma, rho, eta
        self.min_rows, self.bins, self.parts = min_rows, bins, parts
        self.crossings, self.max_sweeps = crossings, max_sweeps


class MCGrad(Recalibrator):
    """Gradient boosting until multicalibrated (Perini et al. 2025, package `MCGrad`).

    Needs `pip install MCGrad`, which brings LightGBM, PyTorch and about eighty other packages, and
    is no extra of this package. Of these, fitting and predicting need LightGBM alone:
    `pip install lightgbm` and `pip install --no-deps MCGrad` suffice. Tested with MCGrad 0.1.5.

    Attributes
    ----------
    model_ : mcgrad.methods.MCGrad
        The fitted model of that package, with its default settings.
    """

    reads_covariates = True
    _LEARNED = Record({})

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle keeps: the package's model as text, for it cannot be pickled itself."""
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = self.model_.serialize()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            state = {**state, "model_": _package().MCGrad.deserialize(state["model_"])}
        super().__setstate__(state)

    def _fit(self, rows: Rows) -> None:
        methods = _package()
        rarer = int(min(rows.y.sum(), rows.n - rows.y.sum()))
        if rarer < FOLDS:
            raise InputError(
                "MCGrad needs {folds} rows with each label, and one label has {count}; take more "
                "rows for calibration",
                argument="y",
                count=rarer,
                details={"folds": FOLDS},
            )
        frame = self._frame(rows.points)
        frame[LABEL], frame[WEIGHT] = rows.y.astype(int), rows.weights_or_ones
        self.model_ = methods.MCGrad()
        self.model_.fit(frame, PREDICTION, LABEL, WEIGHT, **self._features())

    def _predict(self, rows: Rows) -> FloatArray:
        frame = self._frame(rows.points)
        with np.errstate(over="ignore"):  # logits beyond all numbers are 0 and 1
            told = self.model_.predict(frame, PREDICTION, **self._features())
        return np.asarray(told, dtype=float)[:, None]

    def _frame(self, points: Points) -> Any:
        import pandas as pd

        columns: dict[str, Any] = {PREDICTION: points.p}
        for column in points.columns:
            cells = (
                [None if code < 0 else str(column.levels[code]) for code in column.values]
                if column.is_category
                else column.values
            )
            columns[column.name] = cells
        return pd.DataFrame(columns)

    def _features(self) -> dict[str, list[str]]:
        categories = [name for name, kind in self.columns_.items() if kind == "category"]
        numbers = [name for name in self.columns_ if name not in categories]
        return {
            "categorical_feature_column_names": categories,
            "numerical_feature_column_names": numbers,
        }

    @classmethod
    def _shape(cls, classes: tuple[Any, ...] | None) -> Record:  # noqa: ARG003
        raise InputError("what MCGrad learns is not saved; fit it again, or keep it with pickle")


def _package() -> Any:
    try:
        return importlib.import_module("mcgrad.methods")
    except ImportError:
        raise InputError("MCGrad is not installed; pip install MCGrad") from None
