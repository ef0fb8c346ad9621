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
    """1 where the values are equal, `otherwise` (in [0, 1]) where they differ.

    On several columns: the product over columns. With `otherwise` above 0 the groups borrow
    strength from each other. Also for numbers and dates, as an exact match.
    """

    otherwise: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.otherwise <= 1:
            raise InputError(
                f"Delta needs a value between 0 and 1 off the match, not {self.otherwise!r}"
            )

    def __repr__(self) -> str:
        return f"Delta({self.otherwise:g})" if self.otherwise else "Delta()"

    @property
    def supremum(self) -> float:
        """1, on a match."""
        return 1.0

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind to columns of any kind."""
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
    """The same value for every pair: as covariate kernel it asks about calibration alone."""

    value: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.value < float("inf"):
            raise InputError(f"Constant needs a value that is not negative, not {self.value!r}")

    def __repr__(self) -> str:
        return "Constant()" if self.value == 1 else f"Constant({self.value:g})"

    @property
    def supremum(self) -> float:
        """The value."""
        return self.value

    @property
    def reads_columns(self) -> bool:
        """No."""
        return False

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind to columns of any kind."""
        return ConstantGram(self.value, (len(left[0]), len(right[0])))


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """A symmetric positive semi-definite matrix (n, n) for the n rows of one sample."""

    matrix: Any

    def __post_init__(self) -> None:
        matrix: FloatArray = np.array(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"Precomputed needs a square matrix, not one of shape {matrix.shape}")
        wrong = ~np.isfinite(matrix) | (np.abs(matrix - matrix.T) > 1e-8 * np.abs(matrix).max())
        if wrong.any():
            row, column = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
            raise InputError(
                f"Precomputed needs a finite, symmetric matrix; entry ({row}, {column}) is "
                f"{matrix[row, column]:g}, entry ({column}, {row}) is {matrix[column, row]:g}"
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def supremum(self) -> float:
        """The largest absolute entry."""
        return float(np.abs(self.matrix).max())

    @property
    def reads_columns(self) -> bool:
        """No: only the position of a row counts."""
        return False

    @property
    def is_positional(self) -> bool:
        """Yes."""
        return True

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Hand the matrix over if it fits the sample."""
        n = len(self.matrix)
        if len(left[0]) != n or len(right[0]) != n:
            raise InputError(
                f"the precomputed matrix has {n} rows, the sample {len(left[0])}; after `take` or "
                f"`split` pass matrix[rows][:, rows]"
            )
        return DenseGram(self.matrix)

    def to_dict(self) -> dict[str, Any]:
        """Name and size; the entries stay with their owner."""
        return {"kernel": "Precomputed", "rows": len(self.matrix)}

    def __repr__(self) -> str:
        return f"Precomputed(<{len(self.matrix)} x {len(self.matrix)}>)"
