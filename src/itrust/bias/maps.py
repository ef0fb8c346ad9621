"""Bias over two covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from itrust._core import BoolArray, FloatArray, InputError, Result, Rng, counted
from itrust.bias.axes import Axis, Ground, PicturePlaces, axis_of, biases_at
from itrust.bias.local import MIN_NEIGHBOURS, LocalBias
from itrust.bias.redraws import Redraws
from itrust.data import PREDICTION, Sample, column_of

POINTS = 40


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
    points: int = POINTS,
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
    return map_of(redraws, first, second, points=points, min_neighbours=min_neighbours)


def map_of(
    redraws: Redraws, *names: str, points: int = POINTS, min_neighbours: int = MIN_NEIGHBOURS
) -> BiasMap:
    """The map of `bias_map` over two names, with sample and draws that were checked before."""
    plan = MapPlan.of(Ground(redraws.sample), *names, points=points)
    (bias,) = biases_at(redraws, [plan.places], min_neighbours=min_neighbours)
    return plan.drawn(bias)


@dataclass(frozen=True, eq=False)
class MapPlan:
    """A map before its bias is known."""

    axes: tuple[Axis, Axis]
    places: PicturePlaces

    @classmethod
    def of(cls, ground: Ground, *names: str, points: int = POINTS) -> MapPlan:
        """Check and settle where the map asks for the bias; see `bias_map`."""
        if names[0] == names[1]:
            raise InputError(
                "a map needs two different covariates, not {value} twice", value=names[0]
            )
        across, up = (axis_of(column_of(ground.sample.points, name), points) for name in names)
        columns = (
            across.column.take(np.tile(np.arange(len(across.column)), len(up.column))),
            up.column.take(np.repeat(np.arange(len(up.column)), len(across.column))),
        )
        exact = [axis.name for axis in (across, up) if axis.labels]
        return cls((across, up), ground.places(columns, exact))

    def drawn(self, bias: LocalBias) -> BiasMap:
        """Give the map."""
        across, up = self.axes
        shape = (len(up.column), len(across.column))
        values, pvalues, size = (
            part.reshape(shape) for part in (bias.values, bias.pvalues, bias.size)
        )
        return BiasMap(self.axes, values, pvalues, size, bias)
