"""The paper's picture: cubic fits of a local bias against a covariate, by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.polynomial import Polynomial

from itrust._core import FloatArray, InputError, Result, counted
from itrust.bias.axes import PictureGroup, combinations_of
from itrust.bias.local import LocalBias
from itrust.bias.redraws import names_of
from itrust.data import Column, column_of

MIN_POINTS = 4  # that a cubic needs


@dataclass(frozen=True, eq=False)
class CubicGroup(PictureGroup):
    """Points of one group and the cubic through them.

    Attributes
    ----------
    covariate : (k,) array
        The covariate at the group's points that are known.
    values : (k,) array
        The local bias there.
    cubic : Polynomial
        Fitted by least squares.
    """

    covariate: FloatArray
    values: FloatArray
    cubic: Polynomial

    def at(self, covariate: object) -> FloatArray:
        """Evaluate the cubic.

        Beyond the group's points it is extrapolated, and a cubic soon leaves the data there.

        Parameters
        ----------
        covariate : array of numbers
            Values of the covariate, of any shape.

        Returns
        -------
        array
            The fitted bias at each of them.
        """
        return np.asarray(self.cubic(np.asarray(covariate, dtype=float)))


@dataclass(frozen=True, eq=False, repr=False)
class CubicFit(Result):
    """Cubic fits of a local bias against a covariate, by group: the paper's picture.

    No error control: the fit smooths an estimate that is smooth already. `bias_curve` has bands.

    Attributes
    ----------
    column : Column
        The covariate.
    groups : tuple of CubicGroup
        One cubic for each group; `group.at(x)` evaluates it.
    left_out : tuple of str
        Groups with fewer than four points that are known.
    """

    column: Column
    groups: tuple[CubicGroup, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the covariate."""
        return self.column.name

    def to_arrow(self) -> pa.Table:
        """Give one row for each point.

        Returns
        -------
        pyarrow.Table
            Group, covariate, bias and fit.
        """
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

    def _facts(self) -> Mapping[str, Any]:
        return {
            "covariate": self.name,
            "groups": [
                {
                    "group": part.group,
                    "where": part.where.to_dict(),
                    "points": part.values.size,
                    "coefficients": part.cubic.convert().coef,
                }
                for part in self.groups
            ],
            "left_out": self.left_out,
        }

    def __repr__(self) -> str:
        return f"<CubicFit: {self.name!r}, {counted(len(self.groups), 'group')}>"


def cubic_fit(bias: LocalBias, name: str, by: str | Sequence[str] = ()) -> CubicFit:
    """Fit a cubic to the values at the points, in every group, by least squares."""
    column = column_of(bias.points, name)
    present = column.values[~column.missing]
    if column.is_category or np.unique(present).size < MIN_POINTS:
        raise InputError(
            f"{{column}} has no cubic: it needs numbers, {MIN_POINTS} different ones or more",
            column=name,
        )
    fits, left_out = [], []
    for where, _ in combinations_of(bias.sample, names_of(by)):
        rows = np.flatnonzero(where.rows(bias.points) & bias.known & ~column.missing)
        x, values = column.values[rows], bias.values[rows]
        if np.unique(x).size < MIN_POINTS:
            left_out.append(PictureGroup(where).group)
        else:
            fits.append(CubicGroup(where, x, values, Polynomial.fit(x, values, MIN_POINTS - 1)))
    if not fits:
        raise InputError(
            f"no group has {MIN_POINTS} known points with different {{column}}", column=name
        )
    return CubicFit(column, tuple(fits), tuple(left_out))
