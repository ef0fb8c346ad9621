"""Covariates as axes and groups of a picture, and the local bias over some of them alone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from itrust._core import FloatArray, InputError, checked_count, counted, progress_bar
from itrust.bias.local import LocalBias, LocalPlan
from itrust.bias.neighbours import CUT, Neighbours, Together, neighbour_kernel
from itrust.bias.places import average
from itrust.bias.redraws import Redraws
from itrust.data import (
    MAX_VALUES,
    PREDICTION,
    Column,
    Everywhere,
    Missing,
    Points,
    Predicate,
    Sample,
    all_of,
    level_of,
)
from itrust.kernels import LocalKernel
from itrust.terms import SHOWN_LEVELS

MAX_PLACES = 2**13  # whose sums over all draws are held at once
BANDS = 0.03  # time that the bands of a picture take, compared with a pass for several
ALL_ROWS = "all rows"


@dataclass(frozen=True, eq=False)
class Axis:
    """A covariate as an axis: numbers as a grid, the rest, and few numbers, as levels."""

    column: Column
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the covariate."""
        return self.column.name

    def shown(self, position: int) -> str:
        """Give a position as text."""
        if self.labels:
            return self.labels[position]
        return self.column.shown(float(self.column.values[position]), 4)

    @property
    def positions(self) -> FloatArray:
        """Where to draw: the numbers of a grid, 0, 1, 2, ... for levels."""
        return np.arange(len(self.labels), dtype=float) if self.labels else self.column.values


def axis_of(column: Column, points: int) -> Axis:
    """A grid of so many points, or the most frequent levels."""
    checked_count(points, "points", at_least=2)
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    if has_order(column):
        grid = np.linspace(float(values[0]), float(values[-1]), points)
        if (np.round(values) == values).all():
            grid = np.unique(np.round(grid))  # nobody is 21.3 years old
        return Axis(Column(column.name, column.kind, grid), ())
    frequent = np.sort(values[np.argsort(-counts, kind="stable")][:SHOWN_LEVELS])
    levels = Column(column.name, column.kind, frequent.astype(column.values.dtype), column.levels)
    labels = tuple(
        str(levels.cell(k)) if column.is_category else column.shown(float(v))
        for k, v in enumerate(frequent)
    )
    return Axis(levels, labels)


def has_order(column: Column) -> bool:
    """Whether a column is a number or date with more than ten values."""
    present = column.values[~column.missing]
    return column.kind in ("number", "date") and np.unique(present).size > MAX_VALUES


@dataclass(frozen=True, eq=False)
class PictureGroup:
    """One of the groups that a picture shows apart.

    Attributes
    ----------
    where : Predicate
        Which rows it has; `Everywhere()` without groups.
    """

    where: Predicate

    @property
    def group(self) -> str:
        """The group in reading words, or "all rows"."""
        return ALL_ROWS if isinstance(self.where, Everywhere) else str(self.where)


def combinations_of(sample: Sample, names: Sequence[str]) -> list[tuple[Predicate, list[float]]]:
    """Every combination of values that rows have, as a predicate and as codes."""
    combined = []
    for chosen in product(*(_values(sample.column(name)) for name in names)):
        where = all_of(part for part, _ in chosen)
        if where.rows(sample.points).any():
            combined.append((where, [value for _, value in chosen]))
    if len(combined) > SHOWN_LEVELS:
        raise InputError(
            "{value} make {groups} groups, too many for curves",
            argument="by",
            value=list(names),
            details={"groups": str(len(combined))},
        )
    return combined


def _values(column: Column) -> list[tuple[Predicate, float]]:
    """Every value of a covariate that makes groups."""
    values = np.unique(column.values[~column.missing])
    if has_order(column):
        raise InputError(
            f"{{column}} has {values.size:,} values, too many for groups; cut it into a category",
            column=column.name,
        )
    found = [(level_of(column, value), float(value)) for value in values]
    return [*found, (Missing(column.name), np.nan)] if column.missing.any() else found


@dataclass(frozen=True, eq=False)
class PicturePlaces:
    """Where a picture asks for the bias, and who is near there."""

    points: Points
    kernel: LocalKernel
    notes: tuple[str, ...]

    def plan(self, redraws: Redraws, min_neighbours: int) -> LocalPlan:
        """Ask for the local bias."""
        notes, kernel = (*self.notes, *redraws.notes), self.kernel
        sample, least = redraws.sample, int(min_neighbours)
        return LocalPlan(redraws, sample, self.points, None, kernel, CUT, least, notes)


@dataclass(frozen=True, eq=False)
class Ground:
    """The rows behind some pictures; widths are chosen once for the same covariates."""

    sample: Sample
    _kernels: dict[tuple[frozenset[str], ...], LocalKernel] = field(default_factory=dict)

    def places(
        self, columns: tuple[Column, ...], exact: Sequence[str], width: float | None = None
    ) -> PicturePlaces:
        """Say who is near some places, over some covariates, or the prediction, alone."""
        own = self.sample.names
        p = next((c.values for c in columns if c.name == PREDICTION and c.name not in own), None)
        covariates = tuple(c for c in columns if c.name in own)
        names = [c.name for c in covariates]
        key = frozenset(names), frozenset(exact), frozenset([PREDICTION] * (p is not None))
        kernel = self._kernels.get(key) if width is None else None
        if kernel is None:
            kernel = neighbour_kernel(
                self.sample.points, names, exact=exact, prediction=p is not None, width=width
            )
        if width is None:
            self._kernels[key] = kernel
        points = Points(np.zeros(len(columns[0])) if p is None else p, covariates)
        return PicturePlaces(points, kernel, tuple(_without_place(self.sample, covariates, exact)))

    def shares_known(self, places: Sequence[PicturePlaces], min_neighbours: int) -> list[float]:
        """Tell at how many places there are rows enough; no label is looked at."""
        together = Together([Neighbours(own.points, own.kernel, CUT) for own in places])
        sizes = average(self.sample, together, (), draws=0, seed=0).moments.size
        enough = np.nan_to_num(sizes) >= min_neighbours
        return [float(enough[some].mean()) for some in together.ranges]


def biases_at(
    redraws: Redraws, places: Sequence[PicturePlaces], *, min_neighbours: int
) -> list[LocalBias]:
    """The local bias at the places of several pictures, in few passes over the rows."""
    checked_count(min_neighbours, "min_neighbours")
    found: list[LocalBias] = []
    passes = _passes_over(places)
    with progress_bar("curves and maps", len(passes) + BANDS * len(places)) as advance:
        for some in passes:
            begun = time.perf_counter()
            plans = [own.plan(redraws, min_neighbours) for own in some]
            together = Together([plan.weights for plan in plans])
            averages = redraws.averages(together, title="curves and maps")
            for plan, numbers in zip(plans, together.ranges, strict=True):
                estimate = plan.finished(averages.take(numbers))
                found.append(replace(estimate, elapsed=time.perf_counter() - begun))
                advance(BANDS)
    return found


def _passes_over(places: Sequence[PicturePlaces]) -> list[list[PicturePlaces]]:
    """Pictures that share a pass: as many as their sums can be held at once."""
    passes: list[list[PicturePlaces]] = []
    held = MAX_PLACES
    for own in places:
        held += len(own.points)
        if held > MAX_PLACES:
            passes.append([])
            held = len(own.points)
        passes[-1].append(own)
    return passes


def _without_place(
    sample: Sample, columns: tuple[Column, ...], exact: Sequence[str]
) -> Iterator[str]:
    """Rows that a grid has no place for, and levels that a picture has no room for."""
    for column in columns:
        own = sample.column(column.name)
        missing = int(own.missing.sum())
        if missing and column.name not in exact:
            yield (
                f"{counted(missing, 'row')} without {column.name} have no place here; "
                f"bias_groups(sample, {column.name!r}) shows them"
            )
        levels = np.unique(own.values[~own.missing]).size
        if column.name in exact and levels > SHOWN_LEVELS:
            yield f"the {SHOWN_LEVELS} most frequent of {levels} levels of {column.name} are shown"
