"""Kernels as small immutable values that compose: `a * b`, `a + b`, `a.on("income")`.

Here are those that need no distance: matches of categories, constants, matrices from elsewhere;
and rules that choose a width from one column of values. Labels never come near them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, listed, place_of
from itrust.data import Column, share_codes
from itrust.kernels.grams import CombinedGram, Gram, MadeGram, MatchGram, ones, positions, product

# Medians of distances are taken over this many order statistics: exact up to there, and
# beyond it independent of the order of the rows.
MAX_POINTS = 500


class Kernel(ABC):
    """A positive semi-definite function of two rows of the columns it is applied to.

    Kernels multiply (`a * b`), add up (`a + b`) and can be given to some covariates alone
    (`a.on("income")`).
    """

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The largest value that the kernel can take; infinity where there is none."""

    @abstractmethod
    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind the kernel to columns; rules must have been resolved to numbers before.

        Parameters
        ----------
        left : sequence of Column
            The columns of n rows.
        right : sequence of Column
            The same columns of m rows.

        Returns
        -------
        Gram
            The (n, m) matrix of the kernel's values, which is made in blocks.
        """

    @property
    def reads_columns(self) -> bool:
        """Whether the value depends on the columns at all."""
        return True

    @property
    def is_positional(self) -> bool:
        """Whether only the position of a row counts, so that other points have no value."""
        return False

    def resolve(self, columns: Sequence[Column]) -> Kernel:  # noqa: ARG002  most have no rule
        """Replace rules that choose widths by the numbers that they give on some columns.

        Parameters
        ----------
        columns : sequence of Column
            The columns that the kernel is applied to; labels are not among them.

        Returns
        -------
        Kernel
            The kernel with explicit widths; itself where there is no rule.
        """
        return self

    def widened(self, factor: float) -> Kernel:  # noqa: ARG002  most have no width
        """Multiply all widths.

        Parameters
        ----------
        factor : float
            What to multiply by; above 1 the kernel compares rows that are further apart.

        Returns
        -------
        Kernel
            The wider kernel; itself where there are no widths.
        """
        return self

    def on(self, *names: str) -> Kernel:
        """Apply the kernel to some covariates only.

        Parameters
        ----------
        *names : str
            Names of the covariates.

        Returns
        -------
        Kernel
            The kernel that sees only these covariates.
        """
        wrong = [name for name in names if not isinstance(name, str)]
        if wrong or not names:
            problem = "on takes names one by one, as in .on('age', 'sex'), not {value}"
            raise InputError(problem, argument="names", value=wrong[0] if wrong else names)
        return On(self, names)

    def describe(self, names: Sequence[str]) -> str:  # noqa: ARG002  most do not need them
        """Give the kernel and its settings in words.

        Parameters
        ----------
        names : sequence of str
            Names of the columns that the kernel is applied to.

        Returns
        -------
        str
            One line.
        """
        return repr(self)

    def __mul__(self, other: Kernel) -> Kernel:
        return Compound((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __add__(self, other: Kernel) -> Kernel:
        return Compound((self, other), is_sum=True) if isinstance(other, Kernel) else NotImplemented

    def to_dict(self) -> dict[str, Any]:
        """Give the name and the settings, ready for JSON.

        Returns
        -------
        dict
            The name under "kernel", then the settings by their names.
        """
        settings = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"kernel": type(self).__name__, **settings}


def _plain(value: Any) -> Any:
    if isinstance(value, Kernel):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, int | float | str) else repr(value)


@dataclass(frozen=True)
class Compound(Kernel):
    """Kernels whose values are multiplied or added; write `a * b` or `a + b`.

    Rows are alike where every factor, or any term, finds them alike.
    """

    parts: tuple[Kernel, ...]
    is_sum: bool = False

    @property
    def supremum(self) -> float:
        own = [part.supremum for part in self.parts]
        return math.fsum(own) if self.is_sum else math.prod(own)

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        grams = [part.gram(left, right) for part in self.parts]
        return CombinedGram.of(np.add, grams) if self.is_sum else product(grams)

    @property
    def reads_columns(self) -> bool:
        return any(part.reads_columns for part in self.parts)

    @property
    def is_positional(self) -> bool:
        return any(part.is_positional for part in self.parts)

    def resolve(self, columns: Sequence[Column]) -> Kernel:
        return replace(self, parts=tuple(part.resolve(columns) for part in self.parts))

    def widened(self, factor: float) -> Kernel:
        return replace(self, parts=tuple(part.widened(factor) for part in self.parts))

    def describe(self, names: Sequence[str]) -> str:
        if self.is_sum:
            return repr(self)
        return "; ".join(part.describe(names) for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        name, parts = ("Sum", "terms") if self.is_sum else ("Product", "factors")
        return {"kernel": name, parts: _plain(self.parts)}

    def __repr__(self) -> str:
        if self.is_sum:
            return " + ".join(map(repr, self.parts))
        inner = ((part, getattr(part, "is_sum", False)) for part in self.parts)
        return " * ".join(f"({part!r})" if is_sum else repr(part) for part, is_sum in inner)


@dataclass(frozen=True)
class On(Kernel):
    """A kernel applied to named covariates only; write `kernel.on("income")`."""

    kernel: Kernel
    names: tuple[str, ...]

    @property
    def supremum(self) -> float:
        return self.kernel.supremum

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        return self.kernel.gram(self._chosen(left), self._chosen(right))

    @property
    def is_positional(self) -> bool:
        return self.kernel.is_positional

    def resolve(self, columns: Sequence[Column]) -> Kernel:
        return On(self.kernel.resolve(self._chosen(columns)), self.names)

    def widened(self, factor: float) -> Kernel:
        return On(self.kernel.widened(factor), self.names)

    def to_dict(self) -> dict[str, Any]:
        return {**self.kernel.to_dict(), "on": list(self.names)}

    def _chosen(self, columns: Sequence[Column]) -> list[Column]:
        by_name = {column.name: column for column in columns}
        problem = "the kernel names {value}, which the sample lacks; {guess}"
        known = {} if columns else {"guess": "it has no covariates"}
        for name in self.names:
            place_of(name, list(by_name), problem, argument="kernel", **known)
        return [by_name[name] for name in self.names]

    def describe(self, names: Sequence[str]) -> str:  # noqa: ARG002  it has its own
        text = self.kernel.describe(self.names)
        return text if self.names[0] in text else f"{text} on {', '.join(self.names)}"

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, Compound) else repr(self.kernel)
        return f"{inner}.on({listed(self.names, max_items=99)})"


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
    supremum = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.otherwise <= 1:
            problem = "Delta needs a value between 0 and 1 off the match, not {value}"
            raise InputError(problem, argument="otherwise", value=self.otherwise)

    def __repr__(self) -> str:
        return f"Delta({self.otherwise:g})" if self.otherwise else "Delta()"

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        if self.otherwise == 0:
            return MatchGram(*share_codes(left, right), otherwise=0.0)
        pairs = [share_codes([a], [b]) for a, b in zip(left, right, strict=True)]
        return product([MatchGram(*codes, otherwise=self.otherwise) for codes in pairs])


@dataclass(frozen=True)
class Constant(Kernel):
    """The same value for every pair; on the covariates it asks about overall calibration alone.

    Parameters
    ----------
    value : float
        The value, 0 or above; 1 by default.
    """

    value: float = 1.0
    reads_columns = False

    def __post_init__(self) -> None:
        if not 0 <= self.value < float("inf"):
            problem = "Constant needs a value that is not negative, not {value}"
            raise InputError(problem, argument="value", value=self.value)

    def __repr__(self) -> str:
        return "Constant()" if self.value == 1 else f"Constant({self.value:g})"

    @property
    def supremum(self) -> float:
        return self.value

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        shape, value = (len(left[0]), len(right[0])), self.value
        if value == 1:
            return ones(shape)
        return MadeGram(
            *positions(shape),
            lambda a, b: np.full((len(a), len(b)), value),
            lambda a: np.full(len(a), value),
        )


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """A kernel matrix that was computed elsewhere, for the rows of one sample.

    Parameters
    ----------
    matrix : (n, n) array of float
        Symmetric, positive semi-definite and finite; entry (i, j) belongs to rows i and j.
    """

    matrix: Any
    is_positional, reads_columns = True, False

    def __post_init__(self) -> None:
        matrix: FloatArray = np.array(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            problem = "Precomputed needs a square matrix, not one of shape {value}"
            raise InputError(problem, argument="matrix", value=matrix.shape)
        wrong = ~np.isfinite(matrix) | (np.abs(matrix - matrix.T) > 1e-8 * np.abs(matrix).max())
        if wrong.any():
            i, j = np.unravel_index(np.argmax(wrong), wrong.shape)
            raise InputError(
                f"Precomputed needs a finite, symmetric matrix; entry ({i}, {j}) is "
                f"{matrix[i, j]:g}, entry ({j}, {i}) is {matrix[j, i]:g}",
                argument="matrix",
                value=matrix[i, j],
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def supremum(self) -> float:
        return float(np.abs(self.matrix).max())

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        n = len(self.matrix)
        if len(left[0]) != n or len(right[0]) != n:
            raise InputError(
                f"the precomputed matrix has {n} rows, the sample {len(left[0])}; after `take` or "
                "`split` pass matrix[rows][:, rows]",
                argument="matrix",
                value=n,
            )
        matrix, places = self.matrix, positions(self.matrix.shape)
        return MadeGram(*places, lambda a, b: matrix[np.ix_(a, b)], lambda a: matrix[a, a])

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": "Precomputed", "rows": len(self.matrix)}

    def __repr__(self) -> str:
        return f"Precomputed(<{len(self.matrix)} x {len(self.matrix)}>)"


class WidthRule(ABC):
    """Chooses a width from the values that are present in one column."""

    @abstractmethod
    def __call__(self, present: FloatArray) -> float:
        """Choose a width.

        Labels are not handed in, so that no rule can look at them.

        Parameters
        ----------
        present : (m,) array of float
            The values of a column, none of them missing.

        Returns
        -------
        float
            A positive width.
        """


@dataclass(frozen=True)
class Median(WidthRule):
    """The median distance between two rows, times `factor`.

    Where more than half of the pairs are ties (a 0/1 column, a count), the plain median is
    0; then the median of the positive distances is taken. A constant column gets 1.

    Parameters
    ----------
    factor : float
        What the median is multiplied by; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> Median()(np.array([0.0, 0.0, 0.0, 1.0, 1.0]))
    1.0
    >>> Median()(np.full(4, 7.0))
    1.0
    """

    factor: float = 1.0

    def __call__(self, present: FloatArray) -> float:
        values = present
        if present.size > MAX_POINTS:
            middle_of_slots = (np.arange(MAX_POINTS) + 0.5) / MAX_POINTS
            values = np.sort(present)[(middle_of_slots * present.size).astype(int)]
        distances = np.abs(values[:, None] - values)[np.triu_indices(values.size, 1)]
        median = float(np.median(distances)) if distances.size else 0.0
        if median == 0:
            positive = distances[distances > 0]
            median = float(np.median(positive)) if positive.size else 1.0
        return self.factor * median


@dataclass(frozen=True)
class Scale(WidthRule):
    """The spread of the values, times `factor`: interquartile range / 1.349.

    That is the standard deviation of a normal column, without its sensitivity to outliers.
    A column whose quartiles coincide falls back to the standard deviation, a constant one
    to 1.

    Parameters
    ----------
    factor : float
        What the spread is multiplied by; 1 by default, which for normal values is their standard
        deviation.

    Examples
    --------
    >>> import numpy as np
    >>> round(Scale(0.5)(np.linspace(0, 1.349, 101)), 6)
    0.25
    """

    factor: float = 1.0

    def __call__(self, present: FloatArray) -> float:
        if present.size == 0:
            return self.factor
        low, high = np.percentile(present, [25, 75])
        spread = float(high - low) / 1.349 or float(present.std()) or 1.0
        return self.factor * spread
