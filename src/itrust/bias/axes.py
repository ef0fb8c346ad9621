"""Covariates as axes and groups of a picture, and the local bias over some of them alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from itrust._core import FloatArray, InputError, checked_count, counted
from itrust.bias.local import LocalBias, estimated_at
from itrust.bias.neighbours import CUT, neighbour_kernel
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

MAX_LEVELS = 40
ALL_ROWS = "all rows"


@dataclass(frozen=True, eq=False)
class Axis:
    """A covariate as an axis: numbers as a grid, the rest, and few numbers, as levels.

    Attributes
    ----------
    column : Column
        One row for each position.
    labels : tuple of str
        Names of the levels; empty for a grid.
    """

    column: Column
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the covariate."""
        return self.column.name

    def shown(self, position: int) -> str:
        """Give a position as text.

        Parameters
        ----------
        position : int
            Number of the position, from 0.

        Returns
        -------
        str
            The level, or the number or date in few digits.
        """
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
    frequent = np.sort(values[np.argsort(-counts, kind="stable")][:MAX_LEVELS])
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
    if len(combined) > MAX_LEVELS:
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


def bias_over(
    redraws: Redraws,
    columns: tuple[Column, ...],
    exact: Sequence[str],
    *,
    min_neighbours: int,
    width: float | None = None,
) -> LocalBias:
    """The local bias over some covariates, or the prediction, alone.

    Parameters
    ----------
    redraws : Redraws
        The rows, and how their labels are redrawn.
    columns : tuple of Column
        The places, one row each; whatever is not named is averaged over.
    exact : sequence of str
        Covariates that have to match exactly.
    min_neighbours : int
        Effective neighbours below which a place has no value.
    width : float, optional
        Width of the kernel; default: from the rows.

    Returns
    -------
    LocalBias
        At the places.
    """
    checked_count(min_neighbours, "min_neighbours")
    sample = redraws.sample
    own = sample.names
    p = next((c.values for c in columns if c.name == PREDICTION and c.name not in own), None)
    covariates = tuple(c for c in columns if c.name in own)
    kernel = neighbour_kernel(
        sample.points,
        [c.name for c in covariates],
        exact=exact,
        prediction=p is not None,
        width=width,
    )
    return estimated_at(
        Points(np.zeros(len(columns[0])) if p is None else p, covariates),
        None,
        redraws,
        whole=sample,
        kernel=kernel,
        cut=CUT,
        min_neighbours=min_neighbours,
        notes=(*_without_place(sample, covariates, exact), *redraws.notes),
    )


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
        if column.name in exact and levels > MAX_LEVELS:
            yield f"the {MAX_LEVELS} most frequent of {levels} levels of {column.name} are shown"
