"""`Population`, the door for rows without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from itrust._core import FloatArray, InputError, listed
from itrust.data.column import Column
from itrust.data.encoding import encode_numbers
from itrust.data.intake import (
    MissingRule,
    checked_missing,
    named_columns,
    read_covariates,
    read_probabilities,
    read_weights,
    same_index,
    same_length,
    settle_missing,
)
from itrust.data.rows import Points


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Population:
    """Predicted probabilities and covariates of rows whose labels are not known.

    Parameters
    ----------
    p, x, weights, names, missing
        As for `Sample`.

    Examples
    --------
    >>> import itrust as it
    >>> it.Population([0.2, 0.7], {"age": [30, 41]})
    <Population: 2 rows, covariates 'age'>
    """

    p: FloatArray
    columns: tuple[Column, ...]
    weights: FloatArray | None
    dropped: tuple[str, ...]

    def __init__(
        self,
        p: object,
        x: object = None,
        weights: object = None,
        names: Sequence[str] | None = None,
        missing: MissingRule = "error",
    ) -> None:
        checked_missing(missing)
        columns = x.items() if isinstance(x, Mapping) else [("x", x)]
        same_index([("prob", p), ("weights", weights), *columns])
        n = encode_numbers(p, "prob").size
        if n == 0:
            raise InputError("a population needs at least 1 row; this one has none")
        covariates = read_covariates(x, names)
        for column in covariates:
            same_length(f"covariate {column.name!r}", len(column), n, "probabilities")
        parts: dict[str, Any] = {
            "y": None,
            "p": read_probabilities(p, n),
            "columns": covariates,
            "weights": None if weights is None else read_weights(weights, n),
            "cluster": None,
            "dropped": (),
        }
        settled = settle_missing(parts, missing)
        for name in ("p", "columns", "weights", "dropped"):
            value = settled[name]
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        prob: str,
        on: str | Sequence[str] = (),
        weights: str | None = None,
        missing: MissingRule = "error",
    ) -> Self:
        """Take the named columns of a pandas, polars or Arrow frame."""
        roles = {"prob": prob, "weights": weights}
        columns, named, chosen = named_columns(frame, roles, on)
        if named["prob"] in chosen:
            raise InputError(f"{named['prob']!r} is the prob column; take it out of `on`")
        return cls(
            columns[named["prob"]],
            {name: columns[name] for name in chosen},
            weights=columns[named["weights"]] if weights is not None else None,
            missing=missing,
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.p.size)

    def __len__(self) -> int:
        return self.n

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def points(self) -> Points:
        """Where the rows lie."""
        return Points(self.p, self.columns)

    def __repr__(self) -> str:
        return f"<Population: {self.n:,} rows, covariates {listed(self.names) or 'none'}>"
