"""Pictures of the local bias over some covariates alone: curves and maps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    Result,
    Rng,
    checked_count,
    counted,
    progress_bar,
)
from itrust.bias.averages import Question, Redraws, average_all, names_of
from itrust.bias.bands import Band
from itrust.bias.local import MIN_NEIGHBOURS, LocalBias, cells, question_at
from itrust.bias.weights import CUT, neighbour_kernel
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
    column_of,
    level_of,
)
from itrust.terms import SHOWN_LEVELS, frequent_values

MAX_PLACES = 2**13  # whose sums over all draws are held at once
BANDS = 0.03  # time that the bands of a picture take, compared with a pass for several
ALL_ROWS, TITLE = "all rows", "curves and maps"
POINTS, SIDE = 60, 40  # along a curve, and along each side of a map
CURVE_COLUMNS = ("bias", "lower", "upper", "null_lower", "null_upper", "neighbours", "pvalue")

Picture = TypeVar("Picture")


@dataclass(frozen=True, eq=False)
class Axis:
    """A covariate as an axis: numbers as a grid, the rest, and few numbers, as levels."""

    column: Column
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.column.name

    def shown(self, position: int) -> str:
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
    values, _ = frequent_values(column)
    if has_order(column):
        grid = np.linspace(float(values.min()), float(values.max()), points)
        if (np.round(values) == values).all():
            grid = np.unique(np.round(grid))  # nobody is 21.3 years old
        return Axis(Column(column.name, column.kind, grid), ())
    frequent = np.sort(values[:SHOWN_LEVELS])
    levels = Column(column.name, column.kind, frequent.astype(column.values.dtype), column.levels)
    if column.is_category:
        return Axis(levels, tuple(str(levels.cell(k)) for k in range(len(levels))))
    return Axis(levels, tuple(map(column.shown, frequent.tolist())))


def has_order(column: Column) -> bool:
    """Whether a column is a number or date with more than ten values."""
    present = column.values[~column.missing]
    return column.kind in ("number", "date") and np.unique(present).size > MAX_VALUES


def group_name(where: Predicate) -> str:
    """The rows of one group in reading words, or "all rows"."""
    return ALL_ROWS if isinstance(where, Everywhere) else str(where)


def combinations_of(sample: Sample, names: Sequence[str]) -> list[tuple[Predicate, list[float]]]:
    """Every combination of values that rows have, as a predicate and as codes."""
    levels = []
    for column in map(sample.column, names):
        values = np.unique(column.values[~column.missing])
        if has_order(column):
            count = f"{values.size:,} values"
            problem = f"{{column}} has {count}, too many for groups; cut it into a category"
            raise InputError(problem, column=column.name)
        known = [(level_of(column, value), float(value)) for value in values]
        levels.append([*known, (Missing(column.name), np.nan)] if column.missing.any() else known)
    chosen = [
        (all_of(where for where, _ in some), [value for _, value in some])
        for some in product(*levels)
    ]
    combined = [(where, values) for where, values in chosen if where.rows(sample.points).any()]
    if len(combined) > SHOWN_LEVELS:
        problem = f"{{value}} make {len(combined)} groups, too many for curves"
        raise InputError(problem, argument="by", value=list(names))
    return combined


def shares_known(questions: Sequence[Question[Any]], min_neighbours: int) -> list[float]:
    """Tell at what share of places there are rows enough; no label is looked at."""
    averages = average_all(questions[0].redraws.sample, [one.places for one in questions])
    sizes = (np.nan_to_num(means.size) for means in averages)
    return [float((size >= min_neighbours).mean()) for size in sizes]


def _asked(
    redraws: Redraws,
    columns: Sequence[Column],
    exact: Sequence[str],
    drawn: Callable[[LocalBias], Picture],
    min_neighbours: int,
    width: float | None = None,
) -> Question[Picture]:
    """Ask at places that some columns give, and match some of them exactly."""
    checked_count(min_neighbours, "min_neighbours")
    sample = redraws.sample
    known = tuple(c for c in columns if c.name in sample.names)
    others = [c.values for c in columns if c.name not in sample.names]
    names, prediction = [c.name for c in known], bool(others)
    kernels, key = redraws.kernels, (frozenset(names), frozenset(exact), prediction, str(width))
    if key not in kernels:
        kernels[key] = neighbour_kernel(
            sample.points, names, exact=exact, prediction=prediction, width=width
        )
    points = Points(others[0] if others else np.zeros(len(columns[0])), known)
    notes = (*_without_place(sample, names, exact), *redraws.notes)
    settings = kernels[key], CUT, int(min_neighbours), notes
    question = question_at(redraws, points, None, *settings, begun=time.perf_counter())
    return Question(redraws, question.places, lambda means: drawn(question.finished(means)), TITLE)


def pictures_of(questions: Sequence[Question[Any]]) -> list[Any]:
    """Several pictures of the same rows, in few passes over them."""
    pictures, passes = [], _passes_over(questions)
    with progress_bar(TITLE, len(passes) + BANDS * len(questions)) as advance:
        for some in passes:
            averages = some[0].redraws.averages(*(one.places for one in some), title=TITLE)
            for one, means in zip(some, averages, strict=True):
                pictures.append(one.finished(means))
                advance(BANDS)
    return pictures


def _passes_over(questions: Sequence[Question[Any]]) -> list[list[Question[Any]]]:
    """Pictures that share a pass: as many as their sums can be held at once."""
    passes: list[list[Question[Any]]] = []
    size = MAX_PLACES
    for one in questions:
        size += one.places.places
        if size > MAX_PLACES:
            passes.append([])
            size = one.places.places
        passes[-1].append(one)
    return passes


def _without_place(sample: Sample, names: Sequence[str], exact: Sequence[str]) -> Iterator[str]:
    """Rows that a grid has no place for, and levels that a picture has no room for."""
    for name in names:
        column = sample.column(name)
        missing = counted(int(column.missing.sum()), "row")
        if column.missing.any() and name not in exact:
            place = f"{missing} without {name} have no place here"
            yield f"{place}; bias_groups(sample, {name!r}) shows them"
        levels = np.unique(column.values[~column.missing]).size
        if name in exact and levels > SHOWN_LEVELS:
            yield f"the {SHOWN_LEVELS} most frequent of {levels} levels of {name} are shown"


@dataclass(frozen=True, eq=False)
class CurvePart:
    """The curve of one group.

    Attributes
    ----------
    where : Predicate
        Which rows the group has; `Everywhere()` without groups.
    grid : (k,) array
        Positions along the covariate.
    values : (k,) array
        Bias at the positions; NaN where too few rows are near.
    size : (k,) array
        Effective number of neighbours.
    pvalues : (k,) array
        P-values for "the model is calibrated for every neighbour", adjusted for the whole picture.
    band : Band
        Confidence band of the bias.
    null_band : Band
        What redrawn labels stay within.
    rows : int
        Number of rows of the group.
    """

    where: Predicate
    grid: FloatArray
    values: FloatArray
    size: FloatArray
    pvalues: FloatArray
    band: Band
    null_band: Band
    rows: int

    @property
    def group(self) -> str:
        """The group in reading words, or "all rows"."""
        return group_name(self.where)

    @property
    def known(self) -> bool:
        """Whether there is a value anywhere."""
        return bool(np.isfinite(self.values).any())


@dataclass(frozen=True, eq=False, repr=False)
class BiasCurve(Result):
    """Outcome of `bias_curve`: bias along a covariate, averaged over everything else.

    Attributes
    ----------
    axis : Axis
        The covariate, and the positions along it.
    by : tuple of str
        Covariates that make the groups.
    parts : tuple of CurvePart
        One for each group.
    bias : LocalBias
        The estimate behind it; bands hold over all groups at once.
    """

    axis: Axis
    by: tuple[str, ...]
    parts: tuple[CurvePart, ...]
    bias: LocalBias

    def to_arrow(self) -> pa.Table:
        """Give one row for each group and position.

        Returns
        -------
        pyarrow.Table
            Group, position, bias, both bands, effective neighbours and p-value.
        """
        position = cells(self.axis.column)
        places = [
            pa.table({"group": [part.group] * len(position), "position": position})
            for part in self.parts
        ]
        table, estimate = pa.concat_tables(places), self.bias.to_arrow()
        for name in CURVE_COLUMNS:
            table = table.append_column(name, estimate[name])
        return table

    def _facts(self) -> Mapping[str, Any]:
        return {
            "covariate": self.axis.name,
            "by": self.by,
            "groups": [
                {"group": part.group, "where": part.where.to_dict(), "rows": part.rows}
                for part in self.parts
            ],
            "alpha": self.bias.alpha,
            "curve": self.to_arrow().to_pydict(),
        }

    def __repr__(self) -> str:
        return f"<BiasCurve: along {self.axis.name!r}, {counted(len(self.parts), 'group')}>"


def bias_curve(
    sample: Sample,
    name: str,
    by: str | Sequence[str] = (),
    *,
    points: int = POINTS,
    min_neighbours: int = MIN_NEIGHBOURS,
    width: float | None = None,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> BiasCurve:
    """Bias along a number or date, in every group, with bands that hold at once.

    The prediction and the covariates that are not named are averaged over.

    Parameters
    ----------
    sample : Sample
        Labels, predictions and covariates.
    name : str
        A covariate that is a number or date with more than ten values, or "prediction".
    by : str or sequence of str
        Covariates; every combination of their values is a group of its own. Default: no groups.
    points : int
        Number of positions along the curve.
    min_neighbours : int
        Effective neighbours below which a position has no value.
    width : float, optional
        Width of the kernel along the covariate; default: from the rows, never from labels.
    alpha : float
        Error that the bands are allowed, for all groups and positions together.
    draws : int
        Sets of redrawn labels behind the bands and the p-values.
    rng : int, Generator or None
        Seed that the redrawn labels come from; with None they differ from call to call.

    Returns
    -------
    BiasCurve
        One curve for each group.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> curve = it.bias_curve(town, "age", by="region", draws=199, rng=0)
    >>> [part.group for part in curve.parts]
    ['region = north', 'region = south', 'region = west']
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng)
    plan = curve_plan(redraws, name, by, points=points, min_neighbours=min_neighbours, width=width)
    return plan.made()


def curve_plan(
    redraws: Redraws,
    name: str,
    by: str | Sequence[str] = (),
    *,
    points: int = POINTS,
    min_neighbours: int = MIN_NEIGHBOURS,
    width: float | None = None,
) -> Question[BiasCurve]:
    """Check and settle where a curve asks for the bias; see `bias_curve`."""
    sample = redraws.sample
    column = column_of(sample.points, name)
    if not has_order(column):
        few = "order" if column.is_category else f"more than {MAX_VALUES} values"
        problem = f"has no {few}, so it has no curve; use bias_groups(sample, {{value}})"
        raise InputError(f"{{value}} {problem}", argument="name", value=name)
    axis, names = axis_of(column, points), names_of(by)
    if name in names:
        problem = "{value} cannot be both the covariate of the curve and a group"
        raise InputError(problem, argument="by", value=name)
    groups, codes = zip(*combinations_of(sample, names), strict=True)
    grid = len(axis.column)
    along = axis.column.take(np.tile(np.arange(grid), len(groups)))
    crossed = (
        replace(c, values=np.repeat(values, grid).astype(c.values.dtype))
        for c, values in zip(map(sample.column, names), np.array(codes).T, strict=True)
    )

    def drawn(bias: LocalBias) -> BiasCurve:
        rows, missing = bias.sample.points, column_of(bias.sample.points, name).missing
        parts = []
        for k, where in enumerate(groups):
            some = np.arange(k * grid, (k + 1) * grid)
            values, size, pvalues = bias.values[some], bias.size[some], bias.pvalues[some]
            bands = bias.band.take(some), bias.null_band.take(some)
            count = int((where.rows(rows) & ~missing).sum())
            parts.append(CurvePart(where, axis.positions, values, size, pvalues, *bands, count))
        return BiasCurve(axis, names, tuple(parts), bias)

    return _asked(redraws, [along, *crossed], names, drawn, min_neighbours, width)


@dataclass(frozen=True, eq=False, repr=False)
class BiasMap(Result):
    """Outcome of `bias_map`: bias over two covariates, averaged over everything else.

    Attributes
    ----------
    axes : pair of Axis
        Across and up.
    values : (up, across) array
        Bias of every cell; NaN where hardly any rows are.
    pvalues : (up, across) array
        P-values for "the model is calibrated for every neighbour", adjusted for the whole map.
    size : (up, across) array
        Effective number of neighbours.
    bias : LocalBias
        The estimate behind it; bands hold over the whole map.
    """

    axes: tuple[Axis, Axis]
    values: FloatArray
    pvalues: FloatArray
    size: FloatArray
    bias: LocalBias

    @property
    def flagged(self) -> BoolArray:
        """Where the model is miscalibrated: adjusted p-value at most `alpha`, (up, across)."""
        return self.bias.flagged.reshape(self.values.shape)

    def to_arrow(self) -> pa.Table:
        """Give one row for each cell.

        Returns
        -------
        pyarrow.Table
            Both covariates, bias, both bands, effective neighbours and p-value.
        """
        table = self.bias.to_arrow()
        by_prediction = any(axis.name == PREDICTION for axis in self.axes)
        return table if by_prediction else table.drop_columns(["prediction"])

    def _facts(self) -> Mapping[str, Any]:
        return {
            "covariates": [axis.name for axis in self.axes],
            "alpha": self.bias.alpha,
            "cells": self.to_arrow().to_pydict(),
        }

    def __repr__(self) -> str:
        across, up = self.axes
        flagged = counted(int(self.flagged.sum()), "cell")
        return f"<BiasMap: {across.name!r} by {up.name!r}, {flagged} flagged>"


def bias_map(
    sample: Sample,
    first: str,
    second: str,
    *,
    points: int = SIDE,
    min_neighbours: int = MIN_NEIGHBOURS,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> BiasMap:
    """Bias over two covariates, with error control over the whole map.

    The other covariates are averaged over, and so is the prediction unless it is one of the two.

    Parameters
    ----------
    sample : Sample
        Labels, predictions and covariates.
    first : str
        The covariate across, or "prediction". Numbers with more than ten values become a grid,
        others stay levels.
    second : str
        The covariate up, in the same way.
    points : int
        Number of positions along each side that is a grid.
    min_neighbours : int
        Effective neighbours below which a cell has no value.
    alpha : float
        Error that the bands are allowed, for all cells together.
    draws : int
        How many sets of redrawn labels the map is compared with.
    rng : int, Generator or None
        Start of the random numbers; None starts anywhere.

    Returns
    -------
    BiasMap
        Bias and p-value of every cell.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> it.bias_map(town, "age", "region", draws=199, rng=0).values.shape
    (3, 40)
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng)
    plan = map_plan(redraws, first, second, points=points, min_neighbours=min_neighbours)
    return plan.made()


def map_plan(
    redraws: Redraws, *names: str, points: int = SIDE, min_neighbours: int = MIN_NEIGHBOURS
) -> Question[BiasMap]:
    """Check and settle where a map asks for the bias; see `bias_map`."""
    if names[0] == names[1]:
        problem = "a map needs two different covariates, not {value} twice"
        raise InputError(problem, value=names[0])
    across, up = (axis_of(column_of(redraws.sample.points, name), points) for name in names)
    shape = (len(up.column), len(across.column))
    rows, columns = (index.ravel() for index in np.indices(shape))
    exact = [axis.name for axis in (across, up) if axis.labels]

    def drawn(bias: LocalBias) -> BiasMap:
        values, pvalues = bias.values.reshape(shape), bias.pvalues.reshape(shape)
        return BiasMap((across, up), values, pvalues, bias.size.reshape(shape), bias)

    grid = [across.column.take(columns), up.column.take(rows)]
    return _asked(redraws, grid, exact, drawn, min_neighbours)
