"""Rows on their way through the package: without labels (`Points`) and with them (`Chunk`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    did_you_mean,
    listed,
)
from itrust.data.column import Column


@dataclass(frozen=True, eq=False)
class Points:
    """Where the rows lie: predictions and covariates, never labels.

    Kernels and width rules take `Points`, so that they cannot see what they must not see.
    """

    p: FloatArray
    columns: tuple[Column, ...]

    @property
    def prediction(self) -> Column:
        """The predictions as a column like any other."""
        return Column("p", "number", self.p)

    def __len__(self) -> int:
        return int(self.p.size)

    def take(self, rows: AnyArray | slice) -> Points:
        """Keep some rows."""
        return Points(self.p[rows], tuple(column.take(rows) for column in self.columns))

    def like(self, other: Points) -> Points:
        """Keep the covariates that other rows have, in their order."""
        names = tuple(column.name for column in other.columns)
        if names == tuple(column.name for column in self.columns):
            return self
        by_name = {column.name: column for column in self.columns}
        return Points(self.p, tuple(by_name[name] for name in names if name in by_name))


class Predicted:
    """Rows with predictions and covariates: what `Sample`, `Population` and their like share."""

    p: FloatArray
    columns: tuple[Column, ...]

    def _freeze(self, **parts: Any) -> None:
        """Fill a frozen object, and let nobody write into its arrays."""
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.p)

    def __len__(self) -> int:
        return self.n

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Find a covariate by its name.

        Parameters
        ----------
        name : str
            The name of the covariate.

        Returns
        -------
        Column
            Its kind, its values and, if it is a category, its levels.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(
            "there is no covariate {value}; {guess}",
            argument="name",
            value=name,
            details={"guess": did_you_mean(name, self.names)},
        )

    @cached_property
    def points(self) -> Points:
        """The rows without labels and weights, as kernels see them."""
        return Points(self.p, self.columns)

    def __repr__(self) -> str:
        on = listed(self.names) or "none"
        return f"<{type(self).__name__}: {self.n:,} rows, covariates {on}>"


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows on their way through an engine."""

    first: int
    y: FloatArray
    p: FloatArray
    points: Points
    weights: FloatArray | None = None
    cluster: IntArray | None = None
    other_labels: frozenset[Any] = frozenset()
    dropped: int = 0

    @property
    def rows(self) -> range:
        """Numbers of the rows in the whole."""
        return range(self.first, self.first + self.y.size)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @property
    def predictions(self) -> FloatArray:
        """Probabilities by outcome, (n, 1)."""
        return self.p[:, None]

    @property
    def left_out(self) -> int:
        """Rows that lack something."""
        return self.dropped

    def outcome(self, k: int) -> Chunk:  # noqa: ARG002
        """The only one."""
        return self


def called_impossible(
    y: AnyArray | int, p: FloatArray, weights: FloatArray | None = None
) -> BoolArray:
    """Mark the rows whose label the model gave probability 0; rows of weight 0 count nothing."""
    marked: BoolArray = ((p == 0) & (y == 1)) | ((p == 1) & (y == 0))
    return marked if weights is None else marked & (weights > 0)
