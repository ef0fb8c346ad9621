"""Bias along one covariate, by group, and over two; the paper's cubic fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.polynomial import Polynomial

from itrust._core import BoolArray, FloatArray, InputError, IntArray, Rng, as_seed, counted, plain
from itrust.bias.bands import Band
from itrust.bias.groups import SIGN, bias_notes, checked_reach, names_of, rowwise_null
from itrust.bias.local import FEWEST, LocalBias, cells, checked_fewest, estimated_at
from itrust.bias.neighbours import CUT, neighbour_kernel
from itrust.data import (
    PREDICTION,
    Column,
    Everywhere,
    Missing,
    Points,
    Predicate,
    Sample,
    all_of,
    checked_sample,
    column_of,
    level_of,
)

MAX_VALUES = 10  # of a number, up to which it is a set of levels
ALL_ROWS = "all rows"
CUBIC = 4  # points that a cubic needs
GRID, SIDE = 60, 40  # points along a curve, and along a side of a map
MAX_LEVELS = 40


@dataclass(frozen=True, eq=False)
class Axis:
    """A covariate as an axis: numbers as a grid, the rest, and few numbers, as levels.

    Attributes
    ----------
    column : Column
        One row a position.
    labels : tuple of str
        Names of the levels; empty for a grid.
    """

    column: Column
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the covariate."""
        return self.column.name

    def shown(self, position: int) -> str:
        """A position for people."""
        if self.labels:
            return self.labels[position]
        return self.column.shown(float(self.column.values[position]), 4)

    @property
    def positions(self) -> FloatArray:
        """Where to draw: the numbers of a grid, 0, 1, 2, ... for levels."""
        return np.arange(len(self.labels), dtype=float) if self.labels else self.column.values


def _axis(column: Column, points: int) -> Axis:
    present = column.values[~column.missing]
    values, counts = np.unique(present, return_counts=True)
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


def _checked_points(points: object) -> int:
    if isinstance(points, bool) or not isinstance(points, int | np.integer) or points < 2:
        raise InputError(f"points must be a whole number of at least 2, not {points!r}")
    return int(points)


@dataclass(frozen=True, eq=False)
class CurvePart:
    """The curve of one group.

    Attributes
    ----------
    group : str
    grid, values, size, pvalues : (k,) arrays
    band, null_band : Band
    rows : int
    """

    group: str
    grid: FloatArray
    values: FloatArray
    size: FloatArray
    pvalues: FloatArray
    band: Band
    null_band: Band
    rows: int

    @property
    def known(self) -> bool:
        """Whether there is a value anywhere."""
        return bool(np.isfinite(self.values).any())


@dataclass(frozen=True, eq=False, repr=False)
class BiasCurve:
    """Outcome of `bias_curve`: bias along a covariate, averaged over everything else.

    Attributes
    ----------
    axis : Axis
    by : names of the covariates that make the groups
    parts : tuple of CurvePart
    bias : LocalBias
        The estimate behind it; bands hold over all groups at once.
    """

    axis: Axis
    by: tuple[str, ...]
    parts: tuple[CurvePart, ...]
    bias: LocalBias

    def to_arrow(self) -> pa.Table:
        """One row a group and position."""
        tables = [
            pa.table(
                {
                    "group": [part.group] * part.grid.size,
                    "position": cells(self.axis.column),
                    "bias": part.values,
                    "lower": part.band.lower,
                    "upper": part.band.upper,
                    "null_lower": part.null_band.lower,
                    "null_upper": part.null_band.upper,
                    "neighbours": part.size,
                    "pvalue": part.pvalues,
                }
            )
            for part in self.parts
        ]
        return pa.concat_tables(tables)

    def to_dict(self) -> dict[str, Any]:
        """All numbers, ready for JSON."""
        return {
            "covariate": self.axis.name,
            "by": list(self.by),
            "alpha": self.bias.alpha,
            "curve": plain(self.to_arrow().to_pydict()),
        }

    def __repr__(self) -> str:
        return f"<BiasCurve: along {self.axis.name!r}, {counted(len(self.parts), 'group')}>"

    def __str__(self) -> str:
        lines = [f"Bias along {self.axis.name}   ({SIGN})"]
        width = max(len(part.group) for part in self.parts)
        told = (
            f"  {part.group:<{width}}  {_in_words(self.axis, part, self.bias)}"
            for part in self.parts
        )
        return "\n".join([*lines, *told, *(f"  note: {note}" for note in self.bias.notes)])


def _in_words(axis: Axis, part: CurvePart, bias: LocalBias) -> str:
    """Where a curve is shown to be wrong."""
    if not part.known:
        return f"unknown: {counted(part.rows, 'row')}, nowhere {bias.fewest} effective neighbours"
    wrong = np.nan_to_num(part.pvalues, nan=1.0) <= bias.alpha
    if not wrong.any():
        return "not shown to be wrong by these rows"
    sign = np.where(wrong, np.sign(part.values), 0.0)
    edges = np.flatnonzero(np.diff(sign, prepend=0.0, append=0.0))
    told = []
    for start, stop in pairwise(edges):
        if sign[start] == 0:
            continue
        ends = [axis.shown(int(k)) for k in (start, stop - 1)]
        peak = start + int(np.argmax(np.abs(part.values[start:stop])))
        where = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        told.append(f"{where}: up to {part.values[peak]:+.3f} (p {part.pvalues[peak]:.2g})")
    return "; ".join(told)


def bias_curve(
    sample: Sample,
    name: str,
    by: str | Sequence[str] = (),
    *,
    width: float | None = None,
    points: int = GRID,
    fewest: int = FEWEST,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> BiasCurve:
    """Bias along a number or date, in every group, with bands that hold at once.

    The prediction and the covariates that are not named are averaged over.

    Parameters
    ----------
    sample : Sample
    name : str
        A covariate, or "prediction".
    by : names of covariates, optional
        Every combination of their values is a group of its own.
    width : float, optional
        Of the kernel along the covariate; default: from the rows, never from labels.
    points : int
        Along the curve.
    fewest, alpha, draws, rng
        As for `local_bias`.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> curve = it.bias_curve(town, "age", by="region", draws=199, rng=0)
    >>> [part.group for part in curve.parts]
    ['region = north', 'region = south', 'region = west']
    """
    checked_sample(sample)
    points = _checked_points(points)
    column = column_of(sample.points, name)
    if not has_order(column):
        reason = "has no order" if column.is_category else f"has no more than {MAX_VALUES} values"
        raise InputError(
            f"{name!r} {reason}, so it has no curve; use bias_groups(sample, {name!r})"
        )
    axis, names = _axis(column, points), names_of(by)
    if name in names:
        raise InputError(f"{name!r} cannot be both the covariate of the curve and a group")
    groups = _combinations(sample, names)
    grid = len(axis.column)
    along = axis.column.take(np.tile(np.arange(grid), len(groups)))
    codes = np.array([values for _, values in groups]).T
    crossed = tuple(
        replace(c, values=np.repeat(own, grid).astype(c.values.dtype))
        for c, own in zip((sample.column(other) for other in names), codes, strict=True)
    )
    bias = _over(sample, (along, *crossed), names, width, fewest, alpha, draws, rng)
    parts = []
    for k, (region, _) in enumerate(groups):
        some = np.arange(k * grid, (k + 1) * grid)
        rows = int((region.rows(sample.points) & ~column.missing).sum())
        title = str(region) if names else ALL_ROWS
        parts.append(_part(title, axis.positions, bias, some, rows))
    return BiasCurve(axis, names, tuple(parts), bias)


def _part(group: str, grid: FloatArray, bias: LocalBias, some: IntArray, rows: int) -> CurvePart:
    return CurvePart(
        group,
        grid,
        bias.values[some],
        bias.size[some],
        bias.pvalues[some],
        bias.band.take(some),
        bias.null_band.take(some),
        rows,
    )


def _combinations(sample: Sample, names: Sequence[str]) -> list[tuple[Predicate, list[float]]]:
    """Every combination of values that rows have, as a region and as codes."""
    if not names:
        return [(Everywhere(), [])]
    options: list[list[tuple[Predicate, float]]] = []
    for name in names:
        column = sample.column(name)
        values = np.unique(column.values[~column.missing])
        if has_order(column):
            raise InputError(
                f"{name!r} has {values.size:,} values, too many for groups; cut it into a category"
            )
        found = [(level_of(column, value), float(value)) for value in values]
        if column.missing.any():
            found.append((Missing(name), np.nan))
        options.append(found)
    combined = []
    for chosen in product(*options):
        region = all_of(region for region, _ in chosen)
        if region.rows(sample.points).any():
            combined.append((region, [value for _, value in chosen]))
    if len(combined) > MAX_LEVELS:
        raise InputError(f"{list(names)} make {len(combined)} groups, too many for curves")
    return combined


def _over(
    sample: Sample,
    columns: tuple[Column, ...],
    exact: Sequence[str],
    width: float | None,
    fewest: int,
    alpha: float,
    draws: int,
    rng: Rng,
) -> LocalBias:
    """The local bias over some covariates, or the prediction, alone."""
    draws, seed = checked_reach(draws, alpha), as_seed(rng)
    checked_fewest(fewest)
    own = sample.names
    p = next((c.values for c in columns if c.name == PREDICTION and c.name not in own), None)
    covariates = tuple(c for c in columns if c.name in own)
    places = Points(np.zeros(len(columns[0])) if p is None else p, covariates)
    kernel = neighbour_kernel(
        sample.points,
        [c.name for c in covariates],
        exact=exact,
        prediction=p is not None,
        width=width,
    )
    null = rowwise_null(sample)
    return estimated_at(
        places,
        None,
        sample=sample,
        whole=sample,
        kernel=kernel,
        cut=CUT,
        fewest=int(fewest),
        alpha=alpha,
        null=null,
        draws=draws,
        seed=seed,
        notes=(*_without_place(sample, covariates, exact), *bias_notes(sample, null)),
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


@dataclass(frozen=True, eq=False, repr=False)
class BiasMap:
    """Outcome of `bias_map`: bias over two covariates, averaged over everything else.

    Attributes
    ----------
    axes : pair of Axis
        Across and up.
    values, pvalues, size : (up, across) arrays
        NaN where hardly any rows are.
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
        """Where the model is wrong, (up, across)."""
        return np.asarray(np.nan_to_num(self.pvalues, nan=1.0) <= self.bias.alpha)

    def to_arrow(self) -> pa.Table:
        """One row a cell."""
        table = self.bias.to_arrow()
        by_prediction = any(axis.name == PREDICTION for axis in self.axes)
        return table if by_prediction else table.drop_columns(["prediction"])

    def to_dict(self) -> dict[str, Any]:
        """All numbers, ready for JSON."""
        return {
            "covariates": [axis.name for axis in self.axes],
            "alpha": self.bias.alpha,
            "cells": plain(self.to_arrow().to_pydict()),
        }

    def __repr__(self) -> str:
        across, up = self.axes
        flagged = counted(int(self.flagged.sum()), "cell")
        return f"<BiasMap: {across.name!r} by {up.name!r}, {flagged} flagged>"

    def __str__(self) -> str:
        across, up = self.axes
        lines = [f"Bias over {across.name} and {up.name}   ({SIGN})"]
        for told, sign in (("too low", 1), ("too high", -1)):
            shown = self.flagged & (sign * self.values > 0)
            text = f"  {told:<9} shown in {int(shown.sum()):,} of {counted(shown.size, 'cell')}"
            if shown.any():
                size = np.where(shown, np.abs(np.nan_to_num(self.values)), -1.0)
                row, column = np.unravel_index(int(np.argmax(size)), shown.shape)
                where = f"{across.name} {across.shown(int(column))}, {up.name} {up.shown(int(row))}"
                text += f"; most {self.values[row, column]:+.3f} at {where}"
            lines.append(text)
        unknown = int(np.isnan(self.values).sum())
        lines.append(f"  unknown   {counted(unknown, 'cell')} with too few rows nearby")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.bias.notes)])


def bias_map(
    sample: Sample,
    first: str,
    second: str,
    *,
    points: int = SIDE,
    fewest: int = FEWEST,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> BiasMap:
    """Bias over two covariates, with error control over the whole map.

    Parameters
    ----------
    sample : Sample
    first, second : str
        Across and up: covariates, or "prediction". Numbers with more than ten values become a
        grid, others stay levels.
    points : int
        Along each side.
    fewest, alpha, draws, rng
        As for `local_bias`.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> it.bias_map(town, "age", "region", draws=199, rng=0).values.shape
    (3, 40)
    """
    checked_sample(sample)
    points = _checked_points(points)
    if first == second:
        raise InputError(f"a map needs two different covariates, not {first!r} twice")
    across, up = (_axis(column_of(sample.points, name), points) for name in (first, second))
    shape = (len(up.column), len(across.column))
    columns = (
        across.column.take(np.tile(np.arange(shape[1]), shape[0])),
        up.column.take(np.repeat(np.arange(shape[0]), shape[1])),
    )
    exact = [axis.name for axis in (across, up) if axis.labels]
    bias = _over(sample, columns, exact, None, fewest, alpha, draws, rng)
    values, pvalues, size = (part.reshape(shape) for part in (bias.values, bias.pvalues, bias.size))
    return BiasMap((across, up), values, pvalues, size, bias)


@dataclass(frozen=True, eq=False)
class CubicGroup:
    """Points of one group and the cubic through them."""

    group: str
    covariate: FloatArray
    values: FloatArray
    cubic: Polynomial

    def at(self, covariate: object) -> FloatArray:
        """The cubic at some values of the covariate."""
        return np.asarray(self.cubic(np.asarray(covariate, dtype=float)))


@dataclass(frozen=True, eq=False, repr=False)
class CubicFit:
    """Cubic fits of a local bias against a covariate, by group: the paper's picture.

    No error control: the fit smooths an estimate that is smooth already. `bias_curve` has bands.

    Attributes
    ----------
    column : Column
        The covariate.
    groups : tuple of CubicGroup
        `group.at(x)` gives the cubic at other values.
    left_out : names of groups with fewer than four points that are known
    """

    column: Column
    groups: tuple[CubicGroup, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the covariate."""
        return self.column.name

    def shown(self, position: float) -> str:
        """A value of the covariate for people."""
        return self.column.shown(float(position), 4)

    def to_arrow(self) -> pa.Table:
        """One row a point: group, covariate, value, fit."""
        parts = [
            pa.table(
                {
                    "group": [part.group] * part.values.size,
                    "position": part.covariate,
                    "bias": part.values,
                    "cubic": part.at(part.covariate),
                }
            )
            for part in self.groups
        ]
        return pa.concat_tables(parts)

    def __repr__(self) -> str:
        return f"<CubicFit: {self.name!r}, {counted(len(self.groups), 'group')}>"

    def __str__(self) -> str:
        lines = [f"Cubic fits of the local bias against {self.name}, no error control"]
        width = max((len(part.group) for part in self.groups), default=0)
        for part in self.groups:
            at = np.linspace(part.covariate.min(), part.covariate.max(), 5)
            told = (
                f"{self.shown(x)}: {value:+.3f}" for x, value in zip(at, part.at(at), strict=True)
            )
            lines.append(f"  {part.group:<{width}}  {', '.join(told)}")
        lines.extend(f"  {group}: fewer than four known points" for group in self.left_out)
        return "\n".join([*lines, SIGN])


def cubic_fit(bias: LocalBias, name: str, by: str | Sequence[str] = ()) -> CubicFit:
    """Fit a cubic to the values at the points, in every group, by least squares."""
    column = column_of(bias.points, name)
    present = column.values[~column.missing]
    if column.is_category or np.unique(present).size < CUBIC:
        raise InputError(f"{name!r} has no cubic: it needs numbers, {CUBIC} different ones or more")
    fits, left_out = [], []
    for region, _ in _combinations(bias.sample, names_of(by)):
        title = ALL_ROWS if isinstance(region, Everywhere) else str(region)
        rows = np.flatnonzero(region.rows(bias.points) & bias.known & ~column.missing)
        x, values = column.values[rows], bias.values[rows]
        if np.unique(x).size < CUBIC:
            left_out.append(title)
        else:
            fits.append(CubicGroup(title, x, values, Polynomial.fit(x, values, CUBIC - 1)))
    if not fits:
        raise InputError(f"no group has {CUBIC} known points with different {name!r}")
    return CubicFit(column, tuple(fits), tuple(left_out))
