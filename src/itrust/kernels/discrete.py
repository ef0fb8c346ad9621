"""Kernels that need no distance: matches of categories, constants, matrices from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.data import Column, share_codes
from itrust.kernels.base import Kernel
from itrust.kernels.grams import ConstantGram, DenseGram, Gram, MatchGram, product


@dataclass(frozen=True)
class Delta(Kernel):
    """1 where the values are equal, `otherwise` where they differ.

    On several columns it is the product over the columns. Numbers and dates have to match exactly.

    Parameters
    ----------
    otherwise : float
        The value for a pair that differs, in [0, 1]. By default 0, which compares rows of the same
        group alone; above 0 the groups borrow strength from each other.
    """

    otherwise: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.otherwise <= 1:
            raise InputError(
                "Delta needs a value between 0 and 1 off the match, not {value}",
                argument="otherwise",
                value=self.otherwise,
            )

    def __repr__(self) -> str:
        return f"Delta({self.otherwise:g})" if self.otherwise else "Delta()"

    @property
    def supremum(self) -> float:
        return 1.0

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        if self.otherwise == 0:
            return MatchGram(*share_codes(left, right), otherwise=0.0)
        return product(
            [
                MatchGram(*share_codes([a], [b]), otherwise=self.otherwise)
                for a, b in zip(left, right, strict=True)
            ]
        )


@dataclass(frozen=True)
class Constant(Kernel):
    """The same value for every pair; on the covariates it asks about overall calibration alone.

    Parameters
    ----------
    value : float
        The value, 0 or above; 1 by default.
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.value < float("inf"):
            raise InputError(
                "Constant needs a value that is not negative, not {value}",
                argument="value",
                value=self.value,
            )

    def __repr__(self) -> str:
        return "Constant()" if self.value == 1 else f"Constant({self.value:g})"

    @property
    def supremum(self) -> float:
        return self.value

    @property
    def reads_columns(self) -> bool:
        return False

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        return ConstantGram(self.value, (len(left[0]), len(right[0])))


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """A kernel matrix that was computed elsewhere, for the rows of one sample.

    Parameters
    ----------
    matrix : (n, n) array of float
        Symmetric, positive semi-definite and finite; entry (i, j) belongs to rows i and j.
    """

    matrix: Any

    def __post_init__(self) -> None:
        matrix: FloatArray = np.array(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InputError(
                "Precomputed needs a square matrix, not one of shape {value}",
                argument="matrix",
                value=matrix.shape,
            )
        wrong = ~np.isfinite(matrix) | (np.abs(matrix - matrix.T) > 1e-8 * np.abs(matrix).max())
        if wrong.any():
            row, column = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
            raise InputError(
                "Precomputed needs a finite, symmetric matrix; entry ({i}, {j}) is {one}, entry "
                "({j}, {i}) is {other}",
                argument="matrix",
                value=matrix[row, column],
                details={
                    "i": str(row),
                    "j": str(column),
                    "one": f"{matrix[row, column]:g}",
                    "other": f"{matrix[column, row]:g}",
                },
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def is_positional(self) -> bool:
        return True

    @property
    def supremum(self) -> float:
        return float(np.abs(self.matrix).max())

    @property
    def reads_columns(self) -> bool:
        return False

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        n = len(self.matrix)
        if len(left[0]) != n or len(right[0]) != n:
            raise InputError(
                "the precomputed matrix has {value} rows, the sample {rows}; after `take` or "
                "`split` pass matrix[rows][:, rows]",
                argument="matrix",
                value=n,
                details={"rows": str(len(left[0]))},
            )
        return DenseGram(self.matrix)

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": "Precomputed", "rows": len(self.matrix)}

    def __repr__(self) -> str:
        return f"Precomputed(<{len(self.matrix)} x {len(self.matrix)}>)"
