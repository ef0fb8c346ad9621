"""Bias along one covariate, by group, and over two; the paper's cubic fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.polynomial import Polynomial

from itrust.bias import FEWEST, LocalBias, estimated_at
from itrust.columns import Column
from itrust.errors import InputError, counted
from itrust.groups import SIGN, checked_level
from itrust.intervals import Band
from itrust.klce import checked_draws, checked_null, cluster_notes, doubts_about
from itrust.neighbours import CUT, neighbour_kernel
from itrust.points import Points
from itrust.regions import Every, Everywhere, Level, Region
from itrust.sample import Sample, checked_sample
from itrust.seeds import Rng, as_seed
from itrust.typing import BoolArray, FloatArray, IntArray

GRID, SIDE = 60, 40  # points along a curve, and along a side of a map
MOST_LEVELS = 40


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

    @property
    def positions(self) -> FloatArray:
        """Where to draw: the numbers of a grid, 0, 1, 2, ... for levels."""
        return np.arange(len(self.labels), dtype=float) if self.labels else self.column.values


def _axis(column: Column, points: int) -> Axis:
    present = column.values[~column.missing]
    values, counts = np.unique(present, return_counts=True)
    if column.kind in ("number", "date") and values.size > 10:
        grid = np.linspace(float(values[0]), float(values[-1]), points)
        return Axis(Column(column.name, column.kind, grid), ())
    frequent = np.sort(values[np.argsort(-counts, kind="stable")][:MOST_LEVELS])
    levels = Column(column.name, column.kind, frequent.astype(column.values.dtype), column.levels)
    labels = tuple(
        str(levels.cell(k)) if column.is_category else column.shown(float(v))
        for k, v in enumerate(frequent)
    )
    return Axis(levels, labels)


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


@dataclass(frozen=True, eq=False, repr=False)
class BiasCurve:
    """Outcome of `bias_curve`: bias along a covariate, averaged over everything else.

    Attributes
    ----------
    axis : Axis
    by : names of the covariates that make the groups
    parts : tuple of CurvePart
    bias : LocalBias
        The estimate behind it; bands hold over all groups together.
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
                    self.axis.name: part.grid,
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
            "level": self.bias.level,
            "curve": self.to_arrow().to_pydict(),
        }

    def __repr__(self) -> str:
        return f"<BiasCurve: along {self.axis.name!r}, {counted(len(self.parts), 'group')}>"

    def __str__(self) -> str:
        lines = [f"Bias along {self.axis.name}   ({SIGN})"]
        width = max(len(part.group) for part in self.parts)
        for part in self.parts:
            wrong = np.nan_to_num(part.pvalues, nan=1.0) <= self.bias.level
            told = "not wrong as far as these rows tell"
            if wrong.any():
                told = "; ".join(_stretches(self.axis, part, wrong))
            lines.append(f"  {part.group:<{width}}  {told}")
        return "\n".join(lines)


def _stretches(axis: Axis, part: CurvePart, wrong: BoolArray) -> list[str]:
    """Where a curve leaves its null band, in words."""
    sign = np.where(wrong, np.sign(part.values), 0.0)
    edges = np.flatnonzero(np.diff(sign, prepend=0.0, append=0.0))
    told = []
    for start, stop in pairwise(edges):
        if sign[start] == 0:
            continue
        ends = [axis.column.shown(float(part.grid[k]), 4) for k in (start, stop - 1)]
        values = part.values[start:stop]
        peak = values[np.argmax(np.abs(values))]
        where = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        told.append(f"{where}: up to {peak:+.3f}")
    return told


def bias_curve(
    sample: Sample,
    name: str,
    by: str | Sequence[str] = (),
    *,
    width: float | None = None,
    points: int = GRID,
    fewest: int = FEWEST,
    level: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> BiasCurve:
    """Bias along a number or date, in every group, with bands that hold together.

    The prediction and the covariates that are not named are averaged over.

    Parameters
    ----------
    sample : Sample
    name : str
    by : names of covariates, optional
        Every combination of their values is a group of its own.
    width : float, optional
        Of the kernel along the covariate; default: from the rows, never from labels.
    points : int
        Along the curve.
    fewest, level, draws, rng
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
    column = sample.column(name)
    axis = _axis(column, points)
    if axis.labels:
        raise InputError(
            f"{name!r} has no more than ten values, or no order, so it has no curve; use "
            f"bias_groups(sample, {name!r})"
        )
    names = _names(by)
    if name in names:
        raise InputError(f"{name!r} cannot be both the covariate of the curve and a group")
    groups = _combinations(sample, names)
    columns = [axis.column, *(sample.column(other) for other in names)]
    grid = axis.positions.size
    places = Points(
        np.zeros(grid * len(groups)),
        (
            Column(name, column.kind, np.tile(axis.positions, len(groups))),
            *(
                Column(c.name, c.kind, np.repeat(values, grid).astype(c.values.dtype), c.levels)
                for c, values in zip(columns[1:], np.array([g[1] for g in groups]).T, strict=True)
            ),
        ),
    )
    bias = _over(sample, places, [name, *names], names, width, fewest, level, draws, rng)
    parts = []
    for k, (region, _) in enumerate(groups):
        some = np.arange(k * grid, (k + 1) * grid)
        rows = int(region.rows(sample.points).sum())
        parts.append(_part(str(region), axis.positions, bias, some, rows))
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


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(dict.fromkeys(by))


def _combinations(sample: Sample, names: Sequence[str]) -> list[tuple[Region, list[float]]]:
    """Every combination of values that rows have, as a region and as codes."""
    if not names:
        return [(Everywhere(), [])]
    options: list[list[tuple[Region, float]]] = []
    for name in names:
        column = sample.column(name)
        values = np.unique(column.values[~column.missing])
        if not column.is_category and values.size > 10:
            raise InputError(
                f"{name!r} has {values.size:,} values, too many for groups; cut it into a category"
            )
        found: list[tuple[Region, float]] = [
            (Level(name, column.levels[int(v)] if column.is_category else float(v)), float(v))
            for v in values
        ]
        if column.missing.any():
            found.append((Level(name, None), np.nan))
        options.append(found)
    combined = []
    for chosen in product(*options):
        regions = tuple(region for region, _ in chosen)
        region = regions[0] if len(regions) == 1 else Every(regions)
        if region.rows(sample.points).any():
            combined.append((region, [value for _, value in chosen]))
    if len(combined) > MOST_LEVELS:
        raise InputError(f"{list(names)} make {len(combined)} groups, too many for curves")
    return combined


def _over(
    sample: Sample,
    places: Points,
    names: Sequence[str],
    exact: Sequence[str],
    width: float | None,
    fewest: int,
    level: float,
    draws: int,
    rng: Rng,
) -> LocalBias:
    """The local bias over some covariates alone."""
    checked_level(level)
    draws, seed = checked_draws(draws), as_seed(rng)
    kernel = neighbour_kernel(sample.points, names, exact=exact, prediction=False, width=width)
    null = checked_null(None, sample)
    return estimated_at(
        places,
        None,
        sample=sample,
        kernel=kernel,
        cut=CUT,
        fewest=fewest,
        level=level,
        null=null,
        draws=draws,
        seed=seed,
        notes=(*doubts_about(sample, null), *cluster_notes(sample, null)),
    )


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
        return np.asarray(np.nan_to_num(self.pvalues, nan=1.0) <= self.bias.level)

    def to_arrow(self) -> pa.Table:
        """One row a cell."""
        return self.bias.to_arrow().drop_columns(["prediction"])

    def __repr__(self) -> str:
        across, up = self.axes
        return f"<BiasMap: {across.name!r} by {up.name!r}, {int(self.flagged.sum())} cells flagged>"


def bias_map(
    sample: Sample,
    first: str,
    second: str,
    *,
    points: int = SIDE,
    fewest: int = FEWEST,
    level: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> BiasMap:
    """Bias over two covariates, with error control over the whole map.

    Parameters
    ----------
    sample : Sample
    first, second : str
        Across and up. Numbers with more than ten values become a grid, others stay levels.
    points : int
        Along each side.
    fewest, level, draws, rng
        As for `local_bias`.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> it.bias_map(town, "age", "region", draws=199, rng=0).values.shape
    (3, 40)
    """
    checked_sample(sample)
    if first == second:
        raise InputError(f"a map needs two different covariates, not {first!r} twice")
    across, up = (_axis(sample.column(name), points) for name in (first, second))
    shape = (len(up.column), len(across.column))
    columns = (
        across.column.take(np.tile(np.arange(shape[1]), shape[0])),
        up.column.take(np.repeat(np.arange(shape[0]), shape[1])),
    )
    places = Points(np.zeros(shape[0] * shape[1]), columns)
    exact = [axis.name for axis in (across, up) if axis.labels]
    bias = _over(sample, places, [first, second], exact, None, fewest, level, draws, rng)
    values, pvalues, size = (part.reshape(shape) for part in (bias.values, bias.pvalues, bias.size))
    return BiasMap((across, up), values, pvalues, size, bias)


@dataclass(frozen=True, eq=False, repr=False)
class CubicFit:
    """Cubic fits of a local bias against a covariate, by group: the paper's picture.

    No error control: the fit smooths an estimate that is smooth already. `bias_curve` has bands.

    Attributes
    ----------
    name : str
    groups : tuple of CubicGroup
        `group.at(x)` gives the cubic at other values.
    """

    name: str
    groups: tuple[CubicGroup, ...]

    def __repr__(self) -> str:
        return f"<CubicFit: {self.name!r}, {counted(len(self.groups), 'group')}>"


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


def cubic_fit(bias: LocalBias, name: str, by: str | Sequence[str] = ()) -> CubicFit:
    """Fit a cubic to the values at the points, in every group, by least squares."""
    columns = {column.name: column for column in bias.points.columns}
    for wanted in (name, *_names(by)):
        bias.sample.column(wanted)
    covariate = columns[name].values
    fits = []
    for region, _ in _combinations(bias.sample, _names(by)):
        rows = np.flatnonzero(region.rows(bias.points) & bias.known & ~columns[name].missing)
        if rows.size < 4:
            continue
        x, values = covariate[rows], bias.values[rows]
        degree = min(3, np.unique(x).size - 1)
        fits.append(CubicGroup(str(region), x, values, Polynomial.fit(x, values, degree)))
    return CubicFit(name, tuple(fits))
