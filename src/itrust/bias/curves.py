"""Bias along one covariate, by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from itrust._core import FloatArray, InputError, Result, Rng, counted
from itrust.bias.axes import (
    Axis,
    Ground,
    PictureGroup,
    PicturePlaces,
    axis_of,
    biases_at,
    combinations_of,
    has_order,
)
from itrust.bias.bands import Band
from itrust.bias.local import MIN_NEIGHBOURS, LocalBias, cells
from itrust.bias.redraws import Redraws, names_of
from itrust.data import MAX_VALUES, Predicate, Sample, column_of

POINTS = 60


@dataclass(frozen=True, eq=False)
class CurvePart(PictureGroup):
    """The curve of one group.

    Attributes
    ----------
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
    return curve_of(redraws, name, by, width=width, points=points, min_neighbours=min_neighbours)


def curve_of(
    redraws: Redraws,
    name: str,
    by: str | Sequence[str] = (),
    *,
    width: float | None = None,
    points: int = POINTS,
    min_neighbours: int = MIN_NEIGHBOURS,
) -> BiasCurve:
    """The curve of `bias_curve`, with sample and draws that were checked before."""
    plan = CurvePlan.of(Ground(redraws.sample), name, by, points=points, width=width)
    (bias,) = biases_at(redraws, [plan.places], min_neighbours=min_neighbours)
    return plan.drawn(bias)


@dataclass(frozen=True, eq=False)
class CurvePlan:
    """A curve before its bias is known."""

    axis: Axis
    by: tuple[str, ...]
    groups: tuple[Predicate, ...]
    places: PicturePlaces

    @classmethod
    def of(
        cls,
        ground: Ground,
        name: str,
        by: str | Sequence[str] = (),
        *,
        points: int = POINTS,
        width: float | None = None,
    ) -> CurvePlan:
        """Check and settle where the curve asks for the bias; see `bias_curve`."""
        sample = ground.sample
        column = column_of(sample.points, name)
        if not has_order(column):
            few = f"has no more than {MAX_VALUES} values"
            raise InputError(
                "{value} {reason}, so it has no curve; use bias_groups(sample, {value})",
                argument="name",
                value=name,
                details={"reason": "has no order" if column.is_category else few},
            )
        axis, names = axis_of(column, points), names_of(by)
        if name in names:
            raise InputError(
                "{value} cannot be both the covariate of the curve and a group",
                argument="by",
                value=name,
            )
        groups = combinations_of(sample, names)
        grid = len(axis.column)
        along = axis.column.take(np.tile(np.arange(grid), len(groups)))
        codes = np.array([values for _, values in groups]).T
        crossed = tuple(
            replace(c, values=np.repeat(own, grid).astype(c.values.dtype))
            for c, own in zip((sample.column(other) for other in names), codes, strict=True)
        )
        places = ground.places((along, *crossed), names, width)
        return cls(axis, names, tuple(where for where, _ in groups), places)

    def drawn(self, bias: LocalBias) -> BiasCurve:
        """Give the curve."""
        sample, grid = bias.sample, len(self.axis.column)
        missing = column_of(sample.points, self.axis.name).missing
        parts = []
        for k, where in enumerate(self.groups):
            some = np.arange(k * grid, (k + 1) * grid)
            parts.append(
                CurvePart(
                    where=where,
                    grid=self.axis.positions,
                    values=bias.values[some],
                    size=bias.size[some],
                    pvalues=bias.pvalues[some],
                    band=bias.band.take(some),
                    null_band=bias.null_band.take(some),
                    rows=int((where.rows(sample.points) & ~missing).sum()),
                )
            )
        return BiasCurve(self.axis, self.by, tuple(parts), bias)
